/* y = x W' for 1 to 64 rows in the arithmetic `native` (device/native.h), W in 4 bits, for up to four weights that
   share the rows.

   Tiles: a block has 64 TILES columns, all rows (ROWS: 8, 16, 32 or 64) and one group of 2,048 of k; the blocks of a
   cluster have the groups of the same columns. Stages of 256 of k, which is one segment, in a ring. Two blocks a
   multiprocessor.
   Warps: TILES warpgroups multiply, 64 columns each: codes come from the ring, are decoded in registers and are the
   first operand of wgmma; rows are the second, in the ring. In one more warpgroup a single thread begins all copies.
   End: each block leaves its sums, times their powers of two, in shared memory; then the blocks of the cluster add them
   in the order of the groups, each block for a share of the tile's elements.

   Roofline, H200, 64 rows, the four products of a layer of an 8B model (193 million weights): 109 MB at 4.2 TB/s are 26
   us; 24.7 GFLOP at 790 TFLOP/s are 31 us; decoding takes about 12 instructions for 8 weights of a lane, 10 us of all
   schedulers. For 8 rows memory alone bounds it.

   Rejected: rows shared by blocks of other columns (multicast: 2 to 70 % slower), one block for all groups (gate and up
   3 % faster for 8 rows, the others up to 5 times slower), 4 tiles a block (1 us faster, for down and 64 rows). */
#include "device/cuda/native.cuh"

enum {
    SEGMENT_STEPS = MT_NATIVE_SEGMENT / MT_CUDA_NATIVE_STEP,
    GROUP_SEGMENTS = MT_NATIVE_GROUP / MT_NATIVE_SEGMENT,
    TILE_BYTES = SEGMENT_STEPS * MT_CUDA_NATIVE_BYTES /* of a segment */
};

#if __CUDA_ARCH__ >= 900

static __device__ inline uint32_t cluster_size(void)
{
    uint32_t blocks;
    asm("mov.u32 %0,%%cluster_nctaid.x;" : "=r"(blocks));
    return blocks;
}

/* *p in the shared memory of another block of the cluster. */
static __device__ inline float load_from_block(const float *p, uint32_t block)
{
    float v;
    asm volatile("{.reg .b32 at; mapa.shared::cluster.u32 at,%1,%2; ld.shared::cluster.f32 %0,[at];}"
                 : "=f"(v)
                 : "r"(shared_address(p)), "r"(block)
                 : "memory");
    return v;
}

/* Begins the copies of a block, which has `count` segments: weights of the first stages at once, rows once the kernel
   before has written them. w: of the first tile; tile_stride: bytes from there to the next. */
template <int ROWS, int TILES, int STAGES>
static __device__ inline void copy_stages(uint8_t *ring, uint64_t *full, uint64_t *empty, const uint8_t *w,
                                          uint64_t tile_stride, const uint8_t *x, const float *powers, int count)
{
    enum {
        STAGE = MT_CUDA_NATIVE_FEW_STAGE(ROWS, TILES),
        POWERS_AT = MT_CUDA_NATIVE_FEW_POWERS(ROWS),
        WEIGHTS_AT = MT_CUDA_NATIVE_FEW_WEIGHTS(ROWS),
        ROWS_BYTES = ROWS * MT_NATIVE_SEGMENT * 2,
        POWERS_BYTES = ROWS * 8
    };
    const auto copy_weights = [&](int i) {
        barrier_expect(&full[i % STAGES], ROWS_BYTES + POWERS_BYTES + TILES * TILE_BYTES);
        for (int t = 0; t < TILES; t++)
            fetch(ring + i % STAGES * STAGE + WEIGHTS_AT + t * TILE_BYTES,
                  w + t * tile_stride + (uint64_t)i * TILE_BYTES, TILE_BYTES, &full[i % STAGES]);
    };
    for (int i = 0; i < STAGES && i < count; i++)
        copy_weights(i);
    wait_for_last();
    for (int i = 0; i < count; i++) {
        uint8_t *stage = ring + i % STAGES * STAGE;
        if (i >= STAGES) {
            barrier_wait(&empty[i % STAGES], (i / STAGES - 1) & 1);
            copy_weights(i);
        }
        fetch(stage, x + (uint64_t)i * ROWS_BYTES, ROWS_BYTES, &full[i % STAGES]);
        fetch(stage + POWERS_AT, powers + (uint64_t)i * 2 * ROWS, POWERS_BYTES, &full[i % STAGES]);
    }
}

