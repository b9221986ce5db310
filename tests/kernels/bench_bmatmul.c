/* b_matmul and f_matmul on matrices larger than the last-level cache; bytes are those of the weights. */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

void bench_bmatmul(bench *b);

/* Large products take an eighth of the matrix a round: short rounds find the quiet moments of a shared machine. */
enum { N = 16384, K = 4096, RANGE = 256, SLICES = 8, MAX_M = 256 };

typedef struct job {
    const mt_kernels *k;
    mt_mat w;
    mt_rows rows;
    float *x, *y;
    uint8_t *scratch[256];
    size_t slices, turn[256];
    bool fp32; /* f_matmul */
} job;

static void multiply(void *arg, size_t thread, size_t threads)
{
    job *j = arg;
    size_t begin, end;
    bench_share(N / j->slices, RANGE, thread, threads, &begin, &end);
    size_t offset = j->turn[thread]++ % j->slices * (N / j->slices);
    for (size_t n = offset + begin; n < offset + end; n += RANGE) {
        if (j->fp32)
            j->k->f_matmul(j->y, N, &j->w, n, n + RANGE, j->x, K, NULL, j->rows.m, j->scratch[thread]);
        else
            j->k->b_matmul(j->y, N, &j->w, n, n + RANGE, &j->rows, j->scratch[thread]);
    }
}

static void pack(void *arg, size_t thread, size_t threads)
{
    job *j = arg;
    size_t begin, end;
    bench_share(j->rows.m, MT_ROW_TILE, thread, threads, &begin, &end);
    j->k->b_pack(&j->rows, j->x, K, NULL, begin, end);
}

static void one_size(const bench *b, job *j, const char *format, size_t m)
{
    char what[64];
    snprintf(what, sizeof(what), "%c_matmul %s m=%zu", j->fp32 ? 'f' : 'b', format, m);
    if (!bench_picks(b, what))
        return;
    j->rows = (mt_rows){.m = m, .k = K};
    j->rows.data = bench_alloc(j->k->b_rows_bytes(m, K));
    double packing = bench_time(b, pack, j);
    j->slices = m < 16 ? 1 : SLICES;
    double part = (double)N / (double)j->slices, bytes = part * (double)j->w.stride;
    bench_report(b, what, bench_time(b, multiply, j), m < 16 ? bytes : 0, 2.0 * part * K * (double)m,
                 j->fp32 ? b->fp32 : b->bf16);
    if (m == MAX_M && !j->fp32) {
        snprintf(what, sizeof(what), "b_pack m=%zu", m);
        bench_report(b, what, packing, (double)m * K * 6, 0, 0);
    }
    free(j->rows.data);
}

static void one_format(const bench *b, job *j, const char *name, mt_format format, uint8_t bits, bool fp32,
                       const size_t *sizes)
{
    j->w = (mt_mat){.format = format, .bits = bits, .n = N, .k = K, .stride = (size_t)K * bits / 8};
    j->fp32 = fp32;
    uint8_t *scales = bench_alloc((size_t)N * K / 32), *codes = bench_alloc(N * j->w.stride);
    if (format == MT_FORMAT_FP8) {
        j->w.group = 128, j->w.scale_rows = 128, j->w.scale_type = MT_SCALE_BF16, j->w.scale_stride = K / 128 * 2;
    } else if (format == MT_FORMAT_MXFP8) {
        j->w.group = 32, j->w.scale_type = MT_SCALE_E8M0, j->w.scale_stride = K / 32;
    }
    for (size_t i = 0; i < (size_t)N * K / 32; i++)
        scales[i] = (uint8_t)(scales[i] % 16 + 112); /* modest as E8M0 and as bf16 */
    for (size_t i = 0; bits == 8 && i < N * j->w.stride; i++)
        codes[i] = (codes[i] & 0x7f) == 0x7f ? 0x7e : codes[i]; /* no NaN */
    for (size_t i = 1; bits == 16 && i < N * j->w.stride; i += 2)
        codes[i] = (uint8_t)((codes[i] & 0x80) | 0x3c);
    j->w.w = codes;
    j->w.scales = scales;
    for (; *sizes; sizes++)
        one_size(b, j, name, *sizes);
    free(scales);
    free(codes);
}

void bench_bmatmul(bench *b)
{
    static const size_t all[] = {1, 2, 4, 8, 16, 64, MAX_M, 0}, some[] = {1, 64, MAX_M, 0};
    if (!bench_wants(b, "b_matmul") && !bench_wants(b, "f_matmul"))
        return;
    job j = {.k = b->k,
             .x = bench_alloc((size_t)MAX_M * K * sizeof(float)),
             .y = bench_alloc((size_t)MAX_M * N * sizeof(float))};
    for (size_t i = 0; i < (size_t)MAX_M * K; i++)
        j.x[i] = (float)(i * 37 % 1001) * 0.002f - 1.0f;
    for (size_t i = 0; i < b->threads; i++)
        j.scratch[i] = bench_alloc(j.k->b_scratch_bytes(K) + j.k->f_scratch_bytes(K));
    if (bench_wants(b, "b_matmul")) {
        one_format(b, &j, "bf16", MT_FORMAT_BF16, 16, false, all);
        one_format(b, &j, "fp8", MT_FORMAT_FP8, 8, false, some);
        one_format(b, &j, "mxfp8", MT_FORMAT_MXFP8, 8, false, some);
    }
    if (bench_wants(b, "f_matmul")) {
        one_format(b, &j, "f32", MT_FORMAT_F32, 32, true, some);
        one_format(b, &j, "bf16", MT_FORMAT_BF16, 16, true, some);
    }
    for (size_t i = 0; i < b->threads; i++)
        free(j.scratch[i]);
    free(j.x);
    free(j.y);
}
