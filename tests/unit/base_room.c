#include "unit.h"

#include <pthread.h>

#include "base/room.h"

enum { THREADS = 4, ROUNDS = 20000 };

static void no_more_is_given_than_there_is(void **state)
{
    mt_room room = {.limit = 100};

    (void)state;
    assert_true(mt_room_take(&room, 60));
    assert_false(mt_room_take(&room, 41));
    assert_true(mt_room_take(&room, 40));
    assert_true(mt_room_take(&room, 0));
    assert_false(mt_room_take(&room, 1));
    assert_false(mt_room_take(&room, SIZE_MAX));
    room.limit = 50; /* as when it becomes known how much there is */
    mt_room_give(&room, 40);
    assert_false(mt_room_take(&room, 0));
    mt_room_give(&room, 60);
    assert_true(mt_room_take(&room, 50));
}

static void some_can_be_left_to_others(void **state)
{
    mt_room room = {.limit = 100};

    (void)state;
    assert_false(mt_room_take_leaving(&room, 76, 25));
    assert_true(mt_room_take_leaving(&room, 75, 25));
    assert_false(mt_room_take_leaving(&room, 1, 25));
    assert_true(mt_room_take(&room, 25));
    assert_false(mt_room_take_leaving(&room, 0, 1));
}

static void *take_and_give(void *arg)
{
    mt_room *room = arg;

    for (size_t i = 0; i < ROUNDS; i++)
        if (mt_room_take(room, 3)) {
            assert_true(atomic_load(&room->used) <= room->limit);
            mt_room_give(room, 3);
        }
    return NULL;
}

static void threads_share_it(void **state)
{
    mt_room room = {.limit = 7};
    pthread_t threads[THREADS];

    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &room), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(room.used, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_more_is_given_than_there_is),
    cmocka_unit_test(some_can_be_left_to_others),
    cmocka_unit_test(threads_share_it),
};

int main(void)
{
    return unit_main(__FILE__, tests, MT_COUNT(tests));
}
