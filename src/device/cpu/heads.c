/* Products by head: each head of a row with rows of a matrix that are its own, or with their transpose. An item is a
   head and some rows.

   Where others go by R5 or by the arithmetic `native`, GPUs add in fp32 here (R6): codes of `native` are decoded
   to fp16 as there, and x is rounded to bf16 for weights in bf16. A CPU does the same of `native`, and of R5 where it
   computes what sm_90 does. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/native.h"
#include "kernels/portable/scalar.h"

#define ROOM (192u << 10) /* bytes for packed rows of an item, where that is enough for a tile */

typedef struct heads {
    mt_device *dev;
    mt_tensor *y;
    const mt_tensor *x;
    const mt_weight *w;
    mt_head_rows how;
    size_t y_dim, x_dim, m;
    size_t block; /* rows of an item */
} heads;

static size_t packed_bytes(const mt_device *dev, size_t rows, size_t k)
{
    static const size_t groups[] = {16, 32, 64, 128};
    size_t bytes = mt_cpu_max(dev->k.b_rows_bytes(rows, k), rows * mt_cpu_sm90_row_bytes(k));
    for (size_t i = 0; i < MT_COUNT(groups); i++)
        bytes = mt_cpu_max(bytes, dev->k.q_rows_bytes(rows, mt_cpu_up(k, 128), groups[i]));
    return mt_cpu_up(bytes, 64);
}

static size_t room(const mt_device *dev)
{
    const size_t tile = packed_bytes(dev, MT_ROW_TILE, dev->needs.k);
    return tile > ROOM ? tile : ROOM;
}

/* A row of a weight, then a row of x, then a row of `native` as fp16. */
size_t mt_cpu_heads_scratch(const mt_device *dev, size_t matmul)
{
    const size_t k = mt_native_padded(dev->needs.k);
    return room(dev) + mt_cpu_max(matmul, k * (2 * sizeof(float) + sizeof(mt_f16)));
}

/* Row r of the weight; of `native` without the power of two. */
static void weight_row(const heads *op, float *row, size_t r)
{
    const mt_weight *w = op->w;
    mt_f16 *half = (mt_f16 *)(void *)(row + 2 * mt_native_padded(op->dev->needs.k));
    if (w->class != MT_CLASS_N) {
        op->dev->k.row_f32(row, &w->mat, r);
        return;
    }
    mt_native_weights(half, &w->mat, r, w->power);
    for (size_t i = 0; i < w->mat.k; i++)
        row[i] = mt_f32_from_f16(half[i]);
}

static float unit_of(const mt_weight *w)
{
    return w->class == MT_CLASS_N ? ldexpf(1, w->power) : 1;
}

/* y of a head = the sum of its rows, each times one element of x. */
static void across(const heads *op, size_t head, size_t first, size_t end, float *row)
{
    const size_t k = op->w->mat.k, from = op->how.first + head * op->how.step;
    for (size_t i = first; i < end; i++)
        memset(mt_cpu_row(op->y, i) + head * op->y_dim, 0, k * sizeof(float));
    for (size_t r = 0; r < op->how.rows; r++) {
        weight_row(op, row, from + r);
        for (size_t i = first; i < end; i++)
            op->dev->k.axpy(mt_cpu_row(op->y, i) + head * op->y_dim, mt_cpu_row(op->x, i)[head * op->x_dim + r], row,
                            k);
    }
    for (size_t i = first; op->w->class == MT_CLASS_N && i < end; i++)
        op->dev->k.scale(mt_cpu_row(op->y, i) + head * op->y_dim, unit_of(op->w),
                         mt_cpu_row(op->y, i) + head * op->y_dim, k);
}

/* Whether products are in fp32, as a GPU has them. */
static bool in_floats(const heads *op)
{
    return op->w->class == MT_CLASS_N || (op->w->class == MT_CLASS_B && op->dev->sm90);
}

static void product_floats(const heads *op, size_t head, size_t first, size_t end, float *row)
{
    const size_t k = op->w->mat.k, from = op->how.first + head * op->how.step;
    float *rounded = row + mt_native_padded(op->dev->needs.k);
    for (size_t r = 0; r < op->how.rows; r++) {
        weight_row(op, row, from + r);
        for (size_t i = first; i < end; i++) {
            const float *x = mt_cpu_row(op->x, i) + head * op->x_dim;
            for (size_t j = 0; j < k && op->w->class == MT_CLASS_B; j++)
                rounded[j] = mt_bf16_rounded(x[j]);
            const float sum = op->dev->k.dot(op->w->class == MT_CLASS_B ? rounded : x, row, k);
            mt_cpu_row(op->y, i)[head * op->y_dim + r] = op->w->class == MT_CLASS_N ? sum * unit_of(op->w) : sum;
        }
    }
}

static void product(const heads *op, size_t head, size_t first, size_t end, uint8_t *scratch)
{
    const size_t n0 = op->how.first + head * op->how.step, k = op->w->mat.k;
    const float *x = mt_cpu_row(op->x, first) + head * op->x_dim;
    /* column n0 of the product is the head's first */
    float *y = mt_cpu_row(op->y, first) + head * op->y_dim;
    mt_rows rows = {.m = end - first,
                    .k = k,
                    .group = op->w->class == MT_CLASS_Q ? op->w->mat.group : 0,
                    .wide = op->w->mat.bits == 8,
                    .data = scratch};
    mt_cpu_pack(op->dev, op->w, &rows, x, op->x->stride, NULL, 0, rows.m);
    mt_cpu_matmul(op->dev, op->w, y - n0, op->y->stride, n0, n0 + op->how.rows, &rows, x, op->x->stride, NULL,
                  scratch + room(op->dev));
}

static void item(void *ctx, size_t i, size_t worker)
{
    const heads *op = ctx;
    const size_t head = i % op->how.heads, first = i / op->how.heads * op->block, end = first + op->block;
    uint8_t *scratch = mt_cpu_scratch(op->dev, worker);
    if (op->how.across)
        across(op, head, first, end < op->m ? end : op->m, (float *)(void *)(scratch + room(op->dev)));
    else if (in_floats(op))
        product_floats(op, head, first, end < op->m ? end : op->m, (float *)(void *)(scratch + room(op->dev)));
    else
        product(op, head, first, end < op->m ? end : op->m, scratch);
}

void mt_cpu_op_matmul_heads(mt_device *dev, mt_tensor *y, size_t y_dim, const mt_weight *w, mt_head_rows how,
                            const mt_tensor *x, size_t x_dim, size_t m)
{
    heads op = {.dev = dev, .y = y, .x = x, .w = w, .how = how, .y_dim = y_dim, .x_dim = x_dim, .m = m};
    assert(m <= dev->rows && how.first + (how.heads - 1) * how.step + how.rows <= w->mat.n && !w->bias);
    assert(how.heads * x_dim == x->cols && how.heads * y_dim == y->cols &&
           (how.across ? how.rows <= x_dim && w->mat.k <= y_dim : w->mat.k <= x_dim && how.rows <= y_dim));
    op.block = MT_CPU_ROW_BLOCK;
    while (op.block > MT_ROW_TILE && packed_bytes(dev, op.block, w->mat.k) > room(dev))
        op.block /= 2;
    mt_cpu_run(dev, item, &op, (m + op.block - 1) / op.block * how.heads, m * how.heads * how.rows * w->mat.k);
}
