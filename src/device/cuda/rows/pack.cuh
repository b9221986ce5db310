/* Packs rows as int8 (R3 of docs/numerics.md), in the layout that products read (params.h): a lane has a block of 32,
   so that lanes exchange only what two blocks of a link need of each other. */
#ifndef MT_DEVICE_CUDA_ROWS_PACK_CUH
#define MT_DEVICE_CUDA_ROWS_PACK_CUH

#include "device/cuda/common/common.cuh"

/* Four floats of a row from k on, zeros beyond its end. */
static __device__ inline void load_four(float x[4], const float *row, uint32_t k, uint32_t end)
{
    if (k + 4 <= end && (uintptr_t)(row + k) % 16 == 0) {
        const float4 all = *(const float4 *)(row + k);
        x[0] = all.x;
        x[1] = all.y;
        x[2] = all.z;
        x[3] = all.w;
        return;
    }
#pragma unroll
    for (uint32_t c = 0; c < 4; c++)
        x[c] = k + c < end ? row[k + c] : 0;
}

static __device__ inline void store_four(float *row, uint32_t k, uint32_t end, const float x[4])
{
    if (k + 4 <= end && (uintptr_t)(row + k) % 16 == 0) {
        *(float4 *)(row + k) = make_float4(x[0], x[1], x[2], x[3]);
        return;
    }
#pragma unroll
    for (uint32_t c = 0; c < 4; c++)
        if (k + c < end)
            row[k + c] = x[c];
}

/* A block of 32 as integers: four bytes a word; z is x * factor and what rounds it, in whose lowest byte they stand. */
typedef struct block_codes {
    unsigned q[8];
    float xs;
} block_codes;

