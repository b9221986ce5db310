/* Drives an engine from a test: submits requests, waits for them and keeps what they answered. */
#ifndef MT_TESTS_ENGINE_DRIVER_H
#define MT_TESTS_ENGINE_DRIVER_H

#include "unit.h"

#include <dirent.h>
#include <pthread.h>

#include "base/alloc.h"
#include "engine/engine.h"
#include "ranks/ranks.h"
#include "sample/limits.h"

#define FIXTURES "tests/oracle/checkpoints"
#define ANSWER_TOKENS 64

typedef struct answer {
    size_t count;
    mt_logprob chosen[ANSWER_TOKENS];
    mt_logprob top[ANSWER_TOKENS][MT_LIMIT_TOP_LOGPROBS];
    size_t prompt_count;
    float *prompt_logprob; /* [prompt]; the caller's, or NULL */
    size_t cached;
    mt_finish finish;
    mt_error error;
    uint64_t begun_at, first_at, ended_at; /* in order of events of all answers */
} answer;

typedef struct driver {
    mt_opened o;
    mt_engine *engine;
    mt_engine_params params;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pthread_cond_t passed;
    uint64_t drawn, turn; /* who computes, or holds, draws a number and waits for its turn */
    size_t sent;          /* choices */
    size_t open;          /* choices that have not ended */
    uint64_t events;
} driver;

/* One request of a test: `answers` has a place for each choice. */
typedef struct asked {
    driver *d;
    answer *answers;
} asked;

static inline void driver_event(void *ctx, const mt_event *ev)
{
    asked *a = ctx;
    driver *d = a->d;
    answer *to = &a->answers[ev->choice];
    pthread_mutex_lock(&d->lock);
    d->events++;
    switch (ev->kind) {
    case MT_EVENT_BEGUN: to->begun_at = d->events; break;
    case MT_EVENT_PROMPT:
        if (to->prompt_logprob)
            to->prompt_logprob[to->prompt_count] = ev->logprob;
        to->prompt_count++;
        break;
    case MT_EVENT_TOKEN:
        assert_true(to->count < ANSWER_TOKENS);
        if (to->count == 0)
            to->first_at = d->events;
        to->chosen[to->count] = (mt_logprob){.id = ev->token, .logprob = ev->logprob};
        if (ev->top_count)
            memcpy(to->top[to->count], ev->top, ev->top_count * sizeof(*ev->top));
        to->count++;
        break;
    case MT_EVENT_DONE:
        to->ended_at = d->events;
        to->finish = ev->finish;
        to->cached = ev->cached;
        if (ev->error)
            to->error = *ev->error;
        d->open--;
        pthread_cond_broadcast(&d->ended);
        break;
    }
    pthread_mutex_unlock(&d->lock);
}

/* Turns at the engine, in the order of asking. */
static inline void driver_turn(void *ctx, bool begins)
{
    driver *d = ctx;
    pthread_mutex_lock(&d->lock);
    if (begins)
        for (const uint64_t mine = d->drawn++; d->turn != mine;)
            pthread_cond_wait(&d->passed, &d->lock);
    else
        d->turn++;
    pthread_cond_broadcast(&d->passed);
    pthread_mutex_unlock(&d->lock);
}

/* Where mpirun has started this beside others, it is rank 0; `motet serve` does for the others. */
static inline void driver_join(void)
{
    mt_error err = {0};
    if (mt_ranks_started() == 1 || mt_ranks_all())
        return;
    if (!mt_ranks_join(60, &err))
        fail_msg("%s", err.text);
    atexit(mt_ranks_part);
}

/* Opens nothing yet. */
static inline void driver_init(driver *d)
{
    driver_join();
    memset(d, 0, sizeof(*d));
    mt_engine_params_init(&d->params);
    d->params.canary = true;
    d->params.state_cache = 16u << 20; /* of the share that states have by default, the canary would touch all */
    if (getenv("MOTET_TEST_AHEAD"))    /* which runs a whole suite so */
        d->params.ahead = MT_AHEAD_ALWAYS;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->ended, NULL);
    pthread_cond_init(&d->passed, NULL);
    d->params.turn = driver_turn;
    d->params.turn_ctx = d;
}

