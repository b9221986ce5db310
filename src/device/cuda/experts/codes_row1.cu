/* The experts of one row, with codes in groups of 64 (R4):

       up    h = act(x G') * (x U'), packed for down (R3): a block has 64 columns of one expert, of gate and of up
       down  y = sum over experts of weight * (h D'): a block has 16 columns of all experts, a warp each, and adds up
             their results by rank (R9)

   Roofline: memory, and how soon the first copy begins: a warp begins to copy all of its tile of 16 columns, in some
   parts, before it multiplies any of it.
   Operands: columns on the left (16 x 32); all 8 columns of the right operand (32 x 8) are the row. So four lanes hold
   the same column: even ones column lane / 4, odd ones that + 8; the lower two of four fold xs * dot and scales, the
   upper two sums of groups and biases. */
#include "device/cuda/products/product.cuh"
#include "device/cuda/rows/activation.cuh"
#include "device/cuda/rows/pack.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

/* A row in codes in shared memory: as params.h has it for one. */
typedef struct chosen_row {
    uint8_t *q;
    float *turns, *sums;
} chosen_row;

static __device__ inline chosen_row chosen_row_at(uint8_t *at, uint32_t steps)
{
    chosen_row row;
    row.q = at;
    row.turns = (float *)(at + steps * 128);
    row.sums = row.turns + steps * 4;
    return row;
}

/* Has so many threads copy a row, the one at `at` of those that are one after the other. */
static __device__ inline void fetch_row(const chosen_row &to, const mt_cuda_packed &from, uint32_t at, uint32_t steps,
                                        uint32_t thread, uint32_t threads)
{
    const uint64_t step = (uint64_t)at * steps;
    for (uint32_t i = thread; i < steps * 8; i += threads)
        copy_16(shared_address(to.q + i * 16), from.q + step * 128 + i * 16);
    for (uint32_t i = thread; i < steps; i += threads) {
        copy_16(shared_address(to.turns + i * 4), from.turns + (step + i) * 4);
        copy_small(shared_address(to.sums + i * 2), from.sums + (step + i) * 2, 8);
    }
    copy_commit();
}

/* Begins to copy a tile: codes, then scales, in the order of the weight. By one thread. */
template <int BITS>
static __device__ inline void fetch_tile(uint8_t *to, const uint8_t *codes, const uint8_t *scales, uint32_t tile,
                                         uint32_t steps, uint64_t *full)
{
    const uint64_t at = (uint64_t)tile * steps;
    const uint32_t each = (steps + MT_CUDA_CHOSEN_PARTS - 1) / MT_CUDA_CHOSEN_PARTS;
    for (uint32_t first = 0; first < steps; first += each, full++) {
        const uint32_t size = min(each, steps - first);
        barrier_expect(full, size * (BITS * 256 + 128));
        fetch(to + first * (BITS * 256), codes + (at + first) * (BITS * 256), size * (BITS * 256), full);
        fetch(to + steps * (BITS * 256) + first * 128, scales + (at + first) * 128, size * 128, full);
    }
}

/* A step of 128 of k, folded into the lane's sum. */
template <int BITS>
static __device__ inline float chosen_step(float y, const uint8_t *codes, const unsigned *pairs, const chosen_row &row,
                                           uint32_t step, bool is_signed)
{
    constexpr int WORDS = BITS / 4;
    const uint32_t lane = threadIdx.x % 32, column = lane % 2 * 8 + lane / 4;
    const bool biases = lane % 4 >= 2;
    uint4 low[WORDS], high[WORDS];
    unsigned x[2][4];
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        low[i] = ((const uint4 *)codes)[lane * WORDS + i];
        high[i] = ((const uint4 *)(codes + BITS * 128))[lane * WORDS + i];
    }
    load_rows(x[0], shared_address(row.q + step * 128 + lane / 8 * 16));
    load_rows(x[1], shared_address(row.q + step * 128 + 64 + lane / 8 * 16));
    const float4 mul = ((const float4 *)row.turns)[step];
    const float2 sx = ((const float2 *)row.sums)[step];
