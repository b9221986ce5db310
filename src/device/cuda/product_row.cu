/* One row against 4-bit codes with groups of 64, at the memory's pace. A warp has eight columns and all of k: its codes
   come from memory to its registers some steps ahead, those of the first steps while the kernel before still runs. Four
   threads have a column, and of each step of 128 of k every fourth word: dots are exact integers, however they are
   added. Two of the four then make the two links of the step, and one folds them in R4's order, while its neighbour
   folds the biases. So the bits are those of every other kernel. */
#include "device/cuda/common.cuh"

enum { ROW_WARPS = MT_CUDA_ROW_WARPS };

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

/* Which weight a tile of 16 columns is of; the tile becomes one of its own. */
static __device__ inline uint32_t row_weight(const mt_cuda_few &p, uint32_t *tile)
{
    uint32_t i = 0;
    while (i + 1 < p.count && *tile >= p.first[i + 1])
        i++;
    *tile -= p.first[i];
    return i;
}

/* The row in shared memory: of each step, for each of four threads, the eight words it multiplies; turns; sums. */
typedef struct row_room {
    unsigned *x;
    const float *turns, *sums;
} row_room;

static __device__ inline row_room take_row(const mt_cuda_few &p, unsigned *raw, uint32_t steps)
{
    float *turns = (float *)(raw + steps * 32), *sums = turns + steps * 4;
    for (uint32_t i = threadIdx.x; i < steps * 32; i += blockDim.x) {
        const uint32_t word = i % 32, quarter = word % 4, half = word / 4 % 2, block = word / 8;
        raw[i / 32 * 32 + quarter * 8 + block * 2 + half] = ((const unsigned *)p.from.q)[i];
    }
    for (uint32_t i = threadIdx.x; i < steps * 4; i += blockDim.x)
        turns[i] = p.from.turns[i];
    for (uint32_t i = threadIdx.x; i < steps * 2; i += blockDim.x)
        sums[i] = p.from.sums[i];
    return {raw, turns, sums};
}

/* What a thread adds up of a step: even threads of a column scales times links, odd ones biases times sums. */
static __device__ inline float row_step(float acc, uint4 codes, unsigned pair, const row_room &room, uint32_t step)
{
    const uint32_t quarter = threadIdx.x % 4, link = quarter / 2;
    const bool odd = quarter % 2;
    const unsigned words[4] = {codes.x, codes.y, codes.z, codes.w};
    const int4 low = ((const int4 *)room.x)[step * 8 + quarter * 2],
               high = ((const int4 *)room.x)[step * 8 + quarter * 2 + 1];
    const int x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    int dot[4];
#pragma unroll
    for (int ks = 0; ks < 4; ks++)
        dot[ks] = __dp4a((int)(words[ks] & 0x0f0f0f0fu), x[ks * 2],
                         __dp4a((int)(words[ks] >> 4 & 0x0f0f0f0fu), x[ks * 2 + 1], 0));
    int first = link ? dot[2] : dot[0], second = link ? dot[3] : dot[1];
    first += __shfl_xor_sync(0xffffffffu, link ? dot[0] : dot[2], 2);
    second += __shfl_xor_sync(0xffffffffu, link ? dot[1] : dot[3], 2);
    first += __shfl_xor_sync(0xffffffffu, first, 1);
    second += __shfl_xor_sync(0xffffffffu, second, 1);
    const float2 mul = ((const float2 *)room.turns)[step * 2 + link], sx = ((const float2 *)room.sums)[step];
    const float turned = fmaf(mul.x, __int_as_float(MT_DOT_BITS + first), turn_on_add(mul.x));
    const float t = fmaf(mul.y, __int_as_float(__float_as_int(turned) + second), turn_end_add(mul.y));
    const float other = __shfl_xor_sync(0xffffffffu, t, 2);
    const unsigned other_pair = __shfl_xor_sync(0xffffffffu, pair, 2);
    const unsigned pairs[2] = {link ? other_pair : pair, link ? pair : other_pair};
    const float links[2] = {odd ? sx.x : link ? other : t, odd ? sx.y : link ? t : other};
#pragma unroll
    for (int l = 0; l < 2; l++)
        acc = fmaf(__uint_as_float(odd ? pairs[l] & 0xffff0000u : pairs[l] << 16), links[l], acc);
    return acc;
}

/* AHEAD: steps that are on their way. */
template <int AHEAD> static __device__ inline void row_product(const mt_cuda_few &p)
{
    extern __shared__ __align__(16) unsigned row_raw[];
    const uint32_t item = blockIdx.x * ROW_WARPS + threadIdx.x / 32, lane = threadIdx.x % 32, column = lane / 4;
    const uint32_t tiles = p.first[p.count], steps = p.from.padded / 128, half = item % 2;
    uint32_t tile = item / 2 < tiles ? item / 2 : tiles - 1;
    const uint32_t which = row_weight(p, &tile);
    const mt_cuda_weight &w = p.w[which];
    const uint4 *codes = (const uint4 *)(w.w + ((uint64_t)tile * steps * 2 + half) * 512) + lane;
    const unsigned *pairs =
        (const unsigned *)w.scales + ((uint64_t)tile * w.groups + lane % 4 / 2) * 16 + half * 8 + column;
    uint4 code[AHEAD];
    unsigned pair[AHEAD];
#pragma unroll
    for (uint32_t i = 0; i < AHEAD; i++) {
        code[i] = i < steps ? __ldcs(codes + i * 64) : make_uint4(0, 0, 0, 0);
        pair[i] = i < steps ? __ldcs(pairs + i * 32) : 0;
    }
    start_next();
    wait_for_last();
    const row_room room = take_row(p, row_raw, steps);
    __syncthreads();
    float acc = 0;
    for (uint32_t first = 0; first < steps; first += AHEAD)
#pragma unroll
        for (uint32_t i = 0; i < AHEAD; i++) {
            const uint32_t next = first + AHEAD + i;
            const uint4 now = code[i];
            const unsigned now_pair = pair[i];
            if (next < steps) {
                code[i] = __ldcs(codes + next * 64);
                pair[i] = __ldcs(pairs + next * 32);
            }
            if (first + i < steps)
                acc = row_step(acc, now, now_pair, room, first + i);
        }
    const float bias = __shfl_xor_sync(0xffffffffu, acc, 1);
    const uint32_t n = tile * 16 + half * 8 + column;
    if (lane % 4 || item / 2 >= tiles || n >= w.n)
        return;
    float y = w.biased ? acc + bias : acc;
    y = w.bias ? y + w.bias[n] : y;
    p.y[which].data[n] = y;
    if (p.add.data)
        p.add.data[n] += y;
}

#else
template <int AHEAD> static __device__ inline void row_product(const mt_cuda_few &p)
{
}
#endif

/* Few columns want much on its way for each of them, many columns many warps. */
extern "C" __global__ void __launch_bounds__(32 * ROW_WARPS, 4) mtk_row_deep(const __grid_constant__ mt_cuda_few p)
{
    row_product<8>(p);
}

extern "C" __global__ void __launch_bounds__(32 * ROW_WARPS, 6) mtk_row_wide(const __grid_constant__ mt_cuda_few p)
{
    row_product<4>(p);
}
