/* Rows of activations as integers (R3 of docs/numerics.md), in tiles of MT_Q_ROWS rows; the last tile has as many as
   are left. A tile of nr rows is: q [k / 4][nr][4], four elements of a row in "paired" order (codes.h); then by unit
   and row [k / unit][nr] the turn of its sum (block.h), mul and add, and the sum of q; then by group and row [k /
   group][nr] the sum over the group's units of scale times sum. */
#ifndef MT_KERNELS_X86_QROWS_H
#define MT_KERNELS_X86_QROWS_H

#include "kernels/block.h"
#include "kernels/x86/simd.h"

#if defined(MT_LEVEL)

typedef struct mt_qtile {
    size_t nr;
    int8_t *q;
    float *mul, *add, *bias;
    int32_t *sum;
} mt_qtile;

static inline size_t mt_qrow_bytes(size_t k, size_t group)
{
    return k + k / mt_unit(group) * (2 * sizeof(float) + sizeof(int32_t)) + k / group * sizeof(float);
}

/* The tile of rows i .., i % MT_Q_ROWS == 0 */
static inline mt_qtile mt_qtile_at(const mt_rows *rows, size_t i)
{
    mt_qtile t = {.nr = rows->m - i < MT_Q_ROWS ? rows->m - i : MT_Q_ROWS};
    uint8_t *data = rows->data + i * mt_qrow_bytes(rows->k, rows->group);
    size_t cells = rows->k / mt_unit(rows->group) * t.nr;
    t.q = (int8_t *)data;
    t.mul = (float *)(void *)(data + rows->k * t.nr);
    t.add = t.mul + cells;
    t.sum = (int32_t *)(void *)(t.add + cells);
    t.bias = (float *)(void *)(t.sum + cells);
    return t;
}

/* Brings the sum of a cell (unit * nr + row) to the next unit's scale, or the end's (block.h). */
MT_INLINE vf mt_qturned(vi dot, const mt_qtile *t, size_t cell)
{
    return vf_fma(vf_set1(t->mul[cell]), vf_from_bits(dot), vf_set1(t->add[cell]));
}

#endif

#endif
