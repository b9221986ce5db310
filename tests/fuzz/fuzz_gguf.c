/* A GGUF file of arbitrary bytes. Whatever is accepted must be true: every tensor inside the file, names unique and in
   order. What is made of it must be sound: a config that is JSON, tensors whose rows are taken from their own data. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <jansson.h>

#include "models/bert.h"
#include "models/spec.h"
#include "weights/gguf_arch.h"
#include "weights/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned checksum; /* keeps the reads */

static void check_tensor(const mt_tensor_info *t, const uint8_t *data, size_t size)
{
    const size_t len = strlen(t->name);

    assert(len > 0 && len <= MT_LIMIT_TENSOR_NAME && t->dims <= MT_LIMIT_TENSOR_DIMS);
    assert(t->data >= data && t->bytes <= size && t->data + t->bytes <= data + size && t->bytes > 0);
    checksum += (unsigned)t->data[0] + t->data[t->bytes - 1] + (unsigned char)t->dtype_name[0];
}

static void check_values(const mt_gguf *g)
{
    static const char *const keys[] = {
        "general.architecture", "general.alignment", "llama.block_count", "tokenizer.ggml.tokens", "a", "b"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const mt_gguf_array *a = mt_gguf_array_of(g, keys[i]);
        mt_gguf_text text = {0};
        int64_t n = 0;
        double x = 0;

        checksum += (unsigned)mt_gguf_int(g, keys[i], &n) + mt_gguf_float(g, keys[i], &x);
        if (mt_gguf_string(g, keys[i], &text) && text.len > 0)
            checksum += (unsigned)(unsigned char)text.at[0] + (unsigned char)text.at[text.len - 1];
        for (size_t j = 0; a && j < mt_gguf_count(a); j++) {
            checksum += (unsigned)mt_gguf_array_int(a, j, &n) + mt_gguf_array_float(a, j, &x);
            if (mt_gguf_array_string(a, j, &text) && text.len > 0)
                checksum += (unsigned)(unsigned char)text.at[0] + (unsigned char)text.at[text.len - 1];
        }
    }
}

static const mt_tensor_info *original(const mt_gguf *g, const mt_tensor_info *t)
{
    for (size_t i = 0; i < mt_gguf_tensors(g); i++)
        if (mt_gguf_tensor(g, i)->data == t->data)
            return mt_gguf_tensor(g, i);
    return NULL;
}

static void check_fix(const mt_gguf *g, const mt_tensor_info *t)
{
    const mt_tensor_info *from = original(g, t);

    assert(from && t->bytes <= from->bytes);
    for (size_t i = 0; t->fix && t->fix->rows && i < t->shape[0]; i++)
        assert(t->fix->rows[i] < from->shape[0] || t->fix->rows[i] == MT_TENSOR_NO_ROW);
    if (t->fix && t->fix->columns) {
        assert(t->dims == 2 && t->fix->piece > 0 && t->shape[1] % t->fix->piece == 0);
        for (size_t i = 0; i < t->shape[1] / t->fix->piece; i++)
            assert(t->fix->columns[i] < t->shape[1] / t->fix->piece);
    }
}

static void check_names(const mt_gguf *g)
{
    mt_arena *arena = mt_arena_new(0);
    mt_tensor_info *tensors;
    mt_error err = {0};
    size_t count;

    if (mt_gguf_names(g, arena, &tensors, &count, &err))
        for (size_t i = 0; i < count; i++)
            check_fix(g, &tensors[i]);
    else
        assert(err.code != MT_OK && strlen(err.text) > 0);
    mt_arena_free(arena);
}

static void check_json(const mt_gguf *g, bool (*make)(const mt_gguf *g, mt_buf *out, mt_error *err))
{
    mt_buf text = {.limit = MT_LIMIT_CONFIG_BYTES};
    mt_error err = {0};
    json_t *json;

    assert(make(g, &text, &err));
    json = json_loadb(text.data, text.len, 0, NULL);
    assert(json);
    json_decref(json);
    mt_buf_free(&text);
}

static void check_pooling(const mt_gguf *g)
{
    if (!mt_gguf_has_pooling(g))
        return;
    check_json(g, mt_gguf_modules);
    check_json(g, mt_gguf_pooling);
}

static void check_config(const mt_gguf *g)
{
    mt_arena *arena = mt_arena_new(0);
    mt_buf text = {.limit = MT_LIMIT_CONFIG_BYTES};
    mt_error err = {0};
    mt_bert_spec bert;
    mt_model_spec spec;

    if (mt_gguf_config(g, &text, &err)) {
        mt_config *config = mt_config_parse(text.data, text.len, &err);

        assert(config);
        checksum += mt_bert_known(config) ? mt_bert_spec_read(&bert, config, arena, &err)
                                          : mt_model_spec_read(&spec, config, NULL, arena, &err);
        mt_config_free(config);
    } else {
        assert(err.code != MT_OK && strlen(err.text) > 0);
    }
    mt_buf_free(&text);
    mt_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_error err = {0};
    mt_gguf *g = mt_gguf_parse(data, size, &err);

    if (!g) {
        assert(err.code != MT_OK && strlen(err.text) > 0);
        return 0;
    }
    for (size_t i = 0; i < mt_gguf_tensors(g); i++) {
        const mt_tensor_info *t = mt_gguf_tensor(g, i);

        check_tensor(t, data, size);
        assert(mt_gguf_find(g, t->name) == t);
        assert(i == 0 || strcmp(mt_gguf_tensor(g, i - 1)->name, t->name) < 0);
    }
    check_values(g);
    check_names(g);
    check_config(g);
    check_pooling(g);
    mt_gguf_close(g);
    return 0;
}
