/* Shared by the kernels of recurrent layers: where inputs, states and memos are stored. */
#include "device/limits.h"

#ifndef MT_DEVICE_CUDA_RECURRENT_RECURRENT_CUH
#define MT_DEVICE_CUDA_RECURRENT_RECURRENT_CUH

#include "device/cuda/common/common.cuh"

typedef struct section {
    uint32_t first, width;
} section;

static __device__ inline section section_of(const mt_cuda_states &st, uint32_t i)
{
    const uint32_t keys = st.key_heads * st.key_dim;
    section s = {i * keys, st.key_dim};
    if (i == 2)
        s.width = st.value_heads / st.key_heads * st.value_dim;
    return s;
}

static __device__ inline const float *columns_of(const mt_cuda_cols &c, uint64_t row, uint32_t head)
{
    return row_of(c.x, row) + c.base + (uint64_t)head * c.step;
}

static __device__ inline float *slot_of(const mt_cuda_recurrent &p, uint32_t slot)
{
    return p.st.data + ((uint64_t)slot * p.st.layers + p.layer) * p.st.layer;
}

static __device__ inline float *memo_of(const mt_cuda_recurrent &p, const mt_cuda_span &span, uint32_t row)
{
    return p.st.memo + (((uint64_t)span.memo * p.st.layers + p.layer) * MT_LIMIT_MEMO_ROWS + row) * p.st.memo_row;
}

/* Input `local` of a span at a column of the convolution: of its rows, of its memo, of its state. */
static __device__ inline float input(const mt_cuda_recurrent &p, const mt_cuda_span &span, int local, uint32_t column)
{
    if (local >= 0) {
        const uint32_t keys = p.st.key_heads * p.st.key_dim, i = column < keys ? 0 : column < 2 * keys ? 1 : 2;
        const section s = section_of(p.st, i);
        return columns_of(p.in[i], span.row + local, (column - s.first) / s.width)[(column - s.first) % s.width];
    }
    local += (int)span.replay;
    if (local >= 0)
        return memo_of(p, span, (uint32_t)local)[column];
    if (span.state == MT_CUDA_NONE)
        return 0;
    return slot_of(p, span.state)[(uint64_t)((int)p.st.taps - 1 + local) * p.st.columns + column];
}

/* log(1 + exp(t)) */
static __device__ inline float softplus1(float t)
{
    const float e = mt_exp1(-fabsf(t)), u = 1.0f + e, small = u - 1.0f;
    return (t > 0 ? t : 0.0f) + (small == 0 ? e : mt_log1(u) * (e / small));
}

#endif
