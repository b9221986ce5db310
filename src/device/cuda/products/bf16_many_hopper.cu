/* Products of many bf16 rows with bf16 weights on Hopper (R5): tensor cores of a warpgroup, whose sums are those of
   bf16.cu to the bit, 16 products at a time, k ascending from 0.

   A block goes from tile to tile of 128 rows and 128 columns. One warp has rows and weights copied into a ring of
   stages, 64 of k each, as far ahead as the ring reaches and over the borders of tiles; two warpgroups have 64 rows
   each. Rows are packed and weights lie as those tensor cores want them (params.h), so that copies are all it takes. */
#include "device/cuda/products/product.cuh"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "device/cuda/common/mma.cuh"
#include "device/cuda/common/ring.cuh"

enum { STAGES = MT_CUDA_WIDE_STAGES, GROUPS = 2, ROW_BYTES = MT_CUDA_MANY * 128, TILE_BYTES = 2048 };

struct wide_room {
    uint8_t rows[STAGES][ROW_BYTES], columns[STAGES][ROW_BYTES];
};

/* By one warp: lanes that have a tile of 16 columns copy it, one copies the rows. */
static __device__ inline void wide_copy(const mt_cuda_many &p, wide_room &room, uint64_t *full, uint64_t *empty)
{
    const uint32_t lane = threadIdx.x, tiles = many_tiles(p), steps = p.w[0].steps;
    ring at = {0, 1};
    for (uint32_t id = blockIdx.x; id < tiles; id += gridDim.x) {
        const many_tile t = many_tile_at(p, id, tiles);
        const mt_cuda_weight &w = many_weight(p, t);
        const uint32_t left = (w.n + 31) / 32 * 2 - t.column, here = left < 8 ? left : 8;
        const uint8_t *from = w.w + (uint64_t)(t.column + lane % 8) * steps * TILE_BYTES;
        for (uint32_t step = 0; step < steps; step++) {
            barrier_wait(&empty[at.stage], at.parity);
            if (lane == 0)
                barrier_expect(&full[at.stage], ROW_BYTES + here * TILE_BYTES);
            __syncwarp();
            if (lane < here)
                fetch(room.columns[at.stage] + lane * TILE_BYTES, from + (uint64_t)step * TILE_BYTES, TILE_BYTES,
                      &full[at.stage]);
            if (lane == 8)
                fetch(room.rows[at.stage], p.from.q + ((uint64_t)step * p.from.rows + t.row) * 128, ROW_BYTES,
                      &full[at.stage]);
            step_ring<STAGES>(at);
        }
    }
}

/* Sums of 16 rows a warp. */
static __device__ inline void wide_put(const mt_cuda_many &p, const many_tile &t, const float (&c)[64], uint32_t row)
{
    const mt_cuda_mat &y = p.y[p.shares.experts ? 0 : t.weight];
    const uint32_t lane = threadIdx.x % 32, first = t.column * 16 + lane % 4 * 2, end = many_weight(p, t).n;
    const bool whole = t.column * 16 + MT_CUDA_MANY <= end && (uintptr_t)y.data % 8 == 0 && y.stride % 2 == 0;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const uint32_t i = t.row + row + lane / 4 + h * 8;
        float *to = row_of(y, i) + first;
        if (i >= t.end)
            continue;
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float low = c[j * 4 + h * 2], high = c[j * 4 + h * 2 + 1];
            if (whole) {
                *(float2 *)(to + j * 8) = make_float2(low, high);
                continue;
            }
            if (first + j * 8 < end)
                to[j * 8] = low;
            if (first + j * 8 + 1 < end)
                to[j * 8 + 1] = high;
        }
    }
}

/* Biases of 64 columns from the first one on: each lane keeps two neighbours. */
static __device__ inline float2 wide_biases(const mt_cuda_weight &w, uint32_t first)
{
    const uint32_t n = first + threadIdx.x % 32 * 2;
    return make_float2(w.bias && n < w.n ? w.bias[n] : 0, w.bias && n + 1 < w.n ? w.bias[n + 1] : 0);
}

static __device__ inline void wide_add(float (&c)[64], const float2 *bias)
{
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const int from = j % 8 * 4 + threadIdx.x % 4;
        const float low = __shfl_sync(0xffffffffu, bias[j / 8].x, from);
        const float high = __shfl_sync(0xffffffffu, bias[j / 8].y, from);
        c[j * 4] += low;
        c[j * 4 + 1] += high;
        c[j * 4 + 2] += low;
        c[j * 4 + 3] += high;
    }
}

