/* See fields.h. */
#include "api/fields.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/json_tree.h"
#include "base/nearest.h"
#include "base/words.h"

static bool out_of_range(const mt_field *f, const json_t *value, mt_failure *why)
{
    char given[MT_JSON_SHOWN];

    return mt_failure_value(why, f->name, "is %s: send a value from %.15g to %.15g", mt_json_shown(value, given),
                            f->least, f->most);
}

/* 3.0 counts as an integer, since some languages write integers so. */
static bool read_int(const mt_field *f, const json_t *value, void *out, mt_failure *why)
{
    const double number = json_number_value(value);
    int64_t whole;

    if (!json_is_number(value) || (json_is_real(value) && number != floor(number)))
        return mt_failure_type(why, f->name, value, "an integer");
    if (!(number >= f->least && number <= f->most))
        return out_of_range(f, value, why);
    whole = json_is_integer(value) ? json_integer_value(value) : (int64_t)number;
    if (f->size == sizeof(whole))
        memcpy(out, &whole, sizeof(whole));
    else
        memcpy(out, &(int32_t){(int32_t)whole}, sizeof(int32_t)); /* least and most are within its range */
    return true;
}

static bool read_float(const mt_field *f, const json_t *value, float *out, mt_failure *why)
{
    const double number = json_number_value(value);

    if (!json_is_number(value))
        return mt_failure_type(why, f->name, value, "a number");
    if (!(number >= f->least && number <= f->most))
        return out_of_range(f, value, why);
    *out = (float)number;
    return true;
}

/* Strings are used as C strings, so a NUL in one is refused. */
static bool read_string(const mt_field *f, const json_t *value, const char **out, mt_failure *why)
{
    if (!json_is_string(value))
        return mt_failure_type(why, f->name, value, "a string");
    *out = mt_json_word(value);
    return *out || mt_failure_nul(why, f->name);
}

/* Whether a value asks for nothing: clients may send every field they know. */
static bool is_nothing(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return json_object_size(value) == 0;
    case JSON_ARRAY: return json_array_size(value) == 0;
    case JSON_STRING: return json_string_length(value) == 0;
    case JSON_FALSE:
    case JSON_NULL: return true;
    default: return false;
    }
}

static bool asks_nothing(const mt_field *f, const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) == f->least : is_nothing(value);
}

/* The row that f is like, under f's name. */
static mt_field row_like(const mt_field *f)
{
    for (size_t i = 0; i < f->table->count; i++)
        if (strcmp(f->table->fields[i].name, f->like) == 0) {
            mt_field row = f->table->fields[i];

            row.name = f->name;
            return row;
        }
    assert(false); /* a LIKE row names a row that its table does not have */
    return (mt_field){.name = f->name, .kind = MT_FIELD_REFUSED};
}

bool mt_field_read_value(mt_ask *ask, const mt_field *f, const json_t *value, mt_failure *why)
{
    const mt_field like = f->kind == MT_FIELD_LIKE ? row_like(f) : *f;
    void *member = (char *)ask + like.offset;

    f = &like;
    switch (f->kind) {
    case MT_FIELD_BOOL:
        if (!json_is_boolean(value))
            return mt_failure_type(why, f->name, value, "true or false");
        *(bool *)member = json_is_true(value);
        return true;
    case MT_FIELD_INT: return read_int(f, value, member, why);
    case MT_FIELD_FLOAT: return read_float(f, value, member, why);
    case MT_FIELD_STRING: return read_string(f, value, member, why);
    case MT_FIELD_LIKE: break; /* the row that a LIKE row names is of another kind */
    case MT_FIELD_OTHER: return f->read(ask, f->name, value, why);
    case MT_FIELD_REFUSED:
        return asks_nothing(f, value) || mt_failure_unsupported(why, f->name, "is not supported: leave it out");
    }
    return false;
}

static bool read_table(mt_ask *ask, const mt_field_table *table, const char *const *own, mt_failure *why)
{
    for (size_t i = 0; i < table->count; i++) {
        const mt_field *f = &table->fields[i];
        const json_t *value = json_object_get(ask->body, f->name);

        if (value && !json_is_null(value) && !mt_words_have(own, f->name) && !mt_field_read_value(ask, f, value, why))
            return false;
    }
    return true;
}

