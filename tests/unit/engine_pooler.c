/* The thread of an encoder: every request gets its last event, whatever happens meanwhile. */
#include "unit.h"

#include "base/alloc.h"
#include "engine/pooler.h"

#define FOLDER "tests/oracle/vectors/"
#define TEXT 200

typedef struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t ended, finished;
    float first; /* number of the vector that came last */
} heard;

static void on_event(void *ctx, const mt_event *ev)
{
    heard *h = ctx;
    if (ev->kind != MT_EVENT_DONE)
        return;
    pthread_mutex_lock(&h->lock);
    h->ended++;
    h->finished += ev->finish == MT_FINISH_STOP;
    assert_true((ev->vector != NULL) == (ev->finish == MT_FINISH_STOP));
    assert_true(ev->last);
    if (ev->vector)
        h->first = ev->vector[0];
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static void wait_for(heard *h, size_t ended)
{
    pthread_mutex_lock(&h->lock);
    while (h->ended < ended)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

static mt_request *new_request(heard *h, mt_pool pool)
{
    mt_request *r = mt_request_new();
    uint32_t *tokens = mt_arena_alloc(r->arena, TEXT * sizeof *tokens);
    for (uint32_t i = 0; i < TEXT; i++)
        tokens[i] = i % 50 + 4;
    r->prompt = tokens;
    r->prompt_len = TEXT;
    r->pool = pool;
    r->event = on_event;
    r->ctx = h;
    return r;
}

static mt_pooler *start(const char *name, size_t queue, mt_lease *lease)
{
    const mt_pooler_params params = {
        .device = {.host = {.threads = 1, .cpu_mask = ~0u}}, .queue = queue, .lease = lease};
    char dir[256];
    mt_error err = {0};
    snprintf(dir, sizeof dir, FOLDER "%s", name);
    assert_true(mt_pooler_takes(dir));
    mt_pooler *p = mt_pooler_start(dir, &params, &err);
    if (!p)
        fail_msg("%s", err.text);
    return p;
}

static void heard_init(heard *h)
{
    *h = (heard){.ended = 0};
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
}

static void texts_become_vectors_and_pairs_scores(void **state)
{
    static const struct {
        const char *folder;
        mt_pool pool;
    } cases[] = {
        {"bert-cls-bf16", MT_POOL_FIRST}, {"xlmr-mean-bf16", MT_POOL_MEAN}, {"bert-rerank-f32", MT_POOL_SCORE}};
    mt_error err = {0};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        heard h;
        heard_init(&h);
        mt_pooler *p = start(cases[i].folder, 8, NULL);
        assert_true(mt_pooler_look(p).scores == (cases[i].pool == MT_POOL_SCORE));
        assert_true(mt_pooler_submit(p, new_request(&h, cases[i].pool), &err));
        wait_for(&h, 1);
        assert_int_equal(h.finished, 1);
        assert_true(h.first == h.first && h.first != 0);
        assert_int_equal(mt_pooler_count(p).tokens, TEXT);
        mt_pooler_stop(p);
    }
}

/* While somebody else has the lease nothing is computed, so the queue fills up. */
static void a_full_queue_is_told(void **state)
{
    enum { QUEUE = 4, MANY = 200 };
    mt_error err = {0};
    mt_lease lease;
    heard h;
    size_t taken = 0;
    (void)state;
    heard_init(&h);
    mt_lease_init(&lease);
    mt_lease_take(&lease);
    mt_pooler *p = start("bert-cls-bf16", QUEUE, &lease);
    for (size_t i = 0; i < MANY; i++) {
        mt_request *r = new_request(&h, MT_POOL_MEAN);
        if (mt_pooler_submit(p, r, &err))
            taken++;
        else {
            assert_int_equal(err.code, MT_E_BUSY);
            mt_request_free(r);
        }
    }
    assert_true(taken >= QUEUE && taken < MANY);
    assert_int_equal(h.ended, 0);
    mt_lease_give(&lease);
    wait_for(&h, taken);
    assert_int_equal(h.finished, taken);
    mt_pooler_stop(p);
    mt_lease_free(&lease);
}

static void who_is_cancelled_is_not_computed(void **state)
{
    mt_error err = {0};
    mt_lease lease;
    heard h;
    (void)state;
    heard_init(&h);
    mt_lease_init(&lease);
    mt_lease_take(&lease);
    mt_pooler *p = start("bert-cls-bf16", 8, &lease);
    for (size_t i = 0; i < 3; i++) {
        mt_request *r = new_request(&h, MT_POOL_MEAN);
        atomic_store(&r->cancelled, i != 1);
        assert_true(mt_pooler_submit(p, r, &err));
    }
    mt_lease_give(&lease);
    wait_for(&h, 3);
    assert_int_equal(h.finished, 1);
    mt_pooler_stop(p);
    mt_lease_free(&lease);
}

static void the_end_is_told_to_all(void **state)
{
    enum { MANY = 50 };
    mt_error err = {0};
    heard h;
    (void)state;
    heard_init(&h);
    mt_pooler *p = start("xlmr-cls-f32", MANY, NULL);
    for (size_t i = 0; i < MANY; i++)
        assert_true(mt_pooler_submit(p, new_request(&h, MT_POOL_MEAN), &err));
    mt_pooler_stop(p);
    assert_int_equal(h.ended, MANY);
}

static void what_is_no_encoder_is_refused(void **state)
{
    mt_error err = {0};
    const mt_pooler_params params = {.device = {.host = {.threads = 1, .cpu_mask = ~0u}}, .queue = 1};
    (void)state;
    assert_false(mt_pooler_takes("tests/oracle/checkpoints/llama-bf16"));
    assert_false(mt_pooler_takes("tests/nowhere"));
    assert_null(mt_pooler_start("tests/oracle/checkpoints/llama-bf16", &params, &err));
    assert_non_null(strstr(err.text, "is no encoder but of type \"llama\""));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(texts_become_vectors_and_pairs_scores), cmocka_unit_test(a_full_queue_is_told),
    cmocka_unit_test(who_is_cancelled_is_not_computed),      cmocka_unit_test(the_end_is_told_to_all),
    cmocka_unit_test(what_is_no_encoder_is_refused),
};

UNIT_MAIN(tests)
