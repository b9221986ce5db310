/* How far fast precision is from reference precision, beside other ways of rounding activations: both run over the
   same tokens, and every position's distribution is compared.

       bench_divergence DIR... [--ids FILE] [--prompts N] [--tokens N] [--seed N] [--way WAY]...

   For each folder and way: the Kullback-Leibler divergence of a position, its mean and its 99th percentile, and how far
   the logprobs of the twenty leading tokens of either side are apart, at most and at the 99th percentile, as
   tests/oracle compares them; for several folders the same of all positions together. Tokens are random, or those of a
   file (motet tokenize --ids), cut into prompts.

   A way says what becomes of rows that meet quantised weights: "fast" is fast precision itself. Otherwise they are
   rounded and multiplied in fp32, and all else is as fast precision has it: "bf16" rounds them to bf16, a number N to
   int8 with one scale per N, "group" with one per group of the weights, "q8_0" with one in half precision per 32, as
   llama.cpp does; "f32" leaves them as they are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/cpu/cpu.h"
#include "engine/opened.h"

enum { TOP = 20, MAX_WAYS = 16, ROWS = 512 };
enum { F32 = 0, BF16 = -1, GROUP = -2, Q8_0 = -3, FAST = -4 }; /* above zero: int8, one scale per so many elements */

typedef struct arguments {
    const char *dirs[256], *ids, *name[MAX_WAYS];
    size_t dir_count, prompts, tokens, ways;
    uint64_t seed;
    int way[MAX_WAYS];
} arguments;

static bool parse_way(arguments *a, const char *text)
{
    static const struct {
        const char *name;
        int way;
    } known[] = {{"fast", FAST}, {"group", GROUP}, {"q8_0", Q8_0}, {"bf16", BF16}, {"f32", F32}};
    int way = (int)strtol(text, NULL, 10);
    if (a->ways == MAX_WAYS)
        return false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(known[i].name, text))
            way = known[i].way;
    a->name[a->ways] = text;
    a->way[a->ways++] = way;
    return way != 0 || !strcmp(text, "f32");
}

/* ---- the rounding ---- */

/* One model runs at a time: what the kernels below go by */
static int current;
static mt_kernels real;

/* 11 bits, or what is left of them below 2^-14 */
static float to_half(float x)
{
    int exponent;
    frexpf(x, &exponent);
    const float ulp = ldexpf(1, (exponent > -13 ? exponent : -13) - 11);
    return rintf(x / ulp) * ulp;
}

static void round_int8(float *y, const float *x, size_t n, bool half)
{
    float amax = 0;
    for (size_t i = 0; i < n; i++)
        amax = fmaxf(amax, fabsf(x[i]));
    const float d = amax / 127.0f, factor = d > 0 ? 1.0f / d : 0;
    for (size_t i = 0; i < n; i++)
        y[i] = roundf(x[i] * factor) * (half ? to_half(d) : d);
}

static void round_bf16(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mt_bf16 half;
        real.to_bf16(&half, x + i, 1);
        const uint32_t bits = (uint32_t)half << 16;
        memcpy(&y[i], &bits, sizeof(bits));
    }
}

static void round_row(float *y, const float *x, size_t k, size_t group)
{
    const size_t block = current > 0 ? (size_t)current : current == Q8_0 || group < 32 ? 32 : group;
    if (current == F32)
        memcpy(y, x, k * sizeof(*y));
    else if (current == BF16)
        round_bf16(y, x, k);
    else
        for (size_t i = 0; i < k; i += block)
            round_int8(y + i, x + i, k - i < block ? k - i : block, current == Q8_0);
}

static size_t rows_bytes(size_t m, size_t k, size_t group)
{
    (void)group;
    return m * k * sizeof(float);
}

static void pack(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    for (size_t i = i0; i < i1; i++)
        memcpy((float *)(void *)rows->data + i * rows->k, x + (index ? index[i] : i) * ldx, rows->k * sizeof(*x));
}

/* What f_matmul needs, then rounded rows */
static size_t scratch_bytes(size_t k)
{
    return (real.f_scratch_bytes(k) + 63) / 64 * 64 + ROWS * k * sizeof(float);
}

static void matmul(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows, uint8_t *scratch)
{
    float *rounded = (float *)(void *)(scratch + (real.f_scratch_bytes(rows->k) + 63) / 64 * 64);
    for (size_t i = 0; i < rows->m; i++)
        round_row(rounded + i * rows->k, (const float *)(const void *)rows->data + i * rows->k, rows->k, w->group);
    real.f_matmul(y, ldy, w, n0, n1, rounded, rows->k, NULL, rows->m, scratch);
}

/* ---- running ---- */

typedef struct runner {
    mt_opened o;
    mt_model *model;
    mt_set *set;
    mt_reading *reading;
    size_t pages;
    uint32_t *page, *wanted;
} runner;

