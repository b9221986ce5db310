/* A pull reader for JSON: each call of mt_json_next returns the next event. For files too large for a tree, such as
   safetensors headers and tokenizer.json. It validates as it reads, keeps only the stack of open containers, and
   returns strings decoded. The memory it reads must outlive it. */
#ifndef MT_BASE_JSON_READER_H
#define MT_BASE_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/limits.h"

typedef enum mt_json_event {
    MT_JSON_ERROR, /* see mt_json_reader.error; repeats */
    MT_JSON_END,   /* the document is complete */
    MT_JSON_OBJECT_BEGIN,
    MT_JSON_OBJECT_END,
    MT_JSON_ARRAY_BEGIN,
    MT_JSON_ARRAY_END,
    MT_JSON_KEY,    /* in str, len */
    MT_JSON_STRING, /* in str, len */
    MT_JSON_NUMBER, /* num, infinite where it is too large for a double; str, len: as written; whole: it is an integer;
                       is_int: it also fits into `integer` */
    MT_JSON_TRUE,
    MT_JSON_FALSE,
    MT_JSON_NULL
} mt_json_event;

typedef struct mt_json_reader {
    /* Results of the last event. */
    const char *str; /* valid until the next call; UTF-8, not NUL-terminated, may contain NULs */
    size_t len;
    double num;
    int64_t integer;
    int is_int, whole;
    mt_error error; /* with the byte offset */
    /* Private. */
    const char *data;
    size_t size, pos;
    unsigned depth;
    unsigned char stack[MT_LIMIT_JSON_DEPTH];
    int state;
    char *scratch;
    size_t scratch_cap;
} mt_json_reader;

/* Borrows data; free with mt_json_reader_free */
void mt_json_reader_init(mt_json_reader *r, const char *data, size_t size);
void mt_json_reader_free(mt_json_reader *r);
mt_json_event mt_json_next(mt_json_reader *r);

/* Whether the text is one JSON object. */
bool mt_json_is_object(const char *text, size_t len);

/* Skips the next value (after a key or in an array), with all that is in it. False: the input is malformed. */
bool mt_json_skip(mt_json_reader *r) MT_NODISCARD;

#endif
