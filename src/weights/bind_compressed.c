/* compressed-tensors and ModelOpt, except FP8:

     weight_packed I32 [n, k * bits / 32]   integers, a row's words with 32 / bits codes each, stored as
                                            q + 2^(bits - 1); weight_zero_point, if any, packed likewise along n
     weight        I8  [n, k]               integers as they are
     weight_packed U8  [n, k / 2]           NVFP4 or MXFP4, as the type of their scales shows
     weight        U8  [n, k / 2]           ModelOpt's NVFP4

   Integers have weight_scale [n, groups], [n, 1] or of one element. NVFP4 and MXFP4 are used in place; so are packed
   codes whose bits divide 32. */
#include <string.h>

#include "weights/bind_internal.h"

typedef struct integers {
    const mt_wish *w;
    const mt_tensor_info *codes, *scales, *zeros;
    unsigned bits;
    size_t groups; /* columns of the scales */
} integers;

static uint32_t packed_field(const mt_tensor_info *t, size_t word, size_t i, unsigned bits)
{
    uint32_t all;
    memcpy(&all, t->data + 4 * word, sizeof(all));
    return all >> i * bits & ((1u << bits) - 1);
}

static uint64_t elements(const mt_tensor_info *t)
{
    uint64_t count = 1;
    for (unsigned i = 0; i < t->dims; i++)
        count *= t->shape[i];
    return count;
}

/* Zero points that are not packed are signed. Packed ones of stacked matrices begin anew with each. */
static void pair(const void *ctx, size_t row, size_t group, float *scale, float *zero)
{
    const integers *c = ctx;
    const size_t at = elements(c->scales) == 1 ? 0 : row * c->groups + group, each = 32 / c->bits;
    const float half = (float)(1u << (c->bits - 1));
    *scale = mt_tensor_float(c->scales, at);
    *zero = half;
    if (c->zeros && c->zeros->dtype == MT_DTYPE_I8)
        *zero = half + (float)(int8_t)c->zeros->data[at];
    else if (c->zeros) {
        const size_t item = row / c->w->n, r = row % c->w->n, words = (c->w->n + each - 1) / each;
        *zero = (float)packed_field(c->zeros, (item * words + r / each) * c->groups + group, r % each, c->bits);
    }
}

static void lay_words(const void *ctx, uint8_t *to, size_t stride, size_t first, size_t rows)
{
    const integers *c = ctx;
    const size_t each = 32 / c->bits, words = (c->w->k + each - 1) / each;
    memset(to, 0, rows * stride);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < c->w->k; i++) {
            const uint32_t code = packed_field(c->codes, (first + r) * words + i / each, i % each, c->bits);
            const size_t bit = i * c->bits;
            to[r * stride + bit / 8] |= (uint8_t)(code << bit % 8);
            if (bit % 8 + c->bits > 8)
                to[r * stride + bit / 8 + 1] |= (uint8_t)(code >> (8 - bit % 8));
        }
    }
}

static void lay_bytes(const void *ctx, uint8_t *to, size_t stride, size_t first, size_t rows)
{
    const integers *c = ctx;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < c->w->k; i++)
            to[r * stride + i] = c->codes->data[(first + r) * c->w->k + i] ^ 0x80;
}

/* Whether scales have a place for each row, or are one; sets the groups of a row. */
static bool read_scales(integers *c)
{
    const mt_tensor_info *s = c->scales;
    c->groups = s->dims ? s->shape[s->dims - 1] : 1;
    if (mt_dtype_size(s->dtype) == 0)
        return false;
    return elements(s) == 1 || mt_wish_fits(c->w, s, c->w->n, c->groups);
}

static bool fits_zeros(const integers *c)
{
    const size_t each = 32 / c->bits;
    if (c->zeros->dtype == MT_DTYPE_I8)
        return elements(c->zeros) == elements(c->scales);
    return c->zeros->dtype == MT_DTYPE_I32 && elements(c->scales) > 1 &&
           mt_wish_fits(c->w, c->zeros, (c->w->n + each - 1) / each, c->groups);
}

static bool bind_integers(integers *c, const uint8_t *in_place, size_t stride, mt_mat *out)
{
    const mt_wish *w = c->w;
    const mt_tensor_info *index = mt_binder_take(w->b, w->name, ".weight_g_idx");
    c->scales = mt_binder_take(w->b, w->name, ".weight_scale");
    c->zeros = mt_binder_take(w->b, w->name, ".weight_zero_point");
    (void)mt_binder_take(w->b, w->name, ".weight_shape");
    (void)mt_binder_take(w->b, w->name, ".input_scale");
    if (!in_place)
        mt_binder_copied(w->b, c->codes);
    if (!c->scales)
        return mt_wish_miss(w, " without weight_scale", c->codes, NULL);
    const size_t group = read_scales(c) ? mt_group_size(w->k, c->groups, 0) : 0;
    if (group == 0)
        return mt_wish_miss(w, " with weight_scale ", c->codes, c->scales);
    if (c->zeros && !fits_zeros(c))
        return mt_wish_miss(w, " with weight_zero_point ", c->codes, c->zeros);
    mt_integers in = {.w = w,
                      .bits = c->bits,
                      .group = group,
                      .dtype = c->scales->dtype,
                      .symmetric = !c->zeros,
                      .codes = in_place,
                      .stride = stride,
                      .lay = c->codes->dtype == MT_DTYPE_I8 ? lay_bytes : lay_words,
                      .lay_rows = 8,
                      .pair = pair,
                      .ctx = c};
    return mt_bind_group_index(w, index, group, c->groups, &in.group_of) && mt_bind_integers(&in, out);
}

