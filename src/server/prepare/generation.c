/* See generation.h. */
#include "server/prepare/generation.h"

#include <string.h>

#include "sample/limits.h"
#include "weights/folder.h"
#include "weights/limits.h"

/* Adds a token id, unless it is known already, is none of any vocabulary, or there are MT_LIMIT_EOS of them. */
static void add_end(mt_generation_config *g, int64_t id)
{
    if (id < 0 || id >= MT_LIMIT_VOCAB || g->eos_count == MT_LIMIT_EOS)
        return;
    for (size_t i = 0; i < g->eos_count; i++)
        if (g->eos[i] == (uint32_t)id)
            return;
    g->eos[g->eos_count++] = (uint32_t)id;
}

/* eos_token_id is a number or a list of them. */
static void add_ends(mt_generation_config *g, const mt_config *c)
{
    const char key[] = "eos_token_id";
    int64_t id;

    if (!c)
        return;
    for (size_t i = 0; i < mt_config_array(c, key); i++)
        add_end(g, mt_config_array_int(c, key, i, -1));
    if (mt_config_array(c, key) == 0 && mt_config_int(c, key, -1, -1, MT_LIMIT_VOCAB, &id, NULL))
        add_end(g, id);
}

/* Adds the token of that text, where the tokenizer has it. */
static void add_spelled(mt_generation_config *g, const mt_tokenizer *tokenizer, const char *token)
{
    const uint32_t id = token && tokenizer ? mt_tokenizer_find(tokenizer, token, strlen(token)) : MT_TOKEN_NONE;

    if (id != MT_TOKEN_NONE)
        add_end(g, id);
}

/* *out keeps its value where the file has no such key. */
static bool read_float(const mt_config *c, const char *key, double least, double most, float *out, mt_error *err)
{
    double value;

    if (!mt_config_float(c, key, (double)*out, least, most, &value, err))
        return false;
    *out = (float)value;
    return true;
}

/* Accepts what sample/settings.c accepts of requests. do_sample matters only where it is written as false: many files
   leave it out and mean to sample. */
static bool read_defaults(mt_ask_defaults *d, const mt_config *c, mt_error *err)
{
    int64_t top_k;

    if (!read_float(c, "temperature", 0, 100, &d->sampling.temperature, err) ||
        !read_float(c, "top_p", 0, 1, &d->sampling.top_p, err) ||
        !read_float(c, "min_p", 0, 1, &d->sampling.min_p, err) ||
        !read_float(c, "typical_p", 0, 1, &d->sampling.typical_p, err) ||
        !read_float(c, "repetition_penalty", 0.01, 100, &d->sampling.repetition_penalty, err) ||
        !mt_config_int(c, "top_k", d->sampling.top_k, -1, INT32_MAX, &top_k, err) ||
        !mt_config_int(c, "max_new_tokens", 0, 0, INT64_MAX, &d->max_tokens, err))
        return false;
    d->sampling.top_k = (int32_t)top_k;
    d->max_tokens = d->max_tokens < MT_LIMIT_CONTEXT ? d->max_tokens : MT_LIMIT_CONTEXT;
    if (!mt_config_bool(c, "do_sample", true))
        d->sampling.temperature = 0;
    return true;
}

static bool read_generation_config(mt_generation_config *g, const char *dir, const mt_tokenizer *tokenizer,
                                   mt_error *err)
{
    mt_config *c = mt_folder_config(dir, "generation_config.json", err);
    bool ok = true;

    if (!c && err->code != MT_OK)
        return false;
    if (c) {
        add_ends(g, c);
        ok = read_defaults(&g->defaults, c, err) || mt_fail_within(err, "generation_config.json");
    } else
        add_spelled(g, tokenizer, "<|im_end|>"); /* which ends turns; only the missing file would name it */
    mt_config_free(c);
    return ok;
}

static bool read_tokenizer_config(mt_generation_config *g, const char *dir, const mt_tokenizer *tokenizer,
                                  mt_error *err)
{
    mt_config *c = mt_folder_config(dir, "tokenizer_config.json", err);
    const mt_config *object;

    if (!c)
        return err->code == MT_OK;
    object = mt_config_object(c, "eos_token");
    add_spelled(g, tokenizer,
                object ? mt_config_string(object, "content", NULL) : mt_config_string(c, "eos_token", NULL));
    mt_config_free(c);
    return true;
}

bool mt_generation_read(mt_generation_config *g, const char *dir, const mt_config *config,
                        const mt_tokenizer *tokenizer, mt_error *err)
{
    *g = (mt_generation_config){.eos_count = 0};
    mt_ask_defaults_init(&g->defaults);
    add_ends(g, config);
    add_ends(g, mt_config_object(config, "text_config"));
    return read_generation_config(g, dir, tokenizer, err) && read_tokenizer_config(g, dir, tokenizer, err);
}
