/* Loops that measure peaks (peak.h). */
#include "kernels/peak.h"

#include <string.h>

#include "kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { STREAMS = 4 };

uint64_t mt_peak_read(const uint8_t *data, size_t bytes)
{
    const size_t part = bytes / STREAMS;
    uint64_t sum = 0;
    for (size_t i = 0; i + 64 <= part; i += 64) {
        for (size_t j = 0; j < STREAMS; j++) {
            const uint8_t *p = data + j * part + i;
#if defined(__aarch64__)
            uint8x16_t a = vorrq_u8(vld1q_u8(p), vld1q_u8(p + 16)), b = vorrq_u8(vld1q_u8(p + 32), vld1q_u8(p + 48));
            sum |= vgetq_lane_u64(vreinterpretq_u64_u8(vorrq_u8(a, b)), 0);
#else
            for (size_t l = 0; l < 64; l += 8) {
                uint64_t word;
                memcpy(&word, p + l, 8);
                sum |= word;
            }
#endif
        }
    }
    return sum;
}

#if defined(__aarch64__)

/* 24 independent accumulators hide the latency. Instructions are written as words, because the assembler may not know
   them. */
#define SIX(X, a, b, c, d, e, f) X(a) X(b) X(c) X(d) X(e) X(f)
#define EACH_ACC(X) \
    SIX(X, 0, 1, 2, 3, 4, 5) SIX(X, 6, 7, 8, 9, 10, 11) SIX(X, 12, 13, 14, 15, 16, 17) SIX(X, 18, 19, 20, 21, 22, 23)
#define STR(x) #x
#define INST(word) ".inst " STR(word) "\n"
#define SMMLA(d) INST(0x4e9fa7c0 + d) /* smmla vd.4s, v30.16b, v31.16b */
#define SDOT(d) INST(0x4e9f97c0 + d)
#define BFMMLA(d) INST(0x6e5fefc0 + d)
#define FMLA(d) INST(0x4e3fcfc0 + d)
#define CLOBBERS                                                                                                 \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", \
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v30", "v31"

#define PEAK_LOOP(name, X)                                                          \
    static void name(size_t rounds)                                                 \
    {                                                                               \
        __asm__ volatile("movi v30.16b, #0\n movi v31.16b, #0\n" ::: "v30", "v31"); \
        for (size_t i = 0; i < rounds; i++)                                         \
            __asm__ volatile(EACH_ACC(X)::: CLOBBERS);                              \
    }

PEAK_LOOP(loop_smmla, SMMLA)
PEAK_LOOP(loop_sdot, SDOT)
PEAK_LOOP(loop_bfmmla, BFMMLA)
PEAK_LOOP(loop_fmla, FMLA)

mt_peak mt_peak_int8(unsigned cpu)
{
    if (cpu & MT_CPU_I8MM)
        return (mt_peak){loop_smmla, 24 * 64};
    return cpu & MT_CPU_DOTPROD ? (mt_peak){loop_sdot, 24 * 32} : (mt_peak){0};
}

mt_peak mt_peak_bf16(unsigned cpu)
{
    return cpu & MT_CPU_BF16 ? (mt_peak){loop_bfmmla, 24 * 32} : (mt_peak){0};
}

mt_peak mt_peak_fp32(unsigned cpu)
{
    (void)cpu;
    return (mt_peak){loop_fmla, 24 * 8};
}

#elif defined(__x86_64__)

/* 12 independent accumulators hide the latency of two ports */
#define EACH_ACC(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define FMA_256(d) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #d "\n"
#define FMA_512(d) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #d "\n"
#define DOT_512(d) "vpdpbusd %%zmm14, %%zmm15, %%zmm" #d "\n"
#define CLOBBERS                                                                                               \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
        "xmm13", "xmm14", "xmm15"

#define PEAK_LOOP(name, X)                             \
    static void name(size_t rounds)                    \
    {                                                  \
        __asm__ volatile("vzeroall" ::: CLOBBERS);     \
        for (size_t i = 0; i < rounds; i++)            \
            __asm__ volatile(EACH_ACC(X)::: CLOBBERS); \
        __asm__ volatile("vzeroupper" ::: CLOBBERS);   \
    }

PEAK_LOOP(loop_fma_256, FMA_256)
PEAK_LOOP(loop_fma_512, FMA_512)
PEAK_LOOP(loop_dot_512, DOT_512)

/* Products of tiles: 16 rows of 64 bytes each, four accumulators. */
typedef struct tile_shapes {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_shapes;

#define TILE_LOOP(name, product)                                                                       \
    static void name(size_t rounds)                                                                    \
    {                                                                                                  \
        tile_shapes s = {.palette = 1};                                                                \
        for (size_t i = 0; i < 8; i++) {                                                               \
            s.bytes[i] = 64;                                                                           \
            s.rows[i] = 16;                                                                            \
        }                                                                                              \
        __asm__ volatile("ldtilecfg %0" ::"m"(s));                                                     \
        for (size_t i = 0; i < rounds; i++)                                                            \
            __asm__ volatile(product " %tmm4, %tmm5, %tmm0\n" product " %tmm4, %tmm5, %tmm1\n" product \
                                     " %tmm4, %tmm5, %tmm2\n" product " %tmm4, %tmm5, %tmm3");         \
        __asm__ volatile("tilerelease");                                                               \
    }

TILE_LOOP(loop_tiles_int8, "tdpbusd")
TILE_LOOP(loop_tiles_bf16, "tdpbf16ps")

mt_peak mt_peak_int8(unsigned cpu)
{
    if (cpu & MT_CPU_AMX)
        return (mt_peak){loop_tiles_int8, 4 * 2 * 16 * 16 * 64};
    return cpu & MT_CPU_AVX512VNNI ? (mt_peak){loop_dot_512, 12 * 128} : (mt_peak){0};
}

mt_peak mt_peak_bf16(unsigned cpu)
{
    return cpu & MT_CPU_AMX ? (mt_peak){loop_tiles_bf16, 4 * 2 * 16 * 16 * 32} : (mt_peak){0};
}

mt_peak mt_peak_fp32(unsigned cpu)
{
    if (cpu & MT_CPU_AVX512)
        return (mt_peak){loop_fma_512, 12 * 32};
    return cpu & MT_CPU_AVX2 ? (mt_peak){loop_fma_256, 12 * 16} : (mt_peak){0};
}

#else

mt_peak mt_peak_int8(unsigned cpu)
{
    (void)cpu;
    return (mt_peak){0};
}

mt_peak mt_peak_bf16(unsigned cpu)
{
    return mt_peak_int8(cpu);
}

mt_peak mt_peak_fp32(unsigned cpu)
{
    return mt_peak_int8(cpu);
}

#endif
