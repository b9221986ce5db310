/* How long the sampler takes for one row, on one core.

   usage: bench_sample [VOCAB]     151936, Qwen's, unless told */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "sample/philox.h"
#include "sample/sampler.h"
#include "weights/limits.h"

enum { RUNS = 50, PROMPT = 2000, OUTPUT = 500 };

/* Uniform in (0, 1]. */
static double uniform(uint32_t index)
{
    return ((double)(mt_philox_draw(1, 0, index, MT_PURPOSE_TOKEN) >> 11) + 1) * 0x1p-53;
}

/* A bulk around zero, and a few hundred tokens that stand out, the further the fewer, as models' logits have it. */
static void make_row(float *x, size_t n, double spread, double outliers)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = (float)(spread * sqrt(-2 * log(uniform(2 * i))) * cos(6.283185307179586 * uniform(2 * i + 1)));
    for (uint32_t i = 0; i < 300; i++)
        x[(size_t)(uniform(1u << 30 | i) * (double)(n - 1))] = (float)(outliers / (1 + 0.12 * i));
}

static void measure(const char *name, const mt_kernels *k, const mt_sample_row *from, void *scratch)
{
    mt_sample_row row = *from;
    double best = 1e9, sum = 0;
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < RUNS; i++) {
        mt_sampled out;
        uint64_t start = mt_clock_ns();
        row.index = i;
        if (mt_sample(k, &row, scratch, &out) != MT_SAMPLE_OK)
            printf("%s failed\n", name);
        double us = (double)(mt_clock_ns() - start) / 1e3;
        best = us < best ? us : best;
        sum += us;
        hash = (hash ^ out.chosen.id) * 16777619u;
    }
    printf("  %-34s best %8.1f us   mean %8.1f us   tokens %08x\n", name, best, sum / RUNS, hash);
}

/* What reading the row once costs at the least. */
static void measure_reading(const mt_kernels *k, const float *x, size_t n)
{
    volatile float sink = 0;
    double best = 1e9;
    for (int i = 0; i < RUNS; i++) {
        uint64_t start = mt_clock_ns();
        sink = k->max(x, n);
        double us = (double)(mt_clock_ns() - start) / 1e3;
        best = us < best ? us : best;
    }
    (void)sink;
    printf("  %-34s best %8.1f us\n", "(maximum alone)", best);
}

static const struct {
    const char *name;
    mt_sample_settings settings;
} cases[] = {
#define PLAIN .top_p = 1, .typical_p = 1, .repetition_penalty = 1, .seed = 7
    {"greedy", {PLAIN, .logprobs = -1}},
    {"greedy, logprobs 20", {PLAIN, .logprobs = 20}},
    {"temperature 1", {PLAIN, .temperature = 1, .logprobs = -1}},
    {"temperature 0.7, top_k 20", {PLAIN, .temperature = 0.7f, .top_k = 20, .logprobs = -1}},
    {"temperature 0.7, top_k 1000", {PLAIN, .temperature = 0.7f, .top_k = 1000, .logprobs = -1}},
    {"temperature 0.7, min_p 0.05", {PLAIN, .temperature = 0.7f, .min_p = 0.05f, .logprobs = -1}},
    {"temperature 1, top_p 0.95",
     {.typical_p = 1, .repetition_penalty = 1, .seed = 7, .temperature = 1, .top_p = 0.95f, .logprobs = -1}},
    {"the same, logprobs 20",
     {.typical_p = 1, .repetition_penalty = 1, .seed = 7, .temperature = 1, .top_p = 0.95f, .logprobs = 20}},
    {"temperature 1, typical_p 0.95",
     {.top_p = 1, .typical_p = 0.95f, .repetition_penalty = 1, .seed = 7, .temperature = 1, .logprobs = -1}},
    {"greedy, penalties",
     {.top_p = 1, .typical_p = 1, .repetition_penalty = 1.1f, .frequency_penalty = 0.5f, .logprobs = -1}},
};

static void measure_all(const mt_kernels *k, const float *logits, size_t vocab)
{
    void *scratch = mt_alloc_aligned(64, mt_sample_scratch_bytes(vocab));
    uint32_t *prompt = mt_alloc_array(PROMPT, sizeof(*prompt));
    void *memory = mt_alloc(mt_counts_bytes(PROMPT, OUTPUT, vocab, 0));
    for (uint32_t i = 0; i < PROMPT; i++)
        prompt[i] = (uint32_t)(uniform(i) * (double)(vocab - 1));
    mt_counts *counts = mt_counts_make(memory, prompt, PROMPT, OUTPUT, vocab, 0);
    for (uint32_t i = 0; i < OUTPUT; i++)
        mt_counts_push(counts, (uint32_t)(uniform(i) * 1000));
    measure_reading(k, logits, vocab);
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_sample_row row = {.logits = logits, .vocab = vocab, .settings = &cases[i].settings};
        row.counts = mt_sample_settings_penalise(row.settings) ? counts : NULL;
        measure(cases[i].name, k, &row, scratch);
    }
    mt_free(memory);
    mt_free(prompt);
    mt_free(scratch);
}

int main(int argc, char **argv)
{
    long vocab = argc > 1 ? strtol(argv[1], NULL, 10) : 151936;
    mt_kernels k;
    if (vocab < 1000 || vocab > MT_LIMIT_VOCAB) {
        fprintf(stderr, "usage: bench_sample [VOCAB]\n");
        return 2;
    }
    float *logits = mt_alloc_array((size_t)vocab, sizeof(*logits));
    mt_kernels_init(&k, mt_cpu_detect());
    printf("%ld logits, scratch %.1f MB; a peaked row\n", vocab, (double)mt_sample_scratch_bytes((size_t)vocab) / 1e6);
    make_row(logits, (size_t)vocab, 2.5, 24);
    measure_all(&k, logits, (size_t)vocab);
    printf("a flat row, where thousands of tokens share the mass\n");
    make_row(logits, (size_t)vocab, 1.5, 4);
    measure_all(&k, logits, (size_t)vocab);
    mt_free(logits);
    return 0;
}
