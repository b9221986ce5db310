/* Gemma's notation of arguments: {key:<|"|>text<|"|>,n:42,list:[1,2],more:{a:true}}. The quotes are markers, so strings
   are a state of their own (MT_DOES_QUOTED). The arguments are sent as JSON while they come, which is valid if the
   notation was and no deeper than LEVELS. */
#include <string.h>

#include "chat/limits.h"
#include "chat/parse_core.h"

enum { LEVELS = 64 }; /* bits of mt_parse_object.objects */

/* Sends a piece of the arguments' JSON. */
static void tell(mt_parser *p, const char *text)
{
    mt_parse_call_arguments(p, text, strlen(text));
}

/* Whether the innermost container is an object. */
static bool in_object(const mt_parse_object *o)
{
    return o->depth > 0 && (o->objects >> (o->depth - 1) & 1);
}

/* Sends the comma that is due before an item. */
static void separate(mt_parser *p)
{
    if (p->object.comma)
        tell(p, ", ");
    p->object.comma = false;
}

/* Ends a word without quotes: a key, a number or true; anything else is sent as a string, cut where it is longer than
   may be held. */
static void word_ends(mt_parser *p, bool key)
{
    mt_buf out = {.limit = 8 * (size_t)MT_LIMIT_PARSE_HELD};
    size_t len = p->held.len;

    while (len > 0 && mt_parse_space(p->held.data[len - 1]))
        len--;
    mt_parse_held_clear(p); /* its bytes stay until the next one comes */
    if (len == 0)
        return;
    separate(p);
    if (key || !mt_parse_literal(&out, p->held.data, len)) {
        out.len = 0;
        mt_buf_json_string(&out, p->held.data, len);
    }
    mt_parse_call_arguments(p, out.data, out.len);
    mt_buf_free(&out);
}

/* Opens an object or a list. */
static void push(mt_parser *p, bool object)
{
    mt_parse_object *o = &p->object;

    separate(p);
    tell(p, object ? "{" : "[");
    o->objects = (o->objects & ~(UINT64_C(1) << o->depth)) | (uint64_t)object << o->depth;
    o->depth++;
    o->key = object;
}

/* Closes the innermost container, whichever bracket was written; the outermost ends the call. */
static void pop(mt_parser *p, mt_parse_machine *m)
{
    mt_parse_object *o = &p->object;

    o->comma = false; /* a comma with nothing behind it is dropped */
    tell(p, in_object(o) ? "}" : "]");
    o->depth--;
    o->key = false;
    if (o->depth > 0)
        return;
    mt_parse_call_end(p, true);
    mt_parse_go(p, m, mt_parse_state_of(m)->done);
}

/* At the quotes of a string, the first or the last. What is within them is sent as any value that is a string
   (parse_value.c). */
void mt_parse_quoted(mt_parser *p, bool begins)
{
    if (begins)
        separate(p);
    tell(p, "\"");
    p->streaming = p->started = begins;
    p->line = false;
    mt_parse_held_clear(p);
}

void mt_parse_object_byte(mt_parser *p, mt_parse_machine *m, char b)
{
    mt_parse_object *o = &p->object;

    if (o->depth == 0)
        mt_parse_held_clear(p); /* what stands before the arguments is dropped */
    if (b == ':' && o->key) {
        word_ends(p, true);
        tell(p, ": ");
        o->key = false;
    } else if (b == ',' && o->depth > 0) {
        word_ends(p, false);
        o->comma = true;
        o->key = in_object(o);
    } else if ((b == '{' || b == '[') && !o->key && o->depth < LEVELS) {
        push(p, b == '{');
    } else if ((b == '}' || b == ']') && o->depth > 0) {
        word_ends(p, false);
        pop(p, m);
    } else if (p->held.len > 0 || !mt_parse_space(b)) {
        mt_buf_add(&p->held, &b, 1);
    }
}
