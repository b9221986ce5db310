/* Rows sorted by expert, in shares of up to 8 rows, with codes in groups of 64 (R4):

       up    h = act(x G') * (x U'), packed for down (R3): a block has 64 columns of a share's expert, of gate and of up
       down  y = h D': a block has 128 columns

   Roofline: memory, as an expert has few rows.
   Warps: a warp has a tile of 16 columns and a ring of its own, which one lane keeps filled with steps of 128 of k; the
   rows lie in shared memory for all warps of the block.
   Operands: columns on the left (16 x 32), rows on the right (32 x 8). */
#include "device/cuda/common/ring.cuh"
#include "device/cuda/products/product.cuh"
#include "device/cuda/rows/activation.cuh"
#include "device/cuda/rows/pack.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

enum { MEET_WARPS = MT_CUDA_MEET_WARPS, MEET_STAGES = MT_CUDA_MEET_STAGES, MEET_ROWS = 8 };

/* Eight rows in codes in shared memory: q, turns and sums of step after step. */
typedef struct meet_rows {
    uint8_t *q;
    float *turns, *sums;
} meet_rows;

/* Begins to copy a share's rows, which are neighbours: by one warp, a step of k a lane. */
static __device__ inline void fetch_share(const meet_rows &to, const mt_cuda_packed &from, uint32_t row, uint32_t steps,
                                          uint64_t *full)
{
    if (threadIdx.x == 0)
        barrier_expect(full, steps * (MEET_ROWS * (128 + 16 + 8)));
    __syncwarp();
    for (uint32_t step = threadIdx.x; step < steps; step += 32) {
        const uint64_t at = (uint64_t)step * from.rows + row;
        fetch(to.q + step * (MEET_ROWS * 128), from.q + at * 128, MEET_ROWS * 128, full);
        fetch(to.turns + step * (MEET_ROWS * 4), from.turns + at * 4, MEET_ROWS * 16, full);
        fetch(to.sums + step * (MEET_ROWS * 2), from.sums + at * 2, MEET_ROWS * 8, full);
    }
}

/* Copies a share's rows from anywhere (`row` says which), by the whole block, and waits for them. Where there are fewer
   than 8, the first is copied instead. */
static __device__ inline void gather_share(const meet_rows &to, const mt_cuda_packed &from, const uint32_t *row,
                                           const mt_cuda_share &share, uint32_t steps)
{
    static_assert(32 * MEET_WARPS % (MEET_ROWS * 8) == 0, "a thread has pieces of one row");
    const uint32_t t = threadIdx.x, r = t / 8 % MEET_ROWS, other = t % MEET_ROWS;
    const uint32_t at = row[share.row + (r < share.rows ? r : 0)];
    const uint32_t at_other = row[share.row + (other < share.rows ? other : 0)];
    const uint8_t *q = from.q + (uint64_t)at * 128 + (t % 8 ^ at % 8) * 16;
    for (uint32_t i = t; i < steps * (MEET_ROWS * 8); i += blockDim.x) {
        const uint32_t step = i / (MEET_ROWS * 8);
        copy_16(shared_address(to.q + step * (MEET_ROWS * 128) + r * 128 + (t % 8 ^ r) * 16),
                q + (uint64_t)step * from.rows * 128);
    }
    for (uint32_t i = t; i < steps * MEET_ROWS; i += blockDim.x) {
        const uint64_t place = (uint64_t)(i / MEET_ROWS) * from.rows + at_other;
        copy_16(shared_address(to.turns + i * 4), from.turns + place * 4);
        copy_small(shared_address(to.sums + i * 2), from.sums + place * 2, 8);
    }
    copy_commit();
    copy_wait<0>();
    __syncthreads();
}

/* Begins to copy a step of a tile. By one thread. */
template <int BITS>
static __device__ inline void fetch_step(uint8_t *slot, const mt_cuda_weight &w, uint32_t tile, uint32_t step,
                                         uint64_t *full)
{
    const uint64_t at = (uint64_t)tile * w.steps + step;
    barrier_expect(full, BITS * 256 + 128);
    fetch(slot, w.w + at * (BITS * 256), BITS * 256, full);
    fetch(slot + BITS * 256, w.scales + at * 128, 128, full);
}

