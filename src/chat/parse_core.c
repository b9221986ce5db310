/* The state machine that runs the tables. Invariants:
   1. A machine reads one byte at a time and looks at nothing ahead, so that cutting the text changes nothing.
   2. Between bytes, `pending` is the beginning of a marker of the present state; all bytes before it were handled.
   3. A state that passes a byte on to another state without consuming it never gets that byte back: tables have no such
      circles, which the loop asserts. */
#include <assert.h>
#include <string.h>

#include "chat/parse_core.h"

#include "constraint/limits.h"

#define HOPS 16 /* states that a byte may pass through */

typedef enum match { MATCH_NONE, MATCH_PART, MATCH_WHOLE } match;

/* Compares the pending text with a marker. */
static match compare(const mt_parse_machine *m, const char *marker)
{
    size_t size;

    if (m->pending[0] != marker[0])
        return MATCH_NONE;
    size = strlen(marker);
    if (memcmp(m->pending, marker, m->len < size ? m->len : size) != 0)
        return MATCH_NONE;
    return m->len >= size ? MATCH_WHOLE : MATCH_PART;
}

/* The marker of calls that ends reasoning, where the present state is reasoning; else NULL. */
static const char *breaks(const mt_parser *p, const mt_parse_machine *m)
{
    const mt_parse_table *tools = p->machines[1].table;

    return m == &p->machines[0] && tools && mt_parse_state_of(m)->does == MT_DOES_REASONING ? tools->breaks : NULL;
}

/* Whether the pending text is a marker of the present state (*hit: its rule), or the beginning of one. */
static match scan(const mt_parser *p, const mt_parse_machine *m, mt_parse_rule *hit)
{
    const mt_parse_rule *rules = mt_parse_state_of(m)->rules;
    const char *ends = breaks(p, m);
    match best = MATCH_NONE;

    for (size_t i = 0; i < MT_PARSE_RULES && rules[i].marker; i++) {
        match found = compare(m, rules[i].marker);

        if (found == MATCH_WHOLE)
            *hit = rules[i];
        best = found > best ? found : best;
    }
    if (ends && compare(m, ends) > best) {
        best = compare(m, ends);
        *hit = (mt_parse_rule){.marker = ends, .next = m->table->answer, .flags = MT_PARSE_KEEP};
    }
    return best;
}

/* Whether the parser is within a string, in which markers do not count. */
static bool within_string(const mt_parser *p, mt_parse_does does)
{
    if (does == MT_DOES_CALLS || does == MT_DOES_ARGUMENTS)
        return p->json.string;
    return does == MT_DOES_PYTHON && p->py.quote;
}

/* Content of the first machine is the input of the second. */
static void content(mt_parser *p, mt_parse_machine *m, const char *text, size_t len)
{
    mt_parse_machine *next = &p->machines[1];

    if (m == next || !next->table) {
        mt_parse_text(p, MT_PARSE_CONTENT, text, len);
        return;
    }
    for (size_t i = 0; i < len; i++)
        mt_parse_byte(p, next, text[i]);
}

/* The state that a complete header leads to. */
static uint8_t route(mt_parser *p, mt_parse_machine *m, const mt_parse_state *state, const char *marker)
{
    mt_parse_route to = m->table->route(p, p->held.len ? p->held.data : "", state);

    if (to == MT_ROUTE_REJECT) {
        mt_buf_puts(&p->raw, marker);
        content(p, m, p->raw.data, p->raw.len);
    }
    p->collecting = false;
    if (to == MT_ROUTE_CALL)
        mt_parse_call_begin(p);
    return m->table->routes[to];
}

/* Ends the present state at a marker. Returns the next state. */
static uint8_t leave(mt_parser *p, mt_parse_machine *m, const mt_parse_rule *rule)
{
    const mt_parse_state *state = mt_parse_state_of(m);

    switch (state->does) {
    case MT_DOES_CLOSED: mt_parse_value_end(p); break;
    case MT_DOES_ARGUMENTS: mt_parse_arguments_leave(p); break;
    case MT_DOES_QUOTED: mt_parse_quoted(p, false); break;
    case MT_DOES_HEADER:
        if (rule->flags & MT_PARSE_ROUTE)
            return route(p, m, state, rule->marker);
        if (state->flags & MT_PARSE_WORD)
            content(p, m, p->raw.data, p->raw.len);
        p->collecting = false;
        break;
    case MT_DOES_CALLS:
    case MT_DOES_PYTHON:
        if (p->collecting)
            content(p, m, p->raw.data, p->raw.len);
        p->collecting = false;
        if (p->open)
            mt_parse_call_end(p, true);
        break;
    default: break;
    }
    return rule->next;
}

/* Keeps bytes after the end marker of a value. */
static void note_gap(mt_parser *p, const char *text, size_t len)
{
    memcpy(p->gap + p->gap_len, text, len);
    p->gap_len += len;
}

/* A beginning of a marker that is not completed is text, where the state is about text. */
static void release(mt_parser *p, mt_parse_machine *m)
{
    mt_parse_does does = mt_parse_state_of(m)->does;
    size_t len = m->len;
    char pending[MT_PARSE_MARKER];

    if (does != MT_DOES_REASONING && does != MT_DOES_CONTENT && does != MT_DOES_LEAD)
        return;
    memcpy(pending, m->pending, len);
    m->len = 0;
    if (does == MT_DOES_REASONING)
        mt_parse_text(p, MT_PARSE_REASONING, pending, len);
    else
        content(p, m, pending, len);
}

