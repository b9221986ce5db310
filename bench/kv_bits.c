/* How far answers with keys and values in 8 and 4 bits are from those with 16: over one long prompt, at depths that
   double, KL divergence of the next token and the largest difference of a logprob among the likeliest 20, of the last
   64 tokens before each depth; and what a token of the cache takes.

       bench_kv_bits DIR [--ids FILE] [--depth N] [--precision fast|reference] [--threads N]

   The file holds token ids as `motet tokenize` prints them, and is repeated; else tokens are drawn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/opened.h"

#define CHUNK 512
#define ROWS 64
#define TOP 20
#define FIRST 2048
#define MAX_DEPTHS 8

typedef struct arguments {
    const char *dir, *ids;
    size_t depth, threads;
    mt_precision precision;
} arguments;

typedef struct prompt {
    uint32_t *tokens;
    size_t count; /* then again from the first; 0: drawn */
} prompt;

typedef struct measured {
    float *logits[MAX_DEPTHS]; /* [ROWS][vocab] */
    size_t vocab, page_bytes;
} measured;

static bool parse(arguments *a, int argc, char **argv)
{
    *a = (arguments){.depth = 32768};
    for (int i = 1; i < argc; i++) {
        const bool value = i + 1 < argc;
        if (value && strcmp(argv[i], "--ids") == 0)
            a->ids = argv[++i];
        else if (value && strcmp(argv[i], "--depth") == 0)
            a->depth = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--threads") == 0)
            a->threads = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--precision") == 0)
            a->precision = strcmp(argv[++i], "reference") == 0 ? MT_PRECISION_REFERENCE : MT_PRECISION_FAST;
        else if (argv[i][0] != '-' && !a->dir)
            a->dir = argv[i];
        else
            return false;
    }
    return a->dir && a->depth >= FIRST && a->depth < FIRST << MAX_DEPTHS;
}

static bool read_ids(prompt *p, const char *path)
{
    unsigned long id;
    FILE *f = path ? fopen(path, "r") : NULL;
    for (size_t room = 0; f && fscanf(f, "%lu%*[ ,\n]", &id) == 1;) {
        if (p->count == room) {
            const size_t more = 2 * room + 1024;
            p->tokens = mt_realloc(p->tokens, room * sizeof(*p->tokens), more * sizeof(*p->tokens));
            room = more;
        }
        p->tokens[p->count++] = (uint32_t)id;
    }
    if (f)
        fclose(f);
    return !path || p->count > 0;
}

static uint32_t token_at(const prompt *p, size_t i, size_t vocab)
{
    return p->count ? p->tokens[i % p->count] : (uint32_t)((i * 2654435761u >> 7) % vocab);
}

/* One chunk; the logits of its last ROWS rows where they are wanted. */
static void step(mt_opened *o, mt_model *m, const prompt *p, size_t at, const uint32_t *pages, float *logits)
{
    uint32_t tokens[CHUNK], wanted[ROWS];
    mt_position positions[CHUNK];
    const mt_piece piece = {.rows = CHUNK};
    const mt_span span = {.rows = CHUNK,
                          .position = (uint32_t)at,
                          .pages = {pages, pages, pages, pages},
                          .state = at ? 0 : MT_NO_PAGE,
                          .pieces = 1,
                          .piece = &piece};
    for (uint32_t i = 0; i < CHUNK; i++) {
        const uint32_t position = (uint32_t)at + i;
        tokens[i] = token_at(p, at + i, o->spec.vocab);
        positions[i] = (mt_position){{position, position, position}};
    }
    for (uint32_t i = 0; i < ROWS; i++)
        wanted[i] = CHUNK - ROWS + i;
    const mt_batch batch = {.rows = CHUNK, .tokens = tokens, .positions = positions, .spans = 1, .span = &span};
    const mt_tensor *result = mt_model_step(m, &batch, wanted, logits ? ROWS : 0);
    if (!logits)
        return;
    mt_set *set = mt_set_new(o->dev);
    mt_reading *reading = mt_reading_new(set, o->spec.vocab * sizeof(float));
    for (size_t r = 0; r < ROWS; r++) {
        mt_read_rows(o->dev, reading, result, r, 1);
        memcpy(logits + r * o->spec.vocab, mt_reading_row(o->dev, reading, 0), o->spec.vocab * sizeof(float));
    }
    mt_set_free(set);
}

