/* Weights and rows in the layouts that products read. A weight is fp16(code * scale + bias), rounded once.

   pack_weights: MLX affine (codes[n, k] in 4 bits, scales and biases[n, k / 64] in fp16) to packed tiles (native.h).
   pack_rows: x[rows, k] in fp32 to fp16 times 2^-e, in swizzled tiles [rows / block][k / 64][block][64], and for each
   segment to ratios and powers [rows / block][k / 256][2][block]: 2^(e of the segment before - e), 2^e.
   decode_weights: packed tiles to swizzled tiles in fp16 [n / 128][k / 64][128][64].

   Roofline: only decode_weights is measured. It reads 9/16 of a byte and writes 2 bytes a weight: 118 us at 4.2 TB/s
   for the 193 million weights of a layer of an 8B model.

   Codes are read as subnormal fp16 numbers, code * 2^-24 or code * 2^-20, and multiplied by scale * 2^24 or scale *
   2^20. So scales must be below 2^-8. A power of two for each matrix, by which the powers of rows are multiplied, would
   lift that. */
#ifndef MT_BENCH_CUDA_PACK_CUH
#define MT_BENCH_CUDA_PACK_CUH

#include "mma.cuh"
#include "native.h"

/* Of the two outputs of a lane, g and g + 8, where g = lane / 4: both halves of a word are the same. */
typedef struct lane_scales {
    uint32_t scale0, sixteenth0, bias0, scale1, sixteenth1, bias1;
} lane_scales;

static __device__ inline uint32_t sixteenth_of(uint32_t pair)
{
    const __half2 v = __hmul2(*(const __half2 *)&pair, __float2half2_rn(0.0625f));
    return *(const uint32_t *)&v;
}

/* p, q: a scale below a bias, for each of the outputs. */
static __device__ inline lane_scales scales_of_lane(uint32_t p, uint32_t q)
{
    lane_scales s;
    s.scale0 = __byte_perm(p, p, 0x1010);
    s.bias0 = __byte_perm(p, p, 0x3232);
    s.scale1 = __byte_perm(q, q, 0x1010);
    s.bias1 = __byte_perm(q, q, 0x3232);
    s.sixteenth0 = sixteenth_of(s.scale0);
    s.sixteenth1 = sixteenth_of(s.scale1);
    return s;
}