static __device__ inline void wide_multiply(const mt_cuda_many &p, wide_room &room, uint64_t *full, uint64_t *empty)
{
    const uint32_t who = threadIdx.x / 128 - 1, tiles = many_tiles(p), steps = p.w[0].steps;
    ring at = {0, 0};
    for (uint32_t id = blockIdx.x; id < tiles; id += gridDim.x) {
        const many_tile t = many_tile_at(p, id, tiles);
        const mt_cuda_weight &own = many_weight(p, t);
        const float2 bias[2] = {wide_biases(own, t.column * 16), wide_biases(own, t.column * 16 + 64)};
        float c[64];
        uint32_t last = 0;
        for (uint32_t step = 0; step < steps; step++) {
            barrier_wait(&full[at.stage], at.parity);
            products_begin();
            const uint32_t x = shared_address(room.rows[at.stage]) + who * (64 * 128),
                           w = shared_address(room.columns[at.stage]);
#pragma unroll
            for (int i = 0; i < 4; i++)
                product_scores(c, along(x + i * 32), along(w + i * 32), step > 0 || i > 0);
            products_commit();
            products_wait<1>();
            if (step > 0 && threadIdx.x % 128 == 0) /* what this product has read before is free */
                barrier_arrive(&empty[last]);
            last = at.stage;
            step_ring<STAGES>(at);
        }
        products_wait<0>();
        if (threadIdx.x % 128 == 0)
            barrier_arrive(&empty[last]);
        if (own.bias)
            wide_add(c, bias);
        wide_put(p, t, c, who * 64 + threadIdx.x / 32 % 4 * 16);
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
    mtk_matmul_bf16_hopper_rows65(const __grid_constant__ mt_cuda_many p)
{
    extern __shared__ uint8_t raw[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    wide_room &room = *(wide_room *)(((uintptr_t)raw + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        init_ring(full, empty, STAGES, 1, GROUPS);
        barriers_are_made();
    }
    __syncthreads();
    follow_last();
    if (threadIdx.x < 32)
        wide_copy(p, room, full, empty);
    else if (threadIdx.x >= 128)
        wide_multiply(p, room, full, empty);
}

/* ---- two blocks that share rows ----

   What bounds tiles of 128 by 128 is what they read. So where no experts are met, two blocks of a cluster take
   neighbouring tiles of columns with the same 192 rows. Each copies half of the rows to both, and three warpgroups have
   64 rows each.

   One warp has rows copied; three have columns copied side by side, for a copy that is begun holds up its warp. Columns
   do not wait for the kernel before. Each warp says for every stage what it has copied, if only nothing: a stage is not
   full until all have, so that none is left behind by those that wait for full and for empty stages. */

enum {
    PAIR = MT_CUDA_PAIR,
    PAIR_GROUPS = PAIR / 64,
    PAIR_STAGES = MT_CUDA_PAIR_STAGES,
    PAIR_STAGE = MT_CUDA_PAIR_STAGE,
    BLOCKS = 2,
    COLUMN_WARPS = 3
};

/* Stages begin at a multiple of 1024: PAIR rows, then columns. */
typedef struct pair_ring {
    uint64_t full[PAIR_STAGES], empty[PAIR_STAGES];
    uint8_t *stages;
} pair_ring;

/* A block's tile: its rows up to a multiple of 64, and its tiles of 16 columns; none where columns end before it. */
typedef struct pair_tile {
    many_tile at;
    uint32_t rows, columns;
} pair_tile;

/* Two tiles of columns each. */
static __device__ inline uint32_t pairs_of(const mt_cuda_many &p)
{
    return (p.first[p.count] + BLOCKS - 1) / BLOCKS;
}

static __device__ inline uint32_t pair_tiles(const mt_cuda_many &p)
{
    return (p.m + PAIR - 1) / PAIR * pairs_of(p);
}

/* Which tile a cluster takes in a round: there and back, so that who has a small one at the end of a round has the next
   one first. */
static __device__ inline uint32_t pair_at(uint32_t round)
{
    const uint32_t all = gridDim.x / BLOCKS, own = blockIdx.x / BLOCKS;
    return round * all + (round % 2 ? all - 1 - own : own);
}

/* Number `pair` of all pairs of columns, with the rows from the first one on. */
static __device__ inline pair_tile pair_tile_of(const mt_cuda_many &p, uint32_t row, uint32_t pair)
{
    pair_tile t = {{0, 0, row, p.m}, min((uint32_t)PAIR, (p.m - row + 63) / 64 * 64), 0};
    const uint32_t column = pair * BLOCKS + block_of_cluster(), known = min(column, p.first[p.count] - 1);
    t.at.column = known;
    t.at.weight = weight_of_tile(p, &t.at.column);
    t.at.column *= 8;
    if (column < p.first[p.count])
        t.columns = min(8u, (p.w[t.at.weight].n + 31) / 32 * 2 - t.at.column);
    return t;
}

/* Whole tiles first, then those of the last rows. */
static __device__ inline pair_tile pair_tile_at(const mt_cuda_many &p, uint32_t id)
{
    const uint32_t whole = p.m / PAIR, pairs = pairs_of(p);
    if (id >= whole * pairs)
        return pair_tile_of(p, whole * PAIR, id - whole * pairs);
    const uint32_t band = id / (BAND * pairs), height = min(whole - band * BAND, (uint32_t)BAND);
    const uint32_t within = id - band * BAND * pairs;
    return pair_tile_of(p, (band * BAND + within % height) * PAIR, within / height);
}

/* By one thread. */
static __device__ inline void pair_copy_rows(const mt_cuda_many &p, pair_ring &room)
{
    const uint32_t tiles = pair_tiles(p), first = block_of_cluster() * (PAIR / BLOCKS);
    ring at = {0, 1};
    wait_for_last();
    for (uint32_t round = 0; round * (gridDim.x / BLOCKS) < tiles; round++) {
        if (pair_at(round) >= tiles)
            continue;
        const pair_tile t = pair_tile_at(p, pair_at(round));
        const uint32_t rows = t.rows > first ? min(t.rows - first, PAIR / BLOCKS) : 0;
        const uint8_t *from = p.from.q + (uint64_t)(t.at.row + first) * 128;
        for (uint32_t step = 0; step < p.w[0].steps; step++, from += (uint64_t)p.from.rows * 128) {
            barrier_wait(&room.empty[at.stage], at.parity);
            barrier_expect(&room.full[at.stage], t.rows * 128);
            if (rows)
                fetch_for((1 << BLOCKS) - 1, room.stages + at.stage * PAIR_STAGE + first * 128, from, rows * 128,
                          &room.full[at.stage]);
            step_ring<PAIR_STAGES>(at);
        }
    }
}

/* By COLUMN_WARPS warps, of which this is number `warp`. */
static __device__ inline void pair_copy_columns(const mt_cuda_many &p, pair_ring &room, uint32_t warp)
{
    const uint32_t tiles = pair_tiles(p), own = threadIdx.x % 32 * COLUMN_WARPS + warp;
    ring at = {0, 1};
    for (uint32_t round = 0; round * (gridDim.x / BLOCKS) < tiles; round++) {
        if (pair_at(round) >= tiles)
            continue;
        const pair_tile t = pair_tile_at(p, pair_at(round));
        const uint32_t here = (t.columns + COLUMN_WARPS - 1 - warp) / COLUMN_WARPS;
        const uint8_t *from = p.w[t.at.weight].w + (uint64_t)(t.at.column + own) * p.w[0].steps * TILE_BYTES;
        for (uint32_t step = 0; step < p.w[0].steps; step++, from += TILE_BYTES) {
            barrier_wait(&room.empty[at.stage], at.parity);
            __syncwarp(); /* no lane waits for a stage that others go beyond */
            if (own == warp)
                barrier_expect(&room.full[at.stage], here * TILE_BYTES);
            if (own < t.columns)
                fetch(room.stages + at.stage * PAIR_STAGE + PAIR * 128 + own * TILE_BYTES, from, TILE_BYTES,
                      &room.full[at.stage]);
            step_ring<PAIR_STAGES>(at);
        }
    }
}

/* The stage before is free for both blocks' copies. */
static __device__ inline void pair_release(pair_ring &room, const ring &at)
{
    if (threadIdx.x % 128 < BLOCKS)
        barrier_arrive_at(&room.empty[(at.stage ? at.stage : PAIR_STAGES) - 1], threadIdx.x % 128);
}

/* Stages go by of which a warpgroup has no rows or the block no columns. Only the warp that frees them waits for them:
   a warp that nobody waits for might come so late that a stage is full once more, which it could not tell from empty,
   and it would wait forever. */
static __device__ inline void pair_pass(const mt_cuda_many &p, pair_ring &room, ring &at)
{
    for (uint32_t step = 0; step < p.w[0].steps; step++) {
        if (threadIdx.x % 128 < 32) {
            barrier_wait(&room.full[at.stage], at.parity);
            __syncwarp();
        }
        step_ring<PAIR_STAGES>(at);
        pair_release(room, at);
    }
    named_barrier(threadIdx.x / 128, 128);
}

/* What along() gives, from its lower half. */
static __device__ inline uint64_t along_on(uint32_t low)
{
    return along(0) >> 32 << 32 | low;
}

/* A warpgroup's rows; `first` is the lower half of what along() gives for the first stage. */
static __device__ inline void pair_multiply(const mt_cuda_many &p, const many_tile &t, pair_ring &room, ring &at,
                                            uint32_t first)
{
    const uint32_t row = threadIdx.x / 128 * 64 - 64;
    const float2 bias[2] = {wide_biases(p.w[t.weight], t.column * 16), wide_biases(p.w[t.weight], t.column * 16 + 64)};
    float c[64] = {}; /* the first products do not add to it, but so it need not be kept from tile to tile */
    for (uint32_t step = 0; step < p.w[0].steps; step++) {
        barrier_wait(&room.full[at.stage], at.parity);
        products_begin();
        const uint32_t stage = first + at.stage * (PAIR_STAGE / 16), x = stage + row * 8, w = stage + PAIR * 8;
#pragma unroll
        for (int i = 0; i < 4; i++)
            product_scores(c, along_on(x + i * 2), along_on(w + i * 2), step > 0 || i > 0);
        products_commit();
        products_wait<1>();
        if (step > 0) /* what this product has read before is free */
            pair_release(room, at);
        step_ring<PAIR_STAGES>(at);
    }
    products_wait<0>();
    pair_release(room, at);
    wait_for_last(); /* has long ended; this thread may now overwrite its results */
    if (p.w[t.weight].bias)
        wide_add(c, bias);
    wide_put(p, t, c, row + threadIdx.x / 32 % 4 * 16);
}

static __device__ inline void pair_multiply_all(const mt_cuda_many &p, pair_ring &room)
{
    const uint32_t tiles = pair_tiles(p);
    uint32_t first = (uint32_t)along(shared_address(room.stages));
    asm volatile("" : "+r"(first)); /* so that it is not computed once more in each step */
    ring at = {0, 0};
    for (uint32_t round = 0; round * (gridDim.x / BLOCKS) < tiles; round++) {
        if (pair_at(round) >= tiles)
            continue;
        const pair_tile t = pair_tile_at(p, pair_at(round));
        if (threadIdx.x / 128 * 64 > t.rows || t.columns == 0)
            pair_pass(p, room, at);
        else
            pair_multiply(p, t.at, room, at, first);
    }
}

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(MT_CUDA_PAIR_THREADS, 1)
    mtk_matmul_bf16_pairs_rows65(const __grid_constant__ mt_cuda_many p)
{
    extern __shared__ uint8_t raw[];
    __shared__ pair_ring room;
    if (threadIdx.x == 0) {
        init_ring(room.full, room.empty, PAIR_STAGES, 1 + COLUMN_WARPS, BLOCKS * PAIR_GROUPS);
        room.stages = (uint8_t *)(((uintptr_t)raw + 1023) / 1024 * 1024);
        barriers_are_made();
    }
    cluster_meet();
    start_next();
    if (threadIdx.x < 128) {
        fewer_registers<32>();
        if (threadIdx.x >= 32)
            pair_copy_columns(p, room, threadIdx.x / 32 - 1);
        else if (threadIdx.x == 0)
            pair_copy_rows(p, room);
    } else {
        more_registers<160>();
        pair_multiply_all(p, room);
    }
    __syncwarp();
    cluster_meet(); /* a block that ended could not receive the other's arrivals */
}

#else
KERNEL(matmul_bf16_hopper_rows65)(const __grid_constant__ mt_cuda_many p)
{
}

KERNEL(matmul_bf16_pairs_rows65)(const __grid_constant__ mt_cuda_many p)
{
}
#endif
