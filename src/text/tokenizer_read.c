/* Reads tokenizer.json. Its sections depend on each other (added tokens on the normalizer and the model, the model on
   the pre-tokenizer) and may have any order: all are read first and put together afterwards.
   "truncation" and "padding" are ignored: they are settings for batches of training texts. */
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer_parts.h"
#include "weights/limits.h"

/* The sections that were read; NULL: the file does not have it. */
typedef struct sections {
    const mt_tok_node *normalizer, *pre_tokenizer, *post_processor, *decoder;
    bool has_model, merges_again; /* merges_again: the merges must be read in a second pass */
} sections;

static bool fail_json(const mt_json_reader *json, mt_error *err)
{
    if (json->error.code != MT_OK)
        return mt_fail(err, MT_E_INVALID, "%s; download the file again", json->error.text);
    return mt_fail(err, MT_E_INVALID, "it is not a tokenizer.json: an object with a \"model\"; download it again");
}

static bool read_version(mt_json_reader *json, mt_error *err)
{
    if (mt_json_next(json) != MT_JSON_STRING)
        return fail_json(json, err);
    return mt_tok_key_is(json, "1.0") ||
           mt_fail(err, MT_E_UNSUPPORTED, "its version is \"%.*s\"; motet reads version 1.0",
                   (int)(json->len < 20 ? json->len : 20), json->str);
}

static bool read_section(mt_tokenizer *t, sections *s, mt_json_reader *json, mt_error *err)
{
    const mt_tok_node **section = mt_tok_key_is(json, "normalizer")       ? &s->normalizer
                                  : mt_tok_key_is(json, "pre_tokenizer")  ? &s->pre_tokenizer
                                  : mt_tok_key_is(json, "post_processor") ? &s->post_processor
                                  : mt_tok_key_is(json, "decoder")        ? &s->decoder
                                                                          : NULL;

    if (section)
        return mt_tok_node_read(section, json, t->arena, err);
    if (mt_tok_key_is(json, "version"))
        return read_version(json, err);
    if (mt_tok_key_is(json, "added_tokens"))
        return mt_tok_added_read(&t->added, json, t->arena, err);
    if (!mt_tok_key_is(json, "model"))
        return mt_json_skip(json) || fail_json(json, err);
    if (s->has_model)
        return mt_fail(err, MT_E_INVALID, "it has \"model\" twice; download the file again");
    s->has_model = true;
    return mt_tok_words_read(&t->words, json, t->arena, &s->merges_again, err);
}

static bool read_sections(mt_tokenizer *t, sections *s, mt_json_reader *json, mt_error *err)
{
    mt_json_event event;

    if (mt_json_next(json) != MT_JSON_OBJECT_BEGIN)
        return fail_json(json, err);
    while ((event = mt_json_next(json)) == MT_JSON_KEY)
        if (!read_section(t, s, json, err))
            return false;
    return (event == MT_JSON_OBJECT_END && mt_json_next(json) == MT_JSON_END && s->has_model) || fail_json(json, err);
}

/* Advances the reader to the value of a member of the next object. False: there is none. */
static bool find_key(mt_json_reader *json, const char *key)
{
    if (mt_json_next(json) != MT_JSON_OBJECT_BEGIN)
        return false;
    while (mt_json_next(json) == MT_JSON_KEY) {
        if (mt_tok_key_is(json, key))
            return true;
        if (!mt_json_skip(json))
            return false;
    }
    return false;
}

static bool read_merges_again(mt_tokenizer *t, const char *text, size_t len, mt_error *err)
{
    mt_json_reader json;
    bool ok;

    mt_json_reader_init(&json, text, len);
    ok = find_key(&json, "model") && find_key(&json, "merges") ? mt_tok_words_read_merges(&t->words, &json, err)
                                                               : fail_json(&json, err);
    mt_json_reader_free(&json);
    return ok;
}

