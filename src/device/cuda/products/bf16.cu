/* Products of bf16 rows with bf16 and FP8 weights (R5). Tensor cores add 16 products at a time to what they have, k
   ascending from 0; with FP8 from 0 again at every 128, whose sum is scaled and added. So it is here for one row and
   for many: kernels differ in what they read when, never in an order of additions. */
#include "device/cuda/products/fp8.cuh"
#include "device/cuda/products/product.cuh"

/* A warp four steps of 64 of a row, a lane a piece of eight elements. */
KERNEL(pack_bf16)(mt_cuda_pack p)
{
    const uint32_t parts = (p.to.padded + 255) / 256, item = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const uint32_t i = item / parts, piece = item % parts * 32 + threadIdx.x % 32, k = piece * 8;
    follow_last();
    if (i >= p.m || k >= p.to.padded)
        return;
    const uint32_t from = p.index ? p.index[i] : i;
    if (from == MT_CUDA_NONE)
        return;
    const float *x = row_of(p.x, from) + k;
    __align__(16) float v[8];
    if (k + 8 <= p.k && (uintptr_t)x % 16 == 0) {
        *(float4 *)v = ((const float4 *)x)[0];
        *(float4 *)(v + 4) = ((const float4 *)x)[1];
    } else {
#pragma unroll
        for (uint32_t c = 0; c < 8; c++)
            v[c] = k + c < p.k ? x[c] : 0;
    }
    *(uint4 *)(p.to.q + piece_at(p.to, piece / 8, i, piece % 8)) =
        make_uint4(two_halves(v[0], v[1]), two_halves(v[2], v[3]), two_halves(v[4], v[5]), two_halves(v[6], v[7]));
}

/* ---- any weight, any row: a warp with 16 columns and 8 rows ---- */

/* Two neighbours of a row of the weight, exact as bf16; FP8 without its blocks' scales. k is even. */
static __device__ inline unsigned pair_at(const mt_cuda_weight &w, uint32_t n, uint32_t k)
{
    n = n < w.n ? n : w.n - 1;
    if (w.kind == MT_CUDA_HALVES)
        return ((const unsigned *)w.w)[half_at(w, n, k) / 2];
    const uint8_t *row = w.w + (uint64_t)n * w.row_bytes;
    uint32_t half[2] = {0, 0};
    for (uint32_t i = 0; i < 2 && k + i < w.k; i++)
        half[i] = mt_bf16_from_f32(w.kind == MT_CUDA_BYTES     ? mt_f32_from_fp8(byte_at(w, n, k + i))
                                   : w.format == MT_FORMAT_FP8 ? mt_f32_from_fp8(row[k + i])
                                                               : weight_at(w, n, k + i));
    return half[0] | half[1] << 16;
}

KERNEL(matmul_bf16_any)(mt_cuda_product p)
{
    const mt_cuda_weight *of = weight_of(p);
    if (!of)
        return;
    const mt_cuda_weight w = *of;
    const uint32_t tile_at = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (tile_at * 16 >= w.n)
        return;
    const tile t = {{0}, {0}, lane / 4, lane % 4 * 2};
    bool there;
    const uint32_t row = row_at(p, lane / 4, &there), n = tile_at * 16 + lane / 4;
    float c[4] = {0}, y[4] = {0};
    for (uint32_t k = 0; k < w.k; k += 16) {
        const uint32_t at = k + lane % 4 * 2;
        const unsigned a[4] = {pair_at(w, n, at), pair_at(w, n + 8, at), pair_at(w, n, at + 8),
                               pair_at(w, n + 8, at + 8)};
        unsigned b[2] = {0, 0};
        for (uint32_t h = 0; there && h < 2; h++)
            b[h] = ((const unsigned *)(p.from.q + piece_at(p.from, k / 64, row, k % 64 / 8 + h)))[lane % 4];
        mma_bf16_ordered(c, a, b[0], b[1]);
        if (w.format == MT_FORMAT_FP8 && ((k + 16) % 128 == 0 || k + 16 >= w.k))
            for (int r = 0; r < 4; r++) {
                const uint32_t block = (n + (r >> 1) * 8) / 128;
                y[r] =
                    fmaf(((const float *)w.scales)[(uint64_t)(block * 128 < w.n ? block : 0) * w.scale_row + k / 128],
                         c[r], y[r]);
                c[r] = 0;
            }
    }
    put(p, w, &t, tile_at, w.format == MT_FORMAT_FP8 ? y : c);
}

/* ---- many rows: a block with 128 rows and 128 columns, a warp with 64 rows ---- */

/* With FP8 a thread has two sums of an element, so that warps have fewer columns. */
template <bool BYTES> struct half_stage {
    enum {
        TILE = BYTES ? 1024 : 2048,
        ALL = MT_CUDA_MANY * 128 + 8 * TILE,
        THREADS_OF = BYTES ? 256 : 128,
        J = BYTES ? 4 : 8 /* times eight columns of a warp */
    };
};

template <bool BYTES>
static __device__ inline void half_fetch(const mt_cuda_many &p, const many_tile &t, uint32_t step, unsigned to)
{
    typedef half_stage<BYTES> S;
    enum { PIECES = S::TILE / 16 };
    const mt_cuda_weight &w = many_weight(p, t);
    const uint32_t n = threadIdx.x, tiles = (w.n + 31) / 32 * 2 - t.column;
    const uint8_t *q = p.from.q + ((uint64_t)step * p.from.rows + t.row) * 128;
#pragma unroll
    for (int i = 0; i < MT_CUDA_MANY * 8 / S::THREADS_OF; i++)
        copy_16(to + (n + i * S::THREADS_OF) * 16, q + (n + i * S::THREADS_OF) * 16);
#pragma unroll
    for (int i = 0; i < 8 * PIECES / S::THREADS_OF; i++) {
        const uint32_t at = n + i * S::THREADS_OF, tile = at / PIECES;
        if (tile < tiles)
            copy_16(to + MT_CUDA_MANY * 128 + at * 16,
                    w.w + ((uint64_t)(t.column + tile) * w.steps + step) * S::TILE + at % PIECES * 16);
    }
    copy_commit();
}

