/* An error is a code and a sentence: lower case, the subject in quotes, then what to do about it. */
#ifndef MT_BASE_ERROR_H
#define MT_BASE_ERROR_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/limits.h"

typedef enum mt_code {
    MT_OK = 0,
    MT_E_INVALID,     /* the input is wrong: 400 */
    MT_E_NOT_FOUND,   /* a named thing does not exist: 404 */
    MT_E_TOO_LARGE,   /* beyond a declared limit: 413 */
    MT_E_TOO_LONG,    /* a text has more tokens than it may have: 400 */
    MT_E_BUSY,        /* a bounded queue is full, try again: 429 */
    MT_E_UNSUPPORTED, /* well formed, but motet cannot do it: 501 */
    MT_E_MEMORY,      /* the budget does not allow it: 503 */
    MT_E_AWAY,        /* what is needed for it has failed and is being mended: 503 */
    MT_E_IO,          /* the system refused: 500 */
    MT_E_INTERNAL     /* a fault of ours: 500 */
} mt_code;

typedef struct mt_error {
    mt_code code;
    const char *field; /* of a request, that the sentence is about; a literal; NULL: it is about none, or another */
    char text[MT_LIMIT_ERROR_TEXT];
} mt_error;

/* Sets *err (which may be NULL) and returns false, so that callers write `return mt_fail(...)`. */
bool mt_fail(mt_error *err, mt_code code, const char *fmt, ...) MT_PRINTF(3, 4);

/* Puts "prefix: " in front of the sentence already in *err; returns false. */
bool mt_fail_within(mt_error *err, const char *fmt, ...) MT_PRINTF(2, 3);

/* Says which field of a request the sentence in *err is about, unless that was said already; returns false. */
bool mt_fail_about(mt_error *err, const char *field);

/* Resets *err to MT_OK with an empty sentence. */
void mt_error_clear(mt_error *err);

/* The HTTP status of a code. */
int mt_code_status(mt_code code);

#endif
