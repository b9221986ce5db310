/* How each format writes calls, for writing them: one way of those that its parser reads. */
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "chat/shape_inside.h"

typedef enum numbering { UNNUMBERED, NUMBER_FIRST /* before the name */, NUMBER_LAST } numbering;
typedef enum writing { OBJECT, TAGS, KEYWORDS } writing;

typedef struct layout {
    const char *format;
    const char *content; /* what content begins with where it is not a call; NULL: nothing */
    const char *needs;   /* a special token without which the next layout of the format is meant; NULL: none */
    const char *trigger; /* begins the first call, or each one */
    bool each, last;
    const char *open;            /* behind a trigger that is not each call's; NULL here and below: nothing */
    const char *before, *behind; /* around the name */
    numbering numbered;          /* where a number stands, and then `numbered_end` */
    const char *numbered_end;
    const char *after, *between, *close; /* behind a call, between two (NULL: there is only one), behind the last */
    writing arguments;
    const mt_shape_tags *tags; /* of TAGS */
    mt_notation notation;
} layout;

static const mt_shape_tags qwen_tags = {"<parameter=", ">\n", "", "", "\n</parameter>\n"};
static const mt_shape_tags seed_tags = {"<parameter=", ">", "", "", "</parameter>\n"};
static const mt_shape_tags glm4_tags = {"<arg_key>", "</arg_key>\n<arg_value>", "", "", "</arg_value>\n"};
static const mt_shape_tags glm47_tags = {"<arg_key>", "</arg_key><arg_value>", "", "", "</arg_value>"};
static const mt_shape_tags minimax_tags = {"<parameter name=\"", "\">", "", "", "</parameter>\n"};
static const mt_shape_tags minicpm_tags = {"<param name=\"", "\">", "", "", "</param>"};
static const mt_shape_tags dsml_tags = {"<｜DSML｜parameter name=\"", "\" string=\"", "true\">", "false\">",
                                        "</｜DSML｜parameter>\n"};

#define JSON_CALL .before = "{\"name\": \"", .behind = "\", \"arguments\": ", .after = "}"
#define PYTHON_CALLS(separated) \
    .behind = "(", .arguments = KEYWORDS, .notation = MT_NOTATION_PYTHON, .after = ")", .between = separated
#define JSON_LIST .open = "[", .between = ", ", .close = "]", JSON_CALL

