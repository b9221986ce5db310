/* What answers may look like: text, content that is wanted, reasoning before it, and where calls may stand. */
#include "unit.h"

#include "shape.h"

static void strict_tools_leave_text_free_but_not_calls(void **state)
{
    json_t *tools = load(tools_json);
    const mt_shape shape = {.tools = tools, .formats = {.tools = "hermes", .reasoning = "think"}};
    mt_tokenizer *tokenizer = constraint_tokenizer(NULL, 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);
    mt_error err = {0};
    mt_constraint *c;
    static const struct {
        const char *text;
        bool fits;
    } rows[] = {
        {"", true},
        {"just text", true},
        {"<think>\nso\n</think>\n\nLet me look.\n<tool_call>\n"
         "{\"name\": \"get_time\", \"arguments\": {\"utc\": true}}\n"
         "</tool_call>",
         true},
        {"<tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"utc\": 1}}\n</tool_call>", false},
        {"<tool_call>\n{\"name\": \"nobody\", \"arguments\": {}}\n</tool_call>", false},
        {"a <tool", true},
        {"a <tool_call>", false},
        {"<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", "
         "\"arguments\": {}}\n</tool_call> and text",
         true},
    };

    (void)state;
    assert_true(mt_shape_needed(&shape));
    c = compile(&shape, tokenizer, v, &err);
    assert_non_null(c);
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        if (constraint_fits(c, rows[i].text, strlen(rows[i].text)) != rows[i].fits)
            fail_msg("wrong about %s", rows[i].text);
    mt_constraint_release(c);
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    json_decref(tools);
}

static void content_begins_where_reasoning_ends(void **state)
{
    static const struct {
        mt_chat_opened_state opened;
        const char *text;
        bool fits;
    } rows[] = {
        {MT_CHAT_OPENED_NOTHING, "yes", true},
        {MT_CHAT_OPENED_NOTHING, "<think>no < yes</think>\n\nyes", true},
        {MT_CHAT_OPENED_NOTHING, "<think>no", false},
        {MT_CHAT_OPENED_NOTHING, "maybe", false},
        {MT_CHAT_OPENED_REASONING, "well</think>yes", true},
        {MT_CHAT_OPENED_REASONING, "yes", false},
        {MT_CHAT_OPENED_ANSWER, "yes", true},
        {MT_CHAT_OPENED_ANSWER, "<think></think>yes", false},
    };
    json_t *choices = load("['yes','no']");
    mt_tokenizer *tokenizer = constraint_tokenizer(NULL, 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        const mt_shape shape = {.source = {.kind = MT_SOURCE_CHOICE, .value = choices},
                                .formats = {.tools = "none", .reasoning = "think"},
                                .opened = rows[i].opened};
        mt_error err = {0};
        mt_constraint *c = compile(&shape, tokenizer, v, &err);

        assert_non_null(c);
        if (constraint_fits(c, rows[i].text, strlen(rows[i].text)) != rows[i].fits)
            fail_msg("wrong about %s", rows[i].text);
        mt_constraint_release(c);
    }
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    json_decref(choices);
}

static void what_cannot_be_enforced_is_said(void **state)
{
    json_t *tools = load(tools_json);
    json_t *odd = load("[{'type':'function','function':{'name':'f','strict':true,'parameters':{'type':'object',"
                       "'properties':{'a':{'type':'array','uniqueItems':true}}}}}]");
    json_t *nobody = load("{'nobody':true}");
    const mt_shape rows[] = {
        {.calls = MT_SHAPE_CALLS_REQUIRED, .tools = tools, .formats = {.tools = "none", .reasoning = "none"}},
        {.calls = MT_SHAPE_CALLS_REQUIRED,
         .tools = tools,
         .names = nobody,
         .formats = {.tools = "hermes", .reasoning = "none"}},
        {.tools = odd, .formats = {.tools = "hermes", .reasoning = "none"}},
    };
    static const char *const sentences[] = {
        "\"tool_choice\" cannot be enforced for this model, whose format of calls is \"none\": send auto or none",
        "\"tool_choice\" names the tool \"nobody\", which \"tools\" does not have",
        ("tool \"f\": \"uniqueItems\" at \"#/properties/a\" of the schema is supported for listed values only "
         "(\"enum\", \"const\"): leave it out"),
    };
    mt_tokenizer *tokenizer = constraint_tokenizer(NULL, 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_error err = {0};

        assert_null(compile(&rows[i], tokenizer, v, &err));
        assert_string_equal(err.text, sentences[i]);
    }
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    json_decref(tools);
    json_decref(odd);
    json_decref(nobody);
}

/* ---- calls that nobody may make ---- */

/* The longest special token that text begins with, else its first byte. */
static uint32_t next_token(const mt_tokenizer *tokenizer, const char *text, size_t *len)
{
    for (*len = strlen(text); *len > 1; --*len) {
        const uint32_t id = mt_tokenizer_find(tokenizer, text, *len);

        if (id != MT_TOKEN_NONE && mt_tokenizer_special(tokenizer, id))
            return id;
    }
    *len = 1;
    return (unsigned char)*text;
}

