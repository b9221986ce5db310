/* Integer codes with scales and zero points, w = scale * (code - zero), made anew for the kernels (mt_bind_integers).

   AFFINE has w = scale * code + bias, so bias = -scale * zero. Where every zero is half of the range, that product has
   no more bits than the scale and both keep the file's type; elsewhere both become f32, in which it is exact for scales
   of 16 bits. Groups of more columns than a kernel's are divided, with the same scale. Where columns are in groups
   without order (activation order), or groups are no multiple of 32 columns, no kernel has the format: the values are
   decoded. Rejected: reordering the columns of such a matrix, since every operation that makes its input would have to
   write it in that order, too. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/levels.h"
#include "kernels/unpack.h"
#include "weights/bind_internal.h"

enum { ROWS = 32 /* of an item */ };

static size_t items_of(size_t rows, size_t each)
{
    return (rows + each - 1) / each;
}

size_t mt_group_size(size_t k, uint64_t groups, int64_t said)
{
    if (groups == 0 || groups > k)
        return 0;
    if (said > 0 && (k + (uint64_t)said - 1) / (uint64_t)said == groups)
        return (size_t)said;
    return k % groups == 0 ? k / groups : 0;
}

/* An index of -1 means that there is none. In a checkpoint opened for inspection it counts as one without order where
   the config says so. */
bool mt_bind_group_index(const mt_wish *w, const mt_tensor_info *t, size_t group, size_t groups, const uint32_t **out)
{
    bool ordered = true;
    *out = NULL;
    if (!t)
        return true;
    if (t->dims != 1 || t->shape[0] != w->k || t->dtype != MT_DTYPE_I32)
        return mt_wish_miss(w, " as groups of columns", t, NULL);
    if (w->b->headers_only) {
        *out = w->b->quant.activation_order ? (const uint32_t *)(const void *)w->b : NULL;
        return true;
    }
    for (size_t i = 0; i < w->k; i++) {
        uint32_t g;
        memcpy(&g, t->data + i * sizeof(g), sizeof(g));
        if (g == UINT32_MAX)
            return true;
        if (g >= groups)
            return mt_binder_miss(w->b, t->name, "groups of columns", "found group %u of %zu at column %zu", g, groups,
                                  i);
        ordered = ordered && g == i / group;
    }
    if (ordered)
        return true;
    uint32_t *copy = mt_binder_copy(w->b, w->k * sizeof(*copy));
    if (copy)
        memcpy(copy, t->data, w->k * sizeof(*copy));
    *out = copy;
    return copy != NULL;
}

/* Groups of a row. */
static size_t groups_of(const mt_integers *in)
{
    return (in->w->k + in->group - 1) / in->group;
}

/* Columns of a group in the kernels' format; 0 where it has none. */
static size_t kernel_group(const mt_integers *in)
{
    static const size_t known[] = {128, 64, 32};
    for (size_t i = 0; i < MT_COUNT(known) && !in->group_of; i++) {
        if (in->w->k % known[i] == 0 && (in->group >= in->w->k || in->group % known[i] == 0))
            return known[i];
    }
    return 0;
}

/* ---- values, where no format fits ---- */

typedef struct decoding {
    mt_row_fn *row;
    const void *ctx;
    size_t rows, k;
    bool exact;
    uint8_t *to;
} decoding;

static void decode_item(void *ctx, size_t item, size_t worker)
{
    const decoding *d = ctx;
    float *row = mt_alloc_array(d->k, sizeof(*row));
    (void)worker;
    for (size_t r = item * ROWS; r < d->rows && r < (item + 1) * ROWS; r++) {
        d->row(d->ctx, r, row);
        if (d->exact)
            memcpy(d->to + r * d->k * sizeof(*row), row, d->k * sizeof(*row));
        else
            mt_to_bf16_portable((mt_bf16 *)(void *)d->to + r * d->k, row, d->k);
    }
    mt_free(row);
}

bool mt_bind_decoded(const mt_wish *w, mt_row_fn *row, const void *ctx, mt_mat *out)
{
    const bool exact = mt_checkpoint_is_exact(w->b->c);
    const mt_dtype dtype = exact ? MT_DTYPE_F32 : MT_DTYPE_BF16;
    const size_t bytes = mt_wish_rows(w) * w->k * mt_dtype_size(dtype);
    decoding d = {.row = row, .ctx = ctx, .rows = mt_wish_rows(w), .k = w->k, .exact = exact};
    const uint64_t start = mt_clock_ns();
    if (w->b->headers_only) {
        w->b->cost.copied_bytes += bytes;
        *out = mt_mat_plain(dtype, mt_checkpoint_at(w->b->c, 0)->data, w->n, w->k);
        return true;
    }
    d.to = mt_binder_copy(w->b, bytes);
    if (d.to)
        mt_binder_run(w->b, decode_item, &d, items_of(d.rows, ROWS));
    *out = mt_mat_plain(dtype, d.to, w->n, w->k);
    w->b->cost.seconds += (double)(mt_clock_ns() - start) * 1e-9;
    return d.to != NULL;
}

/* ---- codes ---- */

typedef struct laying {
    const mt_integers *in;
    uint8_t *to;
    size_t stride;
} laying;

static void lay_item(void *ctx, size_t item, size_t worker)
{
    const laying *l = ctx;
    const size_t rows = mt_wish_rows(l->in->w), first = item * l->in->lay_rows;
    (void)worker;
    l->in->lay(l->in->ctx, l->to + first * l->stride, l->stride, first,
               rows - first < l->in->lay_rows ? rows - first : l->in->lay_rows);
}

/* A row decoded, for mt_bind_decoded. */
typedef struct streams {
    const mt_integers *in;
    const uint8_t *codes;
    size_t stride;
} streams;

