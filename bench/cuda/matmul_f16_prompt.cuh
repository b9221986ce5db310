/* y[rows, n] = x[rows, k] W[n, k]' for prompts, W decoded to fp16 before (pack.cuh, decode_weights): docs/numerics.md,
   "The arithmetic native, proposed". n % 128 == 0, k % 2,048 == 0; x and its powers end at a multiple of 192 rows.

   Tiles: 192 rows by 128 outputs. A block goes from tile to tile; one block a multiprocessor. Tiles are taken in
   patches of 8 tiles of rows by all outputs, so that blocks which run together read the same weights. Stages of 64 of
   k, 5 in a ring of 200 KB.
   Warps: three warpgroups multiply 64 rows each; both operands of wgmma lie in the ring. In the fourth warpgroup a
   single thread begins all copies. A thread has 64 sums of the group and 64 totals in registers.

   Roofline, H200, 2,048 rows, the four products of a layer of an 8B model: 790 GFLOP at 790 TFLOP/s are 1,000 us. A
   stage takes 40 KB for 3.1 MFLOP, which is 8.5 TB/s at the pace that is reached, nearly all of it from L2. Scaling 64
   sums at 7 borders of segments and folding them once takes a scheduler 6 % of the time that a group's products take
   the tensor cores.

   Rejected: 128 x 192 (0.5 % slower), 128 x 256 with totals in L2 (4 % slower), pairs of blocks that share weights (no
   faster), tiles divided between two blocks at a group (3 % slower). */
#ifndef MT_BENCH_CUDA_MATMUL_F16_PROMPT_CUH
#define MT_BENCH_CUDA_MATMUL_F16_PROMPT_CUH

#include "pack.cuh"

enum {
    PROMPT_PATCH = 8, /* tiles of rows */
    PROMPT_ROWS_BYTES = NATIVE_PROMPT_ROWS * NATIVE_CHUNK * 2,
    PROMPT_OUTPUTS_BYTES = NATIVE_PROMPT_OUTPUTS * NATIVE_CHUNK * 2,
    PROMPT_STAGE = PROMPT_ROWS_BYTES + PROMPT_OUTPUTS_BYTES,
    PROMPT_SUBTILE = 64 * NATIVE_CHUNK * 2,  /* bytes of a warpgroup's rows in a stage */
    PROMPT_SUMS = NATIVE_PROMPT_OUTPUTS / 2, /* of a thread */
    /* Registers: what warpgroups that multiply get of the one that copies. */
    PROMPT_COPIER = 32,
    PROMPT_START = 65536 / NATIVE_PROMPT_THREADS / 8 * 8,
    PROMPT_MORE = (PROMPT_START * (NATIVE_PROMPT_WARPGROUPS + 1) - PROMPT_COPIER) / NATIVE_PROMPT_WARPGROUPS / 8 * 8
};

/* A place in the ring, and how often the ring has been filled. */
typedef struct ring_place {
    uint32_t slot, round;
} ring_place;

static __device__ inline void step(ring_place &at)
{
    if (++at.slot == NATIVE_PROMPT_STAGES)
        at.slot = 0, at.round++;
}

/* Tile i of a product: which tile of rows and which of outputs. */
static __device__ inline void place_of_tile(uint32_t i, uint32_t tiles_m, uint32_t tiles_n, uint32_t *m, uint32_t *n)
{
    const uint32_t patch = PROMPT_PATCH * tiles_n, first = i / patch * PROMPT_PATCH;
    const uint32_t height = min((uint32_t)PROMPT_PATCH, tiles_m - first);
    *m = first + i % patch % height;
    *n = i % patch / height;
}

static __device__ inline void copy_f16_tile(uint8_t *ring, uint64_t *full, uint64_t *empty, ring_place &at,
                                            const uint8_t *x, const uint8_t *w, uint32_t chunks)
{
#pragma unroll 1
    for (uint32_t c = 0; c < chunks; c++) {
        uint8_t *stage = ring + at.slot * PROMPT_STAGE;
        if (at.round > 0)
            barrier_wait(&empty[at.slot], (at.round - 1) & 1);
        barrier_expect(&full[at.slot], PROMPT_STAGE);
#pragma unroll
        for (int g = 0; g < NATIVE_PROMPT_WARPGROUPS; g++)
            fetch(stage + g * PROMPT_SUBTILE, x + ((size_t)g * chunks + c) * PROMPT_SUBTILE, PROMPT_SUBTILE,
                  &full[at.slot]);
        fetch(stage + PROMPT_ROWS_BYTES, w + (size_t)c * PROMPT_OUTPUTS_BYTES, PROMPT_OUTPUTS_BYTES, &full[at.slot]);
        step(at);
    }
}

static __device__ inline void free_slot(uint64_t *empty, uint32_t slot)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_arrive(&empty[slot]);
}

