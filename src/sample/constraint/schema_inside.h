/* What the files that read schemas share. */
#ifndef MT_SAMPLE_CONSTRAINT_SCHEMA_INSIDE_H
#define MT_SAMPLE_CONSTRAINT_SCHEMA_INSIDE_H

#include "base/arena.h"
#include "base/limits.h"
#include "sample/constraint/json_number.h"
#include "sample/constraint/regex.h"
#include "sample/constraint/schema.h"
#include "sample/constraint/value_set.h"

/* A schema that applies to a place, and where it stands. */
typedef struct mt_schema_part {
    const json_t *schema;
    const char *path;
    uint16_t parent; /* the part that applies it to the same place; itself when there is none */
    bool split;      /* its anyOf has been dealt with */
} mt_schema_part;

/* All schemas that apply to one place together. */
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

/* Schemas that are made here carry this: what they say of objects is not meant to list all properties. */
#define MT_SCHEMA_MADE "motet:made"
/* So does the opposite of a schema: properties that it speaks of are not evaluated by it. */
#define MT_SCHEMA_OPPOSITE "motet:opposite"
/* Of an object: {"names": {...}, "schema": S}: it has a property that is none of the names and fits S. */
#define MT_SCHEMA_OUTSIDE "motet:outside"

typedef struct mt_schema_rule {
    const mt_schema_part *parts;
    size_t count;
    mt_rule rule;
    uint64_t hash;
    uint32_t same; /* the next of the same hash, plus 1 */
} mt_schema_rule;

typedef struct mt_schema_made {
    const json_t *from;
    int kind;
    json_t *schema;
    uint32_t same; /* the next of the same hash, plus 1 */
} mt_schema_made;

typedef struct mt_schema_member {
    const char *name;
    mt_rule value, rule;
    uint32_t same;
} mt_schema_member;

typedef struct mt_schema_numbers_known {
    mt_number number;
    mt_expr expr;
} mt_schema_numbers_known;

typedef struct mt_schema_regex_known {
    const char *text;
    const mt_regex *regex; /* NULL: it is none */
} mt_schema_regex_known;

typedef struct mt_schema_set_known {
    const json_t *list;
    mt_value_set *set;
} mt_schema_set_known;

#define MT_SCHEMA_SLOTS 1024

/* Opposites multiply places. Where there are too many, less of them is followed. */
typedef enum mt_schema_effort {
    MT_EFFORT_ALL,  /* all ways to keep alternatives apart */
    MT_EFFORT_BEST, /* only the best of them */
    MT_EFFORT_NONE  /* none; that needs to be said */
} mt_schema_effort;

typedef struct mt_schema_reader {
    mt_json *j;
    mt_arena *arena; /* paths, places, regular expressions */
    const json_t *root;
    mt_schema_effort effort;
    bool crowded; /* there were too many of them */
    bool strict;  /* keywords that cannot be followed are errors */
    mt_schema_rule *rules;
    size_t rule_count, rule_cap;
    uint32_t rule_slots[MT_SCHEMA_SLOTS];
    mt_schema_made *made; /* schemas that were made of others; references are ours */
    size_t made_count, made_cap;
    uint32_t made_slots[MT_SCHEMA_SLOTS];
    mt_schema_member *member_rules;
    size_t member_count, member_cap;
    uint32_t member_slots[MT_SCHEMA_SLOTS];
    mt_schema_numbers_known *numbers;
    size_t number_count, number_cap;
    mt_schema_regex_known regexes[512];
    mt_schema_set_known sets[16]; /* of long lists that values were looked for in */
    size_t sets_made;             /* the next takes the place of the oldest */
    size_t patterns, members;     /* regular expressions and properties so far */
    size_t judged;                /* steps of judging values */
    size_t compared;              /* pairs of schemas that were compared */
    size_t apart_steps;           /* and what telling them apart has taken */
    mt_error *err;
} mt_schema_reader;

/* Names keyword and place; returns false. */
bool mt_schema_fail(mt_schema_reader *r, const char *path, const char *keyword, const char *what);

/* The keyword cannot be followed: true when it may be left out, which is noted, else false with a sentence. */
bool mt_schema_loosen(mt_schema_reader *r, const char *path, const char *keyword, const char *what) MT_NODISCARD;

