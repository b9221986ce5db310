/* FP8 (E4M3) with a scale for each block, row or matrix, under any of the names in use:

     weight_scale_inv, weight_scale      [n / 128, k / 128], [n, k / 128], [n], [n, 1], [] or [1]; also blocks of other
                                         sizes that the config names
     weight_scale U8                     [n, k / 32]: MXFP8

   The kernels have one scale for each block of 128 columns and of 128 rows, or of one row. Scales of other blocks are
   repeated; where a block of columns is no multiple of 128, the values are decoded. Activations are not rounded to FP8:
   scales of theirs are ignored. */
#include <string.h>

#include "base/clock.h"
#include "kernels/convert.h"
#include "weights/bind_internal.h"
#include "weights/limits.h"

/* Scales as a table: that of row r and column c is element r / rows * columns + c / cols. */
typedef struct blocks {
    const mt_wish *w;
    const mt_tensor_info *codes, *scales;
    size_t rows, cols;   /* of a block */
    size_t down, across; /* blocks */
} blocks;

static float scale_of(const blocks *b, size_t row, size_t col)
{
    const size_t item = row / b->w->n, r = row % b->w->n;
    return mt_tensor_float(b->scales, (item * b->down + r / b->rows) * b->across + col / b->cols);
}

static void decode_row(const void *ctx, size_t row, float *out)
{
    const blocks *b = ctx;
    const size_t k = b->w->k;
    for (size_t i = 0; i < k; i++)
        out[i] = scale_of(b, row, i) * mt_f32_from_fp8(b->codes->data[row * k + i]);
}

static size_t up(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

/* Finds the size of blocks that divide `n` into `count`; 0 where none does. said: by the config, or 0. */
static size_t block_size(size_t n, uint64_t count, size_t said)
{
    if (count == n)
        return 1;
    if (count == 1)
        return n;
    if (said && up(n, said) == count)
        return said;
    return up(n, MT_FP8_BLOCK) == count ? MT_FP8_BLOCK : 0;
}

/* Dimensions of one element count for nothing, but for the first of stacked matrices. */
static bool read_blocks(blocks *b)
{
    const mt_tensor_info *s = b->scales;
    uint64_t shape[MT_LIMIT_TENSOR_DIMS] = {1, 1, 1};
    const unsigned lead = b->w->stack > 0;
    unsigned dims = 0;
    if (lead && (s->dims == 0 || s->shape[0] != b->w->stack))
        return false;
    for (unsigned i = lead; i < s->dims; i++) {
        const bool rows_of_one = i == lead && s->dims == lead + 2; /* [1, across] */
        if (s->shape[i] != 1 || rows_of_one)
            shape[dims++] = s->shape[i];
    }
    b->down = shape[0];
    b->across = dims > 1 ? shape[1] : 1;
    b->rows = block_size(b->w->n, b->down, b->w->b->quant.block_rows);
    b->cols = block_size(b->w->k, b->across, b->w->b->quant.block_cols);
    return dims <= 2 && b->rows && b->cols && mt_dtype_size(s->dtype) > 0;
}

/* Repeats scales for each block of columns that the kernels have, of each row or, for a matrix, of one row for all. */
static const uint8_t *repeat(const blocks *b, size_t rows, size_t across)
{
    const size_t size = mt_dtype_size(b->scales->dtype);
    uint8_t *to = mt_binder_copy(b->w->b, rows * across * size);
    mt_binder_copied(b->w->b, b->scales);
    for (size_t r = 0; r < rows && to && !b->w->b->headers_only; r++) {
        const size_t item = r / b->w->n, first = (item * b->down + r % b->w->n / b->rows) * b->across;
        for (size_t c = 0; c < across; c++) {
            const size_t at = first + c * MT_FP8_BLOCK / b->cols;
            memcpy(to + (r * across + c) * size, b->scales->data + at * size, size);
        }
    }
    return to;
}

static bool bind_blocks(const blocks *b, mt_mat *out)
{
    const mt_wish *w = b->w;
    const size_t across = up(w->k, MT_FP8_BLOCK), size = mt_dtype_size(b->scales->dtype);
    if (b->cols < w->k && b->cols % MT_FP8_BLOCK) {
        mt_binder_copied(w->b, b->codes);
        return mt_bind_decoded(w, decode_row, b, out);
    }
    const bool whole = !w->stack && b->rows >= w->n && b->across == 1;
    const bool in_place = (b->rows == MT_FP8_BLOCK || (b->down == 1 && w->n < MT_FP8_BLOCK)) &&
                          (b->cols == MT_FP8_BLOCK || (b->across == 1 && w->k < MT_FP8_BLOCK));
    *out = (mt_mat){.format = MT_FORMAT_FP8,
                    .scale_type = mt_dtype_scale(b->scales->dtype),
                    .bits = 8,
                    .group = MT_FP8_BLOCK,
                    .scale_rows = in_place || whole ? MT_FP8_BLOCK : 1,
                    .n = w->n,
                    .k = w->k,
                    .w = b->codes->data,
                    .stride = w->k,
                    .scales = b->scales->data,
                    .scale_stride = whole ? 0 : across * size,
                    .global = 1};
    if (!in_place)
        out->scales = repeat(b, whole ? 1 : mt_wish_rows(w), across);
    return out->scales != NULL;
}

static bool bind_mxfp8(const mt_wish *w, const mt_tensor_info *t, const mt_tensor_info *scales, mt_mat *out)
{
    const size_t group = 32;
    if (w->k % group || !mt_wish_fits(w, scales, w->n, w->k / group))
        return mt_wish_miss(w, " with scales ", t, scales);
    *out = (mt_mat){.format = MT_FORMAT_MXFP8,
                    .scale_type = MT_SCALE_E8M0,
                    .bits = 8,
                    .group = (uint16_t)group,
                    .n = w->n,
                    .k = w->k,
                    .w = t->data,
                    .stride = w->k,
                    .scales = scales->data,
                    .scale_stride = w->k / group,
                    .global = 1};
    return true;
}

bool mt_bind_fp8(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    static const char *const names[] = {".weight_scale_inv", "_scale_inv", ".weight_scale", "_scale"};
    static const char *const ignored[] = {".activation_scale", ".input_scale"};
    blocks b = {.w = w, .codes = t};
    for (size_t i = 0; i < MT_COUNT(names) && !b.scales; i++)
        b.scales = mt_binder_use(w->b, w->name, names[i]);
    for (size_t i = 0; i < MT_COUNT(ignored); i++)
        (void)mt_binder_take(w->b, w->name, ignored[i]);
    if (!mt_wish_fits(w, t, w->n, w->k))
        return mt_wish_miss(w, "", t, NULL);
    if (!b.scales)
        return mt_wish_miss(w, " without weight_scale_inv or weight_scale", t, NULL);
    if (b.scales->dtype == MT_DTYPE_U8 || b.scales->dtype == MT_DTYPE_F8_E8M0)
        return bind_mxfp8(w, t, b.scales, out);
    if (!read_blocks(&b))
        return mt_wish_miss(w, " with scales ", t, b.scales);
    return bind_blocks(&b, out);
}
