/* Matrix products: rows are packed once in blocks; then every (row block, columns) is a work item. */
#include <assert.h>

#include "device/cpu/cpu.h"

/* Most bytes of weights that an item reads. A kernel reads four streams of a quarter each, and the longer they are, the
   nearer prefetchers come to the memory's speed: 48 GB/s with items of 256 KB, 60 with 4 MB, where plain reading has
   67. */
#define ITEM_BYTES (4u << 20)
#define ITEM_COLUMNS 32u /* a multiple of the panel width of every kernel level */
#define MAX_WEIGHTS 4    /* most weights of one mt_op_matmul */

_Static_assert(MT_CPU_ROW_BLOCK % MT_ROW_TILE == 0, "rows are packed in whole tiles");

size_t mt_cpu_rows_bytes(const mt_device *dev, mt_class class, size_t m, size_t k, size_t group)
{
    if (class == MT_CLASS_F)
        return 0;
    if (class == MT_CLASS_N)
        return m * mt_cpu_sm90_row_bytes(k);
    return class == MT_CLASS_Q ? dev->k.q_rows_bytes(m, k, group) : dev->k.b_rows_bytes(m, k);
}

bool mt_cpu_same_rows(const mt_weight *a, const mt_weight *b)
{
    return a->class == b->class &&
           (a->class != MT_CLASS_Q || (a->mat.group == b->mat.group && (a->mat.bits == 8) == (b->mat.bits == 8)));
}

void mt_cpu_pack(const mt_device *dev, const mt_weight *w, mt_rows *rows, const float *x, size_t ldx,
                 const uint32_t *index, size_t i0, size_t i1)
{
    if (w->class == MT_CLASS_Q)
        dev->k.q_pack(rows, x, ldx, index, i0, i1);
    else if (w->class == MT_CLASS_B)
        dev->k.b_pack(rows, x, ldx, index, i0, i1);
    else if (w->class == MT_CLASS_N)
        mt_cpu_native_pack(rows, x, ldx, index, i0, i1);
}

void mt_cpu_matmul(const mt_device *dev, const mt_weight *w, float *y, size_t ldy, size_t n0, size_t n1,
                   const mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, uint8_t *scratch)
{
    if (w->class == MT_CLASS_Q)
        dev->k.q_matmul(y, ldy, &w->mat, n0, n1, rows, scratch);
    else if (w->class == MT_CLASS_B)
        dev->k.b_matmul(y, ldy, &w->mat, n0, n1, rows, scratch);
    else if (w->class == MT_CLASS_N)
        mt_cpu_native_matmul(y, ldy, w, n0, n1, rows, scratch);
    else
        dev->k.f_matmul(y, ldy, &w->mat, n0, n1, x, ldx, index, rows->m, scratch);
    if (w->bias)
        for (size_t i = 0; i < rows->m; i++)
            dev->k.add(y + i * ldy + n0, w->bias + n0, n1 - n0);
}

/* Units of the busiest thread, where threads take items of `each` units in turn and the last item has the rest. */
static size_t longest(size_t units, size_t each, size_t threads)
{
    const size_t before = (units - 1) / each, rest = units - before * each; /* items before the last; its units */
    const size_t others = (before + threads - 1) / threads * each, last = before / threads * each + rest;
    return others > last ? others : last;
}

/* Four items a thread, or more where an item may not be so large (`most`); items have up to a quarter less than that
   where the busiest thread then has less to do. In units of ITEM_COLUMNS. */
size_t mt_cpu_columns(const mt_device *dev, const mt_weight *w, size_t m)
{
    const size_t threads = mt_host_threads(dev->head.host), row_bytes = w->mat.k * w->mat.bits / 8 + 1;
    const size_t most = (m >= MT_CPU_ROW_BLOCK / 4 ? 2 * ITEM_COLUMNS : ITEM_BYTES / row_bytes) / ITEM_COLUMNS;
    const size_t units = (w->mat.n + ITEM_COLUMNS - 1) / ITEM_COLUMNS, items = 4 * threads;
    const size_t first = (units + items - 1) / items;
    size_t best = first;
    if (first > most)
        return (most ? most : 1) * ITEM_COLUMNS; /* there are so many items that the last ones do not matter */
    for (size_t each = first; 4 * each > 3 * first; each--)
        best = longest(units, each, threads) < longest(units, best, threads) ? each : best;
    return best * ITEM_COLUMNS;
}

