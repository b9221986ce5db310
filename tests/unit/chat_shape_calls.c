/* What shapes let models write, parsers read: calls of the declared tools with arguments that fit. */
#include "unit.h"

#include "shape.h"

typedef struct heard {
    const json_t *tools, *names;
    size_t calls;
    bool content;
    char name[64];
    mt_buf arguments;
} heard;

static bool valid(const json_t *schema, const json_t *value);

static bool valid_object(const json_t *schema, const json_t *value)
{
    json_t *properties = json_object_get(schema, "properties"), *own;
    const json_t *required = json_object_get(schema, "required");
    const char *key;

    json_object_foreach((json_t *)value, key, own) {
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
    } else if (strcmp(h->name, "numbers") == 0) {
        const char *key;
        json_t *own;

        json_object_foreach(arguments, key, own)
            if (!json_is_integer(own) && !json_is_null(own))
                fail_msg("%s is no number: %s", key, h->arguments.data);
        assert_int_equal(json_object_size(arguments), 8);
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
        assert_true(!h->names || json_object_get(h->names, e->name));
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
    *h = (heard){.tools = shape->tools, .names = shape->names};
    mt_buf_init(&h->arguments, 1 << 20);
    feed(parser, text, len, h);
    mt_parser_finish(parser, hear, h);
    mt_parser_free(parser);
    mt_buf_free(&h->arguments);
}

/* How the answers went that were over. */
typedef struct followed {
    size_t answers, calls;
    size_t fewest, most; /* calls of one */
    bool content;
} followed;

static void begin_with(mt_run *run, mt_constraint *c, const mt_shape *shape, const char *beginning)
{
    mt_run_begin(run, c);
    for (const char *at = beginning; *at; at++)
        if (!mt_run_token(run, (unsigned char)*at))
            fail_msg("%s may not begin with %s", shape->formats.tools, beginning);
}

static void add_answer(followed *f, const heard *h)
{
    f->fewest = f->answers == 0 || h->calls < f->fewest ? h->calls : f->fewest;
    f->most = h->calls > f->most ? h->calls : f->most;
    f->answers++;
    f->calls += h->calls;
    f->content |= h->content;
}

/* Follows a shape at random from the end of a beginning. */
static followed follow(const mt_shape *shape, bool with_specials, const char *beginning)
{
    mt_tokenizer *tokenizer = constraint_tokenizer(specials, with_specials ? MT_COUNT(specials) : 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);
    mt_error err = {0};
    mt_constraint *c = compile(shape, tokenizer, v, &err);
    uint64_t seed = 5;
    followed f = {0};

    if (!c)
        fail_msg("%s: %s", shape->formats.tools, err.text);
    for (int i = 0; i < (unit_quick() ? 3 : 12); i++) {
        mt_run run;
        mt_buf text;
        heard h;

        begin_with(&run, c, shape, beginning);
        mt_buf_init(&text, 1 << 20);
        mt_buf_puts(&text, beginning);
        if (constraint_walk_on(&run, tokenizer, &seed, 3000, &text)) {
            parse(shape, text.len ? text.data : "", text.len, &h);
            add_answer(&f, &h);
        }
        mt_buf_free(&text);
    }
    mt_constraint_release(c);
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    return f;
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
        const followed f = follow(&shape, i % 2, "");

        if (f.answers == 0 || f.calls < f.answers || f.content)
            fail_msg("%s: %zu answers, %zu calls, content %d", format, f.answers, f.calls, f.content);
    }
    json_decref(tools);
}

static void a_named_tool_is_called_once(void **state)
{
    json_t *tools = load(tools_json), *names = load("{'now':true}");
    const mt_shape shape = {.calls = MT_SHAPE_CALLS_REQUIRED,
                            .names = names,
                            .one = true,
                            .tools = tools,
                            .formats = {.tools = "hermes", .reasoning = "none"}};
    const followed f = follow(&shape, true, "");

    (void)state;
    assert_int_equal(f.calls, f.answers);
    assert_int_equal(f.most, 1);
    json_decref(names);
    json_decref(tools);
}

static void only_allowed_tools_are_called_in_every_format(void **state)
{
    json_t *tools = load(tools_json), *names = load("{'get_time':true,'now':true}");

    (void)state;
    for (size_t i = 0; i < MT_COUNT(formats); i++) {
        const mt_shape shape = {
            .calls = MT_SHAPE_CALLS_REQUIRED,
            .names = names,
            .tools = tools,
            .formats = {.tools = formats[i], .reasoning = strcmp(formats[i], "harmony") == 0 ? "harmony" : "none"}};
        const followed f = follow(&shape, i % 2, "");

        if (f.answers == 0 || f.calls < f.answers)
            fail_msg("%s: %zu answers, %zu calls", formats[i], f.answers, f.calls);
    }
    json_decref(names);
    json_decref(tools);
}

