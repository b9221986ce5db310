/* Calls written as Python: [f(a=1, b="x"), g()]. An argument is sent once it is complete; one that is no literal is
   sent as a string. */
#include <stdio.h>
#include <string.h>

#include "chat/limits.h"
#include "chat/parse_core.h"

enum phase { OUTSIDE, IN_NAME, IN_ARGUMENT }; /* where in a call */

/* Whether it is still open if the text is a call. */
static bool uncertain(const mt_parser *p, const mt_parse_machine *m)
{
    return p->collecting && (mt_parse_state_of(m)->flags & MT_PARSE_DECLARED);
}

/* Sets p->key for an argument without a name: the declared name of that position, or "argN". */
static void name_position(mt_parser *p)
{
    size_t at = p->py.position++;
    json_t *properties = json_object_get(p->schema, "properties");
    void *i = json_object_iter(properties);

    for (size_t skip = at; i && skip > 0; skip--)
        i = json_object_iter_next(properties, i);
    mt_parse_word_clear(&p->key);
    if (i) {
        mt_parse_word_set(&p->key, json_object_iter_key(i), strlen(json_object_iter_key(i)));
    } else {
        char name[32];

        mt_parse_word_set(&p->key, name, (size_t)snprintf(name, sizeof(name), "arg%zu", at));
    }
}

/* The length of "name =" at the beginning of a text; 0: there is none. *name_len: of the name alone. */
static size_t keyword(const char *text, size_t len, size_t *name_len)
{
    size_t i = 0;

    while (i < len && mt_parse_name_byte(text[i]) && text[i] != '.')
        i++;
    *name_len = i;
    while (i < len && mt_parse_space(text[i]))
        i++;
    return *name_len > 0 && mt_parse_letter(text[0]) && i < len && text[i] == '=' &&
                   (i + 1 == len || text[i + 1] != '=')
               ? i + 1
               : 0;
}

static void argument_ends(mt_parser *p)
{
    const char *text = p->held.len ? p->held.data : "";
    size_t len = p->held.len, name_len, skip;
    mt_buf out = {.limit = 8 * (size_t)MT_LIMIT_PARSE_HELD};

    while (len > 0 && mt_parse_space(text[len - 1]))
        len--;
    if (len == 0)
        return;
    skip = keyword(text, len, &name_len);
    if (skip)
        mt_parse_word_set(&p->key, text, name_len);
    else
        name_position(p);
    for (; skip < len && mt_parse_space(text[skip]); skip++)
        ;
    if (!mt_parse_literal(&out, text + skip, len - skip)) {
        out.len = 0;
        mt_buf_json_string(&out, text + skip, len - skip);
    }
    mt_parse_retype(p, &out);
    mt_parse_key(p);
    mt_parse_call_arguments(p, out.data, out.len);
    mt_buf_free(&out);
    mt_parse_held_clear(p);
}

static void argument_begins(mt_parser *p)
{
    mt_parse_held_clear(p);
    p->py.closed = false;
    p->py.run = 0;
}

/* After one or two opening quotes: b decides whether a string begins, or was empty and has ended. */
static void settle(mt_parse_python *py, char b)
{
    if (!py->opening || b == py->quote)
        return;
    py->opening = false;
    if (py->run == 2) {
        py->quote = 0;
        py->closed = py->depth == 0;
    }
    py->run = 0;
}

/* A byte within a string. Three quotes in a row end a string that three have begun. */
static void quoted_byte(mt_parse_python *py, char b)
{
    if (py->opening) {
        py->triple = ++py->run == 3;
        py->opening = !py->triple;
        py->run = py->triple ? 0 : py->run;
    } else if (py->escape || b != py->quote) {
        py->run = 0;
        py->escape = !py->escape && b == '\\';
    } else if (!py->triple || ++py->run == 3) {
        py->quote = 0;
        py->closed = py->depth == 0;
    }
}

/* Follows strings and brackets. */
static void follow(mt_parse_python *py, char b)
{
    if (py->quote) {
        quoted_byte(py, b);
    } else if (b == '"' || b == '\'') {
        py->quote = b;
        py->run = 1;
        py->opening = true;
        py->triple = py->escape = false;
    } else if (b == '(' || b == '[' || b == '{') {
        py->depth++;
    } else if ((b == ')' || b == ']' || b == '}') && py->depth > 0) {
        py->depth--;
    }
}

static void argument_byte(mt_parser *p, char b)
{
    mt_parse_python *py = &p->py;
    bool plain;

    settle(py, b);
    plain = !py->quote && py->depth == 0;
    if (plain && (b == ',' || b == ')')) {
        argument_ends(p);
        argument_begins(p);
        if (b == ')') {
            mt_parse_call_end(p, true);
            py->phase = OUTSIDE;
        }
        return;
    }
    if (plain && py->closed && mt_parse_letter(b)) { /* a comma is missing */
        argument_ends(p);
        argument_begins(p);
    }
    follow(py, b);
    if (p->held.len > 0 || !mt_parse_space(b))
        mt_buf_add(&p->held, &b, 1);
}

/* What was collected is no list of calls, as b shows; where b is a bracket, another list may begin there. */
static void give_up(mt_parser *p, mt_parse_machine *m, char b)
{
    const bool again = b == '[' && uncertain(p, m);

    p->raw.len -= again;
    mt_parse_reject(p, m);
    if (again)
        mt_parse_again(m, b);
}

static void name_ends(mt_parser *p, mt_parse_machine *m)
{
    if (uncertain(p, m) && !mt_parse_tool(p, p->name.text)) {
        mt_parse_reject(p, m);
        return;
    }
    if (strcmp(p->name.text, "print") == 0 && !mt_parse_tool(p, "print")) {
        p->py.phase = OUTSIDE;
        return;
    }
    p->collecting = false;
    p->py = (mt_parse_python){.phase = IN_ARGUMENT, .list = p->py.list};
    mt_parse_call_begin(p);
    argument_begins(p);
}

static void name_byte(mt_parser *p, mt_parse_machine *m, char b)
{
    if (b == '(') {
        name_ends(p, m);
    } else if (mt_parse_name_byte(b) && mt_parse_word_add(&p->name, b)) {
        return;
    } else if (uncertain(p, m) || (p->collecting && b != '=' && !mt_parse_space(b))) {
        give_up(p, m, b); /* without a marker, a list of calls is [name( without blanks */
    } else if (b == '=') {
        p->py.phase = OUTSIDE; /* it was a variable's name */
    }
}

static void outside_byte(mt_parser *p, mt_parse_machine *m, char b)
{
    mt_parse_python *py = &p->py;

    if (mt_parse_letter(b)) {
        mt_parse_word_clear(&p->name);
        mt_parse_word_clear(&p->id);
        mt_parse_word_add(&p->name, b);
        py->phase = IN_NAME;
    } else if (b == '[' && !py->list) {
        py->list = true;
    } else if (b == ']' && py->list && !uncertain(p, m)) {
        p->collecting = false;
        mt_parse_go(p, m, mt_parse_state_of(m)->done);
    } else if (uncertain(p, m) || (p->collecting && !mt_parse_space(b))) {
        give_up(p, m, b);
    }
}

void mt_parse_python_byte(mt_parser *p, mt_parse_machine *m, char b)
{
    if (!mt_parse_collect(p, m, b))
        return;
    if (p->py.phase == IN_ARGUMENT)
        argument_byte(p, b);
    else if (p->py.phase == IN_NAME)
        name_byte(p, m, b);
    else
        outside_byte(p, m, b);
}
