/* A part of tokenizer.json (a normalizer, a pre-tokenizer, ...) as a tree, with getters that name what is wrong.
   The vocabulary and the merges are too large for a tree and are read as a stream. */
#ifndef MT_TEXT_PART_H
#define MT_TEXT_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_reader.h"

typedef struct mt_tok_node {
    mt_json_event kind; /* MT_JSON_OBJECT_BEGIN, MT_JSON_ARRAY_BEGIN, MT_JSON_STRING, ... */
    const char *key;    /* NUL-terminated; NULL outside objects */
    const char *str;    /* of a string: NUL-terminated, may hold NULs */
    size_t len;
    int64_t integer;
    bool is_int;
    struct mt_tok_node *child, *next;
} mt_tok_node;

/* Whether the key or string that the reader gave last is this one. */
bool mt_tok_key_is(const mt_json_reader *json, const char *key);

/* Reads the value that comes next. It lives in the arena, whose limit bounds it. */
bool mt_tok_node_read(const mt_tok_node **node, mt_json_reader *json, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* NULL when the object has no such key, or null there. Of keys that repeat the last counts. */
const mt_tok_node *mt_tok_node_get(const mt_tok_node *object, const char *key);

/* A node of which errors can be made. */
typedef struct mt_tok_part {
    const mt_tok_node *node;
    const char *section; /* "normalizer", ... */
    const char *type;
    mt_error *err;
} mt_tok_part;

/* Adds the part that a section is or, where it is a "Sequence", all that its list has, in order. Each must have a
   "type". */
typedef bool mt_tok_adder(void *to, const mt_tok_part *part);
bool mt_tok_parts_read(const mt_tok_node *node, const char *section, const char *list_key, mt_tok_adder *add, void *to,
                       mt_error *err) MT_NODISCARD;
bool mt_tok_part_is(const mt_tok_part *part, const char *type);

bool mt_tok_part_string(const mt_tok_part *part, const char *key, const char **str, size_t *len) MT_NODISCARD;
bool mt_tok_part_char(const mt_tok_part *part, const char *key, uint32_t *c) MT_NODISCARD; /* one character */
bool mt_tok_part_bool(const mt_tok_part *part, const char *key, bool *value) MT_NODISCARD;
bool mt_tok_part_bool_or(const mt_tok_part *part, const char *key, bool otherwise, bool *value) MT_NODISCARD;
bool mt_tok_part_count(const mt_tok_part *part, const char *key, size_t *value) MT_NODISCARD; /* 0 to 2^31 */
const mt_tok_node *mt_tok_part_array(const mt_tok_part *part, const char *key) MT_NODISCARD;  /* NULL: none */

/* {"String": ...} or {"Regex": ...} under a key. */
bool mt_tok_part_pattern(const mt_tok_part *part, const char *key, const char **str, size_t *len,
                         bool *regex) MT_NODISCARD;

/* Which of names (NULL at the end) the string under a key is. */
bool mt_tok_part_choice(const mt_tok_part *part, const char *key, const char *const *names, int *choice) MT_NODISCARD;

bool mt_tok_part_unknown(const mt_tok_part *part); /* says that motet has no such type; returns false */

#endif
