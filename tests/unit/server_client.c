#include "unit.h"

#include "server/client.h"

static mt_client who(const char *address, const char *key, bool needed)
{
    char *accepted[] = {(char *)(uintptr_t)key};
    const mt_http_header header = {"x-api-key", key};
    const mt_http_request request = {.client = address, .headers = &header, .header_count = key ? 1 : 0};
    const mt_keys keys = {.at = accepted, .count = needed};

    return mt_client_of(&keys, &request);
}

static void a_key_is_a_client_wherever_it_comes_from(void **state)
{
    (void)state;
    assert_true(who("192.0.2.1", "one", true).id == who("192.0.2.2", "one", true).id);
    assert_true(who("192.0.2.1", "one", true).id != who("192.0.2.1", "two", true).id);
}

static void without_keys_an_address_is_and_no_word_makes_it_two(void **state)
{
    (void)state;
    assert_true(who("192.0.2.1", NULL, false).id != who("192.0.2.2", NULL, false).id);
    assert_true(who("192.0.2.1", "made", false).id == who("192.0.2.1", "up", false).id);
    assert_true(who("192.0.2.1", "made", false).id == who("192.0.2.1", NULL, false).id);
    assert_true(who("192.0.2.1", "made", false).id != who("192.0.2.2", "made", false).id);
    assert_int_equal(who("192.0.2.1", NULL, false).share, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_key_is_a_client_wherever_it_comes_from),
    cmocka_unit_test(without_keys_an_address_is_and_no_word_makes_it_two),
};
UNIT_MAIN(tests)
