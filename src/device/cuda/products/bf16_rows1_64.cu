/* y = x W' for 1 to 64 rows in bf16, W in bf16 or FP8 (R5), with the sums of all kernels of bf16.cu.

   Roofline: memory. Every weight is read once.
   Tiles: 16 columns; a warp has up to 32 rows of a tile. As many blocks as multiprocessors.
   Warps: the last warp of a block copies chunks of k into a ring of stages: weights before the kernel that makes the
   rows has ended. The other warps have a tile each, or share its rows. With FP8 and up to 32 rows, S warps share the k
   of two tiles, 128 at a time.
   Gate and up: tiles of the two weights alternate, and two warps have two tiles: each has 8 columns of both, so that a
   lane holds what it combines.
   Every lane itself arrives at the barrier of a stage it has read, as in codes_rows1_64.cu. */
#include "device/cuda/common/ring.cuh"
#include "device/cuda/products/fp8.cuh"
#include "device/cuda/rows/activation.cuh"

#if ARCH >= 90

/* How the block's work is divided: the same for all warps. */
typedef struct half_plan {
    uint32_t tile_bytes, slot;    /* bytes of a tile's step, of a chunk */
    uint32_t steps, chunks;       /* of k */
    uint32_t all, stride, rounds; /* tiles of all weights; those of all blocks in a round */
    bool glu;
} half_plan;

static __device__ inline half_plan half_plan_of(const mt_cuda_halves &p, uint32_t tile_bytes)
{
    half_plan f;
    f.tile_bytes = tile_bytes;
    f.slot = p.chunk * (p.together * tile_bytes + p.m * 128);
    f.steps = p.w[0].steps;
    f.chunks = (f.steps + p.chunk - 1) / p.chunk;
    f.all = p.first[p.count];
    f.stride = gridDim.x * p.together;
    f.rounds = (f.all - blockIdx.x * p.together + f.stride - 1) / f.stride;
    f.glu = p.glu.data;
    return f;
}

/* Which weight a tile is of; the tile becomes one of its own. */
static __device__ inline uint32_t half_weight(const mt_cuda_halves &p, bool glu, uint32_t *tile)
{
    if (glu) {
        const uint32_t i = *tile % 2;
        *tile /= 2;
        return i;
    }
    return weight_of_tile(p, tile);
}

/* Steps of 64 of k in a chunk: the last chunk may have fewer. */
static __device__ inline uint32_t half_count(const mt_cuda_halves &p, const half_plan &f, uint32_t chunk)
{
    return min(f.steps - chunk * p.chunk, p.chunk);
}

/* Begins to copy a chunk of p.together tiles; `full` expects the bytes of the rows as well. */
static __device__ inline void half_fetch_tiles(const mt_cuda_halves &p, const half_plan &f, uint32_t first,
                                               uint32_t chunk, uint8_t *to, uint64_t *full)
{
    const uint32_t lane = threadIdx.x % 32, steps = half_count(p, f, chunk), tiles = min(f.all - first, p.together);
    if (lane == 0)
        barrier_expect(full, steps * (tiles * f.tile_bytes + p.m * 128));
    __syncwarp();
    if (lane < tiles) {
        uint32_t tile = first + lane;
        const mt_cuda_weight &w = p.w[half_weight(p, f.glu, &tile)];
        fetch(to + lane * p.chunk * f.tile_bytes, w.w + ((uint64_t)tile * f.steps + chunk * p.chunk) * f.tile_bytes,
              steps * f.tile_bytes, full);
    }
}

static __device__ inline void half_fetch_rows(const mt_cuda_halves &p, const half_plan &f, uint32_t chunk, uint8_t *to,
                                              uint64_t *full)
{
    if (threadIdx.x % 32 == 0)
        fetch(to + p.together * p.chunk * f.tile_bytes, p.from.q + (uint64_t)chunk * p.chunk * p.m * 128,
              half_count(p, f, chunk) * p.m * 128, full);
}

