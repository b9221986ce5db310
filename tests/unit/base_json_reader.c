#include "unit.h"

#include <math.h>

#include "base/buf.h"
#include "base/json_reader.h"
#include "base/limits.h"

/* Writes the events of a document in a short form ("{k:'a' #1 }"), or the error's sentence. */
static void trace(mt_buf *out, const char *data, size_t size)
{
    static const char *const marks[] = {
        [MT_JSON_OBJECT_BEGIN] = "{", [MT_JSON_OBJECT_END] = "}", [MT_JSON_ARRAY_BEGIN] = "[",
        [MT_JSON_ARRAY_END] = "]",    [MT_JSON_TRUE] = "T",       [MT_JSON_FALSE] = "F",
        [MT_JSON_NULL] = "N",
    };
    mt_json_reader r;
    mt_json_event event;

    mt_buf_free(out);
    mt_json_reader_init(&r, data, size);
    while ((event = mt_json_next(&r)) != MT_JSON_END && event != MT_JSON_ERROR) {
        if (event == MT_JSON_KEY || event == MT_JSON_STRING) {
            mt_buf_json_string(out, r.str, r.len);
            mt_buf_puts(out, event == MT_JSON_KEY ? ":" : "");
        } else if (event == MT_JSON_NUMBER && r.is_int)
            mt_buf_printf(out, "#%lld", (long long)r.integer);
        else if (event == MT_JSON_NUMBER)
            mt_buf_printf(out, "~%.17g", r.num);
        else
            mt_buf_puts(out, marks[event]);
        mt_buf_puts(out, " ");
    }
    assert_int_equal(mt_json_next(&r), event); /* both ends repeat */
    if (event == MT_JSON_ERROR) {
        mt_buf_free(out);
        mt_buf_puts(out, r.error.text);
        assert_int_equal(r.error.code, MT_E_INVALID);
    }
    mt_json_reader_free(&r);
}

/* Traces a copy without a NUL behind it, so that the sanitizer sees any step too far. */
static void expect(mt_buf *out, const char *data, size_t size, const char *wanted)
{
    char *copy = malloc(size + !size);

    memcpy(copy, data, size);
    trace(out, copy, size);
    free(copy);
    assert_string_equal(out->data ? out->data : "", wanted);
}

typedef struct row {
    const char *document, *wanted;
} row;

static void expect_all(const row *rows, size_t count)
{
    mt_buf out;

    mt_buf_init(&out, 1 << 20);
    for (size_t i = 0; i < count; i++)
        expect(&out, rows[i].document, strlen(rows[i].document), rows[i].wanted);
    mt_buf_free(&out);
}

static void valid_documents(void **state)
{
    static const row rows[] = {
        {"{}", "{ } "},
        {"[]", "[ ] "},
        {" \t\r\n[ ] \n", "[ ] "},
        {"true", "T "},
        {"[true,false,null]", "[ T F N ] "},
        {"{\"a\":1,\"b\":[2,{\"c\":\"d\"}]}", "{ \"a\": #1 \"b\": [ #2 { \"c\": \"d\" } ] } "},
        {"{ \"a\" : { } , \"a\" : [ ] }", "{ \"a\": { } \"a\": [ ] } "},
        {"\"\"", "\"\" "},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\" "},
        {"\"\\u0041\\u00e9\\u20AC\\ud83c\\udfb5\"", "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\xb5\" "},
        {"\"\\uDBFF\\uDFFF\\uD7FF\\uE000\"", "\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80\" "},
        {"\"\\u0000\"", "\"\\u0000\" "},
        {"\"\xc3\xa9\x7f\"", "\"\xc3\xa9\\u007f\" "},
        {"{\"\\u006b\":0}", "{ \"k\": #0 } "},
        {"\xef\xbb\xbf{\"\xef\xbb\xbf\":\"\\ufeff\"}", "{ \"\xef\xbb\xbf\": \"\xef\xbb\xbf\" } "},
    };

    (void)state;
    expect_all(rows, MT_COUNT(rows));
}

