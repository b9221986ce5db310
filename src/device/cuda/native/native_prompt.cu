/* y = x W' for many rows in the arithmetic `native` (device/native.h), W decoded to fp16 before (native_pack.cu).

   Tiles: 192 rows by 128 columns. A block goes from tile to tile; one block a multiprocessor. Tiles are taken in
   patches of 8 tiles of rows by all columns, so that blocks which run together read the same weights. Stages of 64 of
   k, 5 in a ring of 200 KB.
   Warps: three warpgroups multiply 64 rows each; both operands of wgmma lie in the ring. In the fourth warpgroup a
   single thread begins all copies. A thread has 64 sums of the group and 64 totals in registers.

   Roofline, H200, 2,048 rows, the four products of a layer of an 8B model: 790 GFLOP at 790 TFLOP/s are 1,000 us. A
   stage takes 40 KB for 3.1 MFLOP, which is 8.5 TB/s at the pace that is reached, nearly all of it from L2. Where units
   change, which is rare, 64 sums are scaled.

   Rejected: 128 x 192 (0.5 % slower), 128 x 256 with totals in L2 (4 % slower), pairs of blocks that share weights (no
   faster), tiles divided between two blocks at a group (3 % slower). */
#include "device/cuda/native/native.cuh"

enum {
    PATCH = 8, /* tiles of rows */
    STAGES = MT_CUDA_NATIVE_STAGES,
    COLUMNS = MT_CUDA_NATIVE_COLUMNS,
    GROUPS = MT_CUDA_NATIVE_GROUPS,
    ROWS = GROUPS * MT_CUDA_NATIVE_ROWS,
    ROWS_BYTES = ROWS * MT_CUDA_NATIVE_STEP * 2,
    COLUMNS_BYTES = COLUMNS * MT_CUDA_NATIVE_STEP * 2,
    STAGE = MT_CUDA_NATIVE_STAGE,
    SUBTILE = MT_CUDA_NATIVE_ROWS * MT_CUDA_NATIVE_STEP * 2, /* bytes of a warpgroup's rows in a stage */
    SUMS = COLUMNS / 2,                                      /* of a thread */
    /* Registers: what warpgroups that multiply get of the one that copies. */
    COPIER = 32,
    START = 65536 / MT_CUDA_NATIVE_THREADS / 8 * 8,
    MORE = (START * (GROUPS + 1) - COPIER) / GROUPS / 8 * 8
};

#if __CUDA_ARCH__ >= 900

/* A place in the ring, and how often the ring has been filled. */
typedef struct ring_place {
    uint32_t slot, round;
} ring_place;

static __device__ inline void step(ring_place &at)
{
    if (++at.slot == STAGES)
        at.slot = 0, at.round++;
}

/* Tile i of a product: which tile of rows and which of columns. */
static __device__ inline void place_of_tile(uint32_t i, uint32_t tiles_m, uint32_t tiles_n, uint32_t *m, uint32_t *n)
{
    const uint32_t patch = PATCH * tiles_n, first = i / patch * PATCH;
    const uint32_t height = min((uint32_t)PATCH, tiles_m - first);
    *m = first + i % patch % height;
    *n = i % patch / height;
}

static __device__ inline void copy_tile(uint8_t *ring, uint64_t *full, uint64_t *empty, ring_place &at,
                                        const uint8_t *x, const uint8_t *w, uint32_t steps)
{
#pragma unroll 1
    for (uint32_t c = 0; c < steps; c++) {
        uint8_t *stage = ring + at.slot * STAGE;
        if (at.round > 0)
            barrier_wait(&empty[at.slot], (at.round - 1) & 1);
        barrier_expect(&full[at.slot], STAGE);
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            fetch(stage + g * SUBTILE, x + ((uint64_t)g * steps + c) * SUBTILE, SUBTILE, &full[at.slot]);
        fetch(stage + ROWS_BYTES, w + (uint64_t)c * COLUMNS_BYTES, COLUMNS_BYTES, &full[at.slot]);
        step(at);
    }
}