/* Of a model that may call or not: what it calls is one of them, and there is no way to begin another. */
static void a_call_of_its_own_accord_is_an_allowed_one(void **state)
{
    json_t *tools = load(tools_json), *names = load("{'now':true}");
    const mt_shape shape = {.names = names, .tools = tools, .formats = {.tools = "hermes", .reasoning = "none"}};
    mt_tokenizer *tokenizer = constraint_tokenizer(NULL, 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);
    mt_error err = {0};
    mt_constraint *c = compile(&shape, tokenizer, v, &err);
    const char *refused = "Well.<tool_call>\n{\"name\": \"g";
    const followed f = follow(&shape, false, "Well.<tool_call>\n{\"name\": \"n");
    mt_run run;

    (void)state;
    assert_true(mt_shape_needed(&shape));
    assert_true(f.answers > 0 && f.calls >= f.answers);
    begin_with(&run, c, &shape, "Well.<tool_call>\n{\"name\": \"");
    assert_false(mt_run_token(&run, (unsigned char)refused[strlen(refused) - 1]));
    mt_run_end(&run);
    mt_constraint_release(c);
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    json_decref(names);
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
        const followed f = follow(&shape, true, "");

        if (f.answers == 0 || f.calls != f.answers || f.most != 1 || f.content)
            fail_msg("%s: %zu answers, %zu calls, content %d", format, f.answers, f.calls, f.content);
    }
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

static void calls_of_its_own_accord_fit_and_are_no_more_than_wanted(void **state)
{
    json_t *tools = load(tools_json);

    (void)state;
    for (size_t i = 0; i < 2 * MT_COUNT(beginnings); i++) {
        const char *format = beginnings[i / 2][0];
        const bool harmony = strcmp(format, "harmony") == 0;
        const mt_shape shape = {
            .one = i % 2, .tools = tools, .formats = {.tools = format, .reasoning = harmony ? "harmony" : "none"}};

        const followed f = follow(&shape, false, beginnings[i / 2][1]);

        if (f.answers == 0 || f.fewest == 0 || (shape.one && f.most > 1))
            fail_msg("%s: %zu answers, %zu to %zu calls", format, f.answers, f.fewest, f.most);
    }
    json_decref(tools);
}

/* Schemas that allow no string, each said in another way: their values are JSON in every format. */
static void what_is_no_string_is_followed_in_every_format(void **state)
{
    json_t *tools =
        load("[{'type':'function','function':{'name':'numbers','strict':true,'parameters':{'type':'object',"
             "'properties':{'a':{'type':['integer','null']},'b':{'anyOf':[{'type':'integer'},{'type':'null'}]},"
             "'c':{'const':7},'d':{'enum':[1,2]},'e':{'type':['string','integer'],'enum':[3]},"
             "'f':{'anyOf':[{'$ref':'#/$defs/n'},{'type':'null'}]},'g':{'$ref':'#/properties/d'},"
             "'h':{'$ref':'#/$defs/two~1more/0'}},'$defs':{'n':{'type':'integer'},'two/more':[{'$ref':'#/$defs/n'}]},"
             "'required':['a','b','c','d','e','f','g','h'],'additionalProperties':false}}}]");

    (void)state;
    for (size_t i = 0; i < MT_COUNT(formats); i++) {
        const char *format = formats[i];
        const mt_shape shape = {
            .calls = MT_SHAPE_CALLS_REQUIRED,
            .tools = tools,
            .formats = {.tools = format, .reasoning = strcmp(format, "harmony") == 0 ? "harmony" : "none"}};
        const followed f = follow(&shape, true, "");

        if (f.answers == 0 || f.calls < f.answers)
            fail_msg("%s: %zu answers, %zu calls", format, f.answers, f.calls);
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
    case 5: return load("{'anyOf':[{'type':'null'},{'const':7},{'type':'string','pattern':'^[a-c]+$'}]}");
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
        const followed f = follow(&shape, i % 2, "");

        if (f.calls < f.answers || f.content)
            fail_msg("%s: %zu answers, %zu calls, content %d", format, f.answers, f.calls, f.content);
        json_decref(schema);
        json_decref(tools);
    }
}

/* ---- values in tags that may be a string or something else ---- */

