/* Texts for encoders of an engine that a test drives. */
#ifndef MT_TESTS_ENGINE_ENCODERS_H
#define MT_TESTS_ENGINE_ENCODERS_H

#include "engine_driver.h"

#define VECTORS "tests/oracle/vectors/"
#define WIDTH 32 /* numbers of a vector, at most */

/* A text that was sent, and what became of it. */
typedef struct sent_text {
    driver *d;
    float vector[WIDTH];
    mt_finish finish;
    mt_error error;
    bool begun, ended;
    uint64_t ended_at; /* in order of events of all requests */
} sent_text;

static inline void text_event(void *ctx, const mt_event *ev)
{
    sent_text *t = ctx;
    driver *d = t->d;
    pthread_mutex_lock(&d->lock);
    d->events++;
    t->begun = true;
    if (ev->kind == MT_EVENT_DONE) {
        assert_true(!t->ended && ev->last && ev->vector_len <= WIDTH);
        assert_true((ev->vector != NULL) == (ev->finish == MT_FINISH_STOP));
        t->ended = true;
        t->ended_at = d->events;
        t->finish = ev->finish;
        if (ev->vector)
            memcpy(t->vector, ev->vector, ev->vector_len * sizeof(*ev->vector));
        if (ev->error)
            t->error = *ev->error;
        d->open--;
        pthread_cond_broadcast(&d->ended);
    }
    pthread_mutex_unlock(&d->lock);
}

/* Of `len` tokens that depend on seed; the test may change it before text_send. */
static inline mt_request *text_request(driver *d, size_t encoder, mt_pool pool, uint32_t seed, size_t len, sent_text *t)
{
    mt_request *r = mt_request_new();
    uint32_t *tokens = mt_arena_alloc(r->arena, len * sizeof(*tokens));
    for (size_t i = 0; i < len; i++)
        tokens[i] = (uint32_t)(i * (seed + 1) + seed) % 50 + 9;
    *t = (sent_text){.d = d};
    r->prompt = tokens;
    r->prompt_len = len;
    r->encoder = encoder;
    r->pool = pool;
    r->event = text_event;
    r->ctx = t;
    return r;
}

static inline bool text_try(driver *d, mt_request *r, mt_error *err)
{
    pthread_mutex_lock(&d->lock);
    d->open++;
    pthread_mutex_unlock(&d->lock);
    if (mt_engine_submit(d->engine, r, err))
        return true;
    pthread_mutex_lock(&d->lock);
    d->open--;
    pthread_mutex_unlock(&d->lock);
    mt_request_free(r);
    return false;
}

static inline void text_send(driver *d, mt_request *r)
{
    mt_error err = {0};
    if (!text_try(d, r, &err))
        fail_msg("%s", err.text);
}

static inline void encoder_open(mt_encoder *encoder, const char *dir)
{
    mt_error err = {0};
    if (!mt_encoder_open(encoder, dir, &err))
        fail_msg("%s: %s", dir, err.text);
}

#endif
