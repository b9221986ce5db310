/* How the engine treats requests that meet: what a cached prompt saves, and what short requests feel beside a long one;
   with --image, what a picture costs that was seen before, and what streams feel while one is encoded.

       bench_engine DIR [--threads N] [--prompt N] [--samples N] [--image SIDE] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/engine.h"

#define SHORT_PROMPT 16
#define SHORT_TOKENS 16

typedef struct arguments {
    const char *dir;
    size_t threads, prompt, samples, image;
} arguments;

typedef struct series {
    double *value;
    size_t count, cap;
} series;

typedef struct bench {
    mt_opened o;
    mt_engine *engine;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    series first, between; /* of short requests */
    uint64_t random;
} bench;

typedef struct asked {
    bench *b;
    uint64_t sent, last;
    double first; /* seconds to the first token */
    size_t cached;
    bool measured; /* goes into the series */
    bool done;
} asked;

static bool parse(arguments *a, int argc, char **argv)
{
    *a = (arguments){.prompt = 8192, .samples = 2000};
    for (int i = 1; i < argc; i++) {
        const bool value = i + 1 < argc;
        if (value && strcmp(argv[i], "--threads") == 0)
            a->threads = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--prompt") == 0)
            a->prompt = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--samples") == 0)
            a->samples = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--image") == 0)
            a->image = strtoul(argv[++i], NULL, 10);
        else if (argv[i][0] != '-' && !a->dir)
            a->dir = argv[i];
        else
            return false;
    }
    return a->dir != NULL;
}

static void add(series *s, double value)
{
    if (s->count == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 1024;
        s->value = mt_realloc(s->value, s->cap * sizeof *s->value, cap * sizeof *s->value);
        s->cap = cap;
    }
    s->value[s->count++] = value;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(series *s, double q)
{
    qsort(s->value, s->count, sizeof *s->value, ascending);
    return s->count ? s->value[(size_t)(q * (double)(s->count - 1))] : 0;
}

static void event(void *ctx, const mt_event *ev)
{
    asked *a = ctx;
    bench *b = a->b;
    const uint64_t now = mt_clock_ns();
    if (ev->kind != MT_EVENT_TOKEN && ev->kind != MT_EVENT_DONE)
        return;
    pthread_mutex_lock(&b->lock);
    if (ev->kind == MT_EVENT_DONE) {
        a->cached = ev->cached;
        a->done = true;
        pthread_cond_broadcast(&b->changed);
    } else if (a->last == 0) {
        a->first = (double)(now - a->sent) * 1e-9;
        if (a->measured)
            add(&b->first, a->first);
    } else if (a->measured) {
        add(&b->between, (double)(now - a->last) * 1e-9);
    }
    a->last = now;
    pthread_mutex_unlock(&b->lock);
}

static uint32_t draw(bench *b)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(b->random >> 33) % b->o.spec.vocab;
}

static void fail(const mt_error *err)
{
    fprintf(stderr, "bench_engine: %s\n", err->text);
    exit(1);
}

static void submit(bench *b, asked *a, mt_request *r, const uint32_t *prompt, size_t len, size_t tokens)
{
    mt_error err = {0};
    r->prompt = prompt;
    r->prompt_len = len;
    r->max_tokens = tokens;
    r->sampling.temperature = 0;
    r->sampling.ignore_eos = true;
    r->event = event;
    r->ctx = a;
    a->b = b;
    a->sent = mt_clock_ns();
    if (!mt_engine_submit(b->engine, r, &err))
        fail(&err);
}

static void send(bench *b, asked *a, const uint32_t *prompt, size_t len, size_t tokens)
{
    submit(b, a, mt_request_new(), prompt, len, tokens);
}

