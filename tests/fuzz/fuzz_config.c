/* A config.json of arbitrary bytes: every getter on every kind of value, the quantisation it speaks of, and the model
   it describes. Whatever a spec says must lie within the limits, since memory is planned from it. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "device/limits.h"
#include "models/spec.h"
#include "weights/limits.h"
#include "weights/quant.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_values(const mt_config *c)
{
    static const char *const keys[] = {"a", "b", "n", "hidden_size", "text_config", "rope_scaling", "architectures"};
    mt_error err = {0};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        int64_t n = 7;
        double x = 0.5;

        assert(mt_config_object(c, keys[i]) == NULL || mt_config_has(c, keys[i]));
        if (mt_config_int(c, keys[i], 1, 0, 1000, &n, &err))
            assert(n >= 0 && n <= 1000);
        if (mt_config_float(c, keys[i], 0.5, 0, 1, &x, &err))
            assert(x >= 0 && x <= 1);
        assert(mt_config_string(c, keys[i], "none") != NULL);
        for (size_t j = 0; j < mt_config_array(c, keys[i]) && j < 4; j++) {
            mt_config_array_string(c, keys[i], j);
            mt_config_array_int(c, keys[i], j, 0);
            assert(isfinite(mt_config_array_float(c, keys[i], j, 0)));
        }
    }
}

static void read_quant(const mt_config *c)
{
    mt_quant q;
    mt_error err = {0};

    if (!mt_quant_read(&q, c, &err)) {
        assert(err.code != MT_OK && strlen(err.text) > 0);
        return;
    }
    mt_quant_params p = mt_quant_lookup(&q, "model.layers.0.mlp.gate");
    assert(p.bits >= 2 && p.bits <= 8 && p.group >= 16 && p.group <= 128);
}

static void read_spec(const mt_config *c)
{
    mt_arena *arena = mt_arena_new(0);
    mt_model_spec s;
    mt_error err = {0};

    if (mt_model_spec_read(&s, c, NULL, arena, &err)) {
        assert(s.layers >= 1 && s.layers <= MT_LIMIT_LAYERS);
        assert(s.hidden >= 1 && s.hidden <= MT_LIMIT_WIDTH && s.vocab >= 1 && s.vocab <= MT_LIMIT_VOCAB);
        for (size_t i = 0; i < s.layers; i++) {
            const mt_attn_spec *a = &s.layer[i].attn;
            assert(a->head_dim >= 1 && a->head_dim <= MT_LIMIT_HEAD_DIM);
            assert(a->rope < s.rope_count || a->rope == MT_NO_ROPE);
            assert(a->kv_heads >= 1 && a->heads % a->kv_heads == 0 && s.layer[i].moe.experts <= MT_LIMIT_EXPERTS);
        }
    } else {
        assert(err.code != MT_OK && strlen(err.text) > 0);
    }
    mt_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_error err = {0};
    mt_config *c = mt_config_parse((const char *)data, size, &err);

    if (!c) {
        assert(err.code != MT_OK && strlen(err.text) > 0);
        return 0;
    }
    read_values(c);
    read_quant(c);
    read_spec(c);
    mt_config_free(c);
    return 0;
}

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#include "mutate_json.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static const char *const texts[] = {
        "0",      "1",    "-1",    "2",   "64",      "1e30",       "0.5",
        "true",   "null", "[]",    "{}",  "\"x\"",   "\"llama3\"", "\"yarn\"",
        "[1,-1]", "4097", "1e-30", "512", "1048576", "\"qwen3\"",  "[\"full_attention\"]",
        "3"};
    const json_texts odd = {texts, sizeof(texts) / sizeof(texts[0])};

    return mutate_json(data, size, max_size, &odd, seed);
}
#endif
