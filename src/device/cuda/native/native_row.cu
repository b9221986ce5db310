/* y = x W' for one row in the arithmetic `native` (device/native.h), W in codes, for up to four weights that share the
   row. The kernel packs the row itself, and norms it before where the norm is part of it (fusion.c).

   Tiles: a block has 64 TILES columns and one group of 2,048 of k; the blocks of a cluster have the groups of the same
   columns. Its ring has stages of 256 of k, as many as let all blocks run at once (native.c): their weights are on
   their way before the row is there, whose making is hidden by that. Warps: four a tile multiply, 16 columns each, with
   the row in all eight columns of mma.sync's second operand, of which one is used; one thread more begins the copies.
   End: each block sends its sums, times their unit, to the first of the cluster, which adds them in the order of the
   groups and stores.

   Roofline, H200: a group is 128 products, one behind the other: 2.1 us. Beside that memory bounds it: the four
   products of a layer of an 8B model read 109 MB, 26 us at 4.2 TB/s. */
#include "device/cuda/common/ring.cuh"
#include "device/cuda/native/native.cuh"
#include "device/cuda/rows/activations.cuh"
#include "device/cuda/rows/pack.cuh"

enum {
    EACH = 8,                                       /* numbers of a chunk that a lane packs */
    SEGMENTS = MT_NATIVE_CHUNK / MT_NATIVE_SEGMENT, /* of a chunk */
    SOME = 16                                       /* numbers that a lane of R6 reads ahead */
};

#if __CUDA_ARCH__ >= 900

/* The row of a group in shared memory: of each segment 128 bytes, in which what a lane needs of a step lies together:
   for lane l four products' pairs of words, from byte 32 (l % 4) on. Behind these the numbers of the units. */
typedef struct packed_row {
    uint32_t *words;
    uint8_t *units;
} packed_row;

/* Adds up the squares of a row in shared memory as R6 does, by a warp. n is a multiple of 16 (native.c). */
static __device__ inline float rms_of(const float *row, uint32_t n, float eps)
{
    const float *at = row + threadIdx.x % 16;
    float lane = 0, now[SOME], next[SOME];
#pragma unroll
    for (uint32_t i = 0; i < SOME; i++)
        now[i] = i * 16 < n ? at[i * 16] : 0;
#pragma unroll 1
    for (uint32_t first = 0; first < n; first += SOME * 16) {
        const float *from = at + first + SOME * 16;
#pragma unroll
        for (uint32_t i = 0; i < SOME; i++)
            next[i] = first + (SOME + i) * 16 < n ? from[i * 16] : 0;
#pragma unroll
        for (uint32_t i = 0; i < SOME; i++) {
            lane = fmaf(now[i], now[i], lane); /* squares are no -0, so zeros behind the row change nothing */
            now[i] = next[i];
        }
    }
    return 1.0f / sqrtf(fold16(lane) / (float)n + eps);
}

/* The whole row to shared memory, and 1 / rms of it; by all threads that multiply. */
template <int THREADS_M> static __device__ inline float norm_row(const mt_cuda_native &p, float *row, float *result)
{
    const uint32_t k = p.w[0].k;
    for (uint32_t i = threadIdx.x * 4; i < k; i += THREADS_M * 4)
        *(float4 *)(row + i) = *(const float4 *)(p.x.data + i);
    named_barrier(1, THREADS_M);
    if (threadIdx.x < 32) {
        const float r = rms_of(row, k, p.eps);
        if (threadIdx.x == 0)
            *result = r;
    }
    named_barrier(1, THREADS_M);
    return *result;
}

/* A warp's chunk of the group; x: what a lane has of it. */
static __device__ inline void put_chunk(const packed_row &to, uint32_t chunk, const float (&x)[EACH])
{
    const uint32_t lane = threadIdx.x % 32, segment = chunk * SEGMENTS + lane / 8;
    const packed_eight own = pack_segment(x);
#pragma unroll
    for (int j = 0; j < EACH / 2; j++)
        to.words[segment * 32 + j * 8 + lane % 8] = ((const uint32_t *)&own.halves)[j];
    if (lane % 8 == 0)
        to.units[segment] = (uint8_t)own.unit;
}

