/* Lanes: whose call is prepared next, and on how many threads. Calls wait at a gate while they are prepared, so nothing
   here depends on how fast the machine is. */
#include "unit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "server/prepare/workers.h"

#define MOST 16
#define LONG_MS 1000
#define NEVER_MS 3600000

/* What happened, under the lock: calls that have begun, in this order, and those that may end. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const mt_call *begun[MOST];
    size_t begun_count, ended;
    bool open[MOST];    /* by the call's number */
    bool is_long[MOST]; /* says so when it begins */
    double seconds;     /* that a call says it took */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static mt_call calls[MOST];

static double prepare(mt_call *call)
{
    const size_t number = (size_t)(call - calls);

    pthread_mutex_lock(&gate.lock);
    gate.begun[gate.begun_count++] = call;
    if (gate.is_long[number])
        call->prep.takes_long(call->prep.lane);
    pthread_cond_broadcast(&gate.changed);
    while (!gate.open[number])
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.ended++;
    pthread_mutex_unlock(&gate.lock);
    return gate.seconds;
}

static mt_workers *start(size_t threads, size_t spare, int long_ms)
{
    const mt_workers_settings settings = {
        .threads = threads, .spare = spare, .long_ms = long_ms, .capacity = MOST, .prepare = prepare};
    mt_error err;
    mt_workers *w;

    gate.begun_count = gate.ended = 0;
    gate.seconds = 0;
    memset(gate.open, 0, sizeof(gate.open));
    memset(gate.is_long, 0, sizeof(gate.is_long));
    memset(calls, 0, sizeof(calls));
    w = mt_workers_start(&settings, &err);
    assert_non_null(w);
    return w;
}

static void add(mt_workers *w, size_t number, uint64_t client, uint32_t share)
{
    calls[number].client = (mt_client){.id = client, .share = share};
    assert_true(mt_workers_add(w, &calls[number]));
}

/* Waits until so many calls have begun; the last of these is that of the number. */
static void begins(size_t count, size_t number)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.begun_count < count)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    assert_int_equal(gate.begun[count - 1] - calls, number);
}

static void let(size_t number)
{
    pthread_mutex_lock(&gate.lock);
    gate.open[number] = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void end(mt_workers *w)
{
    for (size_t i = 0; i < MOST; i++)
        let(i);
    mt_workers_stop(w);
}

/* One thread: the client that has used less comes first, whoever came first. */
static void clients_take_turns(void **state)
{
    mt_workers *w = start(1, 0, NEVER_MS);

    (void)state;
    gate.seconds = 1;
    add(w, 0, 1, 1);
    begins(1, 0);
    for (size_t i = 1; i < 4; i++)
        add(w, i, 1, 1);
    add(w, 4, 2, 1);
    add(w, 5, 2, 1);
    let(0);
    begins(2, 4); /* client 2 has used nothing */
    let(4);
    /* Equal debts but for the moments that have passed since: client 1's is the older, and so the smaller */
    begins(3, 1);
    let(1);
    begins(4, 5);
    let(5);
    begins(5, 2);
    end(w);
    assert_int_equal(gate.ended, 6);
}

/* What a client has used is divided by its share. */
static void a_larger_share_comes_first(void **state)
{
    mt_workers *w = start(1, 0, NEVER_MS);

    (void)state;
    gate.seconds = 1;
    add(w, 0, 1, 1);
    begins(1, 0);
    add(w, 1, 2, 1u << 20);
    let(0);
    begins(2, 1);
    add(w, 2, 1, 1);
    add(w, 3, 2, 1u << 20);
    add(w, 4, 2, 1u << 20);
    let(1);
    begins(3, 3);
    let(3);
    begins(4, 4);
    end(w);
}

/* However many calls a client has, another's begins at once, on a spare thread. */
static void no_client_has_all_threads(void **state)
{
    mt_workers *w = start(2, 1, NEVER_MS);

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        add(w, i, 1, 1);
        if (i < 2)
            begins(i + 1, i);
    }
    add(w, 6, 2, 1);
    begins(3, 6);
    add(w, 7, 3, 1);
    let(6); /* client 1 has its two threads still */
    begins(4, 7);
    assert_int_equal(mt_workers_waiting(w), 4);
    end(w);
    assert_int_equal(gate.ended, 8);
}

/* Of one client's calls, one from an address without any in preparation comes first. */
static void addresses_of_a_client_take_turns(void **state)
{
    mt_workers *w = start(2, 0, NEVER_MS);

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        calls[i].address = i < 4 ? 1 : 2;
        add(w, i, 1, 1);
        if (i < 2)
            begins(i + 1, i);
    }
    let(0);
    begins(3, 4);
    let(1);
    begins(4, 2); /* address 1 has none in preparation any more */
    end(w);
    assert_int_equal(gate.ended, 6);
}

/* Calls that take long make room for others of the same client, but not on all spare threads. */
static void long_work_does_not_hold_a_thread(void **state)
{
    mt_workers *w = start(1, 4, LONG_MS);
    const uint64_t began = mt_clock_ns();

    (void)state;
    for (size_t i = 0; i < 5; i++)
        add(w, i, 1, 1);
    begins(2, 1);
    assert_true(mt_clock_ns() - began >= LONG_MS * UINT64_C(1000000));
    begins(3, 2);
    add(w, 5, 2, 1); /* half of the spare threads are taken, and others are there for a client without any */
    begins(4, 5);
    usleep(LONG_MS * 1500); /* a lane without this limit would begin another by now */
    assert_int_equal(mt_workers_waiting(w), 2);
    end(w);
    assert_int_equal(gate.ended, 6);
}

/* A call that says that it takes long makes room at once. */
static void long_work_that_is_known_makes_room_at_once(void **state)
{
    mt_workers *w = start(1, 2, NEVER_MS);

    (void)state;
    gate.is_long[0] = true;
    for (size_t i = 0; i < 3; i++)
        add(w, i, 1, 1);
    begins(2, 1); /* which is not long: the third waits */
    assert_int_equal(mt_workers_waiting(w), 1);
    end(w);
    assert_int_equal(gate.ended, 3);
}

static void a_lane_is_bounded_and_ends_what_waits(void **state)
{
    const mt_workers_settings settings = {.threads = 1, .long_ms = NEVER_MS, .capacity = 3, .prepare = prepare};
    mt_workers *w = start(1, 0, NEVER_MS);
    mt_error err;

    (void)state;
    mt_workers_stop(w);
    w = mt_workers_start(&settings, &err);
    add(w, 0, 1, 1);
    begins(1, 0);
    for (size_t i = 1; i < 4; i++)
        add(w, i, i, 1);
    assert_false(mt_workers_add(w, &calls[4]));
    assert_int_equal(mt_workers_waiting(w), 3);
    end(w);
    assert_int_equal(gate.ended, 4);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(clients_take_turns),
    cmocka_unit_test(a_larger_share_comes_first),
    cmocka_unit_test(no_client_has_all_threads),
    cmocka_unit_test(addresses_of_a_client_take_turns),
    cmocka_unit_test(long_work_does_not_hold_a_thread),
    cmocka_unit_test(long_work_that_is_known_makes_room_at_once),
    cmocka_unit_test(a_lane_is_bounded_and_ends_what_waits),
};

UNIT_MAIN(tests)
