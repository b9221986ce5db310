#include "weights_files.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "weights/config.h"
#include "weights/limits.h"

static mt_config *parse(const char *text)
{
    mt_error err = {0};
    mt_config *c = mt_config_parse(text, strlen(text), &err);

    assert_string_equal(err.text, "");
    assert_non_null(c);
    return c;
}

static void expect_refusal(const char *text, const char *sentence)
{
    mt_error err = {0};

    assert_null(mt_config_parse(text, strlen(text), &err));
    expect_sentence(&err, MT_E_INVALID, sentence);
}

static void objects_are_found(void **state)
{
    mt_config *c = parse("{\"z\":{\"y\":{\"x\":5}},\"a\":{},\"n\":null,\"i\":1,\"m\":{\"k\":\"s\"}}");
    const mt_config *y = mt_config_object(mt_config_object(c, "z"), "y");
    int64_t x = 0;

    (void)state;
    assert_true(mt_config_int(y, "x", 0, 0, 9, &x, NULL));
    assert_int_equal(x, 5);
    assert_non_null(mt_config_object(c, "a"));
    assert_null(mt_config_object(c, "n"));
    assert_null(mt_config_object(c, "i"));
    assert_null(mt_config_object(c, "none"));
    assert_true(mt_config_has(c, "i"));
    assert_false(mt_config_has(c, "n"));
    assert_false(mt_config_has(c, "none"));
    assert_string_equal(mt_config_string(mt_config_object(c, "m"), "k", ""), "s");
    mt_config_free(c);
    mt_config_free(NULL);
}

static void plain_values_have_fallbacks(void **state)
{
    mt_config *c = parse("{\"s\":\"text\",\"b\":true,\"f\":false,\"n\":null,\"i\":3}");

    (void)state;
    assert_string_equal(mt_config_string(c, "s", "x"), "text");
    assert_string_equal(mt_config_string(c, "i", "x"), "x");
    assert_string_equal(mt_config_string(c, "n", "x"), "x");
    assert_null(mt_config_string(c, "none", NULL));
    assert_true(mt_config_bool(c, "b", false));
    assert_false(mt_config_bool(c, "f", true));
    assert_true(mt_config_bool(c, "i", true));
    assert_true(mt_config_bool(c, "none", true));
    mt_config_free(c);
}

static void numbers_are_checked(void **state)
{
    mt_config *c = parse("{\"i\":42,\"whole\":4096.0,\"half\":0.5,\"s\":\"7\",\"b\":true,\"neg\":-1,\"n\":null,"
                         "\"huge\":1000000000000000019884624838656,\"o\":{\"d\":{\"i\":99}},\"a\":[1]}");
    const mt_config *d = mt_config_object(mt_config_object(c, "o"), "d");
    int64_t i = 0;
    double f = 0;
    mt_error err = {0};

    (void)state;
    assert_true(mt_config_int(c, "i", 0, 0, 100, &i, &err));
    assert_int_equal(i, 42);
    assert_true(mt_config_int(c, "whole", 0, 0, 5000, &i, &err));
    assert_int_equal(i, 4096);
    assert_true(mt_config_int(c, "none", -7, -9, 100, &i, &err));
    assert_int_equal(i, -7);
    assert_true(mt_config_int(c, "n", 5, 0, 100, &i, &err));
    assert_int_equal(i, 5);
    assert_true(mt_config_float(c, "half", 0, 0, 1, &f, &err));
    assert_true(f == 0.5);
    assert_true(mt_config_float(c, "i", 0, 0, 100, &f, &err));
    assert_true(f == 42);
    assert_true(mt_config_float(c, "huge", 0, 0, 1e40, &f, &err));

    assert_false(mt_config_int(c, "none", -1, 0, 100, &i, &err));
    expect_sentence(&err, MT_E_INVALID, "the config has no \"none\"; it must be an integer from 0 to 100");
    assert_false(mt_config_int(c, "i", 0, 0, 41, &i, &err));
    expect_sentence(&err, MT_E_INVALID, "the config's \"i\" is 42; it must be an integer from 0 to 41");
    assert_false(mt_config_int(d, "i", 0, 0, 41, &i, &err));
    expect_sentence(&err, MT_E_INVALID, "the config's \"o.d.i\" is 99; it must be an integer from 0 to 41");
    assert_false(mt_config_int(c, "half", 0, 0, 9, &i, &err));
    expect_sentence(&err, MT_E_INVALID, "the config's \"half\" is 0.5; it must be an integer from 0 to 9");
    assert_false(mt_config_int(c, "s", 0, 0, 9, &i, &err));
    expect_sentence(&err, MT_E_INVALID, "the config's \"s\" is \"7\"; it must be an integer from 0 to 9");
    assert_false(mt_config_int(c, "b", 0, 0, 9, &i, &err));
    expect_sentence(&err, MT_E_INVALID, "the config's \"b\" is true; it must be an integer from 0 to 9");
    assert_false(mt_config_int(c, "a", 0, 0, 9, &i, &err));
    expect_sentence(&err, MT_E_INVALID, "the config's \"a\" is an array; it must be an integer from 0 to 9");
    assert_false(mt_config_int(c, "huge", 0, 0, INT64_MAX, &i, &err));
    assert_false(mt_config_float(c, "neg", 0, 0, 1.5, &f, &err));
    expect_sentence(&err, MT_E_INVALID, "the config's \"neg\" is -1; it must be a number from 0 to 1.5");
    mt_config_free(c);
}

