/* Products by head: each head of a row with rows of a matrix that are its own, or with their transpose. An item is a
   head and some rows. */
#include <assert.h>
#include <string.h>

#include "device/cpu/cpu.h"

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

size_t mt_cpu_heads_scratch(const mt_device *dev, size_t matmul)
{
    return room(dev) + mt_cpu_max(matmul, dev->needs.k * sizeof(float));
}

/* y of a head = the sum of its rows, each times one element of x. */
static void across(const heads *op, size_t head, size_t first, size_t end, float *row)
{
    const size_t k = op->w->mat.k, from = op->how.first + head * op->how.step;
    for (size_t i = first; i < end; i++)
        memset(mt_cpu_row(op->y, i) + head * op->y_dim, 0, k * sizeof(float));
    for (size_t r = 0; r < op->how.rows; r++) {
        op->dev->k.row_f32(row, &op->w->mat, from + r);
        for (size_t i = first; i < end; i++)
            op->dev->k.axpy(mt_cpu_row(op->y, i) + head * op->y_dim, mt_cpu_row(op->x, i)[head * op->x_dim + r], row,
                            k);
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
