/* tokenizer_config.json, generation_config.json and chat templates from a GGUF file's keys (gguf_tokenizer.h). */
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "weights/gguf_tokenizer.h"
#include "weights/gguf_vocab.h"
#include "weights/limits.h"

#define TEMPLATE "tokenizer.chat_template"

static bool finish(mt_buf *out, mt_error *err)
{
    mt_json_write(out, "}");
    return !out->full || mt_fail(err, MT_E_TOO_LARGE, "its settings have more than %zu bytes", out->limit);
}

static bool write_names(const mt_gguf_vocab *v, const mt_gguf *g, mt_buf *out, mt_error *err)
{
    static const struct {
        const char *key, *name;
    } tokens[] = {{"tokenizer.ggml.bos_token_id", "bos_token"},       {"tokenizer.ggml.eos_token_id", "eos_token"},
                  {"tokenizer.ggml.unknown_token_id", "unk_token"},   {"tokenizer.ggml.padding_token_id", "pad_token"},
                  {"tokenizer.ggml.seperator_token_id", "sep_token"}, {"tokenizer.ggml.mask_token_id", "mask_token"}};

    mt_json_write(out, "{");
    for (size_t i = 0; i < MT_COUNT(tokens); i++) {
        uint32_t id;

        if (!mt_gguf_vocab_id(v, g, tokens[i].key, &id, err))
            return false;
        if (id != MT_GGUF_NO_TOKEN && v->tokens[id].len > 0)
            mt_json_text(out, tokens[i].name, v->tokens[id].text, v->tokens[id].len);
    }
    return finish(out, err);
}

bool mt_gguf_tokenizer_config(const mt_gguf *g, mt_buf *out, mt_error *err)
{
    mt_gguf_vocab v;
    const bool ok = mt_gguf_vocab_read(&v, g, err) && write_names(&v, g, out, err);

    mt_gguf_vocab_free(&v);
    return ok;
}

/* Ids of tokens that end an answer, each once. */
typedef struct ends {
    uint32_t ids[MT_LIMIT_EOS];
    size_t count;
} ends;

static void add_end(ends *e, uint32_t id)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->ids[i] == id)
            return;
    if (id != MT_GGUF_NO_TOKEN && e->count < MT_LIMIT_EOS)
        e->ids[e->count++] = id;
}

/* The id of a special token; a user may write the same characters in a vocabulary where they are no such token. */
static uint32_t find_special(const mt_gguf_vocab *v, const char *text)
{
    const uint32_t id = mt_gguf_vocab_find(v, text, strlen(text));

    return id != MT_GGUF_NO_TOKEN && v->tokens[id].special ? id : MT_GGUF_NO_TOKEN;
}

/* Ends of turns by their spelling: files name one or two of them, and generation_config.json of the same models has
   all. "<|end|>" ends a message of gpt-oss, but not its answer. */
static bool find_ends(ends *e, const mt_gguf_vocab *v, const mt_gguf *g, mt_error *err)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    static const char *const spelled[] = {"<|im_end|>",      "<|endoftext|>", "<|eot_id|>",         "<|eom_id|>",
                                          "<|return|>",      "<|call|>",      "<|end_of_text|>",    "<end_of_turn>",
                                          "<turn|>",         "<eos>",         "<end_of_utterance>", "</s>",
                                          "<|tool_response>"};
    uint32_t id;

    e->count = 0;
    for (size_t i = 0; i < MT_COUNT(keys); i++) {
        if (!mt_gguf_vocab_id(v, g, keys[i], &id, err))
            return false;
        add_end(e, id);
    }
    for (size_t i = 0; i < MT_COUNT(spelled); i++)
        add_end(e, find_special(v, spelled[i]));
    if (find_special(v, "<|return|>") == MT_GGUF_NO_TOKEN)
        add_end(e, find_special(v, "<|end|>"));
    return true;
}

static bool write_generation(const mt_gguf_vocab *v, const mt_gguf *g, mt_buf *out, mt_error *err)
{
    static const struct {
        const char *key, *name;
    } settings[] = {{"general.sampling.temp", "temperature"},
                    {"general.sampling.top_k", "top_k"},
                    {"general.sampling.top_p", "top_p"},
                    {"general.sampling.min_p", "min_p"},
                    {"general.sampling.penalty_repeat", "repetition_penalty"}};
    double value;
    ends e;

    if (!find_ends(&e, v, g, err))
        return false;
    mt_json_write(out, "{'eos_token_id':[");
    for (size_t i = 0; i < e.count; i++)
        mt_json_write(out, "%u", e.ids[i]);
    mt_json_write(out, "]");
    for (size_t i = 0; i < MT_COUNT(settings); i++)
        if (mt_gguf_float(g, settings[i].key, &value))
            mt_json_write(out, "%s:%.6g", settings[i].name, value);
    return finish(out, err);
}

bool mt_gguf_generation_config(const mt_gguf *g, mt_buf *out, mt_error *err)
{
    mt_gguf_vocab v;
    const bool ok = mt_gguf_vocab_read(&v, g, err) && write_generation(&v, g, out, err);

    mt_gguf_vocab_free(&v);
    return ok;
}

/* Keys are "tokenizer.chat_template" and "tokenizer.chat_template.NAME". */
static bool get_template(const mt_gguf *g, const char *name, mt_gguf_text *text)
{
    char key[256];
    const int len = snprintf(key, sizeof(key), TEMPLATE "%s%s", name ? "." : "", name ? name : "");

    return len > 0 && (size_t)len < sizeof(key) && mt_gguf_string(g, key, text);
}

bool mt_gguf_has_template(const mt_gguf *g, const char *name)
{
    mt_gguf_text text;

    return get_template(g, name, &text);
}

bool mt_gguf_template(const mt_gguf *g, const char *name, mt_buf *out, mt_error *err)
{
    mt_gguf_text text;

    if (!get_template(g, name, &text))
        return mt_fail(err, MT_E_NOT_FOUND, "\"" TEMPLATE "\" is missing; give a template with --chat-template FILE");
    return mt_buf_add(out, text.at, text.len) ||
           mt_fail(err, MT_E_TOO_LARGE, "\"" TEMPLATE "\" has %zu bytes; at most %zu are read", text.len, out->limit);
}
