/* Many rows against codes (R4), on tensor cores. A block has 128 rows and 128 columns, a warp 64 and 32 of them: all of
   a weight's groups in their order, each link's sums in the tensor cores' registers, so that the bits are those of
   every other kernel. Blocks stay and take tiles in turns; a ring in shared memory holds steps of 128 of k, which are
   copied some steps ahead, across the end of a tile.

   What bounds it is not the tensor cores but the instructions around them: with groups of 64 an element has four
   fused multiply-adds for each two products of 32. So there is no branch inside a step (beyond k everything is 0, and
   adds nothing), and addresses are a few offsets that never change. */
#include "device/cuda/products/product.cuh"

enum { MANY_THREADS = 256 };

/* A stage: rows, their turns and sums; codes and scales of eight tiles of 16 columns. */
template <int BITS, int GROUP> struct stage {
    enum {
        EACH = 128 / GROUP,
        TURNS = MT_CUDA_MANY * 128,
        SUMS = TURNS + MT_CUDA_MANY * 16,
        CODES = SUMS + MT_CUDA_MANY * EACH * 4,
        SCALES = CODES + 8 * BITS * 256,
        BYTES = SCALES + 8 * EACH * 16 * 8
    };
};

/* Where the next copies of a thread begin, in bytes from the beginning of rows, codes and scales. */
typedef struct many_source {
    uint32_t q, codes, scales;
    int tiles;   /* that there are from the thread's first piece of codes on */
    int groups;  /* likewise of its piece of scales, 0 or less: zeros; */
    bool scaled; /* it has such a piece */
} many_source;

template <int BITS, int GROUP>
static __device__ inline many_source many_source_at(const mt_cuda_many &p, const many_tile &t)
{
    enum { EACH = stage<BITS, GROUP>::EACH, PIECES = BITS * 16 }; /* PIECES: of codes of a tile */
    const mt_cuda_weight &w = many_weight(p, t);
    const uint32_t n = threadIdx.x, pieces = w.pairs == MT_SCALE_F32 ? 8 : 4,
                   tile = n / (EACH * pieces); /* of a group */
    const uint32_t tiles = (w.n + 31) / 32 * 2 - t.column, within = n % (EACH * pieces);
    return {t.row * 128,
            ((t.column + n / PIECES) * w.steps * PIECES + n % PIECES) * 16,
            ((t.column + tile) * w.groups * pieces + within) * 16,
            (int)tiles - (int)(n / PIECES),
            (int)w.groups - (int)(within / pieces),
            tile < 8 && tile < tiles};
}

/* Everything of a step, a few pieces of 16 bytes a thread; then on to the next step. */
template <int BITS, int GROUP>
static __device__ inline void many_fetch(const mt_cuda_many &p, const many_tile &t, many_source *from, unsigned to)
{
    typedef stage<BITS, GROUP> S;
    enum { TILES = MANY_THREADS / (BITS * 16) }; /* that all threads together have a piece of */
    const mt_cuda_weight &w = many_weight(p, t);
    const uint32_t n = threadIdx.x;
    const uint8_t *q = p.from.q + from->q + n * 16, *codes = w.w + from->codes;
    to += n * 16;
#pragma unroll
    for (int i = 0; i < 4; i++)
        copy_16(to + i * MANY_THREADS * 16, q + i * MANY_THREADS * 16);
    if (n < MT_CUDA_MANY)
        copy_16(to + S::TURNS, (const uint8_t *)p.from.turns + from->q / 8 + n * 16);
    if (n < MT_CUDA_MANY * S::EACH / 4)
        copy_16(to + S::SUMS, (const uint8_t *)p.from.sums + from->q / 32 * S::EACH + n * 16);
#pragma unroll
    for (int i = 0; i < 8 / TILES; i++)
        if (i * TILES < from->tiles)
            copy_16(to + S::CODES + i * MANY_THREADS * 16, codes + i * TILES * w.steps * (BITS * 256));
    if (from->scaled)
        copy_or_clear(to + S::SCALES, w.scales + from->scales, from->groups > 0);
    copy_commit();
    from->q += p.from.rows * 128;
    from->codes += BITS * 256;
    from->scales += S::EACH * (w.pairs == MT_SCALE_F32 ? 128 : 64);
    from->groups -= S::EACH;
}

