#include "api/fields.h"

#include <math.h>
#include <string.h>

const char *mt_json_kind(const json_t *value)
{
    if (!value)
        return "missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: return "null";
    }
    return "unknown";
}

static bool wrong_type(const mt_field *f, const json_t *value, const char *wanted, mt_failure *why)
{
    return mt_failure_set(why, 400, "invalid_type", f->name, "\"%s\" is %s: send %s", f->name, mt_json_kind(value),
                          wanted);
}

static bool out_of_range(const mt_field *f, const char *given, mt_failure *why)
{
    return mt_failure_set(why, 400, "invalid_value", f->name, "\"%s\" is %s: send a value from %.15g to %.15g", f->name,
                          given, f->least, f->most);
}

/* 3.0 is an integer to many clients' languages. */
static bool read_int(const mt_field *f, const json_t *value, int64_t *out, mt_failure *why)
{
    const double number = json_number_value(value);
    char given[40];

    if (!json_is_number(value) || (json_is_real(value) && number != floor(number)))
        return wrong_type(f, value, "an integer", why);
    snprintf(given, sizeof(given), "%.17g", number);
    if (!(number >= f->least && number <= f->most))
        return out_of_range(f, given, why);
    *out = json_is_integer(value) ? json_integer_value(value) : (int64_t)number;
    return true;
}

static bool read_float(const mt_field *f, const json_t *value, float *out, mt_failure *why)
{
    const double number = json_number_value(value);
    char given[40];

    if (!json_is_number(value))
        return wrong_type(f, value, "a number", why);
    snprintf(given, sizeof(given), "%.9g", number);
    if (!(number >= f->least && number <= f->most))
        return out_of_range(f, given, why);
    *out = (float)number;
    return true;
}

/* A string with a NUL in it would be another one here than there. */
static bool read_string(const mt_field *f, const json_t *value, const char **out, mt_failure *why)
{
    if (!json_is_string(value))
        return wrong_type(f, value, "a string", why);
    if (strlen(json_string_value(value)) != json_string_length(value))
        return mt_failure_set(why, 400, "invalid_value", f->name, "\"%s\" has a NUL character in it: leave it out",
                              f->name);
    *out = json_string_value(value);
    return true;
}

static bool read_field(mt_ask *ask, const mt_field *f, const json_t *value, mt_failure *why)
{
    void *member = (char *)ask + f->offset;

    switch (f->kind) {
    case MT_FIELD_BOOL:
        if (!json_is_boolean(value))
            return wrong_type(f, value, "true or false", why);
        *(bool *)member = json_is_true(value);
        return true;
    case MT_FIELD_INT: return read_int(f, value, member, why);
    case MT_FIELD_FLOAT: return read_float(f, value, member, why);
    case MT_FIELD_STRING: return read_string(f, value, member, why);
    case MT_FIELD_OTHER: return f->read(ask, f->name, value, why);
    }
    return false;
}

bool mt_fields_read(mt_ask *ask, const mt_field *fields, size_t count, const json_t *object, mt_failure *why)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(object, fields[i].name);

        if (value && !json_is_null(value) && !read_field(ask, &fields[i], value, why))
            return false;
    }
    return true;
}
