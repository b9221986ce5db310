/* The clock runs by itself, and stands where a test has stopped it. */
#include "unit.h"

#include <pthread.h>

#include "base/clock.h"

static void *read_clock(void *out)
{
    *(uint64_t *)out = mt_clock_ns();
    return NULL;
}

static void it_stands_where_it_was_set(void **state)
{
    uint64_t other;
    pthread_t thread;
    (void)state;
    mt_clock_set(5);
    assert_int_equal(mt_clock_ns(), 5);
    mt_clock_set(7);
    assert_int_equal(pthread_create(&thread, NULL, read_clock, &other), 0);
    pthread_join(thread, NULL);
    assert_int_equal(other, 7);
    mt_clock_set(0);
    assert_true(mt_clock_ns() > 7);
}

static void it_only_moves_forward(void **state)
{
    const uint64_t first = mt_clock_ns();
    uint64_t last = first;
    (void)state;
    while (last == first) {
        const uint64_t next = mt_clock_ns();
        assert_true(next >= last);
        last = next;
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_stands_where_it_was_set),
    cmocka_unit_test(it_only_moves_forward),
};

UNIT_MAIN(tests)
