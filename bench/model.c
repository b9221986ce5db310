/* How fast a checkpoint prefills and decodes on this machine, and what share of the weights' bytes that moves.

       bench_model DIR [--prompt N] [--tokens N] [--batch N] [--threads N] [--precision fast|reference]
                        [--kv-bits 16|8|4] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "engine/opened.h"

typedef struct arguments {
    const char *dir;
    size_t prompt, tokens, batch, threads;
    mt_precision precision;
    mt_kv_bits kv_bits;
} arguments;

typedef struct bench {
    mt_opened o;
    mt_model *model;
    mt_set *set;
    mt_reading *reading; /* of logits */
    size_t rows;
    uint32_t *tokens, *pages, *wanted;
    mt_position *positions;
    mt_span *spans;
    mt_piece *pieces;
    uint64_t hash; /* of every logit seen, so that a faster but different result shows */
} bench;

#define CHUNK 512

static bool parse(arguments *a, int argc, char **argv)
{
    *a = (arguments){.prompt = 512, .tokens = 32, .batch = 1};
    for (int i = 1; i < argc; i++) {
        const bool value = i + 1 < argc;
        if (value && strcmp(argv[i], "--prompt") == 0)
            a->prompt = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--tokens") == 0)
            a->tokens = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--batch") == 0)
            a->batch = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--threads") == 0)
            a->threads = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--precision") == 0)
            a->precision = strcmp(argv[++i], "reference") == 0 ? MT_PRECISION_REFERENCE : MT_PRECISION_FAST;
        else if (value && strcmp(argv[i], "--kv-bits") == 0) {
            const unsigned long bits = strtoul(argv[++i], NULL, 10);
            a->kv_bits = bits == 8 ? MT_KV_BITS_8 : bits == 4 ? MT_KV_BITS_4 : MT_KV_BITS_16;
        } else if (argv[i][0] != '-' && !a->dir)
            a->dir = argv[i];
        else
            return false;
    }
    return a->dir && a->prompt && a->batch;
}

static void add_hash(bench *b, const mt_tensor *logits, size_t rows)
{
    mt_read_rows(b->o.dev, b->reading, logits, 0, rows);
    for (size_t r = 0; r < rows; r++) {
        const float *p = mt_reading_row(b->o.dev, b->reading, r);
        for (size_t i = 0; i < b->o.spec.vocab; i++) {
            uint32_t bits;
            memcpy(&bits, &p[i], sizeof bits);
            b->hash = (b->hash ^ bits) * 0x100000001b3u;
        }
    }
}

/* One step of `rows` rows for each of `sequences` sequences, from `position` on. Returns seconds. */
static double step(bench *b, size_t sequences, size_t rows, size_t position, size_t pages_each)
{
    mt_batch batch = {
        .rows = sequences * rows, .tokens = b->tokens, .positions = b->positions, .spans = sequences, .span = b->spans};
    for (size_t s = 0; s < sequences; s++) {
        const uint32_t *table = b->pages + s * pages_each; /* every group has the same */
        const uint32_t slot = table[0] / (uint32_t)pages_each;
        b->pieces[s] = (mt_piece){.rows = (uint32_t)rows, .slot = slot};
        b->spans[s] = (mt_span){.row = (uint32_t)(s * rows),
                                .rows = (uint32_t)rows,
                                .position = (uint32_t)position,
                                .pages = {table, table, table, table},
                                .state = position ? slot : MT_NO_PAGE,
                                .pieces = 1,
                                .piece = &b->pieces[s]};
        b->wanted[s] = (uint32_t)(s * rows + rows - 1);
        for (size_t i = 0; i < rows; i++) {
            b->tokens[s * rows + i] = (uint32_t)((position + i) * 2654435761u + s * 40503u) % b->o.spec.vocab;
            const uint32_t at = (uint32_t)(position + i);
            b->positions[s * rows + i] = (mt_position){{at, at, at}};
        }
    }
    const uint64_t begin = mt_clock_ns();
    const mt_tensor *logits = mt_model_step(b->model, &batch, b->wanted, sequences);
    const double seconds = (double)(mt_clock_ns() - begin) * 1e-9;
    add_hash(b, logits, sequences);
    return seconds;
}