static __device__ inline block_codes code_block(const float x[32], mt_block b)
{
    constexpr float MAGIC =
        0x1.8p23f; /* rounds what is less than 2^22, to even; its bits end with those of the integer */
    block_codes c;
    float sum[16];
    int qq = 0;
#pragma unroll
    for (int w = 0; w < 8; w++) {
        float z[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            z[e] = b.factor > 0.0f ? x[w * 4 + e] * b.factor + MAGIC : MAGIC;
            float &to = sum[(w * 4 + e) % 16];
            to = fmaf(x[w * 4 + e], z[e] - MAGIC, w < 4 ? 0.0f : to);
        }
        c.q[w] = __byte_perm(__byte_perm(mt_f32_bits(z[0]), mt_f32_bits(z[1]), 0x0040),
                             __byte_perm(mt_f32_bits(z[2]), mt_f32_bits(z[3]), 0x0040), 0x5410);
        qq = __dp4a((int)c.q[w], (int)c.q[w], qq);
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        sum[i] = sum[i] + sum[i + 8];
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum[i] = sum[i] + sum[i + 4];
    c.xs = mt_block_fit(b, (sum[0] + sum[2]) + (sum[1] + sum[3]), (float)qq);
    return c;
}

/* Block `block` of row i, whose neighbours are in the neighbouring lanes. All lanes of the warp must call it; those
   with `writes` store. */
static __device__ inline void pack_block(const mt_cuda_pack &p, uint32_t i, uint32_t block, const float x[32],
                                         bool writes)
{
    const bool linked = p.group % 64 == 0, second = linked && block % 2;
    unsigned most = 0; /* as unsigned numbers, magnitudes keep their order, and NaN is above all */
#pragma unroll
    for (int c = 0; c < 32; c++)
        most = max(most, mt_f32_bits(x[c]) & 0x7fffffffu);
    const float amax = mt_f32_from_bits(most);
    block_codes codes = code_block(x, mt_block_of(amax, 0.0f));
    /* the second block of a link is packed again where its scale would be too small, which is rare */
    const float before = __shfl_xor_sync(0xffffffffu, codes.xs, 1);
    const mt_block again = mt_block_of(amax, second ? mt_block_least(before, p.wide) : 0.0f);
    if (__any_sync(0xffffffffu, again.least)) {
        const block_codes other = code_block(x, again);
        if (again.least)
            codes = other;
    }
    int sums[2] = {0, 0};
#pragma unroll
    for (int w = 0; w < 8; w++)
        sums[w / 4] = __dp4a((int)codes.q[w], 0x01010101, sums[w / 4]);
    const float beside = __shfl_xor_sync(0xffffffffu, codes.xs, 1), all = (float)(sums[0] + sums[1]);
    float sx = fmaf(codes.xs, all, 0.0f);
    if (p.group >= 64) { /* sums of 2 or 4 blocks, in their order */
        for (uint32_t b = 1; b < p.group / 32; b++) {
            const float so_far = __shfl_up_sync(0xffffffffu, sx, 1);
            sx = block % (p.group / 32) == b ? fmaf(codes.xs, all, so_far) : sx;
        }
    }
    if (!writes)
        return;
    const uint32_t step = block / 4, within = block % 4;
    *(uint4 *)(p.to.q + piece_at(p.to, step, i, within * 2)) =
        make_uint4(codes.q[0], codes.q[1], codes.q[2], codes.q[3]);
    *(uint4 *)(p.to.q + piece_at(p.to, step, i, within * 2 + 1)) =
        make_uint4(codes.q[4], codes.q[5], codes.q[6], codes.q[7]);
    const uint64_t at = (uint64_t)step * p.to.rows + i;
    p.to.turns[at * 4 + within] = linked && !second ? mt_turn_on(codes.xs, beside).mul : codes.xs;
    if (p.group < 32) {
        p.to.sums[at * 8 + within * 2] = fmaf(codes.xs, (float)sums[0], 0.0f);
        p.to.sums[at * 8 + within * 2 + 1] = fmaf(codes.xs, (float)sums[1], 0.0f);
    } else if ((block + 1) * 32 % p.group == 0) {
        p.to.sums[at * (128 / p.group) + within * 32 / p.group] = sx;
    }
}

/* ---- by four lanes a block ---- */

/* Four neighbouring lanes have a block, number l of them the four numbers from 4 l on and those from 16 + 4 l on: so
   each lane of R6 is one lane's, and rows are read and written side by side. Compared with a lane a block, a lane has
   less work and all lanes together have more: for few rows, where most lanes would be idle. */
enum { QUARTER = 8 };

static __device__ inline void load_quarter(float x[QUARTER], const float *row, uint32_t block, uint32_t end)
{
    const uint32_t k = block * 32 + threadIdx.x % 4 * 4;
    load_four(x, row, k, end);
    load_four(x + 4, row, k + 16, end);
}

/* The larger one; NaN where one is. */
static __device__ inline float larger(float a, float b)
{
    float m;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
    return m;
}

typedef struct quarter_codes {
    unsigned q[2];
    float xs;
} quarter_codes;

/* As code_block. */
static __device__ inline quarter_codes code_quarter(const float x[QUARTER], mt_block b)
{
    constexpr float MAGIC = 0x1.8p23f;
    quarter_codes c;
    float sum[4];
    int qq = 0;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float z[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            z[e] = b.factor > 0.0f ? x[half * 4 + e] * b.factor + MAGIC : MAGIC;
            sum[e] = fmaf(x[half * 4 + e], z[e] - MAGIC, half ? sum[e] : 0.0f);
        }
        c.q[half] = __byte_perm(__byte_perm(mt_f32_bits(z[0]), mt_f32_bits(z[1]), 0x0040),
                                __byte_perm(mt_f32_bits(z[2]), mt_f32_bits(z[3]), 0x0040), 0x5410);
        qq = __dp4a((int)c.q[half], (int)c.q[half], qq);
    }
    /* lanes of R6 eight apart, then four */
#pragma unroll
    for (int apart = 2; apart > 0; apart /= 2) {
        qq += __shfl_xor_sync(0xffffffffu, qq, apart);
#pragma unroll
        for (int e = 0; e < 4; e++)
            sum[e] = sum[e] + __shfl_xor_sync(0xffffffffu, sum[e], apart);
    }
    c.xs = mt_block_fit(b, (sum[0] + sum[2]) + (sum[1] + sum[3]), (float)qq);
    return c;
}