/* The warp that copies. */
static __device__ inline void half_copy(const mt_cuda_halves &p, const half_plan &f, uint8_t *stages, uint64_t *full,
                                        uint64_t *empty)
{
    const uint32_t total = f.rounds * f.chunks, ahead = min(total, p.stages);
    uint32_t first = blockIdx.x * p.together, chunk = 0;
    ring at = {0, 1};
    for (uint32_t n = 0; n < total; n++) {
        if (n == ahead) { /* the ring is full: now rows are needed */
            wait_for_last();
            for (uint32_t i = 0; i < ahead; i++)
                half_fetch_rows(p, f, i % f.chunks, stages + i * f.slot, &full[i]);
        }
        uint8_t *slot = stages + at.stage * f.slot;
        barrier_wait(&empty[at.stage], at.parity);
        half_fetch_tiles(p, f, first, chunk, slot, &full[at.stage]);
        if (n >= ahead)
            half_fetch_rows(p, f, chunk, slot, &full[at.stage]);
        if (++chunk == f.chunks) {
            chunk = 0;
            first += f.stride;
        }
        step_ring(at, p.stages);
    }
    if (total == ahead) {
        wait_for_last();
        for (uint32_t i = 0; i < ahead; i++)
            half_fetch_rows(p, f, i % f.chunks, stages + i * f.slot, &full[i]);
    }
}

/* What a warp multiplies for 32 of k: 16 columns, N times eight rows. */
template <int N> struct half_part {
    unsigned a[2][4], b[N][4];
};

/* Where a warp is: in which tiles of a chunk its two times eight columns are, and its first row. */
typedef struct half_warp {
    uint32_t tile;      /* of those side by side */
    uint32_t low, high; /* bytes in a chunk */
    uint32_t row;
} half_warp;

template <bool BYTES> static __device__ inline half_warp half_warp_of(const mt_cuda_halves &p, const half_plan &f)
{
    enum { TILE = BYTES ? 1024 : 2048 };
    const uint32_t warp = threadIdx.x / 32, each = p.chunk * TILE;
    half_warp at;
    at.tile = warp % p.together;
    at.low = f.glu ? at.tile / 2 * 2 * each + at.tile % 2 * (TILE / 2) : at.tile * each;
    at.high = at.low + (f.glu ? each : TILE / 2);
    at.row = warp / p.together;
    return at;
}

/* Loads 32 of k of a step of the chunk in `slot`. Rows beyond p.m repeat the last row. */
template <bool BYTES, int N>
static __device__ inline void half_load(half_part<N> *part, const mt_cuda_halves &p, const half_warp &at,
                                        const uint8_t *slot, uint32_t step, uint32_t k32)
{
    enum { TILE = BYTES ? 1024 : 2048 };
    const uint32_t lane = threadIdx.x % 32;
    const unsigned x = shared_address(slot) + p.together * p.chunk * TILE + step * p.m * 128;
    const uint8_t *w = slot + step * TILE;
#pragma unroll
    for (int n = 0; n < N; n++) {
        const uint32_t from = min(at.row + n * 8 + lane % 8, p.m - 1);
        load_rows(part->b[n], x + from * 128 + ((k32 * 4 + lane / 8) ^ from % 8) * 16);
    }
    if (BYTES) {
        const uint2 low = *(const uint2 *)(w + at.low + lane * 16 + k32 * 8),
                    high = *(const uint2 *)(w + at.high + lane * 16 + k32 * 8);
#pragma unroll
        for (int k16 = 0; k16 < 2; k16++) {
            unsigned one[2], two[2];
            widen(one, k16 ? low.y : low.x);
            widen(two, k16 ? high.y : high.x);
            part->a[k16][0] = one[0];
            part->a[k16][1] = two[0];
            part->a[k16][2] = one[1];
            part->a[k16][3] = two[1];
        }
    } else {
        const unsigned own = shared_address(w) + (lane % 16 < 8 ? at.low : at.high) + lane % 8 * 128;
#pragma unroll
        for (int k16 = 0; k16 < 2; k16++)
            load_rows(part->a[k16], own + ((k32 * 4 + k16 * 2 + lane / 16) ^ lane % 8) * 16);
    }
}

template <int N> static __device__ inline void half_multiply(float c[N][4], const half_part<N> *part)
{
#pragma unroll
    for (int k16 = 0; k16 < 2; k16++)
#pragma unroll
        for (int n = 0; n < N; n++)
            mma_bf16(c[n], part->a[k16], part->b[n][k16 * 2], part->b[n][k16 * 2 + 1]);
}

