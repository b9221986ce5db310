/* Tokenizes a rendered prompt. */
#include "chat/prompt.h"

#include <string.h>

#include "base/alloc.h"
#include "chat/limits.h"

/* Special tokens that turns begin with. */
typedef struct starts {
    uint32_t ids[MT_LIMIT_TURN_STARTS];
    size_t count;
} starts;

static bool is_start(const starts *s, uint32_t id)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->ids[i] == id)
            return true;
    return false;
}

/* The special tokens at places of the prompt where turns begin. */
static starts find_starts(const mt_prompt *out, const mt_tokenizer *tokenizer, const size_t *places)
{
    starts s = {.count = 0};

    for (size_t i = 0; i < out->text_cut_count && s.count < MT_LIMIT_TURN_STARTS; i++) {
        const uint32_t id = places[i] > 0 && places[i] < out->ids.count ? out->ids.data[places[i]] : MT_TOKEN_NONE;

        if (id != MT_TOKEN_NONE && mt_tokenizer_special(tokenizer, id) && !is_start(&s, id))
            s.ids[s.count++] = id;
    }
    return s;
}

/* Sets the cuts: the places where turns begin, each once and without the prompt's beginning and end, and all tokens
   like those there, since a template may write the first turns outside of its loop, but with the same tokens. */
static void set_cuts(mt_prompt *out, const mt_tokenizer *tokenizer, const size_t *places)
{
    const starts s = find_starts(out, tokenizer, places);
    size_t count = out->text_cut_count, at = 0;

    for (size_t i = 1; i < out->ids.count; i++)
        count += is_start(&s, out->ids.data[i]);
    out->cuts = mt_alloc_array(count + 1, sizeof(*out->cuts));
    for (size_t i = 1; i < out->ids.count; i++) {
        while (at < out->text_cut_count && places[at] < i)
            at++;
        if ((at < out->text_cut_count && places[at] == i) || is_start(&s, out->ids.data[i]))
            out->cuts[out->cut_count++] = (uint32_t)i;
    }
}

/* Tokenizes the text. places: bytes of it, which become indexes of tokens. */
static bool encode(mt_prompt *out, const mt_prompt_model *model, size_t *places, mt_error *err)
{
    const mt_encode_options options = {.plain = out->untrusted,
                                       .plain_count = model->allow_special ? 0 : out->untrusted_count,
                                       .places = places,
                                       .place_count = out->text_cut_count,
                                       .stop = model->stop,
                                       .most = model->most};

    return mt_tokenizer_encode(model->tokenizer, out->text.data, out->text.len, &options, &out->ids, err);
}

bool mt_prompt_make(mt_prompt *out, mt_chat *chat, const mt_prompt_model *model, mt_error *err)
{
    size_t *places;
    bool ok;

    if (!mt_prompt_render(out, chat, model, err) || !mt_prompt_fill_media(out, chat, model, err))
        return false;
    places = mt_alloc_array(out->text_cut_count + 1, sizeof(*places));
    if (out->text_cut_count)
        memcpy(places, out->text_cuts, out->text_cut_count * sizeof(*places));
    ok = encode(out, model, places, err);
    if (ok)
        set_cuts(out, model->tokenizer, places);
    mt_free(places);
    return ok;
}
