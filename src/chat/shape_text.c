/* The grammar of text in which the format's parser finds no calls: text without the markers at which its table
   (parse_core.h) leaves the state in which it reads content. */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "chat/shape_inside.h"
#include "constraint/limits.h"

/* Markers that must not stand in the text. */
typedef struct markers {
    const char **list;
    size_t count;
    mt_buf names; /* texts "[NAME(" of calls without a marker, each ended by NUL */
} markers;

/* The state in which the parser reads content: where headers lead to it, if they do, else its first. */
static const mt_parse_state *content_of(const mt_parse_table *t)
{
    const mt_parse_state *routed = t->route ? &t->states[t->routes[MT_ROUTE_CONTENT]] : t->states;

    return routed->does == MT_DOES_CONTENT ? routed : t->states;
}

/* Adds markers of a parser's table, but never single brackets. may_call: calls may be made, and begin with the trigger;
   then those that leave the parser where it is may stand in the text, and so may those that it only holds back
   (MT_PARSE_HOLD) where the trigger begins so. Else all are added but those that it holds back, unless these begin a
   header. */
static void add_table(markers *m, const mt_parse_table *t, bool may_call, const char *trigger)
{
    const mt_parse_state *content = content_of(t);

    for (size_t i = 0; i < MT_PARSE_RULES && content->rules[i].marker; i++) {
        const mt_parse_rule *rule = &content->rules[i];
        const bool held = rule->flags & MT_PARSE_HOLD, stays = &t->states[rule->next] == content;

        if (strlen(rule->marker) == 1 || (may_call && stays))
            continue;
        if (!held || (may_call ? strncmp(trigger, rule->marker, strlen(rule->marker)) != 0 : t->framed))
            m->list[m->count++] = rule->marker;
    }
}

/* Adds "[NAME(" of each tool, for formats in which a bracket and a declared name begin calls. */
static void add_names(mt_shape_writer *w, markers *m)
{
    const json_t *tools = w->shape->tools;
    size_t at = 0;

    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *name = mt_shape_name(json_array_get(tools, i));

        if (name) {
            mt_buf_printf(&m->names, "[%s(", name);
            mt_buf_add(&m->names, "", 1);
        }
    }
    w->g->full |= m->names.full;
    for (; at < m->names.len; at += strlen(m->names.data + at) + 1)
        m->list[m->count++] = m->names.data + at;
}

/* Collects all markers; first: one more, or NULL. */
static void gather(mt_shape_writer *w, markers *m, const char *first)
{
    const mt_shape *s = w->shape;
    const bool may_call = !mt_shape_forbids(s);
    const mt_parse_table *table = mt_shape_harmony(s) ? mt_format_harmony.read : mt_shape_format(s)->read;
    const char *trigger;

    m->list = mt_alloc_array(MT_PARSE_RULES + json_array_size(s->tools) + 2, sizeof(*m->list));
    mt_buf_init(&m->names, MT_LIMIT_GRAMMAR_SEARCH);
    if (first)
        m->list[m->count++] = first;
    if (json_array_size(s->tools) == 0 || !table)
        return;
    trigger = mt_shape_trigger(w);
    add_table(m, table, may_call, trigger);
    if (strcmp(trigger, "[") == 0 && may_call)
        add_names(w, m);
    else if (strlen(trigger) > 1)
        m->list[m->count++] = trigger;
}

static void drop(markers *m)
{
    mt_free(m->list);
    mt_buf_free(&m->names);
}

/* Text without the markers, which are freed. */
static mt_expr text_without(mt_shape_writer *w, markers *m)
{
    const mt_expr text = m->count ? mt_grammar_without(w->g, m->list, m->count) : mt_grammar_anything(w->g);

    drop(m);
    return text;
}

/* The frame is the first two markers of the state in which the parser reads answers, where both stay in it. */
void mt_shape_frame(const mt_shape_writer *w, const char **open, const char **close)
{
    const mt_format *reasoning = mt_format_find_reasoning(w->shape->formats.reasoning);
    const mt_parse_table *t = reasoning ? reasoning->read : NULL;
    const mt_parse_rule *rules;

    *open = *close = "";
    if (!t || t->framed)
        return;
    rules = t->states[t->answer].rules;
    if (!rules[0].marker || !rules[1].marker || rules[0].next != t->answer || rules[1].next != t->answer)
        return;
    *open = rules[0].marker;
    *close = rules[1].marker;
}

/* Special tokens that the parser drops may stand anywhere in the text. */
mt_expr mt_shape_talk(mt_shape_writer *w)
{
    const char *frame[2];
    mt_expr tokens[2], text;
    size_t count = 0;
    markers m = {0};
    uint32_t id;

    gather(w, &m, NULL);
    text = text_without(w, &m);
    mt_shape_frame(w, &frame[0], &frame[1]);
    for (size_t i = 0; i < 2; i++)
        if (mt_shape_special(w, frame[i], strlen(frame[i]), &id))
            tokens[count++] = mt_grammar_token(w->g, id);
    if (count == 0)
        return text;
    return mt_grammar_seq(w->g, text,
                          mt_grammar_repeat(w->g, mt_grammar_seq(w->g, mt_grammar_any(w->g, tokens, count), text), 0,
                                            MT_GRAMMAR_UNLIMITED));
}

/* Whether the trigger can overlap with itself, so that it may begin within the text before it. */
static bool overlaps(const char *trigger)
{
    for (const char *end = trigger + 1; *trigger && *end; end++)
        if (strncmp(trigger, end, strlen(end)) == 0)
            return true;
    return false;
}

mt_expr mt_shape_talk_until(mt_shape_writer *w, const char *trigger)
{
    markers m = {0};
    mt_expr e;

    if (!overlaps(trigger))
        return mt_grammar_seq(w->g, mt_shape_talk(w), mt_shape_markup(w, trigger));
    gather(w, &m, trigger);
    e = mt_grammar_until(w->g, m.list, m.count);
    drop(&m);
    return e;
}

/* Reasoning may mention calls, except where the parser would read that as one. */
mt_expr mt_shape_thought(mt_shape_writer *w, const char *close)
{
    const mt_shape *s = w->shape;
    const mt_parse_table *table = mt_shape_format(s)->read;
    markers m = {0};
    mt_expr text;

    if (mt_shape_forbids(s)) {
        gather(w, &m, close);
        text = text_without(w, &m);
    } else {
        const char *list[2] = {close};
        const bool breaks = s->tools && table && table->breaks;

        list[1] = breaks ? table->breaks : NULL;
        text = mt_grammar_without(w->g, list, breaks ? 2 : 1);
    }
    return mt_grammar_seq(w->g, text, mt_shape_markup(w, close));
}
