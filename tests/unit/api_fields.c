#include "unit.h"

#include "api/dialect.h"
#include "api/fields.h"
#include "base/file.h"
#include "base/json_tree.h"
#include "sample/limits.h"

typedef struct fixture {
    mt_arena *arena;
    json_t *body;
    mt_ask ask;
    mt_failure why;
} fixture;

static bool read_body(fixture *f, const mt_dialect *dialect, const char *text)
{
    mt_ask_defaults defaults;

    mt_ask_defaults_init(&defaults);
    defaults.sampling.temperature = 0.5f;
    defaults.max_tokens = 99;
    f->arena = mt_arena_new(1 << 20);
    f->body = mt_json_tree_try(text, strlen(text));
    assert_non_null(f->body);
    if (dialect == &mt_openai_chat)
        json_object_set_new(f->body, "messages", json_pack("[{s:s, s:s}]", "role", "user", "content", "hi"));
    mt_ask_init(&f->ask, f->arena, f->body, &defaults);
    return dialect->read(&f->ask, &f->why);
}

static void drop(fixture *f)
{
    mt_ask_free(&f->ask);
    json_decref(f->body);
    mt_arena_free(f->arena);
}

static void what_is_left_out_is_the_default(void **state)
{
    fixture f;

    (void)state;
    assert_true(read_body(&f, &mt_openai_chat, "{\"top_p\":null,\"unheard_of\":{}}"));
    assert_true(f.ask.sampling.temperature == 0.5f && f.ask.sampling.top_p == 1.0f);
    assert_int_equal(f.ask.max_tokens, -1);
    assert_int_equal(f.ask.default_max_tokens, 99);
    assert_int_equal(f.ask.n, 1);
    assert_int_equal(f.ask.sampling.logprobs, -1);
    assert_true(f.ask.skip_special_tokens && !f.ask.form.stream && !f.ask.seeded);
    drop(&f);
}

/* Fields that nobody reads are told, but for those that ask for nothing and those that are known to do no harm. */
static void unknown_fields_are_noted(void **state)
{
    char many[400] = "{";
    fixture f;

    (void)state;
    assert_true(read_body(&f, &mt_openai_chat, "{\"a\":{},\"b\":null,\"metadata\":{},\"top_p\":1,\"c\":0}"));
    assert_string_equal(f.ask.ignored, "c");
    drop(&f);
    for (int i = 0; i < 20; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), "\"f%02d\":1%s", i, i < 19 ? "," : "}");
    assert_true(read_body(&f, &mt_openai_chat, many));
    assert_string_equal(f.ask.ignored,
                        "f00, f01, f02, f03, f04, f05, f06, f07, f08, f09, f10, f11, f12, f13, f14, f15, ...");
    drop(&f);
    assert_true(read_body(&f, &mt_anthropic_messages,
                          "{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"\"}],"
                          "\"anthropic_beta\":[],\"unknown\":1}"));
    assert_string_equal(f.ask.ignored, "unknown");
    drop(&f);
    assert_true(read_body(&f, &mt_openai_chat, "{\"tempreature\":1,\"maxTokens\":5,\"mesages\":1}"));
    assert_string_equal(f.ask.ignored, "tempreature (did you mean temperature?), maxTokens (did you mean max_tokens?), "
                                       "mesages (did you mean messages?)");
    drop(&f);
}

static void every_kind_of_field_is_read(void **state)
{
    fixture f;

    (void)state;
    assert_true(read_body(&f, &mt_openai_chat,
                          "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"n\":3.0,"
                          "\"temperature\":1,\"seed\":-5,\"stop\":[\"a\",\"bc\"],\"stop_token_ids\":[7,8],"
                          "\"logit_bias\":{\"12\":-1.5},\"logprobs\":true,\"top_logprobs\":4,\"max_tokens\":5,"
                          "\"max_completion_tokens\":6}"));
    assert_string_equal(f.ask.model, "m");
    assert_true(f.ask.form.stream && f.ask.form.include_usage && f.ask.seeded);
    assert_int_equal(f.ask.n, 3);
    assert_int_equal(f.ask.sampling.seed, -5);
    assert_int_equal(f.ask.stop_count, 2);
    assert_string_equal(f.ask.stops[1].str, "bc");
    assert_int_equal(f.ask.sampling.stop_ids[1], 8);
    assert_int_equal(f.ask.sampling.bias[0].id, 12);
    assert_true(f.ask.sampling.bias[0].bias == -1.5f);
    assert_int_equal(f.ask.sampling.logprobs, 4);
    assert_int_equal(f.ask.max_tokens, 6);
    drop(&f);
}