static const layout layouts[] = {
    {.format = "hermes",
     .trigger = "<tool_call>",
     .each = true,
     .before = "\n{\"name\": \"",
     .behind = "\", \"arguments\": ",
     .after = "}\n</tool_call>",
     .between = "\n"},
    {.format = "qwen3_xml",
     .trigger = "<tool_call>",
     .each = true,
     .before = "\n<function=",
     .behind = ">\n",
     .after = "</function>\n</tool_call>",
     .between = "\n",
     .arguments = TAGS,
     .tags = &qwen_tags},
    {.format = "seed_oss",
     .trigger = "<seed:tool_call>",
     .each = true,
     .before = "\n<function=",
     .behind = ">\n",
     .after = "</function>\n</seed:tool_call>",
     .between = "\n",
     .arguments = TAGS,
     .tags = &seed_tags},
    {.format = "glm4",
     .trigger = "<tool_call>",
     .each = true,
     .behind = "\n",
     .after = "</tool_call>",
     .between = "\n",
     .arguments = TAGS,
     .tags = &glm4_tags},
    {.format = "glm47",
     .trigger = "<tool_call>",
     .each = true,
     .after = "</tool_call>",
     .between = "",
     .arguments = TAGS,
     .tags = &glm47_tags},
    {.format = "minimax_m2",
     .trigger = "<minimax:tool_call>",
     .open = "\n",
     .before = "<invoke name=\"",
     .behind = "\">\n",
     .after = "</invoke>\n",
     .between = "",
     .close = "</minimax:tool_call>",
     .arguments = TAGS,
     .tags = &minimax_tags},
    {.format = "minicpm5",
     .trigger = "<function name=\"",
     .each = true,
     .behind = "\">",
     .after = "</function>",
     .between = "\n",
     .arguments = TAGS,
     .tags = &minicpm_tags},
    {.format = "deepseek_v32",
     .trigger = "<｜DSML｜function_calls>",
     .open = "\n",
     .before = "<｜DSML｜invoke name=\"",
     .behind = "\">\n",
     .after = "</｜DSML｜invoke>\n",
     .between = "",
     .close = "</｜DSML｜function_calls>",
     .arguments = TAGS,
     .tags = &dsml_tags},
    {.format = "deepseek_v3",
     .trigger = "<｜tool▁calls▁begin｜>",
     .before = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .behind = "\n```json\n",
     .after = "\n```<｜tool▁call▁end｜>",
     .between = "\n",
     .close = "<｜tool▁calls▁end｜>"},
    {.format = "deepseek_v31",
     .trigger = "<｜tool▁calls▁begin｜>",
     .before = "<｜tool▁call▁begin｜>",
     .behind = "<｜tool▁sep｜>",
     .after = "<｜tool▁call▁end｜>",
     .between = "",
     .close = "<｜tool▁calls▁end｜>"},
    {.format = "kimi_k2",
     .trigger = "<|tool_calls_section_begin|>",
     .before = "<|tool_call_begin|>functions.",
     .behind = ":",
     .numbered = NUMBER_LAST,
     .numbered_end = "<|tool_call_argument_begin|>",
     .after = "<|tool_call_end|>",
     .between = "",
     .close = "<|tool_calls_section_end|>"},
    {.format = "llama3",
     .trigger = "",
     .before = "{\"name\": \"",
     .behind = "\", \"parameters\": ",
     .after = "}",
     .between = "; "},
    {.format = "mistral",
     .needs = "[ARGS]",
     .trigger = "[TOOL_CALLS]",
     .each = true,
     .behind = "[ARGS]",
     .between = ""},
    {.format = "mistral", .trigger = "[TOOL_CALLS]", .open = " [", JSON_CALL, .between = ", ", .close = "]"},
    {.format = "harmony",
     .content = "<|channel|>final<|message|>",
     .trigger = "<|channel|>",
     .before = "commentary to=functions.",
     .behind = " <|constrain|>json<|message|>"},
    {.format = "granite", .needs = "<|tool_call|>", .trigger = "<|tool_call|>", JSON_LIST},
    {.format = "granite", .trigger = "<tool_call>", JSON_LIST},
    {.format = "granite_20b", .trigger = "<function_call>", .each = true, .last = true, .between = "\n", JSON_CALL},
    {.format = "nemotron", .trigger = "<TOOLCALL>", .open = "[", JSON_CALL, .between = ", ", .close = "]</TOOLCALL>"},
    {.format = "tool_calls",
     .trigger = "<tool_calls>",
     .open = "[",
     JSON_CALL,
     .between = ", ",
     .close = "]</tool_calls>"},
    {.format = "internlm2",
     .trigger = "<|action_start|>",
     .open = "<|plugin|>",
     .before = "{\"name\": \"",
     .behind = "\", \"parameters\": ",
     .after = "}",
     .close = "<|action_end|>"},
    {.format = "xlam", .trigger = "", JSON_LIST},
    {.format = "phi4_mini", .trigger = "functools[", .between = ", ", .close = "]", JSON_CALL},
    {.format = "cohere",
     .trigger = "<|START_ACTION|>",
     .open = "[\n    ",
     .before = "{\"tool_call_id\": \"",
     .numbered = NUMBER_FIRST,
     .numbered_end = "\", \"tool_name\": \"",
     .behind = "\", \"parameters\": ",
     .after = "}",
     .between = ",\n    ",
     .close = "\n]<|END_ACTION|>"},
    {.format = "gigachat", .trigger = "<|function_call|>", JSON_CALL},
    {.format = "functionary_v2",
     .content = "all\n<|content|>",
     .trigger = "",
     .behind = "\n<|content|>",
     .between = "\n<|from|>assistant\n<|recipient|>"},
    {.format = "functionary_v31",
     .trigger = "<function=",
     .each = true,
     .behind = ">",
     .after = "</function>",
     .between = ""},
    {.format = "functionary", .content = "all\n", .trigger = "", .behind = "\n", .between = ">>>"},
    {.format = "pythonic", .trigger = "[", .close = "]", PYTHON_CALLS(", ")},
    {.format = "lfm2",
     .trigger = "<|tool_call_start|>",
     .open = "[",
     .close = "]<|tool_call_end|>",
     PYTHON_CALLS(", ")},
    {.format = "gemma3", .trigger = "```tool_code", .open = "\n", .close = "\n```", PYTHON_CALLS("\n")},
    {.format = "gemma4",
     .trigger = "<|tool_call>",
     .each = true,
     .before = "call:",
     .after = "<tool_call|>",
     .between = "",
     .notation = MT_NOTATION_GEMMA},
};

