/* Many requests in one engine: each gets the answer it gets alone, to the last bit, whoever comes and goes beside it,
   and a bad one hurts nobody else. */
#include "engine_driver.h"

#include <unistd.h>

#define NEIGHBOURS 64
#define TOKENS 40

#define FIXTURE FIXTURES "/qwen3-mlx-4bit-g32"
#define HYBRID FIXTURES "/qwen35-mlx-4bit" /* with recurrent layers, whose states are shared in another way */

/* Different for each: greedy, or sampled in its own way. */
static void vary(mt_request *r, size_t i)
{
    if (i % 3 == 0)
        return;
    r->sampling.temperature = 0.7f + 0.1f * (float)(i % 5);
    r->sampling.seed = 1000 + i;
    r->sampling.top_p = i % 2 ? 0.9f : 1.0f;
    r->sampling.top_k = i % 4 ? 0 : 20;
    r->sampling.repetition_penalty = i % 5 ? 1.0f : 1.2f;
    r->sampling.presence_penalty = i % 7 ? 0.0f : 0.5f;
}

typedef struct crowd {
    size_t len[NEIGHBOURS];
    uint32_t prompt[NEIGHBOURS][300];
    answer alone[NEIGHBOURS], together[NEIGHBOURS];
} crowd;

static crowd all;

static size_t neighbours(void)
{
    return unit_quick() ? NEIGHBOURS / 4 : NEIGHBOURS;
}

static void draw_crowd(uint32_t vocab, uint64_t seed)
{
    draw random = {seed};
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        all.len[i] = 1 + draw_below(&random, 299);
        draw_tokens(&random, all.prompt[i], all.len[i], vocab);
        if (i % 4 == 1) /* some share a beginning */
            memcpy(all.prompt[i], all.prompt[0],
                   (all.len[i] < all.len[0] ? all.len[i] : all.len[0]) * sizeof(uint32_t));
    }
}

static mt_request *request_of(driver *d, size_t i, answer *to)
{
    mt_request *r = driver_request(d, all.prompt[i], all.len[i], TOKENS, to);
    vary(r, i);
    r->client.id = i % 5;
    return r;
}

/* The cache is cleared by its size: one sequence fits, so nothing is reused by the next. */
static void ask_alone(const char *dir)
{
    driver d;
    for (size_t i = 0; i < neighbours(); i++) {
        if (i % 8 == 0) {
            driver_open(&d, dir, MT_PRECISION_FAST, 1);
            d.params.sequences = 1;
            d.params.cache = 400;
            driver_start(&d);
        }
        driver_send(&d, request_of(&d, i, &all.alone[i]));
        driver_wait(&d, 0);
        if (i % 8 == 7)
            driver_close(&d);
    }
}

static void expect_crowd(const char *what)
{
    char text[256];
    for (size_t i = 0; i < neighbours(); i++) {
        snprintf(text, sizeof(text), "%s, request %zu", what, i);
        expect_same(text, &all.alone[i], &all.together[i]);
    }
}

static uint64_t preempted; /* of all fixtures: it is up to the machine's pace which of them meet often enough */

/* They come in random order, with fewer places than requests: at random moments, or all together where the cache is
   small, which is dry only if they meet. */
