/* Measures an engine in this process: how much time a cached prompt saves until the first token; and, where --only
   names the part "company", the delays of short requests beside a long prompt and of streams beside pictures. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/bench.h"
#include "engine/engine.h"
#include "media/image.h"

enum {
    SHORT_PROMPT = 16,
    SHORT_TOKENS = 16,
    STREAMS = 4,
    WARM_TOKENS = 32,
    SAMPLES = 500,
    LONG_PROMPT = 8192,
    PLAIN = 64 /* only tokens below this number are drawn: none of them stands for a picture in any model */
};

/* The state of these measurements. The lock guards the series and all asked. */
typedef struct bench {
    mt_model_bench *b;
    mt_engine *engine;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    mt_series first, between; /* seconds to the first token and between tokens, of the requests that are measured */
    mt_dice dice;
    mt_error *err;
} bench;

/* A request under way. The thread of the engine writes the fields until done is true. */
typedef struct asked {
    bench *b;
    /* Nanoseconds on the monotonic clock: when the request was submitted, and when the last token came */
    uint64_t sent, last;
    double first;  /* seconds to the first token */
    size_t cached; /* tokens of the prompt that the cache had */
    bool measured; /* its times are added to the series of the bench */
    bool done, failed;
} asked;

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
        a->failed = ev->finish == MT_FINISH_ERROR;
        if (a->failed && ev->error && b->err)
            *b->err = *ev->error;
        a->done = true;
        pthread_cond_broadcast(&b->changed);
    } else if (a->last == 0) {
        a->first = (double)(now - a->sent) * 1e-9;
        if (a->measured)
            mt_series_add(&b->first, a->first);
    } else if (a->measured) {
        mt_series_add(&b->between, (double)(now - a->last) * 1e-9);
    }
    a->last = now;
    pthread_mutex_unlock(&b->lock);
}

static uint32_t draw(bench *b)
{
    return (uint32_t)(mt_dice_roll(&b->dice) % b->b->o.spec.vocab);
}

static bool submit(bench *b, asked *a, mt_request *r, const uint32_t *prompt, size_t len, size_t tokens)
{
    r->prompt = prompt;
    r->prompt_len = len;
    r->max_tokens = tokens;
    r->sampling.temperature = 0;
    r->sampling.ignore_eos = true;
    r->event = event;
    r->ctx = a;
    a->b = b;
    a->sent = mt_clock_ns();
    if (mt_engine_submit(b->engine, r, b->err))
        return true;
    mt_request_free(r);
    a->done = a->failed = true;
    return false;
}

static bool wait_for(bench *b, asked *a)
{
    pthread_mutex_lock(&b->lock);
    while (!a->done)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
    return !a->failed;
}

static bool is_done(bench *b, const asked *a)
{
    pthread_mutex_lock(&b->lock);
    const bool done = a->done;
    pthread_mutex_unlock(&b->lock);
    return done;
}

static bool ask(bench *b, asked *a, const uint32_t *prompt, size_t len, size_t tokens)
{
    return submit(b, a, mt_request_new(), prompt, len, tokens) && wait_for(b, a);
}

static uint32_t *random_prompt(bench *b, size_t len)
{
    uint32_t *prompt = mt_alloc_array(len, sizeof(*prompt));
    for (size_t i = 0; i < len; i++)
        prompt[i] = draw(b);
    return prompt;
}

static void clear(bench *b)
{
    b->first.count = b->between.count = 0;
}

/* ---- first tokens ---- */

static const mt_bench_column first_columns[] = {
    {"what", "prompt", MT_BENCH_TEXT},        {"cold_ms", "cold, ms", 1},
    {"cached_ms", "seen before, ms", 1},      {"cached", "tokens from the cache", 0},
    {"steps", "in steps of one token", 2},    {"faster", "times faster", 0},
    {"moved_ms", "among other words, ms", 1},
};