/* Packs the block's group of the row; the warps take turns. */
template <int THREADS_M>
static __device__ inline void pack_group(const mt_cuda_native &p, const native_place &at, const packed_row &to,
                                         float *row, float *result)
{
    const uint32_t k = p.w[0].k, first = at.group * MT_NATIVE_GROUP, lane = threadIdx.x % 32;
    const float r = p.norm ? norm_row<THREADS_M>(p, row, result) : 0;
    for (uint32_t c = threadIdx.x / 32; c < (uint32_t)at.count; c += THREADS_M / 32) {
        const uint32_t own = first + c * MT_NATIVE_CHUNK + lane * EACH;
        float x[EACH], w[EACH];
        if (p.norm) {
            load_four(w, p.norm, own, k);
            load_four(w + 4, p.norm, own + 4, k);
        }
        load_four(x, p.norm ? row : p.x.data, own, k);
        load_four(x + 4, p.norm ? row : p.x.data, own + 4, k);
#pragma unroll
        for (int j = 0; p.norm && j < EACH; j++)
            x[j] = own + j < k ? (x[j] * r) * (p.offset + w[j]) : 0;
        if (p.out.data && blockIdx.x < at.blocks) {
            store_four(p.out.data, own, k, x);
            store_four(p.out.data, own + 4, k, x + 4);
        }
        put_chunk(to, c, x);
    }
    named_barrier(1, THREADS_M);
}

/* Adds the products of a chunk: only column 0 of `part` is kept. before: the number of the last segment's unit. */
template <int BITS, int GROUPS>
static __device__ inline void multiply_chunk(float (&part)[4], const uint8_t *weights, const uint32_t *row,
                                             uint32_t units, uint32_t before)
{
    constexpr int STEP = MT_CUDA_NATIVE_BYTES(BITS, GROUPS);
    const uint32_t thread = threadIdx.x % 128;
    const bool same = units == before * 0x01010101u;
    lane_step<BITS, GROUPS> s[2];
    load_step(s[0], weights, thread);
#pragma unroll
    for (int c = 0; c < CHUNK_STEPS; c++) {
        const uint4 *from = (const uint4 *)(row + c * 32 + thread % 4 * 8);
        const uint4 low = from[0], high = from[1];
        const uint32_t b[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        if (c + 1 < CHUNK_STEPS)
            load_step(s[(c + 1) & 1], weights + (c + 1) * STEP, thread);
        if (!same) {
            const uint32_t now = units >> c * 8 & 255;
            const float ratio = __uint_as_float((127u << 23) + unit_bits(before) - unit_bits(now));
            before = now;
#pragma unroll
            for (int i = 0; i < 4; i++)
                part[i] *= ratio;
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            uint32_t a[4];
            decode(a, s[c & 1], j);
            multiply_warp(part, a, b[j * 2], b[j * 2 + 1]);
        }
    }
}

/* Begins the copies of a block's weights. */
template <int TILES, int TILE, int STEP>
static __device__ inline void copy_weights(const mt_cuda_native &p, const native_place &at, uint8_t *ring,
                                           uint64_t *full, uint64_t *empty)
{
    const uint8_t *w[TILES];
    struct ring to = {0, 1};
    for (int t = 0; t < TILES; t++) {
        const tile_place of = place_of_tile<TILES>(p, at, t);
        w[t] = native_step(p.w[of.weight], of.column, at.group * MT_NATIVE_GROUP, STEP);
    }
    for (int i = 0; i < at.count; i++) {
        barrier_wait(&empty[to.stage], to.parity);
        barrier_expect(&full[to.stage], TILES * TILE);
        for (int t = 0; t < TILES; t++)
            fetch(ring + (to.stage * TILES + t) * TILE, w[t] + (uint64_t)i * TILE, TILE, &full[to.stage]);
        step_ring(to, p.stages);
    }
}

/* The sums of a warp's 16 columns as four floats of each of lanes 0 to 3. */
static __device__ inline float4 four_of(const float (&part)[4], float unit)
{
    const uint32_t lane = threadIdx.x % 32;
    float own[4];
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
        const uint32_t from = (lane * 4 + e) % 8 * 4;
        const float low = __shfl_sync(0xffffffffu, part[0], from), high = __shfl_sync(0xffffffffu, part[2], from);
        own[e] = (lane % 4 < 2 ? low : high) * unit;
    }
    return make_float4(own[0], own[1], own[2], own[3]);
}

