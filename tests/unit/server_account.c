/* What an account may have in a minute, and what is only its own. */
#include "unit.h"

#include "base/error.h"
#include "server/calls/account.h"

#define SECOND 1000000000ull

static mt_account account_of(int64_t requests, int64_t tokens)
{
    mt_account a = {.name = "ci",
                    .requests = {.limit = requests, .left = (double)requests},
                    .tokens = {.limit = tokens, .left = (double)tokens}};

    pthread_mutex_init(&a.lock, NULL);
    return a;
}

static void a_minutes_worth_may_be_had_at_once_and_comes_back_evenly(void **state)
{
    mt_quota r = {.limit = 60, .left = 60};
    uint64_t now = 7 * SECOND;

    (void)state;
    for (int i = 0; i < 60; i++)
        assert_true(mt_quota_take(&r, 1, now));
    assert_false(mt_quota_take(&r, 1, now));
    assert_true(mt_quota_wait(&r, now) > 0.99 && mt_quota_wait(&r, now) < 1.01);
    assert_true(mt_quota_reset(&r, now) > 59.9 && mt_quota_reset(&r, now) < 60.1);
    now += SECOND + 1;
    assert_true(mt_quota_take(&r, 1, now));
    assert_false(mt_quota_take(&r, 1, now));
    now += 3600 * SECOND;
    assert_true(mt_quota_left(&r, now) == 60); /* no more is saved up */
    assert_true(mt_quota_left(&r, 0) < 60);    /* a clock of another thread that is behind gives nothing back */
}

static void without_a_rate_everything_may_be_had(void **state)
{
    mt_account a = account_of(0, 0);
    mt_http_extra extra = {.count = 0};
    char text[MT_LIMIT_ERROR_TEXT];
    mt_failure why;
    int retry;

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_true(mt_account_ask(&a, SECOND, text, &retry));
    mt_account_charge(&a, SECOND, 1000, 1000);
    assert_true(mt_account_may(&a, SECOND, &why) && mt_account_may(NULL, SECOND, &why));
    mt_account_headers(&a, SECOND, &extra);
    assert_int_equal(extra.count, 0);
    assert_int_equal(mt_account_look(&a).requests, 100);
    assert_int_equal(mt_account_look(&a).limited, 0);
}

static void who_asks_too_often_is_told_when_to_come_again(void **state)
{
    mt_account a = account_of(2, 0);
    char text[MT_LIMIT_ERROR_TEXT];
    int retry = 0;

    (void)state;
    assert_true(mt_account_ask(&a, SECOND, text, &retry) && mt_account_ask(&a, SECOND, text, &retry));
    assert_false(mt_account_ask(&a, SECOND, text, &retry));
    assert_int_equal(retry, 30);
    assert_non_null(strstr(text, "\"ci\""));
    assert_non_null(strstr(text, "2 requests a minute"));
    assert_non_null(strstr(text, "30 s"));
    assert_int_equal(mt_account_look(&a).limited, 1);
    assert_true(mt_account_ask(&a, 32 * SECOND, text, &retry));
}

static void tokens_that_were_had_too_many_are_a_debt(void **state)
{
    mt_account a = account_of(0, 600);
    char text[MT_LIMIT_ERROR_TEXT];
    mt_failure why = {.status = 0};
    int retry = 0;

    (void)state;
    assert_true(mt_account_ask(&a, SECOND, text, &retry));
    mt_account_charge(&a, SECOND, 1000, 0);
    mt_account_charge(&a, SECOND, 0, 199); /* 599 below */
    assert_false(mt_account_may(&a, SECOND, &why));
    assert_int_equal(why.status, 429);
    assert_string_equal(why.code, "rate_limit_exceeded");
    assert_int_equal(why.retry_after, 60);
    assert_non_null(strstr(why.text, "600 tokens a minute"));
    assert_false(mt_account_ask(&a, 50 * SECOND, text, &retry));
    assert_int_equal(retry, 11);
    assert_true(mt_account_ask(&a, 62 * SECOND, text, &retry));
    assert_int_equal(mt_account_look(&a).prompt_tokens, 1000);
    assert_int_equal(mt_account_look(&a).generated_tokens, 199);
}

static const char *header(const mt_http_extra *extra, const char *name)
{
    for (size_t i = 0; i < extra->count; i++)
        if (strcmp(extra->headers[i].name, name) == 0)
            return extra->headers[i].value;
    fail_msg("there is no %s", name);
    return NULL;
}

static void headers_say_what_is_left(void **state)
{
    mt_account a = account_of(60, 1000);
    mt_http_extra extra = {.count = 0}, later = {.count = 0};
    char text[MT_LIMIT_ERROR_TEXT];
    int retry;

    (void)state;
    assert_true(mt_account_ask(&a, SECOND, text, &retry));
    mt_account_charge(&a, SECOND, 2500, 0);
    mt_account_headers(&a, SECOND, &extra);
    assert_int_equal(extra.count, 6);
    assert_string_equal(header(&extra, "x-ratelimit-limit-requests"), "60");
    assert_string_equal(header(&extra, "x-ratelimit-remaining-requests"), "59");
    assert_string_equal(header(&extra, "x-ratelimit-reset-requests"), "1s");
    assert_string_equal(header(&extra, "x-ratelimit-limit-tokens"), "1000");
    assert_string_equal(header(&extra, "x-ratelimit-remaining-tokens"), "0");
    assert_string_equal(header(&extra, "x-ratelimit-reset-tokens"), "2m30s");
    mt_account_headers(&a, SECOND + SECOND / 2, &later);
    assert_string_equal(header(&later, "x-ratelimit-reset-requests"), "500ms");
}

static void accounts_have_salts_of_their_own(void **state)
{
    const mt_account a = {.owner = {1}}, b = {.owner = {2}};
    const uint8_t zeros[32] = {0};
    uint8_t none[32], one[32], two[32], three[32];

    (void)state;
    mt_account_salt(NULL, NULL, none);
    assert_memory_equal(none, zeros, 32);
    mt_account_salt(&a, NULL, one);
    mt_account_salt(&b, NULL, two);
    assert_memory_not_equal(one, two, 32);
    assert_memory_not_equal(one, zeros, 32);
    mt_account_salt(&a, "x", two);
    mt_account_salt(&b, "x", three);
    assert_memory_not_equal(one, two, 32);
    assert_memory_not_equal(two, three, 32);
    mt_account_salt(NULL, "x", three);
    assert_memory_not_equal(two, three, 32);
    mt_account_salt(&a, "x", three);
    assert_memory_equal(two, three, 32);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_minutes_worth_may_be_had_at_once_and_comes_back_evenly),
    cmocka_unit_test(without_a_rate_everything_may_be_had),
    cmocka_unit_test(who_asks_too_often_is_told_when_to_come_again),
    cmocka_unit_test(tokens_that_were_had_too_many_are_a_debt),
    cmocka_unit_test(headers_say_what_is_left),
    cmocka_unit_test(accounts_have_salts_of_their_own),
};
UNIT_MAIN(tests)
