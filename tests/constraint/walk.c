/* Follows constraints without a model. Reads one JSON object a line and answers each with one line:

     {"kind": "schema", "value": S, "walk": 20, "seed": 1}  ->  {"texts": [...], "cut": 3}    texts made at random
     {"kind": "schema", "value": S, "texts": [...]}         ->  {"fits": [true, ...]}         whether each is allowed
     "strict": false                                        ->  and "warning": what of the schema is not followed
     what cannot be compiled                                ->  {"error": "..."}

   usage: walk TOKENIZER   a tokenizer.json, or the folder it is in */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/json_tree.h"
#include "constraint/constraint.h"
#include "constraint/source.h"
#include "text/tokenizer.h"

enum { TOKENS = 1000, LINE = 1 << 24, LEFT_OUT = 256 };

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void die(const char *what)
{
    fprintf(stderr, "walk: %s\n", what);
    exit(1);
}

/* One of the tokens that may follow, each as likely as any other; an end is taken half of the times it may be. */
static uint32_t pick(const mt_vocabulary *v, const uint32_t *mask, uint64_t *seed)
{
    size_t total = 0, at;

    for (size_t i = 0; i < v->end_count; i++)
        if (mask[v->ends[i] / 32] >> v->ends[i] % 32 & 1 && random_next(seed) % 2)
            return v->ends[i];
    for (size_t i = 0; i < v->words; i++)
        total += (size_t)__builtin_popcount(mask[i]);
    if (total == 0)
        die("no token may follow");
    at = random_next(seed) % total;
    for (uint32_t id = 0; id < v->size; id++)
        if (mask[id / 32] >> id % 32 & 1 && at-- == 0)
            return id;
    die("a mask has bits beyond the vocabulary");
    return 0;
}

/* A token that the mask does not have must not be taken, and one that it has must. */
static void check(const mt_run *run, const mt_vocabulary *v, const uint32_t *mask, uint64_t *seed)
{
    for (int i = 0; i < 20; i++) {
        const uint32_t id = (uint32_t)(random_next(seed) % v->size);
        mt_run other;

        mt_run_copy(&other, run);
        if (mt_run_token(&other, id) != (mask[id / 32] >> id % 32 & 1))
            die("a mask and what the automaton takes are not the same");
        mt_run_end(&other);
    }
}

/* False when the text was cut. */
static bool walk(mt_constraint *c, const mt_vocabulary *v, uint64_t *seed, mt_buf *text)
{
    uint32_t *mask = mt_alloc_array(v->words, sizeof(*mask));
    mt_run run;
    size_t count = 0;

    mt_run_begin(&run, c);
    for (; count < TOKENS && !run.over; count++) {
        uint32_t id;
        size_t len;
        const char *bytes;

        if (!mt_run_mask(&run, mask))
            die("a run has failed");
        check(&run, v, mask, seed);
        id = pick(v, mask, seed);
        if (!mt_run_token(&run, id))
            die("a token of the mask was not taken");
        bytes = mt_vocabulary_bytes(v, id, &len);
        mt_buf_add(text, bytes, len);
    }
    count = run.over;
    mt_run_end(&run);
    mt_free(mask);
    return count;
}

static bool fits(mt_constraint *c, const mt_vocabulary *v, const char *text, size_t len)
{
    mt_run run;
    bool ok = true;

    mt_run_begin(&run, c);
    for (size_t i = 0; ok && i < len; i++) { /* the token of this byte alone */
        uint32_t id = 0;
        size_t size;

        for (; id < v->tokens; id++)
            if (*mt_vocabulary_bytes(v, id, &size) == text[i] && size == 1)
                break;
        ok = mt_run_token(&run, id);
    }
    ok = ok && (run.over || mt_run_token(&run, v->ends[0]));
    mt_run_end(&run);
    return ok;
}

static const struct {
    const char *name;
    mt_source_kind kind;
} kinds[] = {{"json", MT_SOURCE_JSON},
             {"schema", MT_SOURCE_SCHEMA},
             {"regex", MT_SOURCE_REGEX},
             {"choice", MT_SOURCE_CHOICE},
             {"gbnf", MT_SOURCE_GBNF}};

static mt_constraint *compile(const json_t *line, const mt_vocabulary *v, char left_out[LEFT_OUT], mt_error *err)
{
    mt_grammar *g = mt_grammar_new();
    mt_json j = {.g = g};
    mt_source source = {.value = json_object_get(line, "value"),
                        .strict = json_is_true(json_object_get(line, "strict"))};
    mt_constraint *c = NULL;
    mt_expr e;

    for (size_t i = 0; i < MT_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, json_string_value(json_object_get(line, "kind"))) == 0)
            source.kind = kinds[i].kind;
    if (mt_source_expr(&source, &j, &e, err)) {
        mt_grammar_define(g, MT_GRAMMAR_START, e);
        c = mt_constraint_new(g, v, err);
    }
    snprintf(left_out, LEFT_OUT, "%s", mt_grammar_left_out(g));
    mt_grammar_free(g);
    return c;
}

static json_t *answer_texts(mt_constraint *c, const mt_vocabulary *v, const json_t *line)
{
    json_t *texts = json_array();
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(line, "seed")) * 2 + 1;
    json_int_t cut = 0;

    for (json_int_t i = 0; i < json_integer_value(json_object_get(line, "walk")); i++) {
        mt_buf text;

        mt_buf_init(&text, LINE);
        if (walk(c, v, &seed, &text))
            json_array_append_new(texts, json_stringn_nocheck(text.len ? text.data : "", text.len));
        else
            cut++;
        mt_buf_free(&text);
    }
    return json_pack("{s:o,s:I}", "texts", texts, "cut", cut);
}

static json_t *answer(const json_t *line, const mt_vocabulary *v)
{
    mt_error err = {0};
    char left_out[LEFT_OUT];
    mt_constraint *c = compile(line, v, left_out, &err);
    const json_t *texts = json_object_get(line, "texts");
    json_t *list, *out;

    if (!c)
        return json_pack("{s:s}", "error", err.text);
    if (texts) {
        list = json_array();
        for (size_t i = 0; i < json_array_size(texts); i++)
            json_array_append_new(list, json_boolean(fits(c, v, json_string_value(json_array_get(texts, i)),
                                                          json_string_length(json_array_get(texts, i)))));
        out = json_pack("{s:o}", "fits", list);
    } else {
        out = answer_texts(c, v, line);
    }
    if (left_out[0])
        json_object_set_new(out, "warning", json_string(left_out));
    mt_constraint_release(c);
    return out;
}

int main(int argc, char **argv)
{
    char *text = mt_alloc(LINE);
    mt_error err = {0};
    mt_tokenizer *tokenizer = argc == 2 ? mt_tokenizer_load(argv[1], &err) : NULL;
    mt_vocabulary *v;
    uint32_t end;

    if (!tokenizer)
        die(argc == 2 ? err.text : "usage: walk TOKENIZER");
    end = (uint32_t)mt_tokenizer_size(tokenizer);
    v = mt_vocabulary_new(tokenizer, end + 1, &end, 1);
    while (fgets(text, LINE, stdin)) {
        json_t *line = mt_json_tree_try(text, strlen(text));
        json_t *out = line ? answer(line, v) : json_pack("{s:s}", "error", "the line is no JSON");
        char *dumped = json_dumps(out, JSON_COMPACT);

        puts(dumped);
        fflush(stdout);
        free(dumped);
        json_decref(out);
        json_decref(line);
    }
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    mt_free(text);
    return 0;
}
