/* Shared by the files schema*.c. A place is a position in the answer to which one or several schemas apply. */
#ifndef MT_SAMPLE_CONSTRAINT_SCHEMA_INSIDE_H
#define MT_SAMPLE_CONSTRAINT_SCHEMA_INSIDE_H

#include "base/arena.h"
#include "base/limits.h"
#include "sample/constraint/json_number.h"
#include "sample/constraint/regex.h"
#include "sample/constraint/schema.h"
#include "sample/constraint/value_set.h"

/* A schema that applies to a place. */
typedef struct mt_schema_part {
    const json_t *schema;
    const char *path; /* where the schema is, as a JSON pointer */
    uint16_t parent;  /* index of the part that brought it to the same place; its own index where none did */
    bool split;       /* its anyOf has been handled */
} mt_schema_part;

/* All schemas that apply to a place. */
typedef struct mt_schema_place {
    mt_schema_part part[MT_LIMIT_SCHEMA_PARTS];
    size_t count;
    bool never; /* one of them allows nothing */
} mt_schema_place;

enum {
    MT_TYPE_NULL = 1,
    MT_TYPE_BOOLEAN = 2,
    MT_TYPE_INTEGER = 4,
    MT_TYPE_NUMBER = 8, /* with a fraction */
    MT_TYPE_STRING = 16,
    MT_TYPE_ARRAY = 32,
    MT_TYPE_OBJECT = 64,
    MT_TYPE_ANY = 127
};

/* Keyword in schemas that are made here, as the opposite of another for example, and not by the client. Their
   properties are not meant as a complete list, and evaluate nothing for unevaluatedProperties and unevaluatedItems;
   their anyOf may be empty, which allows nothing. */
#define MT_SCHEMA_MADE "motet:made"
/* Keyword in the opposite of a schema: it does not evaluate the properties that it mentions. */
#define MT_SCHEMA_OPPOSITE "motet:opposite"
/* Keyword of an object {"names": {...}, "schema": S}: it has a property with none of these names that satisfies S. */
#define MT_SCHEMA_OUTSIDE "motet:outside"

/* The rule of a place, found by its parts. */
typedef struct mt_schema_rule {
    const mt_schema_part *parts; /* of its place; in the arena */
    size_t count;
    mt_rule rule; /* of the grammar */
    uint64_t hash;
    uint32_t same; /* next rule with the same hash, plus 1 */
} mt_schema_rule;

/* A schema made from another. */
typedef struct mt_schema_made {
    const json_t *from; /* the original schema; borrowed */
    int kind;           /* what it is of the original: a constant of schema_not.c or schema_choice.c */
    json_t *schema;
    uint32_t same; /* next one with the same hash, plus 1 */
} mt_schema_made;

/* The rule of a property with its value. */
typedef struct mt_schema_member {
    const char *name;
    mt_rule value, rule; /* of the value; of the property with its value */
    uint32_t same;
} mt_schema_member;

/* Numbers whose expression is known. */
typedef struct mt_schema_numbers_known {
    mt_number number; /* its bytes are compared */
    mt_expr expr;
} mt_schema_numbers_known;

/* A regular expression that was read. */
typedef struct mt_schema_regex_known {
    const char *text;
    const mt_regex *regex; /* NULL: it is invalid */
} mt_schema_regex_known;

typedef struct mt_schema_set_known {
    const json_t *list;
    mt_value_set *set; /* of the values in list */
} mt_schema_set_known;

#define MT_SCHEMA_SLOTS 1024

/* Opposites of schemas multiply the number of places. Where there are too many, a schema is read again with less
   effort. */
typedef enum mt_schema_effort {
    MT_EFFORT_ALL,  /* all ways in which alternatives can differ */
    MT_EFFORT_BEST, /* only the best of them */
    MT_EFFORT_NONE  /* none, which is recorded as not enforced */
} mt_schema_effort;

typedef struct mt_schema_reader {
    mt_json *j;
    mt_arena *arena; /* owns paths, places and regular expressions */
    const json_t *root;
    mt_schema_effort effort; /* how much is tried to keep alternatives apart */
    bool crowded;            /* there were too many places */
    bool strict;             /* keywords that cannot be enforced are errors */
    mt_schema_rule *rules;
    size_t rule_count, rule_cap;
    uint32_t rule_slots[MT_SCHEMA_SLOTS];
    mt_schema_made *made; /* owns these schemas */
    size_t made_count, made_cap;
    uint32_t made_slots[MT_SCHEMA_SLOTS];
    mt_schema_member *member_rules;
    size_t member_count, member_cap;
    uint32_t member_slots[MT_SCHEMA_SLOTS];
    mt_schema_numbers_known *numbers;
    size_t number_count, number_cap;
    mt_schema_regex_known regexes[512];
    mt_schema_set_known sets[16]; /* sets of long lists in which values were looked up */
    size_t sets_made;             /* number made so far; the next replaces the oldest */
    size_t patterns, members;     /* counted against limits */
    size_t judged;                /* steps of checking values */
    size_t compared;              /* pairs of schemas compared */
    size_t apart_steps;           /* steps of comparing them */
    mt_error *err;
} mt_schema_reader;

/* Sets an error that names keyword and place; returns false. */
bool mt_schema_fail(mt_schema_reader *r, const char *path, const char *keyword, const char *what);

/* The keyword cannot be enforced: true where it may be left out, which is recorded; else false with a sentence. */
bool mt_schema_loosen(mt_schema_reader *r, const char *path, const char *keyword, const char *what) MT_NODISCARD;

/* Adds a schema to a place, with all schemas that it applies to the same place. False with a sentence. */
bool mt_schema_add(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path) MT_NODISCARD;