static const struct tagged {
    const char *schema;  /* of the one argument */
    const char *good[6]; /* texts that may stand in its tags; NULL: no more */
    const char *bad[6];
} tagged[] = {
    {"{'type':['string','integer'],'minimum':5}",
     {"5", "77", "five", "5 apples", "a <b> c", "007 spies"},
     {"4", " 4", "-1", "3", NULL}},
    {"{'type':['string','integer']}", {"5", "-3", "true", "{}", "[1]", "x"}, {"1.5", "1e3", " 2.0 ", NULL}},
    {"{'anyOf':[{'type':'string'},{'type':'null'}]}", {"null", "5", "nulls", "<p>", "{}"}, {"None", " null ", NULL}},
    {"{'anyOf':[{'type':'string','pattern':'^[ab]+$'},{'type':'object','properties':{'n':{'type':'integer'}},"
     "'required':['n'],'additionalProperties':false}]}",
     {"ab", "{\"n\": 1}", "{\"n\":-2}"},
     {"abc", "{}", "{\"n\": \"1\"}", "[]", "c", NULL}},
    {"{'enum':['a','b c',7,null,true]}", {"a", "b c", "7", "null", "true"}, {"b", "8", "false", "None", "\"a\""}},
    {"{'enum':['7',8]}", {"8"}, {"7", "9", NULL}},
    {"{'type':['string','boolean'],'maxLength':3}", {"abc", "true", "5", "false"}, {"abcd", "True", "False", NULL}},
    {"{'oneOf':[{'type':'string','enum':['x']},{'type':'array','items':{'type':'string'}}]}",
     {"x", "[]", "[\"y\"]"},
     {"y", "[1]", "x ", NULL}},
    {"{'type':'string','x-grammar':{'syntax':'lark','definition':'start: /[a-c<]+/ (X | Y)\\nX: /x/\\nY: /y+/'}}",
     {"a<bx", "cyy"},
     {"ab", "x", "a<dx", NULL}},
    {"{'allOf':[{'type':'string','minLength':2}]}", {"ab", "a5"}, {"a", "55", "null", NULL}},
};

static void check_tagged(const char *format, const char *before, const char *behind, const struct tagged *row)
{
    json_t *schema = json_pack("{s:s, s:{s:o}, s:[s], s:b}", "type", "object", "properties", "v", load(row->schema),
                               "required", "v", "additionalProperties", 0);
    json_t *tools = json_pack("[{s:s, s:{s:s, s:b, s:o}}]", "type", "function", "function", "name", "f", "strict", 1,
                              "parameters", schema);
    const mt_shape shape = {.calls = MT_SHAPE_CALLS_REQUIRED,
                            .one = true,
                            .tools = tools,
                            .formats = {.tools = format, .reasoning = "none"}};
    mt_tokenizer *tokenizer = constraint_tokenizer(NULL, 0);
    mt_vocabulary *v = constraint_vocabulary(tokenizer);
    mt_error err = {0};
    mt_constraint *c = compile(&shape, tokenizer, v, &err);
    char text[512];

    if (!c)
        fail_msg("%s: %s: %s", format, row->schema, err.text);
    for (size_t i = 0; i < 2 * MT_COUNT(row->good); i++) {
        const char *value = i % 2 ? row->bad[i / 2] : row->good[i / 2];

        if (!value)
            continue;
        snprintf(text, sizeof(text), "%s%s%s", before, value, behind);
        if (constraint_fits(c, text, strlen(text)) != (i % 2 == 0))
            fail_msg("%s: %s is %s: %s", format, row->schema, i % 2 ? "taken" : "refused", text);
    }
    mt_constraint_release(c);
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    json_decref(tools);
}

static void values_in_tags_fit_strict_schemas(void **state)
{
    static const char *const around[][3] = {
        {"qwen3_xml", "<tool_call>\n<function=f>\n<parameter=v>\n", "\n</parameter>\n</function>\n</tool_call>"},
        {"seed_oss", "<seed:tool_call>\n<function=f>\n<parameter=v>", "</parameter>\n</function>\n</seed:tool_call>"},
        {"glm47", "<tool_call>f<arg_key>v</arg_key><arg_value>", "</arg_value></tool_call>"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(around); i++)
        for (size_t k = 0; k < MT_COUNT(tagged); k++)
            check_tagged(around[i][0], around[i][1], around[i][2], &tagged[k]);
}

/* Where tags say what is a string, no text is taken for something else. */
static void tags_that_say_what_is_a_string(void **state)
{
    static const struct tagged string = {"{'type':['string','integer'],'minimum':5}", {"4", "x", "7"}, {NULL}},
                               number = {"{'type':['string','integer'],'minimum':5}", {"5", "7"}, {"4", "x", NULL}};
    static const char behind[] = "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>";

    (void)state;
    check_tagged(
        "deepseek_v32",
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"v\" string=\"true\">", behind,
        &string);
    check_tagged(
        "deepseek_v32",
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"v\" string=\"false\">",
        behind, &number);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_in_tags_fit_strict_schemas),
    cmocka_unit_test(tags_that_say_what_is_a_string),
    cmocka_unit_test(required_calls_are_read_back_in_every_format),
    cmocka_unit_test(a_named_tool_is_called_once),
    cmocka_unit_test(only_allowed_tools_are_called_in_every_format),
    cmocka_unit_test(a_call_of_its_own_accord_is_an_allowed_one),
    cmocka_unit_test(one_call_is_not_followed_by_another),
    cmocka_unit_test(calls_of_its_own_accord_fit_and_are_no_more_than_wanted),
    cmocka_unit_test(what_is_no_string_is_followed_in_every_format),
    cmocka_unit_test(arguments_fit_random_schemas_in_every_format),
};

UNIT_MAIN(tests)
