/* Few rows packed as int8 (R3 of docs/numerics.md), in the layout that products read (params.h): as they are, or while
   they are normed or gated. Normed or gated rows are also stored unpacked, as by the separate kernels. */
#include "device/cuda/rows/activation.cuh"
#include "device/cuda/rows/pack.cuh"

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

/* The same of rows that are normed, a block a row, which lies in shared memory. What a thread multiplies its part with
   and that part are on their way at the same time, as the block seldom begins before the row is there. */
KERNEL(norm_pack)(const __grid_constant__ mt_cuda_made p)
{
    extern __shared__ __align__(16) float row[];
    constexpr uint32_t FOURS = 2; /* at once */
    const uint32_t n = p.pack.k, padded = p.pack.to.padded, own = threadIdx.x * 4, span = blockDim.x * 4;
    const float *x = row_of(p.rows.x, blockIdx.x);
    float *y = row_of(p.rows.y, blockIdx.x);
    float w[FOURS][4];
    start_next();
#pragma unroll
    for (uint32_t f = 0; f < FOURS; f++)
        load_four(w[f], p.rows.w.data, own + f * span, n);
    wait_for_last();
    for (uint32_t first = own; first < padded; first += FOURS * span) {
        float v[FOURS][4];
#pragma unroll
        for (uint32_t f = 0; f < FOURS; f++)
            load_four(v[f], x, first + f * span, n);
#pragma unroll
        for (uint32_t f = 0; f < FOURS; f++)
            if (first + f * span < padded)
                *(float4 *)(row + apart(first + f * span)) = make_float4(v[f][0], v[f][1], v[f][2], v[f][3]);
    }
    const float r = rms_of_block(row, n, padded, p.rows.eps);
    for (uint32_t first = own; first < padded; first += FOURS * span)
#pragma unroll
        for (uint32_t f = 0; f < FOURS; f++) {
            const uint32_t c = first + f * span;
            if (c >= padded)
                break;
            if (first >= FOURS * span)
                load_four(w[f], p.rows.w.data, c, n);
            float4 *at = (float4 *)(row + apart(c));
            const float some[4] = {at->x, at->y, at->z, at->w};
            float v[4];
#pragma unroll
            for (uint32_t e = 0; e < 4; e++)
                v[e] = c + e < n ? (some[e] * r) * (p.rows.offset + w[f][e]) : 0;
            *at = make_float4(v[0], v[1], v[2], v[3]);
            store_four(y, c, n, v);
        }
    __syncthreads();
    for (uint32_t first = threadIdx.x / 32 * 32; first < padded / 32; first += blockDim.x) {
        const uint32_t block = min(first + threadIdx.x % 32, padded / 32 - 1);
        float value[32];
        load_apart(value, row, block);
        pack_block(p.pack, blockIdx.x, block, value, first + threadIdx.x % 32 < padded / 32);
    }
}