#pragma unroll
    for (int link = 0; link < 2; link++) {
        const float on = link ? mul.z : mul.x, end = link ? mul.w : mul.y;
        int sum[4] = {MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS};
        unsigned a[4];
        tile_codes<BITS>(a, low, high, link * 2);
        multiply_codes(sum, a, x[link], BITS == 4 || is_signed);
#pragma unroll
        for (int e = 0; e < 4; e += 2)
            sum[e] = __float_as_int(fmaf(on, __int_as_float(sum[e]), turn_on_add(on)));
        tile_codes<BITS>(a, low, high, link * 2 + 1);
        multiply_codes(sum, a, x[link] + 2, BITS == 4 || is_signed);
        const float dot = fmaf(end, __int_as_float(lane % 2 ? sum[2] : sum[0]), turn_end_add(end));
        const unsigned both = pairs[link * 16 + column];
        y = fmaf(__uint_as_float(biases ? both & 0xffff0000u : both << 16), biases ? link ? sx.y : sx.x : dot, y);
    }
    return y;
}

/* The result of a tile: column lane % 2 * 8 + lane / 4, in the lower two of each four lanes. */
template <int BITS>
static __device__ inline float chosen_tile(const uint8_t *tile, const chosen_row &row, const mt_cuda_weight &w,
                                           uint64_t *full, const float *bias, uint32_t first)
{
    const uint32_t lane = threadIdx.x % 32, steps = w.steps;
    const uint32_t each = (steps + MT_CUDA_CHOSEN_PARTS - 1) / MT_CUDA_CHOSEN_PARTS;
    const bool is_signed = w.format != MT_FORMAT_AFFINE;
    float y = 0;
    for (uint32_t begin = 0; begin < steps; begin += each, full++) {
        barrier_wait(full, 0);
#pragma unroll 4
        for (uint32_t step = begin; step < min(begin + each, steps); step++)
            y = chosen_step<BITS>(y, tile + step * (BITS * 256),
                                  (const unsigned *)(tile + steps * (BITS * 256) + step * 128), row, step, is_signed);
    }
    const float above = __shfl_xor_sync(0xffffffffu, y, 2);
    y = w.biased ? y + above : y;
    return bias ? y + bias[first + lane % 2 * 8 + lane / 4] : y;
}

/* The barriers of a warp's tile. */
static __device__ inline void begin_tile(uint64_t *full)
{
    if (threadIdx.x % 32 == 0) {
        for (uint32_t i = 0; i < MT_CUDA_CHOSEN_PARTS; i++)
            barrier_init(&full[i], 1);
        barriers_are_made();
    }
    __syncwarp();
}

template <int BITS> static __device__ inline void chosen_up(const mt_cuda_chosen &p)
{
    extern __shared__ __align__(128) uint8_t chosen_memory[];
    __shared__ uint64_t full[2 * MT_CUDA_CHOSEN_TILES][MT_CUDA_CHOSEN_PARTS];
    __shared__ float both[2][MT_CUDA_CHOSEN_TILES * 16];
    __shared__ float4 gated[MT_CUDA_CHOSEN_TILES * 16 / 32 * 9];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, steps = p.w.steps, which = warp % 2;
    const uint32_t tile = blockIdx.x * MT_CUDA_CHOSEN_TILES + warp / 2, rank = blockIdx.y;
    uint8_t *own = chosen_memory + warp * MT_CUDA_CHOSEN_TILE(steps, BITS);
    uint8_t *behind = chosen_memory + 2 * MT_CUDA_CHOSEN_TILES * MT_CUDA_CHOSEN_TILE(steps, BITS);
    const chosen_row row = chosen_row_at(behind, steps);
    const uint64_t *pointers = (const uint64_t *)(behind + MT_CUDA_CHOSEN_ROW(steps));
    /* where experts lie, before it is known which: w, scales and bias, with which an expert begins */
    for (uint32_t i = threadIdx.x; i < 2 * p.count * MT_CUDA_CHOSEN_POINTERS; i += blockDim.x) {
        const uint32_t e = i / MT_CUDA_CHOSEN_POINTERS % p.count;
        const uint64_t *from = (const uint64_t *)(p.experts[i / MT_CUDA_CHOSEN_POINTERS / p.count] + e);
        copy_small(shared_address(pointers + i), from + i % MT_CUDA_CHOSEN_POINTERS, 8);
    }
    copy_commit();
    begin_tile(full[warp]);
    copy_wait<0>();
    __syncthreads();
    wait_for_last();
    start_next(); /* only now: the next kernel reads which experts these are */
    const uint32_t expert = p.expert[rank];
    const uint64_t *at = pointers + (which * p.count + expert) * MT_CUDA_CHOSEN_POINTERS;
    if (lane == 0)
        fetch_tile<BITS>(own, (const uint8_t *)at[0], (const uint8_t *)at[1], tile, steps, full[warp]);
    fetch_row(row, p.from, 0, steps, threadIdx.x, blockDim.x);
    copy_wait<0>();
    __syncthreads();
    const float y = chosen_tile<BITS>(own, row, p.w, full[warp], (const float *)at[2], tile * 16);
    if (lane % 4 < 2)
        both[which][warp / 2 * 16 + lane % 2 * 8 + lane / 4] = y;
    __syncthreads();
    if (threadIdx.x < MT_CUDA_CHOSEN_TILES * 16)
        ((float *)gated)[apart(threadIdx.x)] =
            glu_of(p.act, p.limit, p.offset, both[0][threadIdx.x], both[1][threadIdx.x]);
    __syncthreads();
    if (warp > 0)
        return;
    constexpr uint32_t BLOCKS = MT_CUDA_CHOSEN_TILES * 16 / 32;
    const uint32_t inner_steps = p.to.padded / 128;
    mt_cuda_pack pack;
    pack.to = {p.to.q + rank * inner_steps * 128, p.to.turns + rank * inner_steps * 4,
               p.to.sums + rank * inner_steps * 2, 1, p.to.padded};
    pack.group = 64;
    pack.wide = p.wide;
    float x[32];
    load_apart(x, (const float *)gated, lane % BLOCKS);
    pack_block(pack, 0, blockIdx.x * BLOCKS + lane % BLOCKS, x, lane < BLOCKS);
}

