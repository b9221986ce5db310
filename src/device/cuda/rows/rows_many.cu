/* Many rows (prompts, pictures) between two products: summed, normed, gated or activated, and packed as the next
   product reads them (params.h), in one pass over memory. The result is also stored unpacked, unless no kernel reads it
   (packed_only).

   A warp has a part of a row in shared memory, whose blocks of 32 stand apart (pack.cuh): it is loaded and stored in
   pieces of 16 bytes by neighbours, and packed a block a lane. */
#include "device/cuda/rows/activations.cuh"
#include "device/cuda/rows/pack.cuh"

enum { SOME = 4, STRIDE = 128 * SOME }; /* pieces of four that a lane loads at once; elements of its warp in these */

/* Packs columns [first, first + count) of row i as codes; both are multiples of 128. */
static __device__ inline void pack_part(const mt_cuda_pack &p, uint32_t i, uint32_t first, uint32_t count,
                                        const float *part)
{
    __syncwarp();
    for (uint32_t at = 0; at < count / 32; at += 32) {
        const uint32_t mine = at + threadIdx.x % 32, block = min(mine, count / 32 - 1);
        float x[32];
        load_apart(x, part, block);
        pack_block(p, i, first / 32 + block, x, mine < count / 32);
    }
}

/* Stores columns [c, c + 4) of row i: in y, and packed as bf16 or, where pack_part is to make codes of them, in shared
   memory at apart_at. */
static __device__ inline void put_four(const mt_cuda_made &p, uint32_t i, uint32_t c, const float v[4], float *apart_at)
{
    if (!p.packed_only)
        store_four(row_of(p.rows.y, i), c, p.rows.y.cols, v);
    if (p.pack.halves)
        *(uint2 *)(p.pack.to.q + piece_at(p.pack.to, c / 64, i, c % 64 / 8) + c % 8 * 2) =
            make_uint2(two_halves(v[0], v[1]), two_halves(v[2], v[3]));
    else if (p.pack.to.q)
        *(float4 *)apart_at = make_float4(v[0], v[1], v[2], v[3]);
}

/* ---- norms ---- */

/* y = the norm of x, or of x = x + x2 where that is given. A block a row, which is in shared memory as a whole. */
extern "C" __global__ void __launch_bounds__(32 * MT_CUDA_NORM_PARTS, 6)
    mtk_norm_many(const __grid_constant__ mt_cuda_made p)
{
    extern __shared__ __align__(16) float row[];
    const uint32_t n = p.rows.x.cols, padded = (n + 127) / 128 * 128, i = blockIdx.x, lane = threadIdx.x % 32;
    const uint32_t part = (padded / 128 + MT_CUDA_NORM_PARTS - 1) / MT_CUDA_NORM_PARTS * 128;
    const uint32_t first = min(threadIdx.x / 32 * part, padded), end = min(first + part, padded);
    float *x = row_of(p.rows.x, i);
    const float *more = p.rows.x2.data ? row_of(p.rows.x2, i) : NULL;
    follow_last();
    for (uint32_t from = first; from < end; from += STRIDE) {
        __align__(16) float v[SOME][4], add[SOME][4];
#pragma unroll
        for (uint32_t s = 0; s < SOME; s++)
            load_four(v[s], x, from + s * 128 + lane * 4, from + s * 128 < end ? n : 0);
#pragma unroll
        for (uint32_t s = 0; s < SOME; s++)
            if (more)
                load_four(add[s], more, from + s * 128 + lane * 4, from + s * 128 < end ? n : 0);
#pragma unroll
        for (uint32_t s = 0; s < SOME; s++) {
            const uint32_t c = from + s * 128 + lane * 4;
            if (from + s * 128 >= end)
                continue;
            if (more) {
#pragma unroll
                for (uint32_t e = 0; e < 4; e++)
                    v[s][e] = v[s][e] + add[s][e];
                store_four(x, c, n, v[s]);
            }
            *(float4 *)(row + apart(c)) = *(const float4 *)v[s];
        }
    }
    const float r = rms_of_block(row, n, padded, p.rows.eps);
#pragma unroll 4
    for (uint32_t c = first + lane * 4; c < end; c += 128) {
        float v[4], w[4];
        load_four(w, p.rows.w.data, c, n);
        const float4 s = *(const float4 *)(row + apart(c));
        const float x4[4] = {s.x, s.y, s.z, s.w};
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            v[e] = c + e < n ? (x4[e] * r) * (p.rows.offset + w[e]) : 0;
        put_four(p, i, c, v, row + apart(c));
    }
    if (p.pack.to.q && !p.pack.halves && first < end)
        pack_part(p.pack, i, first, end - first, row + apart(first));
}