static void decode_row(const void *ctx, size_t row, float *out)
{
    const streams *s = ctx;
    const mt_integers *in = s->in;
    const mt_mat mat = {.format = MT_FORMAT_AFFINE, .bits = (uint8_t)in->bits};
    const size_t groups = groups_of(in);
    float *pairs = mt_alloc_array(2 * groups, sizeof(*pairs));
    mt_unpacker u = {.p = s->codes + row * s->stride};
    for (size_t g = 0; g < groups; g++)
        in->pair(in->ctx, row, g, &pairs[2 * g], &pairs[2 * g + 1]);
    for (size_t i = 0; i < in->w->k; i++) {
        const float *pair = pairs + 2 * (in->group_of ? in->group_of[i] : i / in->group);
        out[i] = pair[0] * ((float)mt_unpack_next(&u, &mat) - pair[1]);
    }
    mt_free(pairs);
}

static bool decode_codes(const mt_integers *in, mt_mat *out)
{
    const size_t stride = in->codes ? in->stride : (in->w->k * in->bits + 31) / 32 * 4;
    laying l = {.in = in, .stride = stride};
    streams s = {.in = in, .codes = in->codes, .stride = stride};
    if (!in->codes && !in->w->b->headers_only) {
        s.codes = l.to = mt_alloc_array(mt_wish_rows(in->w), stride);
        mt_binder_run(in->w->b, lay_item, &l, items_of(mt_wish_rows(in->w), in->lay_rows));
    }
    const bool ok = mt_bind_decoded(in->w, decode_row, &s, out);
    mt_free(l.to);
    return ok;
}

/* ---- scales and biases ---- */

typedef struct scaling {
    const mt_integers *in;
    const mt_mat *mat;
    uint8_t *scales, *biases;
} scaling;

/* To nearest even; beyond the range infinite. */
static mt_f16 f16_of(float x)
{
    const float magnitude = fabsf(x);
    const int exponent = magnitude < 0x1p-14f ? -14 : ilogbf(magnitude);
    const uint16_t sign = signbit(x) ? 0x8000u : 0;
    if (isnan(x))
        return 0x7e00u;
    if (exponent > 15)
        return (mt_f16)(sign | 0x7c00u);
    return (mt_f16)(sign + (unsigned)(exponent + 14) * 1024 + (unsigned)rintf(ldexpf(magnitude, 10 - exponent)));
}

static void store(uint8_t *to, mt_scale_type type, float x)
{
    uint16_t half = 0;
    if (type == MT_SCALE_F32) {
        memcpy(to, &x, sizeof(x));
        return;
    }
    if (type == MT_SCALE_F16)
        half = f16_of(x);
    else
        mt_to_bf16_portable(&half, &x, 1);
    memcpy(to, &half, sizeof(half));
}

static void scale_item(void *ctx, size_t item, size_t worker)
{
    const scaling *s = ctx;
    const size_t rows = mt_wish_rows(s->in->w), groups = s->mat->k / s->mat->group;
    const size_t size = mt_scale_size(s->mat->scale_type);
    (void)worker;
    for (size_t r = item * ROWS; r < rows && r < (item + 1) * ROWS; r++) {
        for (size_t g = 0; g < groups; g++) {
            const size_t at = r * s->mat->scale_stride + g * size;
            float scale, zero;
            s->in->pair(s->in->ctx, r, g * s->mat->group / s->in->group, &scale, &zero);
            store(s->scales + at, s->mat->scale_type, scale);
            store(s->biases + at, s->mat->scale_type, -scale * zero);
        }
    }
}

static bool make_affine(const mt_integers *in, mt_mat *mat)
{
    mt_binder *b = in->w->b;
    const size_t rows = mt_wish_rows(in->w);
    laying l = {.in = in, .stride = mat->stride};
    scaling s = {.in = in, .mat = mat};
    if (!in->codes) {
        mat->w = l.to = mt_binder_copy(b, rows * mat->stride);
        if (!l.to)
            return false;
        mt_binder_run(b, lay_item, &l, items_of(rows, in->lay_rows));
    }
    mat->scales = s.scales = mt_binder_copy(b, rows * mat->scale_stride);
    mat->biases = s.biases = mt_binder_copy(b, rows * mat->scale_stride);
    if (!s.scales || !s.biases)
        return false;
    mt_binder_run(b, scale_item, &s, items_of(rows, ROWS));
    return true;
}

bool mt_bind_integers(const mt_integers *in, mt_mat *out)
{
    mt_binder *b = in->w->b;
    const size_t group = kernel_group(in), k = in->w->k;
    const uint64_t start = mt_clock_ns();
    if (group == 0)
        return decode_codes(in, out);
    const mt_scale_type type = in->symmetric ? mt_dtype_scale(in->dtype) : MT_SCALE_F32;
    *out = (mt_mat){.format = MT_FORMAT_AFFINE,
                    .scale_type = type,
                    .bits = (uint8_t)in->bits,
                    .group = (uint16_t)group,
                    .n = in->w->n,
                    .k = k,
                    .w = in->codes,
                    .stride = in->codes ? in->stride : k * in->bits / 8,
                    .scale_stride = k / group * mt_scale_size(type),
                    .global = 1};
    if (b->headers_only) {
        b->cost.copied_bytes += mt_wish_rows(in->w) * (2 * out->scale_stride + (in->codes ? 0 : out->stride));
        out->w = out->scales = out->biases = mt_checkpoint_at(b->c, 0)->data;
        return true;
    }
    const bool ok = make_affine(in, out);
    b->cost.seconds += (double)(mt_clock_ns() - start) * 1e-9;
    return ok;
}
