/* The recurrence of a GatedDeltaNet layer of 16 heads of 128 x 128, and of Mamba2 with states of the same size: one
   token streams the states from memory, many tokens find them in the first-level cache. */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

void bench_delta(bench *b);

enum { COLUMNS = MT_DELTA_COLUMNS, DIM = 128, HEADS = 16, BLOCKS = HEADS * DIM / COLUMNS, LAYERS = 18, TOKENS = 128 };

typedef struct job {
    const mt_kernels *k;
    size_t tokens, turn[256];
    bool plain;
    float *state, *rows, *gates, *o;
} job;

static void recur(void *arg, size_t thread, size_t threads)
{
    job *j = arg;
    size_t begin, end;
    float *layer = j->state + j->turn[thread]++ % LAYERS * BLOCKS * DIM * COLUMNS;
    bench_share(BLOCKS, 1, thread, threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float *state = layer + i * DIM * COLUMNS;
        const mt_delta d = {.plain = j->plain,
                            .tokens = j->tokens,
                            .dk = DIM,
                            .n = COLUMNS,
                            .q = j->rows,
                            .k = j->rows + DIM,
                            .v = j->rows + 2 * DIM,
                            .stride = 3 * DIM,
                            .decay = j->gates,
                            .beta = j->gates,
                            .gate_stride = 1,
                            .o = j->o + i * COLUMNS,
                            .o_stride = HEADS * DIM};
        j->k->delta(state, state, &d);
    }
}

static void one(const bench *b, job *j, size_t tokens, bool plain)
{
    char name[64];
    j->tokens = tokens;
    j->plain = plain;
    const double seconds = bench_time(b, recur, j), elements = (double)HEADS * DIM * DIM;
    snprintf(name, sizeof(name), "delta%s 16 heads of 128x128, tokens=%zu", plain ? " plain" : "", tokens);
    bench_report(b, name, seconds, tokens == 1 ? 8 * elements : 0, (plain ? 5 : 7) * elements * (double)tokens,
                 b->fp32);
}

void bench_delta(bench *b)
{
    if (!bench_wants(b, "delta"))
        return;
    job *j = calloc(1, sizeof(*j));
    if (!j)
        abort();
    j->k = b->k;
    const size_t states = (size_t)LAYERS * BLOCKS * DIM * COLUMNS, rows = (size_t)TOKENS * 3 * DIM;
    j->state = bench_alloc_large(states * sizeof(float));
    j->rows = bench_alloc(rows * sizeof(float));
    j->gates = bench_alloc(TOKENS * sizeof(float));
    j->o = bench_alloc((size_t)TOKENS * HEADS * DIM * sizeof(float));
    for (size_t i = 0; i < states; i++)
        j->state[i] = 0.01f;
    for (size_t i = 0; i < rows; i++)
        j->rows[i] = i % 2 ? 0.1f : -0.1f;
    for (size_t i = 0; i < TOKENS; i++)
        j->gates[i] = 0.9f;
    for (int plain = 0; plain < 2; plain++) {
        one(b, j, 1, plain);
        one(b, j, 8, plain);
        one(b, j, TOKENS, plain);
    }
    free(j->state);
    free(j->rows);
    free(j->gates);
    free(j->o);
    free(j);
}
