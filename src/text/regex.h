/* Regular expressions as tokenizer.json has them, in the syntax of Oniguruma, run by PCRE2. */
#ifndef MT_TEXT_REGEX_H
#define MT_TEXT_REGEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/range.h"

typedef struct mt_tok_regex mt_tok_regex;     /* does not change: for all threads */
typedef struct mt_tok_matcher mt_tok_matcher; /* what one thread needs to match any of them */

mt_tok_regex *mt_tok_regex_new(const char *pattern, size_t len, mt_error *err) MT_NODISCARD;
mt_tok_regex *mt_tok_regex_native(const char *pattern, size_t len, mt_error *err) MT_NODISCARD; /* in PCRE2's syntax */
void mt_tok_regex_free(mt_tok_regex *regex);                                                    /* NULL is fine */

/* stop: may be NULL; once another thread has set it, nothing is found any more, and that is an error. */
mt_tok_matcher *mt_tok_matcher_new(const atomic_bool *stop);
void mt_tok_matcher_free(mt_tok_matcher *matcher); /* NULL is fine */

typedef enum mt_tok_found {
    MT_TOK_FOUND_NOTHING,
    MT_TOK_FOUND,
    MT_TOK_FOUND_ERROR /* the text needs more memory or steps than a match may take, or nobody wants it any more */
} mt_tok_found;

/* False with an error once it has been told to stop. */
bool mt_tok_matcher_goes_on(const mt_tok_matcher *matcher, mt_error *err) MT_NODISCARD;

/* All matches in a text, from its start. Zero what is not named in the initialiser. */
typedef struct mt_tok_finder {
    const mt_tok_regex *regex;
    mt_tok_matcher *matcher;
    const char *text;
    size_t len;
    bool failed; /* a match failed with an error */
    /* private */
    size_t at;
    bool matched; /* a match ended at `at` */
    bool begun;
    bool plain; /* the text has no character that PCRE2's tables may have wrong */
} mt_tok_finder;

/* The next match; false when there is no more. Matches do not overlap, and an empty one does not touch the one
   before. */
bool mt_tok_finder_next(mt_tok_finder *finder, mt_range *found, mt_error *err) MT_NODISCARD;

/* A pattern that can be matched without PCRE2 as long as a text is ASCII; in regex_known.c. */
typedef struct mt_tok_known mt_tok_known;

#define MT_TOK_GPT2_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

const mt_tok_known *mt_tok_known_find(const char *pattern, size_t len); /* NULL: it is none of them */

/* Where the match that begins at `from` ends; 0 where PCRE2 is to say. */
size_t mt_tok_known_match(const mt_tok_known *known, const char *text, size_t len, size_t from);

/* A character of one script and all that follow of the same one; in scripts.c. */
mt_tok_regex *mt_tok_regex_of_scripts(mt_error *err) MT_NODISCARD;

/* Appends the pattern in the syntax of PCRE2; newer: with the properties of Unicode 16, whatever PCRE2's tables are.
   In regex_syntax.c. */
bool mt_tok_regex_translate(const char *pattern, size_t len, bool newer, mt_buf *out, mt_error *err) MT_NODISCARD;

#endif
