/* Shared by the files schema*.c. A place is a position in the answer to which one or several schemas apply. */
#ifndef MT_CONSTRAINT_SCHEMA_INSIDE_H
#define MT_CONSTRAINT_SCHEMA_INSIDE_H

#include "base/arena.h"
#include "constraint/json_number.h"
#include "constraint/limits.h"
#include "constraint/regex.h"
#include "constraint/schema.h"
#include "constraint/value_set.h"

/* A schema that applies to a place. */
typedef struct mt_schema_part {
    const json_t *schema;
    const char *path; /* where the schema is, as a JSON pointer */
    uint16_t parent;  /* index of the part that brought it to the same place; its own index where none did */
    bool split;       /* one of its alternatives (anyOf, or MT_SCHEMA_OUTSIDE) was already added to the place */
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
/* Keyword in the opposite of a schema, for example: neither it nor any schema that it applies evaluates properties or
   items. MT_SCHEMA_MADE says so only of the schema itself. */
#define MT_SCHEMA_OPPOSITE "motet:opposite"
/* Keyword of an object {"names": {...}, "schema": S}: it has a property with none of these names that satisfies S. */
#define MT_SCHEMA_OUTSIDE "motet:outside"

/* The rule of a place, found by its parts. */
typedef struct mt_schema_rule {
    const mt_schema_part *parts; /* of its place; in the arena */
    size_t count;
    mt_rule rule; /* of the grammar */
    uint64_t hash;
    uint32_t same; /* next rule in the same slot, plus 1; 0: none */
} mt_schema_rule;

/* A schema made from another. */
typedef struct mt_schema_made {
    const json_t *from; /* the original schema; borrowed */
    int kind;           /* what it is of the original: a constant of schema_not.c or schema_choice.c */
    json_t *schema;
    uint32_t same; /* next one in the same slot, plus 1; 0: none */
} mt_schema_made;

/* The rule of a value behind the name of a property. */
typedef struct mt_schema_member {
    mt_rule value, rule; /* of the value; of the colon with the value */
    uint32_t same;       /* next one in the same slot, plus 1; 0: none */
} mt_schema_member;

/* Numbers whose expression is known. */
typedef struct mt_schema_numbers_known {
    mt_number number; /* its bytes are compared */
    mt_expr expr;
} mt_schema_numbers_known;

/* A regular expression that was read. */
typedef struct mt_schema_regex_known {
    const char *text;      /* known by its address */
    const mt_regex *regex; /* NULL: not read, or invalid */
} mt_schema_regex_known;

/* A reference by "$anchor" or "$id" that was looked for. */
typedef struct mt_schema_target_known {
    const json_t *ref;    /* known by its address; borrowed */
    const json_t *target; /* NULL: the schema does not have it */
} mt_schema_target_known;

/* A list of values with a set to look them up in. */
typedef struct mt_schema_set_known {
    const json_t *list; /* known by its address; borrowed */
    mt_value_set *set;
} mt_schema_set_known;

#define MT_SCHEMA_SLOTS 1024

/* Opposites of schemas multiply the number of places, and add to the schemas of one. Where there are too many, a schema
   is read again with less effort: that says how each alternative of oneOf is made to violate those that it overlaps
   with. */
typedef enum mt_schema_effort {
    MT_EFFORT_ALL,  /* in all ways that schema_not.c finds; where these make too many combinations, as with BEST */
    MT_EFFORT_BEST, /* for each of those in only one way, the one that schema_choice.c rates highest */
    /* not at all: oneOf is read as anyOf; "if" is left out, and "not" unless mt_schema_leaf_not; this is recorded */
    MT_EFFORT_NONE
} mt_schema_effort;

typedef struct mt_schema_reader {
    mt_json *j;
    mt_arena *arena; /* owns paths, places and regular expressions */
    const json_t *root;
    mt_schema_effort effort; /* how alternatives of oneOf are kept apart */
    bool crowded;            /* there were too many places, or too many schemas at one */
    bool strict;             /* keywords that cannot be enforced are errors */
    mt_schema_rule *rules;
    size_t rule_count, rule_cap;
    uint32_t rule_slots[MT_SCHEMA_SLOTS]; /* these and other slots: the first entry of each, plus 1; 0: none */
    mt_schema_made *made;                 /* owns these schemas */
    size_t made_count, made_cap;
    uint32_t made_slots[MT_SCHEMA_SLOTS];
    mt_schema_member *member_rules;
    size_t member_count, member_cap;
    uint32_t member_slots[MT_SCHEMA_SLOTS];
    mt_schema_numbers_known *numbers;
    size_t number_count, number_cap;
    mt_schema_regex_known regexes[512];  /* found by the text's address; one may replace another */
    mt_schema_target_known targets[512]; /* likewise, by the reference's address */
    mt_schema_set_known sets[16];        /* sets of long lists in which values were looked up */
    size_t sets_made;                    /* number made so far; the next replaces the oldest */
    size_t patterns, members, combined;  /* counted against limits */
    size_t judged;                       /* steps of checking values */
    size_t sought;                       /* values looked at in search of targets */
    size_t compared;                     /* pairs of schemas compared */
    size_t apart_steps;                  /* steps of comparing them */
    mt_error *err;
} mt_schema_reader;

/* Sets an error that names keyword and place; returns false. */
bool mt_schema_fail(mt_schema_reader *r, const char *path, const char *keyword, const char *what);

/* The keyword cannot be enforced: true where it may be left out, which is recorded; else false with a sentence. */
bool mt_schema_loosen(mt_schema_reader *r, const char *path, const char *keyword, const char *what) MT_NODISCARD;

/* Adds a schema to a place, with all schemas that it applies to the same place. False with a sentence. */
bool mt_schema_add(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path) MT_NODISCARD;

/* Paths of a schema within another, for messages. key: NULL for none. */
const char *mt_schema_path(mt_schema_reader *r, const char *path, const char *keyword, const char *key);
const char *mt_schema_path_index(mt_schema_reader *r, const char *path, const char *keyword, size_t index);

/* The expression of what is valid at a place: a call of its rule. False with a sentence. */
bool mt_schema_call(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;
/* Keeps the first `count` of r->rules: the grammar's rules of the others were removed. */
void mt_schema_forget_calls(mt_schema_reader *r, size_t count);

/* The schema that a $ref names; NULL with a sentence. */
const json_t *mt_schema_target(mt_schema_reader *r, const json_t *ref, const char *path);

/* Reads the regular expression of a keyword; NULL with a sentence. */
const mt_regex *mt_schema_regex(mt_schema_reader *r, const char *path, const char *keyword, const char *text,
                                size_t len);

/* schema_types.c: MT_TYPE_... that a place allows; where no "type" is given, those that its keywords are about. False
   with a sentence. */
bool mt_schema_types(mt_schema_reader *r, const mt_schema_place *place, unsigned *types) MT_NODISCARD;
/* What "type" and "nullable" of one part allow; MT_TYPE_ANY where it has no "type". False with a sentence. */
bool mt_schema_own_types(mt_schema_reader *r, const mt_schema_part *part, unsigned *types) MT_NODISCARD;
/* What a name in "type" stands for: "number" is integers too. False where it is none, or NULL. */
bool mt_schema_type_name(const char *name, unsigned *types);
bool mt_schema_says_nothing(const char *keyword); /* it is an annotation, which does not restrict values */
/* Whether all keywords of a schema are about objects, so that all values of other types satisfy it. */
bool mt_schema_about_objects(const json_t *schema);
/* Reads a keyword that is a count, such as minLength; without it *out stays as it is. False with a sentence. */
bool mt_schema_count(mt_schema_reader *r, const mt_schema_part *part, const char *keyword, uint32_t *out) MT_NODISCARD;

/* schema_scalar.c: the numbers that are valid at a place, of those in `types`: MT_TYPE_INTEGER, MT_TYPE_NUMBER. False
   with a sentence. */
bool mt_schema_numbers(mt_schema_reader *r, const mt_schema_place *place, unsigned types, mt_expr *out) MT_NODISCARD;
/* The decimal digits of a JSON number (schema_judge.c); false: they are too many. */
bool mt_schema_decimal(const json_t *value, mt_decimal *out) MT_NODISCARD;

/* schema_string.c: what all schemas of a place say about strings. */
typedef struct mt_schema_strings {
    uint32_t least, most; /* characters; most may be MT_GRAMMAR_UNLIMITED */
    /* expressions that a string must match all of, and those of which it must match none */
    const mt_regex *all[MT_LIMIT_SCHEMA_STRINGS], *none[MT_LIMIT_SCHEMA_STRINGS];
    size_t all_count, none_count;
    const char *path; /* of the last part with a pattern or format; where there is none, of the first part */
} mt_schema_strings;

/* Reads that; the expression of all strings that are valid at a place. False with a sentence. */
bool mt_schema_strings_read(mt_schema_reader *r, const mt_schema_place *place, mt_schema_strings *s) MT_NODISCARD;
bool mt_schema_string(mt_schema_reader *r, const mt_schema_place *place, mt_expr *out) MT_NODISCARD;

/* schema_format.c: a regular expression for a string format; NULL: unknown. *short_texts: another one with texts of at
   most *most characters, for strings with a small maxLength; NULL: there is none. */
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

/* Whether what part `part` evaluates counts for part `above` (schema_member.c): it is that part; or that part applied
   it, itself or through others, and neither it nor one of these has MT_SCHEMA_OPPOSITE. */
bool mt_schema_below(const mt_schema_place *place, size_t part, size_t above);

/* schema_apart.c: whether no value can satisfy both schemas; whether nothing is valid at a place. Only where that is
   easy to see. */
bool mt_schema_apart(mt_schema_reader *r, const json_t *a, const json_t *b);

/* The alternatives of a oneOf. Most are objects that all require one property, such as "type" or "kind", each with
   another constant. By these constants, their tags, they are told apart at once, however many properties they have;
   others are compared in full. */
typedef struct mt_schema_union {
    const json_t *list;
    unsigned types;      /* MT_TYPE_... that the schema with this oneOf allows */
    const json_t **tags; /* of each alternative; NULL: it has none; in the arena */
} mt_schema_union;

/* Reads u->list, the oneOf of a schema. mt_schema_union_apart: whether no value satisfies both alternatives. */
void mt_schema_union_read(mt_schema_reader *r, const json_t *schema, mt_schema_union *u);
bool mt_schema_union_apart(mt_schema_reader *r, const mt_schema_union *u, size_t i, size_t k);

bool mt_schema_dead(mt_schema_reader *r, const mt_schema_place *place);
bool mt_schema_clash(mt_schema_reader *r, const json_t *a, const json_t *b); /* nothing is valid at a place with both */
/* The target of a schema with a $ref, through up to 8 of them; other schemas themselves. */
const json_t *mt_schema_resolve(mt_schema_reader *r, const json_t *schema);

/* schema_not.c: the opposite of a schema, owned by the reader; NULL with a sentence. *partly: some values that violate
   the schema are not allowed by the result. */
const json_t *mt_schema_make_not(mt_schema_reader *r, const json_t *schema, const char *path, bool *partly);
const json_t *mt_schema_wrap_not(mt_schema_reader *r, const json_t *schema); /* {"not": schema} */
/* schema_types.c: whether a schema, the value of a "not", is only a pattern, enum or const: what it excludes is left
   out where values are written. */
bool mt_schema_leaf_not(const json_t *schema);
/* schema_not.c: makes the reader own `made`, and returns it. mt_schema_kept finds it again by the schema that it was
   made from and its kind (mt_schema_made), or returns NULL; from NULL: it need not be found. */
json_t *mt_schema_keep(mt_schema_reader *r, const json_t *from, int kind, json_t *made);
const json_t *mt_schema_kept(const mt_schema_reader *r, const json_t *from, int kind);
json_t *mt_schema_new(const char *type); /* {"type": type}, marked as made; type NULL: without */

/* schema_choice.c: translates oneOf, if, not and dependencies of a part to schemas with anyOf, and adds these to the
   place. False with a sentence. */
bool mt_schema_add_choices(mt_schema_reader *r, mt_schema_place *place, size_t at) MT_NODISCARD;
/* Add a schema to a place, below part `parent`; place->count: below none. mt_schema_add_below (schema_path.c) adds it
   alone; mt_schema_add_with_all (schema_place.c) with all that it applies to the place: $ref, allOf and choices. False
   with a sentence. */
bool mt_schema_add_below(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path,
                         size_t parent) MT_NODISCARD;
bool mt_schema_add_with_all(mt_schema_reader *r, mt_schema_place *place, const json_t *schema, const char *path,
                            size_t parent) MT_NODISCARD;

/* schema_judge.c: whether a value satisfies a schema. */
typedef enum mt_judged { MT_JUDGED_NO, MT_JUDGED_YES, MT_JUDGED_UNKNOWN } mt_judged;
mt_judged mt_schema_judge(mt_schema_reader *r, const json_t *schema, const json_t *value);

#endif