/* Sums of columns lane / 4 and + 8 for rows lane % 4 * 2 and + 1: scales times links, biases times sums of groups. */
typedef struct meet_sums {
    float a[4], b[4];
} meet_sums;

template <int BITS>
static __device__ inline void meet_step(meet_sums *y, const uint8_t *slot, const meet_rows &rows, uint32_t step,
                                        bool is_signed)
{
    constexpr int WORDS = BITS / 4;
    const uint32_t lane = threadIdx.x % 32, column = lane / 4, row = lane % 8;
    uint4 low[WORDS], high[WORDS];
    unsigned x[2][4];
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        low[i] = ((const uint4 *)slot)[lane * WORDS + i];
        high[i] = ((const uint4 *)(slot + BITS * 128))[lane * WORDS + i];
    }
    const uint8_t *q = rows.q + step * (MEET_ROWS * 128) + row * 128;
    load_rows(x[0], shared_address(q + (lane / 8 ^ row) * 16));
    load_rows(x[1], shared_address(q + ((4 + lane / 8) ^ row) * 16));
    const float4 *turns = (const float4 *)rows.turns + step * MEET_ROWS + lane % 4 * 2;
    const float4 mul[2] = {turns[0], turns[1]};
    const float4 sx = ((const float4 *)rows.sums)[step * (MEET_ROWS / 2) + lane % 4]; /* of two rows, two groups each */
    const unsigned *pairs = (const unsigned *)(slot + BITS * 256) + column;
#pragma unroll
    for (int link = 0; link < 2; link++) {
        const unsigned both[2] = {pairs[link * 16], pairs[link * 16 + 8]};
        int sum[4] = {MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS};
        unsigned a[4];
        tile_codes<BITS>(a, low, high, link * 2);
        multiply_codes(sum, a, x[link], BITS == 4 || is_signed);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float on = link ? mul[e % 2].z : mul[e % 2].x;
            sum[e] = __float_as_int(fmaf(on, __int_as_float(sum[e]), turn_on_add(on)));
        }
        tile_codes<BITS>(a, low, high, link * 2 + 1);
        multiply_codes(sum, a, x[link] + 2, BITS == 4 || is_signed);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float end = link ? mul[e % 2].w : mul[e % 2].y;
            const float group = e % 2 ? link ? sx.w : sx.z : link ? sx.y : sx.x;
            y->a[e] =
                fmaf(__uint_as_float(both[e / 2] << 16), fmaf(end, __int_as_float(sum[e]), turn_end_add(end)), y->a[e]);
            y->b[e] = fmaf(__uint_as_float(both[e / 2] & 0xffff0000u), group, y->b[e]);
        }
    }
}

/* Combines the block's columns of gate and up, and packs the result. */
static __device__ inline void meet_gate(const mt_cuda_meet &p, const mt_cuda_share &share,
                                        const float (&both)[2][MEET_ROWS][64])
{
    __shared__ float4 gated[MEET_ROWS][64 / 32 * 9];
    for (uint32_t i = threadIdx.x; i < MEET_ROWS * 64; i += blockDim.x)
        ((float *)gated[i / 64])[apart(i % 64)] =
            i / 64 < share.rows ? glu_of(p.act, p.limit, p.offset, both[0][i / 64][i % 64], both[1][i / 64][i % 64])
                                : 0;
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    const uint32_t row = threadIdx.x % 16 / 2, block = threadIdx.x % 2;
    mt_cuda_pack pack;
    pack.to = p.to;
    pack.group = 64;
    pack.wide = p.wide;
    float x[32];
    load_apart(x, (const float *)gated[row], block);
    pack_block(pack, share.row + row, blockIdx.x * 2 + block, x, threadIdx.x < 16 && row < share.rows);
}