bool mt_fields_read_table(mt_ask *ask, const mt_field_table *table, mt_failure *why)
{
    return read_table(ask, table, NULL, why);
}

bool mt_fields_read_object(mt_ask *ask, const mt_field_table *table, const char *prefix, const json_t *object,
                           mt_failure *why)
{
    for (size_t i = 0; i < table->count; i++) {
        const json_t *value = json_object_get(object, table->fields[i].name);
        mt_field row = table->fields[i];

        if (!value || json_is_null(value))
            continue;
        row.name = mt_arena_printf(ask->arena, "%s%s", prefix, row.name); /* rows may keep their name */
        if (!row.name)
            return mt_failure_memory(why, NULL);
        if (!mt_field_read_value(ask, &row, value, why))
            return false;
    }
    return true;
}

/* Fields that do not change an answer: about the client, routing, caching, billing, or how others compute. */
static const char *const harmless[] = {"cache_prompt",
                                       "guided_decoding_backend",
                                       "id_slot",
                                       "metadata",
                                       "n_keep",
                                       "prompt_cache_key",
                                       "prompt_cache_options",
                                       "prompt_cache_retention",
                                       "provider",
                                       "request_id",
                                       "return_progress",
                                       "safety_identifier",
                                       "service_tier",
                                       "session_id",
                                       "spaces_between_special_tokens",
                                       "store",
                                       "timeout", /* server/calls/timeout.c reads it */
                                       "usage",
                                       "user",
                                       NULL};

static bool is_read(const mt_field_table *tables, size_t count, const char *name)
{
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < tables[k].count; i++)
            if (strcmp(name, tables[k].fields[i].name) == 0)
                return true;
    return false;
}

/* The field that an unknown name is probably meant to be; NULL: none is near. */
static const char *meant(const char *name, const mt_field_table *tables, size_t count,
                         const char *const *const known[3])
{
    enum { SHORTEST = 4, LONGEST = 32 }; /* comparing takes time that grows with the square of it */
    mt_nearest nearest;

    if (strlen(name) < SHORTEST || strlen(name) > LONGEST)
        return NULL;
    mt_nearest_init(&nearest, name);
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < tables[k].count; i++)
            if (tables[k].fields[i].kind != MT_FIELD_REFUSED)
                mt_nearest_offer(&nearest, tables[k].fields[i].name);
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; known[k] && known[k][i]; i++)
            mt_nearest_offer(&nearest, known[k][i]);
    return nearest.best;
}

void mt_fields_note(mt_ask *ask, const char *prefix, const json_t *object, const mt_field_table *tables, size_t count,
                    const char *const *const known[3])
{
    enum { MOST = 16 }; /* of a body, which may have millions */
    char noted[sizeof(ask->ignored)];
    const char *name, *near;
    json_t *value;
    size_t left = MOST;

    json_object_foreach((json_t *)(uintptr_t)object, name, value) { /* not const for jansson; nothing is changed */
        if (is_nothing(value) || is_read(tables, count, name) || mt_words_have(known[0], name) ||
            mt_words_have(known[1], name) || mt_words_have(known[2], name))
            continue;
        near = left > 0 ? meant(name, tables, count, known) : NULL;
        snprintf(noted, sizeof(noted), "%s%s%s%s%s", prefix, name, near ? " (did you mean " : "", near ? near : "",
                 near ? "?)" : "");
        mt_ask_ignore(ask, left > 0 ? noted : "...");
        if (left-- == 0)
            break;
    }
}

bool mt_fields_read(mt_ask *ask, const mt_field_table *tables, size_t count, const char *const *elsewhere,
                    const char *const *own, mt_failure *why)
{
    for (size_t i = 0; i < count; i++)
        if (!read_table(ask, &tables[i], own, why))
            return false;
    mt_fields_note(ask, "", ask->body, tables, count, (const char *const *const[3]){harmless, elsewhere, own});
    return true;
}