/* 64 of k */
template <bool BYTES>
static __device__ inline void half_step(float c[4][half_stage<BYTES>::J][4], const uint8_t *at, uint32_t row,
                                        uint32_t column)
{
    enum { J = half_stage<BYTES>::J };
    const uint32_t lane = threadIdx.x % 32, from = row + lane % 16;
    const uint8_t *w = at + MT_CUDA_MANY * 128;
    __align__(16) unsigned all[J][4];
#pragma unroll
    for (int k16 = 0; k16 < 4; k16++) {
        unsigned a[4][4], b[J][2];
#pragma unroll
        for (int j = 0; j < J; j++)
            if (BYTES && k16 == 0)
                *(uint4 *)all[j] = *(const uint4 *)(w + (column / 8 + j) * 512 + lane * 16);
            else if (!BYTES && k16 % 2 == 0)
                load_rows(all[j], shared_address(w) + (column + j * 8 + lane % 8) * 128 +
                                      ((k16 * 2 + lane / 8) ^ lane % 8) * 16);
#pragma unroll
        for (int i = 0; i < 4; i++)
            load_rows(a[i], shared_address(at) + (from + i * 16) * 128 + ((k16 * 2 + lane / 16) ^ from % 8) * 16);
#pragma unroll
        for (int j = 0; j < J; j++)
            if (BYTES) {
                widen(b[j], all[j][k16]);
            } else {
                b[j][0] = all[j][k16 % 2 * 2];
                b[j][1] = all[j][k16 % 2 * 2 + 1];
            }
#pragma unroll
        for (int j = 0; j < J; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                mma_bf16_ordered(c[i][j], a[i], b[j][0], b[j][1]);
    }
}

/* The end of 128 of k, with the scale of their block. */
static __device__ inline void half_fold(float y[4][4][4], float c[4][4][4], float scale)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                y[i][j][r] = fmaf(scale, c[i][j][r], y[i][j][r]);
                c[i][j][r] = 0;
            }
}

template <int J>
static __device__ inline void half_put(const mt_cuda_many &p, const many_tile &t, float c[4][J][4], uint32_t row,
                                       uint32_t column)
{
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < J; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                many_store(p, t, t.row + row + i * 16 + h * 8 + lane / 4, t.column * 16 + column + j * 8 + lane % 4 * 2,
                           make_float2(c[i][j][h * 2], c[i][j][h * 2 + 1]));
                c[i][j][h * 2] = c[i][j][h * 2 + 1] = 0;
            }
}

template <bool BYTES> static __device__ void many_halves(const mt_cuda_many &p)
{
    typedef half_stage<BYTES> S;
    enum { STAGES = MT_CUDA_HALF_STAGES };
    extern __shared__ __align__(128) uint8_t ring[];
    const uint32_t warp = threadIdx.x / 32, row = warp % 2 * 64, column = warp / 2 * (S::J * 8), steps = p.w[0].steps;
    const uint32_t tiles = many_tiles(p), mine = tiles > blockIdx.x ? (tiles - blockIdx.x - 1) / gridDim.x + 1 : 0;
    const uint32_t total = mine * steps;
    many_tile coming = many_tile_at(p, blockIdx.x, tiles), here = coming;
    uint32_t tile_at = blockIdx.x, step = 0, fetch_tile = blockIdx.x, fetch_step = 0;
    float c[4][S::J][4] = {}, y[BYTES ? 4 : 1][4][4] = {}, scale = 0;
    for (uint32_t n = 0; n < total + STAGES - 1; n++) {
        if (n >= STAGES - 1) {
            copy_wait<STAGES - 2>();
            __syncthreads();
        }
        if (n < total) {
            half_fetch<BYTES>(p, coming, fetch_step, shared_address(ring + n % STAGES * S::ALL));
            if (++fetch_step == steps) {
                fetch_step = 0;
                fetch_tile += gridDim.x;
                coming = many_tile_at(p, fetch_tile, tiles);
            }
        } else {
            copy_commit();
        }
        if (n < STAGES - 1)
            continue;
        if (BYTES && step % 2 == 0) {
            const mt_cuda_weight &w = many_weight(p, here);
            scale = ((const float *)w.scales)[(uint64_t)(here.column / 8) * w.scale_row + step / 2];
        }
        half_step<BYTES>(c, ring + (n - (STAGES - 1)) % STAGES * S::ALL, row, column);
        if constexpr (BYTES)
            if (step % 2 == 1 || step + 1 == steps)
                half_fold(y, c, scale);
        if (++step == steps) {
            if constexpr (BYTES)
                half_put<4>(p, here, y, row, column);
            else
                half_put<8>(p, here, c, row, column);
            step = 0;
            tile_at += gridDim.x;
            here = many_tile_at(p, tile_at, tiles);
        }
    }
}

extern "C" __global__ void __launch_bounds__(128, 2) mtk_matmul_bf16_rows65(const __grid_constant__ mt_cuda_many p)
{
    many_halves<false>(p);
}

extern "C" __global__ void __launch_bounds__(256, 1) mtk_matmul_fp8_rows65(const __grid_constant__ mt_cuda_many p)
{
    many_halves<true>(p);
}