static void a_wrong_field_is_named(void **state)
{
    static const struct {
        const char *body, *param, *sentence;
    } cases[] = {
        {"{\"n\":\"3\"}", "n", "\"n\" is a string: send an integer"},
        {"{\"n\":2.5}", "n", "\"n\" is a number with a fraction: send an integer"},
        {"{\"n\":1e300}", "n", "\"n\" is 1e+300: send a value from 1 to 128"},
        {"{\"n\":18446744073709551615}", "n", "\"n\" is 18446744073709551615: send a value from 1 to 128"},
        {"{\"n\":-123456789012345678901234}", "n", "\"n\" is -1234567890123456789...: send a value from 1 to 128"},
        {"{\"temperature\":1e999}", "temperature", "\"temperature\" is 1e999: send a value from 0 to 2"},
        {"{\"logit_bias\":{\"5\":-1e999}}", "logit_bias",
         "the value of token 5 in \"logit_bias\" is -1e999: send a number from -100 to 100"},
        {"{\"n\":0}", "n", "\"n\" is 0: send a value from 1 to 128"},
        {"{\"n\":129}", "n", "\"n\" is 129: send a value from 1 to 128"},
        {"{\"min_p\":1.001}", "min_p", "\"min_p\" is 1.001: send a value from 0 to 1"},
        {"{\"user\":\"a\\u0000b\"}", "user", "\"user\" has a NUL character in it: leave it out"},
        {"{\"top_p\":true}", "top_p", "\"top_p\" is a boolean: send a number"},
        {"{\"min_p\":-1}", "min_p", "\"min_p\" is -1: send a value from 0 to 1"},
        {"{\"stream\":\"yes\"}", "stream", "\"stream\" is a string: send true or false"},
        {"{\"user\":[]}", "user", "\"user\" is a list: send a string"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        fixture f;

        assert_false(read_body(&f, &mt_openai_chat, cases[i].body));
        assert_int_equal(f.why.status, 400);
        assert_string_equal(f.why.param, cases[i].param);
        assert_string_equal(f.why.text, cases[i].sentence);
        drop(&f);
    }
}

static void the_ends_of_a_range_are_in_it(void **state)
{
    fixture f;

    (void)state;
    assert_true(read_body(&f, &mt_openai_chat, "{\"n\":128,\"min_p\":1}"));
    assert_true(f.ask.n == 128 && f.ask.sampling.min_p == 1.0f);
    drop(&f);
    assert_true(read_body(&f, &mt_openai_chat, "{\"n\":1,\"min_p\":0}"));
    assert_true(f.ask.n == 1 && f.ask.sampling.min_p == 0.0f);
    drop(&f);
}

static void prompts_come_in_four_shapes(void **state)
{
    static const struct {
        const char *body;
        size_t count, ids;
    } cases[] = {{"{\"prompt\":\"a\"}", 1, 0},
                 {"{\"prompt\":[\"a\",\"b\"]}", 2, 0},
                 {"{\"prompt\":[1,2,3]}", 1, 3},
                 {"{\"prompt\":[[1],[2,3]]}", 2, 1}};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        fixture f;

        assert_true(read_body(&f, &mt_openai_completions, cases[i].body));
        assert_int_equal(f.ask.prompt_count, cases[i].count);
        assert_int_equal(f.ask.prompts[0].count, cases[i].ids);
        assert_int_equal(f.ask.prompts[0].text.data == NULL, cases[i].ids > 0);
        assert_false(f.ask.is_chat);
        drop(&f);
    }
}

static void a_request_that_does_not_fit_its_arena_is_refused(void **state)
{
    mt_ask_defaults defaults;
    mt_failure why;
    mt_ask ask;
    mt_arena *arena = mt_arena_new(512);
    json_t *body = json_object(), *ids = json_array();

    (void)state;
    for (int i = 0; i < 1000; i++)
        json_array_append_new(ids, json_integer(i));
    json_object_set_new(body, "prompt", ids);
    mt_ask_defaults_init(&defaults);
    mt_ask_init(&ask, arena, body, &defaults);
    assert_false(mt_openai_completions.read(&ask, &why));
    assert_int_equal(why.status, 413);
    json_decref(body);
    mt_arena_free(arena);
}

