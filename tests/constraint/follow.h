/* A small vocabulary, and ways to follow constraints with it: all bytes, some longer tokens, special ones, an end. */
#ifndef MT_TESTS_CONSTRAINT_FOLLOW_H
#define MT_TESTS_CONSTRAINT_FOLLOW_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/utf8.h"
#include "constraint/constraint.h"
#include "constraint/source.h"
#include "text/tokenizer.h"

static const char *const constraint_words[] = {
    "ab",   "abc",   "{\"", "\":",  "\",",   "\"}",      "\",\"", " \"", "true", "null", "  ", "\n  ",    "00",
    "\\\"", "\\u00", "</",  "name", "hello", " world",   "],",    "é",   "日本", "語\"", "12", "e+",      "-1",
    "a\"b", "[]",    "{}",  "::",   "\t\t",  "\xf0\x9f", "call",  "l>",  ">x",   "=a",   ">>", "_call>y",
};

#define CONSTRAINT_END ((uint32_t)(256 + MT_COUNT(constraint_words))) /* the id of "<end>" */

/* A byte as the byte-level alphabet spells it. */
static inline void constraint_spell(mt_buf *out, unsigned char byte)
{
    static const unsigned ranges[][2] = {{33, 126}, {161, 172}, {174, 255}};
    unsigned extra = 256;
    char text[MT_UTF8_MAX];

    for (unsigned b = 0; b <= byte; b++) {
        bool plain = false;

        for (size_t i = 0; i < MT_COUNT(ranges); i++)
            plain |= b >= ranges[i][0] && b <= ranges[i][1];
        if (b == byte)
            extra = plain ? b : extra;
        else
            extra += !plain;
    }
    mt_buf_add(out, text, mt_utf8_encode(extra, text));
}

static inline void constraint_add_token(mt_buf *json, const char *bytes, size_t len, unsigned id)
{
    mt_buf spelled;

    mt_buf_init(&spelled, 4096);
    for (size_t i = 0; i < len; i++)
        constraint_spell(&spelled, (unsigned char)bytes[i]);
    mt_buf_puts(json, id ? "," : "");
    mt_buf_json_string(json, spelled.data, spelled.len);
    mt_buf_printf(json, ":%u", id);
    mt_buf_free(&spelled);
}

/* specials: up to 100 spellings of further special tokens. */
static inline mt_tokenizer *constraint_tokenizer(const char *const *specials, size_t count)
{
    mt_tokenizer *tokenizer;
    mt_error err = {0};
    mt_buf json;

    mt_buf_init(&json, 1 << 20);
    mt_buf_puts(&json, "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false},"
                       "\"decoder\":{\"type\":\"ByteLevel\"},\"added_tokens\":[");
    for (size_t i = 0; i <= count; i++) {
        const char *special = i ? specials[i - 1] : "<end>";

        mt_buf_printf(&json, "%s{\"id\":%zu,\"special\":true,\"single_word\":false,\"lstrip\":false,", i ? "," : "",
                      CONSTRAINT_END + i);
        mt_buf_puts(&json, "\"rstrip\":false,\"normalized\":false,\"content\":");
        mt_buf_json_string(&json, special, strlen(special));
        mt_buf_puts(&json, "}");
    }
    mt_buf_puts(&json, "],\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
    for (unsigned b = 0; b < 256; b++)
        constraint_add_token(&json, &(char){(char)b}, 1, b);
    for (unsigned i = 0; i < MT_COUNT(constraint_words); i++)
        constraint_add_token(&json, constraint_words[i], strlen(constraint_words[i]), 256 + i);
    mt_buf_puts(&json, "}}}");
    tokenizer = mt_tokenizer_parse(json.data, json.len, &err);
    assert(tokenizer);
    mt_buf_free(&json);
    return tokenizer;
}

static inline mt_vocabulary *constraint_vocabulary(const mt_tokenizer *tokenizer)
{
    const uint32_t end = CONSTRAINT_END;

    return mt_vocabulary_new(tokenizer, mt_tokenizer_size(tokenizer) + 3, &end, 1);
}

static inline mt_constraint *constraint_compile(const mt_vocabulary *v, mt_source_kind kind, const json_t *value,
                                                mt_error *err)
{
    const mt_source source = {.kind = kind, .value = value, .strict = true};
    mt_grammar *g = mt_grammar_new();
    mt_json j = {.g = g};
    mt_constraint *c = NULL;
    mt_expr e;

    if (mt_source_expr(&source, &j, &e, err)) {
        mt_grammar_define(g, MT_GRAMMAR_START, e);
        c = mt_constraint_new(g, v, err);
    }
    mt_grammar_free(g);
    return c;
}

/* Bytes one by one, then the end. */
static inline bool constraint_fits(mt_constraint *c, const char *text, size_t len)
{
    mt_run run;
    bool ok = true;

    mt_run_begin(&run, c);
    for (size_t i = 0; ok && i < len; i++)
        ok = mt_run_token(&run, (unsigned char)text[i]);
    ok = ok && (run.over || mt_run_token(&run, CONSTRAINT_END));
    mt_run_end(&run);
    return ok;
}

static inline uint64_t constraint_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *seed >> 33;
}

