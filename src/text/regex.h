/* Regular expressions of tokenizer.json, which are in the syntax of Oniguruma (Ruby's), run by PCRE2. */
#ifndef MT_TEXT_REGEX_H
#define MT_TEXT_REGEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/range.h"

typedef struct mt_tok_regex mt_tok_regex;     /* a compiled pattern; threads may share it */
typedef struct mt_tok_matcher mt_tok_matcher; /* the memory that one thread needs for matching */

/* NULL: *err. Free with mt_tok_regex_free. */
mt_tok_regex *mt_tok_regex_new(const char *pattern, size_t len, mt_error *err) MT_NODISCARD;
/* From the syntax of PCRE2 */
mt_tok_regex *mt_tok_regex_native(const char *pattern, size_t len, mt_error *err) MT_NODISCARD;
void mt_tok_regex_free(mt_tok_regex *regex); /* NULL is fine */

/* stop: may be NULL; after another thread has set it, matching fails. */
mt_tok_matcher *mt_tok_matcher_new(const atomic_bool *stop);
void mt_tok_matcher_free(mt_tok_matcher *matcher); /* NULL is fine */

typedef enum mt_tok_found {
    MT_TOK_FOUND_NOTHING,
    MT_TOK_FOUND,
    MT_TOK_FOUND_ERROR /* the match would exceed its limit of memory or steps, or `stop` was set */
} mt_tok_found;

/* False: `stop` was set; *err says so. */
bool mt_tok_matcher_goes_on(const mt_tok_matcher *matcher, mt_error *err) MT_NODISCARD;

/* Finds all matches in a text. Set the first four fields, zero the others. */
typedef struct mt_tok_finder {
    const mt_tok_regex *regex;
    mt_tok_matcher *matcher;
    const char *text;
    size_t len;
    bool failed; /* mt_tok_finder_next ended with an error */
    /* The state. */
    size_t at;    /* where the next search begins */
    bool matched; /* a match ended at `at` */
    bool begun;
    bool plain; /* the text has no character whose properties PCRE2's tables may have wrong */
} mt_tok_finder;

/* The next match. False: there is none, or `failed`. Matches do not overlap, and an empty match does not directly
   follow another. */
bool mt_tok_finder_next(mt_tok_finder *finder, mt_range *found, mt_error *err) MT_NODISCARD;

/* A common pattern with a matcher of its own for ASCII text, which is faster than PCRE2. In regex_known.c. */
typedef struct mt_tok_known mt_tok_known;

#define MT_TOK_GPT2_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

const mt_tok_known *mt_tok_known_find(const char *pattern, size_t len); /* NULL: the pattern is not one of these */

/* The end of the match that begins at `from`; 0: characters beyond ASCII matter, so PCRE2 must decide. */
size_t mt_tok_known_match(const mt_tok_known *known, const char *text, size_t len, size_t from);

/* A pattern whose matches are the longest runs of characters of one script. In scripts.c. */
mt_tok_regex *mt_tok_regex_of_scripts(mt_error *err) MT_NODISCARD;

/* Appends the pattern in the syntax of PCRE2. newer: with the properties of Unicode 16 written out, whatever PCRE2's
   tables are. In regex_syntax.c. False: *err. */
bool mt_tok_regex_translate(const char *pattern, size_t len, bool newer, mt_buf *out, mt_error *err) MT_NODISCARD;

#endif