static void numbers(void **state)
{
    static const row rows[] = {
        {"0", "#0 "},
        {"-0", "#0 "},
        {"-12", "#-12 "},
        {"9223372036854775807", "#9223372036854775807 "},
        {"-9223372036854775808", "#-9223372036854775808 "},
        {"9223372036854775808", "~9.2233720368547758e+18 "},
        {"-9223372036854775809", "~-9.2233720368547758e+18 "},
        {"123456789012345678901234567890", "~1.2345678901234568e+29 "},
        {"1.0", "~1 "},
        {"1e2", "~100 "},
        {"1E+2", "~100 "},
        {"-2.5e-3", "~-0.0025000000000000001 "},
        {"1e-999", "~0 "},
        {"1e999", "~inf "},
        {"-1e999", "~-inf "},
        {"1.7976931348623157e308", "~1.7976931348623157e+308 "},
        {"[0,0]", "[ #0 #0 ] "},
    };

    (void)state;
    expect_all(rows, MT_COUNT(rows));
}

static void a_number_of_a_million_digits(void **state)
{
    size_t size = 1000000;
    char *text = malloc(size);
    mt_buf out;

    (void)state;
    mt_buf_init(&out, 1000);
    memset(text, '9', size);
    expect(&out, text, size, "~inf ");
    text[1] = '.';
    expect(&out, text, size, "~10 ");
    mt_buf_free(&out);
    free(text);
}

static void malformed_documents(void **state)
{
    static const row rows[] = {
        {"", "invalid JSON at byte 0: expected a value, found the end"},
        {"  ", "invalid JSON at byte 2: expected a value, found the end"},
        {"[1,]", "invalid JSON at byte 3: expected a value, found ']'"},
        {"[,1]", "invalid JSON at byte 1: expected a value, found ','"},
        {"[1 2]", "invalid JSON at byte 3: expected ',' or ']', found '2'"},
        {"[1}", "invalid JSON at byte 2: expected ',' or ']', found '}'"},
        {"{\"a\":1]", "invalid JSON at byte 6: expected ',' or '}', found ']'"},
        {"{\"a\":1,}", "invalid JSON at byte 7: expected a key in quotes, found '}'"},
        {"{a:1}", "invalid JSON at byte 1: expected a key in quotes, found 'a'"},
        {"{1:1}", "invalid JSON at byte 1: expected a key in quotes, found '1'"},
        {"{\"a\"}", "invalid JSON at byte 4: expected ':' after a key, found '}'"},
        {"{\"a\":}", "invalid JSON at byte 5: expected a value, found '}'"},
        {"{} x", "invalid JSON at byte 3: expected nothing after the document, found 'x'"},
        {"1 2", "invalid JSON at byte 2: expected nothing after the document, found '2'"},
        {"]", "invalid JSON at byte 0: expected a value, found ']'"},
        {"nul", "invalid JSON at byte 0: expected a value, found 'n'"},
        {"True", "invalid JSON at byte 0: expected a value, found 'T'"},
        {"NaN", "invalid JSON at byte 0: expected a value, found 'N'"},
        {"-Infinity", "invalid JSON at byte 1: expected a digit, found 'I'"},
        {"'a'", "invalid JSON at byte 0: expected a value, found '''"},
        {"// c\n1", "invalid JSON at byte 0: expected a value, found '/'"},
        {" \xef\xbb\xbf{}", "invalid JSON at byte 1: expected a value, found byte 0xEF"},
        {"\xef\xbb\xbf", "invalid JSON at byte 3: expected a value, found the end"},
        {"\xef\xbb\xbf\xef\xbb\xbf{}", "invalid JSON at byte 3: expected a value, found byte 0xEF"},
        {"01", "invalid JSON at byte 1: expected nothing after the document, found '1'"},
        {"+1", "invalid JSON at byte 0: expected a value, found '+'"},
        {".5", "invalid JSON at byte 0: expected a value, found '.'"},
        {"5.", "invalid JSON at byte 2: expected a digit, found the end"},
        {"1.e3", "invalid JSON at byte 2: expected a digit, found 'e'"},
        {"1e", "invalid JSON at byte 2: expected a digit, found the end"},
        {"1e+x", "invalid JSON at byte 3: expected a digit, found 'x'"},
        {"-", "invalid JSON at byte 1: expected a digit, found the end"},
        {"0x10", "invalid JSON at byte 1: expected nothing after the document, found 'x'"},
        {"\"abc", "invalid JSON at byte 4: the string that begins at byte 0 does not end"},
        {"\"abc\\", "invalid JSON at byte 5: the string that begins at byte 0 does not end"},
        {"\"abc\\\"", "invalid JSON at byte 6: the string that begins at byte 0 does not end"},
        {"\"a\nb\"", "invalid JSON at byte 2: byte 0x0A in a string must be escaped"},
        {"\"a\\xb\"", "invalid JSON at byte 2: unknown escape in a string"},
        {"\"\xff\"", "invalid JSON at byte 1: byte 0xFF is not UTF-8"},
        {"\"\xc3\"", "invalid JSON at byte 1: byte 0xC3 is not UTF-8"},
        {"\"\xed\xa0\x80\"", "invalid JSON at byte 1: byte 0xED is not UTF-8"},
    };

    (void)state;
    expect_all(rows, MT_COUNT(rows));
}