/* The tables are the truth; the page must name all of it. */
static void every_common_field_is_in_the_documentation(void **state)
{
    const mt_field_table *const tables[] = {&mt_fields_common, &mt_fields_refused};
    mt_error err;
    mt_buf page;

    (void)state;
    mt_buf_init(&page, 1 << 20);
    assert_true(mt_file_read(&page, "docs/api.md", &err));
    for (size_t k = 0; k < MT_COUNT(tables); k++)
        for (size_t i = 0; i < tables[k]->count; i++) {
            char name[80];

            snprintf(name, sizeof(name), "`%s`", tables[k]->fields[i].name);
            if (!strstr(page.data, name))
                fail_msg("docs/api.md does not name %s", name);
        }
    mt_buf_free(&page);
}

/* An effort allows so many tokens of thinking, unless a field says how many, or the template makes something of it. */
static void efforts_are_budgets(void **state)
{
    static const struct {
        const char *body;
        int64_t budget, by_template;
        const char *field;
    } rows[] = {
        {"{}", -1, -1, NULL},
        {"{\"reasoning_effort\":\"none\"}", 0, -1, "reasoning_effort"},
        {"{\"reasoning_effort\":\"minimal\"}", 512, -1, "reasoning_effort"},
        {"{\"reasoning_effort\":\"low\"}", 2048, -1, "reasoning_effort"},
        {"{\"reasoning_effort\":\"medium\"}", 8192, -1, "reasoning_effort"},
        {"{\"reasoning\":{\"effort\":\"high\"}}", 24576, -1, "reasoning.effort"},
        {"{\"reasoning_effort\":\"xhigh\"}", -1, -1, "reasoning_effort"},
        {"{\"reasoning_effort\":\"max\"}", -1, -1, "reasoning_effort"},
        {"{\"reasoning_effort\":\"none\",\"enable_thinking\":true}", -1, -1, "reasoning_effort"},
        {"{\"reasoning_effort\":\"none\",\"chat_template_kwargs\":{\"enable_thinking\":true}}", -1, -1,
         "reasoning_effort"},
        {"{\"reasoning_effort\":\"low\",\"thinking_budget\":7}", 7, 7, "thinking_budget"},
        {"{\"reasoning_effort\":\"low\",\"thinking_token_budget\":-1}", MT_LIMIT_CONTEXT, MT_LIMIT_CONTEXT, NULL},
        {"{\"thinking_budget\":99999999999}", MT_LIMIT_CONTEXT, MT_LIMIT_CONTEXT, "thinking_budget"},
        {"{\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":0}}", 0, 0, "thinking.budget_tokens"},
        {"{\"thinking\":{\"type\":\"disabled\",\"budget_tokens\":9}}", -1, -1, NULL},
        {"{\"reasoning\":{\"max_tokens\":9,\"effort\":\"low\"}}", 9, 9, "reasoning.max_tokens"},
    };
    fixture f;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        if (!read_body(&f, &mt_openai_chat, rows[i].body))
            fail_msg("%s: %s", rows[i].body, f.why.text);
        assert_int_equal(mt_ask_budget(&f.ask, false), rows[i].budget);
        assert_int_equal(mt_ask_budget(&f.ask, true), rows[i].by_template);
        assert_true(f.ask.think_field == rows[i].field || strcmp(f.ask.think_field, rows[i].field) == 0);
        drop(&f);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_left_out_is_the_default),
    cmocka_unit_test(unknown_fields_are_noted),
    cmocka_unit_test(every_kind_of_field_is_read),
    cmocka_unit_test(a_wrong_field_is_named),
    cmocka_unit_test(the_ends_of_a_range_are_in_it),
    cmocka_unit_test(prompts_come_in_four_shapes),
    cmocka_unit_test(a_request_that_does_not_fit_its_arena_is_refused),
    cmocka_unit_test(every_common_field_is_in_the_documentation),
    cmocka_unit_test(efforts_are_budgets),
};
UNIT_MAIN(tests)
