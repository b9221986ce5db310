#include "unit.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "text/limits.h"
#include "text/stop.h"

static mt_stop *make(const char *const *strings, size_t count)
{
    mt_stop_string list[MT_LIMIT_STOP_STRINGS];
    mt_error err;
    mt_stop *stop;

    for (size_t i = 0; i < count; i++)
        list[i] = (mt_stop_string){strings[i], strlen(strings[i])};
    stop = mt_stop_new(list, count, &err);
    assert_non_null(stop);
    return stop;
}

/* Feeds text in parts of `step` bytes; returns what mt_stop_feed said last. */
static int feed(const mt_stop *stop, const char *text, size_t step, mt_buf *out)
{
    mt_stop_state state = {0};
    size_t len = strlen(text);

    for (size_t at = 0; at < len; at += step) {
        int match = mt_stop_feed(stop, &state, text + at, step < len - at ? step : len - at, out);

        if (match >= 0)
            return match;
    }
    mt_stop_finish(stop, &state, out);
    return -1;
}

static void strings_are_found_across_parts(void **state)
{
    static const char *const stops[] = {"</s>", "\n\nUser:", "###"};
    static const struct {
        const char *text, *out;
        int match;
    } rows[] = {
        {"hello", "hello", -1},   {"hello</s>more", "hello", 0},        {"</s>", "", 0},
        {"a\n\nUser: b", "a", 1}, {"a\n\nUse\n\nUser:", "a\n\nUse", 1}, {"#1 ##2 ###3", "#1 ##2 ", 2},
        {"####", "", 2},          {"< / </ </s", "< / </ </s", -1},     {"", "", -1},
    };
    mt_stop *stop = make(stops, MT_COUNT(stops));

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        for (size_t step = 1; step < 12; step++) {
            mt_buf out;

            mt_buf_init(&out, 1000);
            assert_int_equal(feed(stop, rows[i].text, step, &out), rows[i].match);
            assert_string_equal(out.len ? out.data : "", rows[i].out);
            mt_buf_free(&out);
        }
    }
    mt_stop_free(stop);
}

/* As much as possible comes out at once: only what is a start of a stop string is held back. */
static void nothing_else_is_held_back(void **state)
{
    static const char *const stops[] = {"abcabd", "bx"};
    static const struct {
        char c;
        const char *out;
    } rows[] = {{'z', "z"}, {'a', ""},    {'b', ""},     {'c', ""}, {'a', ""},
                {'b', ""},  {'c', "abc"}, {'q', "abcq"}, {'b', ""}, {'b', "b"}};
    mt_stop *stop = make(stops, MT_COUNT(stops));
    mt_stop_state s = {0};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_buf out;

        mt_buf_init(&out, 100);
        assert_int_equal(mt_stop_feed(stop, &s, &rows[i].c, 1, &out), -1);
        assert_string_equal(out.len ? out.data : "", rows[i].out);
        mt_buf_free(&out);
    }
    mt_stop_free(stop);
}

/* The first to end wins, then the longest; whatever the parts, and after going back. */
static void random_texts_agree_with_a_search(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 3000; round++) {
        char strings[4][6] = {{0}}, text[40] = "";
        const char *list[4];
        size_t count = 1 + (size_t)rand() % 4, len = (size_t)rand() % 39, best_end = SIZE_MAX, best_begin = 0;
        mt_stop_state s = {0}, kept;
        mt_stop *stop;
        int match = -1;
        mt_buf out;

        for (size_t i = 0; i < count; i++) {
            for (size_t k = (size_t)rand() % 5 + 1; k-- > 0;)
                strings[i][k] = (char)('a' + rand() % 2);
            list[i] = strings[i];
        }
        for (size_t i = 0; i < len; i++)
            text[i] = (char)('a' + rand() % 3 % 2 + (rand() % 9 == 0));
        for (size_t end = 1; end <= len && best_end == SIZE_MAX; end++)
            for (size_t begin = 0; begin < end && best_end == SIZE_MAX; begin++)
                for (size_t i = 0; i < count; i++)
                    if (strlen(strings[i]) == end - begin && memcmp(strings[i], text + begin, end - begin) == 0) {
                        best_end = end;
                        best_begin = begin;
                    }
        stop = make(list, count);
        mt_buf_init(&out, 100);
        for (size_t at = 0, step; at < len && match < 0; at += step) {
            mt_buf other;

            step = 1 + (size_t)rand() % (len - at);
            mt_buf_init(&other, 100);
            kept = s;
            if (mt_stop_feed(stop, &s, "abab", (size_t)rand() % 5, &other) >= 0)
                (void)0;
            s = kept;
            mt_buf_free(&other);
            match = mt_stop_feed(stop, &s, text + at, step, &out);
        }
        if (match < 0)
            mt_stop_finish(stop, &s, &out);
        assert_int_equal(match >= 0, best_end != SIZE_MAX);
        assert_int_equal(out.len, match >= 0 ? best_begin : len);
        assert_int_equal(out.len == 0 || memcmp(out.data, text, out.len) == 0, 1);
        mt_buf_free(&out);
        mt_stop_free(stop);
    }
}

static void limits_are_sentences(void **state)
{
    static const char a[] = "a";
    mt_stop_string many[MT_LIMIT_STOP_STRINGS + 1], one;
    char *text = mt_alloc(MT_LIMIT_STOP_BYTES + 2);
    mt_stop *stop;
    mt_error err;
    mt_buf out;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(many); i++)
        many[i] = (mt_stop_string){a, 1};
    assert_null(mt_stop_new(many, MT_COUNT(many), &err));
    assert_string_equal(err.text, "there are 33 stop strings; use at most 32");
    memset(text, 'a', MT_LIMIT_STOP_BYTES + 1);
    one = (mt_stop_string){text, MT_LIMIT_STOP_BYTES + 1};
    assert_null(mt_stop_new(&one, 1, &err));
    assert_string_equal(err.text, "a stop string has 1025 bytes; use at most 1024");
    one.len--;
    stop = mt_stop_new(&one, 1, &err);
    mt_buf_init(&out, 10000);
    assert_int_equal(feed(stop, text, 7, &out), 0);
    assert_int_equal(out.len, 0);
    mt_stop_free(stop);
    stop = mt_stop_new(NULL, 0, &err);
    assert_int_equal(feed(stop, "abc", 1, &out), -1);
    assert_string_equal(out.data, "abc");
    mt_stop_free(stop);
    mt_buf_free(&out);
    mt_free(text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(strings_are_found_across_parts),
    cmocka_unit_test(nothing_else_is_held_back),
    cmocka_unit_test(random_texts_agree_with_a_search),
    cmocka_unit_test(limits_are_sentences),
};
UNIT_MAIN(tests)
