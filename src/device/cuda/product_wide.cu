/* Products of many bf16 rows with bf16 weights on Hopper (R5): tensor cores of a warpgroup, whose sums are those of
   product_bf16.cu to the bit, 16 products at a time, k ascending from 0.

   A block goes from tile to tile of 128 rows and 128 columns. One warp has rows and weights copied into a ring of
   stages, 64 of k each, as far ahead as the ring reaches and over the borders of tiles; two warpgroups have 64 rows
   each. Rows are packed and weights lie as those tensor cores want them (params.h), so that copies are all it takes. */
#include "device/cuda/product.cuh"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "device/cuda/wgmma.cuh"

enum { STAGES = MT_CUDA_WIDE_STAGES, GROUPS = 2, ROW_BYTES = MT_CUDA_MANY * 128, TILE_BYTES = 2048 };

struct wide_room {
    uint8_t rows[STAGES][ROW_BYTES], columns[STAGES][ROW_BYTES];
};

/* By one warp: lanes that have a tile of 16 columns copy it, one copies the rows. */
static __device__ inline void wide_copy(const mt_cuda_many &p, wide_room &room, uint64_t *full, uint64_t *empty)
{
    const uint32_t lane = threadIdx.x, tiles = many_tiles(p), steps = p.w[0].steps;
    uint32_t s = 0, parity = 1; /* a ring that nobody has used is empty */
    for (uint32_t id = blockIdx.x; id < tiles; id += gridDim.x) {
        const many_tile t = many_tile_at(p, id, tiles);
        const mt_cuda_weight &w = many_weight(p, t);
        const uint32_t left = (w.n + 31) / 32 * 2 - t.column, here = left < 8 ? left : 8;
        const uint8_t *from = w.w + (uint64_t)(t.column + lane % 8) * steps * TILE_BYTES;
        for (uint32_t step = 0; step < steps; step++) {
            barrier_wait(&empty[s], parity);
            if (lane == 0)
                barrier_expect(&full[s], ROW_BYTES + here * TILE_BYTES);
            __syncwarp();
            if (lane < here)
                fetch(room.columns[s] + lane * TILE_BYTES, from + (uint64_t)step * TILE_BYTES, TILE_BYTES, &full[s]);
            if (lane == 8)
                fetch(room.rows[s], p.from.q + ((uint64_t)step * p.from.rows + t.row) * 128, ROW_BYTES, &full[s]);
            parity ^= s + 1 == STAGES;
            s = s + 1 == STAGES ? 0 : s + 1;
        }
    }
}

/* Sums of 16 rows a warp, with biases, which are read before anything is written: what is written might be them. */
static __device__ inline void wide_put(const mt_cuda_many &p, const many_tile &t, const float (&c)[64], uint32_t row)
{
    const mt_cuda_weight &w = many_weight(p, t);
    const uint32_t lane = threadIdx.x % 32, first = t.column * 16 + lane % 4 * 2, i = t.row + row + lane / 4;
    const mt_cuda_mat &y = p.y[p.shares.experts ? 0 : t.weight];
    const bool whole = t.column * 16 + MT_CUDA_MANY <= w.n && (uintptr_t)y.data % 8 == 0 && y.stride % 2 == 0;
    float2 bias[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const uint32_t n = first + j * 8;
        bias[j].x = w.bias && n < w.n ? w.bias[n] : 0;
        bias[j].y = w.bias && n + 1 < w.n ? w.bias[n + 1] : 0;
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float *to = row_of(y, i + h * 8) + first;
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const float low = c[j * 4 + h * 2], high = c[j * 4 + h * 2 + 1];
            const float2 sum = w.bias ? make_float2(low + bias[j].x, high + bias[j].y) : make_float2(low, high);
            if (i + h * 8 >= t.end)
                continue;
            if (whole) {
                *(float2 *)(to + j * 8) = sum;
                continue;
            }
            if (first + j * 8 < w.n)
                to[j * 8] = sum.x;
            if (first + j * 8 + 1 < w.n)
                to[j * 8 + 1] = sum.y;
        }
    }
}

static __device__ inline void wide_multiply(const mt_cuda_many &p, wide_room &room, uint64_t *full, uint64_t *empty)
{
    const uint32_t who = threadIdx.x / 128 - 1, tiles = many_tiles(p), steps = p.w[0].steps;
    uint32_t s = 0, parity = 0;
    for (uint32_t id = blockIdx.x; id < tiles; id += gridDim.x) {
        float c[64];
        uint32_t last = 0;
        for (uint32_t step = 0; step < steps; step++) {
            barrier_wait(&full[s], parity);
            products_begin();
            const uint32_t x = shared_address(room.rows[s]) + who * (64 * 128), w = shared_address(room.columns[s]);
#pragma unroll
            for (int i = 0; i < 4; i++)
                product_scores(c, along(x + i * 32), along(w + i * 32), step > 0 || i > 0);
            products_commit();
            products_wait<1>();
            if (step > 0 && threadIdx.x % 128 == 0) /* what this product has read before is free */
                barrier_arrive(&empty[last]);
            last = s;
            parity ^= s + 1 == STAGES;
            s = s + 1 == STAGES ? 0 : s + 1;
        }
        products_wait<0>();
        if (threadIdx.x % 128 == 0)
            barrier_arrive(&empty[last]);
        wide_put(p, many_tile_at(p, id, tiles), c, who * 64 + threadIdx.x / 32 % 4 * 16);
    }
}