static void arrays_are_read(void **state)
{
    mt_config *c = parse("{\"a\":[1,2.5,\"x\",null,{\"y\":1}],\"e\":[],\"n\":5}");

    (void)state;
    assert_int_equal(mt_config_array(c, "a"), 5);
    assert_int_equal(mt_config_array(c, "e"), 0);
    assert_int_equal(mt_config_array(c, "n"), 0);
    assert_int_equal(mt_config_array(c, "none"), 0);
    assert_int_equal(mt_config_array_int(c, "a", 0, -1), 1);
    assert_int_equal(mt_config_array_int(c, "a", 1, -1), -1);
    assert_int_equal(mt_config_array_int(c, "a", 9, -1), -1);
    assert_true(mt_config_array_float(c, "a", 1, -1) == 2.5);
    assert_true(mt_config_array_float(c, "a", 2, -1) == -1);
    assert_string_equal(mt_config_array_string(c, "a", 2), "x");
    assert_null(mt_config_array_string(c, "a", 0));
    assert_null(mt_config_array_string(c, "a", 9));
    mt_config_free(c);
}

/* Python writes it as a bound that there is not. */
static void infinity_is_larger_than_any_setting(void **state)
{
    static const char text[] = "{\"a\": [0.0, Infinity, -Infinity], \"b\": \"\\\"Infinity\"}";
    mt_error err;

    (void)state;
    mt_config *c = mt_config_parse(text, sizeof(text) - 1, &err);
    assert_non_null(c);
    assert_true(mt_config_array_float(c, "a", 1, 0) > 1e300);
    assert_true(mt_config_array_float(c, "a", 2, 0) < -1e300);
    assert_string_equal(mt_config_string(c, "b", ""), "\"Infinity");
    mt_config_free(c);
}

static void bad_text_is_refused(void **state)
{
    mt_buf deep;

    (void)state;
    expect_refusal("", "line 1 is not valid JSON: '[' or '{' expected near end of file");
    expect_refusal("[1]", "the text is JSON but no object");
    expect_refusal("{\"a\":\n\n NaN}", "line 3 holds NaN, which JSON does not have; write null or a number there");
    expect_refusal("{\"a\": [0.0,\n Infinity], \"b\": NaN}",
                   "line 2 holds NaN, which JSON does not have; write null or a number there");
    mt_buf_init(&deep, 10000);
    for (int i = 0; i < MT_LIMIT_JSON_DEPTH; i++)
        mt_buf_puts(&deep, i % 2 ? "[" : "{\"a\":");
    mt_buf_puts(&deep, "{}");
    for (int i = MT_LIMIT_JSON_DEPTH; i-- > 0;)
        mt_buf_puts(&deep, i % 2 ? "]" : "}");
    expect_refusal(deep.data, "more than 512 objects or arrays inside one another");
    mt_buf_free(&deep);
}

static void large_text_is_refused(void **state)
{
    size_t len = MT_LIMIT_CONFIG_BYTES + 1;
    char *text = mt_alloc(len + 1);
    mt_error err = {0};

    (void)state;
    memset(text, ' ', len);
    memcpy(text, "{}", 2);
    assert_null(mt_config_parse(text, len, &err));
    expect_sentence(&err, MT_E_TOO_LARGE, "the text has 4194305 bytes; at most 4194304 are read");
    mt_config_free(mt_config_parse(text, len - 1, &err));
    mt_free(text);
}

static void a_file_is_named(void **state)
{
    char path[64];
    mt_error err = {0};
    mt_config *c;

    (void)state;
    snprintf(path, sizeof(path), "%s/config.json", folder);
    assert_null(mt_config_read(path, &err));
    expect_sentence(&err, MT_E_NOT_FOUND, "\"%s/config.json\" does not exist: check the path");
    put_text("config.json", "{\"a\":,}");
    assert_null(mt_config_read(path, &err));
    expect_sentence(&err, MT_E_INVALID, "\"%s/config.json\": line 1 is not valid JSON: unexpected token near ','");
    put_text("config.json", "");
    assert_null(mt_config_read(path, &err));
    put_text("config.json", "{\"a\":1}");
    c = mt_config_read(path, &err);
    assert_true(mt_config_has(c, "a"));
    mt_config_free(c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(objects_are_found),
    cmocka_unit_test(plain_values_have_fallbacks),
    cmocka_unit_test(numbers_are_checked),
    cmocka_unit_test(arrays_are_read),
    cmocka_unit_test(infinity_is_larger_than_any_setting),
    cmocka_unit_test(bad_text_is_refused),
    cmocka_unit_test(large_text_is_refused),
    IN_FOLDER(a_file_is_named),
};
UNIT_MAIN(tests)
