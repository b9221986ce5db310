/* Calls written as JSON. Only strings and brackets are followed: arguments are passed through unchanged, valid JSON or
   not, and markers within strings do not count. */
#include <string.h>

#include "base/json_tree.h"
#include "chat/limits.h"
#include "chat/parse_core.h"
#include "constraint/limits.h"

enum phase { OUTSIDE, KEY, IN_KEY, COLON, VALUE, IN_STRING, IN_CONTAINER, IN_SCALAR }; /* where in a call */
/* Which member of a call is read. F_AGAIN: arguments a second time, which are dropped. */
enum field { F_OTHER, F_NAME, F_ID, F_ARGUMENTS, F_FUNCTION, F_AGAIN };

static uint8_t field_of(const char *key)
{
    static const struct {
        const char *key;
        uint8_t field;
    } fields[] = {{"name", F_NAME},       {"tool_name", F_NAME},      {"id", F_ID},
                  {"tool_call_id", F_ID}, {"arguments", F_ARGUMENTS}, {"parameters", F_ARGUMENTS},
                  {"args", F_ARGUMENTS},  {"input", F_ARGUMENTS},     {"function", F_FUNCTION}};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strcmp(fields[i].key, key) == 0)
            return fields[i].field;
    return F_OTHER;
}

/* Follows strings. True while b belongs to one, quotes included. */
static bool follow_string(mt_parse_json *j, char b)
{
    if (!j->string) {
        j->string = b == '"';
        return j->string;
    }
    if (j->escape)
        j->escape = false;
    else if (b == '\\')
        j->escape = true;
    else if (b == '"')
        j->string = false;
    return true;
}

/* A closing bracket closes the innermost open one of its kind, and all that is open inside; where there is none, it is
   only a byte. So broken JSON ends where its writer most likely meant it to end. True: the outermost is closed. */
static bool closes(mt_parse_json *j, bool list)
{
    for (uint32_t depth = j->depth; depth > 0; depth--) {
        if (depth > 64 || (j->lists >> (depth - 1) & 1) == list) {
            j->depth = depth - 1;
            return j->depth == 0;
        }
    }
    return false;
}

/* Follows strings and brackets. True when b closed the outermost container. */
static bool follow(mt_parse_json *j, char b)
{
    if (follow_string(j, b))
        return false;
    if (b == '}' || b == ']')
        return closes(j, b == ']');
    if (b == '{' || b == '[') {
        if (j->depth < 64)
            j->lists = (j->lists & ~(UINT64_C(1) << j->depth)) | (uint64_t)(b == '[') << j->depth;
        j->depth++;
    }
    return false;
}

/* Replaces the escapes of a JSON string, given without its quotes, in place. */
static void decode(mt_buf *text)
{
    json_t *value = NULL;
    mt_buf quoted = {.limit = MT_LIMIT_PARSE_HELD + 2};

    mt_buf_printf(&quoted, "\"");
    mt_buf_add(&quoted, text->data, text->len);
    if (mt_buf_puts(&quoted, "\""))
        value = mt_json_tree_try(quoted.data, quoted.len);
    if (value) {
        text->len = 0;
        mt_buf_add(text, json_string_value(value), json_string_length(value));
    }
    json_decref(value);
    mt_buf_free(&quoted);
}

static void decode_word(mt_parse_word *word)
{
    mt_buf text = {.limit = MT_LIMIT_PARSE_NAME};

    mt_buf_add(&text, word->text, word->len);
    decode(&text);
    mt_parse_word_set(word, text.data ? text.data : "", text.len);
    mt_buf_free(&text);
}

/* Sends arguments, or holds them until the name is known. */
static void add_arguments(mt_parser *p, const char *text, size_t len)
{
    if (p->open)
        mt_parse_call_arguments(p, text, len);
    else
        mt_buf_add(&p->held, text, len);
}

/* The name is complete: the call begins, or it is no call since the tool is not declared. */
static void named(mt_parser *p, mt_parse_machine *m)
{
    decode_word(&p->name);
    if ((mt_parse_state_of(m)->flags & MT_PARSE_DECLARED) && p->collecting && !mt_parse_tool(p, p->name.text)) {
        mt_parse_reject(p, m);
        return;
    }
    p->collecting = false;
    mt_parse_call_begin(p);
    mt_parse_call_arguments(p, p->held.data, p->held.len);
    mt_parse_held_clear(p);
}

static void string_end(mt_parser *p, mt_parse_machine *m)
{
    p->json.phase = KEY;
    if (p->json.field == F_ID) {
        decode_word(&p->id);
    } else if (p->json.field == F_ARGUMENTS) { /* JSON within a string */
        decode(&p->held);
        if (p->open) {
            mt_parse_call_arguments(p, p->held.data, p->held.len);
            mt_parse_held_clear(p);
        }
    } else if (p->json.field == F_NAME && !p->open) {
        named(p, m);
    }
}

static void string_byte(mt_parser *p, mt_parse_machine *m, char b)
{
    mt_parse_json *j = &p->json;

    follow_string(j, b);
    if (!j->string)
        string_end(p, m);
    else if (j->field == F_NAME && !p->open)
        mt_parse_word_add(&p->name, b);
    else if (j->field == F_ID)
        mt_parse_word_add(&p->id, b);
    else if (j->field == F_ARGUMENTS)
        mt_buf_add(&p->held, &b, 1);
}