/* What cached keys and values are kept in: MOTET_TEST_KV_BITS, which runs a whole suite with 8 or 4 bits. */
static inline mt_kv_bits driver_kv_bits(void)
{
    const char *bits = getenv("MOTET_TEST_KV_BITS");
    return !bits ? MT_KV_BITS_16 : bits[0] == '8' ? MT_KV_BITS_8 : bits[0] == '4' ? MT_KV_BITS_4 : MT_KV_BITS_16;
}

/* How quantised weights are multiplied: MOTET_TEST_NATIVE runs a whole suite in the arithmetic `native`. */
static inline mt_numerics driver_numerics(void)
{
    return getenv("MOTET_TEST_NATIVE") ? MT_NUMERICS_NATIVE : MT_NUMERICS_PORTABLE;
}

static bool driver_alone; /* be there other ranks */

/* draft: the folder of what guesses for it, or NULL */
static inline void driver_open_with(driver *d, const char *dir, const char *draft, mt_precision precision,
                                    size_t threads)
{
    const mt_device_params device = {.name = unit_device(),
                                     .host = {.threads = threads, .cpu_mask = ~0u},
                                     .precision = precision,
                                     .kv_bits = driver_kv_bits(),
                                     .numerics = driver_numerics()};
    mt_error err = {0};
    driver_init(d);
    if (!mt_opened_open(&d->o, dir, &device, &(mt_open_wish){.draft = draft, .alone = driver_alone}, &err))
        fail_msg("%s: %s", dir, err.text);
}

static inline void driver_open(driver *d, const char *dir, mt_precision precision, size_t threads)
{
    driver_open_with(d, dir, NULL, precision, threads);
}

/* With d->params as the test has set them. */
static inline void driver_start(driver *d)
{
    mt_error err = {0};
    d->engine = mt_engine_start(&d->o, NULL, &d->params, &err);
    if (!d->engine)
        fail_msg("%s", err.text);
}

/* What the engine has counted, with all that has ended in it: others are shown a copy that is made after each step. */
static inline void driver_stats(driver *d, mt_stats *stats)
{
    for (;;) {
        size_t counted = 0;
        mt_engine_stats(d->engine, stats);
        for (size_t i = 0; i < MT_COUNT(stats->finished); i++)
            counted += stats->finished[i];
        pthread_mutex_lock(&d->lock);
        const bool all = counted >= d->sent - d->open;
        pthread_mutex_unlock(&d->lock);
        if (all)
            return;
        usleep(1000);
    }
}

/* Between the two no step is computed: what is sent meanwhile comes together, however slow the sender is. */
static inline void driver_hold(driver *d)
{
    driver_turn(d, true);
}

static inline void driver_let_go(driver *d)
{
    driver_turn(d, false);
}

static inline void driver_close(driver *d)
{
    mt_stats stats;
    driver_stats(d, &stats);
    assert_int_equal(stats.canary_faults, 0);
    mt_engine_stop(d->engine);
    mt_opened_close(&d->o);
    pthread_cond_destroy(&d->passed);
    pthread_cond_destroy(&d->ended);
    pthread_mutex_destroy(&d->lock);
}

/* A greedy request for `tokens` tokens with all logprobs; the test may change it before driver_send. answers is
   zeroed. */
static inline mt_request *driver_request(driver *d, const uint32_t *prompt, size_t len, size_t tokens, answer *answers)
{
    mt_request *r = mt_request_new();
    asked *a = mt_arena_alloc(r->arena, sizeof(*a));
    uint32_t *copy = mt_arena_alloc(r->arena, len * sizeof(*copy));
    *a = (asked){.d = d, .answers = answers};
    memcpy(copy, prompt, len * sizeof(*copy));
    memset(answers, 0, sizeof(*answers));
    r->prompt = copy;
    r->prompt_len = len;
    r->max_tokens = tokens;
    r->sampling.temperature = 0;
    r->sampling.logprobs = MT_LIMIT_TOP_LOGPROBS;
    r->sampling.ignore_eos = true;
    r->event = driver_event;
    r->ctx = a;
    return r;
}

#define KINDS 4

