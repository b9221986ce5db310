/* What parsers hold back is bounded, names of formats are checked, and templates tell their formats. */
#include "unit.h"

#include "../chat/record.h"
#include "chat/limits.h"
#include "constraint/limits.h"

/* The record of text, which is fed `times` times between `before` and `after`. */
static record parse_repeated(const char *format, const char *before, const char *text, size_t times, const char *after)
{
    json_t *tools = json_loads("[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]", 0, NULL);
    const mt_parse_settings settings = {.formats.tools = format, .tools = tools};
    mt_error err;
    mt_parser *parser = mt_parser_new(&settings, &err);
    record r;

    assert_non_null(parser);
    record_init(&r);
    mt_parser_feed(parser, before, strlen(before), record_event, &r);
    for (size_t i = 0; i < times; i++)
        mt_parser_feed(parser, text, strlen(text), record_event, &r);
    mt_parser_feed(parser, after, strlen(after), record_event, &r);
    mt_parser_finish(parser, record_event, &r);
    mt_parser_free(parser);
    json_decref(tools);
    return r;
}

static bool begins(const record *r, const char *text)
{
    return strncmp(r->text.data, text, strlen(text)) == 0;
}

static bool ends(const record *r, const char *text)
{
    size_t len = strlen(text);

    return r->text.len >= len && strcmp(r->text.data + r->text.len - len, text) == 0;
}

static void calls_beyond_the_limit_are_dropped(void **state)
{
    record r = parse_repeated("hermes", "", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
                              MT_LIMIT_PARSE_CALLS + 5, "Done.");

    (void)state;
    assert_int_equal(r.calls, MT_LIMIT_PARSE_CALLS);
    assert_true(ends(&r, "end\ncontent: Done."));
    mt_buf_free(&r.text);
}

/* A word that is too long is cut; those behind it are whole. */
static void a_word_that_is_too_long_spoils_no_other(void **state)
{
    record r = parse_repeated("gemma4", "<|tool_call>call:f{a:", "x", MT_LIMIT_PARSE_HELD + 5, ",b:1}<tool_call|>");

    (void)state;
    assert_int_equal(r.calls, 1);
    assert_true(ends(&r, "xx\", \"b\": 1}\nend"));
    mt_buf_free(&r.text);
}

static void a_name_that_is_too_long_is_text(void **state)
{
    record r = parse_repeated("qwen3_xml", "<function=", "n", MT_LIMIT_PARSE_NAME + 5, "> x");

    (void)state;
    assert_int_equal(r.calls, 0);
    assert_true(begins(&r, "\ncontent: nnnn"));
    assert_int_equal(r.text.len, strlen("\ncontent: ") + MT_LIMIT_PARSE_NAME + 5 + strlen("> x"));
    mt_buf_free(&r.text);
}

static void a_value_that_is_too_long_to_be_held_is_a_string(void **state)
{
    record r = parse_repeated("glm4", "<tool_call>f\n<arg_key>x</arg_key><arg_value>[", "12345678,",
                              MT_LIMIT_PARSE_HELD / 8, "0]</arg_value></tool_call>");

    (void)state;
    assert_true(begins(&r, "\ncall: f id -\narguments: {\"x\": \"[12345678,1"));
    assert_true(ends(&r, ",0]\"}\nend"));
    mt_buf_free(&r.text);
}

static void arguments_that_wait_too_long_for_a_name_are_text(void **state)
{
    record r = parse_repeated("hermes", "<tool_call>{\"arguments\": [", "12345678,", MT_LIMIT_PARSE_HELD / 8,
                              "0], \"name\": \"f\"}</tool_call>");

    (void)state;
    assert_int_equal(r.calls, 0);
    assert_true(begins(&r, "\ncontent: {\"arguments\": [12345678,1"));
    assert_true(ends(&r, "0], \"name\": \"f\"}"));
    mt_buf_free(&r.text);
}

static void long_strings_are_told_as_they_come(void **state)
{
    record r = parse_repeated("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"", "abcdefgh",
                              MT_LIMIT_PARSE_HELD / 4, "\"}}</tool_call>");

    (void)state;
    assert_true(r.text.len > 2 * MT_LIMIT_PARSE_HELD);
    assert_true(ends(&r, "gh\"}\nend"));
    mt_buf_free(&r.text);
}

/* At its start an answer may hold back what looks like a marker; where it ends there, that was its text. */
static void an_answer_that_is_the_beginning_of_a_marker_is_text(void **state)
{
    static const char *const texts[][2] = {{"llama3", "<|python"}, {"llama3", "\n<func"}, {"xlam", "```js"}};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        record r = parse_repeated(texts[i][0], texts[i][1], "", 0, "");

        assert_true(ends(&r, texts[i][1] + (texts[i][1][0] == '\n')));
        mt_buf_free(&r.text);
    }
    record r;
    const mt_parse_settings settings = {.formats = {.reasoning = "think"}};
    mt_parser *parser = mt_parser_new(&settings, NULL);
    record_init(&r);
    mt_parser_feed(parser, "<thi", 4, record_event, &r);
    mt_parser_finish(parser, record_event, &r);
    assert_string_equal(r.text.data, "\ncontent: <thi");
    mt_parser_free(parser);
    mt_buf_free(&r.text);
}