static void value_begins(mt_parser *p, char b)
{
    mt_parse_json *j = &p->json;

    j->depth = 0;
    if (j->field == F_FUNCTION)
        j->field = b == '"' ? F_NAME : F_FUNCTION;
    if (b == '"') {
        j->phase = IN_STRING;
        j->string = true;
        if (j->field == F_NAME && !p->open)
            mt_parse_word_clear(&p->name);
    } else if (b == '{' && j->field == F_FUNCTION) {
        j->phase = KEY;
        j->levels++;
    } else if (b == '{' || b == '[') {
        j->phase = IN_CONTAINER;
        follow(j, b);
        if (j->field == F_ARGUMENTS)
            add_arguments(p, &b, 1);
    } else {
        j->phase = IN_SCALAR;
        mt_parse_word_clear(&p->key);
        mt_parse_word_add(&p->key, b);
    }
}

static void object_begins(mt_parser *p)
{
    p->json.phase = KEY;
    p->json.levels = 1;
    mt_parse_held_clear(p);
    mt_parse_word_clear(&p->name);
    mt_parse_word_clear(&p->id);
}

static void done(mt_parser *p, mt_parse_machine *m)
{
    p->collecting = false;
    mt_parse_go(p, m, mt_parse_state_of(m)->done);
}

static void object_ends(mt_parser *p, mt_parse_machine *m)
{
    if (--p->json.levels > 0)
        return;
    p->json.phase = OUTSIDE;
    if (p->open)
        mt_parse_call_end(p, true);
    else if (p->collecting)
        mt_parse_reject(p, m);
    if (mt_parse_state_of(m)->does == MT_DOES_CALLS && !p->json.list)
        done(p, m);
}

static void outside(mt_parser *p, mt_parse_machine *m, char b)
{
    mt_parse_json *j = &p->json;
    bool certain = !p->collecting || !(mt_parse_state_of(m)->flags & MT_PARSE_DECLARED);

    if (b == '{')
        object_begins(p);
    else if (b == '[' && !j->list)
        j->list = true;
    else if (b == ']' && j->list && certain)
        done(p, m);
    else if (!mt_parse_space(b) && b != ',' && p->collecting)
        mt_parse_reject(p, m);
}

static void scalar_byte(mt_parser *p, mt_parse_machine *m, char b)
{
    if (b != ',' && b != '}' && !mt_parse_space(b)) {
        mt_parse_word_add(&p->key, b);
        return;
    }
    if (p->json.field == F_ARGUMENTS && strcmp(p->key.text, "null") != 0)
        add_arguments(p, p->key.text, p->key.len);
    p->json.phase = KEY;
    if (b == '}')
        object_ends(p, m);
}

static void key_ends(mt_parser *p, mt_parse_machine *m)
{
    p->json.phase = COLON;
    p->json.field = field_of(p->key.text);
    if (p->json.field == F_ARGUMENTS && (p->held.len > 0 || (p->open && p->begun_arguments)))
        p->json.field = F_AGAIN;
    if (p->json.field == F_OTHER && p->collecting && (mt_parse_state_of(m)->flags & MT_PARSE_DECLARED) &&
        strcmp(p->key.text, "type") != 0)
        mt_parse_reject(p, m);
}

static void key_byte(mt_parser *p, mt_parse_machine *m, char b)
{
    mt_parse_json *j = &p->json;

    if (j->phase == IN_KEY) {
        follow_string(j, b);
        if (j->string)
            mt_parse_word_add(&p->key, b);
        else
            key_ends(p, m);
    } else if (b == '"') {
        j->phase = IN_KEY;
        j->string = true;
        mt_parse_word_clear(&p->key);
    } else if (b == '}') {
        object_ends(p, m);
    } else if (b == ':' && j->phase == COLON) {
        j->phase = VALUE;
    } else if (!mt_parse_space(b) && b != ',' && p->collecting && (mt_parse_state_of(m)->flags & MT_PARSE_DECLARED)) {
        mt_parse_reject(p, m);
    }
}

void mt_parse_calls_byte(mt_parser *p, mt_parse_machine *m, char b)
{
    mt_parse_json *j = &p->json;

    if (!mt_parse_collect(p, m, b))
        return;
    switch (j->phase) {
    case OUTSIDE: outside(p, m, b); return;
    case VALUE:
        if (!mt_parse_space(b))
            value_begins(p, b);
        return;
    case IN_STRING: string_byte(p, m, b); return;
    case IN_CONTAINER:
        if (j->field == F_ARGUMENTS)
            add_arguments(p, &b, 1);
        if (follow(j, b))
            j->phase = KEY;
        return;
    case IN_SCALAR: scalar_byte(p, m, b); return;
    default: key_byte(p, m, b);
    }
}

void mt_parse_arguments_byte(mt_parser *p, mt_parse_machine *m, char b)
{
    mt_parse_json *j = &p->json;

    if (j->phase == OUTSIDE && mt_parse_space(b))
        return;
    if (j->phase == OUTSIDE)
        j->phase = b == '{' || b == '[' ? IN_CONTAINER : IN_SCALAR;
    if (j->phase == IN_SCALAR) {
        if (!mt_buf_add(&p->held, &b, 1)) {
            mt_parse_arguments_leave(p);
            mt_buf_add(&p->held, &b, 1);
        }
        return;
    }
    mt_parse_call_arguments(p, &b, 1);
    if (follow(j, b)) {
        mt_parse_call_end(p, true);
        mt_parse_go(p, m, mt_parse_state_of(m)->done);
    }
}

/* Arguments that are no container are sent as they are; null is left out. */
void mt_parse_arguments_leave(mt_parser *p)
{
    while (p->held.len > 0 && mt_parse_space(p->held.data[p->held.len - 1]))
        p->held.len--;
    if (p->held.len != 4 || memcmp(p->held.data, "null", 4) != 0)
        mt_parse_call_arguments(p, p->held.data, p->held.len);
    mt_parse_held_clear(p);
}
