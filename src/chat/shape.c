/* The parts of an answer's grammar, joined: see shape.h. */
#include "chat/shape.h"

#include <string.h>

#include "chat/limits.h"
#include "chat/shape_inside.h"

/* Whether a tool is declared as strict. */
static bool strict(const mt_shape *s)
{
    for (size_t i = 0; i < json_array_size(s->tools); i++) {
        const json_t *function = json_object_get(json_array_get(s->tools, i), "function");

        if (json_is_true(json_object_get(function, "strict")))
            return true;
    }
    return false;
}

/* Whether calls that the model makes of its own accord are constrained: where the request relies on it, or where the
   content is constrained and calls are the alternative. */
static bool guards_calls(const mt_shape *s)
{
    return s->calls == MT_SHAPE_CALLS_AUTO && mt_shape_has_tools(s) &&
           (s->one || s->names || strict(s) || s->source.kind != MT_SOURCE_NONE);
}

bool mt_shape_needed(const mt_shape *s)
{
    return s->source.kind != MT_SOURCE_NONE || s->calls == MT_SHAPE_CALLS_REQUIRED || guards_calls(s) ||
           mt_shape_forbids(s);
}

/* Calls and nothing else. */
static mt_expr only_calls(mt_shape_writer *w, const mt_shape_call_exprs *c)
{
    const mt_expr first = mt_grammar_seq(w->g, mt_shape_markup(w, c->trigger), c->after);

    if (!c->each || w->shape->one)
        return first;
    return mt_grammar_seq(w->g, first,
                          mt_grammar_repeat(w->g, mt_grammar_seq(w->g, mt_shape_markup(w, c->between), first), 0,
                                            MT_LIMIT_SHAPE_CALLS - 1));
}

/* Text with calls wherever their marker stands. In formats without a marker, the answer is either calls, or text that
   does not begin as calls do. */
static mt_expr free_calls(mt_shape_writer *w, const mt_shape_call_exprs *c)
{
    static const mt_char_range others[] = {{0, 8},        {11, 12},           {14, 31},
                                           {33, '[' - 1}, {'[' + 1, '{' - 1}, {'{' + 1, 0x10ffff}};
    const mt_expr text = mt_shape_talk(w), calls = only_calls(w, c);
    const mt_byteset blank = {{UINT64_C(1) << ' ' | 1 << '\n' | 1 << '\r' | 1 << '\t'}};
    mt_expr call;

    if (*c->trigger == '\0')
        return MT_SHAPE_LIST(w, mt_grammar_repeat(w->g, mt_grammar_bytes(w->g, &blank), 0, MT_GRAMMAR_UNLIMITED),
                             mt_grammar_any(w->g,
                                            (mt_expr[]){calls, mt_grammar_empty(w->g),
                                                        mt_grammar_seq(w->g, mt_grammar_chars(w->g, others, 6), text)},
                                            3));
    if (w->shape->one || c->last)
        return mt_grammar_or(w->g, text, mt_grammar_seq(w->g, text, calls));
    call = MT_SHAPE_LIST(w, text, mt_shape_markup(w, c->trigger), c->after);
    return mt_grammar_seq(w->g, mt_grammar_repeat(w->g, call, 0, MT_GRAMMAR_UNLIMITED), text);
}

/* Content, with what the format writes around it. */
static bool write_content(mt_shape_writer *w, mt_expr *out)
{
    const char *open = "", *close = "";

    if (w->shape->source.kind == MT_SOURCE_NONE) {
        *out = mt_shape_talk(w);
    } else {
        if (!mt_source_expr(&w->shape->source, &w->j, out, w->err))
            return false;
        mt_shape_frame(w, &open, &close);
        *out = MT_SHAPE_LIST(w, mt_grammar_maybe(w->g, mt_shape_markup(w, open)), *out,
                             mt_grammar_maybe(w->g, mt_shape_markup(w, close)));
    }
    *out = mt_grammar_seq(w->g, mt_shape_markup(w, mt_shape_head(w->shape)), *out);
    return true;
}

/* The part of the grammar after the reasoning. */
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
    if (s->source.kind == MT_SOURCE_NONE && *mt_shape_head(s) == '\0') {
        *out = free_calls(w, &calls);
        return true;
    }
    if (!write_content(w, &content))
        return false;
    if (s->source.kind == MT_SOURCE_NONE && calls.between)
        content = mt_grammar_or(w->g, content,
                                MT_SHAPE_LIST(w, mt_shape_markup(w, mt_shape_head(s)),
                                              mt_shape_talk_until(w, calls.between), only_calls(w, &calls)));
    *out = mt_grammar_or(w->g, content, only_calls(w, &calls));
    return true;
}

static mt_expr write_reasoning(mt_shape_writer *w)
{
    const mt_shape *s = w->shape;
    const mt_expr lines = mt_grammar_repeat(w->g, mt_grammar_text(w->g, "\n"), 0, 2);
    const char *open, *close;
    mt_expr rest;

    if (mt_shape_harmony(s)) {
        rest = MT_SHAPE_LIST(w, mt_shape_thought(w, "<|end|>"), mt_shape_markup(w, "<|start|>assistant"));
        if (s->opened == MT_CHAT_OPENED_REASONING)
            return rest;
        return mt_grammar_maybe(w->g, MT_SHAPE_LIST(w, mt_shape_markup(w, "<|channel|>analysis<|message|>"), rest));
    }
    if (s->opened == MT_CHAT_OPENED_ANSWER ||
        !mt_format_markers(mt_format_find_reasoning(s->formats.reasoning), &open, &close))
        return mt_grammar_empty(w->g);
    rest = mt_grammar_seq(w->g, mt_shape_thought(w, close), lines);
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