static const char *const same_as[][2] = {{"qwen3", "hermes"}, {"step3p5", "qwen3_xml"}, {"llama4", "pythonic"}};

/* The layout of a format; NULL where there is none. w may be NULL: any will do. */
static const layout *find(const mt_shape_writer *w, const char *format)
{
    uint32_t id;

    for (size_t i = 0; i < MT_COUNT(same_as); i++)
        if (strcmp(same_as[i][0], format) == 0)
            format = same_as[i][1];
    for (size_t i = 0; i < MT_COUNT(layouts); i++)
        if (strcmp(layouts[i].format, format) == 0 &&
            (!w || !layouts[i].needs || mt_shape_special(w, layouts[i].needs, strlen(layouts[i].needs), &id)))
            return &layouts[i];
    return NULL;
}

bool mt_shape_harmony(const mt_shape *s)
{
    return strcmp(s->formats.reasoning, "harmony") == 0 || strcmp(s->formats.tools, "harmony") == 0;
}

const char *mt_shape_head(const mt_shape *s)
{
    const layout *l = find(NULL, mt_shape_harmony(s) ? "harmony" : s->formats.tools);

    return l && l->content ? l->content : "";
}

const char *mt_shape_trigger(mt_shape_writer *w)
{
    const layout *l = find(w, w->shape->formats.tools);

    return l ? l->trigger : "";
}

/* A tool's declaration, in either of the shapes in which it is sent. */
static const json_t *function_of(const json_t *tool)
{
    const json_t *function = json_object_get(tool, "function");

    return function ? function : tool;
}

const char *mt_shape_name(const json_t *tool)
{
    return json_string_value(json_object_get(function_of(tool), "name"));
}

static mt_expr number(mt_shape_writer *w)
{
    mt_byteset digits = {0};

    mt_byteset_add(&digits, '0', '9');
    return mt_grammar_repeat(w->g, mt_grammar_bytes(w->g, &digits), 1, 2);
}

static bool write_arguments(mt_shape_writer *w, const layout *l, const json_t *schema, bool strict, mt_expr *out)
{
    if (json_is_null(schema))
        schema = NULL;
    switch (l->arguments) {
    case OBJECT: break;
    case TAGS: return mt_shape_tagged(w, schema, strict, l->tags, out);
    case KEYWORDS: return mt_shape_keywords(w, schema, strict, out);
    }
    return mt_shape_object(w, schema, strict, out);
}