/* part[j * 4 + h]: row 8 j + 2 (lane % 4) + h % 2, column lane / 4 + h / 2 * 8 of the warp's 16. `factors` has one for
   each row. */
template <int N> static __device__ inline void scale_parts(float (&part)[N], const float *factors)
{
    const float2 *pairs = (const float2 *)factors + threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
        const float2 f = pairs[j * 4];
        part[j * 4] *= f.x, part[j * 4 + 1] *= f.y, part[j * 4 + 2] *= f.x, part[j * 4 + 3] *= f.y;
    }
}

/* Adds the products of a segment. `rows`: its tiles in shared memory; `weights`: the warpgroup's. */
template <int ROWS>
static __device__ inline void multiply_segment(float (&part)[ROWS / 2], const uint8_t *rows, const uint8_t *weights,
                                               bool anew)
{
    const uint32_t t = threadIdx.x % 128, column = t / 32 * 16 + t % 32 / 4;
    const uint64_t b = along(shared_address(rows));
    uint32_t a[2][4][4]; /* a step is decoded while tensor cores have the one before */
#pragma unroll
    for (int c = 0; c < SEGMENT_STEPS; c++) {
        const uint8_t *tile = weights + c * MT_CUDA_NATIVE_BYTES;
        const uint4 codes = ((const uint4 *)tile)[t];
        const uint32_t *pairs = (const uint32_t *)(tile + MT_CUDA_NATIVE_CODES) + column;
        const lane_scales scales = scales_of_lane(pairs[0], pairs[8]);
        decode_word(a[c & 1][0], codes.x, scales);
        decode_word(a[c & 1][1], codes.y, scales);
        decode_word(a[c & 1][2], codes.z, scales);
        decode_word(a[c & 1][3], codes.w, scales);
        products_begin();
#pragma unroll
        for (int j = 0; j < 4; j++)
            product_f16(part, a[c & 1][j], b + (c * ROWS * 128 + j * 32) / 16, !(anew && c == 0 && j == 0));
        products_commit();
        if (c + 1 < SEGMENT_STEPS)
            products_wait<1>();
        else
            products_wait();
    }
    settle(part);
}

/* y of the cluster's columns of weight j, from `column` on, by the sums that its blocks have left at
   `sums`[row][column]. */
template <int COLUMNS>
static __device__ inline void fold_groups(const mt_cuda_native &p, uint32_t j, uint32_t column, const float *sums,
                                          uint32_t threads)
{
    const uint32_t blocks = cluster_size();
    for (uint32_t i = block_of_cluster() * threads + threadIdx.x; i < p.m * COLUMNS; i += blocks * threads) {
        const uint32_t n = column + i % COLUMNS;
        if (n >= p.w[j].n)
            continue;
        float total = load_from_block(sums + i, 0);
        for (uint32_t b = 1; b < blocks; b++)
            total += load_from_block(sums + i, b);
        total *= p.w[j].unit;
        if (p.w[j].bias)
            total += p.w[j].bias[n];
        row_of(p.y[j], i / COLUMNS)[n] = total;
        if (p.add.data)
            row_of(p.add, i / COLUMNS)[n] += total;
    }
}