/* Two rows of x, or of x = x + x2, to shared memory. */
static __device__ inline void fetch_rows(const mt_cuda_made &p, uint32_t first, float *to, uint32_t stride)
{
    const uint32_t n = p.rows.x.cols, lane = threadIdx.x % 32, second = min(first + 1, p.rows.m - 1);
    float *const x[2] = {row_of(p.rows.x, first), row_of(p.rows.x, second)};
    const float *const more[2] = {p.rows.x2.data ? row_of(p.rows.x2, first) : NULL,
                                  p.rows.x2.data ? row_of(p.rows.x2, second) : NULL};
    for (uint32_t from = lane * 4; from - lane * 4 < n; from += STRIDE) {
        __align__(16) float v[2][SOME][4], add[2][SOME][4];
#pragma unroll
        for (uint32_t s = 0; s < 2 * SOME; s++)
            load_four(v[s % 2][s / 2], x[s % 2], from + s / 2 * 128, n);
#pragma unroll
        for (uint32_t s = 0; s < 2 * SOME; s++)
            if (more[0])
                load_four(add[s % 2][s / 2], more[s % 2], from + s / 2 * 128, n);
#pragma unroll
        for (uint32_t s = 0; s < 2 * SOME; s++) {
            const uint32_t c = from + s / 2 * 128;
            if (c >= n)
                continue;
            float(&sum)[4] = v[s % 2][s / 2];
            if (more[0]) {
#pragma unroll
                for (uint32_t e = 0; e < 4; e++)
                    sum[e] = sum[e] + add[s % 2][s / 2][e];
                if (s % 2 == 0 || second > first)
                    store_four(x[s % 2], c, n, sum);
            }
            *(float4 *)(to + s % 2 * stride + c) = *(const float4 *)sum;
        }
    }
}

/* Stores columns [c, c + 8) of a row, zeros beyond its end: in y, and packed as bf16 where pack says so. */
static __device__ inline void put_eight(const mt_cuda_made &p, uint32_t row, uint32_t c, const float v[8])
{
    const uint32_t n = p.rows.y.cols;
    if (!p.packed_only) {
        store_four(row_of(p.rows.y, row), c, n, v);
        store_four(row_of(p.rows.y, row), c + 4, n, v + 4);
    }
    if (p.pack.to.q)
        *(uint4 *)(p.pack.to.q + piece_at(p.pack.to, c / 64, row, c % 64 / 8)) =
            make_uint4(two_halves(v[0], v[1]), two_halves(v[2], v[3]), two_halves(v[4], v[5]), two_halves(v[6], v[7]));
}

/* Sixteen lanes have a row, each lane one chain of additions (R6): so a warp has two rows, and a block several warps.
   Rows lie in shared memory meanwhile, in different banks. Packed as bf16 where pack says so. */
extern "C" __global__ void __launch_bounds__(32 * MT_CUDA_NORM_WARPS, 4)
    mtk_layer_norm(const __grid_constant__ mt_cuda_made p)
{
    extern __shared__ __align__(16) float room[];
    const uint32_t n = p.rows.x.cols, stride = MT_CUDA_NORM_STRIDE(n), lane = threadIdx.x % 32;
    const uint32_t first = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 2;
    float *rows = room + threadIdx.x / 32 * 2 * stride, *own = rows + lane / 16 * stride;
    follow_last();
    if (first >= p.rows.m)
        return;
    fetch_rows(p, first, rows, stride);
    __syncwarp();
    const float mean = sum16(own, n) / (float)n, r_own = rms_about(own, mean, n, p.rows.eps);
    const float means[2] = {__shfl_sync(0xffffffffu, mean, 0), __shfl_sync(0xffffffffu, mean, 16)};
    const float factors[2] = {__shfl_sync(0xffffffffu, r_own, 0), __shfl_sync(0xffffffffu, r_own, 16)};
    const uint32_t end = p.pack.to.q ? p.pack.to.padded : n;
    for (uint32_t c = lane * 8; c < end; c += 256) {
        __align__(16) float w[8], b[8], v[8];
#pragma unroll
        for (uint32_t i = 0; i < 8; i += 4) {
            load_four(w + i, p.rows.w.data, c + i, n);
            load_four(b + i, p.rows.bias.data, c + i, n);
        }
#pragma unroll
        for (uint32_t r = 0; r < 2; r++) {
            if (first + r >= p.rows.m)
                break;
#pragma unroll
            for (uint32_t i = 0; i < 8; i += 4)
                if (c + i < n)
                    *(float4 *)(v + i) = *(const float4 *)(rows + r * stride + c + i);
#pragma unroll
            for (uint32_t i = 0; i < 8; i++) /* 0.0f: the CPU adds an offset of 0 here, which makes a weight of -0 0 */
                v[i] = c + i < n ? ((v[i] - means[r]) * factors[r]) * (0.0f + w[i]) + b[i] : 0;
            put_eight(p, first + r, c, v);
        }
    }
}