static void report_first(bench *b, mt_bench_section *s, const char *what, const asked *cold, const asked *warm)
{
    const double step = mt_series_quantile(&b->between, 0.5);
    json_t *row = json_pack("{s:s, s:f, s:f, s:I, s:f}", "what", what, "cold_ms", 1e3 * cold->first, "cached_ms",
                            1e3 * warm->first, "cached", (json_int_t)warm->cached, "faster", cold->first / warm->first);
    if (step > 0)
        json_object_set_new(row, "steps", json_real(warm->first / step));
    mt_report_row(s, row);
    clear(b);
}

static bool measure_prompt(bench *b, mt_bench_section *s, size_t len)
{
    asked cold = {0}, warm = {.measured = true};
    char what[64];
    uint32_t *prompt = random_prompt(b, len);
    mt_log_passing("bench.first", "first token of %zu, cold and cached", len);
    const bool ok = ask(b, &cold, prompt, len, 2) && (clear(b), true) && ask(b, &warm, prompt, len, WARM_TOKENS);
    snprintf(what, sizeof(what), "%zu tokens", len);
    if (ok)
        report_first(b, s, what, &cold, &warm);
    mt_free(prompt);
    return ok;
}

/* Makes a picture of noise, decided by `seed`, and preprocesses it for the model, which may give several pictures
   (out->more). */
static bool make_picture(bench *b, size_t side, uint64_t seed, mt_arena *arena, mt_picture *out)
{
    const mt_picture_order order = {.wish = {.max_pixels = side * side}, .arena = arena};
    mt_dice dice = {seed};
    mt_image image;
    mt_image_new(&image, (uint32_t)side, (uint32_t)side);
    for (size_t i = 0; i < 3 * side * side; i++)
        image.pixels[i] = (uint8_t)mt_dice_roll(&dice);
    const bool ok = mt_processor_image(b->b->o.processor, &image, &order, out, b->err);
    mt_image_free(&image);
    return ok;
}

/* Submits a request with a picture between random words. */
static bool ask_about_picture(bench *b, asked *a, size_t side, uint64_t picture, uint64_t words, size_t tokens)
{
    const mt_processor *processor = b->b->o.processor;
    mt_request *r = mt_request_new();
    mt_picture *p = mt_arena_alloc(r->arena, MT_PICTURE_SIZES * sizeof(*p));
    mt_dice dice = {words};
    mt_expanded to;
    bool ok = make_picture(b, side, picture, r->arena, p);
    const size_t pictures = 1 + (ok ? p->more : 0);
    size_t runs = 0;
    for (size_t i = 0; ok && i < pictures; i++)
        runs += mt_processor_runs(processor, &p[i]);
    const size_t count = 2 * SHORT_PROMPT + runs;
    uint32_t *ids = mt_arena_alloc(r->arena, count * sizeof(*ids));
    for (size_t i = 0; ids && i < count; i++)
        ids[i] = i >= SHORT_PROMPT && i < SHORT_PROMPT + runs ? mt_processor_pad(processor)
                                                              : (uint32_t)(mt_dice_roll(&dice) % PLAIN);
    ok = ok && ids && mt_processor_expand(processor, ids, count, p, pictures, r->arena, &to, b->err);
    if (!ok) {
        mt_request_free(r);
        return false;
    }
    r->pictures = p;
    r->picture_count = pictures;
    r->spans = to.spans;
    r->span_count = to.span_count;
    return submit(b, a, r, to.ids, to.count, tokens);
}

static bool measure_picture(bench *b, mt_bench_section *s, size_t side)
{
    asked cold = {0}, warm = {.measured = true}, moved = {0};
    char what[64];
    mt_log_passing("bench.first", "first token after a picture of %zu pixels, cold and cached", side);
    if (!ask_about_picture(b, &cold, side, 1, 1, 2) || !wait_for(b, &cold))
        return false;
    clear(b);
    if (!ask_about_picture(b, &warm, side, 1, 1, WARM_TOKENS) || !wait_for(b, &warm))
        return false;
    if (!ask_about_picture(b, &moved, side, 1, 2, 2) || !wait_for(b, &moved))
        return false;
    snprintf(what, sizeof(what), "picture of %zu x %zu", side, side);
    report_first(b, s, what, &cold, &warm);
    json_object_set_new(json_array_get(s->rows, json_array_size(s->rows) - 1), "moved_ms",
                        json_real(1e3 * moved.first));
    return true;
}