static void run_crowd(const char *dir, size_t threads, size_t sequences, size_t cache, uint64_t seed)
{
    driver d;
    draw random = {seed};
    size_t order[NEIGHBOURS];
    mt_stats stats;
    driver_open(&d, dir, MT_PRECISION_FAST, threads);
    d.params.sequences = sequences;
    d.params.cache = cache;
    d.params.rows = 64 + draw_below(&random, 200);
    d.params.turn_ms = 0; /* clients take their seats from one another again and again */
    driver_start(&d);
    for (size_t i = 0; i < neighbours(); i++) {
        const size_t k = draw_below(&random, (uint32_t)i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    if (cache > 0)
        driver_hold(&d);
    for (size_t i = 0; i < neighbours(); i++) {
        driver_send(&d, request_of(&d, order[i], &all.together[order[i]]));
        if (cache == 0 && draw_below(&random, 3) == 0)
            usleep(draw_below(&random, 3000));
    }
    if (cache > 0)
        driver_let_go(&d);
    driver_wait(&d, 0);
    driver_stats(&d, &stats);
    assert_int_equal(stats.running + stats.waiting, 0);
    assert_int_equal(stats.pages_held[0], 0);
    assert_int_equal(stats.states_held, 0);
    preempted += stats.preemptions;
    driver_close(&d);
}

static void check_company(const char *dir)
{
    driver d;
    if (fixture_is_quantised(dir) && strcmp(dir, FIXTURE) != 0 && strcmp(dir, HYBRID) != 0)
        return;
    driver_open(&d, dir, MT_PRECISION_FAST, 1);
    draw_crowd(d.o.spec.vocab, strlen(dir));
    mt_opened_close(&d.o);
    ask_alone(dir);
    run_crowd(dir, 2, 64, 0, 5);
    expect_crowd(dir);
    run_crowd(dir, 7, 9, 0, 6);
    expect_crowd(dir);
    run_crowd(dir, 2, 16, 1500, 7); /* a pool that is always dry: they are preempted again and again */
    expect_crowd(dir);
}

static void an_answer_does_not_depend_on_company(void **state)
{
    (void)state;
    for_each_kind(check_company);
    assert_true(preempted > 0);
}

/* Choices of one request differ among themselves, are the same every time, and compute their prompt once. */
static void check_choices(const char *dir)
{
    enum { CHOICES = 5 };
    static answer first[CHOICES], second[CHOICES];
    uint32_t prompt[100];
    driver d;
    draw random = {3};
    mt_stats stats;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    driver_start(&d);
    draw_tokens(&random, prompt, 100, d.o.spec.vocab);
    for (int round = 0; round < 2; round++) {
        answer *to = round ? second : first;
        mt_request *r = driver_request(&d, prompt, 100, TOKENS, to);
        memset(to, 0, sizeof(first));
        r->choices = CHOICES;
        r->sampling.temperature = 1;
        r->sampling.seed = 42;
        driver_send(&d, r);
        driver_wait(&d, 0);
        if (round == 0) {
            driver_stats(&d, &stats);
            assert_true(stats.cached_tokens >= (CHOICES - 1) * 96);
        }
    }
    for (size_t i = 0; i < CHOICES; i++) {
        expect_same("again", &first[i], &second[i]);
        for (size_t k = 0; k < i; k++)
            assert_true(memcmp(first[i].chosen, first[k].chosen, TOKENS * sizeof(mt_logprob)) != 0);
    }
    driver_close(&d);
}

static void choices_share_their_prompt(void **state)
{
    (void)state;
    check_choices(FIXTURE);
    check_choices(HYBRID);
}

/* Sent at once, eight requests with one long beginning compute it once. */
static void check_common_beginning(const char *dir)
{
    enum { CLIENTS = 8, COMMON = 1024, LEN = COMMON + 8 };
    static uint32_t prompt[CLIENTS][LEN];
    static answer answers[CLIENTS];
    driver d;
    draw random = {4};
    mt_stats stats;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.context = 2048;
    driver_start(&d);
    draw_tokens(&random, prompt[0], LEN, d.o.spec.vocab);
    for (size_t i = 1; i < CLIENTS; i++) {
        memcpy(prompt[i], prompt[0], sizeof(prompt[0]));
        draw_tokens(&random, prompt[i] + COMMON, 8, d.o.spec.vocab);
    }
    for (size_t i = 0; i < CLIENTS; i++)
        driver_send(&d, driver_request(&d, prompt[i], LEN, 2, &answers[i]));
    driver_wait(&d, 0);
    driver_stats(&d, &stats);
    assert_int_equal(stats.prompt_tokens, CLIENTS * LEN);
    assert_true(stats.prompt_tokens - stats.cached_tokens <= LEN + (CLIENTS - 1) * 2 * MT_PAGE_TOKENS);
    driver_close(&d);
}

static void a_common_beginning_is_computed_once(void **state)
{
    (void)state;
    check_common_beginning(FIXTURE);
    check_common_beginning(HYBRID);
}

/* For answers that nobody looks at. */
static void count_end(void *ctx, const mt_event *ev)
{
    driver *d = ((asked *)ctx)->d;
    if (ev->kind != MT_EVENT_DONE)
        return;
    pthread_mutex_lock(&d->lock);
    d->open--;
    pthread_cond_broadcast(&d->ended);
    pthread_mutex_unlock(&d->lock);
}

/* A pool that small requests could keep busy for ever still has room for a large one in the end. */
static void small_requests_do_not_keep_a_large_one_out(void **state)
{
    enum { LARGE = 280, SMALL = 60, BESIDE = 24 };
    static answer large, ignored;
    uint32_t prompt[LARGE];
    draw random = {21};
    driver d;
    bool done = false;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
    d.params.sequences = 8;
    d.params.cache = 400;
    driver_start(&d);
    for (size_t sent = 0; !done; sent++) {
        draw_tokens(&random, prompt, LARGE, d.o.spec.vocab);
        if (sent == BESIDE)
            driver_send(&d, driver_request(&d, prompt, LARGE, TOKENS, &large));
        driver_wait(&d, BESIDE - 1 + (sent >= BESIDE));
        mt_request *small = driver_request(&d, prompt, SMALL, TOKENS, &ignored);
        small->event = count_end;
        driver_send(&d, small);
        pthread_mutex_lock(&d.lock);
        done = large.count == TOKENS;
        pthread_mutex_unlock(&d.lock);
        assert_true(sent < 1000000);
    }
    driver_wait(&d, 0);
    driver_close(&d);
}

/* Cancels itself after some events, none included. */
typedef struct fickle {
    asked inner; /* what driver_event takes */
    mt_request *request;
    uint32_t left;
} fickle;

static void fickle_event(void *ctx, const mt_event *ev)
{
    fickle *f = ctx;
    if (f->left-- == 0)
        atomic_store(&f->request->cancelled, true);
    driver_event(&f->inner, ev);
}

static void check_cancelled(const char *dir)
{
    static answer answers[NEIGHBOURS];
    static fickle fickles[NEIGHBOURS];
    driver d;
    mt_stats stats;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    draw_crowd(d.o.spec.vocab, 11);
    d.params.sequences = 8;
    driver_start(&d);
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        mt_request *r = driver_request(&d, all.prompt[i], all.len[i], ANSWER_TOKENS, &answers[i]);
        fickles[i] = (fickle){.inner = {&d, &answers[i]}, .request = r, .left = (uint32_t)(i % 32)};
        if (i % 2 == 0) {
            r->event = fickle_event;
            r->ctx = &fickles[i];
            atomic_store(&r->cancelled, i % 8 == 0); /* some before they have begun */
        }
        driver_send(&d, r);
    }
    driver_wait(&d, 0);
    for (size_t i = 0; i < NEIGHBOURS; i++)
        assert_int_equal(answers[i].finish, i % 2 ? MT_FINISH_LENGTH : MT_FINISH_CANCELLED);
    driver_stats(&d, &stats);
    assert_int_equal(stats.pages_held[0], 0);
    assert_int_equal(stats.states_held, 0);
    driver_close(&d);
}

static void cancelled_requests_end_and_leave_nothing(void **state)
{
    (void)state;
    check_cancelled(FIXTURE);
    check_cancelled(HYBRID);
}

/* At a token of its own it cancels another. */
typedef struct ender {
    asked inner;
    mt_request *other;
} ender;

static void ender_event(void *ctx, const mt_event *ev)
{
    ender *x = ctx;
    driver_event(&x->inner, ev);
    if (ev->kind == MT_EVENT_TOKEN && x->inner.answers->count == 2)
        atomic_store(&x->other->cancelled, true);
}

/* It does not wait for a seat until it is told: there is one only when the other has ended. */
static void who_waits_and_is_cancelled_ends_at_once(void **state)
{
    static answer runs, waits;
    const uint32_t prompt[] = {1, 2, 3, 4, 5};
    driver d;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
    d.params.sequences = 1;
    driver_start(&d);
    mt_request *first = driver_request(&d, prompt, 5, ANSWER_TOKENS, &runs);
    mt_request *second = driver_request(&d, prompt, 5, ANSWER_TOKENS, &waits);
    ender x = {.inner = {&d, &runs}, .other = second};
    first->event = ender_event;
    first->ctx = &x;
    driver_hold(&d);
    driver_send(&d, first);
    driver_send(&d, second);
    driver_let_go(&d);
    driver_wait(&d, 0);
    assert_int_equal(waits.finish, MT_FINISH_CANCELLED);
    assert_int_equal(waits.begun_at, 0);
    assert_true(waits.ended_at < runs.ended_at);
    assert_int_equal(runs.count, ANSWER_TOKENS);
    driver_close(&d);
}

/* Two prompts, either of which takes more than half of the pool, a page at a time: the second is let in when the first
   has ended, and nobody has to make way. */
static void pages_are_promised_to_who_was_let_in(void **state)
{
    enum { LONG = 6 * MT_PAGE_TOKENS - 8 };
    static answer answers[2];
    uint32_t prompt[LONG];
    draw random = {5};
    mt_stats stats;
    driver d;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
    d.params.sequences = 4;
    d.params.chunk = MT_PAGE_TOKENS;
    d.params.cache = 10 * MT_PAGE_TOKENS;
    driver_start(&d);
    driver_hold(&d);
    for (size_t i = 0; i < 2; i++) {
        draw_tokens(&random, prompt, LONG, d.o.spec.vocab);
        driver_send(&d, driver_request(&d, prompt, LONG, 4, &answers[i]));
    }
    driver_let_go(&d);
    driver_wait(&d, 0);
    driver_stats(&d, &stats);
    assert_int_equal(stats.preemptions, 0);
    assert_true(answers[1].begun_at > answers[0].ended_at || answers[0].begun_at > answers[1].ended_at);
    driver_close(&d);
}

static void what_cannot_fit_is_refused_at_once(void **state)
{
    uint32_t prompt[200] = {0};
    static answer a[8];
    mt_error err = {0};
    driver d;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 1);
    d.params.context = 128;
    d.params.sequences = 2;
    d.params.queue = 2;
    driver_start(&d);
    mt_request *r = driver_request(&d, prompt, 128, 1, a);
    assert_false(mt_engine_submit(d.engine, r, &err));
    assert_int_equal(err.code, MT_E_TOO_LARGE);
    assert_non_null(strstr(err.text, "128"));
    mt_request_free(r);

    prompt[3] = d.o.spec.vocab;
    r = driver_request(&d, prompt, 10, 1, a);
    assert_false(mt_engine_submit(d.engine, r, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    mt_request_free(r);
    prompt[3] = 0;

    driver_ask(&d, prompt, 100, ANSWER_TOKENS, a); /* clamped to what the context leaves */
    assert_int_equal(a->count, 28);
    assert_int_equal(a->finish, MT_FINISH_LENGTH);

    size_t refused = 0;
    driver_hold(&d);
    for (size_t i = 0; i < 8; i++) {
        r = driver_request(&d, prompt, 100, 20, &a[i]);
        pthread_mutex_lock(&d.lock);
        d.open++;
        pthread_mutex_unlock(&d.lock);
        if (mt_engine_submit(d.engine, r, &err))
            continue;
        assert_int_equal(err.code, MT_E_BUSY);
        mt_request_free(r);
        refused++;
        pthread_mutex_lock(&d.lock);
        d.open--;
        pthread_mutex_unlock(&d.lock);
    }
    driver_let_go(&d);
    assert_true(refused > 0);
    driver_wait(&d, 0);
    driver_close(&d);
}

/* Who has taken places submits one request after the other on them, however many others want some. */
static void places_that_are_kept_are_nobody_elses(void **state)
{
    const uint32_t prompt[20] = {1, 2, 3};
    static answer a[3];
    mt_error err = {0};
    driver d;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 1);
    d.params.sequences = d.params.queue = 1;
    driver_start(&d);
    mt_places *places = mt_engine_places(d.engine, 0);
    const mt_client me = {.share = 1};
    const mt_client stranger = {.id = 1, .share = 1};
    assert_false(mt_places_full(places, &me, &err));
    assert_int_equal(mt_places_take(places, &me, 1, 5, &err), 2);
    assert_true(mt_places_full(places, &me, &err));
    assert_int_equal(err.code, MT_E_BUSY);
    assert_false(mt_places_full(places, &stranger, &err));
    mt_request *other = driver_request(&d, prompt, 20, 4, &a[2]);
    for (size_t i = 0; i < 2; i++) {
        mt_request *r = driver_request(&d, prompt, 20, 4, &a[i]);
        r->placed = true;
        driver_send(&d, r);
        driver_wait(&d, 0);
        assert_int_equal(a[i].count, 4);
        assert_false(mt_engine_submit(d.engine, other, &err));
        assert_int_equal(err.code, MT_E_BUSY);
    }
    mt_places_give(places, &me, 2);
    driver_send(&d, other);
    driver_wait(&d, 0);
    assert_int_equal(a[2].count, 4);
    assert_int_equal(mt_places_take(places, &me, 2, 2, &err), 2);
    mt_places_give(places, &me, 2);
    driver_close(&d);
}

/* Nobody reads the one while the other is answered: it stands still after its first token, and goes on later. */
static void pause_during(driver *d, mt_request *slow, const answer *told, mt_request *quick, const answer *other)
{
    atomic_store(&slow->paused, true);
    driver_send(d, slow);
    driver_send(d, quick);
    driver_wait(d, 1);
    pthread_mutex_lock(&d->lock);
    assert_int_equal(other->count, TOKENS);
    assert_int_equal(told->count, 1);
    pthread_mutex_unlock(&d->lock);
    atomic_store(&slow->paused, false);
    mt_engine_poke(d->engine);
    driver_wait(d, 0);
}

static void a_paused_request_waits_alone(void **state)
{
    static answer slow, quick;
    uint32_t prompt[40] = {1, 2, 3};
    driver d;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
    driver_start(&d);
    pause_during(&d, driver_request(&d, prompt, 40, TOKENS, &slow), &slow,
                 driver_request(&d, prompt, 30, TOKENS, &quick), &quick);
    assert_int_equal(slow.count, TOKENS);
    driver_close(&d);
}

/* One that nobody reads keeps neither the only place nor the pages that others wait for, and loses nothing by that. */
static void check_unread(const char *dir, size_t sequences, size_t cache)
{
    enum { PROMPT = 100 };
    static answer alone, slow, quick;
    uint32_t prompt[PROMPT], other[PROMPT];
    draw random = {31};
    driver d;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    draw_tokens(&random, prompt, PROMPT, d.o.spec.vocab);
    draw_tokens(&random, other, PROMPT, d.o.spec.vocab);
    d.params.sequences = sequences;
    d.params.cache = cache;
    driver_start(&d);
    driver_ask(&d, prompt, PROMPT, TOKENS, &alone);
    pause_during(&d, driver_request(&d, prompt, PROMPT, TOKENS, &slow), &slow,
                 driver_request(&d, other, PROMPT, TOKENS, &quick), &quick);
    expect_same("unread for a while", &alone, &slow);
    driver_close(&d);
}

static void a_request_that_is_not_read_makes_way(void **state)
{
    (void)state;
    check_unread(HYBRID, 1, 0);
    check_unread(FIXTURE, 4, 192);
}

/* However often the engine is woken in a step, there is a place for each request that may come. */
static void pokes_keep_nobody_out(void **state)
{
    static answer first, second;
    uint32_t prompt[40] = {1, 2, 3};
    mt_error err = {0};
    driver d;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 1);
    driver_start(&d);
    driver_send(&d, driver_request(&d, prompt, 40, ANSWER_TOKENS, &first));
    pthread_mutex_lock(&d.lock); /* its next event waits for this */
    for (size_t i = 0; i < 100000; i++)
        mt_engine_poke(d.engine);
    d.open++;
    if (!mt_engine_submit(d.engine, driver_request(&d, prompt, 40, TOKENS, &second), &err))
        fail_msg("%s", err.text);
    pthread_mutex_unlock(&d.lock);
    driver_wait(&d, 0);
    assert_int_equal(second.count, TOKENS);
    driver_close(&d);
}