/* Replaces the form of an added token by its normalized content. */
static bool normalize_token(mt_tokenizer *t, mt_tok_added_token *token, mt_tok_text spare[2], mt_tok_matcher *matcher,
                            mt_error *err)
{
    mt_tok_view text = {.data = token->content, .len = token->content_len, .head = true};
    char *form;

    spare[0].limit = spare[1].limit = mt_tok_text_limit(text.len);
    if (!mt_tok_normalize(&t->normalizer, &text, spare, matcher, err))
        return false;
    if (text.len > MT_LIMIT_TOKEN_BYTES)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "it has an added token that is %zu bytes long when normalized; at most %d are read", text.len,
                       MT_LIMIT_TOKEN_BYTES);
    form = mt_arena_alloc(t->arena, text.len + 1);
    if (!form)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "its added tokens are longer than any tokenizer's; download the file again");
    if (text.len > 0)
        memcpy(form, text.data, text.len);
    token->form = form;
    token->form_len = (uint32_t)text.len;
    return true;
}

static bool normalize_added(mt_tokenizer *t, mt_error *err)
{
    mt_tok_matcher *matcher = mt_tok_matcher_new(NULL);
    mt_tok_text spare[2] = {0};
    bool ok = true;

    for (size_t i = 0; ok && i < t->added.count && t->normalizer.count > 0; i++)
        if (t->added.tokens[i].normalized)
            ok = normalize_token(t, &t->added.tokens[i], spare, matcher, err);
    mt_tok_text_free(&spare[0]);
    mt_tok_text_free(&spare[1]);
    mt_tok_matcher_free(matcher);
    return ok;
}

/* Makes the table of tokens by id. An added token has precedence over a token of the model. A token is special if a
   special added token has the same text. */
static void list_tokens(mt_tokenizer *t)
{
    const mt_tok_vocab *vocab = &t->words.vocab;

    t->size = vocab->id_limit > t->added.vocab.id_limit ? vocab->id_limit : t->added.vocab.id_limit;
    t->tokens = mt_alloc_array(t->size, sizeof(*t->tokens));
    for (size_t i = 0; i < vocab->count; i++) {
        size_t len;
        const char *text = mt_tok_vocab_text(vocab, i, &len);

        t->tokens[vocab->ids[i]] = (mt_tok_token){.text = text ? text : "", .len = (uint32_t)len};
    }
    for (size_t i = 0; i < t->added.count; i++) {
        const mt_tok_added_token *a = &t->added.tokens[i];
        bool same = a->form_len == a->content_len && memcmp(a->form, a->content, a->form_len) == 0;

        t->tokens[a->id] = (mt_tok_token){.text = a->form, .len = a->form_len, .special = a->special && same};
    }
}

static bool put_together(mt_tokenizer *t, const sections *s, mt_error *err)
{
    if (!mt_tok_normalizer_init(&t->normalizer, s->normalizer, err) ||
        !mt_tok_pretokenizer_init(&t->pre, s->pre_tokenizer, t->words.kind == MT_TOK_BPE, err) ||
        !mt_tok_post_init(&t->post, s->post_processor, err) || !mt_tok_decoder_init(&t->decoder, s->decoder, err))
        return false;
    if (!mt_tok_words_finish(&t->words, t->pre.byte_level, err) ||
        !mt_tok_added_number(&t->added, &t->words.vocab, t->words.size, err) || !normalize_added(t, err) ||
        !mt_tok_added_finish(&t->added, err))
        return false;
    list_tokens(t);
    return true;
}

bool mt_tokenizer_read(mt_tokenizer *t, const char *text, size_t len, mt_error *err)
{
    sections s = {0};
    mt_json_reader json;
    bool ok;

    if (len > MT_LIMIT_TOKENIZER_BYTES)
        return mt_fail(err, MT_E_TOO_LARGE, "it has %zu bytes; at most %u are read", len, MT_LIMIT_TOKENIZER_BYTES);
    mt_json_reader_init(&json, text, len);
    ok = read_sections(t, &s, &json, err);
    mt_json_reader_free(&json);
    return ok && (!s.merges_again || read_merges_again(t, text, len, err)) && put_together(t, &s, err);
}
