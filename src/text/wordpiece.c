/* See wordpiece.h. */
#include "text/wordpiece.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

static bool add_unknown(const mt_tok_wordpiece *model, mt_ids *out, mt_error *err)
{
    uint32_t id = mt_tok_vocab_id(model->vocab, model->unk_token, model->unk_len);

    if (id == MT_TOKEN_NONE)
        return mt_fail(err, MT_E_INVALID, "the tokenizer's \"unk_token\" is not in its vocabulary; download it again");
    mt_ids_add(out, id);
    return true;
}

static size_t count_chars(const char *word, size_t len)
{
    size_t count = 0;

    for (size_t at = 0; at < len; at += mt_utf8_size(word[at]))
        count++;
    return count;
}

/* The id of the longest token that the text begins with; *taken is its length in the text. goes_on: the text is not the
   start of the word. Looks at *stop again and again, since each length that a token might have takes a lookup. */
static uint32_t longest(const mt_tok_wordpiece *model, char *spelling, const char *text, size_t len, bool goes_on,
                        const atomic_bool *stop, size_t *taken)
{
    size_t prefix = goes_on ? model->prefix_len : 0, most = model->vocab->longest;

    if (prefix >= most)
        return MT_TOKEN_NONE;
    while (len > most - prefix)
        len = mt_utf8_before(text, len);
    if (prefix > 0)
        memcpy(spelling, model->prefix, prefix);
    memcpy(spelling + prefix, text, len);
    for (; len > 0; len = mt_utf8_before(text, len)) {
        /* relaxed: no other data depends on it */
        if (stop && atomic_load_explicit(stop, memory_order_relaxed))
            break;
        uint32_t id = mt_tok_vocab_id(model->vocab, spelling, prefix + len);

        if (id != MT_TOKEN_NONE) {
            *taken = len;
            return id;
        }
    }
    return MT_TOKEN_NONE;
}

static bool encode_parts(const mt_tok_wordpiece *model, const char *word, size_t len, const atomic_bool *stop,
                         mt_ids *out, mt_error *err)
{
    char *spelling = mt_alloc(model->vocab->longest + 1);
    size_t count = out->count, at = 0, taken;

    while (at < len) {
        uint32_t id = longest(model, spelling, word + at, len - at, at > 0, stop, &taken);

        if (id == MT_TOKEN_NONE)
            break;
        mt_ids_add(out, id);
        at += taken;
    }
    mt_free(spelling);
    if (at == len)
        return true;
    out->count = count;
    return add_unknown(model, out, err);
}

bool mt_tok_wordpiece_encode(const mt_tok_wordpiece *model, const char *word, size_t len, const atomic_bool *stop,
                             mt_ids *out, mt_error *err)
{
    if (model->whole_words) {
        uint32_t id = mt_tok_vocab_id(model->vocab, word, len);

        if (id == MT_TOKEN_NONE)
            return add_unknown(model, out, err);
        mt_ids_add(out, id);
        return true;
    }
    if (count_chars(word, len) > model->most_chars)
        return add_unknown(model, out, err);
    return encode_parts(model, word, len, stop, out, err);
}
