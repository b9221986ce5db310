/* What goes wrong with a call, as an answer: a status, a sentence, and what OpenAI's clients look at. */
#ifndef MT_API_FAILURE_H
#define MT_API_FAILURE_H

#include <stdbool.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

#define MT_FAILURE_PARAM 80 /* bytes of a field's name, NUL included */

typedef struct mt_failure {
    int status;
    const char *code;             /* a constant such as "model_not_found"; NULL: none */
    char param[MT_FAILURE_PARAM]; /* the field that is wrong; "": none */
    char text[MT_LIMIT_ERROR_TEXT];
    int retry_after; /* of a 429 or 503: seconds; 0: that is not known, and soon */
} mt_failure;

/* Set *why and return false. code and param may be NULL. */
bool mt_failure_set(mt_failure *why, int status, const char *code, const char *param, const char *fmt, ...)
    MT_PRINTF(5, 6);
/* A field that is of another type than wanted ("a string"). value: what it is; NULL: it is missing. */
bool mt_failure_type(mt_failure *why, const char *name, const json_t *value, const char *wanted);
/* param: of what is about no field by itself. */
bool mt_failure_from(mt_failure *why, const mt_error *err, const char *param);
bool mt_failure_memory(mt_failure *why, const char *param); /* the request takes more than one may have */
bool mt_failure_starved(mt_failure *why);                   /* it takes more than there is */

/* Speaks of a field by the name the client knows it by, where it is the one that is wrong. */
bool mt_failure_rename(mt_failure *why, const char *from, const char *to);

/* Appends {"error":{...}} in OpenAI's shape. */
void mt_failure_write(mt_buf *out, const mt_failure *why);

#endif
