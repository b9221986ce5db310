/* Rows for the arithmetic `native` (device/native.h) in the layout that its products read (params.h): as they are, or
   while they are normed or gated, and then also written as they are unless nobody reads them (packed_only). Weights
   decoded to fp16 for products of many rows.

   A warp has a segment of a row, eight numbers a lane. A block has a row or a group of its segments, since what is
   written for a segment depends on the power of the one before. */
#include "device/cuda/activations.cuh"
#include "device/cuda/native.cuh"
#include "device/cuda/pack.cuh"

enum { EACH = 8, WARPS = MT_NATIVE_GROUP / MT_NATIVE_SEGMENT };

/* Of a warp's segment, x being what a lane has of it. NaN and infinities stay what they are in any unit. */
static __device__ inline int segment_exponent(const float (&x)[EACH])
{
    float most = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        most = fmaxf(most, fabsf(x[i]));
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, width));
    const int e = (int)(__float_as_uint(most) >> 23) - 127 - MT_NATIVE_TOP;
    return max((int)MT_NATIVE_EXPONENT_LEAST, min((int)MT_NATIVE_EXPONENT_MOST, e));
}

static __device__ inline float power_of_two(int e)
{
    return __uint_as_float((uint32_t)(e + 127) << 23);
}

/* What a lane has of segment s of row i, in the unit 2^e. */
static __device__ inline void put_segment(const mt_cuda_packed &to, uint32_t i, uint32_t s, const float (&x)[EACH],
                                          int e)
{
    const uint32_t k = s * MT_NATIVE_SEGMENT + threadIdx.x % 32 * EACH;
    const uint64_t tile = (uint64_t)(i / to.rows) * (to.padded / 64) + k / 64;
    const float factor = power_of_two(-e);
    uint4 all;
    __half2 *h = (__half2 *)&all;
#pragma unroll
    for (int j = 0; j < EACH / 2; j++)
        h[j] = __floats2half2_rn(x[2 * j] * factor, x[2 * j + 1] * factor);
    *(uint4 *)(to.q + tile * to.rows * 128 + swizzled(i % to.rows, k / 8 % 8)) = all;
}

/* The powers of two of segment s of row i; last: exponent of the one before, if one of its group is. */
static __device__ inline void put_powers(const mt_cuda_packed &to, uint32_t i, uint32_t s, int last, int e)
{
    const uint32_t segments = to.padded / MT_NATIVE_SEGMENT;
    float *pair = to.turns + ((uint64_t)(i / to.rows) * segments + s) * 2 * to.rows + i % to.rows;
    pair[0] = power_of_two(s % WARPS ? last - e : 0);
    pair[to.rows] = power_of_two(e);
}

static __device__ inline void load_segment(float (&x)[EACH], const float *row, uint32_t k, uint32_t end)
{
    load_four(x, row, k, end);
    load_four(x + 4, row, k + 4, end);
}

/* A group of segments by a block: every warp comes along with its own. */
static __device__ inline void put_group(const mt_cuda_packed &to, uint32_t i, uint32_t s, const float (&x)[EACH])
{
    __shared__ int exponents[WARPS];
    const uint32_t warp = threadIdx.x / 32;
    const int e = segment_exponent(x);
    const bool there = s < to.padded / MT_NATIVE_SEGMENT;
    if (there)
        put_segment(to, i, s, x, e);
    if (threadIdx.x % 32 == 0)
        exponents[warp] = e;
    __syncthreads();
    if (there && threadIdx.x % 32 == 0)
        put_powers(to, i, s, warp ? exponents[warp - 1] : e, e);
}

/* Grid: groups of a row, rows. */
extern "C" __global__ void __launch_bounds__(WARPS * 32) mtk_native_pack(const __grid_constant__ mt_cuda_pack p)
{
    const uint32_t i = blockIdx.y, s = blockIdx.x * WARPS + threadIdx.x / 32;
    float x[EACH];
    follow_last();
    load_segment(x, row_of(p.x, i), s * MT_NATIVE_SEGMENT + threadIdx.x % 32 * EACH, p.k);
    put_group(p.to, i, s, x);
}

/* act(gate) * up. */
extern "C" __global__ void __launch_bounds__(WARPS * 32) mtk_native_glu(const __grid_constant__ mt_cuda_made p)
{
    const uint32_t i = blockIdx.y, s = blockIdx.x * WARPS + threadIdx.x / 32;
    const uint32_t k = s * MT_NATIVE_SEGMENT + threadIdx.x % 32 * EACH;
    float gate[EACH], up[EACH];
    follow_last();
    load_segment(gate, row_of(p.rows.x, i), k, p.pack.k);
    load_segment(up, row_of(p.rows.x2, i), k, p.pack.k);
    gate_all(gate, up, p.rows.kind, p.rows.limit, p.rows.offset);
#pragma unroll
    for (int j = 0; j < EACH; j++)
        gate[j] = k + j < p.pack.k ? gate[j] : 0;
    if (!p.packed_only) {
        store_four(row_of(p.rows.y, i), k, p.pack.k, gate);
        store_four(row_of(p.rows.y, i), k + 4, p.pack.k, gate + 4);
    }
    put_group(p.pack.to, i, s, gate);
}