/* Sends another request when it hears of its end. */
typedef struct follower {
    asked inner;
    mt_request *next;
    bool taken;
} follower;

static void follower_event(void *ctx, const mt_event *ev)
{
    follower *f = ctx;
    mt_error err = {0};
    if (ev->last)
        f->taken = mt_engine_submit(f->inner.d->engine, f->next, &err);
    driver_event(&f->inner, ev);
}

static void who_hears_of_an_end_finds_room(void **state)
{
    static answer answers[3];
    uint32_t prompt[40] = {1, 2, 3};
    driver d;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 1);
    d.params.sequences = d.params.queue = 1;
    driver_start(&d);
    mt_request *r = driver_request(&d, prompt, 40, TOKENS, &answers[0]);
    follower f = {.inner = {&d, &answers[0]}, .next = driver_request(&d, prompt, 40, TOKENS, &answers[2])};
    r->event = follower_event;
    r->ctx = &f;
    d.open = 1; /* the one that follows */
    driver_send(&d, r);
    driver_send(&d, driver_request(&d, prompt, 30, TOKENS, &answers[1]));
    driver_wait(&d, 2);
    assert_true(f.taken);
    driver_wait(&d, 0);
    assert_int_equal(answers[2].count, TOKENS);
    driver_close(&d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_answer_does_not_depend_on_company),
    cmocka_unit_test(choices_share_their_prompt),
    cmocka_unit_test(a_common_beginning_is_computed_once),
    cmocka_unit_test(cancelled_requests_end_and_leave_nothing),
    cmocka_unit_test(who_waits_and_is_cancelled_ends_at_once),
    cmocka_unit_test(pages_are_promised_to_who_was_let_in),
    cmocka_unit_test(small_requests_do_not_keep_a_large_one_out),
    cmocka_unit_test(what_cannot_fit_is_refused_at_once),
    cmocka_unit_test(places_that_are_kept_are_nobody_elses),
    cmocka_unit_test(a_paused_request_waits_alone),
    cmocka_unit_test(a_request_that_is_not_read_makes_way),
    cmocka_unit_test(pokes_keep_nobody_out),
    cmocka_unit_test(who_hears_of_an_end_finds_room),
};

UNIT_MAIN(tests)
