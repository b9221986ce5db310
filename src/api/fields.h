/* The fields of a request body, read by tables. A field that is null counts as left out; one of a wrong type or out of
   its range is a 400 that names it, and so is one that would change the answer and that nobody here reads. One that no
   table names is noted (mt_ask_ignore), unless it is known to change nothing. */
#ifndef MT_API_FIELDS_H
#define MT_API_FIELDS_H

#include "api/ask.h"
#include "api/failure.h"

typedef struct mt_field mt_field;

typedef enum mt_field_kind {
    MT_FIELD_BOOL,
    MT_FIELD_INT,    /* an integer of 4 or 8 bytes, within least and most */
    MT_FIELD_FLOAT,  /* float, within least and most */
    MT_FIELD_STRING, /* const char *, borrowed from the body */
    MT_FIELD_OTHER,  /* read does it */
    MT_FIELD_REFUSED /* not supported: only a value that asks for nothing is taken, such as false or the number least */
} mt_field_kind;

/* value is present and not null; name is the field's, to be put into why->param. */
typedef bool mt_field_read(mt_ask *ask, const char *name, const json_t *value, mt_failure *why);

struct mt_field {
    const char *name;
    mt_field_kind kind;
    size_t offset, size; /* in mt_ask */
    double least, most;
    mt_field_read *read;
};

typedef struct mt_field_table {
    const mt_field *fields;
    size_t count;
} mt_field_table;

/* Reads the fields of the ask's body: those of the tables in their order, so that the last has the last word.
   elsewhere: names that others read, up to a NULL. own: the same for names that mean something else in a dialect, so
   that no table reads them; NULL: none. */
bool mt_fields_read(mt_ask *ask, const mt_field_table *tables, size_t count, const char *const *elsewhere,
                    const char *const *own, mt_failure *why) MT_NODISCARD;

/* The same of one table, and nothing is noted. */
bool mt_fields_read_table(mt_ask *ask, const mt_field_table *table, mt_failure *why) MT_NODISCARD;

#define MT_FIELD_BOOL_ROW(field, member)                                                          \
    {                                                                                             \
        field, MT_FIELD_BOOL, offsetof(mt_ask, member), sizeof(((mt_ask *)0)->member), 0, 0, NULL \
    }
#define MT_FIELD_INT_ROW(field, member, low, high)                                                    \
    {                                                                                                 \
        field, MT_FIELD_INT, offsetof(mt_ask, member), sizeof(((mt_ask *)0)->member), low, high, NULL \
    }
#define MT_FIELD_FLOAT_ROW(field, member, low, high)                                                    \
    {                                                                                                   \
        field, MT_FIELD_FLOAT, offsetof(mt_ask, member), sizeof(((mt_ask *)0)->member), low, high, NULL \
    }
#define MT_FIELD_STRING_ROW(field, member)                                                          \
    {                                                                                               \
        field, MT_FIELD_STRING, offsetof(mt_ask, member), sizeof(((mt_ask *)0)->member), 0, 0, NULL \
    }
#define MT_FIELD_OTHER_ROW(field, function)         \
    {                                               \
        field, MT_FIELD_OTHER, 0, 0, 0, 0, function \
    }

#define MT_FIELD_REFUSED_ROW(field, nothing)            \
    {                                                   \
        field, MT_FIELD_REFUSED, 0, 0, nothing, 0, NULL \
    }

/* Those that every dialect of OpenAI's about answers has, and those of other servers that are refused. */
extern const mt_field_table mt_fields_common, mt_fields_refused;

/* Those of calls for vectors, and of these for scores. */
extern const mt_field_table mt_fields_vectors, mt_fields_scores;

/* Fields of several tables. -1 of max_tokens stands for all that the context leaves. In fields_common.c. */
mt_field_read mt_read_max_tokens, mt_read_stop, mt_read_truncate, mt_read_truncation_side;

/* What the content has to look like: OpenAI's response_format, and vLLM's fields for the same. In fields_format.c. */
mt_field_read mt_read_response_format, mt_read_guided, mt_read_structured, mt_read_plain_format;

/* The same of a dialect that has the schema elsewhere. type may be NULL, which is told; schema, too, where the type
   wants none. */
bool mt_read_format(mt_ask *ask, const char *name, const char *type, const json_t *schema, bool strict,
                    mt_failure *why);

#endif
