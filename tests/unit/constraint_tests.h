/* What the tests of constraints share: a tokenizer with its vocabulary, and JSON that is easy to write in C. */
#ifndef CONSTRAINT_TESTS_H
#define CONSTRAINT_TESTS_H

#include "unit.h"

#include "../constraint/follow.h"

#include "base/alloc.h"
#include "text/tokenizer.h"

static mt_tokenizer *tokenizer;
static mt_vocabulary *vocabulary;

static inline int setup(void **state)
{
    (void)state;
    tokenizer = constraint_tokenizer(NULL, 0);
    vocabulary = constraint_vocabulary(tokenizer);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    mt_vocabulary_free(vocabulary);
    mt_tokenizer_free(tokenizer);
    return 0;
}

/* The text with " for '; free with mt_free. */
static inline char *quoted(const char *text)
{
    char *json = mt_strdup(text);

    for (char *at = json; (at = strchr(at, '\'')); at++)
        *at = '"';
    return json;
}

/* JSON with ' for ". */
static inline json_t *load(const char *text)
{
    char *json = quoted(text);
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);

    mt_free(json);
    if (!value)
        fail_msg("no JSON: %s", text);
    return value;
}

#endif