/* d = start + q (16 rows x 32) times codes (32 x 8 columns) */
template <bool SIGNED>
static __device__ inline void many_multiply(int d[4], const unsigned q[4], const unsigned code[2], const int start[4])
{
    if (SIGNED)
        mma_s8_s8_ordered(d, q, code[0], code[1], start);
    else
        mma_s8_u8_ordered(d, q, code[0], code[1], start);
}

/* What a thread reads of every stage, in bytes from its beginning: of 16 rows i rows lane / 4 and + 8, of 8 columns j
   columns lane % 4 * 2 and + 1. */
typedef struct many_lane {
    uint32_t q, turns, sums, codes, scales;
} many_lane;

template <int BITS, int GROUP> static __device__ inline many_lane many_lane_at(uint8_t pairs)
{
    typedef stage<BITS, GROUP> S;
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp % 2 * 64, column = warp / 2 * 32;
    const uint32_t from = row + lane % 16, r = row + lane / 4, pair = pairs == MT_SCALE_F32 ? 8 : 4;
    return {from * 128 + (lane / 16 ^ from % 8) * 16, S::TURNS + r * 16, S::SUMS + r * S::EACH * 4,
            S::CODES + column / 8 * (BITS * 128) + lane * (BITS * 4),
            S::SCALES + (column / 16 * S::EACH * 16 + lane % 4 * 2) * pair};
}

/* Codes of a lane for 64 of k, eight columns. */
template <int BITS> static __device__ inline void many_codes(unsigned code[2][2], const uint8_t *at)
{
    if (BITS == 4) {
        const uint2 w = *(const uint2 *)at;
        code[0][0] = w.x & 0x0f0f0f0fu;
        code[0][1] = w.x >> 4 & 0x0f0f0f0fu;
        code[1][0] = w.y & 0x0f0f0f0fu;
        code[1][1] = w.y >> 4 & 0x0f0f0f0fu;
    } else {
        const uint4 w = *(const uint4 *)at;
        code[0][0] = w.x;
        code[0][1] = w.y;
        code[1][0] = w.z;
        code[1][1] = w.w;
    }
}

typedef struct many_sums {
    float a[4][4][4], b[4][4][4];
} many_sums;

/* Two scales of each of four times eight columns. */
typedef struct many_scales {
    float w[4][2], bias[4][2];
} many_scales;

/* Of group g of a step. BF16: pairs are known to be that. */
template <int EACH, bool BF16>
static __device__ inline void many_load_scales(many_scales *s, const uint8_t *at, uint8_t pairs, uint32_t g)
{
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const uint32_t place = (j / 2 * EACH + g) * 16 + j % 2 * 8;
        if (BF16) {
            const uint2 two = *(const uint2 *)(at + place * 4);
            s->w[j][0] = __uint_as_float(two.x << 16);
            s->w[j][1] = __uint_as_float(two.y << 16);
            s->bias[j][0] = __uint_as_float(two.x & 0xffff0000u);
            s->bias[j][1] = __uint_as_float(two.y & 0xffff0000u);
        } else {
            const float2 first = pair_of(at, pairs, place), second = pair_of(at, pairs, place + 1);
            s->w[j][0] = first.x;
            s->w[j][1] = second.x;
            s->bias[j][0] = first.y;
            s->bias[j][1] = second.y;
        }
    }
}

/* The end of a link of 16 rows: all four times eight columns. */
static __device__ inline void many_fold(float a[4][4], const int sum[4][4], const float xs[2], const many_scales *s)
{
    const float add[2] = {turn_end_add(xs[0]), turn_end_add(xs[1])};
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int r = 0; r < 4; r++)
            a[j][r] = fmaf(s->w[j][r & 1], fmaf(xs[r >> 1], __int_as_float(sum[j][r]), add[r >> 1]), a[j][r]);
}

