/* Attention over paged keys and values in bf16, 8 and 4 bits: decode streams many segments from memory, prefill has 32
   rows and more a segment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels/kvq.h"

void bench_attn(bench *b);

enum { PAGE = 32, POSITIONS = 8192, SLICES = 8, MAX_ROWS = 128, MAX_STRIDE = 256, SEGMENTS = POSITIONS / MT_SEGMENT };

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
            (a.bits ? j->k->attn_q : j->k->attn_bf16)(j->o[thread], j->part[thread], &a, seg, j->scratch[thread]);
    }
}

/* Numbers near 1, of either sign. */
static void fill_bf16(void *x, size_t n)
{
    mt_bf16 *h = x;
    for (size_t i = 0; i < n; i++)
        h[i] = (mt_bf16)((h[i] & 0x80ffu) | 0x3f00u);
}

/* Random integers, with scales near 1. */
static void fill_blocks(uint8_t *memory, size_t blocks, size_t stride, unsigned bits)
{
    const size_t bytes = mt_kvq_block_bytes(PAGE, stride, bits);
    for (size_t i = 0; i < blocks; i++) {
        fill_bf16(memory + i * bytes, PAGE);
        for (size_t j = 0; j < PAGE; j++)
            memory[i * bytes + 2 * j + 1] &= 0x7f;
    }
}

/* bits: 16, 8 or 4 */
static void one(const bench *b, job *j, unsigned bits, size_t stride, size_t rows, size_t heads, const char *what)
{
    char name[64];
    snprintf(name, sizeof(name), "attn_%s%s %s head=%zu rows=%zu", bits == 16 ? "bf" : "q",
             bits == 16  ? "16"
             : bits == 8 ? "8"
                         : "4",
             what, stride, rows);
    if (!bench_picks(b, name))
        return;
    const size_t block = bits == 16 ? PAGE * stride * sizeof(mt_bf16) : mt_kvq_block_bytes(PAGE, stride, bits);
    const size_t query = bits == 16 ? stride * sizeof(mt_bf16) : mt_kvq_query_bytes(stride);
    size_t pages = heads * (POSITIONS / PAGE), page_bytes = 2 * block;
    uint8_t *memory = bench_alloc_large(pages * page_bytes), *q = bench_alloc(rows * query);
    uint32_t lo[MAX_ROWS] = {0}, hi[MAX_ROWS];
    if (bits == 16) {
        fill_bf16(memory, pages * page_bytes / sizeof(mt_bf16));
        fill_bf16(q, rows * stride);
    } else {
        fill_blocks(memory, 2 * pages, stride, bits);
        for (size_t i = 0; i < rows; i++)
            memcpy(q + i * query + stride, &(float){0.001f}, sizeof(float));
    }
    for (size_t i = 0; i < MAX_ROWS; i++)
        hi[i] = POSITIONS;
    for (size_t i = 0; i < pages; i++)
        j->pages[i] = (uint32_t)(i * 7 % pages);
    j->heads = heads;
    j->slices = rows <= 16 ? SLICES : 1;
    j->a = (mt_attn){.base = memory,
                     .page_stride = page_bytes,
                     .v_offset = page_bytes / 2,
                     .page_tokens = PAGE,
                     .head_stride = stride,
                     .bits = bits == 16 ? 0 : bits,
                     .scale = 0.1f,
                     .rows = rows,
                     .q = q,
                     .lo = lo,
                     .hi = hi};
    double seconds = bench_time(b, attend, j), positions = (double)(heads / j->slices * POSITIONS),
           width = (double)stride;
    bench_report(b, name, seconds, rows <= 16 ? positions * 2 * (double)block / PAGE : 0,
                 4 * (double)rows * positions * width, bits == 16 ? b->bf16 : b->int8);
    free(memory);
    free(q);
}

void bench_attn(bench *b)
{
    static const size_t strides[] = {64, 128, 256}, few[] = {1, 2, 4, 7, 8, 16}, many[] = {32, 64, 128};
    if (!bench_wants(b, "attn"))
        return;
    job *j = calloc(1, sizeof(*j));
    if (!j)
        abort();
    j->k = b->k;
    j->pages = bench_alloc((size_t)2048 * POSITIONS / PAGE * sizeof(*j->pages));
    for (size_t i = 0; i < b->threads; i++) {
        j->o[i] = bench_alloc((size_t)MAX_ROWS * MAX_STRIDE * sizeof(float));
        const size_t bytes = b->k->attn_scratch_bytes(MAX_ROWS, MAX_STRIDE),
                     more = b->k->attn_q_scratch_bytes(MAX_ROWS, MAX_STRIDE);
        j->scratch[i] = bench_alloc(bytes > more ? bytes : more);
    }
    for (size_t s = 0; s < 3; s++) {
        for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++)
            for (unsigned bits = 16; bits >= 4; bits /= 2)
                one(b, j, bits, strides[s], few[i], ((size_t)128 << 20) / (POSITIONS * strides[s] / 8 * bits),
                    "decode");
        for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
            for (unsigned bits = 16; bits >= 4; bits /= 2)
                one(b, j, bits, strides[s], many[i], 16, "prefill");
    }
    for (size_t i = 0; i < b->threads; i++) {
        free(j->o[i]);
        free(j->scratch[i]);
    }
    free(j->pages);
    free(j);
}