#define REPLACED "\xef\xbf\xbd"

static void half_a_surrogate_pair_is_replaced(void **state)
{
    static const row rows[] = {
        {"\"\\ud83c\"", "\"" REPLACED "\" "},
        {"\"\\ud83cx\"", "\"" REPLACED "x\" "},
        {"\"\\ud83c\\n\"", "\"" REPLACED "\\n\" "},
        {"\"\\ud83c\\u0041\"", "\"" REPLACED "A\" "},
        {"\"\\ud83c\\ud83c\\udfb5\"", "\"" REPLACED "\xf0\x9f\x8e\xb5\" "},
        {"\"\\udfb5\"", "\"" REPLACED "\" "},
        {"\"\\udc00\\ud800\"", "\"" REPLACED REPLACED "\" "},
    };

    (void)state;
    expect_all(rows, MT_COUNT(rows));
}

static void escapes_have_four_digits(void **state)
{
    static const row rows[] = {
        {"\"\\u12\"", "1"},   {"\"\\u12G4\"", "1"}, {"\"\\u\"", "1"},          {"\"\\u 123\"", "1"},
        {"\"\\u-123\"", "1"}, {"\"\\ud8\"", "1"},   {"\"\\ud83c\\udf\"", "7"}, {"\"\\ud83c\\u\"", "7"},
    };
    char wanted[100];
    mt_buf out;

    (void)state;
    mt_buf_init(&out, 1000);
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        snprintf(wanted, sizeof(wanted), "invalid JSON at byte %s: a \\u escape needs four hexadecimal digits",
                 rows[i].wanted);
        expect(&out, rows[i].document, strlen(rows[i].document), wanted);
    }
    mt_buf_free(&out);
}

static void nesting_ends_at_the_limit(void **state)
{
    char text[3 * MT_LIMIT_JSON_DEPTH + 3];
    mt_buf out;

    (void)state;
    mt_buf_init(&out, 10000);
    memset(text, '[', MT_LIMIT_JSON_DEPTH);
    memset(text + MT_LIMIT_JSON_DEPTH, ']', MT_LIMIT_JSON_DEPTH);
    trace(&out, text, 2 * MT_LIMIT_JSON_DEPTH);
    assert_int_equal(out.len, 4 * MT_LIMIT_JSON_DEPTH);
    memset(text, '[', sizeof(text));
    expect(&out, text, sizeof(text), "invalid JSON at byte 512: more than 512 containers inside one another");
    mt_buf_free(&out);
}