/* A warp's columns in a round: c + 8 h is column h of `column`, of weight[h]. */
typedef struct half_columns {
    bool there;
    uint32_t weight[2], column[2];
    const float *scales[2];
} half_columns;

static __device__ inline half_columns half_columns_of(const mt_cuda_halves &p, const half_plan &f, uint32_t tile)
{
    half_columns own;
    const uint32_t part = tile % 2;
    own.there = tile < f.all;
    own.weight[0] = half_weight(p, f.glu, &tile);
    own.column[0] = tile * 16;
    own.weight[1] = own.weight[0];
    own.column[1] = tile * 16 + 8;
    if (f.glu) {
        own.weight[0] = 0;
        own.weight[1] = 1;
        own.column[0] = own.column[1] = tile * 16 + part * 8;
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
        own.scales[h] =
            (const float *)p.w[own.weight[h]].scales + (uint64_t)(own.column[h] / 128) * p.w[own.weight[h]].scale_row;
    return own;
}

/* Whether a sum is one of the product's. h: which of the warp's columns. */
static __device__ inline bool half_is(const mt_cuda_halves &p, const half_columns &own, uint32_t h, uint32_t row)
{
    return own.there && row < p.m && own.column[h] + threadIdx.x % 32 / 4 < p.w[own.weight[h]].n;
}

/* Stores a sum in y and, where p.add is set, adds it to the residual stream, which held `was`. */
static __device__ inline float half_give(const mt_cuda_halves &p, const half_columns &own, uint32_t h, uint32_t row,
                                         float v, float was)
{
    const mt_cuda_weight &w = p.w[own.weight[h]];
    const uint32_t column = own.column[h] + threadIdx.x % 32 / 4;
    if (!half_is(p, own, h, row))
        return 0;
    v = w.bias ? v + w.bias[column] : v;
    if (p.glu.data != p.y[own.weight[h]].data)
        row_of(p.y[own.weight[h]], row)[column] = v;
    if (p.add.data)
        row_of(p.add, row)[column] = was + v;
    return v;
}

static __device__ inline void half_gate(const mt_cuda_halves &p, const half_columns &own, uint32_t row, float gate,
                                        float up)
{
    const uint32_t column = own.column[0] + threadIdx.x % 32 / 4;
    if (!own.there || row >= p.m || column >= p.glu.cols)
        return;
    const float v = glu_of(p.act, p.glu_limit, p.glu_offset, gate, up);
    row_of(p.glu, row)[column] = v;
    if (p.gated.q)
        *(uint16_t *)(p.gated.q + piece_at(p.gated, column / 64, row, column % 64 / 8) + column % 8 * 2) =
            (uint16_t)two_halves(v, 0);
}

/* The sums of a warp: element e of n is row n * 8 + lane % 4 * 2 + e % 2, column lane / 4 of the half e / 2. The
   residual stream is read at once, before anything is written that might be it. */
template <int N>
static __device__ inline void half_out(const mt_cuda_halves &p, const half_plan &f, const half_columns &own,
                                       uint32_t row, const float y[N][4])
{
    const uint32_t first = row + threadIdx.x % 4 * 2;
    float was[N][4] = {};
    wait_for_last(); /* long over; what it wrote can be read and overwritten by this thread, too */
    if (p.add.data)
#pragma unroll
        for (int e = 0; e < N * 4; e++) {
            const uint32_t r = first + e / 4 * 8 + e % 2, h = e % 4 / 2;
            if (half_is(p, own, h, r))
                was[e / 4][e % 4] = row_of(p.add, r)[own.column[h] + threadIdx.x % 32 / 4];
        }
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const uint32_t r = first + n * 8 + e;
            const float low = half_give(p, own, 0, r, y[n][e], was[n][e]);
            const float high = half_give(p, own, 1, r, y[n][2 + e], was[n][2 + e]);
            if (f.glu)
                half_gate(p, own, r, low, high);
        }
}

/* Sums of 128 of k, scaled. */
template <int N> static __device__ inline void half_add(float y[N][4], const float done[N][4], const float scale[2])
{
#pragma unroll
    for (int e = 0; e < N * 4; e++)
        y[e / 4][e % 4] = fmaf(scale[e % 4 / 2], done[e / 4][e % 4], y[e / 4][e % 4]);
}

