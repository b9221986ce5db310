#include "unit.h"

#include "base/compiler.h"
#include "base/lease.h"

#define ROUNDS 2000

typedef struct shared {
    mt_lease lease;
    size_t holders; /* guarded by the lease alone */
    size_t turns;
} shared;

static void *take_turns(void *ctx)
{
    shared *s = ctx;
    for (size_t i = 0; i < ROUNDS; i++) {
        mt_lease_take(&s->lease);
        assert_int_equal(++s->holders, 1);
        s->turns++;
        s->holders--;
        mt_lease_give(&s->lease);
    }
    return NULL;
}

static void one_holds_it_at_a_time(void **state)
{
    shared s = {.turns = 0};
    pthread_t threads[3];
    (void)state;
    mt_lease_init(&s.lease);
    for (size_t i = 0; i < MT_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &s), 0);
    for (size_t i = 0; i < MT_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(s.turns, MT_COUNT(threads) * ROUNDS);
    mt_lease_free(&s.lease);
}

static void *ask_once(void *ctx)
{
    shared *s = ctx;
    mt_lease_take(&s->lease);
    s->turns = 1;
    mt_lease_give(&s->lease);
    return NULL;
}

/* Who gives it back and asks at once gets it after the one who has waited. */
static void who_waits_comes_before_who_asks_again(void **state)
{
    shared s = {.turns = 0};
    pthread_t other;
    bool waits = false;
    (void)state;
    mt_lease_init(&s.lease);
    mt_lease_take(&s.lease);
    assert_int_equal(pthread_create(&other, NULL, ask_once, &s), 0);
    while (!waits) {
        pthread_mutex_lock(&s.lease.lock);
        waits = s.lease.next == 2;
        pthread_mutex_unlock(&s.lease.lock);
    }
    mt_lease_give(&s.lease);
    mt_lease_take(&s.lease);
    assert_int_equal(s.turns, 1);
    mt_lease_give(&s.lease);
    pthread_join(other, NULL);
    mt_lease_free(&s.lease);
}

static void nobody_else_needs_none(void **state)
{
    (void)state;
    mt_lease_take(NULL);
    mt_lease_give(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_holds_it_at_a_time),
    cmocka_unit_test(who_waits_comes_before_who_asks_again),
    cmocka_unit_test(nobody_else_needs_none),
};

UNIT_MAIN(tests)
