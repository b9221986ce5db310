#include "unit.h"

#include "engine/limits.h"
#include "engine/repeat.h"

/* After how many tokens of a text that is written over and over it is seen that it is; 0: not within 2000. */
static size_t seen_after(const uint32_t *start, size_t start_len, size_t period, uint32_t limit)
{
    mt_repeat r = {0};

    for (size_t i = 0; i < 2000; i++) {
        const uint32_t token = i < start_len ? start[i] : (uint32_t)(100 + (i - start_len) % period);

        if (mt_repeat_add(&r, token, limit))
            return i + 1;
    }
    return 0;
}

static void a_cycle_is_seen_when_it_has_lasted(void **state)
{
    static const uint32_t words[5] = {1, 2, 3, 4, 5};

    (void)state;
    assert_int_equal(seen_after(NULL, 0, 1, 20), 21);
    assert_int_equal(seen_after(NULL, 0, 7, 20), 27);
    assert_int_equal(seen_after(words, 5, 7, 20), 32);
    assert_int_equal(seen_after(NULL, 0, MT_LIMIT_REPEAT_PERIOD, 200), MT_LIMIT_REPEAT_PERIOD + 200);
    assert_int_equal(seen_after(NULL, 0, MT_LIMIT_REPEAT_PERIOD + 1, 20), 0);
}

/* A limit that is shorter than two rounds of a cycle does not make a phrase that is said twice a circle. */
static void a_cycle_has_to_come_three_times(void **state)
{
    (void)state;
    assert_int_equal(seen_after(NULL, 0, 10, 1), 30);
    assert_int_equal(seen_after(NULL, 0, 1, 1), 3);
}

/* One other token in each round, and there is no cycle. */
static void what_changes_is_no_cycle(void **state)
{
    mt_repeat r = {0};

    (void)state;
    for (uint32_t i = 0; i < 2000; i++)
        assert_false(mt_repeat_add(&r, i % 9 == 8 ? 1000 + i : i % 9, 20));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_cycle_is_seen_when_it_has_lasted),
    cmocka_unit_test(a_cycle_has_to_come_three_times),
    cmocka_unit_test(what_changes_is_no_cycle),
};
UNIT_MAIN(tests)