/* By the first block of a cluster: what comes of all groups, [group][columns]. */
template <int TILES>
static __device__ inline void store_row(const mt_cuda_native &p, const native_place &at, const float *came,
                                        uint64_t *come)
{
    constexpr uint32_t columns = TILES * MT_CUDA_NATIVE_TILE;
    const uint32_t c = threadIdx.x, t = c / MT_CUDA_NATIVE_TILE;
    const tile_place of = place_of_tile<TILES>(p, at, t);
    const uint32_t j = of.weight, n = of.column + c % MT_CUDA_NATIVE_TILE;
    const float old = p.add.data && n < p.w[j].n ? p.add.data[n] : 0; /* while sums are on their way */
    if (at.blocks > 1)
        barrier_wait(come, 0);
    if (p.gates) {
        const uint32_t up = c + MT_CUDA_NATIVE_TILE;
        if (t || n >= p.w[0].n)
            return;
        float gate[1] = {finished(sum_groups(came + c, at.blocks, columns), p.w[0], n)};
        float with[1] = {finished(sum_groups(came + up, at.blocks, columns), p.w[1], n)};
        if (p.y[0].data)
            p.y[0].data[n] = gate[0];
        if (p.y[1].data)
            p.y[1].data[n] = with[0];
        gate_all(gate, with, p.act, p.glu_limit, p.glu_offset);
        p.glu.data[n] = gate[0];
        return;
    }
    if (n >= p.w[j].n)
        return;
    const float y = finished(sum_groups(came + c, at.blocks, columns), p.w[j], n);
    p.y[j].data[n] = y;
    if (p.add.data)
        p.add.data[n] = old + y;
}

/* Shared memory: the packed row and the numbers of its units; the ring; the row before it is normed; sums that come. */
template <int BITS, int GROUPS, int TILES> static __device__ inline void multiply_row(const mt_cuda_native &p)
{
    constexpr int STEP = MT_CUDA_NATIVE_BYTES(BITS, GROUPS), TILE = CHUNK_STEPS * STEP;
    constexpr uint32_t COLUMNS = TILES * MT_CUDA_NATIVE_TILE, THREADS_M = TILES * 128;
    extern __shared__ __align__(128) uint8_t memory[];
    __shared__ uint64_t full[GROUP_CHUNKS], empty[GROUP_CHUNKS], come;
    __shared__ float result;
    uint8_t *ring = memory + MT_CUDA_NATIVE_ROW_OWN;
    float *row = (float *)(ring + p.stages * TILES * TILE);
    const packed_row packed = {(uint32_t *)memory, memory + MT_NATIVE_GROUP * 2};
    float *came = row + (p.norm ? p.w[0].k : 0);
    const native_place at = place_of_block(p, COLUMNS);
    if (threadIdx.x == 0) {
        init_ring(full, empty, p.stages, 1, THREADS_M);
        barrier_init(&come, 1);
        barriers_are_made();
        if (at.blocks > 1 && at.group == 0)
            barrier_expect(&come, at.blocks * COLUMNS * 4);
    }
    __syncthreads();
    cluster_arrive();
    start_next();
    if (threadIdx.x >= THREADS_M) {
        if (threadIdx.x == THREADS_M)
            copy_weights<TILES, TILE, STEP>(p, at, ring, full, empty);
        __syncwarp();
        cluster_wait();
        return;
    }
    wait_for_last();
    pack_group<THREADS_M>(p, at, packed, row, &result);
    float part[4] = {0, 0, 0, 0};
    const uint32_t *units = (const uint32_t *)packed.units;
    uint32_t before = units[0] & 255;
    struct ring from = {0, 0};
#pragma unroll 1
    for (int i = 0; i < at.count; i++) {
        barrier_wait(&full[from.stage], from.parity);
        multiply_chunk<BITS, GROUPS>(part, ring + (from.stage * TILES + threadIdx.x / 128) * TILE,
                                     packed.words + i * SEGMENTS * 32, units[i], before);
        before = units[i] >> 24;
        barrier_arrive(&empty[from.stage]);
        step_ring(from, p.stages);
    }
    const float4 own = four_of(part, __uint_as_float(unit_bits(before)));
    const uint32_t lane = threadIdx.x % 32, place = at.group * COLUMNS + threadIdx.x / 32 * 16 + lane * 4;
    cluster_wait();
    if (at.blocks == 1) {
        if (lane < 4)
            *(float4 *)(came + place) = own;
        named_barrier(1, THREADS_M);
    } else {
        if (lane < 4)
            send_four(0, shared_address(came + place), shared_address(&come), own);
        if (at.group != 0)
            return;
    }
    if (threadIdx.x < COLUMNS)
        store_row<TILES>(p, at, came, &come);
}

#else
template <int BITS, int GROUPS, int TILES> static __device__ inline void multiply_row(const mt_cuda_native &)
{
}
#endif

#define ROW_KERNEL(bits, groups, tiles)                                                                               \
    extern "C" __global__ void __launch_bounds__(MT_CUDA_NATIVE_ROW_THREADS(tiles), MT_CUDA_NATIVE_ROW_BLOCKS(tiles)) \
        mtk_native_row_##bits##_##groups##_##tiles(const __grid_constant__ mt_cuda_native p)                          \
    {                                                                                                                 \
        multiply_row<bits, groups, tiles>(p);                                                                         \
    }
MT_CUDA_NATIVE_ROW(ROW_KERNEL)