static bool start(runner *r, const char *dir, mt_precision precision, int way, size_t tokens, mt_error *err)
{
    const mt_device_params device = {.name = "cpu", .host = {.cpu_mask = ~0u}, .precision = precision};
    const mt_open_wish wish = {.text_only = true};
    *r = (runner){.pages = (tokens + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS};
    const size_t all[MT_KV_GROUPS] = {r->pages, r->pages, r->pages, r->pages};
    if (!mt_opened_open(&r->o, dir, &device, &wish, err))
        return false;
    real = r->o.dev->k;
    current = way;
    if (precision == MT_PRECISION_FAST && way != FAST) {
        r->o.dev->k.q_rows_bytes = rows_bytes;
        r->o.dev->k.q_pack = pack;
        r->o.dev->k.q_scratch_bytes = scratch_bytes;
        r->o.dev->k.q_matmul = matmul;
    }
    r->model = mt_model_new(r->o.dev, &r->o.spec, &r->o.weights,
                            &(mt_model_params){.rows = tokens, .logits = tokens, .places = 1, .memos = 1}, err);
    if (!r->model || !mt_model_reserve(r->model, all, 1, err))
        return false;
    r->set = mt_set_new(r->o.dev);
    r->reading = mt_reading_new(r->set, tokens * r->o.spec.vocab * sizeof(float));
    r->page = mt_alloc(r->pages * sizeof(*r->page));
    r->wanted = mt_alloc(tokens * sizeof(*r->wanted));
    for (size_t i = 0; i < r->pages; i++)
        r->page[i] = (uint32_t)i;
    for (size_t i = 0; i < tokens; i++)
        r->wanted[i] = (uint32_t)i;
    return true;
}

static void stop(runner *r)
{
    mt_set_free(r->set);
    mt_model_free(r->model);
    mt_opened_close(&r->o);
    mt_free(r->page);
    mt_free(r->wanted);
}

/* The logits of every position into out [count][vocab] */
static void run(runner *r, const uint32_t *tokens, size_t count, float *out)
{
    mt_position *positions = mt_alloc(count * sizeof(*positions));
    uint32_t *copy = mt_alloc(count * sizeof(*copy));
    for (size_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)i;
        positions[i] = (mt_position){{at, at, at}};
        copy[i] = tokens[i];
    }
    mt_piece piece = {.rows = (uint32_t)count, .slot = 0};
    mt_span span = {.rows = (uint32_t)count,
                    .pages = {r->page, r->page, r->page, r->page},
                    .state = MT_NO_PAGE,
                    .pieces = 1,
                    .piece = &piece};
    mt_batch batch = {.rows = count, .tokens = copy, .positions = positions, .spans = 1, .span = &span};
    const mt_tensor *logits = mt_model_step(r->model, &batch, r->wanted, count);
    mt_read_rows(r->o.dev, r->reading, logits, 0, count);
    for (size_t i = 0; i < count; i++)
        memcpy(out + i * r->o.spec.vocab, mt_reading_row(r->o.dev, r->reading, i), r->o.spec.vocab * sizeof(*out));
    mt_free(positions);
    mt_free(copy);
}

/* ---- comparing ---- */

typedef struct list {
    double *v;
    size_t count, room;
} list;

typedef struct score {
    list kl, diff;
} score;

static void add(list *l, double v)
{
    l->v = mt_grow(l->v, &l->room, l->count + 1, sizeof(*l->v));
    l->v[l->count++] = v;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(list *l, double q)
{
    if (!l->count)
        return 0;
    qsort(l->v, l->count, sizeof(*l->v), by_value);
    const size_t at = (size_t)ceil(q * (double)l->count);
    return l->v[at > 0 ? at - 1 : 0];
}

static double mean(const list *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->count; i++)
        sum += l->v[i];
    return l->count ? sum / (double)l->count : 0;
}

/* The smallest of the TOP largest */
static float threshold(const float *x, size_t n)
{
    float top[TOP];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (count == TOP && x[i] <= top[TOP - 1])
            continue;
        size_t at = count < TOP ? count++ : TOP - 1;
        for (; at > 0 && top[at - 1] < x[i]; at--)
            top[at] = top[at - 1];
        top[at] = x[i];
    }
    return top[count - 1];
}

static double log_sum(const float *x, size_t n)
{
    double max = x[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < n; i++)
        sum += exp(x[i] - max);
    return max + log(sum);
}

static void compare(score *s, const float *truth, const float *x, size_t vocab)
{
    const double a = log_sum(truth, vocab), b = log_sum(x, vocab);
    const float first = threshold(truth, vocab), second = threshold(x, vocab);
    double kl = 0;
    for (size_t i = 0; i < vocab; i++) {
        const double p = truth[i] - a, q = x[i] - b;
        kl += exp(p) * (p - q);
        if (truth[i] >= first || x[i] >= second)
            add(&s->diff, fabs(p - q));
    }
    add(&s->kl, kl);
}

