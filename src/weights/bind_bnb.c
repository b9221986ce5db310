/* bitsandbytes. 4 bits (NF4, FP4): `weight` is the row-major tensor with two codes a byte, the first in the high
   nibble; weight.quant_map has the 16 values, weight.absmax a factor for each block of elements, which runs over the
   ends of rows. Where the factors are quantised themselves, absmax is bytes into weight.nested_quant_map, times
   weight.nested_absmax of their block, plus an offset. weight.quant_state.bitsandbytes__nf4 (or fp4) is JSON with the
   sizes of blocks and the offset. No kernel has such values: they are decoded.

   8 bits: `weight` I8 [n, k], SCB [n]; w = q * SCB / 127. */
#include <string.h>

#include "weights/bind_internal.h"

typedef struct quads {
    const mt_wish *w;
    const mt_tensor_info *codes, *absmax, *map, *nested, *nested_map;
    int64_t block, nested_block;
    double offset;
} quads;

static float factor(const quads *q, size_t block)
{
    if (!q->nested)
        return mt_tensor_float(q->absmax, block);
    const float unit = mt_tensor_float(q->nested_map, q->absmax->data[block]);
    return unit * mt_tensor_float(q->nested, block / (size_t)q->nested_block) + (float)q->offset;
}

static void decode_row(const void *ctx, size_t row, float *out)
{
    const quads *q = ctx;
    const size_t first = row * q->w->k, end = first + q->w->k, each = (size_t)q->block;
    float values[16];
    for (size_t i = 0; i < MT_COUNT(values); i++)
        values[i] = mt_tensor_float(q->map, i);
    for (size_t at = first, stop; at < end; at = stop) {
        const float scale = factor(q, at / each);
        stop = (at / each + 1) * each < end ? (at / each + 1) * each : end;
        for (size_t i = at; i < stop; i++) {
            const uint8_t byte = q->codes->data[i / 2];
            out[i - first] = values[i % 2 ? byte & 15 : byte >> 4] * scale;
        }
    }
}

static bool is_list(const mt_tensor_info *t, mt_dtype dtype, uint64_t count)
{
    return t && t->dims == 1 && t->dtype == dtype && t->shape[0] == count;
}

/* Reads the sizes of blocks from the JSON text that is stored as a tensor. */
static bool read_state(quads *q, const mt_tensor_info *t)
{
    mt_config *state = mt_config_parse((const char *)t->data, t->bytes, NULL);
    const bool ok = state && mt_config_int(state, "blocksize", 64, 1, INT32_MAX, &q->block, NULL) &&
                    mt_config_int(state, "nested_blocksize", 256, 1, INT32_MAX, &q->nested_block, NULL) &&
                    mt_config_float(state, "nested_offset", 0, -1e30, 1e30, &q->offset, NULL);
    mt_config_free(state);
    return ok;
}

static bool fits_factors(const quads *q)
{
    const uint64_t elements = (uint64_t)mt_wish_rows(q->w) * q->w->k;
    const uint64_t blocks = (elements + (uint64_t)q->block - 1) / (uint64_t)q->block;
    const uint64_t nested = (blocks + (uint64_t)q->nested_block - 1) / (uint64_t)q->nested_block;
    if (!q->nested)
        return is_list(q->absmax, MT_DTYPE_F32, blocks);
    return is_list(q->absmax, MT_DTYPE_U8, blocks) && is_list(q->nested, MT_DTYPE_F32, nested) &&
           is_list(q->nested_map, MT_DTYPE_F32, 256);
}

bool mt_bind_bnb4(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    mt_binder *b = w->b;
    quads q = {.w = w,
               .codes = t,
               .absmax = mt_binder_take(b, w->name, ".weight.absmax"),
               .map = mt_binder_take(b, w->name, ".weight.quant_map"),
               .nested = mt_binder_take(b, w->name, ".weight.nested_absmax"),
               .nested_map = mt_binder_take(b, w->name, ".weight.nested_quant_map"),
               .block = 64,
               .nested_block = 256};
    const mt_tensor_info *state = mt_binder_take(b, w->name, ".weight.quant_state.bitsandbytes__nf4");
    if (!state)
        state = mt_binder_take(b, w->name, ".weight.quant_state.bitsandbytes__fp4");
    mt_binder_copied(b, t);
    if (!q.absmax || !state)
        return mt_wish_miss(w, q.absmax ? " without quant_state" : " without absmax", t, NULL);
    if (!is_list(q.absmax, q.nested ? MT_DTYPE_U8 : MT_DTYPE_F32, q.absmax->shape[0]))
        return mt_wish_miss(w, " with absmax ", t, q.absmax);
    if (!is_list(q.map, MT_DTYPE_F32, 16) || t->dims != 2 || t->bytes != ((uint64_t)mt_wish_rows(w) * w->k + 1) / 2)
        return mt_wish_miss(w, "", t, NULL);
    if (!b->headers_only && !read_state(&q, state))
        return mt_wish_miss(w, " with a quant_state that is no JSON of sizes", t, NULL);
    if (!b->headers_only && !fits_factors(&q))
        return mt_wish_miss(w, " with absmax ", t, q.absmax);
    return mt_bind_decoded(w, decode_row, &q, out);
}

/* ---- 8 bits ---- */

typedef struct bytes {
    const mt_wish *w;
    const mt_tensor_info *codes, *scales;
} bytes;

static void pair(const void *ctx, size_t row, size_t group, float *scale, float *zero)
{
    const bytes *q = ctx;
    (void)group;
    *scale = mt_tensor_float(q->scales, row) / 127;
    *zero = 128;
}

static void lay(const void *ctx, uint8_t *to, size_t stride, size_t first, size_t rows)
{
    const bytes *q = ctx;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < q->w->k; i++)
            to[r * stride + i] = q->codes->data[(first + r) * q->w->k + i] ^ 0x80;
}

bool mt_bind_bnb8(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    const bytes q = {.w = w, .codes = t, .scales = mt_binder_take(w->b, w->name, ".SCB")};
    (void)mt_binder_take(w->b, w->name, ".weight_format");
    mt_binder_copied(w->b, t);
    if (w->stack || !mt_wish_fits(w, t, w->n, w->k))
        return mt_wish_miss(w, "", t, NULL);
    if (!is_list(q.scales, MT_DTYPE_F32, w->n))
        return mt_wish_miss(w, " with SCB ", t, q.scales);
    const mt_integers in = {.w = w,
                            .bits = 8,
                            .group = w->k,
                            .dtype = MT_DTYPE_F32,
                            .symmetric = true,
                            .lay = lay,
                            .lay_rows = 8,
                            .pair = pair,
                            .ctx = &q};
    return mt_bind_integers(&in, out);
}
