/* The vocabulary of a GGUF file, made of arbitrary bytes: the first three choose the model, the pattern and what else
   the file says; then come records that end with a byte 0xFF. "m" begins a merge, "x" a text to encode, and anything
   else a token: its type, its score and its spelling. What the file becomes must be JSON, and what loads must encode
   the text with ids of its own. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json_reader.h"
#include "text/tokenizer.h"
#include "weights/gguf_tokenizer.h"

enum { END = 0xFF, MOST_TEXT = 256, MOST_JSON = 1 << 22 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct vocabulary {
    mt_buf tokens, types, scores, merges; /* elements of the arrays */
    uint64_t count, merge_count;
    const uint8_t *text;
    size_t text_len;
} vocabulary;

static void add_string(mt_buf *to, const void *s, uint64_t len)
{
    mt_buf_add(to, &len, sizeof(len));
    mt_buf_add(to, s, (size_t)len);
}

static void add_record(vocabulary *v, const uint8_t *record, size_t len)
{
    if (len > 0 && record[0] == 'm') {
        add_string(&v->merges, record + 1, len - 1);
        v->merge_count++;
    } else if (len > 0 && record[0] == 'x') {
        v->text = record + 1;
        v->text_len = len - 1 < MOST_TEXT ? len - 1 : MOST_TEXT;
    } else if (len > 1) {
        const int32_t type = record[0] % 8;
        const float score = -(float)record[1];

        add_string(&v->tokens, record + 2, len - 2);
        mt_buf_add(&v->types, &type, sizeof(type));
        mt_buf_add(&v->scores, &score, sizeof(score));
        v->count++;
    }
}

static void read_records(vocabulary *v, const uint8_t *data, size_t size)
{
    while (size > 0) {
        const uint8_t *end = memchr(data, END, size);
        const size_t len = end ? (size_t)(end - data) : size;

        add_record(v, data, len);
        data += end ? len + 1 : len;
        size -= end ? len + 1 : len;
    }
}

static void add_key(mt_buf *out, const char *key, uint32_t type)
{
    add_string(out, key, strlen(key));
    mt_buf_add(out, &type, sizeof(type));
}

static void add_array(mt_buf *out, const char *key, uint32_t type, uint64_t count, const mt_buf *elements)
{
    add_key(out, key, MT_GGUF_ARRAY);
    mt_buf_add(out, &type, sizeof(type));
    mt_buf_add(out, &count, sizeof(count));
    mt_buf_add(out, elements->data ? elements->data : "", elements->len);
}

static void add_text(mt_buf *out, const char *key, const char *value)
{
    add_key(out, key, MT_GGUF_STRING);
    add_string(out, value, strlen(value));
}

static void write_image(mt_buf *out, const vocabulary *v, const uint8_t choice[3])
{
    static const char *const models[] = {"gpt2", "llama", "gemma4", "bert", "t5", "rwkv"};
    static const char *const pres[] = {"qwen2", "llama-bpe", "tekken", "smollm", "deepseek-coder", "roberta-bpe", "x"};
    static const char *const ids[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                      "tokenizer.ggml.unknown_token_id"};
    const uint64_t keys = 10u + (choice[2] >> 6 & 1u) + (choice[2] >> 7 & 1u);

    mt_buf_add(out, "GGUF\3\0\0\0\0\0\0\0\0\0\0\0", 16);
    mt_buf_add(out, &keys, sizeof(keys));
    add_text(out, "tokenizer.ggml.model", models[choice[0] % MT_COUNT(models)]);
    add_text(out, "tokenizer.ggml.pre", pres[choice[1] % MT_COUNT(pres)]);
    add_array(out, "tokenizer.ggml.tokens", MT_GGUF_STRING, v->count, &v->tokens);
    add_array(out, "tokenizer.ggml.token_type", MT_GGUF_I32, v->count, &v->types);
    add_text(out, "tokenizer.chat_template", "a");
    for (unsigned i = 0; i < 2; i++) {
        add_key(out, i ? "tokenizer.ggml.add_space_prefix" : "tokenizer.ggml.add_bos_token", MT_GGUF_BOOL);
        mt_buf_add(out, choice[2] >> i & 1 ? "\1" : "", 1);
    }
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t id = i + (choice[2] >> 2 & 3);

        add_key(out, ids[i], MT_GGUF_U32);
        mt_buf_add(out, &id, sizeof(id));
    }
    if (choice[2] >> 6 & 1)
        add_array(out, "tokenizer.ggml.merges", MT_GGUF_STRING, v->merge_count, &v->merges);
    if (choice[2] >> 7)
        add_array(out, "tokenizer.ggml.scores", MT_GGUF_F32, v->count, &v->scores);
}

static void check_json(const mt_buf *json)
{
    mt_json_reader reader;

    mt_json_reader_init(&reader, json->data, json->len);
    assert(mt_json_skip(&reader) && mt_json_next(&reader) == MT_JSON_END);
    mt_json_reader_free(&reader);
}

static void encode(const mt_tokenizer *t, const vocabulary *v)
{
    const mt_encode_options options = {.add_special = true};
    mt_ids ids = {0};
    mt_error err = {0};

    if (!mt_tokenizer_encode(t, (const char *)v->text, v->text_len, &options, &ids, &err))
        assert(err.code != MT_OK);
    for (size_t i = 0; i < ids.count; i++)
        assert(ids.data[i] < v->count);
    mt_ids_free(&ids);
}

static void check_file(const mt_gguf *g, const vocabulary *v)
{
    static bool (*const make[])(const mt_gguf *, mt_buf *, mt_error *) = {mt_gguf_tokenizer, mt_gguf_tokenizer_config,
                                                                          mt_gguf_generation_config};

    for (size_t i = 0; i < MT_COUNT(make); i++) {
        mt_buf json = {.limit = MOST_JSON};
        mt_error err = {0};
        mt_tokenizer *t = NULL;

        if (make[i](g, &json, &err)) {
            check_json(&json);
            t = i == 0 ? mt_tokenizer_parse(json.data, json.len, &err) : NULL;
            assert(i > 0 || t || err.code != MT_OK);
        } else {
            assert(err.code != MT_OK && strlen(err.text) > 0);
        }
        if (t && v->text)
            encode(t, v);
        mt_tokenizer_free(t);
        mt_buf_free(&json);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vocabulary v = {
        {.limit = MOST_JSON}, {.limit = MOST_JSON}, {.limit = MOST_JSON}, {.limit = MOST_JSON}, 0, 0, NULL, 0};
    mt_buf image = {.limit = 4 * MOST_JSON};
    mt_error err = {0};
    mt_gguf *g;

    if (size < 3)
        return 0;
    read_records(&v, data + 3, size - 3);
    write_image(&image, &v, data);
    g = mt_gguf_parse((const uint8_t *)image.data, image.len, &err);
    assert(g || err.code != MT_OK);
    if (g)
        check_file(g, &v);
    mt_gguf_close(g);
    mt_buf_free(&image);
    mt_buf_free(&v.tokens);
    mt_buf_free(&v.types);
    mt_buf_free(&v.scores);
    mt_buf_free(&v.merges);
    return 0;
}
