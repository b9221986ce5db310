/* Tokenizes a rendered prompt. */
#include "chat/prompt.h"

#include <string.h>

#include "base/alloc.h"
#include "chat/limits.h"

/* Removes cuts that are none: at the beginning, at the end, and several on the same token. */
static void keep_cuts(mt_prompt *out)
{
    size_t kept = 0;

    for (size_t i = 0; i < out->cut_count; i++)
        if (out->cuts[i] > (kept ? out->cuts[kept - 1] : 0) && out->cuts[i] < out->ids.count)
            out->cuts[kept++] = out->cuts[i];
    out->cut_count = kept;
}

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

/* The special tokens at the cuts that are known. */
static starts find_starts(const mt_prompt *out, const mt_tokenizer *tokenizer)
{
    starts s = {.count = 0};

    for (size_t i = 0; i < out->cut_count && s.count < MT_LIMIT_TURN_STARTS; i++) {
        const uint32_t id = out->ids.data[out->cuts[i]];

        if (mt_tokenizer_special(tokenizer, id) && !is_start(&s, id))
            s.ids[s.count++] = id;
    }
    return s;
}

/* Adds cuts at all such tokens: a template may write the first turns outside of its loop, but with the same tokens. */
static void add_cuts_at_starts(mt_prompt *out, const mt_tokenizer *tokenizer)
{
    const starts s = find_starts(out, tokenizer);
    size_t count = out->cut_count, old = 0;
    size_t *cuts;

    for (size_t i = 1; i < out->ids.count; i++)
        count += is_start(&s, out->ids.data[i]);
    cuts = mt_alloc_array(count + 1, sizeof(*cuts));
    count = 0;
    for (size_t i = 1; i < out->ids.count; i++) {
        const bool known = old < out->cut_count && out->cuts[old] == i;

        old += known;
        if (known || is_start(&s, out->ids.data[i]))
            cuts[count++] = i;
    }
    mt_free(out->cuts);
    out->cuts = cuts;
    out->cut_count = count;
}

static bool encode(mt_prompt *out, const mt_prompt_model *model, mt_error *err)
{
    const mt_encode_options options = {.plain = out->untrusted,
                                       .plain_count = model->allow_special ? 0 : out->untrusted_count,
                                       .places = out->cuts,
                                       .place_count = out->cut_count,
                                       .stop = model->stop,
                                       .most = model->most};

    return mt_tokenizer_encode(model->tokenizer, out->text.data, out->text.len, &options, &out->ids, err);
}

bool mt_prompt_make(mt_prompt *out, mt_chat *chat, const mt_prompt_model *model, mt_error *err)
{
    if (!mt_prompt_render(out, chat, model, err) || !mt_prompt_fill_media(out, chat, model, err))
        return false;
    out->cuts = mt_alloc_array(out->text_cut_count + 1, sizeof(*out->cuts));
    out->cut_count = out->text_cut_count;
    if (out->text_cut_count)
        memcpy(out->cuts, out->text_cuts, out->text_cut_count * sizeof(*out->cuts));
    if (!encode(out, model, err))
        return false;
    keep_cuts(out);
    add_cuts_at_starts(out, model->tokenizer);
    return true;
}