/* How far a text can be followed, with a mask that says the same everywhere. */
static bool can_write(mt_constraint *c, const mt_tokenizer *tokenizer, const char *text)
{
    const mt_vocabulary *v = mt_constraint_vocabulary(c);
    uint32_t *mask = mt_alloc_array(v->words, sizeof(*mask));
    bool ok = true;
    size_t len;
    mt_run run;

    mt_run_begin(&run, c);
    for (const char *at = text; ok && *at; at += len) {
        assert_true(mt_run_mask(&run, mask));
        constraint_check(&run, mask, v, text);
        ok = mt_run_token(&run, next_token(tokenizer, at, &len));
    }
    mt_run_end(&run);
    mt_free(mask);
    return ok;
}

typedef struct forbidden {
    const char *format, *before, *marker;
} forbidden;

static const forbidden never_written[] = {
    {"hermes", "a < b", "<tool_call>"},
    {"hermes", "a <", "<function="},
    {"qwen3_xml", "", "<tool_call>"},
    {"glm4", "<tool_<", "<tool_call>"},
    {"seed_oss", "", "<seed:tool_call>"},
    {"minimax_m2", "", "<minimax:tool_call>"},
    {"minicpm5", "", "<function name=\""},
    {"deepseek_v3", "", "<｜tool▁calls▁begin｜>"},
    {"deepseek_v31", "", "<｜tool▁call▁begin｜>"},
    {"deepseek_v32", "", "<｜DSML｜function_calls>"},
    {"kimi_k2", "", "<|tool_calls_section_begin|>"},
    {"kimi_k2", "", "<|tool_call_begin|>"},
    {"llama3", "{", "<|python_tag|>"},
    {"llama4", "[", "<|python_start|>"},
    {"lfm2", "[get_time(", "<|tool_call_start|>"},
    {"gemma3", "```", "```tool_code"},
    {"gemma4", "", "<|tool_call>"},
    {"mistral", "[1]", "[TOOL_CALLS]"},
    {"functionary", "all\n> ", ">>>"},
    {"functionary_v2", "all\n<|content|>", "<|recipient|>"},
    {"functionary_v31", "", "<function="},
    {"granite", "", "<|tool_call|>"},
    {"granite", "", "<tool_call>"},
    {"granite_20b", "", "<function_call>"},
    {"nemotron", "", "<TOOLCALL>"},
    {"tool_calls", "", "<tool_calls>"},
    {"phi4_mini", "import functools", "functools["},
    {"internlm2", "", "<|action_start|>"},
    {"gigachat", "", "<|function_call|>"},
    {"cohere", "", "<|START_ACTION|>"},
    {"harmony", "<|channel|>final<|message|>", "<|start|>"},
    {"harmony", "<|channel|>final<|message|>", "<|channel|>"},
};

static void check_forbidden(const forbidden *f, const json_t *tools, bool with_specials)
{
    const mt_shape shape = {
        .calls = MT_SHAPE_CALLS_NONE, .tools = tools, .formats = {.tools = f->format, .reasoning = "none"}};
    mt_tokenizer *tokenizer = constraint_tokenizer(specials, with_specials ? MT_COUNT(specials) : 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);
    mt_error err = {0};
    mt_constraint *c = compile(&shape, tokenizer, v, &err);
    char text[256];
    size_t len;

    assert_true(mt_shape_needed(&shape));
    assert_non_null(c);
    snprintf(text, sizeof(text), "%s%s", f->before, f->marker);
    if (can_write(c, tokenizer, text))
        fail_msg("%s may write %s", f->format, text);
    next_token(tokenizer, f->marker, &len);
    snprintf(text, sizeof(text), "%s%.*s and more", f->before, (int)(len > 1 ? 0 : strlen(f->marker) - 1), f->marker);
    if (!can_write(c, tokenizer, text))
        fail_msg("%s may not write %s", f->format, text);
    mt_constraint_release(c);
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
}

static void markers_of_forbidden_calls_are_never_written(void **state)
{
    json_t *tools = load(tools_json);

    (void)state;
    for (size_t i = 0; i < 2 * MT_COUNT(never_written); i++)
        check_forbidden(&never_written[i / 2], tools, i % 2);
    json_decref(tools);
}

/* Text, then whether it may be an answer, or the beginning of one. */
typedef struct row {
    const char *text;
    bool fits;
} row;

static void check_rows(const mt_shape *shape, const row *rows, size_t count)
{
    mt_tokenizer *tokenizer = constraint_tokenizer(NULL, 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);
    mt_error err = {0};
    mt_constraint *c = compile(shape, tokenizer, v, &err);

    if (!c)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++)
        if (constraint_fits(c, rows[i].text, strlen(rows[i].text)) != rows[i].fits)
            fail_msg("%s: wrong about %s", shape->formats.tools, rows[i].text);
    mt_constraint_release(c);
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
}

