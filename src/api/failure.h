/* An error of a call, to be written as an HTTP response: a status, a code, the field at fault, and a sentence. */
#ifndef MT_API_FAILURE_H
#define MT_API_FAILURE_H

#include <stdbool.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

#define MT_FAILURE_PARAM 80 /* bytes of a field's name, NUL included */

typedef struct mt_failure {
    int status;                   /* of HTTP */
    const char *code;             /* a constant such as "model_not_found"; NULL: none */
    char param[MT_FAILURE_PARAM]; /* the field at fault; "": none */
    char text[MT_LIMIT_ERROR_TEXT];
    int retry_after; /* for 429 and 503: seconds; 0: not known */
} mt_failure;

/* These set *why and return false. code and param may be NULL. */
bool mt_failure_set(mt_failure *why, int status, const char *code, const char *param, const char *fmt, ...)
    MT_PRINTF(5, 6);
/* A 400 whose sentence begins with the name of the field; fmt is what follows: "is too long: shorten it". */
bool mt_failure_field(mt_failure *why, const char *code, const char *name, const char *fmt, ...) MT_PRINTF(4, 5);
/* The same for values that are wrong, and for those that are right elsewhere, but not supported here. */
#define mt_failure_value(why, name, ...) mt_failure_field(why, "invalid_value", name, __VA_ARGS__)
#define mt_failure_unsupported(why, name, ...) mt_failure_field(why, "unsupported_value", name, __VA_ARGS__)
/* A field whose value is a word, such as an id, has a NUL in it. */
#define mt_failure_nul(why, name) mt_failure_value(why, name, "has a NUL character in it: leave it out")
/* The field `name` has another type than wanted ("a string"). value: what it is; NULL: it is missing. */
bool mt_failure_type(mt_failure *why, const char *name, const json_t *value, const char *wanted);
/* From an error of lower layers. param: the field, where the error names none itself. */
bool mt_failure_from(mt_failure *why, const mt_error *err, const char *param);
/* The same for an error about files of the server, whose folders the client is not told (mt_error_hide_paths); the log
   should have the whole sentence. name: the model that the client has named, or NULL. */
bool mt_failure_from_files(mt_failure *why, const mt_error *err, const char *param, const char *name);
/* The request needs more memory than one request may have */
bool mt_failure_memory(mt_failure *why, const char *param);
bool mt_failure_starved(mt_failure *why); /* the system has no memory left */

/* Replaces the name of the field at fault by the one the client knows, also where the sentence begins with it. */
void mt_failure_rename(mt_failure *why, const char *to);

/* Appends {"error":{...}} in OpenAI's shape. */
void mt_failure_write(mt_buf *out, const mt_failure *why);

/* The same as an event on a WebSocket, which always has a code. */
void mt_failure_write_event(mt_buf *out, const mt_failure *why);

#endif