/* Settings that a guess could disturb, were it to leave anything behind. */
static inline void driver_vary(mt_request *r, size_t kind)
{
    static const mt_logit_bias bias[] = {{5, 1.5f}, {9, -3.0f}};
    static const uint32_t fives[] = {5, 5};
    static const mt_bad_word bad[] = {{fives, 2}};
    if (kind == 0)
        return;
    r->sampling.temperature = 0.8f;
    r->sampling.seed = 77 + kind;
    if (kind == 2) {
        r->sampling.repetition_penalty = 1.3f;
        r->sampling.presence_penalty = 0.4f;
        r->sampling.frequency_penalty = 0.2f;
    }
    if (kind == 3) {
        r->sampling.bias = bias;
        r->sampling.bias_count = 2;
        r->sampling.top_p = 0.9f;
        r->sampling.bad = bad;
        r->sampling.bad_count = 1;
    }
}

static inline void driver_send(driver *d, mt_request *r)
{
    mt_error err = {0};
    pthread_mutex_lock(&d->lock);
    d->sent += r->choices;
    d->open += r->choices;
    pthread_mutex_unlock(&d->lock);
    if (!mt_engine_submit(d->engine, r, &err))
        fail_msg("%s", err.text);
}

/* Until no more than `left` choices are open. */
static inline void driver_wait(driver *d, size_t left)
{
    pthread_mutex_lock(&d->lock);
    while (d->open > left)
        pthread_cond_wait(&d->ended, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

static inline void driver_ask(driver *d, const uint32_t *prompt, size_t len, size_t tokens, answer *a)
{
    driver_send(d, driver_request(d, prompt, len, tokens, a));
    driver_wait(d, 0);
    if (a->finish == MT_FINISH_ERROR)
        fail_msg("%s", a->error.text);
}

/* Bit for bit: tokens, their logprobs and the likeliest ones'. */
static inline void expect_same(const char *what, const answer *want, const answer *got)
{
    if (want->count != got->count)
        fail_msg("%s: %zu tokens, wanted %zu", what, got->count, want->count);
    for (size_t t = 0; t < want->count; t++) {
        if (memcmp(&want->chosen[t], &got->chosen[t], sizeof(want->chosen[t])) != 0)
            fail_msg("%s: token %zu is %u %.9g, wanted %u %.9g", what, t, got->chosen[t].id,
                     (double)got->chosen[t].logprob, want->chosen[t].id, (double)want->chosen[t].logprob);
        for (size_t k = 0; k < MT_LIMIT_TOP_LOGPROBS; k++)
            if (memcmp(&want->top[t][k], &got->top[t][k], sizeof(want->top[t][k])) != 0)
                fail_msg("%s: token %zu, rank %zu is %u %.9g, wanted %u %.9g", what, t, k, got->top[t][k].id,
                         (double)got->top[t][k].logprob, want->top[t][k].id, (double)want->top[t][k].logprob);
    }
}

typedef struct draw {
    uint64_t state;
} draw;

static inline uint32_t draw_below(draw *d, uint32_t n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(d->state >> 33) % n;
}

static inline void draw_tokens(draw *d, uint32_t *tokens, size_t count, uint32_t vocab)
{
    for (size_t i = 0; i < count; i++)
        tokens[i] = draw_below(d, vocab);
}

/* Under sanitizers, which are slow, a few must do: both kinds of layout, a window, experts, recurrent layers. Whose
   threads are looked at, the first of these: experts, recurrent layers, pictures, a drafter. MOTET_FIXTURES: only those
   whose names have this in them. */
static inline bool fixture_chosen(const char *name)
{
    static const char *const few[] = {"qwen3moe-mlx-6bit", "qwen35-mlx-4bit",    "qwen3vl-mlx-4bit", "gemma4-bf16",
                                      "qwen2-window-bf16", "qwen3-mlx-4bit-g32", "qwen25vl-bf16",    "gemma3vl-bf16"};
    const size_t count = unit_races() ? 4 : MT_COUNT(few);
    const char *wanted = getenv("MOTET_FIXTURES");
    if (wanted && !strstr(name, wanted))
        return false;
    for (size_t i = 0; unit_quick() && i < count; i++)
        if (strcmp(name, few[i]) == 0)
            return true;
    return !unit_quick() && name[0] != '.';
}

/* Whether a fixture differs from another only in how its weights are written down: for what does not depend on that. */
static inline bool fixture_is_rewritten(const char *dir)
{
    static const char *const ways[] = {"-mlx-2",   "-mlx-3",    "-mlx-5",         "-mlx-6",         "-mlx-8",
                                       "-mxfp",    "nvfp4",     "-mixed-",        "-resaved",       "-sharded",
                                       "-awq",     "-gptq-",    "-ct-",           "-bnb-",          "minimaxm2-fp8",
                                       "phi3-fp8", "qwen3-fp8", "deepseekv3-fp8", "deepseekv32-fp8"};
    for (size_t i = 0; !unit_quick() && i < MT_COUNT(ways); i++)
        if (strstr(dir, ways[i]))
            return true;
    return false;
}

/* Whether there is another of the same shape whose weights are not quantised: for what the engine does with whatever
   its kernels give. That these give the same bits in any company is checked of each (engine_exact). */
static inline bool fixture_is_quantised(const char *dir)
{
    return fixture_is_rewritten(dir) || (!unit_quick() && strstr(dir, "-mlx-"));
}

/* Whether another fixture has the same kinds of layers and of cached values: for what the engine does with sequences,
   pages and states, whatever their numbers. `make test-full` takes all fixtures, and engine_exact always does; the
   sanitizers take four: experts, recurrent layers, pictures, several groups of layers. */
static inline bool fixture_is_alike(const char *dir)
{
    static const char *const kinds[] = {"llama-bf16",     "qwen3-mlx-4bit-g32",    "gemma3-bf16",     "gptoss-bf16",
                                        "qwen3moe-bf16",  "gemma4-aside-bf16",     "deepseekv3-bf16", "lfm2-bf16",
                                        "qwen3next-bf16", "phi3-long-bf16",        "qwen35-bf16",     "qwen35-mlx-4bit",
                                        "qwen3vl-bf16",   "gemma3vl-bf16",         "lfm2vl-bf16",     "granite4-bf16",
                                        "falconh1-bf16",  "nemotronh-latent-bf16", "llama4-bf16",     "glm5-bf16"};
    static const char *const few[] = {"qwen3moe-mlx-6bit", "qwen35-mlx-4bit", "qwen3vl-mlx-4bit", "gemma4-bf16"};
    const char *const *chosen = unit_quick() ? few : kinds;
    const size_t count = unit_quick() ? MT_COUNT(few) : MT_COUNT(kinds);
    for (size_t i = 0; i < count; i++)
        if (strcmp(strrchr(dir, '/') + 1, chosen[i]) == 0)
            return false;
    return !unit_full();
}

/* Whether the tests' device can compute it: choices of positions are not computed on NVIDIA's GPUs. */
static inline bool fixture_is_computed(const char *name)
{
    return strncmp(unit_device(), "cuda", 4) != 0 || (!strstr(name, "deepseekv32") && !strstr(name, "glm5"));
}

/* Calls check with the folders of `where` that are not left out, all of which are checkpoints with recorded answers. */
static inline void for_each(const char *where, bool (*left_out)(const char *dir), void (*check)(const char *dir))
{
    struct dirent *entry;
    size_t seen = 0;
    DIR *top = opendir(where);
    assert_non_null(top);
    while ((entry = readdir(top))) {
        char dir[512];
        if (!fixture_chosen(entry->d_name) || !fixture_is_computed(entry->d_name))
            continue;
        snprintf(dir, sizeof(dir), "%s/%s", where, entry->d_name);
        if (left_out && left_out(dir))
            continue;
        check(dir);
        seen++;
    }
    closedir(top);
    assert_true(seen > 0);
}

static inline void for_each_folder(const char *where, void (*check)(const char *dir))
{
    for_each(where, NULL, check);
}

static inline void for_each_fixture(void (*check)(const char *dir))
{
    for_each_folder(FIXTURES, check);
}

/* One fixture of each kind, or in full runs all of them. */
static inline void for_each_kind(void (*check)(const char *dir))
{
    for_each(FIXTURES, fixture_is_alike, check);
}

#endif
