/* Rows for the arithmetic `native` (device/native.h) in the layout that its products read (params.h): as they are, or
   while they are normed or gated, and then also written as they are unless nobody reads them (packed_only). Weights
   decoded to fp16 for products of many rows.

   A warp has a chunk of a row, eight numbers a lane: so eight lanes have a segment. */
#include "device/cuda/native/native.cuh"
#include "device/cuda/native/sorted.h"
#include "device/cuda/rows/activations.cuh"
#include "device/cuda/rows/pack.cuh"

enum { EACH = 8, WARPS = MT_NATIVE_GROUP / MT_NATIVE_CHUNK };

/* A warp's chunk of row i, x being what a lane has of it. */
static __device__ inline void put_chunk(const mt_cuda_packed &to, uint32_t i, uint32_t chunk, const float (&x)[EACH])
{
    const uint32_t lane = threadIdx.x % 32, segment = lane / 8;
    const packed_eight own = pack_segment(x);
    *(uint4 *)(segment_at(to, i, chunk * 4 + segment) + swizzled(i % to.rows, lane % 8)) = own.halves;
    if (lane % 8 == 0)
        units_at(to, i, chunk)[segment] = (uint8_t)own.unit;
}

static __device__ inline void load_chunk(float (&x)[EACH], const float *row, uint32_t k, uint32_t end)
{
    load_four(x, row, k, end);
    load_four(x + 4, row, k + 4, end);
}

/* Grid: rows, parts of WARPS chunks of a row. Of rows that are sorted by expert, the product behind reads the shares
   before it waits: so it starts when they are there. */
extern "C" __global__ void __launch_bounds__(WARPS * 32)
    mtk_native_pack(const __grid_constant__ mt_cuda_native_packing all)
{
    const mt_cuda_pack &p = all.p;
    const mt_cuda_shares &shares = all.share;
    const uint32_t i = blockIdx.x, chunk = blockIdx.y * WARPS + threadIdx.x / 32;
    uint32_t from = i;
    float x[EACH];
    if (!shares.count)
        start_next();
    wait_for_last();
    if (shares.count) {
        start_next();
        if (i / p.to.rows >= *shares.count)
            return;
        const mt_cuda_share share = shares.share[i / p.to.rows];
        if (i % p.to.rows >= share.rows)
            return;
        from = share.row + i % p.to.rows;
    }
    if (chunk >= p.to.padded / MT_NATIVE_CHUNK)
        return;
    load_chunk(x, row_of(p.x, p.index ? p.index[from] : from), chunk * MT_NATIVE_CHUNK + threadIdx.x % 32 * EACH, p.k);
    put_chunk(p.to, i, chunk, x);
}

/* The same of act(gate) * up. */
extern "C" __global__ void __launch_bounds__(WARPS * 32) mtk_native_glu(const __grid_constant__ mt_cuda_made p)
{
    const uint32_t i = blockIdx.y, chunk = blockIdx.x * WARPS + threadIdx.x / 32;
    const uint32_t k = chunk * MT_NATIVE_CHUNK + threadIdx.x % 32 * EACH;
    float gate[EACH], up[EACH];
    follow_last();
    if (chunk >= p.pack.to.padded / MT_NATIVE_CHUNK)
        return;
    load_chunk(gate, row_of(p.rows.x, i), k, p.pack.k);
    load_chunk(up, row_of(p.rows.x2, i), k, p.pack.k);
    gate_all(gate, up, p.rows.kind, p.rows.limit, p.rows.offset);
#pragma unroll
    for (int j = 0; j < EACH; j++)
        gate[j] = k + j < p.pack.k ? gate[j] : 0;
    if (!p.packed_only) {
        store_four(row_of(p.rows.y, i), k, p.pack.k, gate);
        store_four(row_of(p.rows.y, i), k + 4, p.pack.k, gate + 4);
    }
    put_chunk(p.pack.to, i, chunk, gate);
}

/* The norm of x, or of x = x + x2 where that is given. A block a row, which is in shared memory as a whole, since R6
   adds in an order of its own: its blocks of 32 stand apart (pack.cuh). A warp keeps its first chunk in registers, and
   has the weights for it before the row is there. */
extern "C" __global__ void __launch_bounds__(1024) mtk_native_norm(const __grid_constant__ mt_cuda_made p)
{
    extern __shared__ __align__(16) float row[];
    const uint32_t n = p.pack.k, padded = p.pack.to.padded, chunks = padded / MT_NATIVE_CHUNK, i = blockIdx.x;
    const uint32_t lane = threadIdx.x % 32, warps = blockDim.x / 32, own = threadIdx.x / 32;
    float *x = row_of(p.rows.x, i);
    const float *more = p.rows.x2.data ? row_of(p.rows.x2, i) : NULL;
    float w[EACH], v[EACH];
    start_next();
    load_chunk(w, p.rows.w.data, threadIdx.x * EACH, n);
    wait_for_last();
    for (uint32_t c = own; c < chunks; c += warps) {
        const uint32_t k = c * MT_NATIVE_CHUNK + lane * EACH;
        float some[EACH], add[EACH];
        load_chunk(some, x, k, n);
        if (more) {
            load_chunk(add, more, k, n);
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
        for (uint32_t e = 0; c == own && e < EACH; e++)
            v[e] = some[e];
    }
    const float r = rms_of_block(row, n, padded, p.rows.eps);
    for (uint32_t c = own; c < chunks; c += warps) {
        const uint32_t k = c * MT_NATIVE_CHUNK + lane * EACH;
        if (c != own) {
            load_chunk(w, p.rows.w.data, k, n);
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
        put_chunk(p.pack.to, i, c, v);
    }
}

/* Weights to fp16. Block: 128 threads, which pass a tile of 64 x 64 through shared memory; grid: steps of k, tiles of
   64 columns. */
template <int BITS, int GROUPS> static __device__ inline void decode_tile(const mt_cuda_native_prompt &p)
{
    __shared__ __align__(16) uint8_t tile[MT_CUDA_NATIVE_TILE * 128];
    const uint32_t t = threadIdx.x, lane = t % 32, row = t / 32 * 16 + lane / 4;
    const uint32_t first = blockIdx.y * MT_CUDA_NATIVE_TILE;
    lane_step<BITS, GROUPS> s;
    load_step(
        s, native_step(p.w, p.column + first, blockIdx.x * MT_CUDA_NATIVE_STEP, MT_CUDA_NATIVE_BYTES(BITS, GROUPS)), t);
    follow_last(); /* what is decoded may be read until then */
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t a[4];
        decode(a, s, i);
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

#define DECODE(bits, groups)                                                                 \
    extern "C" __global__ void __launch_bounds__(128)                                        \
        mtk_native_decode_##bits##_##groups(const __grid_constant__ mt_cuda_native_prompt p) \
    {                                                                                        \
        decode_tile<bits, groups>(p);                                                        \
    }
DECODE(4, 1)
DECODE(4, 2)
DECODE(4, 4)
DECODE(8, 1)
DECODE(8, 2)
DECODE(8, 4)
