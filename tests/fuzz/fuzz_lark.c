/* A grammar in Lark's notation. What compiles is followed for a while, as text and within a string of JSON: there must
   always be a token. */
#include <assert.h>
#include <string.h>

#include "../constraint/follow.h"

#include "constraint/lark.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static mt_tokenizer *tokenizer;
static mt_vocabulary *vocabulary;

static mt_constraint *compile(const mt_lark_text *how, const char *text, size_t len, mt_error *err)
{
    mt_grammar *g = mt_grammar_new();
    mt_constraint *c = NULL;
    mt_expr e;

    if (mt_lark_expr(g, how, text, len, &e, err)) {
        mt_grammar_define(g, MT_GRAMMAR_START, e);
        c = mt_constraint_new(g, vocabulary, err);
    }
    mt_grammar_free(g);
    return c;
}

static void follow(const mt_lark_text *how, const char *text, size_t len)
{
    mt_error err = {0};
    mt_constraint *c = compile(how, text, len, &err);
    mt_buf said = {.limit = 1 << 16};
    uint64_t seed = 3;

    if (!c) {
        assert(err.text[0]);
        return;
    }
    constraint_walk(c, tokenizer, &seed, 30, &said);
    mt_buf_free(&said);
    mt_constraint_release(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mt_json json = {0};
    const mt_lark_text plain = {.write = mt_grammar_chars}, tagged = {.write = mt_grammar_chars, .without = "</a>"},
                       string = {.write = mt_json_chars(&json)};

    if (!tokenizer) {
        tokenizer = constraint_tokenizer(NULL, 0);
        vocabulary = constraint_vocabulary(tokenizer);
    }
    if (size > 2048)
        return 0;
    follow(&plain, (const char *)data, size);
    follow(&tagged, (const char *)data, size);
    follow(&string, (const char *)data, size);
    return 0;
}
