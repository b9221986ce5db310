/* Packs rows as int8 (R3 of docs/numerics.md), in the layout that products read (params.h): as they are, or while they
   are normed or gated. The normed or gated rows are also written as the separate kernels would. */
#include "device/cuda/activation.cuh"
#include "device/cuda/pack.cuh"

/* Four lanes a block of 32. */
KERNEL(pack_codes)(mt_cuda_pack p)
{
    const uint32_t blocks = p.to.padded / 32, item = (blockIdx.x * blockDim.x + threadIdx.x) / 4, i = item / blocks;
    const uint32_t block = item % blocks;
    follow_last();
    const uint32_t from = i >= p.m ? MT_CUDA_NONE : p.index ? p.index[i] : i;
    float x[QUARTER];
    load_quarter(x, row_of(p.x, from == MT_CUDA_NONE ? 0 : from), block, from == MT_CUDA_NONE ? 0 : p.k);
    pack_quarter(p, i, block, x, from != MT_CUDA_NONE);
}

enum { GLU_PART = 256 }; /* of a row that a warp gates and packs */

/* The same of act(gate) * up, which is written, too. */
KERNEL(glu_pack)(const __grid_constant__ mt_cuda_made p)
{
    __shared__ float4 made[THREADS / 32][(GLU_PART + GLU_PART / 8) / 4];
    const uint32_t parts = (p.pack.to.padded + GLU_PART - 1) / GLU_PART, warp = threadIdx.x / 32,
                   lane = threadIdx.x % 32;
    const uint32_t item = blockIdx.x * (blockDim.x / 32) + warp, i = item / parts, first = item % parts * GLU_PART;
    float *row = (float *)made[warp];
    follow_last();
    if (i >= p.pack.m)
        return;
#pragma unroll
    for (uint32_t c = 0; c < GLU_PART; c += 128) {
        const uint32_t k = first + c + lane * 4;
        float gate[4], up[4], value[4];
        load_four(gate, row_of(p.rows.x, i), k, p.pack.k);
        load_four(up, row_of(p.rows.x2, i), k, p.pack.k);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            value[e] = k + e < p.pack.k ? glu_of(p.rows.kind, p.rows.limit, p.rows.offset, gate[e], up[e]) : 0;
        store_four(row_of(p.rows.y, i), k, p.pack.k, value);
        *(float4 *)(row + apart(c + lane * 4)) = make_float4(value[0], value[1], value[2], value[3]);
    }
    __syncwarp();
    const uint32_t block = first / 32 + lane % (GLU_PART / 32);
    float x[32];
    load_apart(x, row, lane % (GLU_PART / 32));
    pack_block(p.pack, i, block, x, lane < GLU_PART / 32 && block * 32 < p.pack.to.padded);
}

/* The same of rows that are normed, a block a row. Shared memory: the row, and what it is multiplied with. */
KERNEL(norm_pack)(const __grid_constant__ mt_cuda_made p)
{
    extern __shared__ __align__(16) float row[];
    const uint32_t n = p.pack.k, padded = p.pack.to.padded;
    const float *x = row_of(p.rows.x, blockIdx.x);
    float *y = row_of(p.rows.y, blockIdx.x), *factor = row + apart(padded);
    start_next();
    for (uint32_t c = threadIdx.x; c < n; c += blockDim.x)
        factor[apart(c)] = p.rows.offset + p.rows.w.data[c];
    wait_for_last();
    for (uint32_t first = threadIdx.x; first < padded; first += 8 * blockDim.x) {
        float some[8]; /* at once, not one after the other */
#pragma unroll
        for (uint32_t i = 0; i < 8; i++)
            some[i] = first + i * blockDim.x < n ? x[first + i * blockDim.x] : 0;
#pragma unroll
        for (uint32_t i = 0; i < 8; i++)
            if (first + i * blockDim.x < padded)
                row[apart(first + i * blockDim.x)] = some[i];
    }
    const float r = rms_of_block(row, n, padded, p.rows.eps);
    for (uint32_t c = threadIdx.x; c < n; c += blockDim.x)
        y[c] = row[apart(c)] = (row[apart(c)] * r) * factor[apart(c)];
    __syncthreads();
    for (uint32_t first = threadIdx.x / 32 * 32; first < padded / 32; first += blockDim.x) {
        const uint32_t block = min(first + threadIdx.x % 32, padded / 32 - 1);
        float value[32];
        load_apart(value, row, block);
        pack_block(p.pack, blockIdx.x, block, value, first + threadIdx.x % 32 < padded / 32);
    }
}
