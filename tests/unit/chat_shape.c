/* What shapes let models write, parsers read: calls of the declared tools with arguments that fit. */
#include "unit.h"

#include "../constraint/follow.h"

#include "base/alloc.h"
#include "chat/parse.h"
#include "chat/shape.h"

static const char *const specials[] = {
    "[TOOL_CALLS]",      "[ARGS]",
    "[CALL_ID]",         "<|tool_call|>",
    "<|channel|>",       "<|message|>",
    "<|constrain|>",     "<|start|>",
    "<|end|>",           "<|tool_call_begin|>",
    "<|tool_call_end|>", "<|tool_call_argument_begin|>",
    "<|action_start|>",  "<|plugin|>",
    "<|action_end|>",    "<｜tool▁calls▁begin｜>",
    "<｜tool▁sep｜>",
};

static const char tools_json[] =
    "[{'type':'function','function':{'name':'get_weather','parameters':{'type':'object','properties':{"
    "'city':{'type':'string'},'days':{'type':'integer','minimum':1,'maximum':14},'unit':{'enum':['C','F']},"
    "'place':{'type':'object','properties':{'lat':{'type':'number'}},'required':['lat']}},"
    "'required':['city','unit']}}},"
    "{'type':'function','function':{'name':'get_time','strict':true,'parameters':{'type':'object','properties':{"
    "'utc':{'type':'boolean'}},'required':['utc'],'additionalProperties':false}}},"
    "{'type':'function','function':{'name':'now'}}]";

typedef struct heard {
    const json_t *tools;
    size_t calls;
    bool content;
    char name[64];
    mt_buf arguments;
} heard;

static json_t *load(const char *text)
{
    char *json = mt_strdup(text);
    json_t *value;

    for (char *at = json; (at = strchr(at, '\'')); at++)
        *at = '"';
    value = json_loads(json, 0, NULL);
    mt_free(json);
    assert_non_null(value);
    return value;
}

static void check_call(const heard *h)
{
    json_t *arguments = json_loadb(h->arguments.data, h->arguments.len, 0, NULL);

    if (!json_is_object(arguments))
        fail_msg("no object: %s", h->arguments.data);
    if (strcmp(h->name, "get_weather") == 0) {
        const json_t *days = json_object_get(arguments, "days");
        const char *unit = json_string_value(json_object_get(arguments, "unit"));

        assert_true(json_is_string(json_object_get(arguments, "city")));
        assert_true(unit && (strcmp(unit, "C") == 0 || strcmp(unit, "F") == 0));
        assert_true(!days || (json_integer_value(days) >= 1 && json_integer_value(days) <= 14));
    } else if (strcmp(h->name, "get_time") == 0) {
        assert_true(json_is_boolean(json_object_get(arguments, "utc")));
        assert_int_equal(json_object_size(arguments), 1);
    } else {
        assert_string_equal(h->name, "now");
        assert_int_equal(json_object_size(arguments), 0);
    }
    json_decref(arguments);
}

static void hear(void *ctx, const mt_parse_event *e)
{
    heard *h = ctx;

    switch (e->kind) {
    case MT_PARSE_CALL_BEGIN:
        h->calls++;
        snprintf(h->name, sizeof(h->name), "%s", e->name);
        h->arguments.len = 0;
        break;
    case MT_PARSE_CALL_ARGUMENTS: mt_buf_add(&h->arguments, e->text, e->len); break;
    case MT_PARSE_CALL_END:
        assert_true(e->complete);
        check_call(h);
        break;
    case MT_PARSE_CONTENT: h->content |= e->len > strspn(e->text, " \n"); break;
    default: break;
    }
}

static void parse(const mt_shape *shape, const char *text, size_t len, heard *h)
{
    const mt_parse_settings settings = {.formats = shape->formats, .tools = shape->tools, .opened = shape->opened};
    mt_error err = {0};
    mt_parser *parser = mt_parser_new(&settings, &err);

    assert_non_null(parser);
    *h = (heard){.tools = shape->tools};
    mt_buf_init(&h->arguments, 1 << 20);
    mt_parser_feed(parser, text, len, hear, h);
    mt_parser_finish(parser, hear, h);
    mt_parser_free(parser);
    mt_buf_free(&h->arguments);
}