/* As pack_block; the four lanes of a block have the same `writes`. */
static __device__ inline void pack_quarter(const mt_cuda_pack &p, uint32_t i, uint32_t block, const float x[QUARTER],
                                           bool writes)
{
    const bool linked = p.group % 64 == 0, second = linked && block % 2;
    float amax = larger(larger(larger(fabsf(x[0]), fabsf(x[1])), larger(fabsf(x[2]), fabsf(x[3]))),
                        larger(larger(fabsf(x[4]), fabsf(x[5])), larger(fabsf(x[6]), fabsf(x[7]))));
    amax = larger(amax, __shfl_xor_sync(0xffffffffu, amax, 2));
    amax = larger(amax, __shfl_xor_sync(0xffffffffu, amax, 1));
    quarter_codes codes = code_quarter(x, mt_block_of(amax, 0.0f));
    float beside = __shfl_xor_sync(0xffffffffu, codes.xs, 4);
    const mt_block again = mt_block_of(amax, second ? mt_block_least(beside, p.wide) : 0.0f);
    if (__any_sync(0xffffffffu, again.least)) {
        const quarter_codes other = code_quarter(x, again);
        if (again.least)
            codes = other;
        beside = __shfl_xor_sync(0xffffffffu, codes.xs, 4);
    }
    /* sums of both halves in one word, as each is less than 2^15 */
    int sums = __dp4a((int)codes.q[0], 0x01010101, 0) + __dp4a((int)codes.q[1], 0x01010101, 0) * 65536;
    sums += __shfl_xor_sync(0xffffffffu, sums, 2);
    sums += __shfl_xor_sync(0xffffffffu, sums, 1);
    const int low = (int)(int16_t)(sums & 0xffff), high = (sums - low) / 65536;
    const float all = (float)(low + high);
    float sx = fmaf(codes.xs, all, 0.0f);
    for (uint32_t b = 1; b < p.group / 32; b++) {
        const float so_far = __shfl_up_sync(0xffffffffu, sx, 4);
        sx = block % (p.group / 32) == b ? fmaf(codes.xs, all, so_far) : sx;
    }
    if (!writes)
        return;
    const uint32_t step = block / 4, within = block % 4, l = threadIdx.x % 4;
    *(unsigned *)(p.to.q + piece_at(p.to, step, i, within * 2) + l * 4) = codes.q[0];
    *(unsigned *)(p.to.q + piece_at(p.to, step, i, within * 2 + 1) + l * 4) = codes.q[1];
    if (l)
        return;
    const uint64_t at = (uint64_t)step * p.to.rows + i;
    p.to.turns[at * 4 + within] = linked && !second ? mt_turn_on(codes.xs, beside).mul : codes.xs;
    if (p.group < 32) {
        p.to.sums[at * 8 + within * 2] = fmaf(codes.xs, (float)low, 0.0f);
        p.to.sums[at * 8 + within * 2 + 1] = fmaf(codes.xs, (float)high, 0.0f);
    } else if ((block + 1) * 32 % p.group == 0) {
        p.to.sums[at * (128 / p.group) + within * 32 / p.group] = sx;
    }
}

/* Rows in shared memory, in which blocks stand apart, so that lanes that read one each find them in different banks. */
static __device__ inline uint32_t apart(uint32_t k)
{
    return k + k / 32 * 4;
}

/* `rms` of such a row, whose n numbers zeros follow. */
static __device__ inline float rms_apart(const float *row, uint32_t n, uint32_t padded, float eps)
{
    constexpr uint32_t SOME = 4; /* blocks that are read while those before are added: one chain of additions */
    const float *at = row + threadIdx.x % 16;
    float lane = 0, now[2 * SOME], next[2 * SOME];
#pragma unroll
    for (uint32_t i = 0; i < 2 * SOME; i++)
        now[i] = at[i / 2 * 36 + i % 2 * 16]; /* there are four blocks at least */
#pragma unroll 2
    for (uint32_t block = 0; block < padded / 32; block += SOME) {
        const float *from = at + min(block + SOME, padded / 32 - SOME) * 36;
#pragma unroll
        for (uint32_t i = 0; i < 2 * SOME; i++)
            next[i] = from[i / 2 * 36 + i % 2 * 16];
#pragma unroll
        for (uint32_t i = 0; i < 2 * SOME; i++) {
            lane = fmaf(now[i], now[i], lane);
            now[i] = next[i];
        }
    }
    return 1.0f / sqrtf(fold16(lane) / (float)n + eps);
}

/* The same for all threads of a block, which have put the row there. */
static __device__ inline float rms_of_block(const float *row, uint32_t n, uint32_t padded, float eps)
{
    __shared__ float result;
    __syncthreads();
    if (threadIdx.x < 32) {
        const float r = rms_apart(row, n, padded, eps);
        if (threadIdx.x == 0)
            result = r;
    }
    __syncthreads();
    return result;
}

static __device__ inline void load_apart(float x[32], const float *row, uint32_t block)
{
#pragma unroll
    for (int c = 0; c < 32; c += 4) {
        const float4 four = *(const float4 *)(row + block * 36 + c);
        x[c] = four.x, x[c + 1] = four.y, x[c + 2] = four.z, x[c + 3] = four.w;
    }
}

#endif