/* Begins the products of a step. */
static __device__ inline void multiply_step(float (&part)[SUMS], const uint8_t *ring, uint64_t *full,
                                            const ring_place &at, bool anew)
{
    const uint32_t stage = shared_address(ring + at.slot * STAGE);
    barrier_wait(&full[at.slot], at.round & 1);
    const uint64_t a = along(stage + threadIdx.x / 128 * SUBTILE), b = along(stage + ROWS_BYTES);
    products_begin();
#pragma unroll
    for (int j = 0; j < 4; j++)
        product_f16(part, a + j * 2, b + j * 2, !anew || j > 0);
    products_commit();
}

/* Adds the products of a chunk. */
static __device__ inline void multiply_chunk(float (&part)[SUMS], const uint8_t *ring, uint64_t *full, uint64_t *empty,
                                             ring_place &at, bool anew)
{
    uint32_t last = 0;
#pragma unroll
    for (int c = 0; c < CHUNK_STEPS; c++) {
        multiply_step(part, ring, full, at, anew && c == 0);
        if (c > 0) {
            products_wait<1>();
            barrier_arrive(&empty[last]);
        }
        last = at.slot;
        step(at);
    }
    products_wait();
    settle(part);
    barrier_arrive(&empty[last]);
}

/* The factor of each of a thread's two rows, lane / 4 of its warp's 16 and 8 after it: lane l has those of rows l and
   l + 32 of the warpgroup's. */
static __device__ inline float2 of_thread(const float (&factor)[2])
{
    const uint32_t row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    const float own = __shfl_sync(0xffffffffu, factor[0], row % 32),
                after = __shfl_sync(0xffffffffu, factor[0], row % 32 + 8);
    const float own1 = __shfl_sync(0xffffffffu, factor[1], row % 32);
    const float after1 = __shfl_sync(0xffffffffu, factor[1], row % 32 + 8);
    return row < 32 ? make_float2(own, after) : make_float2(own1, after1);
}

/* The same where units change: steps one by one. units: of a lane's rows in this chunk, four each; before: the number
   of the last segment's. */
static __device__ inline void multiply_changing(float (&part)[SUMS], const uint8_t *ring, uint64_t *full,
                                                uint64_t *empty, ring_place &at, const uint32_t (&units)[2],
                                                const uint32_t (&before)[2])
{
    uint32_t last[2] = {before[0], before[1]};
#pragma unroll 1
    for (int c = 0; c < CHUNK_STEPS; c++) {
        float ratio[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t now = units[i] >> c * 8 & 255;
            ratio[i] = __uint_as_float((127u << 23) + unit_bits(last[i]) - unit_bits(now));
            last[i] = now;
        }
        const float2 own = of_thread(ratio);
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            part[i] *= i / 2 % 2 ? own.y : own.x;
        multiply_step(part, ring, full, at, false);
        products_wait();
        settle(part);
        barrier_arrive(&empty[at.slot]);
        step(at);
    }
}

/* part[i]: row lane / 4 + i / 2 % 2 * 8 of the warp's 16, column 8 (i / 4) + 2 (lane % 4) + i % 2. `units`: those of
   the lane's first row, [chunks][64]; there: which of its two rows there are. */
static __device__ inline void multiply_tile(float (&total)[SUMS], const uint8_t *ring, uint64_t *full, uint64_t *empty,
                                            ring_place &at, const uint32_t *units, const bool (&there)[2],
                                            uint32_t chunks)
{
    float part[SUMS];
    uint32_t now[2], next[2], before[2];
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        total[i] = part[i] = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        next[i] = there[i] ? __ldg(units + i * 32) : 0;
        before[i] = 0;
    }