/* Paths of a schema within another, for messages. */
const char *mt_schema_path(mt_schema_reader *r, const char *path, const char *keyword, const char *key);
const char *mt_schema_path_index(mt_schema_reader *r, const char *path, const char *keyword, size_t index);

/* The expression of what is valid at a place: a call of its rule. False with a sentence. */
bool mt_schema_call(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;

/* The schema that a $ref names; NULL with a sentence. */
const json_t *mt_schema_target(mt_schema_reader *r, const json_t *ref, const char *path);

/* Reads the regular expression of a keyword; NULL with a sentence. */
const mt_regex *mt_schema_regex(mt_schema_reader *r, const char *path, const char *keyword, const char *text,
                                size_t len);

/* schema_types.c: types that a place allows; where none is given, those that its keywords are about. */
bool mt_schema_types(mt_schema_reader *r, const mt_schema_place *place, unsigned *types) MT_NODISCARD;
bool mt_schema_own_types(mt_schema_reader *r, const mt_schema_part *part, unsigned *types) MT_NODISCARD;
bool mt_schema_type_name(const char *name, unsigned *type);
bool mt_schema_count(mt_schema_reader *r, const mt_schema_part *part, const char *keyword, uint32_t *out) MT_NODISCARD;

/* schema_scalar.c */
bool mt_schema_numbers(mt_schema_reader *r, const mt_schema_place *place, unsigned types, mt_expr *out) MT_NODISCARD;
bool mt_schema_decimal(const json_t *value, mt_decimal *out) MT_NODISCARD;

/* schema_string.c */
typedef struct mt_schema_strings {
    uint32_t least, most;
    const mt_regex *all[MT_LIMIT_SCHEMA_STRINGS], *none[MT_LIMIT_SCHEMA_STRINGS];
    size_t all_count, none_count;
    const char *path; /* path of the part with the last pattern */
} mt_schema_strings;

bool mt_schema_strings_read(mt_schema_reader *r, const mt_schema_place *place, mt_schema_strings *s) MT_NODISCARD;
bool mt_schema_string(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;

/* schema_format.c: a regular expression for a string format; NULL: unknown. short_texts: another one with texts of at
   most *most characters, for strings with a small maxLength. */
const char *mt_schema_format(const char *name, const char **short_texts, uint32_t *most);
/* An expression that all texts of a format match, and others too; NULL: unknown. */
const char *mt_schema_format_wide(const char *name);
/* Bounds of a number format; false: unknown. */
bool mt_schema_number_format(const char *name, const char **low, const char **high);

/* schema_values.c: values listed by enum or const. *has: some schema lists them. */
bool mt_schema_constants(mt_schema_reader *r, const mt_schema_place *place, bool *has, mt_expr *out) MT_NODISCARD;
/* All values that a place allows, as a new list; NULL where they are not listed, or are more than `most`. */
json_t *mt_schema_values(mt_schema_reader *r, const mt_schema_place *place, size_t most);
/* The values that a part's "not" excludes: a list, or where *single one value; NULL: none. */
const json_t *mt_schema_excluded(const mt_schema_part *part, bool *single);

/* schema_object.c, schema_keys.c, schema_array.c */
bool mt_schema_object(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;
bool mt_schema_array(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;

/* Whether part `part` was applied by part `above`, or is it. */
bool mt_schema_below(const mt_schema_place *place, size_t part, size_t above);

/* schema_apart.c: whether no value can satisfy both schemas; whether nothing is valid at a place. Only where that is
   easy to see. */
bool mt_schema_apart(mt_schema_reader *r, const json_t *a, const json_t *b);
bool mt_schema_dead(mt_schema_reader *r, const mt_schema_place *place);
bool mt_schema_clash(mt_schema_reader *r, const json_t *a, const json_t *b); /* nothing is valid at a place with both */
/* the target of a schema that is only a $ref */
const json_t *mt_schema_resolve(mt_schema_reader *r, const json_t *schema);

/* schema_not.c: the opposite of a schema, owned by the reader; NULL with a sentence. *partly: some values that violate
   the schema are not allowed by the result. */
const json_t *mt_schema_make_not(mt_schema_reader *r, const json_t *schema, const char *path, bool *partly);
const json_t *mt_schema_wrap_not(mt_schema_reader *r, const json_t *schema); /* {"not": schema} */
bool mt_schema_leaf_not(const json_t *schema); /* the "not" is about one keyword that other code handles */
/* remembers a schema made from another; owns made */
json_t *mt_schema_keep(mt_schema_reader *r, const json_t *from, int kind, json_t *made);
const json_t *mt_schema_kept(const mt_schema_reader *r, const json_t *from, int kind);
json_t *mt_schema_new(const char *type); /* {"type": type}, marked as made; type NULL: without */

/* schema_choice.c: translates oneOf, if, not and dependencies of a part to schemas with anyOf, and adds these to the
   place. False with a sentence. */
bool mt_schema_add_choices(mt_schema_reader *r, mt_schema_place *place, size_t at) MT_NODISCARD;
/* Add a schema below a part (schema_path.c); the same with its allOf and $ref (schema_place.c). */
bool mt_schema_add_below(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path,
                         size_t parent) MT_NODISCARD;
bool mt_schema_add_with_all(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path,
                            size_t parent) MT_NODISCARD;

/* schema_judge.c: whether a value satisfies a schema. */
typedef enum mt_judged { MT_JUDGED_NO, MT_JUDGED_YES, MT_JUDGED_UNKNOWN } mt_judged;
mt_judged mt_schema_judge(mt_schema_reader *r, const json_t *schema, const json_t *value);

#endif
