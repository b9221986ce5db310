/* q_matmul on a matrix larger than the last-level cache; bytes are those of weights, scales and biases. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels/unpack.h"

void bench_qmatmul(bench *b);

/* A round takes a slice of the matrix and the next round the next one: short rounds find the quiet moments of a
   shared machine. */
enum { N = 24576, K = 4096, RANGE = 256, MAX_M = 256 };

typedef struct job {
    const mt_kernels *k;
    mt_mat w;
    mt_rows rows;
    float *x, *y;
    uint8_t *scratch[256];
    size_t slices, turn[256];
} job;

static void multiply(void *arg, size_t thread, size_t threads)
{
    job *j = arg;
    size_t begin, end;
    bench_share(N / j->slices, RANGE, thread, threads, &begin, &end);
    size_t offset = j->turn[thread]++ % j->slices * (N / j->slices);
    for (size_t n = offset + begin; n < offset + end; n += RANGE)
        j->k->q_matmul(j->y, N, &j->w, n, n + RANGE, &j->rows, j->scratch[thread]);
}

static void pack(void *arg, size_t thread, size_t threads)
{
    job *j = arg;
    size_t begin, end;
    bench_share(j->rows.m, MT_ROW_TILE, thread, threads, &begin, &end);
    j->k->q_pack(&j->rows, j->x, K, NULL, begin, end);
}

static void one_size(const bench *b, job *j, const char *format, size_t m)
{
    char what[64];
    snprintf(what, sizeof(what), "q_matmul %s m=%zu", format, m);
    if (!bench_picks(b, what))
        return;
    j->rows = (mt_rows){.m = m, .k = K, .group = j->w.group, .wide = j->w.bits == 8};
    j->rows.data = bench_alloc(j->k->q_rows_bytes(m, K, j->w.group));
    double packing = bench_time(b, pack, j);
    j->slices = m == 1 ? 2 : m < 16 ? 8 : 48;
    double part = (double)N / (double)j->slices,
           bytes = part * (double)(j->w.stride + (j->w.biases ? 2 : 1) * j->w.scale_stride);
    bench_report(b, what, bench_time(b, multiply, j), m < 16 ? bytes : 0, 2.0 * part * K * (double)m, b->int8);
    if (m == MAX_M) {
        snprintf(what, sizeof(what), "q_pack %s m=%zu", format, m);
        bench_report(b, what, packing, (double)m * K * 5, 0, 0);
    }
    free(j->rows.data);
}

/* Whatever scales are numbers of, these are near 1. */
static uint8_t *some_scales(const mt_mat *w)
{
    const size_t bytes = 2 * N * w->scale_stride, size = mt_scale_size(w->scale_type);
    uint8_t *scales = bench_alloc(bytes + 64);
    for (size_t i = 0; i + 1 < bytes; i += size) {
        scales[i + 1] = (uint8_t)((scales[i + 1] & 0x83) | 0x3c);
        scales[i] &= w->scale_type == MT_SCALE_BF16 ? 0x7f : 0xff;
    }
    if (size == 1)
        memset(scales, 127, bytes);
    return scales;
}

static void one_format(const bench *b, job *j, const char *format, mt_mat shape)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16, 64, MAX_M};
    j->w = shape;
    j->w.n = N;
    j->w.k = K;
    j->w.global = 1;
    j->w.stride = mt_code_row(K, shape.bits, shape.split);
    j->w.scale_stride = mt_scale_bytes(shape.scale_type, K / shape.group);
    uint8_t *scales = some_scales(&j->w), *codes = bench_alloc(N * j->w.stride);
    j->w.w = codes;
    j->w.scales = scales;
    j->w.biases = shape.format == MT_FORMAT_AFFINE ? j->w.scales + N * j->w.scale_stride : NULL;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        one_size(b, j, format, sizes[i]);
    free(scales);
    free(codes);
}

void bench_qmatmul(bench *b)
{
    if (!bench_wants(b, "q_matmul"))
        return;
    job j = {.k = b->k,
             .x = bench_alloc((size_t)MAX_M * K * sizeof(float)),
             .y = bench_alloc((size_t)MAX_M * N * sizeof(float))};
    for (size_t i = 0; i < (size_t)MAX_M * K; i++)
        j.x[i] = (float)(i * 2654435761u % 2001u) * 0.001f - 1.0f;
    for (size_t t = 0; t < b->threads; t++)
        j.scratch[t] = bench_alloc(b->k->q_scratch_bytes(K));
#define CODES(name, f, b, g, s, ...)                                                                \
    {                                                                                               \
        name,                                                                                       \
        {                                                                                           \
            .format = MT_FORMAT_##f, .bits = b, .group = g, .scale_type = MT_SCALE_##s, __VA_ARGS__ \
        }                                                                                           \
    }
    static const struct {
        const char *name;
        mt_mat shape;
    } formats[] = {CODES("4-bit g64", AFFINE, 4, 64, BF16),
                   CODES("4-bit g128", AFFINE, 4, 128, BF16),
                   CODES("4-bit g32", AFFINE, 4, 32, BF16),
                   CODES("8-bit g64", AFFINE, 8, 64, BF16),
                   CODES("8-bit g32", AFFINE, 8, 32, BF16),
                   CODES("mxfp4", MXFP4, 4, 32, E8M0),
                   CODES("q4_0", SIGNED, 4, 32, F16),
                   CODES("q8_0", SIGNED, 8, 32, F16),
                   CODES("q4_k", AFFINE, 4, 32, 8_OF_F16),
                   CODES("q5_k", AFFINE, 5, 32, 8_OF_F16, .split = true),
                   CODES("q6_k", SIGNED, 6, 16, 16_OF_F16, .split = true),
                   CODES("iq4_nl", IQ4, 4, 32, F16),
                   CODES("iq4_xs", IQ4, 4, 32, 8_OF_F16),
                   CODES("q5_0", SIGNED, 5, 32, F16, .split = true),
                   CODES("q3_k", SIGNED, 3, 16, 16_OF_F16),
                   CODES("q2_k", AFFINE, 2, 16, 16_OF_F16)};
#undef CODES
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        one_format(b, &j, formats[i].name, formats[i].shape);
    for (size_t t = 0; t < b->threads; t++)
        free(j.scratch[t]);
    free(j.x);
    free(j.y);
}
