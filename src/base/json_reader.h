/* A pull reader for JSON files too large for a tree: safetensors headers, tokenizer.json. It validates as it goes,
   holds no more than its nesting stack, and returns strings decoded. Reads memory that outlives it. */
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
    MT_JSON_END,   /* the document is complete and nothing but white space follows */
    MT_JSON_OBJECT_BEGIN,
    MT_JSON_OBJECT_END,
    MT_JSON_ARRAY_BEGIN,
    MT_JSON_ARRAY_END,
    MT_JSON_KEY,    /* str, len */
    MT_JSON_STRING, /* str, len */
    MT_JSON_NUMBER, /* num, which is infinite where it is too large for a double, and str, len as it is written;
                       whole when that is an integer, is_int and integer when it also fits */
    MT_JSON_TRUE,
    MT_JSON_FALSE,
    MT_JSON_NULL
} mt_json_event;

typedef struct mt_json_reader {
    /* results of the last event */
    const char *str; /* valid until the next call, UTF-8, not NUL-terminated, may hold NULs: use len */
    size_t len;
    double num;
    int64_t integer;
    int is_int, whole;
    mt_error error; /* says the byte offset */
    /* private */
    const char *data;
    size_t size, pos;
    unsigned depth;
    unsigned char stack[MT_LIMIT_JSON_DEPTH];
    int state;
    char *scratch;
    size_t scratch_cap;
} mt_json_reader;

void mt_json_reader_init(mt_json_reader *r, const char *data, size_t size); /* borrows data; free with _free */
void mt_json_reader_free(mt_json_reader *r);
mt_json_event mt_json_next(mt_json_reader *r);

/* Whether the text is an object and nothing else. */
bool mt_json_is_object(const char *text, size_t len);

/* Skips the value that comes next (after a key or in an array), containers whole. False on malformed input. */
bool mt_json_skip(mt_json_reader *r) MT_NODISCARD;

#endif