/* ---- the program ---- */

static uint32_t *tokens_of(const arguments *a, size_t vocab)
{
    const size_t count = a->prompts * a->tokens;
    uint32_t *tokens = mt_alloc(count * sizeof(*tokens));
    uint64_t state = a->seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        tokens[i] = (uint32_t)(state >> 33) % (uint32_t)vocab;
    }
    FILE *in = a->ids ? fopen(a->ids, "r") : NULL;
    size_t read = 0;
    while (in && read < count && fscanf(in, "%u", &tokens[read]) == 1)
        read++;
    for (size_t i = read; in && read && i < count; i++)
        tokens[i] = tokens[i % read];
    if (in)
        fclose(in);
    return tokens;
}

static void print(const char *what, const char *way, score *s)
{
    printf("%-28s %-6s kl %.3e  p99 %.3e   logprob max %.4f  p99 %.4f\n", what, way, mean(&s->kl),
           quantile(&s->kl, 0.99), quantile(&s->diff, 1.0), quantile(&s->diff, 0.99));
    fflush(stdout);
}

static bool one_folder(const arguments *a, const char *dir, score *all, mt_error *err)
{
    runner truth, other;
    if (!start(&truth, dir, MT_PRECISION_REFERENCE, FAST, a->tokens, err))
        return false;
    const size_t vocab = truth.o.spec.vocab, each = a->tokens * vocab;
    uint32_t *tokens = tokens_of(a, vocab);
    float *wanted = mt_alloc(a->prompts * each * sizeof(*wanted)), *found = mt_alloc(each * sizeof(*found));
    for (size_t p = 0; p < a->prompts; p++)
        run(&truth, tokens + p * a->tokens, a->tokens, wanted + p * each);
    stop(&truth);
    const char *name = strrchr(dir, '/') ? strrchr(dir, '/') + 1 : dir;
    for (size_t i = 0; i < a->ways; i++) {
        score s = {0};
        if (!start(&other, dir, MT_PRECISION_FAST, a->way[i], a->tokens, err))
            return false;
        for (size_t p = 0; p < a->prompts; p++) {
            run(&other, tokens + p * a->tokens, a->tokens, found);
            for (size_t t = 0; t < a->tokens; t++) {
                compare(&s, wanted + p * each + t * vocab, found + t * vocab, vocab);
                compare(&all[i], wanted + p * each + t * vocab, found + t * vocab, vocab);
            }
        }
        stop(&other);
        print(name, a->name[i], &s);
        mt_free(s.kl.v);
        mt_free(s.diff.v);
    }
    mt_free(tokens);
    mt_free(wanted);
    mt_free(found);
    return true;
}

static bool parse(arguments *a, int argc, char **argv)
{
    *a = (arguments){.prompts = 8, .tokens = 128, .seed = 1};
    for (int i = 1; i < argc; i++) {
        const bool value = i + 1 < argc;
        if (value && !strcmp(argv[i], "--prompts"))
            a->prompts = strtoul(argv[++i], NULL, 10);
        else if (value && !strcmp(argv[i], "--tokens"))
            a->tokens = strtoul(argv[++i], NULL, 10);
        else if (value && !strcmp(argv[i], "--seed"))
            a->seed = strtoull(argv[++i], NULL, 10);
        else if (value && !strcmp(argv[i], "--ids"))
            a->ids = argv[++i];
        else if (value && !strcmp(argv[i], "--way") && parse_way(a, argv[++i]))
            continue;
        else if (argv[i][0] != '-' && a->dir_count < sizeof(a->dirs) / sizeof(a->dirs[0]))
            a->dirs[a->dir_count++] = argv[i];
        else
            return false;
    }
    static const char *const usual[] = {"fast", "group", "32", "q8_0", "bf16"};
    for (size_t i = 0, asked = a->ways; !asked && i < sizeof(usual) / sizeof(usual[0]); i++)
        (void)parse_way(a, usual[i]);
    return a->dir_count && a->prompts && a->tokens && a->tokens <= ROWS;
}

int main(int argc, char **argv)
{
    static arguments a;
    static score all[MAX_WAYS];
    mt_error err = {0};
    if (!parse(&a, argc, argv)) {
        fprintf(stderr, "usage: bench_divergence DIR... [--ids FILE] [--prompts N] [--tokens N] [--seed N] "
                        "[--way WAY]...\n");
        return 2;
    }
    mt_log_setup(MT_LOG_WARN, MT_LOG_TEXT);
    for (size_t i = 0; i < a.dir_count; i++)
        if (!one_folder(&a, a.dirs[i], all, &err)) {
            fprintf(stderr, "bench_divergence: %s: %s\n", a.dirs[i], err.text);
            return 1;
        }
    for (size_t i = 0; a.dir_count > 1 && i < a.ways; i++)
        print("all", a.name[i], &all[i]);
    return 0;
}
