#include "unit.h"

#include "server/calls/client.h"
#include "server/inside.h"

static mt_client who(const char *address, const char *key, const mt_account *account)
{
    const mt_http_header header = {"x-api-key", key};
    const mt_http_request request = {.client = address, .headers = &header, .header_count = key ? 1 : 0};

    return mt_client_of(account, &request);
}

static void an_account_is_a_client_wherever_it_comes_from(void **state)
{
    const mt_account one = {.client = {.id = 1, .share = 3}}, two = {.client = {.id = 2, .share = 1}};

    (void)state;
    assert_true(who("192.0.2.1", "a", &one).id == who("192.0.2.2", "b", &one).id);
    assert_true(who("192.0.2.1", "a", &one).id != who("192.0.2.1", "a", &two).id);
    assert_int_equal(who("192.0.2.1", "a", &one).share, 3);
}

static void without_keys_an_address_is_and_no_word_makes_it_two(void **state)
{
    (void)state;
    assert_true(who("192.0.2.1", NULL, NULL).id != who("192.0.2.2", NULL, NULL).id);
    assert_true(who("192.0.2.1", "made", NULL).id == who("192.0.2.1", "up", NULL).id);
    assert_true(who("192.0.2.1", "made", NULL).id == who("192.0.2.1", NULL, NULL).id);
    assert_true(who("192.0.2.1", "made", NULL).id != who("192.0.2.2", "made", NULL).id);
    assert_int_equal(who("192.0.2.1", NULL, NULL).share, 1);
}

static mt_request marked(mt_account *account, size_t accounts, bool isolate, int64_t priority)
{
    mt_server server = {.keys = {.account_count = accounts}, .isolate = isolate};
    const mt_call call = {.server = &server, .account = account, .client = {.id = 7}, .received = 8};
    const mt_ask ask = {.priority = priority, .cache_salt = "x"};
    mt_request r = {.arena = mt_arena_new(0)};

    mt_client_mark(&call, &ask, &r);
    assert_true(r.client.id == 7 && r.received == 8);
    if (isolate && account)
        assert_null(r.salt_name); /* an account's own words do not say what is cached for it */
    else
        assert_string_equal(r.salt_name, "x");
    mt_arena_free(r.arena);
    return r;
}

static void among_several_accounts_none_goes_ahead_of_its_place(void **state)
{
    mt_account late = {.priority = 5};

    (void)state;
    assert_int_equal(marked(NULL, 0, false, -3).priority, -3);
    assert_int_equal(marked(&late, 1, false, -3).priority, 2); /* only its own are there to go ahead of */
    assert_int_equal(marked(&late, 2, false, -3).priority, 5);
    assert_int_equal(marked(&late, 2, false, 3).priority, 8);
    assert_int_equal(marked(&late, 2, false, INT32_MAX).priority, INT32_MAX);
}

static void accounts_that_are_isolated_share_nothing_that_is_cached(void **state)
{
    mt_account one = {.owner = {1}}, two = {.owner = {2}};
    const mt_request a = marked(&one, 2, true, 0), b = marked(&two, 2, true, 0), c = marked(&one, 2, true, 0);
    const mt_request d = marked(&one, 2, false, 0), e = marked(&two, 2, false, 0);

    (void)state;
    assert_memory_not_equal(a.salt, b.salt, sizeof(a.salt));
    assert_memory_equal(a.salt, c.salt, sizeof(a.salt));
    assert_memory_equal(d.salt, e.salt, sizeof(a.salt));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_account_is_a_client_wherever_it_comes_from),
    cmocka_unit_test(among_several_accounts_none_goes_ahead_of_its_place),
    cmocka_unit_test(accounts_that_are_isolated_share_nothing_that_is_cached),
    cmocka_unit_test(without_keys_an_address_is_and_no_word_makes_it_two),
};
UNIT_MAIN(tests)
