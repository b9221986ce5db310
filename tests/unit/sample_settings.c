#include "unit.h"

#include <math.h>

#include "sample/limits.h"
#include "sample/settings.h"

enum { VOCAB = 1000 };

static mt_sample_settings defaults(void)
{
    mt_sample_settings s;
    mt_sample_settings_init(&s);
    return s;
}

static void refused(mt_sample_settings s, const char *sentence)
{
    mt_error err;
    assert_false(mt_sample_settings_check(&s, VOCAB, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_string_equal(err.text, sentence);
}

static void accepted(mt_sample_settings s)
{
    mt_error err = {0};
    if (!mt_sample_settings_check(&s, VOCAB, &err))
        fail_msg("%s", err.text);
}

#define WITH(field, value) \
    do {                   \
        s = defaults();    \
        s.field = value;   \
    } while (0)
#define REFUSED(field, value, sentence) \
    do {                                \
        WITH(field, value);             \
        refused(s, sentence);           \
    } while (0)
#define ACCEPTED(field, value) \
    do {                       \
        WITH(field, value);    \
        accepted(s);           \
    } while (0)

static void the_defaults_are_valid_and_steer_nothing(void **state)
{
    mt_sample_settings s = defaults();
    (void)state;
    accepted(s);
    assert_false(mt_sample_settings_penalise(&s));
    assert_false(mt_sample_settings_greedy(&s));
}

static void numbers_out_of_range_are_named_with_their_range(void **state)
{
    mt_sample_settings s;
    (void)state;
    REFUSED(temperature, -0.5f, "\"temperature\" is -0.5: give a number from 0 to 100");
    REFUSED(temperature, 101, "\"temperature\" is 101: give a number from 0 to 100");
    REFUSED(temperature, INFINITY, "\"temperature\" is inf: give a number from 0 to 100");
    REFUSED(top_p, 1.5f, "\"top_p\" is 1.5: give a number from 0 to 1");
    REFUSED(min_p, -1, "\"min_p\" is -1: give a number from 0 to 1");
    REFUSED(typical_p, 2, "\"typical_p\" is 2: give a number from 0 to 1");
    REFUSED(presence_penalty, 2.5f, "\"presence_penalty\" is 2.5: give a number from -2 to 2");
    REFUSED(frequency_penalty, -2.5f, "\"frequency_penalty\" is -2.5: give a number from -2 to 2");
    REFUSED(repetition_penalty, 0, "\"repetition_penalty\" is 0: give a number from 0.01 to 100");
    REFUSED(top_k, -2, "\"top_k\" is -2: give an integer from -1 to 2147483647");
    REFUSED(logprobs, 21, "\"logprobs\" is 21: give an integer from -1 to 20");
    REFUSED(min_tokens, MT_LIMIT_CONTEXT + 1, "\"min_tokens\" is 16777217: give an integer from 0 to 16777216");
}

static void the_ends_of_the_ranges_are_inside(void **state)
{
    mt_sample_settings s;
    (void)state;
    ACCEPTED(temperature, 0);
    ACCEPTED(temperature, 100);
    ACCEPTED(top_p, 0);
    ACCEPTED(min_p, 1);
    ACCEPTED(typical_p, 0);
    ACCEPTED(presence_penalty, -2);
    ACCEPTED(frequency_penalty, 2);
    ACCEPTED(repetition_penalty, 0.01f);
    ACCEPTED(top_k, INT32_MAX);
    ACCEPTED(logprobs, 20);
    ACCEPTED(min_tokens, MT_LIMIT_CONTEXT);
}

static void nan_is_in_no_range(void **state)
{
    mt_sample_settings s;
    mt_error err;
    (void)state;
    WITH(top_p, NAN);
    assert_false(mt_sample_settings_check(&s, VOCAB, &err));
    assert_non_null(strstr(err.text, "\"top_p\" is"));
}

static void lists_are_bounded_and_their_ids_exist(void **state)
{
    static const mt_logit_bias biases[MT_LIMIT_LOGIT_BIAS + 1], beyond = {.id = VOCAB}, strong = {.bias = 100.5f};
    static const uint32_t ids[MT_LIMIT_STOP_IDS + 1], outside = VOCAB;
    mt_sample_settings s = defaults();
    (void)state;
    s.bias = biases;
    s.bias_count = MT_LIMIT_LOGIT_BIAS;
    accepted(s);
    s.bias_count++;
    refused(s, "\"logit_bias\" has 1025 entries: give at most 1024");
    s.bias = &beyond;
    s.bias_count = 1;
    refused(s, "\"logit_bias\" names token 1000 of a vocabulary of 1000: give ids from 0 to 999");
    s.bias = &strong;
    refused(s, "\"logit_bias\" is 100.5: give a number from -100 to 100");
    s = defaults();
    s.stop_ids = ids;
    s.stop_count = MT_LIMIT_STOP_IDS;
    accepted(s);
    s.stop_count++;
    refused(s, "\"stop_token_ids\" has 257 entries: give at most 256");
    s.stop_ids = &outside;
    s.stop_count = 1;
    refused(s, "\"stop_token_ids\" names token 1000 of a vocabulary of 1000: give ids from 0 to 999");
}

static void what_the_penalties_need_is_told(void **state)
{
    mt_sample_settings s;
    (void)state;
    WITH(presence_penalty, 0.1f);
    assert_true(mt_sample_settings_penalise(&s) && !mt_sample_settings_penalise_prompt(&s));
    WITH(frequency_penalty, -0.1f);
    assert_true(mt_sample_settings_penalise(&s) && !mt_sample_settings_penalise_prompt(&s));
    WITH(repetition_penalty, 1.1f);
    assert_true(mt_sample_settings_penalise(&s) && mt_sample_settings_penalise_prompt(&s));
}

static void ends_are_stop_ids_and_the_models_unless_ignored(void **state)
{
    static const uint32_t stops[] = {5, 9}, ends[] = {2};
    mt_sample_settings s = defaults();
    (void)state;
    s.stop_ids = stops;
    s.stop_count = 2;
    s.eos_ids = ends;
    s.eos_count = 1;
    assert_true(mt_sample_settings_ends(&s, 9));
    assert_true(mt_sample_settings_ends(&s, 2));
    assert_false(mt_sample_settings_ends(&s, 3));
    s.ignore_eos = true;
    assert_false(mt_sample_settings_ends(&s, 2));
    assert_true(mt_sample_settings_ends(&s, 5));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_defaults_are_valid_and_steer_nothing),
    cmocka_unit_test(numbers_out_of_range_are_named_with_their_range),
    cmocka_unit_test(the_ends_of_the_ranges_are_inside),
    cmocka_unit_test(nan_is_in_no_range),
    cmocka_unit_test(lists_are_bounded_and_their_ids_exist),
    cmocka_unit_test(what_the_penalties_need_is_told),
    cmocka_unit_test(ends_are_stop_ids_and_the_models_unless_ignored),
};
UNIT_MAIN(tests)
