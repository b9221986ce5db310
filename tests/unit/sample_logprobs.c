#include "unit.h"

#include <math.h>

#include "sample/logprobs.h"

static void the_highest_come_first(void **state)
{
    static const float logits[] = {1, 5, -2, 4, 5, 0};
    mt_logprob top[4];
    (void)state;
    assert_int_equal(mt_logprobs_top(logits, 6, 5.5f, 4, top), 4);
    assert_int_equal(top[0].id, 1); /* the lower id of two equals */
    assert_int_equal(top[1].id, 4);
    assert_int_equal(top[2].id, 3);
    assert_int_equal(top[3].id, 0);
    assert_true(top[0].logprob == -0.5f && top[3].logprob == -4.5f);
}

static void fewer_than_asked(void **state)
{
    static const float logits[] = {-1, -3};
    mt_logprob top[20];
    (void)state;
    assert_int_equal(mt_logprobs_top(logits, 2, 0, 20, top), 2);
    assert_int_equal(top[0].id, 0);
    assert_int_equal(top[1].id, 1);
}

static void masked_logits_rank_last(void **state)
{
    static const float logits[] = {-INFINITY, -INFINITY, 3};
    mt_logprob top[3];
    (void)state;
    assert_int_equal(mt_logprobs_top(logits, 3, 3, 3, top), 3);
    assert_int_equal(top[0].id, 2);
    assert_int_equal(top[1].id, 0);
    assert_int_equal(top[2].id, 1);
}

static void ascending_and_descending_rows(void **state)
{
    float logits[1000];
    mt_logprob top[20];
    (void)state;
    for (int rising = 0; rising < 2; rising++) {
        for (int i = 0; i < 1000; i++)
            logits[i] = (float)(rising ? i : -i);
        assert_int_equal(mt_logprobs_top(logits, 1000, 0, 20, top), 20);
        for (uint32_t i = 0; i < 20; i++)
            assert_int_equal(top[i].id, rising ? 999 - i : i);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_highest_come_first),
    cmocka_unit_test(fewer_than_asked),
    cmocka_unit_test(masked_logits_rank_last),
    cmocka_unit_test(ascending_and_descending_rows),
};

UNIT_MAIN(tests)