static bool write_call(mt_shape_writer *w, const layout *l, const json_t *function, mt_expr *out)
{
    const char *name = json_string_value(json_object_get(function, "name"));
    const bool strict = json_is_true(json_object_get(function, "strict"));
    mt_expr arguments, parts[6], numbered = mt_grammar_empty(w->g);
    size_t count = 0;

    if (!write_arguments(w, l, json_object_get(function, "parameters"), strict, &arguments))
        return mt_fail_within(w->err, "tool \"%.100s\"", name) || mt_fail_about(w->err, "tools");
    if (l->numbered != UNNUMBERED)
        numbered = mt_grammar_seq(w->g, number(w), mt_shape_markup(w, l->numbered_end));
    parts[count++] = mt_shape_markup(w, l->before);
    if (l->numbered == NUMBER_FIRST)
        parts[count++] = numbered;
    parts[count++] = mt_grammar_text(w->g, name);
    parts[count++] = mt_shape_markup(w, l->behind);
    if (l->numbered == NUMBER_LAST)
        parts[count++] = numbered;
    parts[count++] = arguments;
    parts[count++] = mt_shape_markup(w, l->after);
    *out = mt_grammar_list(w->g, parts, count);
    return true;
}

/* Every name that may be called is that of a tool. */
static bool check_names(const mt_shape *s, mt_error *err)
{
    json_t *missing = json_copy((json_t *)(uintptr_t)s->names);
    void *first;

    for (size_t i = 0; missing && i < json_array_size(s->tools); i++)
        if (mt_shape_name(json_array_get(s->tools, i)))
            json_object_del(missing, mt_shape_name(json_array_get(s->tools, i)));
    first = json_object_iter(missing);
    if (first)
        mt_fail(err, MT_E_INVALID, "\"tool_choice\" names the tool \"%.100s\", which \"tools\" does not have",
                json_object_iter_key(first));
    json_decref(missing);
    return !first || mt_fail_about(err, "tool_choice");
}

/* Any of the tools that may be called. */
static bool write_any(mt_shape_writer *w, const layout *l, mt_expr *out)
{
    const mt_shape *s = w->shape;
    mt_expr *parts = mt_alloc_array(json_array_size(s->tools) + 1, sizeof(*parts));
    size_t count = 0;
    bool ok = check_names(s, w->err);

    for (size_t i = 0; ok && i < json_array_size(s->tools); i++) {
        const json_t *function = function_of(json_array_get(s->tools, i));
        const char *name = json_string_value(json_object_get(function, "name"));

        if (name && (!s->names || json_object_get(s->names, name)))
            ok = write_call(w, l, function, &parts[count++]);
    }
    *out = mt_grammar_any(w->g, parts, count);
    mt_free(parts);
    return ok;
}

bool mt_shape_write_calls(mt_shape_writer *w, mt_shape_call_exprs *out)
{
    const layout *l = find(w, w->shape->formats.tools);
    mt_rule rule;
    mt_expr any, more;

    if (!l)
        return mt_fail(w->err, MT_E_INVALID,
                       "\"tool_choice\" cannot be enforced for this model, whose format of calls is \"%s\": send auto "
                       "or none",
                       w->shape->formats.tools) ||
               mt_fail_about(w->err, "tool_choice");
    w->arguments = (mt_json){.g = w->g, .notation = l->notation, .quotes = mt_shape_markup(w, "<|\"|>")};
    rule = mt_grammar_rule(w->g); /* tools are written once, however many calls there are */
    if (!write_any(w, l, &any))
        return false;
    mt_grammar_define(w->g, rule, any);
    any = mt_grammar_call(w->g, rule);
    *out = (mt_shape_call_exprs){
        .trigger = l->trigger, .after = any, .each = l->each, .last = l->last, .between = l->between};
    if (l->each)
        return true;
    more = w->shape->one || !l->between
               ? mt_grammar_empty(w->g)
               : mt_grammar_repeat(w->g, mt_grammar_seq(w->g, mt_shape_markup(w, l->between), any), 0,
                                   MT_LIMIT_SHAPE_CALLS - 1);
    out->after =
        mt_grammar_list(w->g, (mt_expr[]){mt_shape_markup(w, l->open), any, more, mt_shape_markup(w, l->close)}, 4);
    return true;
}