template <int ROWS, int TILES, int STAGES> static __device__ inline void multiply(const mt_cuda_native &p)
{
    enum {
        STAGE = MT_CUDA_NATIVE_FEW_STAGE(ROWS, TILES),
        COLUMNS = TILES * MT_CUDA_NATIVE_TILE,
        /* Registers that warpgroups have from the start, and what those that multiply get of the one that copies. With
           few rows none needs more. */
        EXCHANGE = ROWS >= 32,
        COPIER = 32,
        START = 65536 / MT_CUDA_NATIVE_FEW_BLOCKS / MT_CUDA_NATIVE_FEW_THREADS(TILES) / 8 * 8,
        MORE = (START * (TILES + 1) - COPIER) / TILES / 8 * 8
    };
    __shared__ uint64_t full[STAGES], empty[STAGES];
    uint8_t *ring = swizzled_memory();
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpgroup = warp / 4;
    const uint32_t group = block_of_cluster(), tile = blockIdx.x / cluster_size();
    const int segments = (int)(p.from.padded / MT_NATIVE_SEGMENT - group * GROUP_SEGMENTS);
    const int count = segments < GROUP_SEGMENTS ? segments : GROUP_SEGMENTS;
    uint32_t weight = 0;
    while (tile >= p.first[weight + 1])
        weight++;
    const uint32_t column = (tile - p.first[weight]) * COLUMNS;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(&full[i], 1);
            barrier_init(&empty[i], TILES * 128);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    start_next();
    if (warpgroup == TILES) {
        if (EXCHANGE)
            fewer_registers<COPIER>();
        if (warp == TILES * 4 && lane == 0)
            copy_stages<ROWS, TILES, STAGES>(ring, full, empty,
                                             native_step(p.w[weight], column, group * MT_NATIVE_GROUP),
                                             (uint64_t)p.w[weight].steps * MT_CUDA_NATIVE_BYTES,
                                             p.from.q + (uint64_t)group * MT_NATIVE_GROUP * ROWS * 2,
                                             p.from.turns + (uint64_t)group * GROUP_SEGMENTS * 2 * ROWS, count);
        __syncwarp();
        cluster_meet();
        cluster_meet();
        return;
    }
    if (EXCHANGE)
        more_registers<(MORE > 240 ? 240 : MORE)>();
    float part[ROWS / 2];
#pragma unroll
    for (int i = 0; i < ROWS / 2; i++)
        part[i] = 0;
    wait_for_last();
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const uint8_t *stage = ring + i % STAGES * STAGE;
        const float *ratios = (const float *)(stage + MT_CUDA_NATIVE_FEW_POWERS(ROWS));
        barrier_wait(&full[i % STAGES], i / STAGES & 1);
        if (i > 0)
            scale_parts(part, ratios);
        multiply_segment<ROWS>(part, stage, stage + MT_CUDA_NATIVE_FEW_WEIGHTS(ROWS) + warpgroup * TILE_BYTES, i == 0);
        if (i + 1 == count)
            scale_parts(part, ratios + ROWS);
        barrier_arrive(&empty[i % STAGES]);
    }
    /* All copies have arrived and all warps have read them: the ring is free for sums. */
    named_barrier(1, TILES * 128);
    float *sums = (float *)ring, *own = sums + lane % 4 * 2 * COLUMNS + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < ROWS / 2; i++)
        own[(i / 4 * 8 + i % 2) * COLUMNS + i / 2 % 2 * 8] = part[i];
    cluster_meet();
    fold_groups<COLUMNS>(p, weight, column, sums, TILES * 128);
    __syncwarp();
    cluster_meet(); /* a block's shared memory stays until the others have read its sums */
}

#else
template <int ROWS, int TILES, int STAGES> static __device__ inline void multiply(const mt_cuda_native &)
{
}
#endif

#define KERNEL_OF(rows, tiles, stages)                                                                         \
    extern "C" __global__ void __launch_bounds__(MT_CUDA_NATIVE_FEW_THREADS(tiles), MT_CUDA_NATIVE_FEW_BLOCKS) \
        mtk_native_few_##rows##_##tiles(const __grid_constant__ mt_cuda_native p)                              \
    {                                                                                                          \
        multiply<rows, tiles, stages>(p);                                                                      \
    }
MT_CUDA_NATIVE_FEW(KERNEL_OF)