template <int BITS> static __device__ inline void chosen_down(const mt_cuda_chosen &p)
{
    extern __shared__ __align__(128) uint8_t chosen_memory[];
    __shared__ uint64_t full[MT_CUDA_CHOSEN_MOST][MT_CUDA_CHOSEN_PARTS];
    __shared__ float result[MT_CUDA_CHOSEN_MOST][16];
    const uint32_t rank = threadIdx.x / 32, lane = threadIdx.x % 32, steps = p.w.steps, tile = blockIdx.x;
    uint8_t *own = chosen_memory + rank * MT_CUDA_CHOSEN_TILE(steps, BITS);
    const chosen_row row = chosen_row_at(chosen_memory + p.top_k * MT_CUDA_CHOSEN_TILE(steps, BITS) +
                                             rank * ((MT_CUDA_CHOSEN_ROW(steps) + 15) / 16 * 16),
                                         steps);
    start_next();
    begin_tile(full[rank]);
    /* chosen_up lets this kernel begin only when they are chosen: so experts come while those before are computed */
    const mt_cuda_weight *w = p.experts[0] + __ldcg(p.expert + rank);
    const float *bias = w->bias;
    if (lane == 0)
        fetch_tile<BITS>(own, w->w, w->scales, tile, steps, full[rank]);
    wait_for_last();
    fetch_row(row, p.from, rank, steps, lane, 32);
    copy_wait<0>();
    __syncwarp();
    const float y = chosen_tile<BITS>(own, row, p.w, full[rank], bias, tile * 16);
    if (lane % 4 < 2)
        result[rank][lane % 2 * 8 + lane / 4] = y;
    __syncthreads();
    const uint32_t n = tile * 16 + threadIdx.x;
    if (threadIdx.x >= 16 || n >= p.w.n)
        return;
    float sum = 0;
    for (uint32_t r = 0; r < p.top_k; r++)
        sum = fmaf(p.weight[r], result[r][threadIdx.x], sum);
    p.y.data[n] = sum;
    if (p.add.data)
        p.add.data[n] += sum;
}

#else
template <int BITS> static __device__ inline void chosen_up(const mt_cuda_chosen &p)
{
}
template <int BITS> static __device__ inline void chosen_down(const mt_cuda_chosen &p)
{
}
#endif

#define CHOSEN(bits)                                                                  \
    extern "C" __global__ void __launch_bounds__(64 * MT_CUDA_CHOSEN_TILES, 1)        \
        mtk_experts_up_w##bits##_g64_row1(const __grid_constant__ mt_cuda_chosen p)   \
    {                                                                                 \
        chosen_up<bits>(p);                                                           \
    }                                                                                 \
    extern "C" __global__ void __launch_bounds__(32 * MT_CUDA_CHOSEN_MOST)            \
        mtk_experts_down_w##bits##_g64_row1(const __grid_constant__ mt_cuda_chosen p) \
    {                                                                                 \
        chosen_down<bits>(p);                                                         \
    }
CHOSEN(4)
CHOSEN(8)