static mt_constraint *compile(const mt_shape *shape, const mt_tokenizer *tokenizer, const mt_vocabulary *v,
                              mt_error *err)
{
    mt_grammar *g = mt_grammar_new();
    mt_constraint *c = mt_shape_write(shape, tokenizer, g, err) ? mt_constraint_new(g, v, err) : NULL;

    mt_grammar_free(g);
    return c;
}

/* Returns how many answers were over, and counts their calls. */
static size_t follow(const mt_shape *shape, bool with_specials, size_t *calls, bool *content, size_t *most)
{
    mt_tokenizer *tokenizer = constraint_tokenizer(specials, with_specials ? MT_COUNT(specials) : 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);
    mt_error err = {0};
    mt_constraint *c = compile(shape, tokenizer, v, &err);
    uint64_t seed = 5;
    size_t over = 0;

    if (!c)
        fail_msg("%s: %s", shape->formats.tools, err.text);
    for (int i = 0; i < (unit_quick() ? 3 : 12); i++) {
        mt_buf text;
        heard h;

        mt_buf_init(&text, 1 << 20);
        if (constraint_walk(c, tokenizer, &seed, 3000, &text)) {
            parse(shape, text.len ? text.data : "", text.len, &h);
            over++;
            *calls += h.calls;
            *content |= h.content;
            *most = h.calls > *most ? h.calls : *most;
        }
        mt_buf_free(&text);
    }
    mt_constraint_release(c);
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    return over;
}

static const char *const formats[] = {
    "hermes",     "qwen3",    "qwen3_xml",   "step3p5",      "nemotron",     "seed_oss",  "glm4",       "glm47",
    "minimax_m2", "minicpm5", "deepseek_v3", "deepseek_v31", "deepseek_v32", "kimi_k2",   "llama3",     "mistral",
    "harmony",    "granite",  "granite_20b", "xlam",         "phi4_mini",    "internlm2", "tool_calls",
};

static void required_calls_are_read_back_in_every_format(void **state)
{
    json_t *tools = load(tools_json);

    (void)state;
    for (size_t i = 0; i < 2 * MT_COUNT(formats); i++) {
        const char *format = formats[i / 2];
        const mt_shape shape = {
            .calls = MT_SHAPE_CALLS_REQUIRED,
            .tools = tools,
            .formats = {.tools = format, .reasoning = strcmp(format, "harmony") == 0 ? "harmony" : "none"}};
        size_t calls = 0, most = 0, over;
        bool content = false;

        over = follow(&shape, i % 2, &calls, &content, &most);
        if (over == 0 || calls < over || content)
            fail_msg("%s: %zu answers, %zu calls, content %d", format, over, calls, content);
    }
    json_decref(tools);
}

static void a_named_tool_is_called_once(void **state)
{
    json_t *tools = load(tools_json);
    const mt_shape shape = {.calls = MT_SHAPE_CALLS_REQUIRED,
                            .name = "now",
                            .one = true,
                            .tools = tools,
                            .formats = {.tools = "hermes", .reasoning = "none"}};
    size_t calls = 0, most = 0;
    bool content = false;
    const size_t over = follow(&shape, true, &calls, &content, &most);

    (void)state;
    assert_int_equal(calls, over);
    assert_int_equal(most, 1);
    json_decref(tools);
}

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
        const mt_shape shape = {.source = {MT_SOURCE_CHOICE, choices},
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
                       "'properties':{'a':{'not':{}}}}}}]");
    const mt_shape rows[] = {
        {.calls = MT_SHAPE_CALLS_REQUIRED, .tools = tools, .formats = {.tools = "pythonic", .reasoning = "none"}},
        {.calls = MT_SHAPE_CALLS_REQUIRED,
         .tools = tools,
         .name = "nobody",
         .formats = {.tools = "hermes", .reasoning = "none"}},
        {.tools = odd, .formats = {.tools = "hermes", .reasoning = "none"}},
    };
    static const char *const sentences[] = {
        "\"tool_choice\" cannot be enforced for this model, whose format of calls is \"pythonic\": send auto or none",
        "\"tool_choice\" names the tool \"nobody\", which \"tools\" does not have",
        "tool \"f\": \"not\" at \"#/properties/a\" of the schema is not supported: leave it out",
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
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(required_calls_are_read_back_in_every_format),
    cmocka_unit_test(a_named_tool_is_called_once),
    cmocka_unit_test(strict_tools_leave_text_free_but_not_calls),
    cmocka_unit_test(content_begins_where_reasoning_ends),
    cmocka_unit_test(what_cannot_be_enforced_is_said),
};

UNIT_MAIN(tests)