static inline bool constraint_has(const uint32_t *mask, uint32_t id)
{
    return mask[id / 32] >> id % 32 & 1;
}

/* One of the tokens of a mask, each as likely as any other. */
static inline uint32_t constraint_pick(const mt_vocabulary *v, const uint32_t *mask, uint64_t *seed)
{
    size_t count = 0, at;

    for (uint32_t id = 0; id < v->size; id++)
        count += constraint_has(mask, id);
    assert(count > 0);
    at = constraint_random(seed) % count;
    for (uint32_t id = 0;; id++)
        if (constraint_has(mask, id) && at-- == 0)
            return id;
}

/* What the mask says of every token is held against the automaton. */
static inline void constraint_check(mt_run *run, const uint32_t *mask, const mt_vocabulary *v, const char *behind)
{
    for (uint32_t i = 0; i < v->size; i++) {
        mt_run other;

        mt_run_copy(&other, run);
        if (mt_run_token(&other, i) != constraint_has(mask, i)) {
            fprintf(stderr, "after %s the mask is wrong about token %u\n", behind, i);
            abort();
        }
        mt_run_end(&other);
    }
}

/* Follows a constraint at random from where the run is, and checks the first masks. Special tokens are spelled out.
   Ends the run. False when the text is not over after `most` tokens. */
static inline bool constraint_walk_on(mt_run *run, const mt_tokenizer *tokenizer, uint64_t *seed, size_t most,
                                      mt_buf *text)
{
    const mt_vocabulary *v = mt_constraint_vocabulary(run->constraint);
    uint32_t *mask = mt_alloc_array(v->words, sizeof(*mask));
    bool over;

    for (size_t t = 0; t < most && !run->over; t++) {
        uint32_t id;
        const char *spelled;
        size_t len;

        assert(mt_run_mask(run, mask));
        if (t < 20)
            constraint_check(run, mask, v, text->data ? text->data : "");
        id = constraint_pick(v, mask, seed);
        if (constraint_has(mask, CONSTRAINT_END) && constraint_random(seed) % 2)
            id = CONSTRAINT_END;
        assert(mt_run_token(run, id));
        spelled = mt_vocabulary_bytes(v, id, &len);
        if (len == 0 && id != CONSTRAINT_END)
            spelled = mt_tokenizer_token(tokenizer, id, &len);
        mt_buf_add(text, spelled, len);
    }
    over = run->over;
    mt_run_end(run);
    mt_free(mask);
    return over;
}

static inline bool constraint_walk(mt_constraint *c, const mt_tokenizer *tokenizer, uint64_t *seed, size_t most,
                                   mt_buf *text)
{
    mt_run run;

    mt_run_begin(&run, c);
    return constraint_walk_on(&run, tokenizer, seed, most, text);
}

#endif
