/* Trees are built from the events of the pull reader, so the program has one JSON grammar. Containers are put into
   their parents when they begin, so that the root owns everything if something fails.

   Wide numbers: a tree keeps numbers as jansson does, in 64 bits. One that does not fit is a node of our own: jansson's
   struct of a real followed by the number's text. jansson never makes an infinite real (json_real refuses), so an
   infinite one is ours, and jansson frees it like any other. Rejected: a string with a mark, which every check for
   strings would accept; a table beside the tree, which references would outlive. */
#include "base/json_tree.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/float_text.h"
#include "base/json_reader.h"
#include "base/json_write.h"
#include "base/limits.h"

/* The layout of jansson's real, followed by the text. */
typedef struct wide {
    json_t json;
    double value;
    char text[];
} wide;

typedef struct builder {
    mt_json_reader reader;
    json_t *root;
    json_t *open[MT_LIMIT_JSON_DEPTH]; /* open containers */
    size_t depth;
    mt_buf key; /* of the next value, where an object is open */
} builder;

static json_t *wide_new(const mt_json_reader *r)
{
    json_malloc_t allocate;
    json_free_t give;
    wide *number;

    json_get_alloc_funcs(&allocate, &give);
    number = allocate(sizeof(*number) + r->len + 1);
    if (!number)
        return NULL;
    number->json = (json_t){.type = JSON_REAL, .refcount = 1};
    number->value = r->str[0] == '-' ? -INFINITY : INFINITY;
    memcpy(number->text, r->str, r->len);
    number->text[r->len] = '\0';
    assert(json_real_value(&number->json) == number->value);
    return &number->json;
}

const char *mt_json_wide(const json_t *value)
{
    return json_is_real(value) && isinf(json_real_value(value)) ? ((const wide *)(const void *)value)->text : NULL;
}

bool mt_json_wide_is_int(const char *text)
{
    return text[strspn(text, "-0123456789")] == '\0';
}

static json_t *number(const mt_json_reader *r)
{
    if (r->is_int)
        return json_integer(r->integer);
    return isfinite(r->num) && !r->whole ? json_real(r->num) : wide_new(r);
}

static json_t *value_of(const mt_json_reader *r, mt_json_event event)
{
    switch (event) {
    case MT_JSON_OBJECT_BEGIN: return json_object();
    case MT_JSON_ARRAY_BEGIN: return json_array();
    case MT_JSON_STRING: return json_stringn_nocheck(r->str, r->len);
    case MT_JSON_NUMBER: return number(r);
    case MT_JSON_TRUE: return json_true();
    case MT_JSON_FALSE: return json_false();
    default: return json_null();
    }
}

/* Puts a value into the innermost open container; owns value. False: no memory. */
static bool put_value(builder *b, json_t *value)
{
    json_t *parent = b->depth ? b->open[b->depth - 1] : NULL;

    if (!value)
        return false;
    if (json_is_object(parent))
        return json_object_set_new_nocheck(parent, b->key.len ? b->key.data : "", value) == 0;
    if (parent)
        return json_array_append_new(parent, value) == 0;
    b->root = value;
    return true;
}

static bool read_key(builder *b, mt_error *err)
{
    const mt_json_reader *r = &b->reader;

    b->key.len = 0;
    if (memchr(r->str, '\0', r->len))
        return mt_fail(err, MT_E_INVALID, "a name in the JSON holds the character U+0000; choose another name");
    return mt_buf_add(&b->key, r->str, r->len) || mt_fail(err, MT_E_TOO_LARGE, "a name in the JSON is too long");
}

/* Handles one event. False: *err. */
static bool handle_event(builder *b, mt_json_event event, mt_error *err)
{
    json_t *value;

    if (event == MT_JSON_KEY)
        return read_key(b, err);
    if (event == MT_JSON_OBJECT_END || event == MT_JSON_ARRAY_END) {
        b->depth--;
        return true;
    }
    value = value_of(&b->reader, event);
    if (!put_value(b, value))
        return mt_fail(err, MT_E_TOO_LARGE, "there is no memory for so many values; send fewer");
    if (event == MT_JSON_OBJECT_BEGIN || event == MT_JSON_ARRAY_BEGIN)
        b->open[b->depth++] = value;
    return true;
}