/* One mt_op_matmul, for weights that share the packed rows. */
typedef struct matmul {
    mt_device *dev;
    const mt_tensor *x;
    size_t m, blocks;
    size_t count;
    const mt_weight *w[MAX_WEIGHTS];
    mt_tensor *y[MAX_WEIGHTS];
    size_t columns[MAX_WEIGHTS];   /* columns of an item */
    size_t first[MAX_WEIGHTS + 1]; /* first item of each weight, within a row block */
} matmul;

static mt_rows block_rows(const matmul *op, size_t block)
{
    const size_t left = op->m - block * MT_CPU_ROW_BLOCK;
    return (mt_rows){.m = left < MT_CPU_ROW_BLOCK ? left : MT_CPU_ROW_BLOCK,
                     .k = op->w[0]->mat.k,
                     .group = op->w[0]->class == MT_CLASS_Q ? op->w[0]->mat.group : 0,
                     .wide = op->w[0]->mat.bits == 8,
                     .data = op->dev->packed + block * op->dev->packed_block};
}

/* An item is MT_ROW_TILE rows. */
static void pack_item(void *ctx, size_t item, size_t worker)
{
    (void)worker;
    const matmul *op = ctx;
    const size_t tiles = MT_CPU_ROW_BLOCK / MT_ROW_TILE, block = item / tiles;
    mt_rows rows = block_rows(op, block);
    const size_t i0 = item % tiles * MT_ROW_TILE, end = i0 + MT_ROW_TILE;
    const float *x = op->x->data + block * MT_CPU_ROW_BLOCK * op->x->stride;
    mt_cpu_pack(op->dev, op->w[0], &rows, x, op->x->stride, NULL, i0, end < rows.m ? end : rows.m);
}

/* An item is some columns of one weight for one block of rows. */
static void product_item(void *ctx, size_t item, size_t worker)
{
    const matmul *op = ctx;
    const size_t per_block = op->first[op->count], block = item / per_block;
    size_t j = 0;
    item %= per_block;
    while (item >= op->first[j + 1])
        j++;
    const mt_weight *w = op->w[j];
    const size_t n0 = (item - op->first[j]) * op->columns[j], end = n0 + op->columns[j];
    const mt_rows rows = block_rows(op, block);
    const size_t row = block * MT_CPU_ROW_BLOCK;
    mt_cpu_matmul(op->dev, w, op->y[j]->data + row * op->y[j]->stride, op->y[j]->stride, n0,
                  end < w->mat.n ? end : w->mat.n, &rows, op->x->data + row * op->x->stride, op->x->stride, NULL,
                  mt_cpu_scratch(op->dev, worker));
}

static void run_matmul(matmul *op)
{
    size_t work = 0;
    for (size_t j = 0; j < op->count; j++) {
        op->columns[j] = mt_cpu_columns(op->dev, op->w[j], op->m);
        op->first[j + 1] = op->first[j] + (op->w[j]->mat.n + op->columns[j] - 1) / op->columns[j];
        work += op->w[j]->mat.n * op->w[j]->mat.k;
    }
    op->blocks = (op->m + MT_CPU_ROW_BLOCK - 1) / MT_CPU_ROW_BLOCK;
    if (op->w[0]->class != MT_CLASS_F)
        mt_cpu_run(op->dev, pack_item, op, (op->m + MT_ROW_TILE - 1) / MT_ROW_TILE, op->m * op->w[0]->mat.k);
    mt_cpu_run(op->dev, product_item, op, op->blocks * op->first[op->count], op->m * work);
}

void mt_cpu_op_matmul(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, const mt_tensor *x,
                      size_t m)
{
    assert(count <= MAX_WEIGHTS && m <= dev->rows);
    bool done[MAX_WEIGHTS] = {false};
    for (size_t i = 0; i < count; i++) {
        if (done[i])
            continue;
        matmul op = {.dev = dev, .x = x, .m = m};
        for (size_t j = i; j < count; j++) {
            if (done[j] || !mt_cpu_same_rows(w[i], w[j]))
                continue;
            assert(w[j]->mat.k == x->cols && w[j]->mat.n == y[j]->cols);
            op.w[op.count] = w[j];
            op.y[op.count++] = y[j];
            done[j] = true;
        }
        run_matmul(&op);
    }
}