/* The end of a group; sx of rows r and r + 8, `stride` floats apart. */
static __device__ inline void many_bias(float b[4][4], const uint8_t *sx_at, uint32_t stride, const many_scales *s)
{
    const float sx[2] = {((const float *)sx_at)[0], ((const float *)sx_at)[stride]};
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int r = 0; r < 4; r++)
            b[j][r] = fmaf(s->bias[j][r & 1], sx[r >> 1], b[j][r]);
}

/* 64 of k, which is a link or two blocks by themselves. Signed codes have no biases. */
template <int BITS, int GROUP, bool SIGNED, bool BF16>
static __device__ inline void many_piece(many_sums *sums, const uint8_t *ring, uint32_t at, const many_lane &lane,
                                         uint8_t pairs, const int start[4], uint32_t half)
{
    enum { EACH = stage<BITS, GROUP>::EACH, BLOCKS = GROUP == 32 ? 2 : 1 }; /* BLOCKS: with scales of their own */
    unsigned code[4][2][2];
    many_scales scales[BLOCKS];
#pragma unroll
    for (int j = 0; j < 4; j++)
        many_codes<BITS>(code[j], ring + at + lane.codes + j * (BITS * 128) + half * (BITS * 2));
#pragma unroll
    for (int b = 0; b < BLOCKS; b++)
        many_load_scales<EACH, BF16>(&scales[b], ring + at + lane.scales, pairs, half * 64 / GROUP + b);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 low = *(const float2 *)(ring + at + lane.turns + i * 256 + half * 8);
        const float2 high = *(const float2 *)(ring + at + lane.turns + i * 256 + 128 + half * 8);
        const uint8_t *sx = ring + at + lane.sums + (i * 16 * EACH + half * 64 / GROUP) * 4;
        const float first[2] = {low.x, high.x}, second[2] = {low.y, high.y};
        unsigned q[2][4];
        int sum[2][4][4];
#pragma unroll
        for (int h = 0; h < 2; h++)
            load_rows(q[h], (shared_address(ring) + at + lane.q ^ (half * 4 + h * 2) * 16) + i * 2048);
#pragma unroll
        for (int j = 0; j < 4; j++)
            many_multiply<SIGNED>(sum[0][j], q[0], code[j][0], start);
        if (GROUP == 32) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                many_multiply<SIGNED>(sum[1][j], q[1], code[j][1], start);
            many_fold(sums->a[i], sum[0], first, &scales[0]);
            if (!SIGNED)
                many_bias(sums->b[i], sx, 8 * EACH, &scales[0]);
            many_fold(sums->a[i], sum[1], second, &scales[BLOCKS - 1]);
            if (!SIGNED)
                many_bias(sums->b[i], sx + 4, 8 * EACH, &scales[BLOCKS - 1]);
            continue;
        }
        const float add[2] = {turn_on_add(first[0]), turn_on_add(first[1])};
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                sum[0][j][r] = __float_as_int(fmaf(first[r >> 1], __int_as_float(sum[0][j][r]), add[r >> 1]));
#pragma unroll
        for (int j = 0; j < 4; j++)
            many_multiply<SIGNED>(sum[0][j], q[1], code[j][1], sum[0][j]);
        many_fold(sums->a[i], sum[0], second, &scales[0]);
        if (GROUP == 64 || half)
            many_bias(sums->b[i], sx, 8 * EACH, &scales[0]);
    }
}

template <bool SIGNED> static __device__ inline void many_put(const mt_cuda_many &p, const many_tile &t, many_sums *s)
{
    const mt_cuda_weight &w = many_weight(p, t);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = t.row + warp % 2 * 64 + lane / 4;
    const uint32_t column = t.column * 16 + warp / 2 * 32 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float2 y = make_float2(s->a[i][j][h * 2], s->a[i][j][h * 2 + 1]);
                if (!SIGNED && w.biased) {
                    y.x = y.x + s->b[i][j][h * 2];
                    y.y = y.y + s->b[i][j][h * 2 + 1];
                }
                many_store(p, t, row + i * 16 + h * 8, column + j * 8, y);
            }
}

