#include "unit.h"

#include "api/json_body.h"
#include "base/alloc.h"
#include "base/limits.h"

static void expect(const char *body, size_t len, int status)
{
    mt_failure why = {.status = 200};
    json_t *json = mt_json_body_parse(body, len, NULL, &why);

    assert_int_equal(json ? 200 : why.status, status);
    mt_json_body_free(json, len);
}

static void only_objects_are_bodies(void **state)
{
    (void)state;
    expect("{}", 2, 200);
    expect("{\"a\":\"\\u0000\"}", 14, 200);
    expect("\xef\xbb\xbf{\"a\":\"\xef\xbb\xbf\"}", 14, 200);
    expect("{\"a\":[9223372036854775808,-1e999]}", 34, 200);
    expect("{\"a\":\"\\ud800\"}", 14, 200);
    expect("{\"\\u0000\":1}", 12, 400);
    expect("[]", 2, 400);
    expect("", 0, 400);
    expect("{} x", 4, 400);
    expect("{\"a\":\"\xff\"}", 9, 400);
}

static void nesting_has_an_end(void **state)
{
    char body[4 * MT_LIMIT_JSON_DEPTH];

    (void)state;
    for (int depth = MT_LIMIT_JSON_DEPTH - 1; depth <= MT_LIMIT_JSON_DEPTH; depth++) {
        int len = snprintf(body, sizeof(body), "{\"a\":");

        for (int i = 0; i < depth; i++)
            body[len + i] = '[', body[len + 2 * depth - 1 - i] = ']';
        body[len + 2 * depth] = '}';
        expect(body, (size_t)(len + 2 * depth) + 1, depth < MT_LIMIT_JSON_DEPTH ? 200 : 400);
    }
    /* brackets in strings do not count */
    memset(body, '[', sizeof(body));
    memcpy(body, "{\"a\":\"\\\"", 8);
    memcpy(body + sizeof(body) - 2, "\"}", 2);
    expect(body, sizeof(body), 200);
}

static void many_small_values_are_too_large(void **state)
{
    const size_t len = 24u << 20;
    char *body = mt_alloc(len);

    (void)state;
    memset(body, ',', len);
    for (size_t i = 6; i < len; i += 2)
        body[i] = '1';
    memcpy(body, "{\"a\":[", 6);
    body[len - 2] = ']';
    body[len - 1] = '}';
    expect(body, len, 413);
    mt_free(body);
}

static void what_nobody_waits_for_is_not_parsed(void **state)
{
    atomic_bool stop = true;
    mt_failure why = {.status = 200};

    (void)state;
    assert_null(mt_json_body_parse("{\"a\":[1,2]}", 11, &stop, &why));
    assert_int_equal(why.status, 409);
    atomic_store(&stop, false);
    json_t *json = mt_json_body_parse("{\"a\":[1,2]}", 11, &stop, &why);
    assert_non_null(json);
    atomic_store(&stop, true); /* it counts while a body is parsed, and no longer */
    json_t *other = json_object();
    assert_non_null(other);
    json_decref(other);
    mt_json_body_free(json, 11);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_objects_are_bodies),
    cmocka_unit_test(nesting_has_an_end),
    cmocka_unit_test(many_small_values_are_too_large),
    cmocka_unit_test(what_nobody_waits_for_is_not_parsed),
};

int main(void)
{
    mt_json_body_setup();
    return unit_main(__FILE__, tests, MT_COUNT(tests));
}