template <int BITS, bool UP> static __device__ inline void meet_share(const mt_cuda_meet &p)
{
    extern __shared__ __align__(128) uint8_t meet_memory[];
    __shared__ uint64_t full[MEET_WARPS][MEET_STAGES], rows_full;
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, which = UP ? warp % 2 : 0;
    const uint32_t tile = UP ? blockIdx.x * (MEET_WARPS / 2) + warp / 2 : blockIdx.x * MEET_WARPS + warp;
    if (lane == 0) {
        for (uint32_t i = 0; i < MEET_STAGES; i++)
            barrier_init(&full[warp][i], 1);
        if (warp == 0)
            barrier_init(&rows_full, 1);
        barriers_are_made();
    }
    __syncthreads();
    start_next();
    wait_for_last();
    const uint32_t count = *p.shares[0].count;
    const mt_cuda_share share =
        p.shares[0].share
            [blockIdx.y]; /* read before it is known whether it exists, so that it arrives together with the count */
    if (blockIdx.y >= count)
        return;
    const mt_cuda_weight w = p.shares[which].experts[share.expert];
    const uint32_t steps = w.steps;
    uint8_t *stages = meet_memory + warp * MT_CUDA_MEET_RING(BITS);
    meet_rows rows;
    rows.q = meet_memory + MEET_WARPS * MT_CUDA_MEET_RING(BITS);
    rows.turns = (float *)(rows.q + steps * (MEET_ROWS * 128));
    rows.sums = rows.turns + steps * (MEET_ROWS * 4);
    const bool there = tile * 16 < w.n;
    if (there && lane == 0)
        for (uint32_t s = 0; s < min((uint32_t)MEET_STAGES, steps); s++)
            fetch_step<BITS>(stages + s * (BITS * 256 + 128), w, tile, s, &full[warp][s]);
    if (UP) {
        gather_share(rows, p.from, p.row, share, steps);
    } else {
        if (warp == 0)
            fetch_share(rows, p.from, share.row, steps, &rows_full);
        barrier_wait(&rows_full, 0);
    }
    meet_sums y = {};
    ring place = {0, 0};
    for (uint32_t s = 0; there && s < steps; s++) {
        uint8_t *at = stages + place.stage * (BITS * 256 + 128);
        barrier_wait(&full[warp][place.stage], place.parity);
        meet_step<BITS>(&y, at, rows, s, w.format != MT_FORMAT_AFFINE);
        __syncwarp();
        if (lane == 0 && s + MEET_STAGES < steps)
            fetch_step<BITS>(at, w, tile, s + MEET_STAGES, &full[warp][place.stage]);
        step_ring(place, MEET_STAGES);
    }
    __shared__ float both[2][UP ? MEET_ROWS : 1][64];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const uint32_t n = tile * 16 + lane / 4 + e / 2 * 8, row = lane % 4 * 2 + e % 2;
        float v = w.biased ? y.a[e] + y.b[e] : y.a[e];
        v = w.bias && n < w.n ? v + w.bias[n] : v;
        if (UP)
            both[which][row % (UP ? MEET_ROWS : 1)][warp / 2 * 16 + lane / 4 + e / 2 * 8] = v;
        else if (n < w.n && row < share.rows)
            row_of(p.y, share.row + row)[n] = v;
    }
    if constexpr (UP) {
        __syncthreads();
        meet_gate(p, share, both);
    }
}

#else
template <int BITS, bool UP> static __device__ inline void meet_share(const mt_cuda_meet &p)
{
}
#endif

#define MEET(name, bits, up)                                                               \
    extern "C" __global__ void __launch_bounds__(32 * MT_CUDA_MEET_WARPS)                  \
        mtk_experts_##name##_w##bits##_g64_rows1_8(const __grid_constant__ mt_cuda_meet p) \
    {                                                                                      \
        meet_share<bits, up>(p);                                                           \
    }
MEET(up, 4, true)
MEET(up, 8, true)
MEET(down, 4, false)
MEET(down, 8, false)