static void nesting_has_no_depth_that_breaks_it(void **state)
{
    static const char *const texts[][4] = {
        {"gemma4", "<|tool_call>call:f{a:", "[", "<tool_call|>"},
        {"pythonic", "[f(a=", "[", ")]"},
        {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": ", "[", "</tool_call>"},
        {"hermes", "<tool_call>", "{\"function\": ", "</tool_call>"}};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        record r = parse_repeated(texts[i][0], texts[i][1], texts[i][2], 100000, texts[i][3]);

        assert_false(r.open);
        mt_buf_free(&r.text);
    }
}

static void an_event_ends_with_a_whole_character(void **state)
{
    const mt_parse_settings settings = {.formats = {.reasoning = "think"}};
    mt_parser *parser = mt_parser_new(&settings, NULL);
    record r;

    (void)state;
    record_init(&r);
    mt_parser_feed(parser, "a\xf0\x9f\x98", 4, record_event, &r);
    assert_string_equal(r.text.data, "\ncontent: a");
    mt_parser_feed(parser, "\x80", 1, record_event, &r);
    assert_string_equal(r.text.data, "\ncontent: a\xf0\x9f\x98\x80");
    mt_parser_free(parser);
    mt_buf_free(&r.text);
}

static void a_name_that_is_no_format_is_refused(void **state)
{
    mt_error err;

    (void)state;
    assert_null(mt_parser_new(&(mt_parse_settings){.formats.tools = "hermess"}, &err));
    assert_string_equal(err.text, "\"hermess\" is no format of tool calls; did you mean \"hermes\"?");
    assert_null(mt_parser_new(&(mt_parse_settings){.formats.reasoning = "xyzzy"}, &err));
    assert_string_equal(err.text, "\"xyzzy\" is no format of reasoning; docs/parsers.md lists those that are");
}

static void every_name_in_the_lists_is_a_format(void **state)
{
    (void)state;
    for (size_t i = 0; mt_parse_tool_name(i); i++)
        for (size_t j = 0; mt_parse_reasoning_name(j); j++) {
            mt_parser *parser = mt_parser_new(
                &(mt_parse_settings){.formats = {mt_parse_tool_name(i), mt_parse_reasoning_name(j)}}, NULL);

            assert_non_null(parser);
            mt_parser_free(parser);
        }
}

static void templates_tell_their_formats(void **state)
{
    static const char *const sources[][3] = {
        {"{{ messages }}", "none", "none"},
        {"'<tool_call>\\n' + call", "hermes", "none"},
        {"'<tool_call>\\n<function=' + name + '<parameter=' ... '</think>'", "qwen3_xml", "think"},
        {"<tool_call>{{ name }}<arg_key> <think>", "glm4", "think"},
        {"[TOOL_CALLS] [THINK]", "mistral", "mistral"},
        {"<|start|>assistant<|channel|>analysis<|message|>", "harmony", "harmony"},
        {"<|tool_call>call: <|channel>thought", "gemma4", "gemma4"},
        {"<｜tool▁calls▁begin｜> ```json </think>", "deepseek_v3", "think"},
        {"<｜tool▁calls▁begin｜> </think>", "deepseek_v31", "think"},
        {"<|start_header_id|> {\"name\": f, \"parameters\": {}}", "llama3", "none"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        mt_parse_formats formats = mt_parse_detect(sources[i][0], strlen(sources[i][0]));

        assert_string_equal(formats.tools, sources[i][1]);
        assert_string_equal(formats.reasoning, sources[i][2]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(calls_beyond_the_limit_are_dropped),
    cmocka_unit_test(a_word_that_is_too_long_spoils_no_other),
    cmocka_unit_test(a_name_that_is_too_long_is_text),
    cmocka_unit_test(a_value_that_is_too_long_to_be_held_is_a_string),
    cmocka_unit_test(arguments_that_wait_too_long_for_a_name_are_text),
    cmocka_unit_test(long_strings_are_told_as_they_come),
    cmocka_unit_test(an_answer_that_is_the_beginning_of_a_marker_is_text),
    cmocka_unit_test(nesting_has_no_depth_that_breaks_it),
    cmocka_unit_test(an_event_ends_with_a_whole_character),
    cmocka_unit_test(a_name_that_is_no_format_is_refused),
    cmocka_unit_test(every_name_in_the_lists_is_a_format),
    cmocka_unit_test(templates_tell_their_formats),
};

UNIT_MAIN(tests)