extern "C" __global__ void __launch_bounds__(384, 1) mtk_wide_halves(const __grid_constant__ mt_cuda_many p)
{
    extern __shared__ uint8_t raw[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    wide_room &room = *(wide_room *)(((uintptr_t)raw + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(&full[i], 1);
            barrier_init(&empty[i], GROUPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    follow_last();
    if (threadIdx.x < 32)
        wide_copy(p, room, full, empty);
    else if (threadIdx.x >= 128)
        wide_multiply(p, room, full, empty);
}

/* ---- two blocks that share rows ----

   What bounds tiles of 128 by 128 is what they read: 64 bytes a cycle and multiprocessor, of which L2 gives some 40. So
   where no experts are met, two blocks of a cluster take neighbouring tiles of columns with the same 192 rows. Each
   copies half of the rows to both, and three warpgroups have 64 rows each. */

enum { PAIR = MT_CUDA_PAIR, PAIR_STAGES = MT_CUDA_PAIR_STAGES, PAIR_GROUPS = PAIR / 64, BLOCKS = 2 };

struct pair_room {
    uint8_t rows[PAIR_STAGES][PAIR * 128], columns[PAIR_STAGES][ROW_BYTES];
};

/* A block's tile: its rows up to a multiple of 64, and its tiles of 16 columns; none where columns end before it. */
typedef struct pair_tile {
    many_tile at;
    uint32_t rows, columns;
} pair_tile;

static __device__ inline uint32_t pair_tiles(const mt_cuda_many &p)
{
    return (p.m + PAIR - 1) / PAIR * ((p.first[p.count] + BLOCKS - 1) / BLOCKS);
}

/* Which tile a cluster takes in a round: there and back, so that who has a small one at the end of a round has the next
   one first. */
static __device__ inline uint32_t pair_at(uint32_t round)
{
    const uint32_t all = gridDim.x / BLOCKS, own = blockIdx.x / BLOCKS;
    return round * all + (round % 2 ? all - 1 - own : own);
}

/* Whole tiles first, then those of the last rows. */
static __device__ inline pair_tile pair_tile_at(const mt_cuda_many &p, uint32_t id, uint32_t rank)
{
    const uint32_t columns = p.first[p.count], pairs = (columns + BLOCKS - 1) / BLOCKS, whole = p.m / PAIR;
    uint32_t row = whole, pair = id - whole * pairs;
    if (id < whole * pairs) {
        const uint32_t band = id / (BAND * pairs), height = min(whole - band * BAND, (uint32_t)BAND);
        const uint32_t within = id - band * BAND * pairs;
        row = band * BAND + within % height;
        pair = within / height;
    }
    const uint32_t column = pair * BLOCKS + rank, known = min(column, columns - 1);
    pair_tile t = {{0, 0, row * PAIR, p.m}, min((uint32_t)PAIR, (p.m - row * PAIR + 63) / 64 * 64), 0};
    while (t.at.weight + 1 < p.count && known >= p.first[t.at.weight + 1])
        t.at.weight++;
    t.at.column = (known - p.first[t.at.weight]) * 8;
    if (column < columns)
        t.columns = min(8u, (p.w[t.at.weight].n + 31) / 32 * 2 - t.at.column);
    return t;
}

static __device__ inline void pair_copy(const mt_cuda_many &p, pair_room &room, uint64_t *full, uint64_t *empty)
{
    const uint32_t lane = threadIdx.x, tiles = pair_tiles(p), steps = p.w[0].steps, rank = block_of_cluster();
    uint32_t s = 0, parity = 1;
    for (uint32_t round = 0; round * (gridDim.x / BLOCKS) < tiles; round++) {
        if (pair_at(round) >= tiles)
            continue;
        const pair_tile t = pair_tile_at(p, pair_at(round), rank);
        const uint32_t first = rank * (PAIR / BLOCKS), rows = t.rows > first ? min(t.rows - first, PAIR / BLOCKS) : 0;
        const uint8_t *from = p.w[t.at.weight].w + (uint64_t)(t.at.column + lane % 8) * steps * TILE_BYTES;
        const uint8_t *x = p.from.q + (uint64_t)(t.at.row + first) * 128;
        for (uint32_t step = 0; step < steps; step++) {
            barrier_wait(&empty[s], parity);
            if (lane == 0)
                barrier_expect(&full[s], t.rows * 128 + t.columns * TILE_BYTES);
            __syncwarp();
            if (lane < t.columns)
                fetch(room.columns[s] + lane * TILE_BYTES, from + (uint64_t)step * TILE_BYTES, TILE_BYTES, &full[s]);
            if (lane == 8 && rows)
                fetch_for((1 << BLOCKS) - 1, room.rows[s] + first * 128, x + (uint64_t)step * p.from.rows * 128,
                          rows * 128, &full[s]);
            parity ^= s + 1 == PAIR_STAGES;
            s = s + 1 == PAIR_STAGES ? 0 : s + 1;
        }
    }
}

/* A stage is free for both blocks' copies. */
static __device__ inline void pair_release(uint64_t *empty)
{
    if (threadIdx.x % 128 < BLOCKS)
        barrier_arrive_at(empty, threadIdx.x % 128);
}

/* Stages go by of which a warpgroup has no rows or the block no columns. Only the warp that frees them waits for them:
   one that nobody waits for might come so late that a stage is full once more, which it could not tell from empty, and
   would wait for ever. */
static __device__ inline void pair_pass(uint64_t *full, uint64_t *empty, uint32_t steps, uint32_t &s, uint32_t &parity)
{
    for (uint32_t step = 0; step < steps; step++) {
        if (threadIdx.x % 128 < 32) {
            barrier_wait(&full[s], parity);
            __syncwarp();
            pair_release(&empty[s]);
        }
        parity ^= s + 1 == PAIR_STAGES;
        s = s + 1 == PAIR_STAGES ? 0 : s + 1;
    }
    named_barrier(threadIdx.x / 128, 128);
}

static __device__ inline void pair_multiply(const mt_cuda_many &p, pair_room &room, uint64_t *full, uint64_t *empty)
{
    const uint32_t who = threadIdx.x / 128 - 1, tiles = pair_tiles(p), steps = p.w[0].steps, rank = block_of_cluster();
    uint32_t s = 0, parity = 0;
    for (uint32_t round = 0; round * (gridDim.x / BLOCKS) < tiles; round++) {
        if (pair_at(round) >= tiles)
            continue;
        const pair_tile t = pair_tile_at(p, pair_at(round), rank);
        if (who * 64 >= t.rows || t.columns == 0) {
            pair_pass(full, empty, steps, s, parity);
            continue;
        }
        float c[64];
        uint32_t last = 0;
        for (uint32_t step = 0; step < steps; step++) {
            barrier_wait(&full[s], parity);
            products_begin();
            const uint32_t x = shared_address(room.rows[s]) + who * (64 * 128), w = shared_address(room.columns[s]);
#pragma unroll
            for (int i = 0; i < 4; i++)
                product_scores(c, along(x + i * 32), along(w + i * 32), step > 0 || i > 0);
            products_commit();
            products_wait<1>();
            if (step > 0) /* what this product has read before is free */
                pair_release(&empty[last]);
            last = s;
            parity ^= s + 1 == PAIR_STAGES;
            s = s + 1 == PAIR_STAGES ? 0 : s + 1;
        }
        products_wait<0>();
        pair_release(&empty[last]);
        wide_put(p, t.at, c, who * 64 + threadIdx.x / 32 % 4 * 16);
    }
}

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(MT_CUDA_PAIR_THREADS, 1)
    mtk_pair_halves(const __grid_constant__ mt_cuda_many p)
{
    extern __shared__ uint8_t raw[];
    __shared__ uint64_t full[PAIR_STAGES], empty[PAIR_STAGES];
    pair_room &room = *(pair_room *)(((uintptr_t)raw + 1023) / 1024 * 1024);
    static_assert(sizeof(pair_room) + 1024 == MT_CUDA_PAIR_SHARED, "what the host gives");
    if (threadIdx.x == 0) {
        for (int i = 0; i < PAIR_STAGES; i++) {
            barrier_init(&full[i], 1);
            barrier_init(&empty[i], BLOCKS * PAIR_GROUPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_meet();
    follow_last();
    if (threadIdx.x < 128) {
        fewer_registers<40>();
        if (threadIdx.x < 32)
            pair_copy(p, room, full, empty);
    } else {
        more_registers<152>();
        pair_multiply(p, room, full, empty);
    }
    __syncwarp();
    cluster_meet(); /* nobody leaves whom the other one still tells something */
}

#else
KERNEL(wide_halves)(const __grid_constant__ mt_cuda_many p)
{
}

KERNEL(pair_halves)(const __grid_constant__ mt_cuda_many p)
{
}
#endif
