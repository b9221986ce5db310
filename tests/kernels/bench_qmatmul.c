/* q_matmul on a matrix larger than the last-level cache; bytes are those of weights, scales and biases. */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

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
    double part = (double)N / (double)j->slices, bytes = part * (double)(j->w.stride + 2 * j->w.scale_stride);
    bench_report(b, what, bench_time(b, multiply, j), m < 16 ? bytes : 0, 2.0 * part * K * (double)m, b->int8);
    if (m == MAX_M) {
        snprintf(what, sizeof(what), "q_pack %s m=%zu", format, m);
        bench_report(b, what, packing, (double)m * K * 5, 0, 0);
    }
    free(j->rows.data);
}

static void one_format(const bench *b, job *j, const char *format, uint8_t bits, uint16_t group)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16, 64, MAX_M};
    j->w =
        (mt_mat){.format = MT_FORMAT_AFFINE, .scale_type = MT_SCALE_BF16, .bits = bits, .group = group, .n = N, .k = K};
    j->w.stride = (size_t)K * bits / 8;
    j->w.scale_stride = (size_t)K / group * 2;
    uint16_t *scales = bench_alloc(2 * N * j->w.scale_stride);
    for (size_t i = 0; i < N * j->w.scale_stride; i++)
        scales[i] = (uint16_t)((scales[i] & 0x807fu) | 0x3c00u);
    uint8_t *codes = bench_alloc(N * j->w.stride);
    j->w.w = codes;
    j->w.scales = (const uint8_t *)scales;
    j->w.biases = j->w.scales + N * j->w.scale_stride;
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
    one_format(b, &j, "4-bit g64", 4, 64);
    one_format(b, &j, "4-bit g128", 4, 128);
    one_format(b, &j, "4-bit g32", 4, 32);
    one_format(b, &j, "8-bit g64", 8, 64);
    one_format(b, &j, "8-bit g32", 8, 32);
    for (size_t t = 0; t < b->threads; t++)
        free(j.scratch[t]);
    free(j.x);
    free(j.y);
}
