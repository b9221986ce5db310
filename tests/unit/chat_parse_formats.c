/* Every case of tests/chat/formats: what is told of a text, and that it is told the same however the text is cut. */
#include <glob.h>

#include "unit.h"

#include "../chat/record.h"

typedef struct settled {
    mt_parse_settings settings;
    const char *text;
    size_t len;
} settled;

static mt_parser *parser_of(const settled *s)
{
    mt_error err;
    mt_parser *parser = mt_parser_new(&s->settings, &err);

    if (!parser)
        fail_msg("%s", err.text);
    return parser;
}

/* The record of the text in pieces that end at cuts[0], cuts[1], ... and at its end. */
static record cut_at(const settled *s, const size_t *cuts, size_t count)
{
    mt_parser *parser = parser_of(s);
    size_t at = 0;
    record r;

    record_init(&r);
    for (size_t i = 0; i <= count; i++) {
        size_t to = i < count ? cuts[i] : s->len;

        mt_parser_feed(parser, s->text + at, to - at, record_event, &r);
        at = to;
    }
    mt_parser_finish(parser, record_event, &r);
    mt_parser_free(parser);
    return r;
}

static record byte_by_byte(const settled *s)
{
    mt_parser *parser = parser_of(s);
    record r;

    record_init(&r);
    for (size_t i = 0; i < s->len; i++)
        mt_parser_feed(parser, s->text + i, 1, record_event, &r);
    mt_parser_finish(parser, record_event, &r);
    mt_parser_free(parser);
    return r;
}

static const char *text_of(const record *r)
{
    return r->text.data ? r->text.data : "";
}

static void expect_same(record cut, const record *whole)
{
    if (cut.text.len != whole->text.len || memcmp(text_of(&cut), text_of(whole), cut.text.len) != 0)
        fail_msg("in pieces:%s\nas a whole:%s", text_of(&cut), text_of(whole));
    mt_buf_free(&cut.text);
}

/* What is told of a text's beginning is the beginning of what is told of all of it. */
static void check_prefix(const settled *s, size_t len, const record *whole)
{
    mt_parser *parser = parser_of(s);
    record r;

    record_init(&r);
    mt_parser_feed(parser, s->text, len, record_event, &r);
    if (r.text.len > whole->text.len || (r.text.len && memcmp(r.text.data, whole->text.data, r.text.len) != 0))
        fail_msg("of %zu bytes:%s\nof all:%s", len, text_of(&r), text_of(whole));
    mt_parser_finish(parser, record_event, &r); /* a text may end anywhere */
    assert_false(r.open);
    mt_parser_free(parser);
    mt_buf_free(&r.text);
}

static void check_random_cuts(const settled *s, const record *whole)
{
    uint32_t seed = 12345;

    for (int round = 0; round < 100; round++) {
        size_t cuts[64], count = 0, at = 0;

        while (count < 64) {
            seed = seed * 1664525u + 1013904223u;
            at += seed >> 20 & 15;
            if (at >= s->len)
                break;
            cuts[count++] = at;
        }
        expect_same(cut_at(s, cuts, count), whole);
    }
}

static void check_cuts(const settled *s, const record *whole)
{
    bool pairs = s->len <= 200 && !unit_quick();

    expect_same(byte_by_byte(s), whole);
    for (size_t i = 0; i <= s->len; i++) {
        size_t cuts[2] = {i, i};

        check_prefix(s, i, whole);
        expect_same(cut_at(s, cuts, 1), whole);
        for (cuts[1] = i + 1; pairs && cuts[1] < s->len; cuts[1]++)
            expect_same(cut_at(s, cuts, 2), whole);
    }
    check_random_cuts(s, whole);
}

/* The record that the events of a case make. */
static record record_of(const json_t *events)
{
    size_t i, calls = 0;
    json_t *event;
    record r;

    record_init(&r);
    json_array_foreach(events, i, event) {
        const char *call = json_string_value(json_object_get(event, "call"));
        const json_t *text = json_object_get(event, "content");
        mt_parse_kind kind = text ? MT_PARSE_CONTENT : MT_PARSE_REASONING;

        text = text ? text : json_object_get(event, "reasoning");
        if (!call) {
            record_event(
                &r, &(mt_parse_event){.kind = kind, .text = json_string_value(text), .len = json_string_length(text)});
            continue;
        }
        record_event(&r, &(mt_parse_event){.kind = MT_PARSE_CALL_BEGIN,
                                           .index = calls,
                                           .name = call,
                                           .id = json_string_value(json_object_get(event, "id"))});
        text = json_object_get(event, "arguments");
        if (json_string_length(text) > 0)
            record_event(&r, &(mt_parse_event){.kind = MT_PARSE_CALL_ARGUMENTS,
                                               .index = calls,
                                               .text = json_string_value(text),
                                               .len = json_string_length(text)});
        record_event(&r, &(mt_parse_event){.kind = MT_PARSE_CALL_END,
                                           .index = calls++,
                                           .complete = !json_is_true(json_object_get(event, "cut"))});
    }
    return r;
}

static mt_chat_opened_state opened_by(const json_t *test)
{
    const char *opened = json_string_value(json_object_get(test, "opened"));

    if (!opened)
        return MT_CHAT_OPENED_NOTHING;
    return strcmp(opened, "reasoning") == 0 ? MT_CHAT_OPENED_REASONING : MT_CHAT_OPENED_ANSWER;
}

/* False, and says why, when something else is told. */
static bool check_case(const char *path, const json_t *file, const json_t *test, const json_t *tools)
{
    const json_t *text = json_object_get(test, "text"), *named = json_object_get(test, "formats");
    const json_t *formats = named ? named : json_object_get(file, "formats");
    const settled s = {.settings = {.formats = {.tools = json_string_value(json_object_get(formats, "tools")),
                                                .reasoning = json_string_value(json_object_get(formats, "reasoning"))},
                                    .tools = json_is_false(json_object_get(test, "tools")) ? NULL : tools,
                                    .opened = opened_by(test)},
                       .text = json_string_value(text),
                       .len = json_string_length(text)};
    record expected = record_of(json_object_get(test, "events")), whole = cut_at(&s, NULL, 0);

    bool same = strcmp(text_of(&whole), text_of(&expected)) == 0;

    if (!same)
        print_error("%s: \"%s\"\nexpected:%s\ngot:%s\n", path, json_string_value(json_object_get(test, "name")),
                    text_of(&expected), text_of(&whole));
    check_cuts(&s, &whole);
    mt_buf_free(&expected.text);
    mt_buf_free(&whole.text);
    return same;
}

static json_t *load(const char *path)
{
    json_error_t why;
    json_t *json = json_load_file(path, 0, &why);

    if (!json)
        fail_msg("%s:%d: %s", path, why.line, why.text);
    return json;
}

static void texts_mean_what_their_cases_say_however_they_are_cut(void **state)
{
    json_t *tools = load("tests/chat/tools.json");
    glob_t files;
    size_t count = 0, failed = 0;

    (void)state;
    assert_int_equal(glob("tests/chat/formats/*.json", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        json_t *file = load(files.gl_pathv[i]), *test;
        size_t at;

        json_array_foreach(json_object_get(file, "cases"), at, test) {
            failed += !check_case(files.gl_pathv[i], file, test, tools);
            count++;
        }
        json_decref(file);
    }
    print_message("%zu cases in %zu files\n", count, files.gl_pathc);
    globfree(&files);
    json_decref(tools);
    assert_int_equal(failed, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(texts_mean_what_their_cases_say_however_they_are_cut),
};

UNIT_MAIN(tests)
