#include "unit.h"

#include "base/buf.h"

static void appends_add_up(void **state)
{
    mt_buf buf;

    (void)state;
    mt_buf_init(&buf, 1000);
    assert_true(mt_buf_puts(&buf, "one"));
    assert_true(mt_buf_add(&buf, " two\0!", 6));
    assert_true(mt_buf_printf(&buf, " %s %d", "three", 4));
    assert_true(mt_buf_add(&buf, NULL, 0));
    assert_int_equal(buf.len, 17);
    assert_memory_equal(buf.data, "one two\0! three 4", 18);
    mt_buf_free(&buf);
    assert_null(buf.data);
    assert_int_equal(buf.limit, 1000);
}

static void the_limit_is_exact_and_sticky(void **state)
{
    mt_buf buf;

    (void)state;
    mt_buf_init(&buf, 5);
    assert_true(mt_buf_puts(&buf, "abc"));
    assert_false(mt_buf_puts(&buf, "def"));
    assert_true(buf.full);
    assert_false(mt_buf_puts(&buf, "d"));
    assert_string_equal(buf.data, "abc");
    mt_buf_free(&buf);
    assert_true(mt_buf_printf(&buf, "%d", 12345));
    assert_false(buf.full);
    assert_false(mt_buf_printf(&buf, "%d", 6));
    assert_string_equal(buf.data, "12345");
    mt_buf_free(&buf);
}

static void every_size_around_growth(void **state)
{
    char text[300];

    (void)state;
    memset(text, 'y', sizeof(text));
    for (size_t first = 0; first < 140; first++)
        for (size_t second = 0; second < 140; second += 7) {
            mt_buf buf;

            mt_buf_init(&buf, 200);
            assert_true(mt_buf_add(&buf, text, first));
            assert_int_equal(mt_buf_add(&buf, text, second), first + second <= 200);
            assert_int_equal(strlen(buf.data), buf.len);
            mt_buf_free(&buf);
        }
}

static void json_strings(void **state)
{
    static const struct {
        const char *in;
        size_t len;
        const char *out;
    } rows[] = {
        {"", 0, "\"\""},
        {"plain", 5, "\"plain\""},
        {"a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\\u007f\""},
        {"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb5", 12, "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb5\""},
        {"a\xffz", 3, "\"a\xef\xbf\xbdz\""},
        {"\xc3", 1, "\"\xef\xbf\xbd\""},
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    mt_buf buf;

    (void)state;
    mt_buf_init(&buf, 1000);
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        assert_true(mt_buf_json_string(&buf, rows[i].in, rows[i].len));
        assert_string_equal(buf.data, rows[i].out);
        mt_buf_free(&buf);
    }
}

static void json_strings_are_whole_or_absent(void **state)
{
    static const char text[] = "ab\ncd\x01\xff";

    (void)state;
    for (size_t limit = 0; limit < 30; limit++) {
        mt_buf buf;
        bool fits;

        mt_buf_init(&buf, limit);
        mt_buf_puts(&buf, "x");
        fits = mt_buf_json_string(&buf, text, sizeof(text) - 1);
        assert_int_equal(fits, limit >= 18);
        assert_int_equal(buf.len, fits ? 18 : limit > 0);
        assert_int_equal(buf.full, !fits);
        mt_buf_free(&buf);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(appends_add_up),
    cmocka_unit_test(the_limit_is_exact_and_sticky),
    cmocka_unit_test(every_size_around_growth),
    cmocka_unit_test(json_strings),
    cmocka_unit_test(json_strings_are_whole_or_absent),
};
UNIT_MAIN(tests)