/* A warp that multiplies all of k, for N times 8 rows. */
template <bool BYTES, int N>
static __device__ inline void half_work(const mt_cuda_halves &p, const half_plan &f, const uint8_t *ring,
                                        uint64_t *full, uint64_t *empty)
{
    constexpr bool LATER = BYTES && N < 4; /* with more rows there are enough products in flight anyway */
    half_warp at = half_warp_of<BYTES>(p, f);
    at.row *= N * 8;
    uint32_t s = 0, phase = 0, tile = blockIdx.x * p.together + at.tile;
    half_part<N> low, high; /* what comes next is loaded while this is multiplied: sums are one chain */
    barrier_wait(&full[0], 0);
    half_load<BYTES, N>(&low, p, at, ring, 0, 0);
    for (uint32_t r = 0; r < f.rounds; r++, tile += f.stride) {
        const half_columns own = half_columns_of(p, f, tile < f.all ? tile : 0);
        const bool there = tile < f.all;
        float c[N][4] = {}, y[BYTES ? N : 1][4] = {}, done[LATER ? N : 1][4] = {};
        float scale[2] = {0, 0}, coming[2] = {0, 0}; /* of 128 of k that are done, and added while more are; of those */
        if constexpr (BYTES) {
            coming[0] = own.scales[0][0];
            coming[1] = own.scales[1][0];
        }
        for (uint32_t chunk = 0; chunk < f.chunks; chunk++) {
            const uint8_t *slot = ring + s * f.slot;
            const uint32_t count = half_count(p, f, chunk), next = s + 1 == p.stages ? 0 : s + 1;
            const bool last = r + 1 == f.rounds && chunk + 1 == f.chunks;
            for (uint32_t i = 0; i < count; i++) {
                half_load<BYTES, N>(&high, p, at, slot, i, 1);
                half_multiply<N>(c, &low);
                if constexpr (LATER)
                    if (i % 2 == 0 && chunk + i > 0) /* chunks begin where 128 do */
                        half_add<N>(y, done, scale);
                if (i + 1 < count) {
                    half_load<BYTES, N>(&low, p, at, slot, i + 1, 0);
                } else if (!last) {
                    barrier_wait(&full[next], next ? phase : phase ^ 1);
                    half_load<BYTES, N>(&low, p, at, ring + next * f.slot, 0, 0);
                }
                half_multiply<N>(c, &high);
                if constexpr (BYTES)
                    if (i % 2 == 1 || i + 1 == count) {
                        const uint32_t block = (chunk * p.chunk + i) / 2 + 1;
#pragma unroll
                        for (int h = 0; h < 2; h++) {
                            scale[h] = coming[h];
                            coming[h] = block < p.w[0].scale_row ? own.scales[h][block] : 0;
                        }
                        if constexpr (!LATER)
                            half_add<N>(y, c, scale);
#pragma unroll
                        for (int e = 0; e < N * 4; e++) {
                            if constexpr (LATER)
                                done[e / 4][e % 4] = c[e / 4][e % 4];
                            c[e / 4][e % 4] = 0;
                        }
                    }
            }
            barrier_arrive(&empty[s]);
            phase ^= next == 0;
            s = next;
        }
        if constexpr (LATER)
            half_add<N>(y, done, scale);
        if (!there)
            continue;
        if constexpr (BYTES)
            half_out<N>(p, f, own, at.row, y);
        else
            half_out<N>(p, f, own, at.row, c);
    }
}

/* ---- FP8, up to 32 rows: warps that share k ---- */

/* What a warp makes of 128 of k: of two tiles, N times eight rows. Weights become bf16 once, and rows are read once for
   both tiles. */
