/* Rows in int8 (R3), as products take them (params.h): as they are, or while they are normed or gated. What is made on
   the way is written as it would be without. */
#include "device/cuda/activation.cuh"
#include "device/cuda/pack.cuh"

/* A warp a step of a row. */
KERNEL(pack_codes)(mt_cuda_pack p)
{
    const uint32_t steps = p.to.padded / 128, item = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32,
                   i = item / steps;
    const uint32_t step = item % steps, lane = threadIdx.x % 32;
    follow_last();
    if (i >= p.m)
        return;
    const uint32_t from = p.index ? p.index[i] : i;
    if (from == MT_CUDA_NONE)
        return;
    float value[4];
    load_four(value, row_of(p.x, from), step * 128 + lane * 4, p.k);
    pack_step(p, i, step, value);
}

/* The same of act(gate) * up, which is written, too. */
KERNEL(glu_pack)(const __grid_constant__ mt_cuda_made p)
{
    const uint32_t steps = p.pack.to.padded / 128, item = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const uint32_t i = item / steps, step = item % steps, lane = threadIdx.x % 32;
    follow_last();
    if (i >= p.pack.m)
        return;
    const uint32_t k = step * 128 + lane * 4;
    float gate[4], up[4], value[4];
    load_four(gate, row_of(p.rows.x, i), k, p.pack.k);
    load_four(up, row_of(p.rows.x2, i), k, p.pack.k);
#pragma unroll
    for (uint32_t c = 0; c < 4; c++)
        value[c] = k + c < p.pack.k ? glu_of(p.rows.kind, p.rows.limit, p.rows.offset, gate[c], up[c]) : 0;
    store_four(row_of(p.rows.y, i), k, p.pack.k, value);
    pack_step(p.pack, i, step, value);
}

/* The same of rows that are normed, a block a row. Shared memory: the row, and what it is multiplied with. */
KERNEL(norm_pack)(const __grid_constant__ mt_cuda_made p)
{
    extern __shared__ float row[];
    __shared__ float shared_r;
    const uint32_t n = p.pack.k, lane = threadIdx.x % 32;
    const float *x = row_of(p.rows.x, blockIdx.x);
    float *y = row_of(p.rows.y, blockIdx.x), *factor = row + n;
    start_next();
    for (uint32_t c = threadIdx.x; c < n; c += blockDim.x)
        factor[c] = p.rows.offset + p.rows.w.data[c];
    wait_for_last();
    for (uint32_t c = threadIdx.x; c < n; c += blockDim.x)
        row[c] = x[c];
    __syncthreads();
    if (threadIdx.x < 32) {
        const float r = rms(row, n, p.rows.eps);
        if (threadIdx.x == 0)
            shared_r = r;
    }
    __syncthreads();
    const float r = shared_r;
    for (uint32_t step = threadIdx.x / 32; step < p.pack.to.padded / 128; step += blockDim.x / 32) {
        const uint32_t k = step * 128 + lane * 4;
        float value[4], by[4];
        load_four(value, row, k, n);
        load_four(by, factor, k, n);
#pragma unroll
        for (uint32_t c = 0; c < 4; c++)
            value[c] = k + c < n ? (value[c] * r) * by[c] : 0;
        store_four(y, k, n, value);
        pack_step(p.pack, blockIdx.x, step, value);
    }
}