/* No beginning of an object is a document. */
static void truncation_at_every_byte_is_an_error(void **state)
{
    static const char text[] = " {\"k\\u0041\": [1.5e3, -2, \"x\\ud83c\\udfb5\xc3\xa9\", true, false, null, {}, []]}";
    mt_buf out;

    (void)state;
    mt_buf_init(&out, 1000);
    trace(&out, text, sizeof(text) - 1);
    assert_string_equal(out.data, "{ \"kA\": [ ~1500 #-2 \"x\xf0\x9f\x8e\xb5\xc3\xa9\" T F N { } [ ] ] } ");
    for (size_t size = 0; size < sizeof(text) - 1; size++) {
        char *copy = malloc(size + !size);

        memcpy(copy, text, size);
        trace(&out, copy, size);
        assert_memory_equal(out.data, "invalid JSON at byte ", 21);
        free(copy);
    }
    mt_buf_free(&out);
}

static void skipping(void **state)
{
    static const char text[] = "{\"a\":{\"x\":[1,[2,{}]]},\"b\":\"s\",\"c\":[],\"d\":7}";
    mt_json_reader r;

    (void)state;
    mt_json_reader_init(&r, text, sizeof(text) - 1);
    assert_int_equal(mt_json_next(&r), MT_JSON_OBJECT_BEGIN);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mt_json_next(&r), MT_JSON_KEY);
        assert_int_equal(r.str[0], 'a' + i);
        assert_true(mt_json_skip(&r));
    }
    assert_int_equal(mt_json_next(&r), MT_JSON_KEY);
    assert_int_equal(mt_json_next(&r), MT_JSON_NUMBER);
    assert_int_equal(r.integer, 7);
    assert_int_equal(mt_json_next(&r), MT_JSON_OBJECT_END);
    assert_int_equal(mt_json_next(&r), MT_JSON_END);
    assert_false(mt_json_skip(&r));
    mt_json_reader_free(&r);
}

static void skipping_finds_faults(void **state)
{
    static const row rows[] = {
        {"[{\"a\":[1,2}]", "invalid JSON at byte 10: expected ',' or ']', found '}'"},
        {"[]", "invalid JSON at byte 2: expected a value, found none"},
        {"[", "invalid JSON at byte 1: expected a value, found the end"},
        {"[[1", "invalid JSON at byte 3: expected ',' or ']', found the end"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_json_reader r;

        mt_json_reader_init(&r, rows[i].document, strlen(rows[i].document));
        assert_int_equal(mt_json_next(&r), MT_JSON_ARRAY_BEGIN);
        assert_false(mt_json_skip(&r));
        assert_string_equal(r.error.text, rows[i].wanted);
        assert_int_equal(mt_json_next(&r), MT_JSON_ERROR);
        mt_json_reader_free(&r);
    }
}

static void plain_strings_are_not_copied(void **state)
{
    static const char text[] = "\"in place\"";
    mt_json_reader r;

    (void)state;
    mt_json_reader_init(&r, text, sizeof(text) - 1);
    assert_int_equal(mt_json_next(&r), MT_JSON_STRING);
    assert_ptr_equal(r.str, text + 1);
    mt_json_reader_free(&r);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(valid_documents),
    cmocka_unit_test(numbers),
    cmocka_unit_test(a_number_of_a_million_digits),
    cmocka_unit_test(malformed_documents),
    cmocka_unit_test(half_a_surrogate_pair_is_replaced),
    cmocka_unit_test(escapes_have_four_digits),
    cmocka_unit_test(nesting_ends_at_the_limit),
    cmocka_unit_test(truncation_at_every_byte_is_an_error),
    cmocka_unit_test(skipping),
    cmocka_unit_test(skipping_finds_faults),
    cmocka_unit_test(plain_strings_are_not_copied),
};
UNIT_MAIN(tests)
