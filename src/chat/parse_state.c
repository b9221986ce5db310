/* Changes of a machine's state, for the machine itself (parse_core.c) and for the notations (JSON, Python, Gemma),
   which know where their text ends. */
#include <assert.h>
#include <string.h>

#include "chat/parse_core.h"

const mt_parse_state *mt_parse_state_of(const mt_parse_machine *m)
{
    return &m->table->states[m->state];
}

void mt_parse_again(mt_parse_machine *m, char b)
{
    memmove(m->pending + 1, m->pending, m->len++);
    m->pending[0] = b;
}

void mt_parse_collect_begin(mt_parser *p)
{
    p->collecting = true;
    p->raw.len = 0;
    p->raw.full = false;
}

bool mt_parse_collect(mt_parser *p, mt_parse_machine *m, char b)
{
    if (!p->collecting || mt_buf_add(&p->raw, &b, 1))
        return true;
    mt_parse_reject(p, m);
    mt_parse_again(m, b);
    return false;
}

void mt_parse_reject(mt_parser *p, mt_parse_machine *m)
{
    p->collecting = false;
    assert(m == &p->machines[1]); /* only formats of calls collect text */
    mt_parse_text(p, MT_PARSE_CONTENT, p->raw.data, p->raw.len);
    p->raw.len = 0;
    mt_parse_go(p, m, mt_parse_state_of(m)->other);
}

static void enter(mt_parser *p, const mt_parse_state *state)
{
    switch (state->does) {
    case MT_DOES_NAME:
        mt_parse_word_clear(&p->name);
        mt_parse_word_clear(&p->id);
        break;
    case MT_DOES_REASONING: mt_parse_text_begin(p, MT_PARSE_REASONING); break;
    case MT_DOES_ID: mt_parse_word_clear(&p->id); break;
    case MT_DOES_KEY: mt_parse_word_clear(&p->key); break;
    case MT_DOES_VALUE:
    case MT_DOES_STRING: mt_parse_value_begin(p, state->does == MT_DOES_STRING); break;
    case MT_DOES_HEADER:
    case MT_DOES_CALLS:
    case MT_DOES_PYTHON:
    case MT_DOES_ARGUMENTS:
        p->json = (mt_parse_json){0};
        p->py = (mt_parse_python){0};
        mt_parse_held_clear(p);
        if (!p->collecting && state->does != MT_DOES_ARGUMENTS)
            mt_parse_collect_begin(p);
        break;
    default: break;
    }
}

void mt_parse_go(mt_parser *p, mt_parse_machine *m, uint8_t state)
{
    m->state = state;
    enter(p, mt_parse_state_of(m));
}
