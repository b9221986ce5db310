#include "unit.h"

#include <sched.h>

#include "base/placement.h"

#ifdef __linux__

/* A thread that plays both parts sees its own core taken away for the time of waking, and given back. */
static void the_core_of_the_waker_is_left_out(void **state)
{
    mt_placement place = {0};
    cpu_set_t before, during, after;
    int core;

    (void)state;
    sched_getaffinity(0, sizeof(before), &before);
    if (CPU_COUNT(&before) < 2)
        UNIT_SKIP("one core");
    do { /* the scheduler may move us between the two */
        mt_placement_awake(&place);
        mt_placement_sleep(&place);
        core = place.core;
        mt_placement_wake(&place);
    } while (!place.moved);
    sched_getaffinity(0, sizeof(during), &during);
    assert_int_equal(CPU_COUNT(&during), CPU_COUNT(&before) - 1);
    assert_false(CPU_ISSET((size_t)core, &during));
    mt_placement_awake(&place);
    sched_getaffinity(0, sizeof(after), &after);
    assert_true(CPU_EQUAL(&before, &after));
}

static void another_core_changes_nothing(void **state)
{
    mt_placement place = {0};

    (void)state;
    mt_placement_sleep(&place);
    place.core = -1;
    mt_placement_wake(&place);
    assert_false(place.moved);
    mt_placement_awake(&place);
}

static void a_thread_with_one_core_keeps_it(void **state)
{
    mt_placement place = {0};
    cpu_set_t before, one;

    (void)state;
    sched_getaffinity(0, sizeof(before), &before);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    mt_placement_sleep(&place);
    mt_placement_wake(&place);
    assert_false(place.moved);
    sched_setaffinity(0, sizeof(before), &before);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_core_of_the_waker_is_left_out),
    cmocka_unit_test(another_core_changes_nothing),
    cmocka_unit_test(a_thread_with_one_core_keeps_it),
};

#else

static void nothing_happens(void **state)
{
    mt_placement place = {0};

    (void)state;
    mt_placement_sleep(&place);
    mt_placement_wake(&place);
    mt_placement_awake(&place);
    assert_false(place.moved);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_happens),
};

#endif

UNIT_MAIN(tests)
