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

#else
KERNEL(wide_halves)(const __grid_constant__ mt_cuda_many p)
{
}
#endif