static __device__ inline uint32_t fma_f16x2(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("fma.rn.f16x2 %0,%1,%2,%3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* A word of 8 codes to a lane's operands of one product. */
static __device__ inline void decode_word(uint32_t (&a)[4], uint32_t word, const lane_scales &s)
{
    const uint32_t high = word >> 8;
    a[0] = fma_f16x2(word & 0x000f000f, s.scale0, s.bias0);
    a[2] = fma_f16x2(word & 0x00f000f0, s.sixteenth0, s.bias0);
    a[1] = fma_f16x2(high & 0x000f000f, s.scale1, s.bias1);
    a[3] = fma_f16x2(high & 0x00f000f0, s.sixteenth1, s.bias1);
}

/* Block: 128 threads; grid: k / 64, n / 64. */
KERNEL(native_pack_weights)(uint8_t *to, const uint32_t *codes, const __half *scales, const __half *biases, uint32_t k)
{
    const uint32_t t = threadIdx.x, lane = t % 32, chunks = k / NATIVE_CHUNK, chunk = blockIdx.x;
    const uint32_t n = blockIdx.y * NATIVE_TILE_OUTPUTS;
    uint8_t *tile = to + ((size_t)blockIdx.y * chunks + chunk) * NATIVE_TILE_BYTES;
    uint32_t words[4] = {0};
    for (uint32_t i = 0; i < 32; i++) { /* operand i / 2 % 4 of product i / 8, its half i % 2: see decode_word */
        const uint32_t operand = i / 2 % 4, out = n + t / 32 * 16 + lane / 4 + operand % 2 * 8;
        const uint32_t at = chunk * NATIVE_CHUNK + i / 8 * 16 + lane % 4 * 2 + operand / 2 * 8 + i % 2;
        const uint32_t code = codes[((size_t)out * k + at) / 8] >> at % 8 * 4 & 15;
        words[i / 8] |= code << (operand % 2 * 8 + operand / 2 * 4 + i % 2 * 16);
    }
    ((uint4 *)tile)[t] = make_uint4(words[0], words[1], words[2], words[3]);
    if (t < NATIVE_TILE_OUTPUTS) {
        const size_t from = (size_t)(n + t) * chunks + chunk;
        __half *pair = (__half *)(tile + NATIVE_TILE_CODES) + 2 * t;
        pair[0] = __float2half_rn(__half2float(scales[from]) * 0x1p24f);
        pair[1] = biases[from];
    }
}

/* Of the largest of a row's segment; every lane of a warp comes along. */
static __device__ inline int exponent_of_segment(const float *x)
{
    float most = 0;
    for (uint32_t i = threadIdx.x % 32; i < NATIVE_SEGMENT; i += 32)
        most = fmaxf(most, fabsf(x[i]));
    for (int width = 16; width > 0; width /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, width));
    const int e = (int)(__float_as_uint(most) >> 23) - 127 - NATIVE_EXPONENT_TOP;
    return max((int)NATIVE_EXPONENT_LEAST, min((int)NATIVE_EXPONENT_MOST, e));
}

/* Block: 32 threads; grid: k / 256, rows up to a multiple of `block`, of which those past `rows` are zero. */
KERNEL(native_pack_rows)(uint8_t *to, float *powers, const float *x, uint32_t k, uint32_t rows, uint32_t block)
{
    const uint32_t lane = threadIdx.x, segment = blockIdx.x, row = blockIdx.y, in_block = row % block;
    const float *from = x + (size_t)row * k + segment * NATIVE_SEGMENT;
    const bool there = row < rows, first = segment % NATIVE_GROUP_SEGMENTS == 0;
    const int e = there ? exponent_of_segment(from) : 0;
    const int last = there && !first ? exponent_of_segment(from - NATIVE_SEGMENT) : e;
    const uint32_t at = segment * NATIVE_SEGMENT + lane * 8; /* 8 elements a lane */
    __half h[8];
    for (uint32_t i = 0; i < 8; i++)
        h[i] = __float2half_rn(there ? ldexpf(from[lane * 8 + i], -e) : 0);
    uint8_t *tile = to + ((size_t)(row / block) * (k / NATIVE_CHUNK) + at / NATIVE_CHUNK) * block * 128;
    *(uint4 *)(tile + swizzled(in_block, at / 8 % 8)) = *(const uint4 *)h;
    if (lane == 0) {
        float *pair = powers + ((size_t)(row / block) * (k / NATIVE_SEGMENT) + segment) * 2 * block + in_block;
        pair[0] = ldexpf(1, last - e);
        pair[block] = ldexpf(1, e);
    }
}

/* Block: 128 threads, as in pack_weights, that pass a tile of 64 x 64 through shared memory; grid: k / 64, n / 64. */
KERNEL(native_decode_weights)(const uint8_t *w, uint8_t *to, uint32_t k)
{
    __shared__ __align__(16) uint8_t tile[NATIVE_TILE_OUTPUTS * 128];
    const uint32_t t = threadIdx.x, lane = t % 32, row = t / 32 * 16 + lane / 4, chunks = k / NATIVE_CHUNK;
    const uint32_t n = blockIdx.y * NATIVE_TILE_OUTPUTS, in_tile = n % NATIVE_PROMPT_OUTPUTS;
    const uint8_t *from = w + ((size_t)blockIdx.y * chunks + blockIdx.x) * NATIVE_TILE_BYTES;
    const uint4 codes = ((const uint4 *)from)[t];
    const uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
    const uint32_t *pairs = (const uint32_t *)(from + NATIVE_TILE_CODES) + row;
    const lane_scales scales = scales_of_lane(pairs[0], pairs[8]);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t a[4];
        decode_word(a, words[i], scales);
#pragma unroll
        for (uint32_t j = 0; j < 4; j++)
            *(uint32_t *)(tile + swizzled(row + j % 2 * 8, i * 2 + j / 2) + lane % 4 * 4) = a[j];
    }
    __syncthreads();
    uint4 *out =
        (uint4 *)(to + ((size_t)(n / NATIVE_PROMPT_OUTPUTS) * chunks + blockIdx.x) * NATIVE_PROMPT_OUTPUTS * 128 +
                  in_tile * 128);
    for (uint32_t i = t; i < sizeof(tile) / 16; i += 128)
        out[i] = ((const uint4 *)tile)[i];
}

#endif