static bool build(builder *b, mt_error *err)
{
    mt_json_event event;

    while ((event = mt_json_next(&b->reader)) != MT_JSON_END) {
        if (event == MT_JSON_ERROR) {
            *err = b->reader.error;
            return false;
        }
        if (!handle_event(b, event, err))
            return false;
    }
    return true;
}

json_t *mt_json_tree_read(const char *text, size_t len, mt_error *err)
{
    builder b = {.root = NULL};
    bool ok;

    mt_json_reader_init(&b.reader, text, len);
    mt_buf_init(&b.key, SIZE_MAX / 2);
    ok = build(&b, err);
    mt_buf_free(&b.key);
    mt_json_reader_free(&b.reader);
    if (!ok) {
        json_decref(b.root);
        b.root = NULL;
    }
    return b.root;
}

json_t *mt_json_tree_try(const char *text, size_t len)
{
    mt_error err;

    return mt_json_tree_read(text, len, &err);
}

static void write_real(mt_buf *out, const json_t *value)
{
    const char *text = mt_json_wide(value);
    char digits[MT_FLOAT_TEXT];

    if (!text) {
        mt_float_text(json_real_value(value), digits);
        text = digits;
    }
    mt_json_write(out, "%-s", text);
}

static void write_array(mt_buf *out, const json_t *value)
{
    mt_json_write(out, "[");
    for (size_t i = 0; i < json_array_size(value); i++)
        mt_json_tree_write(out, json_array_get(value, i));
    mt_json_write(out, "]");
}

static void write_object(mt_buf *out, const json_t *value)
{
    const char *key;
    json_t *item;

    mt_json_write(out, "{");
    json_object_foreach((json_t *)(uintptr_t)value, key, item) {
        mt_json_write(out, "%s:", key);
        mt_json_tree_write(out, item);
    }
    mt_json_write(out, "}");
}

bool mt_json_tree_write(mt_buf *out, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: write_object(out, value); break;
    case JSON_ARRAY: write_array(out, value); break;
    case JSON_STRING: mt_json_text(out, NULL, json_string_value(value), json_string_length(value)); break;
    case JSON_INTEGER: mt_json_write(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value)); break;
    case JSON_REAL: write_real(out, value); break;
    case JSON_TRUE: mt_json_write(out, "true"); break;
    case JSON_FALSE: mt_json_write(out, "false"); break;
    case JSON_NULL: mt_json_write(out, "null"); break;
    }
    return !out->full;
}

size_t mt_json_tree_memory(const json_t *value)
{
    enum { VALUE = 64, TABLE = 192, ENTRY = 64, PLACE = sizeof(json_t *) }; /* as jansson and the allocator have them */
    size_t sum = VALUE;
    const char *key;
    json_t *item;

    if (json_is_string(value))
        return sum + json_string_length(value);
    for (size_t i = 0; i < json_array_size(value); i++)
        sum += PLACE + mt_json_tree_memory(json_array_get(value, i));
    if (json_is_object(value))
        sum += TABLE;
    json_object_foreach((json_t *)(uintptr_t)value, key, item) {
        sum += ENTRY + strlen(key) + mt_json_tree_memory(item);
    }
    return value ? sum : 0;
}

const char *mt_json_word(const json_t *value)
{
    const char *text = json_string_value(value);

    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

const char *mt_json_kind(const json_t *value)
{
    if (!value)
        return "missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return mt_json_word(value) ? "a string" : "a string with a NUL character in it";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return mt_json_wide(value) ? "a number that is too large" : "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: return "null";
    }
    return "unknown";
}

const char *mt_json_shown(const json_t *value, char text[MT_JSON_SHOWN])
{
    const char *digits = mt_json_wide(value);

    if (digits)
        snprintf(text, MT_JSON_SHOWN, "%.20s%s", digits, strlen(digits) > 20 ? "..." : "");
    else if (json_is_integer(value))
        snprintf(text, MT_JSON_SHOWN, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        snprintf(text, MT_JSON_SHOWN, "%.9g", json_real_value(value));
    return text;
}