/* Adds the products of a segment. */
static __device__ inline void multiply_stages(float (&part)[PROMPT_SUMS], uint8_t *ring, uint64_t *full,
                                              uint64_t *empty, ring_place &at, bool anew)
{
    const uint32_t own = threadIdx.x / 128 * PROMPT_SUBTILE;
    uint32_t last = 0;
#pragma unroll
    for (int c = 0; c < NATIVE_SEGMENT_CHUNKS; c++) {
        const uint32_t stage = shared_address(ring + at.slot * PROMPT_STAGE);
        barrier_wait(&full[at.slot], at.round & 1);
        const uint64_t a = along(stage + own), b = along(stage + PROMPT_ROWS_BYTES);
        products_begin();
#pragma unroll
        for (int j = 0; j < 4; j++)
            product_f16(part, a + j * 2, b + j * 2, !anew || c > 0 || j > 0);
        products_commit();
        if (c > 0) {
            products_wait<1>();
            free_slot(empty, last);
        }
        last = at.slot;
        step(at);
    }
    products_wait();
    settle(part);
    free_slot(empty, last);
}

/* part[i]: row lane / 4 + i / 2 % 2 * 8 of the warp's 16, output 8 (i / 4) + 2 (lane % 4) + i % 2. `powers`: ratios and
   powers of the thread's first row, [segments][2][64]. */
static __device__ inline void multiply_tile(float (&total)[PROMPT_SUMS], uint8_t *ring, uint64_t *full, uint64_t *empty,
                                            ring_place &at, const float *powers, uint32_t segments)
{
    float part[PROMPT_SUMS];
#pragma unroll
    for (int i = 0; i < PROMPT_SUMS; i++)
        total[i] = part[i] = 0;
    float ratio0 = 1, ratio1 = 1;
#pragma unroll 1
    for (uint32_t s = 0; s < segments; s++, powers += 128) {
        const bool anew = s % NATIVE_GROUP_SEGMENTS == 0;
        const bool ends = s % NATIVE_GROUP_SEGMENTS == NATIVE_GROUP_SEGMENTS - 1;
        /* Where all ratios of a warp are 1 nothing changes. */
        if (!anew && __any_sync(0xffffffffu, ratio0 != 1 || ratio1 != 1)) {
#pragma unroll
            for (int i = 0; i < PROMPT_SUMS; i++)
                part[i] *= i / 2 % 2 ? ratio1 : ratio0;
        }
        /* Read now, used behind the products: the next ratios, or the powers of a group's last segment. */
        const float *next = powers + (ends ? 64 : 128);
        ratio0 = __ldg(next), ratio1 = __ldg(next + 8);
        multiply_stages(part, ring, full, empty, at, anew);
        if (ends) {
#pragma unroll
            for (int i = 0; i < PROMPT_SUMS; i++)
                total[i] = fmaf(i / 2 % 2 ? ratio1 : ratio0, part[i], total[i]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(NATIVE_PROMPT_THREADS, 1)
    mtk_native_matmul_f16_prompt(const uint8_t *w, const uint8_t *x, const float *powers, float *y, uint32_t n,
                                 uint32_t k, uint32_t rows)
{
    __shared__ uint64_t full[NATIVE_PROMPT_STAGES], empty[NATIVE_PROMPT_STAGES];
    uint8_t *ring = swizzled_memory();
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpgroup = warp / 4;
    const uint32_t chunks = k / NATIVE_CHUNK, segments = k / NATIVE_SEGMENT;
    const uint32_t tiles_n = n / NATIVE_PROMPT_OUTPUTS, tiles_m = (rows + NATIVE_PROMPT_ROWS - 1) / NATIVE_PROMPT_ROWS;
    ring_place at = {0, 0};
    uint32_t m, t;
    if (threadIdx.x == 0) {
        for (int i = 0; i < NATIVE_PROMPT_STAGES; i++) {
            barrier_init(&full[i], 1);
            barrier_init(&empty[i], NATIVE_PROMPT_WARPGROUPS * 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (warpgroup == NATIVE_PROMPT_WARPGROUPS) {
        fewer_registers<PROMPT_COPIER>();
        if (warp != NATIVE_PROMPT_WARPGROUPS * 4 || lane != 0)
            return;
#pragma unroll 1
        for (uint32_t i = blockIdx.x; i < tiles_m * tiles_n; i += gridDim.x) {
            place_of_tile(i, tiles_m, tiles_n, &m, &t);
            copy_f16_tile(ring, full, empty, at, x + (size_t)m * NATIVE_PROMPT_WARPGROUPS * chunks * PROMPT_SUBTILE,
                          w + (size_t)t * chunks * PROMPT_OUTPUTS_BYTES, chunks);
        }
        return;
    }
    more_registers<PROMPT_MORE>();
#pragma unroll 1
    for (uint32_t i = blockIdx.x; i < tiles_m * tiles_n; i += gridDim.x) {
        float total[PROMPT_SUMS];
        place_of_tile(i, tiles_m, tiles_n, &m, &t);
        const uint32_t block = m * NATIVE_PROMPT_WARPGROUPS + warpgroup, row = warp % 4 * 16 + lane / 4;
        multiply_tile(total, ring, full, empty, at, powers + (size_t)block * segments * 128 + row, segments);
        float *to = y + (size_t)(block * 64 + row) * n + t * NATIVE_PROMPT_OUTPUTS + lane % 4 * 2;
#pragma unroll
        for (int high = 0; high < 2; high++, to += (size_t)8 * n) {
            if (block * 64 + row + high * 8 >= rows)
                continue;
#pragma unroll
            for (int j = 0; j < NATIVE_PROMPT_OUTPUTS / 8; j++)
                *(float2 *)(to + j * 8) = make_float2(total[j * 4 + high * 2], total[j * 4 + high * 2 + 1]);
        }
    }
}

#endif
