/* A section of tokenizer.json (normalizer, pre-tokenizer and so on) as a tree, with functions that read its members and
   name the fault in *err. The vocabulary and the merges are too large for a tree: words_read.c reads them as a
   stream. */
#ifndef MT_TEXT_PART_H
#define MT_TEXT_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_reader.h"

/* A JSON value. */
typedef struct mt_tok_node {
    mt_json_event kind; /* MT_JSON_OBJECT_BEGIN, MT_JSON_ARRAY_BEGIN, MT_JSON_STRING, ... */
    const char *key;    /* the name of the member, NUL-terminated; NULL: the value is in no object */
    const char *str;    /* of a string: NUL-terminated, may contain NULs */
    size_t len;
    int64_t integer;
    bool is_int;
    struct mt_tok_node *child, *next; /* first value of a container; next value in the same container */
} mt_tok_node;

/* Whether the last key or string of the reader equals `key`. */
bool mt_tok_key_is(const mt_json_reader *json, const char *key);

/* Reads the next value into the arena, whose limit bounds it. False: *err. */
bool mt_tok_node_read(const mt_tok_node **node, mt_json_reader *json, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* A member of an object. NULL: it has none of that name, or null. Of members with the same name the last counts. */
const mt_tok_node *mt_tok_node_get(const mt_tok_node *object, const char *key);

/* A section, or one entry of its list, with what an error message needs. */
typedef struct mt_tok_part {
    const mt_tok_node *node;
    const char *section; /* "normalizer", ... */
    const char *type;
    mt_error *err;
} mt_tok_part;

/* Calls `add` for a section or, if its type is "Sequence", for each entry of its list `list_key`, in order. Each must
   have a "type". False: *err. */
typedef bool mt_tok_adder(void *to, const mt_tok_part *part);
bool mt_tok_parts_read(const mt_tok_node *node, const char *section, const char *list_key, mt_tok_adder *add, void *to,
                       mt_error *err) MT_NODISCARD;
bool mt_tok_part_is(const mt_tok_part *part, const char *type);

/* Read a member of the part. False: *err says that it is missing or of another type. */
bool mt_tok_part_string(const mt_tok_part *part, const char *key, const char **str, size_t *len) MT_NODISCARD;
/* A string of one character */
bool mt_tok_part_char(const mt_tok_part *part, const char *key, uint32_t *c) MT_NODISCARD;
bool mt_tok_part_bool(const mt_tok_part *part, const char *key, bool *value) MT_NODISCARD;
bool mt_tok_part_bool_or(const mt_tok_part *part, const char *key, bool otherwise, bool *value) MT_NODISCARD;
/* An integer from 0 to 2^31 */
bool mt_tok_part_count(const mt_tok_part *part, const char *key, size_t *value) MT_NODISCARD;
const mt_tok_node *mt_tok_part_array(const mt_tok_part *part, const char *key) MT_NODISCARD; /* NULL: *err */

/* Reads the member "pattern", which is {"String": ...} or {"Regex": ...}. */
bool mt_tok_part_pattern(const mt_tok_part *part, const char **str, size_t *len, bool *regex) MT_NODISCARD;

/* Reads a string that must be one of `names`, which end with NULL; *choice is its index. */
bool mt_tok_part_choice(const mt_tok_part *part, const char *key, const char *const *names, int *choice) MT_NODISCARD;

bool mt_tok_part_unknown(const mt_tok_part *part); /* sets *err: this type is not supported; returns false */

#endif
