/* y[rows, n] = x[rows, k] W[n, k]' for 1 to 64 rows, W in 4 bits: docs/numerics.md, "The arithmetic native, proposed".
   n % (64 TILES) == 0; k a multiple of 2,048, up to 16,384 (8 blocks of a cluster).

   Tiles: a block has 64 TILES outputs, all rows (ROWS: 8, 16, 32 or 64, the rest zero) and one group of 2,048 of k; the
   blocks of a cluster have the groups of the same outputs. Stages of 256 of k, which is one segment, in a ring. Two
   blocks a multiprocessor.
   Warps: TILES warpgroups multiply, 64 outputs each: codes come from the ring, are decoded in registers and are the
   first operand of wgmma; rows are the second, in the ring. In one more warpgroup a single thread begins all copies.
   End: each block leaves its sums, times their powers of two, in shared memory; then the blocks of the cluster add them
   in the order of the groups, each block for a share of the tile's elements.

   Roofline, H200, 64 rows, the four products of a layer of an 8B model (193 million weights): 109 MB at 4.2 TB/s are 26
   us; 24.7 GFLOP at 790 TFLOP/s are 31 us; decoding takes about 12 instructions for 8 weights of a lane, 10 us of all
   schedulers. For 8 rows memory alone bounds it.

   Rejected: rows shared by blocks of other outputs (multicast: 2 to 70 % slower), one block for all groups (gate and up
   3 % faster for 8 rows, the others up to 5 times slower), 4 tiles a block (1 us faster, for down and 64 rows). */
#ifndef MT_BENCH_CUDA_MATMUL_W4_ROWS1_64_CUH
#define MT_BENCH_CUDA_MATMUL_W4_ROWS1_64_CUH

#include "pack.cuh"

/* Begins the copies of a block: weights of the first stages at once, rows once the kernel before has written them. */
template <int ROWS, int TILES, int STAGES>
static __device__ inline void copy_w4_stages(uint8_t *ring, uint64_t *full, uint64_t *empty, const uint8_t *w,
                                             const uint8_t *x, const float *powers, uint32_t k)
{
    enum {
        STAGE = NATIVE_FEW_STAGE(ROWS, TILES),
        POWERS_AT = NATIVE_FEW_POWERS_AT(ROWS),
        WEIGHTS_AT = NATIVE_FEW_WEIGHTS_AT(ROWS),
        ROWS_BYTES = ROWS * NATIVE_SEGMENT * 2,
        POWERS_BYTES = ROWS * 8,
        TILE_BYTES = NATIVE_SEGMENT_CHUNKS * NATIVE_TILE_BYTES
    };
    const size_t tile_stride = (size_t)(k / NATIVE_CHUNK) * NATIVE_TILE_BYTES;
    const auto copy_weights = [&](int i) {
        barrier_expect(&full[i % STAGES], ROWS_BYTES + POWERS_BYTES + TILES * TILE_BYTES);
        for (int t = 0; t < TILES; t++)
            fetch(ring + i % STAGES * STAGE + WEIGHTS_AT + t * TILE_BYTES, w + t * tile_stride + (size_t)i * TILE_BYTES,
                  TILE_BYTES, &full[i % STAGES]);
    };
    for (int i = 0; i < STAGES; i++)
        copy_weights(i);
    wait_for_last();
    for (int i = 0; i < NATIVE_GROUP_SEGMENTS; i++) {
        uint8_t *stage = ring + i % STAGES * STAGE;
        if (i >= STAGES) {
            barrier_wait(&empty[i % STAGES], (i / STAGES - 1) & 1);
            copy_weights(i);
        }
        fetch(stage, x + (size_t)i * ROWS_BYTES, ROWS_BYTES, &full[i % STAGES]);
        fetch(stage + POWERS_AT, powers + (size_t)i * 2 * ROWS, POWERS_BYTES, &full[i % STAGES]);
    }
}

/* part[j * 4 + h]: row 8 j + 2 (lane % 4) + h % 2, output lane / 4 + h / 2 * 8 of the warp's 16. `factors` has one for
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
    const uint32_t t = threadIdx.x % 128, output = t / 32 * 16 + t % 32 / 4;
    const uint64_t b = along(shared_address(rows));
    uint32_t a[2][4][4]; /* a chunk is decoded while tensor cores have the one before */
#pragma unroll
    for (int c = 0; c < NATIVE_SEGMENT_CHUNKS; c++) {
        const uint8_t *tile = weights + c * NATIVE_TILE_BYTES;
        const uint4 codes = ((const uint4 *)tile)[t];
        const uint32_t *pairs = (const uint32_t *)(tile + NATIVE_TILE_CODES) + output;
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
        if (c + 1 < NATIVE_SEGMENT_CHUNKS)
            products_wait<1>();
        else
            products_wait();
    }
    settle(part);
}

