#include "chat/shape.h"

#include <string.h>

#include "base/limits.h"
#include "chat/parse_core.h"
#include "chat/shape_inside.h"

#define LIST(w, ...) \
    mt_grammar_list((w)->g, (const mt_expr[]){__VA_ARGS__}, sizeof((const mt_expr[]){__VA_ARGS__}) / sizeof(mt_expr))

bool mt_shape_special(const mt_shape_writer *w, const char *text, size_t len, uint32_t *id)
{
    *id = mt_tokenizer_find(w->tokenizer, text, len);
    return *id != MT_TOKEN_NONE && mt_tokenizer_special(w->tokenizer, *id);
}

/* The length of the special token that text begins with; 0 for none. */
static size_t special_at(const mt_shape_writer *w, const char *text, uint32_t *id)
{
    if (*text != '<' && *text != '[')
        return 0;
    for (size_t len = strnlen(text, MT_LIMIT_GRAMMAR_MARKER); len > 1; len--)
        if (mt_shape_special(w, text, len, id))
            return len;
    return 0;
}

mt_expr mt_shape_markup(mt_shape_writer *w, const char *text)
{
    mt_expr all = mt_grammar_empty(w->g);
    size_t begin = 0, at = 0, len;
    uint32_t id;

    while (text[at]) {
        len = special_at(w, text + at, &id);
        if (len == 0) {
            at++;
            continue;
        }
        all = LIST(w, all, mt_grammar_literal(w->g, text + begin, at - begin), mt_grammar_token(w->g, id));
        begin = at += len;
    }
    return begin == at ? all : mt_grammar_seq(w->g, all, mt_grammar_literal(w->g, text + begin, at - begin));
}

mt_expr mt_shape_until(mt_shape_writer *w, const char *marker)
{
    uint32_t id;

    if (special_at(w, marker, &id))
        return mt_grammar_seq(w->g, mt_grammar_anything(w->g), mt_shape_markup(w, marker));
    return mt_grammar_until(w->g, marker, strlen(marker));
}

mt_expr mt_shape_without(mt_shape_writer *w, const char *marker)
{
    uint32_t id;

    if (*marker == '\0' || special_at(w, marker, &id))
        return mt_grammar_anything(w->g);
    return mt_grammar_without(w->g, marker, strlen(marker));
}

static bool strict(const mt_shape *s)
{
    for (size_t i = 0; i < json_array_size(s->tools); i++) {
        const json_t *function = json_object_get(json_array_get(s->tools, i), "function");

        if (json_is_true(json_object_get(function, "strict")))
            return true;
    }
    return false;
}

/* Calls that the model makes of its own accord are only looked after where somebody counts on it. */
static bool guards_calls(const mt_shape *s)
{
    return s->calls == MT_SHAPE_CALLS_AUTO && json_array_size(s->tools) > 0 && mt_shape_has_calls(s->formats.tools) &&
           (s->one || strict(s));
}

bool mt_shape_needed(const mt_shape *s)
{
    return s->source.kind != MT_SOURCE_NONE || s->calls == MT_SHAPE_CALLS_REQUIRED || guards_calls(s);
}

/* Nothing but calls. */
static mt_expr only_calls(mt_shape_writer *w, const mt_shape_call_exprs *c)
{
    const mt_expr first = mt_grammar_seq(w->g, mt_shape_markup(w, c->trigger), c->after);

    if (!c->each || w->shape->one)
        return first;
    return mt_grammar_seq(w->g, first,
                          mt_grammar_repeat(w->g, mt_grammar_seq(w->g, mt_shape_markup(w, c->between), first), 0,
                                            MT_LIMIT_SHAPE_CALLS - 1));
}