/* ---- activations ---- */

/* A block a row, or several that share its columns (gridDim.y). */
KERNEL(act)(const __grid_constant__ mt_cuda_made p)
{
    follow_last();
    const float *x = row_of(p.rows.y, blockIdx.x);
    const uint32_t n = p.rows.y.cols, end = p.pack.to.q ? p.pack.to.padded : n;
    for (uint32_t c = (blockIdx.y * blockDim.x + threadIdx.x) * 8; c < end; c += gridDim.y * blockDim.x * 8) {
        __align__(16) float v[8];
        load_four(v, x, c, n);
        load_four(v + 4, x, c + 4, n);
        activate_all(v, p.rows.kind); /* 0 stays 0 */
        put_eight(p, blockIdx.x, c, v);
    }
}

/* act(gate) * up. A warp a part of a row. */
extern "C" __global__ void __launch_bounds__(MT_CUDA_PART_THREADS)
    mtk_glu_many(const __grid_constant__ mt_cuda_made p) /* x: gate, x2: up */
{
    __shared__ float4 made[MT_CUDA_PART_THREADS / 32][(MT_CUDA_PART + MT_CUDA_PART / 8) / 4];
    const uint32_t n = p.rows.y.cols, padded = (n + 127) / 128 * 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t parts = (padded + MT_CUDA_PART - 1) / MT_CUDA_PART;
    const uint32_t item = blockIdx.x * (blockDim.x / 32) + warp, i = item / parts, first = item % parts * MT_CUDA_PART;
    const uint32_t end = min(first + MT_CUDA_PART, padded);
    float *part = (float *)made[warp];
    follow_last();
    if (i >= p.rows.m)
        return;
    for (uint32_t from = first; from < end; from += STRIDE) {
        __align__(16) float gate[SOME * 4], up[SOME * 4];
#pragma unroll
        for (uint32_t s = 0; s < SOME; s++) {
            load_four(gate + s * 4, row_of(p.rows.x, i), from + s * 128 + lane * 4, n);
            load_four(up + s * 4, row_of(p.rows.x2, i), from + s * 128 + lane * 4, n);
        }
        gate_all(gate, up, p.rows.kind, p.rows.limit, p.rows.offset); /* 0 and 0 give 0 */
#pragma unroll
        for (uint32_t s = 0; s < SOME; s++) {
            const uint32_t c = from + s * 128 + lane * 4;
            if (c < end)
                put_four(p, i, c, gate + s * 4, part + apart(c - first));
        }
    }
    if (p.pack.to.q && !p.pack.halves)
        pack_part(p.pack, i, first, end - first, part);
}

/* ---- rows as they are ---- */

/* Packs rows that are in memory as codes. A warp has a part of a row. */
extern "C" __global__ void __launch_bounds__(MT_CUDA_PART_THREADS) mtk_pack_many(mt_cuda_pack p)
{
    __shared__ float4 made[MT_CUDA_PART_THREADS / 32][(MT_CUDA_PART + MT_CUDA_PART / 8) / 4];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t parts = (p.to.padded + MT_CUDA_PART - 1) / MT_CUDA_PART;
    const uint32_t item = blockIdx.x * (blockDim.x / 32) + warp, i = item / parts, first = item % parts * MT_CUDA_PART;
    const uint32_t end = min(first + MT_CUDA_PART, p.to.padded);
    float *part = (float *)made[warp];
    follow_last();
    const uint32_t row = i >= p.m ? MT_CUDA_NONE : p.index ? p.index[i] : i;
    if (row == MT_CUDA_NONE)
        return;
    for (uint32_t from = first; from < end; from += STRIDE) {
        __align__(16) float v[SOME][4];
#pragma unroll
        for (uint32_t s = 0; s < SOME; s++)
            load_four(v[s], row_of(p.x, row), from + s * 128 + lane * 4, p.k);
#pragma unroll
        for (uint32_t s = 0; s < SOME; s++)
            if (from + s * 128 < end)
                *(float4 *)(part + apart(from - first + s * 128 + lane * 4)) = *(const float4 *)v[s];
    }
    pack_part(p, i, first, end - first, part);
}
