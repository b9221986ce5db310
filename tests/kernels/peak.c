/* What the machine can do at most: streams from memory, and multiply-adds between registers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { STREAMS = 4, ROUNDS = 200000 };
#define STREAM_BYTES ((size_t)128 << 20)

typedef struct stream {
    const uint8_t *data;
    uint64_t sink[256];
} stream;

static void read_streams(void *arg, size_t thread, size_t threads)
{
    stream *s = arg;
    size_t begin, end, part;
    bench_share(STREAM_BYTES, 64 * STREAMS, thread, threads, &begin, &end);
    part = (end - begin) / STREAMS;
    uint64_t sum = 0;
    for (size_t i = 0; i + 64 <= part; i += 64) {
        for (size_t j = 0; j < STREAMS; j++) {
            const uint8_t *p = s->data + begin + j * part + i;
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
    s->sink[thread] = sum;
}

#if defined(__aarch64__)

/* 24 independent accumulators, so that latency is hidden; the words are used because an assembler may know no
   extension that the processor has. */
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
    static void name(void *arg, size_t thread, size_t threads)                      \
    {                                                                               \
        (void)arg, (void)thread, (void)threads;                                     \
        __asm__ volatile("movi v30.16b, #0\n movi v31.16b, #0\n" ::: "v30", "v31"); \
        for (size_t i = 0; i < ROUNDS; i++)                                         \
            __asm__ volatile(EACH_ACC(X)::: CLOBBERS);                              \
    }

PEAK_LOOP(loop_smmla, SMMLA)
PEAK_LOOP(loop_sdot, SDOT)
PEAK_LOOP(loop_bfmmla, BFMMLA)
PEAK_LOOP(loop_fmla, FMLA)

static double rate(const bench *b, bench_fn *loop, double ops)
{
    return 24.0 * ROUNDS * ops * (double)b->threads / bench_time(b, loop, NULL);
}

static void arithmetic(bench *b)
{
    b->fp32 = rate(b, loop_fmla, 8);
    if (b->k->cpu & MT_CPU_I8MM)
        b->int8 = rate(b, loop_smmla, 64);
    else if (b->k->cpu & MT_CPU_DOTPROD)
        b->int8 = rate(b, loop_sdot, 32);
    if (b->k->cpu & MT_CPU_BF16)
        b->bf16 = rate(b, loop_bfmmla, 32);
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

#define PEAK_LOOP(name, X)                                     \
    static void name(void *arg, size_t thread, size_t threads) \
    {                                                          \
        (void)arg, (void)thread, (void)threads;                \
        __asm__ volatile("vzeroall" ::: CLOBBERS);             \
        for (size_t i = 0; i < ROUNDS; i++)                    \
            __asm__ volatile(EACH_ACC(X)::: CLOBBERS);         \
        __asm__ volatile("vzeroupper" ::: CLOBBERS);           \
    }

PEAK_LOOP(loop_fma_256, FMA_256)
PEAK_LOOP(loop_fma_512, FMA_512)
PEAK_LOOP(loop_dot_512, DOT_512)

static double rate(const bench *b, bench_fn *loop, double ops)
{
    return 12.0 * ROUNDS * ops * (double)b->threads / bench_time(b, loop, NULL);
}

static void arithmetic(bench *b)
{
    if (b->k->cpu & MT_CPU_AVX512)
        b->fp32 = rate(b, loop_fma_512, 32);
    else if (b->k->cpu & MT_CPU_AVX2)
        b->fp32 = rate(b, loop_fma_256, 16);
    if (b->k->cpu & MT_CPU_AVX512VNNI)
        b->int8 = rate(b, loop_dot_512, 128);
}

#else

static void arithmetic(bench *b)
{
    (void)b;
}

#endif

void bench_peaks(bench *b)
{
    stream *s = calloc(1, sizeof *s);
    uint8_t *data = bench_alloc(STREAM_BYTES);
    if (!s)
        abort();
    s->data = data;
    b->bandwidth = (double)STREAM_BYTES / bench_time(b, read_streams, s);
    free(data);
    free(s);
    arithmetic(b);
    b->int8 = b->int8 > 0 ? b->int8 : b->fp32;
    b->bf16 = b->bf16 > 0 ? b->bf16 : b->fp32;
    printf("peaks: %.1f GB/s, int8 %.0f GOP/s, bf16 %.0f GFLOP/s, fp32 %.0f GFLOP/s\n", b->bandwidth * 1e-9,
           b->int8 * 1e-9, b->bf16 * 1e-9, b->fp32 * 1e-9);
    fflush(stdout);
}