/* Text, and calls wherever their marker stands. Without a marker the first character tells them apart. */
static mt_expr free_calls(mt_shape_writer *w, const mt_shape_call_exprs *c)
{
    static const mt_char_range others[] = {{0, '[' - 1}, {'[' + 1, '{' - 1}, {'{' + 1, 0x10ffff}};
    const mt_expr text = mt_shape_without(w, c->trigger);
    mt_expr call;

    if (*c->trigger == '\0')
        return mt_grammar_or(w->g, only_calls(w, c),
                             mt_grammar_maybe(w->g, mt_grammar_seq(w->g, mt_grammar_chars(w->g, others, 3), text)));
    call = mt_grammar_seq(w->g, mt_shape_until(w, c->trigger), c->after);
    if (!c->each || w->shape->one)
        return mt_grammar_or(w->g, text, call);
    return mt_grammar_seq(w->g, mt_grammar_repeat(w->g, call, 0, MT_GRAMMAR_UNLIMITED), text);
}

static bool harmony(const mt_shape *s)
{
    return strcmp(s->formats.reasoning, "harmony") == 0 || strcmp(s->formats.tools, "harmony") == 0;
}

static bool write_content(mt_shape_writer *w, mt_expr *out)
{
    const char *head = harmony(w->shape) ? "<|channel|>final<|message|>" : "";

    if (!mt_source_expr(&w->shape->source, &w->j, out, w->err))
        return false;
    *out = mt_grammar_seq(w->g, mt_shape_markup(w, head), *out);
    return true;
}

/* What comes behind the reasoning. */
static bool write_answer(mt_shape_writer *w, mt_expr *out)
{
    const mt_shape *s = w->shape;
    mt_shape_call_exprs calls;
    mt_expr content;

    if (s->calls != MT_SHAPE_CALLS_REQUIRED && !guards_calls(s))
        return write_content(w, out);
    if (!mt_shape_write_calls(w, &calls))
        return false;
    if (s->calls == MT_SHAPE_CALLS_REQUIRED) {
        *out = only_calls(w, &calls);
        return true;
    }
    if (s->source.kind == MT_SOURCE_NONE && !harmony(s)) {
        *out = free_calls(w, &calls);
        return true;
    }
    if (!write_content(w, &content))
        return false;
    *out = mt_grammar_or(w->g, content, only_calls(w, &calls));
    return true;
}

/* What reasoning begins and ends with, as the parsers' tables have it. */
static bool find_markers(const char *format, const char **open, const char **close)
{
    const mt_parse_table *table;

    if (!mt_parse_find_reasoning(format, &table) || !table || table->framed || !table->opened)
        return false;
    *open = table->states[table->opened].rules[0].marker;
    *close = table->states[table->opened].rules[1].marker;
    return true;
}

static mt_expr write_reasoning(mt_shape_writer *w)
{
    const mt_shape *s = w->shape;
    const mt_expr lines = mt_grammar_repeat(w->g, mt_grammar_text(w->g, "\n"), 0, 2);
    const char *open, *close;
    mt_expr rest;

    if (harmony(s)) {
        rest = LIST(w, mt_shape_until(w, "<|end|>"), mt_shape_markup(w, "<|start|>assistant"));
        if (s->opened == MT_CHAT_OPENED_REASONING)
            return rest;
        return mt_grammar_maybe(w->g, LIST(w, mt_shape_markup(w, "<|channel|>analysis<|message|>"), rest));
    }
    if (s->opened == MT_CHAT_OPENED_ANSWER || !find_markers(s->formats.reasoning, &open, &close))
        return mt_grammar_empty(w->g);
    rest = mt_grammar_seq(w->g, mt_shape_until(w, close), lines);
    if (s->opened == MT_CHAT_OPENED_REASONING)
        return rest;
    return mt_grammar_maybe(w->g, mt_grammar_seq(w->g, mt_shape_markup(w, open), rest));
}

bool mt_shape_write(const mt_shape *shape, const mt_tokenizer *tokenizer, mt_grammar *g, mt_error *err)
{
    mt_shape_writer w = {.shape = shape, .tokenizer = tokenizer, .g = g, .j = {.g = g}, .err = err};
    mt_expr answer;

    if (!write_answer(&w, &answer))
        return false;
    mt_grammar_define(g, MT_GRAMMAR_START, mt_grammar_seq(g, write_reasoning(&w), answer));
    return true;
}
