#include "unit.h"

#include <math.h>

#include "sample/logprobs.h"
#include "sample/philox.h"

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

static const float *sorted_by;

static int by_logit_then_id(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    if (sorted_by[i] != sorted_by[j])
        return sorted_by[i] > sorted_by[j] ? -1 : 1;
    return i < j ? -1 : 1;
}

/* Rows with and without ties, of lengths around what is looked at together. */
static void the_top_is_that_of_sorting_everything(void **state)
{
    enum { MOST = 1000 };
    float logits[MOST];
    uint32_t order[MOST];
    mt_logprob top[20];
    (void)state;
    for (uint32_t n = 1; n < MOST; n += n < 300 ? 1 : 97) {
        for (uint32_t i = 0; i < n; i++) {
            uint64_t random = mt_philox_draw(n, 0, i, MT_PURPOSE_TOKEN);
            logits[i] = n % 2 ? (float)(random % 30) : (float)(random >> 40) * 1e-6f;
            order[i] = i;
        }
        sorted_by = logits;
        qsort(order, n, sizeof(*order), by_logit_then_id);
        for (size_t k = 1; k <= 20; k += 19) {
            size_t count = mt_logprobs_top(logits, n, 0, k, top);
            assert_int_equal(count, k < n ? k : n);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(top[i].id, order[i]);
        }
        for (size_t i = 0; i < n; i++)
            assert_int_equal(mt_logprobs_rank(logits, n, order[i]), i + 1);
    }
}

static void the_sum_is_right_and_the_same_at_every_level(void **state)
{
    enum { N = 10001 };
    float logits[N];
    double sum = 0;
    mt_kernels portable, native;
    (void)state;
    mt_kernels_init(&portable, 0);
    mt_kernels_init(&native, mt_cpu_detect());
    for (uint32_t i = 0; i < N; i++) {
        logits[i] = (float)(mt_philox_draw(1, 0, i, MT_PURPOSE_TOKEN) >> 40) * 1e-6f - 8;
        sum += exp((double)logits[i]);
    }
    float highest = native.max(logits, N), got = mt_logprobs_sum(&native, logits, N, highest);
    assert_true(fabs((double)got - log(sum)) < 1e-5);
    assert_true(got == mt_logprobs_sum(&portable, logits, N, highest));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_highest_come_first),
    cmocka_unit_test(fewer_than_asked),
    cmocka_unit_test(masked_logits_rank_last),
    cmocka_unit_test(ascending_and_descending_rows),
    cmocka_unit_test(the_top_is_that_of_sorting_everything),
    cmocka_unit_test(the_sum_is_right_and_the_same_at_every_level),
};

UNIT_MAIN(tests)