static bool measure(measured *d, const arguments *a, const prompt *p, mt_kv_bits bits, mt_error *err)
{
    const mt_device_params device = {
        .name = "cpu", .host = {.threads = a->threads, .cpu_mask = ~0u}, .precision = a->precision, .kv_bits = bits};
    const mt_model_params params = {.rows = CHUNK, .logits = ROWS, .places = 1, .memos = 1};
    const size_t count = a->depth / MT_PAGE_TOKENS + 1, all[MT_KV_GROUPS] = {count, count, count, count};
    mt_opened o = {0};
    mt_model *m = NULL;
    bool ok = mt_opened_open(&o, a->dir, &device, &(mt_open_wish){0}, err) &&
              (m = mt_model_new(o.dev, &o.spec, &o.weights, &params, err)) && mt_model_reserve(m, all, 1, err);
    uint32_t *pages = mt_alloc_array(count, sizeof(*pages));
    for (uint32_t i = 0; i < count; i++)
        pages[i] = i;
    d->vocab = ok ? o.spec.vocab : 0;
    for (size_t g = 0; ok && g < o.spec.group_count; g++) {
        const mt_kv_shape shape = mt_model_kv_shape(&o.spec, g, mt_kv_cached_type(o.dev));
        d->page_bytes += mt_kv_page_bytes(o.dev, &shape);
    }
    for (size_t at = 0, next = 0; ok && at + CHUNK <= a->depth; at += CHUNK) {
        const bool wanted = at + CHUNK == (size_t)FIRST << next;
        if (wanted)
            d->logits[next] = mt_alloc_array(ROWS * d->vocab, sizeof(float));
        step(&o, m, p, at, pages, wanted ? d->logits[next++] : NULL);
    }
    mt_free(pages);
    mt_model_free(m);
    mt_opened_close(&o);
    return ok;
}

static double log_sum_exp(const float *x, size_t n)
{
    double m = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        m = x[i] > m ? (double)x[i] : m;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - m);
    return m + log(sum);
}

typedef struct distance {
    double kl, largest, same;
} distance;

/* Of one token's logits. */
static void compare_row(distance *d, const float *x, const float *y, size_t n)
{
    const double lx = log_sum_exp(x, n), ly = log_sum_exp(y, n);
    size_t top_x = 0, top_y = 0;
    float least[TOP]; /* the likeliest, descending */
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const double px = (double)x[i] - lx, py = (double)y[i] - ly;
        d->kl += exp(px) * (px - py);
        top_x = x[i] > x[top_x] ? i : top_x;
        top_y = y[i] > y[top_y] ? i : top_y;
        if (count == TOP && x[i] <= least[TOP - 1])
            continue;
        size_t at = count < TOP ? count++ : TOP - 1;
        for (; at > 0 && least[at - 1] < x[i]; at--)
            least[at] = least[at - 1];
        least[at] = x[i];
    }
    for (size_t i = 0; i < n; i++)
        if (x[i] >= least[count - 1] && fabs((double)x[i] - lx - (double)y[i] + ly) > d->largest)
            d->largest = fabs((double)x[i] - lx - (double)y[i] + ly);
    d->same += top_x == top_y;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"16", "8", "4"};
    arguments a;
    prompt p = {0};
    measured d[3] = {0};
    mt_error err = {0};
    if (!parse(&a, argc, argv) || !read_ids(&p, a.ids)) {
        fprintf(stderr,
                "usage: bench_kv_bits DIR [--ids FILE] [--depth N] [--precision fast|reference] [--threads N]\n");
        return 2;
    }
    bool ok = true;
    for (mt_kv_bits b = MT_KV_BITS_16; ok && b <= MT_KV_BITS_4; b++)
        ok = measure(&d[b], &a, &p, b, &err);
    if (!ok)
        fprintf(stderr, "bench_kv_bits: %s\n", err.text);
    printf("%5s %8s %12s %12s %16s %14s\n", "bits", "depth", "bytes/token", "KL", "largest logprob", "same likeliest");
    for (size_t i = 0; ok && i < MAX_DEPTHS && d[0].logits[i]; i++)
        for (size_t b = 1; b < 3; b++) {
            distance s = {0};
            for (size_t r = 0; r < ROWS; r++)
                compare_row(&s, d[0].logits[i] + r * d[0].vocab, d[b].logits[i] + r * d[0].vocab, d[0].vocab);
            printf("%5s %8d %12zu %12.6f %16.4f %12.1f %%\n", names[b], FIRST << i, d[b].page_bytes / MT_PAGE_TOKENS,
                   s.kl / ROWS, s.largest, 100 * s.same / ROWS);
        }
    for (size_t b = 0; b < 3; b++)
        for (size_t i = 0; i < MAX_DEPTHS; i++)
            mt_free(d[b].logits[i]);
    mt_free(p.tokens);
    return ok ? 0 : 1;
}