/* Adds a schema, with all that it applies to the same place. False with a sentence. */
bool mt_schema_add(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path) MT_NODISCARD;
const char *mt_schema_path(mt_schema_reader *r, const char *path, const char *keyword, const char *key);
const char *mt_schema_path_index(mt_schema_reader *r, const char *path, const char *keyword, size_t index);

/* What is valid at a place, as a call of its rule. False with a sentence. */
bool mt_schema_call(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;

/* What a $ref stands for; NULL with a sentence. */
const json_t *mt_schema_target(mt_schema_reader *r, const json_t *ref, const char *path);

/* The regular expression of a keyword; NULL with a sentence. */
const mt_regex *mt_schema_regex(mt_schema_reader *r, const char *path, const char *keyword, const char *text,
                                size_t len);

/* schema_types.c: types that a place allows; those whose keywords it has, where none is given. */
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
    const char *path; /* of the part with the last pattern */
} mt_schema_strings;

bool mt_schema_strings_read(mt_schema_reader *r, const mt_schema_place *place, mt_schema_strings *s) MT_NODISCARD;
bool mt_schema_string(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;

/* schema_format.c: the expression of a format of strings; NULL: none is known. short_texts: another one, whose texts
   have at most *most characters, for where there is not much room. */
const char *mt_schema_format(const char *name, const char **short_texts, uint32_t *most);
/* An expression that all texts of a format match, and others too; NULL: none is known. */
const char *mt_schema_format_wide(const char *name);
/* Bounds of a format of numbers; false: none is known. */
bool mt_schema_number_format(const char *name, const char **low, const char **high);

/* schema_values.c: values that are listed. *has: some schema lists them. */
bool mt_schema_constants(mt_schema_reader *r, const mt_schema_place *place, bool *has, mt_expr *out) MT_NODISCARD;
/* All values that a place allows, a new list; NULL when they are not listed, or are more than `most`. */
json_t *mt_schema_values(mt_schema_reader *r, const mt_schema_place *place, size_t most);
/* Values that the place's "not" leaves out: calls with each until it returns false. */
const json_t *mt_schema_excluded(const mt_schema_part *part, bool *single);

/* schema_object.c, schema_keys.c, schema_array.c */
bool mt_schema_object(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;
bool mt_schema_array(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;
bool mt_schema_below(const mt_schema_place *place, size_t part, size_t above); /* applied by it, or itself */

/* schema_apart.c: whether no value is valid under both; whether nothing is valid at a place, where that is plain. */
bool mt_schema_apart(mt_schema_reader *r, const json_t *a, const json_t *b);
bool mt_schema_dead(mt_schema_reader *r, const mt_schema_place *place);
bool mt_schema_clash(mt_schema_reader *r, const json_t *a, const json_t *b); /* nothing is valid at a place with both */
const json_t *mt_schema_resolve(mt_schema_reader *r, const json_t *schema);  /* what a lone $ref stands for */

/* schema_not.c: a schema made of another, owned by the reader. NULL with a sentence. */
const json_t *mt_schema_make_not(mt_schema_reader *r, const json_t *schema, const char *path, bool *partly);
const json_t *mt_schema_wrap_not(mt_schema_reader *r, const json_t *schema); /* {"not": schema} */
bool mt_schema_leaf_not(const json_t *schema); /* what a "not" is about is one keyword, which others look after */
json_t *mt_schema_keep(mt_schema_reader *r, const json_t *from, int kind, json_t *made); /* takes made */
const json_t *mt_schema_kept(const mt_schema_reader *r, const json_t *from, int kind);
json_t *mt_schema_new(const char *type); /* {"type": type}, marked as made; NULL: without a type */

/* schema_choice.c: what oneOf, if, not and the dependencies of a part stand for, as schemas with anyOf, added to the
   place. False with a sentence. */
bool mt_schema_add_choices(mt_schema_reader *r, mt_schema_place *place, size_t at) MT_NODISCARD;
/* schema_path.c; and schema_place.c, with what allOf says. */
bool mt_schema_add_below(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path,
                         size_t parent) MT_NODISCARD;
bool mt_schema_add_with_all(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path,
                            size_t parent) MT_NODISCARD;

/* schema_judge.c: whether a value is valid. */
typedef enum mt_judged { MT_JUDGED_NO, MT_JUDGED_YES, MT_JUDGED_UNKNOWN } mt_judged;
mt_judged mt_schema_judge(mt_schema_reader *r, const json_t *schema, const json_t *value);

#endif
