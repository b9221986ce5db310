/* A constraint of any kind: the first byte picks it, the rest is its text. What compiles is followed for a while;
   there must always be a token, and the mask must be what the automaton takes. */
#include <assert.h>
#include <string.h>

#include "../constraint/follow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static mt_tokenizer *tokenizer;
static mt_vocabulary *vocabulary;

static json_t *read_value(mt_source_kind kind, const char *text, size_t len)
{
    if (kind == MT_SOURCE_SCHEMA || kind == MT_SOURCE_CHOICE)
        return json_loadb(text, len, JSON_DECODE_ANY, NULL);
    return json_stringn(text, len);
}

static void follow(mt_constraint *c)
{
    uint32_t *mask = mt_alloc_array(vocabulary->words, sizeof(*mask));
    uint64_t seed = 3;
    mt_run run;

    mt_run_begin(&run, c);
    for (int i = 0; i < 30 && !run.over; i++) {
        const uint32_t probe = (uint32_t)(constraint_random(&seed) % vocabulary->size);
        uint32_t id = (uint32_t)(constraint_random(&seed) % vocabulary->size), tried = 0;
        mt_run other;

        if (!mt_run_mask(&run, mask))
            break;
        mt_run_copy(&other, &run);
        assert(mt_run_token(&other, probe) == constraint_has(mask, probe) || other.failed);
        mt_run_end(&other);
        for (; !constraint_has(mask, id); id = (id + 1) % (uint32_t)vocabulary->size)
            assert(tried++ < vocabulary->size);
        if (!mt_run_token(&run, id)) {
            assert(run.failed);
            break;
        }
    }
    mt_run_end(&run);
    mt_free(mask);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mt_source_kind kinds[] = {MT_SOURCE_SCHEMA, MT_SOURCE_REGEX, MT_SOURCE_GBNF, MT_SOURCE_CHOICE};
    mt_source_kind kind;
    mt_constraint *c;
    mt_error err = {0};
    json_t *value;

    if (!tokenizer) {
        tokenizer = constraint_tokenizer(NULL, 0);
        vocabulary = constraint_vocabulary(tokenizer);
    }
    if (size == 0 || size > 4096)
        return 0;
    kind = kinds[data[0] % MT_COUNT(kinds)];
    value = read_value(kind, (const char *)data + 1, size - 1);
    if (!value)
        return 0;
    c = constraint_compile(vocabulary, kind, value, &err);
    if (c)
        follow(c);
    else
        assert(err.text[0]);
    mt_constraint_release(c);
    json_decref(value);
    return 0;
}