static bool start(bench *b, const arguments *a, size_t pages_each, mt_error *err)
{
    const mt_device_params device = {
        .host = {.threads = a->threads, .cpu_mask = ~0u}, .precision = a->precision, .kv_bits = a->kv_bits};
    const size_t rows = a->batch > CHUNK ? a->batch : CHUNK;
    const mt_model_params params = {.rows = rows, .logits = a->batch};
    const size_t pages = pages_each * a->batch, all[MT_KV_GROUPS] = {pages, pages, pages, pages};
    if (!mt_opened_open(&b->o, a->dir, &device, err))
        return false;
    b->model = mt_model_new(b->o.dev, &b->o.spec, &b->o.weights, &params, err);
    if (!b->model || !mt_model_reserve(b->model, all, a->batch, err))
        return false;
    b->set = mt_set_new(b->o.dev);
    b->reading = mt_reading_new(b->set, a->batch * b->o.spec.vocab * sizeof(float));
    b->tokens = mt_alloc(rows * sizeof *b->tokens);
    b->positions = mt_alloc(rows * sizeof *b->positions);
    b->wanted = mt_alloc(a->batch * sizeof *b->wanted);
    b->spans = mt_alloc(a->batch * sizeof *b->spans);
    b->pieces = mt_alloc(a->batch * sizeof *b->pieces);
    b->pages = mt_alloc(pages * sizeof *b->pages);
    for (size_t i = 0; i < pages; i++)
        b->pages[i] = (uint32_t)i;
    return true;
}

static void measure(bench *b, const arguments *a, size_t pages_each)
{
    double prefill = 0, decode = 0;
    for (size_t s = 0; s < a->batch; s++) { /* each sequence's prompt by itself */
        for (size_t at = 0; at < a->prompt; at += CHUNK) {
            const size_t left = a->prompt - at;
            uint32_t *const pages = b->pages;
            b->pages = pages + s * pages_each;
            prefill += step(b, 1, left < CHUNK ? left : CHUNK, at, pages_each);
            b->pages = pages;
        }
    }
    for (size_t t = 0; t < a->tokens; t++)
        decode += step(b, a->batch, 1, a->prompt + t, pages_each);
    const double bytes = (double)mt_checkpoint_bytes(b->o.checkpoint);
    printf("prefill  %6zu tokens      %9.1f tok/s\n", a->prompt * a->batch, (double)(a->prompt * a->batch) / prefill);
    if (a->tokens)
        printf("decode   %6zu x %-3zu tokens %9.1f tok/s  %7.2f ms a step  %5.1f GB/s of weights\n", a->tokens,
               a->batch, (double)(a->tokens * a->batch) / decode, 1e3 * decode / (double)a->tokens,
               bytes * (double)a->tokens / decode * 1e-9);
    printf("logits   hash %016llx\n", (unsigned long long)b->hash);
}

int main(int argc, char **argv)
{
    arguments a;
    bench b = {.hash = 0xcbf29ce484222325u};
    mt_error err = {0};
    if (!parse(&a, argc, argv)) {
        fprintf(stderr, "usage: bench_model DIR [--prompt N] [--tokens N] [--batch N] [--threads N] "
                        "[--precision fast|reference] [--kv-bits 16|8|4]\n");
        return 2;
    }
    const size_t pages_each = (a.prompt + a.tokens + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS;
    const bool ok = start(&b, &a, pages_each, &err);
    if (ok)
        measure(&b, &a, pages_each);
    else
        fprintf(stderr, "bench_model: %s\n", err.text);
    mt_set_free(b.set);
    mt_model_free(b.model);
    mt_opened_close(&b.o);
    mt_free(b.tokens);
    mt_free(b.positions);
    mt_free(b.wanted);
    mt_free(b.spans);
    mt_free(b.pieces);
    mt_free(b.pages);
    return ok ? 0 : 1;
}
