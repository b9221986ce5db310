/* Vectors of a decoder: the same bits whatever the chunks, the company and the cache. */
#include "engine_driver.h"

#define LEN 300
#define WIDTH 40000 /* most numbers of a result */

typedef struct pooled {
    driver *d;
    size_t len, cached;
    float vector[WIDTH];
    mt_finish finish;
} pooled;

static void on_event(void *ctx, const mt_event *ev)
{
    pooled *p = ctx;
    pthread_mutex_lock(&p->d->lock);
    if (ev->kind == MT_EVENT_DONE) {
        p->finish = ev->finish;
        p->cached = ev->cached;
        p->len = ev->vector_len;
        assert_true(ev->vector_len <= WIDTH);
        if (ev->vector)
            memcpy(p->vector, ev->vector, ev->vector_len * sizeof(*ev->vector));
        p->d->open--;
        pthread_cond_broadcast(&p->d->ended);
    }
    pthread_mutex_unlock(&p->d->lock);
}

static void send_pooled(driver *d, mt_pool pool, const uint32_t *prompt, pooled *to)
{
    static answer unused;
    mt_request *r = driver_request(d, prompt, LEN, 0, &unused);
    *to = (pooled){.d = d};
    r->pool = pool;
    r->event = on_event;
    r->ctx = to;
    driver_send(d, r);
}

static void expect_vector(const char *what, const pooled *want, const pooled *got)
{
    assert_int_equal(got->finish, MT_FINISH_STOP);
    assert_true(got->len > 0 && got->len == want->len);
    if (memcmp(want->vector, got->vector, want->len * sizeof(*want->vector)) != 0)
        fail_msg("%s: the vectors differ", what);
}

static void open_driver(driver *d, size_t chunk, size_t threads)
{
    driver_open(d, FIXTURES "/qwen3-mlx-4bit-g32", MT_PRECISION_FAST, threads);
    d->params.context = 512;
    d->params.sequences = 8;
    d->params.chunk = chunk;
    driver_start(d);
}

static const mt_pool pools[] = {MT_POOL_LAST, MT_POOL_FIRST, MT_POOL_MEAN, MT_POOL_EACH};

static void chunks_and_threads_change_no_bit(void **state)
{
    static const size_t chunks[] = {0, 1, 7, 64};
    uint32_t prompt[LEN];
    (void)state;
    for (size_t i = 0; i < MT_COUNT(pools); i++) {
        pooled first, other;
        for (size_t c = 0; c < MT_COUNT(chunks); c++) {
            draw random = {21};
            driver d;
            open_driver(&d, chunks[c], 1 + c % 2);
            draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
            send_pooled(&d, pools[i], prompt, c ? &other : &first);
            driver_wait(&d, 0);
            if (c > 0)
                expect_vector("chunks", &first, &other);
            driver_close(&d);
        }
    }
}

/* The states of all positions begin with that of the first and end with that of the last. */
static void each_position_has_its_state(void **state)
{
    static pooled each, first, last;
    uint32_t prompt[LEN];
    draw random = {24};
    driver d;
    (void)state;
    open_driver(&d, 7, 1);
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    send_pooled(&d, MT_POOL_EACH, prompt, &each);
    send_pooled(&d, MT_POOL_FIRST, prompt, &first);
    send_pooled(&d, MT_POOL_LAST, prompt, &last);
    driver_wait(&d, 0);
    assert_int_equal(each.len, LEN * first.len);
    assert_memory_equal(each.vector, first.vector, first.len * sizeof(*first.vector));
    assert_memory_equal(each.vector + (LEN - 1) * last.len, last.vector, last.len * sizeof(*last.vector));
    driver_close(&d);
}

/* Answers and other vectors beside it, and what they left in the cache: the last position may use it, others must not
   or could not, and nothing changes. */
static void company_and_cache_change_no_bit(void **state)
{
    enum { OTHERS = 3 };
    static answer said[OTHERS];
    uint32_t prompt[LEN], more[OTHERS][LEN];
    draw random = {22};
    driver d;
    (void)state;
    open_driver(&d, 0, 2);
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    for (size_t i = 0; i < MT_COUNT(pools); i++) {
        pooled alone, among, again;
        send_pooled(&d, pools[i], prompt, &alone);
        driver_wait(&d, 0);
        for (size_t k = 0; k < OTHERS; k++) {
            draw_tokens(&random, more[k], LEN, d.o.spec.vocab);
            driver_send(&d, driver_request(&d, more[k], LEN, 4, &said[k]));
        }
        send_pooled(&d, pools[i], prompt, &among);
        send_pooled(&d, pools[i], prompt, &again);
        driver_wait(&d, 0);
        expect_vector("company", &alone, &among);
        expect_vector("company", &alone, &again);
        assert_int_equal(again.cached, pools[i] == MT_POOL_LAST ? LEN - 1 : 0);
    }
    driver_close(&d);
}

/* Too few pages for all: some are preempted in the middle and begin again. Who is depends on when each comes, so it is
   tried until it was seen. */
static void preemption_changes_no_bit(void **state)
{
    enum { MANY = 6, ROUNDS = 100 };
    static answer said[MANY];
    static pooled alone[MANY], among[MANY];
    static uint32_t prompt[MANY][LEN];
    draw random = {23};
    mt_stats stats = {0};
    driver d;
    (void)state;
    driver_open(&d, FIXTURES "/qwen3-mlx-4bit-g32", MT_PRECISION_FAST, 1);
    d.params.context = 400;
    d.params.sequences = MANY;
    d.params.cache = 1000;
    d.params.chunk = 32;
    driver_start(&d);
    for (size_t i = 0; i < MANY; i++) {
        draw_tokens(&random, prompt[i], LEN, d.o.spec.vocab);
        send_pooled(&d, MT_POOL_MEAN, prompt[i], &alone[i]);
        driver_wait(&d, 0);
    }
    for (size_t round = 0; round < ROUNDS && stats.preemptions == 0; round++) {
        driver_hold(&d);
        for (size_t i = 0; i < MANY; i++) {
            driver_send(&d, driver_request(&d, prompt[i], LEN, 40, &said[i]));
            send_pooled(&d, MT_POOL_MEAN, prompt[i], &among[i]);
        }
        driver_let_go(&d);
        driver_wait(&d, 0);
        for (size_t i = 0; i < MANY; i++)
            expect_vector("preemption", &alone[i], &among[i]);
        driver_stats(&d, &stats);
    }
    assert_true(stats.preemptions > 0);
    driver_close(&d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(chunks_and_threads_change_no_bit),
    cmocka_unit_test(each_position_has_its_state),
    cmocka_unit_test(company_and_cache_change_no_bit),
    cmocka_unit_test(preemption_changes_no_bit),
};

UNIT_MAIN(tests)
