/* Requests that come and go leave nothing behind, and a long answer takes nothing but its own pages: with recurrent
   states, with guesses, under the canary, which has touched all of the cache before.

   MOTET_REQUESTS and MOTET_TOKENS: how many, where a few do not do. */
#include "engine_driver.h"
#include "head.h"

#include <unistd.h>

#define MODEL "qwen35-mlx-4bit"
#define LEN 150
#define SLACK (8u << 20) /* bytes that an allocator may keep */

static size_t number(const char *name, size_t otherwise)
{
    const char *given = getenv(name);
    return given ? (size_t)strtoull(given, NULL, 10) : unit_quick() ? otherwise / 10 : otherwise;
}

static size_t resident(void)
{
    unsigned long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    const int read = f ? fscanf(f, "%lu %lu", &size, &pages) : 0;
    if (f)
        fclose(f);
    return read == 2 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Sanitizers keep what is freed. */
static void expect_flat(size_t before)
{
    if (!unit_quick() && resident() > before + SLACK)
        fail_msg("%zu KiB grew to %zu KiB", before >> 10, resident() >> 10);
}

static void start(driver *d, size_t positions, size_t sequences)
{
    put_head(MODEL);
    driver_open(d, folder, MT_PRECISION_FAST, 2);
    assert_true(d->o.spec.mtp);
    d->params.draft_all = true;
    d->params.sequences = sequences;
    d->params.cache = positions;
    d->params.context = positions - MT_PAGE_TOKENS;
    driver_start(d);
}

/* Nobody holds anything any more, and guesses were made. */
static void finish(driver *d, mt_stats *stats)
{
    driver_stats(d, stats);
    assert_int_equal(stats->pages_held[0] + stats->states_held + stats->running + stats->waiting, 0);
    assert_true(stats->draft_tokens > 0);
    driver_close(d);
}

/* ---- many ---- */

typedef struct fickle {
    driver *d;
    mt_request *request;
    uint32_t left; /* events until it is cancelled */
} fickle;

static void fickle_event(void *ctx, const mt_event *ev)
{
    fickle *f = ctx;
    if (f->left-- == 0)
        atomic_store(&f->request->cancelled, true);
    if (ev->kind != MT_EVENT_DONE)
        return;
    pthread_mutex_lock(&f->d->lock);
    f->d->open--;
    pthread_cond_broadcast(&f->d->ended);
    pthread_mutex_unlock(&f->d->lock);
}

/* The first words are everybody's; those that say no other ones know the answer, or most of it. */
static void send_fickle(driver *d, draw *random, const uint32_t *words, const answer *known)
{
    static answer ignored;
    uint32_t prompt[LEN], expected[ANSWER_TOKENS];
    const bool same = draw_below(random, 2);
    const size_t shared = same ? LEN : draw_below(random, LEN);
    const size_t len = same ? LEN : shared + 1 + draw_below(random, (uint32_t)(LEN - shared));
    memcpy(prompt, words, shared * sizeof(*prompt));
    draw_tokens(random, prompt + shared, len - shared, d->o.spec.vocab);
    for (size_t i = 0; i < ANSWER_TOKENS; i++)
        expected[i] = draw_below(random, 5) ? known->chosen[i].id : 3;
    mt_request *r = driver_request(d, prompt, len, 1 + draw_below(random, 24), &ignored);
    fickle *f = mt_arena_alloc(r->arena, sizeof(*f));
    *f = (fickle){.d = d, .request = r, .left = draw_below(random, 20)};
    r->choices = 1 + (draw_below(random, 8) == 0);
    r->event = fickle_event;
    r->ctx = f;
    if (same) {
        uint32_t *copy = mt_arena_alloc(r->arena, sizeof(expected));
        memcpy(copy, expected, sizeof(expected));
        r->expected = copy;
        r->expected_count = ANSWER_TOKENS;
    }
    driver_send(d, r);
}

static void every_slot_and_page_is_accounted_for(void **state)
{
    const size_t requests = number("MOTET_REQUESTS", 1000);
    static answer known;
    uint32_t words[LEN];
    draw random = {34};
    size_t before = 0;
    driver d;
    mt_stats stats;
    (void)state;
    start(&d, 2000, 8);
    draw_tokens(&random, words, LEN, d.o.spec.vocab);
    driver_ask(&d, words, LEN, ANSWER_TOKENS, &known);
    for (size_t i = 0; i < requests; i++) {
        driver_wait(&d, 30);
        send_fickle(&d, &random, words, &known);
        if (i == requests / 4)
            before = resident();
    }
    driver_wait(&d, 0);
    expect_flat(before);
    finish(&d, &stats);
    assert_true(stats.finished[MT_FINISH_CANCELLED] > requests / 10);
    assert_true(stats.draft_accepted > requests / 4);
}

/* ---- long ---- */

typedef struct endless {
    driver *d;
    size_t count, before; /* tokens, and the memory when the first came */
} endless;

static void endless_event(void *ctx, const mt_event *ev)
{
    endless *e = ctx;
    if (ev->kind == MT_EVENT_TOKEN && e->count++ == 0)
        e->before = resident();
    if (ev->kind != MT_EVENT_DONE)
        return;
    expect_flat(e->before);
    pthread_mutex_lock(&e->d->lock);
    e->d->open--;
    pthread_cond_broadcast(&e->d->ended);
    pthread_mutex_unlock(&e->d->lock);
}

static void a_long_answer_takes_nothing_but_its_pages(void **state)
{
    const size_t tokens = number("MOTET_TOKENS", 3000);
    const uint32_t prompt[] = {1, 2, 3};
    static answer ignored;
    driver d;
    mt_stats stats;
    (void)state;
    start(&d, tokens + 8 * MT_PAGE_TOKENS, 1);
    mt_request *r = driver_request(&d, prompt, MT_COUNT(prompt), tokens, &ignored);
    endless e = {.d = &d};
    r->event = endless_event;
    r->ctx = &e;
    driver_send(&d, r);
    driver_wait(&d, 0);
    assert_int_equal(e.count, tokens);
    finish(&d, &stats);
    assert_int_equal(stats.pages_known, (MT_COUNT(prompt) + tokens - 1 + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS);
    assert_int_equal(stats.preemptions, 0);
    assert_true(stats.states_known <= 2); /* of the prompt and of the end */
}

/* A part, up to two parts where one is little, and never more than the limit. */
static void large_requests_get_a_part(void **state)
{
    (void)state;
    assert_int_equal(mt_engine_requests(UINT64_C(1) << 30, 8), 128 << 20);
    assert_int_equal(mt_engine_requests(UINT64_C(160) << 20, 8), MT_LIMIT_REQUESTS_LEAST);
    assert_int_equal(mt_engine_requests(UINT64_C(64) << 20, 8), 16 << 20);
    assert_int_equal(mt_engine_requests(UINT64_C(1) << 40, 16), MT_LIMIT_REQUESTS_BYTES);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(large_requests_get_a_part),
    cmocka_unit_test_setup_teardown(every_slot_and_page_is_accounted_for, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_long_answer_takes_nothing_but_its_pages, make_folder, remove_folder),
};

UNIT_MAIN(tests)