template <int N>
static __device__ inline void half_block(float c[2][N][4], const mt_cuda_halves &p, const half_warp at[2],
                                         const uint8_t *slot, uint32_t step)
{
    const uint32_t lane = threadIdx.x % 32;
    const unsigned x = shared_address(slot) + p.together * p.chunk * 1024 + step * p.m * 128;
    uint4 low[2], high[2];
#pragma unroll
    for (int t = 0; t < 2; t++) {
        low[t] = *(const uint4 *)(slot + at[t].low + step * 1024 + lane * 16);
        high[t] = *(const uint4 *)(slot + at[t].high + step * 1024 + lane * 16);
    }
#pragma unroll
    for (int k32 = 0; k32 < 2; k32++) {
        unsigned b[N][4];
#pragma unroll
        for (int n = 0; n < N; n++) {
            const uint32_t from = min(n * 8 + lane % 8, p.m - 1);
            load_rows(b[n], x + from * 128 + ((k32 * 4 + lane / 8) ^ from % 8) * 16);
        }
#pragma unroll
        for (int k16 = 0; k16 < 2; k16++)
#pragma unroll
            for (int t = 0; t < 2; t++) {
                unsigned one[2], two[2];
                widen(one, k32 ? (k16 ? low[t].w : low[t].z) : (k16 ? low[t].y : low[t].x));
                widen(two, k32 ? (k16 ? high[t].w : high[t].z) : (k16 ? high[t].y : high[t].x));
                const unsigned a[4] = {one[0], two[0], one[1], two[1]};
#pragma unroll
                for (int n = 0; n < N; n++)
                    mma_bf16(c[t][n], a, b[n][k16 * 2], b[n][k16 * 2 + 1]);
            }
    }
}

/* What one of S warps does that share the k of two tiles: by turns each makes the sums of 128 of k and leaves them,
   with their scales, where all of the S find them; then each adds some of them up, in the order of k. */
template <int N, int S>
static __device__ inline void half_turns(const mt_cuda_halves &p, const half_plan &f, const uint8_t *ring,
                                         uint64_t *full, uint64_t *empty, uint8_t *room)
{
    enum { SUMS = 2 * N, EACH = (SUMS + S - 1) / S, PART = MT_CUDA_HALF_PART(N), TILE = 1024 };
    const uint32_t lane = threadIdx.x % 32, group = threadIdx.x / 32 / S, turn = threadIdx.x / 32 % S;
    const uint32_t wide = p.chunk / 2, blocks = (f.steps + 1) / 2, each = p.chunk * TILE;
    uint8_t *made = room + group * 2 * S * PART;
    half_warp at[2];
#pragma unroll
    for (uint32_t t = 0; t < 2; t++) { /* a tile that is not there: one that is */
        at[t].tile = min(group * 2 + t, p.together - 1);
        at[t].low = f.glu ? group * 2 * each + t * (TILE / 2) : at[t].tile * each;
        at[t].high = at[t].low + (f.glu ? each : TILE / 2);
    }
    /* the slot of the warp's chunk, how far it goes in a turn, and how much of that is too far at the end of a round */
    const uint32_t span = S / wide, back = (f.chunks + span - 1) / span * span - f.chunks, within = turn % wide * 2;
    uint32_t which = 0, first = blockIdx.x * p.together, s = turn / wide, phase = 0;
    for (uint32_t r = 0; r < f.rounds; r++, first += f.stride) {
        const uint32_t scaled = first + (lane / 2 % 2 ? at[1].tile : at[0].tile);
        const half_columns of = half_columns_of(p, f, scaled < f.all ? scaled : 0);
        const float *scales = lane % 2 ? of.scales[1] : of.scales[0];
        for (uint32_t i = (turn * 8 + lane / 4) * 8; i < p.w[0].scale_row; i += S * 64)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(scales + i));
        float y[EACH][4] = {}, coming = turn < p.w[0].scale_row ? scales[turn] : 0;
        for (uint32_t done = 0, chunk = turn / wide; done < blocks; done += S, chunk += span) {
            const float scale = coming;
            float c[2][N][4] = {};
            coming = done + turn + S < p.w[0].scale_row ? scales[done + turn + S] : 0;
            while (s >= p.stages) {
                s -= p.stages;
                phase ^= 1;
            }
            if (chunk < f.chunks) {
                const uint32_t count = half_count(p, f, chunk);
                const uint8_t *slot = ring + s * f.slot;
                barrier_wait(&full[s], phase);
                if (within + 1 < count) {
                    half_block<N>(c, p, at, slot, within);
                    half_block<N>(c, p, at, slot, within + 1);
                } else if (within < count) {
                    half_block<N>(c, p, at, slot, within);
                }
                barrier_arrive(&empty[s]);
            }
            s += span;
            uint8_t *to = made + which * S * PART;
            float4 *own = (float4 *)(to + turn * PART);
#pragma unroll
            for (int i = 0; i < SUMS; i++) {
                const float *sum = c[i / N][i % N];
                own[i * 32 + lane] = make_float4(sum[0], sum[1], sum[2], sum[3]);
            }
            if (lane < 4)
                ((float *)(own + SUMS * 32))[lane] = scale;
            named_barrier(1 + group, S * 32);
#pragma unroll
            for (uint32_t b = 0; b < S; b++)
                if (done + b < blocks) {
                    const float4 *from = (const float4 *)(to + b * PART);
#pragma unroll
                    for (uint32_t i = 0; i < EACH; i++) {
                        const uint32_t sum = turn * EACH + i;
                        if (SUMS % (EACH * S) && sum >= SUMS)
                            continue;
                        const float4 v = from[sum * 32 + lane];
                        const float2 by = ((const float2 *)(from + SUMS * 32))[sum / N];
                        y[i][0] = fmaf(by.x, v.x, y[i][0]);
                        y[i][1] = fmaf(by.x, v.y, y[i][1]);
                        y[i][2] = fmaf(by.y, v.z, y[i][2]);
                        y[i][3] = fmaf(by.y, v.w, y[i][3]);
                    }
                }
            which ^= 1;
        }
        for (; s < back; phase ^= 1)
            s += p.stages;
        s -= back;
#pragma unroll
        for (uint32_t i = 0; i < EACH; i++) {
            const uint32_t sum = turn * EACH + i, tile = group * 2 + sum / N;
            if (sum < SUMS && tile < p.together && first + tile < f.all)
                half_out<1>(p, f, half_columns_of(p, f, first + tile), sum % N * 8, y + i);
        }
    }
}

