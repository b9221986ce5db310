/* The fields of a request body, read by a table: one table a dialect. A field that is null counts as left out; one that
   no table names is not looked at; one of a wrong type or out of its range is a 400 that names it. */
#ifndef MT_API_FIELDS_H
#define MT_API_FIELDS_H

#include "api/ask.h"
#include "api/failure.h"

typedef struct mt_field mt_field;

typedef enum mt_field_kind {
    MT_FIELD_BOOL,
    MT_FIELD_INT,    /* int64_t, within least and most */
    MT_FIELD_FLOAT,  /* float, within least and most */
    MT_FIELD_STRING, /* const char *, borrowed from the body */
    MT_FIELD_OTHER   /* read does it */
} mt_field_kind;

/* value is present and not null; name is the field's, to be put into why->param. */
typedef bool mt_field_read(mt_ask *ask, const char *name, const json_t *value, mt_failure *why);

struct mt_field {
    const char *name;
    mt_field_kind kind;
    size_t offset; /* in mt_ask */
    double least, most;
    mt_field_read *read;
};

bool mt_fields_read(mt_ask *ask, const mt_field *fields, size_t count, const json_t *object,
                    mt_failure *why) MT_NODISCARD;

/* "a string", "missing": what a value is, for sentences. */
const char *mt_json_kind(const json_t *value);

#define MT_FIELD_BOOL_ROW(field, member)                           \
    {                                                              \
        field, MT_FIELD_BOOL, offsetof(mt_ask, member), 0, 0, NULL \
    }
#define MT_FIELD_INT_ROW(field, member, low, high)                     \
    {                                                                  \
        field, MT_FIELD_INT, offsetof(mt_ask, member), low, high, NULL \
    }
#define MT_FIELD_FLOAT_ROW(field, member, low, high)                     \
    {                                                                    \
        field, MT_FIELD_FLOAT, offsetof(mt_ask, member), low, high, NULL \
    }
#define MT_FIELD_STRING_ROW(field, member)                           \
    {                                                                \
        field, MT_FIELD_STRING, offsetof(mt_ask, member), 0, 0, NULL \
    }
#define MT_FIELD_OTHER_ROW(field, function)      \
    {                                            \
        field, MT_FIELD_OTHER, 0, 0, 0, function \
    }

/* Those that every dialect of OpenAI's has. Read them first: what is a dialect's own has the last word. */
extern const mt_field mt_fields_common[];
extern const size_t mt_fields_common_count;

/* What the content has to look like: OpenAI's response_format, and vLLM's fields for the same. In fields_format.c. */
mt_field_read mt_read_response_format, mt_read_guided, mt_read_structured;

#endif
