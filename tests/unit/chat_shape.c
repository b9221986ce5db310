/* What shapes let models write, parsers read: calls of the declared tools with arguments that fit. */
#include "unit.h"

#include "../constraint/follow.h"

#include "base/alloc.h"
#include "chat/parse.h"
#include "chat/shape.h"

static const char *const specials[] = {
    "[TOOL_CALLS]",
    "[ARGS]",
    "[CALL_ID]",
    "<|tool_call|>",
    "<|channel|>",
    "<|message|>",
    "<|constrain|>",
    "<|start|>",
    "<|end|>",
    "<|tool_call_begin|>",
    "<|tool_call_end|>",
    "<|tool_call_argument_begin|>",
    "<|action_start|>",
    "<|plugin|>",
    "<|action_end|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁sep｜>",
    "<|python_tag|>",
    "<|python_start|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|\"|>",
    "<|recipient|>",
    "<|content|>",
    "<|from|>",
    "<|START_ACTION|>",
    "<|END_ACTION|>",
    "<|function_call|>",
    "<|tool_call_start|>",
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

static bool valid(const json_t *schema, const json_t *value);

static bool valid_object(const json_t *schema, const json_t *value)
{
    json_t *properties = json_object_get(schema, "properties"), *own;
    const json_t *required = json_object_get(schema, "required");
    const char *key;

    json_object_foreach((json_t *)value, key, own)
    {
        if (!json_object_get(properties, key) || !valid(json_object_get(properties, key), own))
            return false;
    }
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(value, json_string_value(json_array_get(required, i))))
            return false;
    return json_is_object(value);
}

static bool valid_array(const json_t *schema, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!valid(json_object_get(schema, "items"), json_array_get(value, i)))
            return false;
    return json_is_array(value) && json_array_size(value) <= 3;
}

static bool valid_string(const json_t *schema, const json_t *value)
{
    const json_t *list = json_object_get(schema, "enum"), *most = json_object_get(schema, "maxLength");
    size_t characters = 0;

    if (!json_is_string(value))
        return false;
    for (const char *at = json_string_value(value); *at; at++)
        characters += (*at & 0xc0) != 0x80;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), (json_t *)value))
            return true;
    return !list && (!most || characters <= (size_t)json_integer_value(most));
}

/* Of the schemas that random_schema makes. */
static bool valid(const json_t *schema, const json_t *value)
{
    const char *type = json_string_value(json_object_get(schema, "type"));

    if (!type)
        return json_is_null(value) || (json_is_integer(value) && json_integer_value(value) == 7) ||
               (json_is_string(value) && json_string_length(value) > 0 &&
                strspn(json_string_value(value), "abc") == json_string_length(value));
    switch (type[0]) {
    case 's': return valid_string(schema, value);
    case 'i': return json_is_integer(value) && json_integer_value(value) >= -3 && json_integer_value(value) <= 12;
    case 'b': return json_is_boolean(value);
    case 'a': return valid_array(schema, value);
    case 'o': return valid_object(schema, value);
    default: return strcmp(type, "null") == 0 ? json_is_null(value) : json_is_number(value);
    }
}

