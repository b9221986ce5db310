/* The lower half of the parser of regular expressions: characters, escapes and classes. Used by regex.c. */
#ifndef MT_CONSTRAINT_REGEX_CLASS_H
#define MT_CONSTRAINT_REGEX_CLASS_H

#include "constraint/regex.h"

#define MT_REGEX_CHUNK 64 /* most parts of a node */

typedef struct mt_regex_reader {
    mt_arena *arena;
    const char *text;
    size_t len, at;                  /* of the text; where the reader is */
    size_t depth, parts, categories; /* counted against limits */
    bool aware;                      /* see mt_regex.aware */
    mt_error *err;
} mt_regex_reader;

/* Sets an error about the expression; returns NULL. */
void *mt_regex_fail(mt_regex_reader *r, const char *what);

static inline bool mt_regex_at(const mt_regex_reader *r, char c)
{
    return r->at < r->len && r->text[r->at] == c;
}

static inline bool mt_regex_accept(mt_regex_reader *r, char c)
{
    const bool there = mt_regex_at(r, c);

    r->at += there;
    return there;
}

/* Reads the next character, escape or class as a set. */
bool mt_regex_read_class(mt_regex_reader *r, mt_charset *set) MT_NODISCARD;

#endif