static bool measure_first(bench *b)
{
    mt_bench_section *s =
        mt_report_section(b->b->report, "first", "Time to the first token", first_columns, MT_COUNT(first_columns));
    snprintf(
        s->note, sizeof(s->note),
        "Through the engine, alone: a prompt for the first time, and the same one again. What was seen before should "
        "cost little more than one step.");
    /* leaves out prompts that are longer than the context of the engine */
    for (size_t i = 0; i < b->b->prompts.count; i++) /* those that the model has room for */
        if ((size_t)b->b->prompts.at[i] + WARM_TOKENS <= mt_engine_context(b->engine) &&
            !measure_prompt(b, s, (size_t)b->b->prompts.at[i]))
            return false;
    for (size_t i = 0; b->b->o.processor && i < b->b->sides.count; i++)
        if (!measure_picture(b, s, (size_t)b->b->sides.at[i]))
            return false;
    mt_report_show(b->b->report, s);
    return true;
}

/* ---- company ---- */

static const mt_bench_column company_columns[] = {
    {"what", "measured", MT_BENCH_TEXT},
    {"tokens", "tokens", 0},
    {"first_p50", "first token p50, ms", 1},
    {"first_p99", "p99, ms", 1},
    {"between_p50", "between tokens p50, ms", 1},
    {"between_p99", "p99, ms", 1},
    {"between_max", "longest, ms", 1},
};

static void report_company(bench *b, mt_bench_section *s, const char *what)
{
    json_t *row = json_pack("{s:s, s:I}", "what", what, "tokens", (json_int_t)b->between.count);
    if (b->first.count) {
        json_object_set_new(row, "first_p50", json_real(1e3 * mt_series_quantile(&b->first, 0.5)));
        json_object_set_new(row, "first_p99", json_real(1e3 * mt_series_quantile(&b->first, 0.99)));
    }
    if (b->between.count) {
        json_object_set_new(row, "between_p50", json_real(1e3 * mt_series_quantile(&b->between, 0.5)));
        json_object_set_new(row, "between_p99", json_real(1e3 * mt_series_quantile(&b->between, 0.99)));
        json_object_set_new(row, "between_max", json_real(1e3 * mt_series_quantile(&b->between, 1)));
    }
    mt_report_row(s, row);
    clear(b);
}

/* Runs short requests one after the other, until SAMPLES tokens are measured or the request `until` is done. */
static bool short_requests(bench *b, const asked *until)
{
    while (b->between.count < SAMPLES && !(until && is_done(b, until))) {
        asked a = {.measured = true};
        uint32_t *prompt = random_prompt(b, SHORT_PROMPT);
        const bool ok = ask(b, &a, prompt, SHORT_PROMPT, SHORT_TOKENS);
        mt_free(prompt);
        if (!ok)
            return false;
    }
    return true;
}

/* Measures short requests alone, then beside a request with a long prompt. */
static bool measure_prompts(bench *b, mt_bench_section *s)
{
    const size_t context = mt_engine_context(b->engine);
    const size_t len = LONG_PROMPT + 1 < context ? LONG_PROMPT : context - 1;
    asked along = {0};
    char what[64];
    mt_log_passing("bench.company", "short requests alone");
    if (!short_requests(b, NULL))
        return false;
    report_company(b, s, "short requests alone");
    uint32_t *prompt = random_prompt(b, len);
    mt_log_passing("bench.company", "short requests beside a prompt of %zu tokens", len);
    bool ok = submit(b, &along, mt_request_new(), prompt, len, 1) && short_requests(b, &along);
    snprintf(what, sizeof(what), "beside a prompt of %zu tokens", len);
    if (ok)
        report_company(b, s, what);
    if (along.b) /* the engine borrows the prompt until the request is done */
        ok = wait_for(b, &along) && ok;
    mt_free(prompt);
    return ok;
}

/* Runs STREAMS requests together; where `side` is not 0, also requests with pictures of that side, one after the
   other. */