template <int BITS, int GROUP, bool SIGNED, bool BF16> static __device__ inline void many(const mt_cuda_many &p)
{
    typedef stage<BITS, GROUP> S;
    enum { AHEAD = MANY_STAGES - 1 };
    extern __shared__ __align__(128) uint8_t ring[];
    const uint32_t steps = p.from.padded / 128, tiles = many_tiles(p);
    const uint32_t mine = tiles > blockIdx.x ? (tiles - blockIdx.x - 1) / gridDim.x + 1 : 0, total = mine * steps;
    const uint8_t pairs = p.w[0].pairs;
    const many_lane lane = many_lane_at<BITS, GROUP>(pairs);
    uint32_t tile_at = blockIdx.x, step = 0, fetch_tile = blockIdx.x, fetch_step = 0, at = 0, fetch_at = 0;
    many_tile coming = many_tile_at(p, fetch_tile, tiles);
    many_source from = many_source_at<BITS, GROUP>(p, coming);
    int start[4];
#pragma unroll
    for (int r = 0; r < 4; r++)
        asm volatile("mov.b32 %0,%1;" : "=r"(start[r]) : "n"(MT_DOT_BITS));
    many_sums sums = {};
    uint32_t fetched = 0;
    const auto fetch = [&]() {
        if (fetched++ >= total) {
            copy_commit();
            return;
        }
        many_fetch<BITS, GROUP>(p, coming, &from, shared_address(ring) + fetch_at);
        fetch_at = fetch_at == AHEAD * S::BYTES ? 0 : fetch_at + S::BYTES;
        if (++fetch_step == steps) {
            fetch_step = 0;
            coming = many_tile_at(p, fetch_tile += gridDim.x, tiles);
            from = many_source_at<BITS, GROUP>(p, coming);
        }
    };
#pragma unroll 1
    while (fetched < AHEAD)
        fetch();
#pragma unroll 1
    for (uint32_t n = 0; n < total; n++) {
        copy_wait<AHEAD - 1>();
        __syncthreads();
        fetch();
#pragma unroll
        for (uint32_t half = 0; half < 2; half++)
            many_piece<BITS, GROUP, SIGNED, BF16>(&sums, ring, at, lane, pairs, start, half);
        at = at == AHEAD * S::BYTES ? 0 : at + S::BYTES;
        if (++step == steps) {
            many_put<SIGNED>(p, many_tile_at(p, tile_at, tiles), &sums);
            sums = {};
            step = 0;
            tile_at += gridDim.x;
        }
    }
}

#define MANY(name, bits, group, is_signed, bf16)                                                                     \
    extern "C" __global__ void __launch_bounds__(MANY_THREADS, 1) mtk_##name(const __grid_constant__ mt_cuda_many p) \
    {                                                                                                                \
        many<bits, group, is_signed, bf16>(p);                                                                       \
    }

/* Those with _b know that scales are bf16. */
MANY(matmul_w4_g32_rows65, 4, 32, false, false)
MANY(matmul_w4_g64_rows65, 4, 64, false, false)
MANY(matmul_w4_g128_rows65, 4, 128, false, false)
MANY(matmul_w8_g32_rows65, 8, 32, false, false)
MANY(matmul_w8_g64_rows65, 8, 64, false, false)
MANY(matmul_w8_g128_rows65, 8, 128, false, false)
MANY(matmul_w4_g32_bf16_rows65, 4, 32, false, true)
MANY(matmul_w4_g64_bf16_rows65, 4, 64, false, true)
MANY(matmul_w4_g128_bf16_rows65, 4, 128, false, true)
MANY(matmul_w8_g32_bf16_rows65, 8, 32, false, true)
MANY(matmul_w8_g64_bf16_rows65, 8, 64, false, true)
MANY(matmul_w8_g128_bf16_rows65, 8, 128, false, true)
MANY(matmul_s8_rows65, 8, 32, true, false)