#pragma unroll 1
    for (uint32_t c = 0; c < chunks; c++) {
        const bool anew = c % GROUP_CHUNKS == 0;
        bool same = true;
        units += MT_CUDA_NATIVE_ROWS;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            now[i] = next[i];
            next[i] = there[i] && c + 1 < chunks ? __ldg(units + i * 32) : 0; /* on its way while this is multiplied */
            before[i] = anew ? now[i] & 255 : before[i];
            same = same && now[i] == before[i] * 0x01010101u;
        }
        /* A warpgroup's rows are the same for its warps, and so is what they find. */
        if (__all_sync(0xffffffffu, same)) {
            multiply_chunk(part, ring, full, empty, at, anew);
        } else {
            if (anew)
#pragma unroll
                for (int i = 0; i < SUMS; i++)
                    part[i] = 0;
            multiply_changing(part, ring, full, empty, at, now, before);
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
            before[i] = now[i] >> 24;
        if (c % GROUP_CHUNKS == GROUP_CHUNKS - 1 || c + 1 == chunks) {
            const float unit[2] = {__uint_as_float(unit_bits(before[0])), __uint_as_float(unit_bits(before[1]))};
            const float2 own = of_thread(unit);
#pragma unroll
            for (int i = 0; i < SUMS; i++)
                total[i] = fmaf(i / 2 % 2 ? own.y : own.x, part[i], total[i]);
        }
    }
}

/* Two neighbouring columns of a row. */
static __device__ inline void put_pair(const mt_cuda_native_prompt &p, uint32_t row, uint32_t n, float a, float b)
{
    float *to = row_of(p.y, row) + n;
    const bool second = n + 1 < p.w.n;
    a *= p.w.unit, b *= p.w.unit;
    if (p.w.bias && n < p.w.n)
        a += p.w.bias[n], b += second ? p.w.bias[n + 1] : 0;
    if (second && (uintptr_t)to % 8 == 0) {
        *(float2 *)to = make_float2(a, b);
        return;
    }
    if (n < p.w.n)
        to[0] = a;
    if (second)
        to[1] = b;
}

static __device__ inline void multiply(const mt_cuda_native_prompt &p)
{
    __shared__ uint64_t full[STAGES], empty[STAGES];
    uint8_t *ring = swizzled_memory();
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpgroup = warp / 4;
    const uint32_t steps = p.w.steps, chunks = p.from.padded / MT_NATIVE_CHUNK;
    const uint32_t tiles_n = (p.columns + COLUMNS - 1) / COLUMNS, tiles_m = (p.m + ROWS - 1) / ROWS;
    ring_place at = {0, 0};
    uint32_t m, t;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(&full[i], 1);
            barrier_init(&empty[i], GROUPS * 128);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (warpgroup == GROUPS) {
        fewer_registers<COPIER>();
        if (warp != GROUPS * 4 || lane != 0)
            return;
#pragma unroll 1
        for (uint32_t i = blockIdx.x; i < tiles_m * tiles_n; i += gridDim.x) {
            place_of_tile(i, tiles_m, tiles_n, &m, &t);
            copy_tile(ring, full, empty, at, p.from.q + (uint64_t)m * GROUPS * steps * SUBTILE,
                      p.decoded + (uint64_t)t * steps * COLUMNS_BYTES, steps);
        }
        return;
    }
    more_registers<MORE>();
#pragma unroll 1
    for (uint32_t i = blockIdx.x; i < tiles_m * tiles_n; i += gridDim.x) {
        float total[SUMS];
        place_of_tile(i, tiles_m, tiles_n, &m, &t);
        const uint32_t block = m * GROUPS + warpgroup, row = warp % 4 * 16 + lane / 4;
        const uint32_t first = block * MT_CUDA_NATIVE_ROWS + lane;
        const bool there[2] = {first < p.m, first + 32 < p.m};
        multiply_tile(total, ring, full, empty, at,
                      (const uint32_t *)p.from.turns + (uint64_t)block * chunks * MT_CUDA_NATIVE_ROWS + lane, there,
                      chunks);
        const uint32_t n = p.column + t * COLUMNS + lane % 4 * 2;
#pragma unroll
        for (int high = 0; high < 2; high++) {
            const uint32_t of = block * MT_CUDA_NATIVE_ROWS + row + high * 8;
            if (of >= p.m)
                continue;
#pragma unroll
            for (int j = 0; j < COLUMNS / 8; j++)
                put_pair(p, of, n + j * 8, total[j * 4 + high * 2], total[j * 4 + high * 2 + 1]);
        }
    }
}

#else
static __device__ inline void multiply(const mt_cuda_native_prompt &)
{
}
#endif

extern "C" __global__ void __launch_bounds__(MT_CUDA_NATIVE_THREADS, 1)
    mtk_native_prompt(const __grid_constant__ mt_cuda_native_prompt p)
{
    multiply(p);
}