/* Follows a rule whose marker was found. */
static void follow_rule(mt_parser *p, mt_parse_machine *m, const mt_parse_rule *rule)
{
    const uint8_t next = leave(p, m, rule);
    const mt_parse_state *to = &m->table->states[next];
    const size_t size = strlen(rule->marker);

    if (rule->flags & MT_PARSE_HOLD) {
        mt_parse_collect_begin(p);
        mt_buf_add(&p->raw, rule->marker, size);
    }
    if (to->does == MT_DOES_CLOSED)
        note_gap(p, rule->marker, size);
    if (!(rule->flags & MT_PARSE_KEEP)) {
        m->len -= size;
        memmove(m->pending, m->pending + size, m->len);
    }
    if (rule->flags & MT_PARSE_BEGIN)
        mt_parse_call_begin(p);
    if (rule->flags & MT_PARSE_END)
        mt_parse_call_end(p, true);
    if (to->does == MT_DOES_REASONING && m == &p->machines[0] && p->machines[1].table)
        release(p, &p->machines[1]);
    mt_parse_go(p, m, next);
    if (to->does == MT_DOES_QUOTED)
        mt_parse_quoted(p, true);
}

/* What looked like the end of a value was part of it: the value continues. */
static void reopen(mt_parser *p, mt_parse_machine *m, const mt_parse_state *state)
{
    const mt_parse_state *value = &m->table->states[state->other];
    size_t len = p->gap_len;

    p->gap_len = 0;
    for (size_t i = 0; i < len; i++)
        mt_parse_value_byte(p, p->gap[i], value->flags & MT_PARSE_LINES);
    m->state = state->other;
}

static void header_byte(mt_parser *p, mt_parse_machine *m, const mt_parse_state *state, char b)
{
    if (!mt_parse_collect(p, m, b))
        return;
    mt_buf_add(&p->held, &b, 1);
    if (p->held.len > MT_LIMIT_PARSE_NAME || ((state->flags & MT_PARSE_WORD) && !mt_parse_name_byte(b)))
        mt_parse_reject(p, m);
}

static void name_byte(mt_parser *p, mt_parse_machine *m, const mt_parse_state *state, char b)
{
    if (mt_parse_word_add(&p->name, b))
        return;
    content(p, m, p->name.text, p->name.len); /* no name is that long: it was no call */
    mt_parse_go(p, m, state->other);
    mt_parse_again(m, b);
}

static void text_byte(mt_parser *p, mt_parse_machine *m, const mt_parse_state *state, char b)
{
    bool space = mt_parse_space(b);

    if (state->does == MT_DOES_REASONING) {
        mt_parse_text(p, MT_PARSE_REASONING, &b, 1);
    } else if (state->does == MT_DOES_CONTENT || (state->does == MT_DOES_LEAD && space)) {
        content(p, m, &b, 1);
    } else if (state->does == MT_DOES_CLOSED && space && p->gap_len < sizeof(p->gap)) {
        note_gap(p, &b, 1);
    } else if (!space || state->does == MT_DOES_CLOSED) {
        if (state->does == MT_DOES_CLOSED)
            reopen(p, m, state);
        else
            mt_parse_go(p, m, state->other);
        mt_parse_again(m, b);
    }
}

/* Handles a byte that belongs to no marker. */
static void handle(mt_parser *p, mt_parse_machine *m, char b)
{
    const mt_parse_state *state = mt_parse_state_of(m);

    switch (state->does) {
    case MT_DOES_DROP: return;
    case MT_DOES_NAME: name_byte(p, m, state, b); return;
    case MT_DOES_ID: mt_parse_word_add(&p->id, b); return;
    case MT_DOES_KEY: mt_parse_word_add(&p->key, b); return;
    case MT_DOES_VALUE:
    case MT_DOES_STRING:
    case MT_DOES_QUOTED: mt_parse_value_byte(p, b, state->flags & MT_PARSE_LINES); return;
    case MT_DOES_HEADER: header_byte(p, m, state, b); return;
    case MT_DOES_CALLS: mt_parse_calls_byte(p, m, b); return;
    case MT_DOES_ARGUMENTS: mt_parse_arguments_byte(p, m, b); return;
    case MT_DOES_PYTHON: mt_parse_python_byte(p, m, b); return;
    case MT_DOES_OBJECT: mt_parse_object_byte(p, m, b); return;
    default: text_byte(p, m, state, b);
    }
}

void mt_parse_byte(mt_parser *p, mt_parse_machine *m, char b)
{
    mt_parse_rule hit = {0};
    size_t hops = 0;

    m->pending[m->len++] = b;
    while (m->len > 0) {
        size_t before = m->len;
        match found = within_string(p, mt_parse_state_of(m)->does) ? MATCH_NONE : scan(p, m, &hit);

        if (found == MATCH_PART)
            return;
        if (found == MATCH_WHOLE) {
            follow_rule(p, m, &hit);
        } else {
            char first = m->pending[0];

            memmove(m->pending, m->pending + 1, --m->len);
            handle(p, m, first);
        }
        hops = m->len < before ? 0 : hops + 1;
        assert(hops < HOPS);
    }
}

void mt_parse_end(mt_parser *p, mt_parse_machine *m)
{
    const mt_parse_state *state;

    if (!m->table)
        return;
    release(p, m);
    state = mt_parse_state_of(m);
    if (m == &p->machines[0])
        return;
    if (p->collecting && (state->flags & (MT_PARSE_DECLARED | MT_PARSE_WORD))) {
        content(p, m, p->raw.data, p->raw.len);
        content(p, m, m->pending, m->len);
    }
    p->collecting = false;
    if (state->does == MT_DOES_CLOSED)
        mt_parse_value_end(p);
    else if (state->does == MT_DOES_ARGUMENTS)
        mt_parse_arguments_leave(p);
    mt_parse_call_end(p, false);
}