/* y of the cluster's tile, from the sums that its blocks have left at `sums`[row][output]. */
template <int OUTPUTS>
static __device__ inline void fold_groups(float *y, const float *sums, uint32_t rows, uint32_t n, uint32_t threads)
{
    const uint32_t blocks = cluster_size();
    for (uint32_t i = block_of_cluster() * threads + threadIdx.x; i < rows * OUTPUTS; i += blocks * threads) {
        float total = load_from_block(sums + i, 0);
        for (uint32_t b = 1; b < blocks; b++)
            total += load_from_block(sums + i, b);
        y[(size_t)(i / OUTPUTS) * n + i % OUTPUTS] = total;
    }
}

template <int ROWS, int TILES, int STAGES>
static __device__ inline void matmul_w4(const uint8_t *w, const uint8_t *x, const float *powers, float *y, uint32_t n,
                                        uint32_t k, uint32_t rows)
{
    enum {
        STAGE = NATIVE_FEW_STAGE(ROWS, TILES),
        OUTPUTS = TILES * NATIVE_TILE_OUTPUTS,
        /* Registers that warpgroups have from the start, and what those that multiply get of the one that copies. Where
           there are few rows nobody needs more. */
        EXCHANGE = ROWS >= 32,
        COPIER = 32,
        START = 65536 / NATIVE_FEW_BLOCKS / NATIVE_FEW_THREADS(TILES) / 8 * 8,
        MORE = (START * (TILES + 1) - COPIER) / TILES / 8 * 8
    };
    __shared__ uint64_t full[STAGES], empty[STAGES];
    uint8_t *ring = swizzled_memory();
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpgroup = warp / 4;
    const uint32_t group = block_of_cluster(), tile = blockIdx.x / cluster_size();
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(&full[i], 1);
            barrier_init(&empty[i], TILES * 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    start_next();
    if (warpgroup == TILES) {
        if (EXCHANGE)
            fewer_registers<COPIER>();
        if (warp == TILES * 4 && lane == 0)
            copy_w4_stages<ROWS, TILES, STAGES>(
                ring, full, empty,
                w + ((size_t)tile * TILES * (k / NATIVE_CHUNK) + group * (NATIVE_GROUP / NATIVE_CHUNK)) *
                        NATIVE_TILE_BYTES,
                x + (size_t)group * NATIVE_GROUP * ROWS * 2, powers + (size_t)group * NATIVE_GROUP_SEGMENTS * 2 * ROWS,
                k);
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
    for (int i = 0; i < NATIVE_GROUP_SEGMENTS; i++) {
        const uint8_t *stage = ring + i % STAGES * STAGE;
        const float *ratios = (const float *)(stage + NATIVE_FEW_POWERS_AT(ROWS));
        barrier_wait(&full[i % STAGES], i / STAGES & 1);
        if (i > 0)
            scale_parts(part, ratios);
        multiply_segment<ROWS>(
            part, stage, stage + NATIVE_FEW_WEIGHTS_AT(ROWS) + warpgroup * NATIVE_SEGMENT_CHUNKS * NATIVE_TILE_BYTES,
            i == 0);
        if (i + 1 == NATIVE_GROUP_SEGMENTS)
            scale_parts(part, ratios + ROWS);
        __syncwarp();
        if (lane == 0)
            barrier_arrive(&empty[i % STAGES]);
    }
    /* All copies have arrived and all warps have read them: the ring is free for sums. */
    named_barrier(1, TILES * 128);
    float *sums = (float *)ring, *own = sums + lane % 4 * 2 * OUTPUTS + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < ROWS / 2; i++)
        own[(i / 4 * 8 + i % 2) * OUTPUTS + i / 2 % 2 * 8] = part[i];
    cluster_meet();
    fold_groups<OUTPUTS>(y + tile * OUTPUTS, sums, rows, n, TILES * 128);
    cluster_meet(); /* nobody ends while others read its sums */
}

#define MATMUL_W4(rows_, tiles, stages)                                                                          \
    extern "C" __global__ void __launch_bounds__(NATIVE_FEW_THREADS(tiles), NATIVE_FEW_BLOCKS)                   \
        mtk_native_matmul_w4_rows##rows_##_tiles##tiles(const uint8_t *w, const uint8_t *x, const float *powers, \
                                                        float *y, uint32_t n, uint32_t k, uint32_t rows)         \
    {                                                                                                            \
        matmul_w4<rows_, tiles, stages>(w, x, powers, y, n, k, rows);                                            \
    }
NATIVE_FEW_KERNELS(MATMUL_W4)
#undef MATMUL_W4

#endif
