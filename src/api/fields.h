/* Reads fields of a request's body by tables. A field that is null counts as missing. A field of the wrong type or out
   of its range is a 400 that names it; so is a field that would change the answer but is not supported. A field that no
   table has is noted (mt_ask_ignore), unless it is known to change nothing. */
#ifndef MT_API_FIELDS_H
#define MT_API_FIELDS_H

#include "api/ask.h"
#include "api/failure.h"

typedef struct mt_field mt_field;
typedef struct mt_field_table mt_field_table;

typedef enum mt_field_kind {
    MT_FIELD_BOOL,
    MT_FIELD_INT,    /* an integer of 4 or 8 bytes, within least and most */
    MT_FIELD_FLOAT,  /* float, within least and most */
    MT_FIELD_STRING, /* const char *, borrowed from the body */
    MT_FIELD_OTHER,  /* the row's function reads it */
    MT_FIELD_LIKE,   /* read as another row, of `table`, which `like` names */
    /* Not supported: accepted only with a value that asks for nothing, such as false or the number `least` */
    MT_FIELD_REFUSED
} mt_field_kind;

/* Reads a field into the ask. value is neither missing nor null. False: *why, which names the field. */
typedef bool mt_field_read(mt_ask *ask, const char *name, const json_t *value, mt_failure *why);

struct mt_field {
    const char *name;
    mt_field_kind kind;
    size_t offset, size; /* of the member of mt_ask that gets the value */
    double least, most;  /* the range of INT and FLOAT; for REFUSED see there */
    mt_field_read *read; /* for OTHER */
    const char *like;    /* for LIKE */
    const mt_field_table *table;
};

struct mt_field_table {
    const mt_field *fields;
    size_t count;
};

/* Reads all fields of the ask's body by the tables, in their order: where two set the same member, the last one wins.
   elsewhere: names of fields that the caller reads, ended by NULL. own: the same, for names that the tables must not
   read since they mean something else in this dialect; may be NULL. False: *why. */
bool mt_fields_read(mt_ask *ask, const mt_field_table *tables, size_t count, const char *const *elsewhere,
                    const char *const *own, mt_failure *why) MT_NODISCARD;

/* Notes members of an object that neither a table nor one of the lists (each ended by NULL, or NULL) has, with a prefix
   before their names, and the name that was probably meant. Values that ask for nothing (null, false, "", [], {}) are
   not noted. */
void mt_fields_note(mt_ask *ask, const char *prefix, const json_t *object, const mt_field_table *tables, size_t count,
                    const char *const *const known[3]);

/* Reads the fields of one table; others are not noted. */
bool mt_fields_read_table(mt_ask *ask, const mt_field_table *table, mt_failure *why) MT_NODISCARD;

/* Reads members of another object than the body by a table. prefix: before their names in errors, such as "options.".
   Others are not noted. False: *why. */
bool mt_fields_read_object(mt_ask *ask, const mt_field_table *table, const char *prefix, const json_t *object,
                           mt_failure *why) MT_NODISCARD;

/* Reads one value by a row. False: *why, which names the row. */
bool mt_field_read_value(mt_ask *ask, const mt_field *row, const json_t *value, mt_failure *why) MT_NODISCARD;

/* Rows of tables. MEMBER is for the others: a row whose value becomes a member of mt_ask. */
#define MT_FIELD_MEMBER(field, kind, member, low, high)                                                   \
    {                                                                                                     \
        field, kind, offsetof(mt_ask, member), sizeof(((mt_ask *)0)->member), low, high, NULL, NULL, NULL \
    }
#define MT_FIELD_BOOL_ROW(field, member) MT_FIELD_MEMBER(field, MT_FIELD_BOOL, member, 0, 0)
#define MT_FIELD_INT_ROW(field, member, low, high) MT_FIELD_MEMBER(field, MT_FIELD_INT, member, low, high)
#define MT_FIELD_FLOAT_ROW(field, member, low, high) MT_FIELD_MEMBER(field, MT_FIELD_FLOAT, member, low, high)
#define MT_FIELD_STRING_ROW(field, member) MT_FIELD_MEMBER(field, MT_FIELD_STRING, member, 0, 0)
#define MT_FIELD_OTHER_ROW(field, function)                     \
    {                                                           \
        field, MT_FIELD_OTHER, 0, 0, 0, 0, function, NULL, NULL \
    }
#define MT_FIELD_REFUSED_ROW(field, nothing)                        \
    {                                                               \
        field, MT_FIELD_REFUSED, 0, 0, nothing, 0, NULL, NULL, NULL \
    }
/* A field with another name than the row of mt_fields_common that it is like */
#define MT_FIELD_LIKE_ROW(field, common)                                  \
    {                                                                     \
        field, MT_FIELD_LIKE, 0, 0, 0, 0, NULL, common, &mt_fields_common \
    }

/* Fields that all of OpenAI's dialects about text have; fields of other servers that are refused. */
extern const mt_field_table mt_fields_common, mt_fields_refused;

/* Fields of calls for vectors; further fields of calls for scores. */
extern const mt_field_table mt_fields_vectors, mt_fields_encoding, mt_fields_scores;

/* Readers used by several tables, in fields_common.c. A max_tokens of -1 means all that the context leaves. */
mt_field_read mt_read_bias, mt_read_logprobs, mt_read_max_tokens, mt_read_seed, mt_read_stop, mt_read_top_logprobs,
    mt_read_truncate, mt_read_truncation_side;

/* Readers of fields about thinking, in fields_thinking.c: a word; a number of tokens; an object of Anthropic's form,
   {"type", "budget_tokens"}, and one of OpenRouter's, {"effort", "max_tokens", "exclude"}. What the words mean, and
   whether to think at all, src/chat knows. */
mt_field_read mt_read_effort, mt_read_think_budget, mt_read_thinking, mt_read_reasoning;

/* Readers of fields about the format of the answer: OpenAI's response_format, and those of vLLM and llama.cpp. In
   fields_format.c. */
mt_field_read mt_read_response_format, mt_read_guided, mt_read_structured, mt_read_plain_format, mt_read_logprob_ids;

/* Sets the format of the answer. type: "text", "json_object" or "json_schema"; NULL is an error. schema: NULL where the
   type needs none. False: *why, which names the field `name`. */
bool mt_read_format(mt_ask *ask, const char *name, const char *type, const json_t *schema, bool strict,
                    mt_failure *why);

#endif
