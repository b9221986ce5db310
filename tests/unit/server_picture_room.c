/* The memory for pictures: who may take bytes when there are few. */
#include "unit.h"

#include <pthread.h>

#include "server/prepare/picture_room.h"

#define LIMIT 8000

static atomic_bool never;

/* A request that takes bytes, on a thread of its own where it has to wait. */
typedef struct taker {
    mt_picture_room *room;
    mt_picture_share has;
    size_t bytes;
    pthread_t thread;
    mt_error err;
    bool ok;
} taker;

static void *take(void *ctx)
{
    taker *t = ctx;

    t->ok = mt_picture_room_take(t->room, &t->has, t->bytes, &never, &t->err);
    return NULL;
}

/* Takes bytes that are there. */
static void take_now(taker *t, size_t bytes)
{
    t->bytes = bytes;
    take(t);
    if (!t->ok)
        fail_msg("%s", t->err.text);
}

/* Begins to take bytes that are not there yet. Returns when the request waits, as the `count`th. */
static void take_later(taker *t, size_t bytes, size_t count)
{
    size_t waiting = 0;

    t->bytes = bytes;
    assert_int_equal(pthread_create(&t->thread, NULL, take, t), 0);
    for (; waiting < count; usleep(1000)) {
        pthread_mutex_lock(&t->room->lock);
        waiting = 0;
        for (const mt_picture_waiter *w = t->room->waiters; w; w = w->next)
            waiting++;
        pthread_mutex_unlock(&t->room->lock);
    }
}

static void give(taker *t)
{
    mt_picture_room_give(t->room, &t->has, t->has.bytes);
}

static void one_request_has_seven_eighths(void **state)
{
    mt_picture_room room;
    taker t = {.room = &room, .has = {.client = 1}};

    (void)state;
    mt_picture_room_init(&room, LIMIT);
    assert_int_equal(mt_picture_room_most(&room), 7000);
    take_now(&t, 4000);
    t.bytes = 3001;
    take(&t);
    assert_false(t.ok);
    assert_int_equal(t.err.code, MT_E_TOO_LARGE);
    take_now(&t, 3000);
    give(&t);
    assert_int_equal(room.used, 0);
    assert_int_equal(room.share_count, 0);
    mt_picture_room_free(&room);
}

/* Small pictures pass large ones of another client, those that wait as well. */
static void the_last_eighth_is_for_clients_with_little(void **state)
{
    mt_picture_room room;
    taker large = {.room = &room, .has = {.client = 1}}, next = large, small = {.room = &room, .has = {.client = 2}};

    (void)state;
    mt_picture_room_init(&room, LIMIT);
    take_now(&large, 6900);
    take_now(&next, 100);
    take_later(&next, 900, 1); /* it has some already, and there are 1,000 free bytes, but not for client 1 */
    take_now(&small, 600);
    take_now(&small, 400);
    give(&large);
    pthread_join(next.thread, NULL);
    assert_true(next.ok);
    give(&next);
    give(&small);
    mt_picture_room_free(&room);
}

/* Of requests that wait, one of the client with the fewest bytes goes first. */
static void clients_take_turns(void **state)
{
    mt_picture_room room;
    taker first = {.room = &room, .has = {.client = 1}}, second = first, third = first,
          other = {.room = &room, .has = {.client = 2}};

    (void)state;
    mt_picture_room_init(&room, LIMIT);
    take_now(&first, 4000);
    take_now(&second, 3000);
    take_later(&third, 4000, 1);
    take_later(&other, 4000, 2);
    give(&first); /* room for one of them; client 1 has 3,000 still */
    pthread_join(other.thread, NULL);
    assert_true(other.ok);
    assert_int_equal(room.used, 7000);
    give(&other);
    pthread_join(third.thread, NULL);
    assert_true(third.ok);
    give(&second);
    give(&third);
    assert_int_equal(room.used, 0);
    mt_picture_room_free(&room);
}

/* A request that has bytes and waits for more goes before one that has none, also where that one has waited longer or
   its client has fewer bytes. */
static void who_has_bytes_goes_before_a_newcomer(void **state)
{
    (void)state;
    for (uint64_t client = 1; client <= 2; client++) {
        mt_picture_room room;
        taker first = {.room = &room, .has = {.client = 1}}, second = first,
              newcomer = {.room = &room, .has = {.client = client}};

        mt_picture_room_init(&room, LIMIT);
        take_now(&first, 4000);
        take_now(&second, 2000);
        take_later(&newcomer, 3000, 1);
        take_later(&second, 2000, 2);
        give(&first);
        pthread_join(second.thread, NULL);
        assert_true(second.ok);
        give(&second);
        pthread_join(newcomer.thread, NULL);
        assert_true(newcomer.ok);
        give(&newcomer);
        mt_picture_room_free(&room);
    }
}

static void *take_or_give(void *ctx)
{
    taker *t = ctx;

    take(t);
    if (!t->ok)
        give(t); /* as a request does that ends with an error */
    return NULL;
}

/* Where all that have bytes wait for more, one gives up, and another goes on with what that leaves. */
static void of_requests_that_wait_for_each_other_one_gives_up(void **state)
{
    mt_picture_room room;
    taker t[2] = {{.room = &room, .has = {.client = 1}}, {.room = &room, .has = {.client = 2}}};

    (void)state;
    mt_picture_room_init(&room, LIMIT);
    for (size_t i = 0; i < 2; i++)
        take_now(&t[i], 3500);
    for (size_t i = 0; i < 2; i++) {
        t[i].bytes = 3000;
        assert_int_equal(pthread_create(&t[i].thread, NULL, take_or_give, &t[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(t[i].thread, NULL);
        assert_true(t[i].ok || t[i].err.code == MT_E_BUSY);
    }
    assert_true(t[0].ok != t[1].ok);
    for (size_t i = 0; i < 2; i++)
        give(&t[i]);
    assert_int_equal(room.used, 0);
    mt_picture_room_free(&room);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_request_has_seven_eighths),
    cmocka_unit_test(the_last_eighth_is_for_clients_with_little),
    cmocka_unit_test(clients_take_turns),
    cmocka_unit_test(who_has_bytes_goes_before_a_newcomer),
    cmocka_unit_test(of_requests_that_wait_for_each_other_one_gives_up),
};

UNIT_MAIN(tests)
