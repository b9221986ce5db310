/* Integer products (R3 and R4 of docs/numerics.md). A row of rows->data is: q[k], padded to a multiple of 4; the turn
   of each unit's sum (block.h); for each group the sum over its units of scale times sum of q. */
#include <math.h>
#include <string.h>

#include "kernels/block.h"
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"
#include "kernels/unpack.h"

typedef struct layout {
    size_t unit, units, link, each, turns, sums, stride; /* each: units of a group; turns and sums: byte offsets */
} layout;

static layout layout_of(size_t k, size_t group)
{
    layout l = {.unit = mt_unit(group), .link = mt_link(group)};
    l.units = k / l.unit;
    l.each = group / l.unit;
    l.turns = (k + 3) / 4 * 4;
    l.sums = l.turns + l.units * sizeof(mt_turn);
    l.stride = l.sums + k / group * sizeof(float);
    return l;
}

size_t mt_q_rows_bytes_portable(size_t m, size_t k, size_t group)
{
    return m * layout_of(k, group).stride;
}

static float max_abs(const float *x, size_t n)
{
    float amax = 0.0f;
    for (size_t i = 0; i < n; i++) {
        float v = fabsf(x[i]);
        if (v > amax || isnan(v))
            amax = v;
    }
    return amax;
}

/* Elements [0, n) of a block; returns its scale */
static float quantise(int8_t *q, const float *x, size_t n, float least)
{
    const mt_block b = mt_block_of(max_abs(x, n), least);
    float y[MT_BLOCK] = {0};
    for (size_t i = 0; i < n; i++) {
        y[i] = b.factor > 0.0f ? rintf(x[i] * b.factor) : 0.0f;
        q[i] = (int8_t)y[i];
    }
    return mt_block_fit(b, mt_dot1(x, y, n), mt_dot1(y, y, n));
}

static float sum_of(const int8_t *q, size_t n)
{
    int sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += q[i];
    return (float)sum;
}

/* Quantises one row and writes its turns and sums. */
static void pack_row(uint8_t *row, const layout *l, const float *x, size_t k, bool wide)
{
    int8_t *q = (int8_t *)row;
    float before = 0.0f, xs = 0.0f, sx = 0.0f;
    for (size_t u = 0; u < l->units; u++) {
        const size_t i = u * l->unit;
        if (i % MT_BLOCK == 0) {
            before = xs;
            xs = quantise(q + i, x + i, k - i < MT_BLOCK ? k - i : MT_BLOCK,
                          u % l->link ? mt_block_least(before, wide) : 0.0f);
        }
        const mt_turn end = mt_turn_end(xs), on = mt_turn_on(before, xs);
        memcpy(row + l->turns + u * sizeof(end), &end, sizeof(end));
        if (u % l->link != 0)
            memcpy(row + l->turns + (u - 1) * sizeof(on), &on, sizeof(on));
        sx = fmaf(xs, sum_of(q + i, l->unit), u % l->each ? sx : 0.0f);
        memcpy(row + l->sums + u / l->each * sizeof(sx), &sx, sizeof(sx));
    }
}

void mt_q_pack_portable(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    layout l = layout_of(rows->k, rows->group);
    for (size_t i = i0; i < i1; i++)
        pack_row(rows->data + i * l.stride, &l, x + (index ? index[i] : i) * ldx, rows->k, rows->wide);
}

size_t mt_q_scratch_bytes_portable(size_t k)
{
    return k * sizeof(int16_t);
}

/* One result: the dot product of row r of w with a quantised row, by R4. */
static float matmul_one(const mt_mat *w, size_t r, const int16_t *q, const uint8_t *row, const layout *l)
{
    const int8_t *x = (const int8_t *)row;
    const uint8_t *scales = w->scales + r * w->scale_stride,
                  *biases = w->biases ? w->biases + r * w->scale_stride : NULL;
    float a = 0.0f, b = 0.0f, sx, sum = MT_DOT_START;
    for (size_t u = 0; u < l->units; u++) {
        const size_t g = u / l->each;
        int32_t bits = (int32_t)mt_f32_bits(sum);
        mt_turn t;
        memcpy(&t, row + l->turns + u * sizeof(t), sizeof(t));
        for (size_t i = u * l->unit; i < (u + 1) * l->unit; i++)
            bits += q[i] * x[i];
        sum = fmaf(t.mul, mt_f32_from_bits((uint32_t)bits), t.add);
        if ((u + 1) % l->link != 0)
            continue;
        a = fmaf(mt_weight_scale(w, scales, g), sum, a);
        sum = MT_DOT_START;
        if (!biases || (u + 1) % l->each != 0)
            continue;
        memcpy(&sx, row + l->sums + g * sizeof(sx), sizeof(sx));
        b = fmaf(mt_scale_f32(biases, w->scale_type, g), sx, b);
    }
    return biases ? a + b : a;
}

void mt_q_matmul_portable(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                          uint8_t *scratch)
{
    layout l = layout_of(rows->k, rows->group);
    int16_t *q = (int16_t *)(void *)scratch;
    for (size_t j = n0; j < n1; j++) {
        mt_unpacker u = mt_unpacker_of(w, j);
        for (size_t i = 0; i < rows->k; i++)
            q[i] = (int16_t)mt_unpack_next(&u, w);
        for (size_t i = 0; i < rows->m; i++)
            y[i * ldy + j] = matmul_one(w, j, q, rows->data + i * l.stride, &l);
    }
}