static bool streams(bench *b, size_t side)
{
    asked stream[STREAMS] = {0}, picture = {.done = true};
    uint32_t *prompt[STREAMS];
    bool ok = true;
    size_t pictures = 0;
    for (size_t i = 0; i < STREAMS; i++) {
        stream[i] = (asked){.measured = true, .done = true};
        prompt[i] = random_prompt(b, SHORT_PROMPT);
        if (ok) {
            stream[i].done = false;
            ok = submit(b, &stream[i], mt_request_new(), prompt[i], SHORT_PROMPT, SAMPLES / STREAMS + SHORT_TOKENS);
        }
    }
    while (ok && side && !is_done(b, &stream[0])) {
        if (is_done(b, &picture)) {
            picture = (asked){0};
            ok = ask_about_picture(b, &picture, side, 100 + pictures++, 3, 1);
            picture.done |= !ok; /* a request that was not submitted gets no event that would set done */
        }
        pthread_mutex_lock(&b->lock);
        while (!stream[0].done && !picture.done)
            pthread_cond_wait(&b->changed, &b->lock);
        pthread_mutex_unlock(&b->lock);
    }
    for (size_t i = 0; i < STREAMS; i++) {
        ok = wait_for(b, &stream[i]) && ok;
        mt_free(prompt[i]);
    }
    return wait_for(b, &picture) && ok;
}

static bool measure_pictures(bench *b, mt_bench_section *s)
{
    const size_t side = (size_t)b->b->sides.at[b->b->sides.count - 1];
    char what[64];
    mt_log_passing("bench.company", "%d streams alone", STREAMS);
    if (!streams(b, 0))
        return false;
    snprintf(what, sizeof(what), "%d streams alone", STREAMS);
    report_company(b, s, what);
    mt_log_passing("bench.company", "%d streams beside pictures", STREAMS);
    if (!streams(b, side))
        return false;
    snprintf(what, sizeof(what), "%d streams beside pictures of %zu x %zu", STREAMS, side, side);
    report_company(b, s, what);
    return true;
}

static bool measure_company(bench *b)
{
    mt_bench_section *s =
        mt_report_section(b->b->report, "company", "In company", company_columns, MT_COUNT(company_columns));
    snprintf(s->note, sizeof(s->note), "What requests feel of others: the same ones alone and beside larger work.");
    const bool ok = measure_prompts(b, s) && (!b->b->o.processor || measure_pictures(b, s));
    mt_report_show(b->b->report, s);
    return ok;
}

bool mt_bench_engine(mt_model_bench *m, mt_error *err)
{
    bench b = {.b = m,
               .dice = {(uint64_t)m->opt->bench_seed},
               .err = err,
               .lock = PTHREAD_MUTEX_INITIALIZER,
               .changed = PTHREAD_COND_INITIALIZER};
    mt_engine_params params;
    mt_engine_params_init(&params);
    /* A model with random weights repeats tokens, so that guesses would succeed more often than in use */
    params.speculate = MT_SPECULATE_OFF;
    params.context = 0;
    for (size_t i = 0; i < m->prompts.count; i++)
        params.context = (size_t)fmax((double)params.context, m->prompts.at[i] + 2 * WARM_TOKENS);
    if (mt_bench_wants(m, "company"))
        params.context = params.context > 20000 ? params.context : 20000;
    if (m->o.processor)
        params.context = params.context > 4096 ? params.context : 4096;
    params.context = params.context < m->o.spec.context ? params.context : m->o.spec.context;
    params.cache = 3 * params.context + (size_t)64 * MT_PAGE_TOKENS;
    /* Ends the worker threads that the device has started: they belong to the thread that uses the device, and that is
       the thread of the engine from here on. */
    const mt_device_params device = mt_options_device(m->opt);
    mt_device_close(m->o.dev);
    m->o.dev = mt_device_open(&device, err);
    if (!m->o.dev)
        return false;
    b.engine = mt_engine_start(&m->o, NULL, &params, err);
    if (!b.engine)
        return false;
    bool ok = !mt_bench_wants(m, "first") || measure_first(&b);
    ok = ok && (!mt_bench_wants(m, "company") || measure_company(&b));
    mt_engine_stop(b.engine);
    mt_series_free(&b.first);
    mt_series_free(&b.between);
    return ok;
}