bool mt_bind_int8(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    integers c = {.w = w, .codes = t, .bits = 8};
    if (!mt_wish_fits(w, t, w->n, w->k))
        return mt_wish_miss(w, "", t, NULL);
    return bind_integers(&c, NULL, 0, out);
}

static bool bind_words(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    static const unsigned known[] = {4, 8, 2, 3, 5, 6};
    integers c = {.w = w, .codes = t};
    size_t words = 0;
    for (size_t i = 0; i < MT_COUNT(known) && !c.bits; i++) {
        words = (w->k + 32 / known[i] - 1) / (32 / known[i]);
        c.bits = mt_wish_fits(w, t, w->n, words) ? known[i] : 0;
    }
    if (!c.bits)
        return mt_wish_miss(w, "", t, NULL);
    return bind_integers(&c, 32 % c.bits ? NULL : t->data, words * 4, out);
}

/* ---- four bits of floating point ---- */

/* NVFP4 has a second scale for the whole matrix, which multiplies or divides. */
static bool bind_nvfp4(const mt_wish *w, const mt_tensor_info *t, const mt_tensor_info *scales, mt_mat *out)
{
    const mt_tensor_info *times = mt_binder_take(w->b, w->name, ".weight_scale_2");
    const mt_tensor_info *by = mt_binder_take(w->b, w->name, ".weight_global_scale"), *whole = times ? times : by;
    (void)mt_binder_take(w->b, w->name, ".input_scale");
    (void)mt_binder_take(w->b, w->name, ".input_global_scale");
    const size_t group = 16;
    if (!whole)
        return mt_wish_miss(w, " without weight_scale_2 or weight_global_scale", t, NULL);
    if (elements(whole) != 1 || mt_dtype_size(whole->dtype) == 0)
        return mt_wish_miss(w, " with the scale of a matrix ", t, whole);
    if (w->k % group || !mt_wish_fits(w, t, w->n, w->k / 2) || !mt_wish_fits(w, scales, w->n, w->k / group))
        return mt_wish_miss(w, " with weight_scale ", t, scales);
    const float scale = w->b->headers_only ? 1 : mt_tensor_float(whole, 0);
    *out = (mt_mat){.format = MT_FORMAT_NVFP4,
                    .scale_type = MT_SCALE_E4M3,
                    .bits = 4,
                    .group = (uint16_t)group,
                    .n = w->n,
                    .k = w->k,
                    .w = t->data,
                    .stride = w->k / 2,
                    .scales = scales->data,
                    .scale_stride = w->k / group,
                    .global = times ? scale : 1 / scale};
    return true;
}

static bool bind_mxfp4(const mt_wish *w, const mt_tensor_info *t, const mt_tensor_info *scales, mt_mat *out)
{
    if (w->k % MT_MXFP4_GROUP || !mt_wish_fits(w, t, w->n, w->k / 2) ||
        !mt_wish_fits(w, scales, w->n, w->k / MT_MXFP4_GROUP))
        return mt_wish_miss(w, " with weight_scale ", t, scales);
    *out = (mt_mat){.format = MT_FORMAT_MXFP4,
                    .scale_type = MT_SCALE_E8M0,
                    .bits = 4,
                    .group = MT_MXFP4_GROUP,
                    .n = w->n,
                    .k = w->k,
                    .w = t->data,
                    .stride = w->k / 2,
                    .scales = scales->data,
                    .scale_stride = w->k / MT_MXFP4_GROUP,
                    .global = 1};
    return true;
}

bool mt_bind_float4(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    const mt_tensor_info *scales = mt_binder_use(w->b, w->name, ".weight_scale");
    if (!scales)
        return mt_wish_miss(w, " without weight_scale", t, NULL);
    if (scales->dtype == MT_DTYPE_F8_E4M3)
        return bind_nvfp4(w, t, scales, out);
    if (scales->dtype == MT_DTYPE_U8 || scales->dtype == MT_DTYPE_F8_E8M0)
        return bind_mxfp4(w, t, scales, out);
    return mt_wish_miss(w, " with weight_scale ", t, scales);
}

bool mt_bind_packed_weight(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    if (t->dtype == MT_DTYPE_I32)
        return bind_words(w, t, out);
    if (t->dtype == MT_DTYPE_U8)
        return mt_bind_float4(w, t, out);
    return mt_wish_miss(w, "", t, NULL);
}
