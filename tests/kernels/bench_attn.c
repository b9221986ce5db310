/* Attention over paged bf16 keys and values: decode streams many segments from memory, prefill has 32 rows and more a
   segment. */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

void bench_attn(bench *b);

enum { PAGE = 32, POSITIONS = 1024, SLICES = 8, MAX_ROWS = 128, MAX_STRIDE = 256, SEGMENTS = POSITIONS / MT_SEGMENT };

typedef struct job {
    const mt_kernels *k;
    mt_attn a;
    size_t heads, slices, turn[256]; /* a round takes one slice of the heads */
    uint32_t *pages;
    float *o[256];
    mt_attn_part part[256][MAX_ROWS];
    uint8_t *scratch[256];
} job;

/* All segments of the heads of one thread; a head's keys and values are its own pages. */
static void attend(void *arg, size_t thread, size_t threads)
{
    job *j = arg;
    size_t begin, end;
    bench_share(j->heads / j->slices, 1, thread, threads, &begin, &end);
    size_t offset = j->turn[thread]++ % j->slices * (j->heads / j->slices);
    for (size_t h = begin; h < end; h++) {
        mt_attn a = j->a;
        a.pages = j->pages + (offset + h) * (POSITIONS / PAGE);
        for (size_t seg = 0; seg < SEGMENTS; seg++)
            j->k->attn_bf16(j->o[thread], j->part[thread], &a, seg, j->scratch[thread]);
    }
}

static void one(const bench *b, job *j, size_t stride, size_t rows, size_t heads, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "attn_bf16 %s head=%zu rows=%zu", what, stride, rows);
    if (!bench_picks(b, name))
        return;
    size_t pages = heads * (POSITIONS / PAGE), page_bytes = 2 * PAGE * stride * sizeof(mt_bf16);
    mt_bf16 *memory = bench_alloc_large(pages * page_bytes), *q = bench_alloc(rows * stride * sizeof(mt_bf16));
    uint32_t lo[MAX_ROWS] = {0}, hi[MAX_ROWS];
    for (size_t i = 0; i < pages * page_bytes / 2; i++)
        memory[i] = (mt_bf16)((memory[i] & 0x80ffu) | 0x3f00u);
    for (size_t i = 0; i < rows * stride; i++)
        q[i] = (mt_bf16)((q[i] & 0x80ffu) | 0x3f00u);
    for (size_t i = 0; i < MAX_ROWS; i++)
        hi[i] = POSITIONS;
    for (size_t i = 0; i < pages; i++)
        j->pages[i] = (uint32_t)(i * 7 % pages);
    j->heads = heads;
    j->slices = rows <= 16 ? SLICES : 1;
    j->a = (mt_attn){.base = (const uint8_t *)memory,
                     .page_stride = page_bytes,
                     .v_offset = page_bytes / 2,
                     .page_tokens = PAGE,
                     .head_stride = stride,
                     .scale = 0.1f,
                     .rows = rows,
                     .q = q,
                     .lo = lo,
                     .hi = hi};
    double seconds = bench_time(b, attend, j), positions = (double)(heads / j->slices * POSITIONS),
           width = (double)stride;
    bench_report(b, name, seconds, rows <= 16 ? positions * width * 4 : 0, 4 * (double)rows * positions * width,
                 b->bf16);
    free(memory);
    free(q);
}

void bench_attn(bench *b)
{
    static const size_t strides[] = {64, 128, 256}, few[] = {1, 2, 4, 7, 8, 16}, many[] = {32, 64, 128};
    if (!bench_wants(b, "attn"))
        return;
    job *j = calloc(1, sizeof *j);
    if (!j)
        abort();
    j->k = b->k;
    j->pages = bench_alloc((size_t)1024 * POSITIONS / PAGE * sizeof *j->pages);
    for (size_t i = 0; i < b->threads; i++) {
        j->o[i] = bench_alloc((size_t)MAX_ROWS * MAX_STRIDE * sizeof(float));
        j->scratch[i] = bench_alloc(b->k->attn_scratch_bytes(MAX_ROWS, MAX_STRIDE));
    }
    for (size_t s = 0; s < 3; s++) {
        size_t heads = ((size_t)96 << 20) / (POSITIONS * strides[s] * 4);
        for (size_t i = 0; i < sizeof few / sizeof few[0]; i++)
            one(b, j, strides[s], few[i], heads, "decode");
        for (size_t i = 0; i < sizeof many / sizeof many[0]; i++)
            one(b, j, strides[s], many[i], 16, "prefill");
    }
    for (size_t i = 0; i < b->threads; i++) {
        free(j->o[i]);
        free(j->scratch[i]);
    }
    free(j->pages);
    free(j);
}