/* The norm of x, or of x = x + x2 where that is given. A block a row, which is in shared memory as a whole, since R6
   adds in an order of its own: its blocks of 32 stand apart (pack.cuh), and behind them are the exponents of its
   segments. A warp keeps its first segment in registers, and has the weights for it before the row is there. */
extern "C" __global__ void __launch_bounds__(1024) mtk_native_norm(const __grid_constant__ mt_cuda_made p)
{
    extern __shared__ __align__(16) float row[];
    const uint32_t n = p.pack.k, padded = p.pack.to.padded, segments = padded / MT_NATIVE_SEGMENT, i = blockIdx.x;
    const uint32_t lane = threadIdx.x % 32, warps = blockDim.x / 32, own = threadIdx.x / 32;
    int *exponents = (int *)(row + apart(padded));
    float *x = row_of(p.rows.x, i);
    const float *more = p.rows.x2.data ? row_of(p.rows.x2, i) : NULL;
    float w[EACH], v[EACH];
    start_next();
    load_segment(w, p.rows.w.data, threadIdx.x * EACH, n);
    wait_for_last();
    for (uint32_t s = own; s < segments; s += warps) {
        const uint32_t k = s * MT_NATIVE_SEGMENT + lane * EACH;
        float some[EACH], add[EACH];
        load_segment(some, x, k, n);
        if (more) {
            load_segment(add, more, k, n);
#pragma unroll
            for (uint32_t e = 0; e < EACH; e++)
                some[e] = some[e] + add[e];
            store_four(x, k, n, some);
            store_four(x, k + 4, n, some + 4);
        }
        float4 *to = (float4 *)(row + apart(k));
        to[0] = make_float4(some[0], some[1], some[2], some[3]);
        to[1] = make_float4(some[4], some[5], some[6], some[7]);
#pragma unroll
        for (uint32_t e = 0; s == own && e < EACH; e++)
            v[e] = some[e];
    }
    const float r = rms_of_block(row, n, padded, p.rows.eps);
    for (uint32_t s = own; s < segments; s += warps) {
        const uint32_t k = s * MT_NATIVE_SEGMENT + lane * EACH;
        if (s != own) {
            load_segment(w, p.rows.w.data, k, n);
#pragma unroll
            for (uint32_t e = 0; e < EACH; e++)
                v[e] = row[apart(k) + e];
        }
#pragma unroll
        for (uint32_t e = 0; e < EACH; e++)
            v[e] = k + e < n ? (v[e] * r) * (p.rows.offset + w[e]) : 0;
        if (!p.packed_only) {
            store_four(row_of(p.rows.y, i), k, n, v);
            store_four(row_of(p.rows.y, i), k + 4, n, v + 4);
        }
        const int e = segment_exponent(v);
        put_segment(p.pack.to, i, s, v, e);
        if (lane == 0)
            exponents[s] = e;
    }
    __syncthreads();
    for (uint32_t s = threadIdx.x; s < segments; s += blockDim.x)
        put_powers(p.pack.to, i, s, s ? exponents[s - 1] : 0, exponents[s]);
}

/* Weights to fp16. Block: 128 threads, which pass a tile of 64 x 64 through shared memory; grid: steps of k, tiles of
   64 columns. */
extern "C" __global__ void __launch_bounds__(128) mtk_native_decode(const __grid_constant__ mt_cuda_native_prompt p)
{
    __shared__ __align__(16) uint8_t tile[MT_CUDA_NATIVE_TILE * 128];
    const uint32_t t = threadIdx.x, lane = t % 32, row = t / 32 * 16 + lane / 4;
    const uint32_t first = blockIdx.y * MT_CUDA_NATIVE_TILE;
    const uint8_t *from = native_step(p.w, p.column + first, blockIdx.x * MT_CUDA_NATIVE_STEP);
    follow_last();
    const uint4 codes = ((const uint4 *)from)[t];
    const uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
    const uint32_t *pairs = (const uint32_t *)(from + MT_CUDA_NATIVE_CODES) + row;
    const lane_scales scales = scales_of_lane(pairs[0], pairs[8]);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t a[4];
        decode_word(a, words[i], scales);
#pragma unroll
        for (uint32_t j = 0; j < 4; j++)
            *(uint32_t *)(tile + swizzled(row + j % 2 * 8, i * 2 + j / 2) + lane % 4 * 4) = a[j];
    }
    __syncthreads();
    const uint64_t at = (uint64_t)(first / MT_CUDA_NATIVE_COLUMNS) * p.w.steps + blockIdx.x;
    uint4 *out = (uint4 *)(p.decoded + at * MT_CUDA_NATIVE_COLUMNS * 128 + first % MT_CUDA_NATIVE_COLUMNS * 128);
    for (uint32_t i = t; i < sizeof(tile) / 16; i += 128)
        out[i] = ((const uint4 *)tile)[i];
}
