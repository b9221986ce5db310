/* Integer matmul by R3 and R4. A row of rows->data: q[k], padding to 4, scale of each block, sum of q of each group. */
#include <math.h>
#include <string.h>

#include "kernels/convert.h"
#include "kernels/levels.h"
#include "kernels/unpack.h"

typedef struct layout {
    size_t group, block, groups, blocks, scales, sums, stride; /* scales and sums: byte offsets in a row */
} layout;

static layout layout_of(size_t k, size_t group)
{
    layout l = {.group = group, .block = group < 32 ? 32 : group};
    l.groups = k / group;
    l.blocks = (k + l.block - 1) / l.block;
    l.scales = (k + 3) / 4 * 4;
    l.sums = l.scales + l.blocks * sizeof(float);
    l.stride = l.sums + l.groups * sizeof(int32_t);
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

/* q = rint(x * (127 / amax)); zeros where that factor is not finite. Returns amax / 127. */
static float quantise(int8_t *q, const float *x, size_t n)
{
    float amax = max_abs(x, n), factor = 127.0f / amax;
    bool usable = isfinite(amax) && isfinite(factor);
    for (size_t i = 0; i < n; i++)
        q[i] = usable ? (int8_t)rintf(x[i] * factor) : 0;
    return amax / 127.0f;
}

static void pack_row(uint8_t *row, const layout *l, const float *x, size_t k)
{
    int8_t *q = (int8_t *)row;
    for (size_t b = 0; b < l->blocks; b++) {
        size_t i = b * l->block, n = k - i < l->block ? k - i : l->block;
        float d = quantise(q + i, x + i, n);
        memcpy(row + l->scales + b * sizeof d, &d, sizeof d);
    }
    for (size_t g = 0; g < l->groups; g++) {
        int32_t sum = 0;
        for (size_t i = 0; i < l->group; i++)
            sum += q[g * l->group + i];
        memcpy(row + l->sums + g * sizeof sum, &sum, sizeof sum);
    }
}

void mt_q_pack_portable(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    layout l = layout_of(rows->k, rows->group);
    for (size_t i = i0; i < i1; i++)
        pack_row(rows->data + i * l.stride, &l, x + (index ? index[i] : i) * ldx, rows->k);
}

size_t mt_q_scratch_bytes_portable(size_t k)
{
    return k * sizeof(int16_t);
}

static float matmul_one(const mt_mat *w, size_t r, const int16_t *q, const uint8_t *row, const layout *l)
{
    const int8_t *x = (const int8_t *)row;
    const uint8_t *scales = w->scales + r * w->scale_stride,
                  *biases = w->biases ? w->biases + r * w->scale_stride : NULL;
    float a = 0.0f, b = 0.0f;
    for (size_t g = 0; g < l->groups; g++) {
        int32_t dot = 0, sum;
        float xs;
        memcpy(&xs, row + l->scales + g * l->group / l->block * sizeof xs, sizeof xs);
        memcpy(&sum, row + l->sums + g * sizeof sum, sizeof sum);
        for (size_t i = g * l->group; i < (g + 1) * l->group; i++)
            dot += q[i] * x[i];
        a = fmaf(mt_weight_scale(w, scales, g) * xs, (float)dot, a);
        if (biases)
            b = fmaf(mt_scale_f32(biases, w->scale_type, g), xs * (float)sum, b);
    }
    return biases ? a + b : a;
}

void mt_q_matmul_portable(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                          uint8_t *scratch)
{
    layout l = layout_of(rows->k, rows->group);
    int16_t *q = (int16_t *)(void *)scratch;
    for (size_t j = n0; j < n1; j++) {
        mt_unpacker u = {.p = w->w + j * w->stride};
        for (size_t i = 0; i < rows->k; i++)
            q[i] = (int16_t)mt_unpack_next(&u, w);
        for (size_t i = 0; i < rows->m; i++)
            y[i * ldy + j] = matmul_one(w, j, q, rows->data + i * l.stride, &l);
    }
}