static void forbidden_calls_leave_reasoning_and_wanted_content(void **state)
{
    static const row free_rows[] = {
        {"", true},
        {"text", true},
        {"<think>so</think>\n\ntext <tool", true},
        {"<think>a <tool_call></think>b", false},
        {"<think>so</think><tool_call>", false},
    };
    static const row json_rows[] = {
        {"<think>a < b</think>{\"a\": 1}", true},
        {"{\"a\": \"<tool\"}", true},
        {"text", false},
        {"<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", false},
    };
    json_t *tools = load(tools_json);
    mt_shape shape = {
        .calls = MT_SHAPE_CALLS_NONE, .tools = tools, .formats = {.tools = "hermes", .reasoning = "think"}};

    (void)state;
    check_rows(&shape, free_rows, MT_COUNT(free_rows));
    shape.source.kind = MT_SOURCE_JSON;
    check_rows(&shape, json_rows, MT_COUNT(json_rows));
    json_decref(tools);
    shape = (mt_shape){.calls = MT_SHAPE_CALLS_NONE, .formats = {.tools = "hermes", .reasoning = "think"}};
    assert_false(mt_shape_needed(&shape)); /* nothing is declared */
}

static void calls_beside_wanted_content_are_whole_answers(void **state)
{
    static const row rows[] = {
        {"{\"a\": 1}", true},
        {"text", false},
        {"<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", true},
        {"{}<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", false},
    };
    json_t *tools = load(tools_json);
    const mt_shape shape = {
        .source = {.kind = MT_SOURCE_JSON}, .tools = tools, .formats = {.tools = "hermes", .reasoning = "none"}};

    (void)state;
    check_rows(&shape, rows, MT_COUNT(rows));
    json_decref(tools);
}

static void text_beside_strict_calls_has_no_others(void **state)
{
    static const row hermes[] = {{"a <function=", false}, {"a <functio", true}};
    static const row llama[] = {
        {"a {\"b\": 1}", true}, {" {", false}, {"a <function=", false}, {"", true}, {" ", true}};
    static const row python[] = {{"see [1] and [now]", true},
                                 {"see [now()] and [get_time(utc=True)].", true},
                                 {"[get_time(utc=1)]", false},
                                 {"[now(a=1)]", false},
                                 {"```tool_code", false}};
    static const row granite[] = {{"a<function_call>{\"name\": \"now\", \"arguments\": {}}", true},
                                  {"<function_call>{\"name\": \"now\", \"arguments\": {}};{", false}};
    static const row functionary[] = {{"all\nsee >> it", true},
                                      {"all\nsee>>>now\n{}", true},
                                      {"all\nsee>>>now\n{}>>>get_time\n{\"utc\": true}", true},
                                      {"all\nsee>>>nobody\n{}", false},
                                      {"now\n{}", true}};
    static const struct {
        const char *format;
        const row *rows;
        size_t count;
    } all[] = {{"hermes", hermes, MT_COUNT(hermes)},
               {"llama3", llama, MT_COUNT(llama)},
               {"pythonic", python, MT_COUNT(python)},
               {"granite_20b", granite, MT_COUNT(granite)},
               {"functionary", functionary, MT_COUNT(functionary)}};
    json_t *tools = load(tools_json);

    (void)state;
    for (size_t i = 0; i < MT_COUNT(all); i++)
        check_rows(&(mt_shape){.tools = tools, .formats = {.tools = all[i].format, .reasoning = "none"}}, all[i].rows,
                   all[i].count);
    json_decref(tools);
}

static void patterns_hold_in_tags(void **state)
{
    static const row rows[] = {
        {"<tool_call>\n<function=f>\n<parameter=a>\nab-12\n</parameter>\n</function>\n</tool_call>", true},
        {"<tool_call>\n<function=f>\n<parameter=a>\nab-1\n</parameter>\n</function>\n</tool_call>", false},
        {"<tool_call>\n<function=f>\n<parameter=a>\n</parameter>\n</function>\n</tool_call>", false},
    };
    json_t *tools = load("[{'type':'function','function':{'name':'f','strict':true,'parameters':{'type':'object',"
                         "'properties':{'a':{'type':'string','pattern':'^[a-z]+-[0-9]{2}$'}},'required':['a']}}}]");
    const mt_shape shape = {.tools = tools, .formats = {.tools = "qwen3_xml", .reasoning = "none"}};

    (void)state;
    check_rows(&shape, rows, MT_COUNT(rows));
    json_decref(tools);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(strict_tools_leave_text_free_but_not_calls),
    cmocka_unit_test(content_begins_where_reasoning_ends),
    cmocka_unit_test(what_cannot_be_enforced_is_said),
    cmocka_unit_test(markers_of_forbidden_calls_are_never_written),
    cmocka_unit_test(forbidden_calls_leave_reasoning_and_wanted_content),
    cmocka_unit_test(calls_beside_wanted_content_are_whole_answers),
    cmocka_unit_test(text_beside_strict_calls_has_no_others),
    cmocka_unit_test(patterns_hold_in_tags),
};

UNIT_MAIN(tests)
