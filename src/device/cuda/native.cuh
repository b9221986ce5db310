/* The arithmetic `native` (device/native.h) on tensor cores of sm_90: fp16 products of a warpgroup with fp32 sums, and
   4-bit weights decoded in registers. */
#ifndef MT_DEVICE_CUDA_NATIVE_CUH
#define MT_DEVICE_CUDA_NATIVE_CUH

#include <cuda_fp16.h>

#include "device/cuda/wgmma.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

/* ---- products ---- */

#define D4 "%0,%1,%2,%3"
#define D8 D4 ",%4,%5,%6,%7"
#define D16 D8 ",%8,%9,%10,%11,%12,%13,%14,%15"

/* d[64, n] = a[64, 16] b[n, 16]', or d += where `add`: a in registers, b swizzled in shared memory. */
#define PRODUCT_F16(n, floats, list, a0, a1, a2, a3, desc, pred, ...)                                               \
    static __device__ inline void product_f16(float(&d)[floats], const uint32_t(&a)[4], uint64_t b, int add)        \
    {                                                                                                               \
        asm volatile("{\n"                                                                                          \
                     ".reg .pred p;\n"                                                                              \
                     "setp.ne.b32 p, " pred ", 0;\n"                                                                \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.f16.f16 {" list "}, {" a0 "," a1 "," a2 "," a3 \
                     "}, " desc ", p, 1, 1, 0;\n"                                                                   \
                     "}"                                                                                            \
                     : __VA_ARGS__                                                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                               \
    }
PRODUCT_F16(8, 4, D4, "%4", "%5", "%6", "%7", "%8", "%9", F4(d, 0))
PRODUCT_F16(16, 8, D8, "%8", "%9", "%10", "%11", "%12", "%13", F8(d, 0))
PRODUCT_F16(32, 16, D16, "%16", "%17", "%18", "%19", "%20", "%21", F16(d, 0))
PRODUCT_F16(64, 32, D32, "%32", "%33", "%34", "%35", "%36", "%37", F32(d, 0))

/* The same with a in shared memory, and n = 128. */
static __device__ inline void product_f16(float (&d)[64], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" D64 "}, %64, %65, p, 1, 1, 0, 0;\n"
                 "}"
                 : F32(d, 0), F32(d, 32)
                 : "l"(a), "l"(b), "r"(add));
}

/* Dynamic shared memory from a multiple of 1024 on, where swizzled tiles begin: at the same place in all blocks. */
static __device__ inline uint8_t *swizzled_memory(void)
{
    extern __shared__ uint8_t raw[];
    return raw + (1024 - shared_address(raw) % 1024) % 1024;
}

#endif

/* Byte of a piece of 16 bytes in a tile whose rows have 128 bytes. */
static __device__ inline uint32_t swizzled(uint32_t row, uint32_t piece)
{
    return row * 128 + (piece ^ row % 8) * 16;
}

/* ---- weights ---- */

/* Of the two columns of a lane, g and g + 8, where g = lane / 4: both halves of a word are the same. */
typedef struct lane_scales {
    uint32_t scale0, sixteenth0, bias0, scale1, sixteenth1, bias1;
} lane_scales;

static __device__ inline uint32_t sixteenth_of(uint32_t pair)
{
    const __half2 v = __hmul2(*(const __half2 *)&pair, __float2half2_rn(0.0625f));
    return *(const uint32_t *)&v;
}

/* p, q: a scale below a bias, for each of the columns. */
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

/* A word of 8 codes to a lane's operands of one product. Codes are read as subnormal fp16 numbers: code * 2^-24, and
   those that stand higher code * 2^-20, which have a sixteenth of the scale. */
static __device__ inline void decode_word(uint32_t (&a)[4], uint32_t word, const lane_scales &s)
{
    const uint32_t high = word >> 8;
    a[0] = fma_f16x2(word & 0x000f000f, s.scale0, s.bias0);
    a[2] = fma_f16x2(word & 0x00f000f0, s.sixteenth0, s.bias0);
    a[1] = fma_f16x2(high & 0x000f000f, s.scale1, s.bias1);
    a[3] = fma_f16x2(high & 0x00f000f0, s.sixteenth1, s.bias1);
}

#endif