static void wait_for(bench *b, const asked *a)
{
    pthread_mutex_lock(&b->lock);
    while (!a->done)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* The same prompt twice. */
static void measure_reuse(bench *b, size_t len)
{
    uint32_t *prompt = mt_alloc_array(len, sizeof *prompt);
    asked cold = {0}, warm = {0};
    for (size_t i = 0; i < len; i++)
        prompt[i] = draw(b);
    send(b, &cold, prompt, len, 8);
    wait_for(b, &cold);
    b->between.count = 0;
    warm.measured = true;
    send(b, &warm, prompt, len, 32);
    wait_for(b, &warm);
    const double step = quantile(&b->between, 0.5);
    printf(
        "prompt %6zu  first token cold %9.1f ms, cached %7.1f ms (%zu tokens): %.0f times faster, %.2f decode steps\n",
        len, 1e3 * cold.first, 1e3 * warm.first, warm.cached, cold.first / warm.first, warm.first / step);
    b->first.count = b->between.count = 0;
    mt_free(prompt);
}

/* Short requests one after the other until there are enough tokens or `until` is done. */
static void measure_short(bench *b, size_t samples, const asked *until, const char *what, double base[2])
{
    b->first.count = b->between.count = 0;
    while (b->between.count < samples) {
        uint32_t prompt[SHORT_PROMPT];
        asked a = {.measured = true};
        pthread_mutex_lock(&b->lock);
        const bool over = until && until->done;
        pthread_mutex_unlock(&b->lock);
        if (over)
            break;
        for (size_t i = 0; i < SHORT_PROMPT; i++)
            prompt[i] = draw(b);
        send(b, &a, prompt, SHORT_PROMPT, SHORT_TOKENS);
        wait_for(b, &a);
    }
    const double first = quantile(&b->first, 0.99), between = quantile(&b->between, 0.99);
    printf("%-22s first token p50 %7.1f p99 %7.1f ms, between tokens p50 %6.1f p99 %6.1f ms (%zu tokens)", what,
           1e3 * quantile(&b->first, 0.5), 1e3 * first, 1e3 * quantile(&b->between, 0.5), 1e3 * between,
           b->between.count);
    if (until)
        printf(": %.2f and %.2f times", first / base[0], between / base[1]);
    else {
        base[0] = first;
        base[1] = between;
    }
    printf("\n");
}

/* Long prompts come one after the other while short requests flow. */
static void measure_company(bench *b, const arguments *args)
{
    double base[2];
    size_t samples = 0;
    uint32_t *prompt = mt_alloc_array(args->prompt, sizeof *prompt);
    measure_short(b, args->samples, NULL, "short requests alone", base);
    while (samples < args->samples) {
        asked along = {0};
        for (size_t i = 0; i < args->prompt; i++)
            prompt[i] = draw(b);
        send(b, &along, prompt, args->prompt, 1);
        measure_short(b, args->samples, &along, "beside a long prompt", base);
        samples += b->between.count;
        wait_for(b, &along);
        printf("  the long prompt: %zu tokens in %.1f s\n", args->prompt, along.first);
    }
    mt_free(prompt);
}

/* ---- pictures ---- */

/* A request with a picture of noise between some words. Returns the seconds its preparation took. */
static double show(bench *b, asked *a, size_t side, uint64_t picture, uint64_t words, size_t tokens)
{
    mt_request *r = mt_request_new();
    mt_picture *p = mt_arena_alloc(r->arena, sizeof *p);
    mt_expanded to;
    mt_image image;
    mt_error err = {0};
    int64_t pad = 0;
    uint32_t ids[2 * SHORT_PROMPT + 1];
    if (!mt_config_int(mt_checkpoint_config(b->o.checkpoint), "image_token_id", 0, 0, b->o.spec.vocab - 1, &pad, &err))
        fail(&err);
    mt_image_new(&image, (uint32_t)side, (uint32_t)side);
    b->random = picture;
    for (size_t i = 0; i < 3 * side * side; i++)
        image.pixels[i] = (uint8_t)draw(b);
    const uint64_t drawn = mt_clock_ns();
    const mt_picture_order order = {.wish = {.max_pixels = side * side}, .arena = r->arena};
    if (!mt_processor_image(b->o.processor, &image, &order, p, &err))
        fail(&err);
    b->random = words;
    for (size_t i = 0; i < MT_COUNT(ids); i++)
        ids[i] = i == SHORT_PROMPT ? (uint32_t)pad : draw(b) % 1000;
    if (!mt_processor_expand(b->o.processor, ids, MT_COUNT(ids), p, 1, r->arena, &to, &err))
        fail(&err);
    const double seconds = (double)(mt_clock_ns() - drawn) * 1e-9;
    mt_image_free(&image);
    r->pictures = p;
    r->picture_count = 1;
    r->spans = to.spans;
    r->span_count = to.span_count;
    submit(b, a, r, to.ids, to.count, tokens);
    return seconds;
}

/* A picture for the first time, again, and among other words. */
static void measure_sight(bench *b, size_t side)
{
    asked cold = {0}, warm = {.measured = true}, moved = {0};
    b->between.count = 0;
    show(b, &cold, side, 1, 1, 8);
    wait_for(b, &cold);
    const double prepared = show(b, &warm, side, 1, 1, 32);
    wait_for(b, &warm);
    const double step = quantile(&b->between, 0.5);
    show(b, &moved, side, 1, 2, 8);
    wait_for(b, &moved);
    printf(
        "picture %zux%zu  first token cold %.1f ms, again %.1f ms (%zu tokens cached): %.2f decode steps after %.1f ms "
        "of preparation; among other words %.1f ms\n",
        side, side, 1e3 * cold.first, 1e3 * warm.first, warm.cached, warm.first / step, 1e3 * prepared,
        1e3 * moved.first);
    b->first.count = b->between.count = 0;
}

#define STREAMS 4

/* Streams of text, beside pictures that come one after the other where `side` is not 0. Returns the p99 between tokens
   while one is there. */
static double measure_streams(bench *b, size_t samples, size_t side)
{
    asked stream[STREAMS] = {0}, picture = {.done = true};
    uint32_t prompt[STREAMS][SHORT_PROMPT];
    const uint64_t begin = mt_clock_ns();
    size_t pictures = 0;
    b->between.count = 0;
    for (size_t i = 0; i < STREAMS; i++) {
        stream[i].measured = true;
        for (size_t k = 0; k < SHORT_PROMPT; k++)
            prompt[i][k] = draw(b);
        send(b, &stream[i], prompt[i], SHORT_PROMPT, samples / STREAMS + SHORT_TOKENS);
    }
    for (bool over = false; !over;) {
        if (side && picture.done) {
            picture = (asked){0};
            show(b, &picture, side, 100 + pictures++, 3, 1);
        }
        pthread_mutex_lock(&b->lock);
        while (!stream[0].done && !(side && picture.done))
            pthread_cond_wait(&b->changed, &b->lock);
        over = stream[0].done;
        pthread_mutex_unlock(&b->lock);
    }
    for (size_t i = 0; i < STREAMS; i++)
        wait_for(b, &stream[i]);
    const double p99 = quantile(&b->between, 0.99);
    printf("%d streams%-22s between tokens p50 %6.1f p99 %6.1f max %6.1f ms (%zu tokens, %.1f s)\n", STREAMS,
           side ? " beside pictures" : " alone", 1e3 * quantile(&b->between, 0.5), 1e3 * p99,
           1e3 * quantile(&b->between, 1), b->between.count, (double)(mt_clock_ns() - begin) * 1e-9);
    if (side && !picture.done)
        wait_for(b, &picture);
    return p99;
}

static void measure_pictures(bench *b, const arguments *args)
{
    measure_sight(b, args->image);
    const double alone = measure_streams(b, args->samples, 0);
    printf("beside pictures of %zux%zu the p99 is %.2f times that alone\n", args->image, args->image,
           measure_streams(b, args->samples, args->image) / alone);
}

int main(int argc, char **argv)
{
    arguments a;
    bench b = {.random = 1, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    mt_error err = {0};
    mt_engine_params params;
    if (!parse(&a, argc, argv)) {
        fprintf(stderr, "usage: bench_engine DIR [--threads N] [--prompt N] [--samples N] [--image SIDE]\n");
        return 2;
    }
    const mt_device_params device = {.host = {.threads = a.threads, .cpu_mask = ~0u}};
    mt_engine_params_init(&params);
    params.speculate = MT_SPECULATE_OFF; /* random weights repeat themselves, which would be guessed */
    params.context = 20000;
    params.cache = 60000;
    mt_log_setup(MT_LOG_WARN, MT_LOG_TEXT);
    if (mt_opened_open(&b.o, a.dir, &device, &err))
        b.engine = mt_engine_start(&b.o, NULL, &params, &err);
    if (!b.engine) {
        fprintf(stderr, "bench_engine: %s\n", err.text);
        return 1;
    }
    if (a.image && b.o.processor)
        measure_pictures(&b, &a);
    else {
        measure_reuse(&b, 1024);
        measure_reuse(&b, 4096);
        if (a.prompt > 8192)
            measure_reuse(&b, 16384);
        measure_company(&b, &a);
    }
    mt_engine_stop(b.engine);
    mt_opened_close(&b.o);
    mt_free(b.first.value);
    mt_free(b.between.value);
    return 0;
}
