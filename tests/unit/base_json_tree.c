#include "unit.h"

#include <math.h>

#include "base/json_tree.h"

/* What a text comes to when it is read and written, or why it is no JSON; lives until the next call. */
static const char *again(const char *text, size_t len)
{
    static mt_buf out;
    mt_error err = {0};
    char *copy = malloc(len + !len); /* without a NUL behind it, so that the sanitizer sees any step too far */
    json_t *json;

    memcpy(copy, text, len);
    mt_buf_free(&out);
    mt_buf_init(&out, 1 << 20);
    json = mt_json_tree_read(copy, len, &err);
    free(copy);
    if (json)
        assert_true(mt_json_tree_write(&out, json));
    else
        mt_buf_puts(&out, err.text);
    json_decref(json);
    return out.data;
}

static void expect(const char *text, const char *wanted)
{
    assert_string_equal(again(text, strlen(text)), wanted);
}

static void values_come_back(void **state)
{
    static const char *const same[] = {
        "null",
        "true",
        "false",
        "0",
        "-1",
        "\"\"",
        "[]",
        "{}",
        "9223372036854775807",
        "-9223372036854775808",
        "[[],{},[1,[2]]]",
        "{\"b\":1,\"a\":{\"c\":[null,\"x\"]},\"\":true}",
        "\"a\\u0000b\"",
        "\"\\\"\\\\\"",
        "0.1",
        "1.0",
        "-2.5",
        "1e-07",
        "1e+16",
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(same); i++)
        expect(same[i], same[i]);
    expect(" { \"a\" : [ 1 , 1.10 , 1E2 ] } ", "{\"a\":[1,1.1,100.0]}");
    expect("{\"a\":1,\"b\":2,\"a\":[3]}", "{\"a\":[3],\"b\":2}");
    expect("-0", "0");
}

static void wide_numbers_are_kept_as_they_are_written(void **state)
{
    static const char *const same[] = {
        "9223372036854775808",
        "-9223372036854775809",
        "[18446744073709551615,{\"a\":123456789012345678901234567890}]",
        "1e999",
        "-1E+999",
        "-123e4567890",
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(same); i++)
        expect(same[i], same[i]);
}

static json_t *parsed(const char *text)
{
    json_t *json = mt_json_tree_try(text, strlen(text));

    assert_non_null(json);
    return json;
}

/* Code that knows nothing of them finds them beyond every bound. */
static void wide_numbers_are_beyond_every_bound(void **state)
{
    json_t *list = parsed("[9223372036854775808, -9223372036854775809, 1e999, 1e308, 5]"), *shared;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const json_t *number = json_array_get(list, i);

        assert_true(json_is_number(number) && !json_is_integer(number));
        assert_true(isinf(json_number_value(number)));
        assert_int_equal(json_number_value(number) < 0, i == 1);
    }
    assert_string_equal(mt_json_wide(json_array_get(list, 0)), "9223372036854775808");
    assert_true(mt_json_wide_is_int(mt_json_wide(json_array_get(list, 1))));
    assert_false(mt_json_wide_is_int(mt_json_wide(json_array_get(list, 2))));
    assert_null(mt_json_wide(json_array_get(list, 3)));
    assert_null(mt_json_wide(json_array_get(list, 4)));
    assert_null(mt_json_wide(NULL));
    shared = json_incref(json_array_get(list, 0));
    json_decref(list);
    assert_string_equal(mt_json_wide(shared), "9223372036854775808"); /* lives on as any other value does */
    json_decref(shared);
}

static void faults_leave_nothing_behind(void **state)
{
    (void)state;
    expect("{\"a\":[1,{\"b\":", "invalid JSON at byte 13: expected a value, found the end");
    expect("[[[\"x\"],", "invalid JSON at byte 8: expected a value, found the end");
    expect("{} []", "invalid JSON at byte 3: expected nothing after the document, found '['");
    expect("{\"a\\u0000\":1}", "a name in the JSON holds the character U+0000; choose another name");
    assert_null(mt_json_tree_try("", 0));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_come_back),
    cmocka_unit_test(wide_numbers_are_kept_as_they_are_written),
    cmocka_unit_test(wide_numbers_are_beyond_every_bound),
    cmocka_unit_test(faults_leave_nothing_behind),
};
UNIT_MAIN(tests)
