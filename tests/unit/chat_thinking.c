/* What ends a thought whose budget is spent, in every format: the parser and the constraint read on as they should. */
#include "shape.h"

#include "../chat/record.h"
#include "chat/thinking.h"

static char text[400];

/* A thought that was begun, by the model or by the prompt, and ended. */
static const char *cut(const mt_chat_thinking *t, bool opened, const char *behind)
{
    snprintf(text, sizeof(text), "%sHm%s%s%s", opened ? "" : t->open, t->end, t->answer, behind);
    return text;
}

static void check_parsed(const mt_parse_settings *settings, const char *said)
{
    mt_error err;
    mt_parser *parser = mt_parser_new(settings, &err);
    record r;

    assert_non_null(parser);
    record_init(&r);
    mt_parser_feed(parser, said, strlen(said), record_event, &r);
    mt_parser_finish(parser, record_event, &r);
    mt_parser_free(parser);
    if (strcmp(r.text.data, "\nreasoning: Hm\ncontent: yes") != 0)
        fail_msg("%s: \"%s\" is \"%s\"", settings->formats.reasoning, said, r.text.data);
    mt_buf_free(&r.text);
}

static void check_constrained(const mt_parse_settings *settings, const char *said)
{
    json_t *choices = load("['yes','no']");
    const mt_shape shape = {.source = {.kind = MT_SOURCE_CHOICE, .value = choices},
                            .formats = settings->formats,
                            .opened = settings->opened};
    mt_tokenizer *tokenizer = constraint_tokenizer(NULL, 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);
    mt_error err = {0};
    mt_constraint *c = compile(&shape, tokenizer, v, &err);

    assert_non_null(c);
    if (!constraint_fits(c, said, strlen(said)))
        fail_msg("%s: \"%s\" does not fit", settings->formats.reasoning, said);
    mt_constraint_release(c);
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    json_decref(choices);
}

static void the_answer_goes_on_behind_it(void **state)
{
    size_t known = 0;

    (void)state;
    for (size_t i = 0; mt_parse_reasoning_name(i); i++)
        for (int opened = 0; opened < 2; opened++) {
            const mt_parse_settings settings = {.formats = {.tools = "none", .reasoning = mt_parse_reasoning_name(i)},
                                                .opened = opened ? MT_CHAT_OPENED_REASONING : MT_CHAT_OPENED_NOTHING};
            mt_chat_thinking t;

            if (!mt_chat_thinking_find(&settings, &t)) {
                assert_string_equal(settings.formats.reasoning, "none");
                continue;
            }
            assert_true(strncmp(t.end, t.close, strlen(t.close)) == 0 && !t.breaks);
            check_parsed(&settings, cut(&t, opened, "yes"));
            check_constrained(&settings, cut(&t, opened, "yes"));
            known++;
        }
    assert_true(known >= 2 * 13);
}

static void thoughts_begin_anywhere_where_their_markers_are_tokens(void **state)
{
    static const struct {
        const char *format;
        bool anywhere;
    } rows[] = {{"think", false}, {"granite", false}, {"gemma4", true}, {"harmony", true}};
    mt_chat_thinking t;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        const mt_parse_settings settings = {.formats = {.tools = "none", .reasoning = rows[i].format}};

        assert_true(mt_chat_thinking_find(&settings, &t));
        assert_int_equal(t.anywhere, rows[i].anywhere);
    }
}

static void calls_that_end_a_thought_do_so_where_there_are_tools(void **state)
{
    json_t *tools = load(tools_json);
    mt_parse_settings settings = {.formats = {.tools = "kimi_k2", .reasoning = "think"}};
    mt_chat_thinking t;

    (void)state;
    assert_true(mt_chat_thinking_find(&settings, &t) && !t.breaks);
    settings.tools = tools;
    assert_true(mt_chat_thinking_find(&settings, &t));
    assert_string_equal(t.breaks, "<|tool_calls_section_begin|>");
    settings.formats.tools = "hermes";
    assert_true(mt_chat_thinking_find(&settings, &t) && !t.breaks);
    json_decref(tools);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_answer_goes_on_behind_it),
    cmocka_unit_test(thoughts_begin_anywhere_where_their_markers_are_tokens),
    cmocka_unit_test(calls_that_end_a_thought_do_so_where_there_are_tools),
};
UNIT_MAIN(tests)