static void check_call(const heard *h)
{
    json_t *arguments = json_loadb(h->arguments.data, h->arguments.len, JSON_ALLOW_NUL, NULL);

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
    } else if (strcmp(h->name, "random") == 0) {
        const json_t *function = json_object_get(json_array_get(h->tools, 0), "function");

        if (!valid(json_object_get(function, "parameters"), arguments))
            fail_msg("not valid: %s", h->arguments.data);
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

/* Feeds text as a detokenizer gives it: what is no UTF-8 is replaced. */
static void feed(mt_parser *parser, const char *text, size_t len, heard *h)
{
    for (size_t at = 0, size; at < len; at += size ? size : 1) {
        size = mt_utf8_length(text + at, len - at);
        mt_parser_feed(parser, size ? text + at : "\xef\xbf\xbd", size ? size : 3, hear, h);
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
    feed(parser, text, len, h);
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
    "hermes",    "qwen3",      "qwen3_xml", "step3p5",     "nemotron",     "seed_oss",       "glm4",
    "glm47",     "minimax_m2", "minicpm5",  "deepseek_v3", "deepseek_v31", "deepseek_v32",   "kimi_k2",
    "llama3",    "mistral",    "harmony",   "granite",     "granite_20b",  "xlam",           "phi4_mini",
    "internlm2", "tool_calls", "cohere",    "gigachat",    "functionary",  "functionary_v2", "functionary_v31",
    "pythonic",  "llama4",     "lfm2",      "gemma3",      "gemma4",
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
        {.calls = MT_SHAPE_CALLS_REQUIRED, .tools = tools, .formats = {.tools = "none", .reasoning = "none"}},
        {.calls = MT_SHAPE_CALLS_REQUIRED,
         .tools = tools,
         .name = "nobody",
         .formats = {.tools = "hermes", .reasoning = "none"}},
        {.tools = odd, .formats = {.tools = "hermes", .reasoning = "none"}},
    };
    static const char *const sentences[] = {
        "\"tool_choice\" cannot be enforced for this model, whose format of calls is \"none\": send auto or none",
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
        .source = {MT_SOURCE_JSON, NULL}, .tools = tools, .formats = {.tools = "hermes", .reasoning = "none"}};

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

/* What a call of the model's own accord begins with, text before it where there may be some. */
static const char *const beginnings[][2] = {
    {"hermes", "Hi. <tool_call>"},
    {"qwen3_xml", "Hi. <tool_call>"},
    {"nemotron", "Hi. <TOOLCALL>"},
    {"seed_oss", "Hi. <seed:tool_call>"},
    {"glm4", "Hi. <tool_call>"},
    {"glm47", "Hi. <tool_call>"},
    {"minimax_m2", "Hi. <minimax:tool_call>"},
    {"minicpm5", "Hi. <function name=\""},
    {"deepseek_v3", "Hi. <｜tool▁calls▁begin｜>"},
    {"deepseek_v31", "Hi. <｜tool▁calls▁begin｜>"},
    {"deepseek_v32", "Hi. <｜DSML｜function_calls>"},
    {"kimi_k2", "Hi. <|tool_calls_section_begin|>"},
    {"llama3", "{"},
    {"llama4", "Hi. [now("},
    {"lfm2", "Hi. <|tool_call_start|>"},
    {"gemma3", "Hi. ```tool_code"},
    {"gemma4", "Hi. <|tool_call>"},
    {"mistral", "Hi. [TOOL_CALLS]"},
    {"harmony", "<|channel|>c"},
    {"functionary", "all\nHi.>>>"},
    {"functionary_v2", "n"},
    {"functionary_v31", "Hi. <function="},
    {"granite", "Hi. <tool_call>"},
    {"granite_20b", "Hi. <function_call>"},
    {"xlam", "["},
    {"phi4_mini", "Hi. functools["},
    {"internlm2", "Hi. <|action_start|>"},
    {"tool_calls", "Hi. <tool_calls>"},
    {"cohere", "Hi. <|START_ACTION|>"},
    {"gigachat", "Hi. <|function_call|>"},
};

/* Returns how many answers were over; none has more than `most` calls, and each has one. */
static size_t follow_from(const mt_shape *shape, const char *beginning, size_t most)
{
    mt_tokenizer *tokenizer = constraint_tokenizer(NULL, 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);
    mt_error err = {0};
    mt_constraint *c = compile(shape, tokenizer, v, &err);
    uint64_t seed = 3;
    size_t over = 0;

    if (!c)
        fail_msg("%s: %s", shape->formats.tools, err.text);
    for (int i = 0; i < (unit_quick() ? 3 : 12); i++) {
        mt_run run;
        mt_buf text;
        heard h;

        mt_buf_init(&text, 1 << 20);
        mt_run_begin(&run, c);
        for (const char *at = beginning; *at; at++)
            if (!mt_run_token(&run, (unsigned char)*at))
                fail_msg("%s may not begin with %s", shape->formats.tools, beginning);
        mt_buf_puts(&text, beginning);
        if (constraint_walk_on(&run, tokenizer, &seed, 1000, &text)) {
            parse(shape, text.data, text.len, &h);
            over++;
            if (h.calls == 0 || h.calls > most)
                fail_msg("%s: %zu calls in %s", shape->formats.tools, h.calls, text.data);
        }
        mt_buf_free(&text);
    }
    mt_constraint_release(c);
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    return over;
}

static void calls_of_its_own_accord_fit_and_are_no_more_than_wanted(void **state)
{
    json_t *tools = load(tools_json);

    (void)state;
    for (size_t i = 0; i < 2 * MT_COUNT(beginnings); i++) {
        const char *format = beginnings[i / 2][0];
        const bool harmony = strcmp(format, "harmony") == 0;
        const mt_shape shape = {
            .one = i % 2, .tools = tools, .formats = {.tools = format, .reasoning = harmony ? "harmony" : "none"}};

        follow_from(&shape, beginnings[i / 2][1], i % 2 ? 1 : SIZE_MAX);
    }
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

static void one_call_is_not_followed_by_another(void **state)
{
    json_t *tools = load(tools_json);

    (void)state;
    for (size_t i = 0; i < MT_COUNT(formats); i++) {
        const char *format = formats[i];
        const mt_shape shape = {
            .calls = MT_SHAPE_CALLS_REQUIRED,
            .one = true,
            .tools = tools,
            .formats = {.tools = format, .reasoning = strcmp(format, "harmony") == 0 ? "harmony" : "none"}};
        size_t calls = 0, most = 0, over;
        bool content = false;

        over = follow(&shape, true, &calls, &content, &most);
        if (over == 0 || calls != over || most != 1 || content)
            fail_msg("%s: %zu answers, %zu calls, content %d", format, over, calls, content);
    }
    json_decref(tools);
}

/* ---- random schemas ---- */

static json_t *random_schema(uint64_t *seed, int depth);

static json_t *random_object(uint64_t *seed, int depth)
{
    static const char *const names[] = {"a", "b_2", "Cd", "with blank", "\"quoted\"", "ü"};
    json_t *schema =
        json_pack("{s:s, s:{}, s:[], s:b}", "type", "object", "properties", "required", "additionalProperties", 0);
    const size_t known = depth == 0 ? 3 : MT_COUNT(names); /* of tools: names that all formats can write */

    for (size_t i = 0; i < known; i++) {
        if (constraint_random(seed) % 3 == 0)
            continue;
        json_object_set_new(json_object_get(schema, "properties"), names[i], random_schema(seed, depth + 1));
        if (constraint_random(seed) % 2)
            json_array_append_new(json_object_get(schema, "required"), json_string(names[i]));
    }
    return schema;
}

/* Strings of formats with tags are not bounded: those of the first level are free. */
static json_t *random_schema(uint64_t *seed, int depth)
{
    switch (constraint_random(seed) % (depth > 2 ? 6 : 8)) {
    case 0: return depth > 1 ? json_pack("{s:s, s:i}", "type", "string", "maxLength", 5) : load("{'type':'string'}");
    case 1: return load("{'type':'integer','minimum':-3,'maximum':12}");
    case 2: return load("{'type':'number'}");
    case 3: return load("{'type':'boolean'}");
    case 4: return load("{'type':'string','enum':['one','two words','<3','x: {y}, [z]']}");
    case 5:
        return depth > 1 ? load("{'anyOf':[{'type':'null'},{'const':7},{'type':'string','pattern':'^[a-c]+$'}]}")
                         : load("{'type':'null'}");
    case 6:
        return json_pack("{s:s, s:o, s:i}", "type", "array", "items", random_schema(seed, depth + 1), "maxItems", 3);
    default: return random_object(seed, depth + 1);
    }
}

static void arguments_fit_random_schemas_in_every_format(void **state)
{
    uint64_t seed = 11;

    (void)state;
    for (size_t i = 0; i < (unit_quick() ? 1 : 6) * MT_COUNT(formats); i++) {
        const char *format = formats[i % MT_COUNT(formats)];
        json_t *schema = random_object(&seed, 0);
        json_t *tools = json_pack("[{s:s, s:{s:s, s:b, s:O}}]", "type", "function", "function", "name", "random",
                                  "strict", 1, "parameters", schema);
        const mt_shape shape = {
            .calls = MT_SHAPE_CALLS_REQUIRED,
            .tools = tools,
            .formats = {.tools = format, .reasoning = strcmp(format, "harmony") == 0 ? "harmony" : "none"}};
        size_t calls = 0, most = 0, over;
        bool content = false;

        over = follow(&shape, i % 2, &calls, &content, &most);
        if (calls < over || content)
            fail_msg("%s: %zu answers, %zu calls, content %d", format, over, calls, content);
        json_decref(schema);
        json_decref(tools);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(required_calls_are_read_back_in_every_format),
    cmocka_unit_test(a_named_tool_is_called_once),
    cmocka_unit_test(strict_tools_leave_text_free_but_not_calls),
    cmocka_unit_test(content_begins_where_reasoning_ends),
    cmocka_unit_test(what_cannot_be_enforced_is_said),
    cmocka_unit_test(markers_of_forbidden_calls_are_never_written),
    cmocka_unit_test(forbidden_calls_leave_reasoning_and_wanted_content),
    cmocka_unit_test(calls_beside_wanted_content_are_whole_answers),
    cmocka_unit_test(text_beside_strict_calls_has_no_others),
    cmocka_unit_test(calls_of_its_own_accord_fit_and_are_no_more_than_wanted),
    cmocka_unit_test(patterns_hold_in_tags),
    cmocka_unit_test(one_call_is_not_followed_by_another),
    cmocka_unit_test(arguments_fit_random_schemas_in_every_format),
};

UNIT_MAIN(tests)