/* S: warps that share k; 0: none do. */
template <bool BYTES, int N, int S> static __device__ void few_halves(const mt_cuda_halves &p)
{
    extern __shared__ __align__(128) uint8_t few_ring[];
    __shared__ uint64_t full[MT_CUDA_FEW_HALF_STAGES], empty[MT_CUDA_FEW_HALF_STAGES];
    const uint32_t warp = threadIdx.x / 32, dots = blockDim.x / 32 - 1;
    const uint32_t readers = S ? dots / (S ? S : 1) * (p.chunk / 2) : dots; /* of a chunk */
    const half_plan f = half_plan_of(p, BYTES ? 1024 : 2048);
    if (threadIdx.x == 0) {
        init_ring(full, empty, p.stages, 1, readers * 32);
        barriers_are_made();
    }
    __syncthreads();
    start_next();
    if (warp == dots)
        half_copy(p, f, few_ring, full, empty);
    else if constexpr (S > 0)
        half_turns<N, S>(p, f, few_ring, full, empty, few_ring + p.stages * f.slot);
    else
        half_work<BYTES, N>(p, f, few_ring, full, empty);
}

#else
template <bool BYTES, int N, int S> static __device__ void few_halves(const mt_cuda_halves &p)
{
}
#endif

#define FEW(name, bytes, n, s)                                                     \
    extern "C" __global__ void __launch_bounds__(32 * (MT_CUDA_HALF_WARPS + 1), 1) \
        mtk_##name(const __grid_constant__ mt_cuda_halves p)                       \
    {                                                                              \
        few_halves<bytes, n, s>(p);                                                \
    }

FEW(matmul_bf16_warp8_rows1_64, false, 1, 0)
FEW(matmul_bf16_warp16_rows1_64, false, 2, 0)
FEW(matmul_bf16_warp32_rows1_64, false, 4, 0)
FEW(matmul_fp8_warp8_rows1_64, true, 1, 0)
FEW(matmul_fp8_warp16_rows1_64, true, 2, 0)
FEW(matmul_fp8_warp32_rows1_64, true, 4, 0)
FEW(matmul_fp8_split4_rows1_8, true, 1, 4)
FEW(matmul_fp8_split8_rows1_8, true, 1, 8)
FEW(matmul_fp8_split2_rows9_16, true, 2, 2)
FEW(matmul_fp8_split4_rows9_16, true, 2, 4)
FEW(matmul_fp8_split8_rows9_16, true, 2, 8)
FEW(matmul_fp8_split2_rows17_32, true, 4, 2)
FEW(matmul_fp8_split4_rows17_32, true, 4, 4)
FEW(matmul_fp8_split8_rows17_32, true, 4, 8)
