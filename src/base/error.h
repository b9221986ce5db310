/* An error: a code and a sentence, in lower case, with the subject in quotes, then what to do about it. */
#ifndef MT_BASE_ERROR_H
#define MT_BASE_ERROR_H

#include <stdbool.h>

#include "base/compiler.h"
#define MT_LIMIT_ERROR_TEXT 1024 /* bytes of an error's sentence, NUL included */

typedef enum mt_code {
    MT_OK = 0,
    MT_E_INVALID,     /* the input is wrong: 400 */
    MT_E_NOT_FOUND,   /* a named thing does not exist: 404 */
    MT_E_TOO_LARGE,   /* beyond a declared limit: 413 */
    MT_E_TOO_LONG,    /* a text has more tokens than it may have: 400 */
    MT_E_BUSY,        /* a bounded queue is full, try again: 429 */
    MT_E_UNSUPPORTED, /* well formed, but motet cannot do it: 501 */
    MT_E_MEMORY,      /* the memory budget does not allow it: 503 */
    MT_E_AWAY,        /* something it needs has failed and is being restored: 503 */
    MT_E_IO,          /* the system refused: 500 */
    MT_E_INTERNAL     /* a fault of ours: 500 */
} mt_code;

typedef struct mt_error {
    mt_code code;
    const char *field; /* the field of a request that the sentence is about, borrowed; NULL: not said */
    char text[MT_LIMIT_ERROR_TEXT];
} mt_error;

/* Sets *err (may be NULL) and returns false, so that callers can write `return mt_fail(...)`. */
bool mt_fail(mt_error *err, mt_code code, const char *fmt, ...) MT_PRINTF(3, 4);

/* Puts "prefix: " before the sentence in *err; returns false. */
bool mt_fail_within(mt_error *err, const char *fmt, ...) MT_PRINTF(2, 3);

/* Sets the field of *err, unless it is set already; returns false. */
bool mt_fail_about(mt_error *err, const char *field);

/* Makes a sentence fit for clients, which may not learn where the server has its files: what stands in quotes and has a
   slash keeps only what follows the last one, so that "/srv/box/config.json" becomes "config.json". URLs stay as they
   are, and so does what begins with the name of a model that clients know already (NULL: none). */
void mt_error_hide_paths(mt_error *err, const char *name);

/* Makes the sentence fit to be shown: control characters and bytes that are not UTF-8 become question marks, since it
   quotes files and requests; a character that the limit cuts is left out. The functions above do it. */
void mt_error_tidy(mt_error *err);

/* Resets *err to MT_OK with an empty sentence. */
void mt_error_clear(mt_error *err);

/* The HTTP status for a code. */
int mt_code_status(mt_code code);

#endif
