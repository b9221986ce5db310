/* The tokens of a rendered prompt. */
#include "chat/prompt.h"

#include <string.h>

#include "base/alloc.h"

/* Places that are no cuts go: the very beginning, the end, and what falls on the same token. */
static void keep_cuts(mt_prompt *out)
{
    size_t kept = 0;

    for (size_t i = 0; i < out->cut_count; i++)
        if (out->cuts[i] > (kept ? out->cuts[kept - 1] : 0) && out->cuts[i] < out->ids.count)
            out->cuts[kept++] = out->cuts[i];
    out->cut_count = kept;
}

static bool encode(mt_prompt *out, const mt_prompt_model *model, mt_error *err)
{
    const mt_encode_options options = {.plain = out->untrusted,
                                       .plain_count = model->allow_special ? 0 : out->untrusted_count,
                                       .places = out->cuts,
                                       .place_count = out->cut_count};

    return mt_tokenizer_encode(model->tokenizer, out->text.data, out->text.len, &options, &out->ids, err);
}

static bool fail_media(const mt_chat_media *media, const char *why, mt_error *err)
{
    return mt_fail(err, MT_E_INVALID, "messages[%zu] has %s, but %s; send text only", media->message,
                   mt_chat_media_name(media->type), why);
}

/* The tokens that stand for images belong to the images in their order, and so with videos. A token more or less means
   that the template did not show one, or that a client wrote such a token and that is allowed. */
static bool place_media(mt_prompt *out, mt_chat_part_type type, const mt_prompt_model *model, mt_error *err)
{
    const char *token = model->marks.of[type].token;
    const uint32_t id = token ? mt_tokenizer_find(model->tokenizer, token, strlen(token)) : MT_TOKEN_NONE;
    size_t at = 0;

    for (size_t i = 0; i < out->media_count; i++) {
        mt_chat_media *media = &out->media[i];

        if (media->type != type)
            continue;
        if (id == MT_TOKEN_NONE)
            return fail_media(media, "this model takes none", err);
        while (at < out->ids.count && out->ids.data[at] != id)
            at++;
        if (at == out->ids.count)
            return fail_media(media, "the chat template of this model does not show them there", err);
        media->token = at++;
    }
    while (id != MT_TOKEN_NONE && at < out->ids.count)
        if (out->ids.data[at++] == id)
            return mt_fail(err, MT_E_INVALID, "the prompt has more places for %s than %s; leave \"%s\" out of the text",
                           mt_chat_media_name(type), mt_chat_media_name(type), token);
    return true;
}

bool mt_prompt_make(mt_prompt *out, mt_chat *chat, const mt_prompt_model *model, mt_error *err)
{
    if (!mt_prompt_render(out, chat, model, err))
        return false;
    out->cuts = mt_alloc_array(out->text_cut_count + 1, sizeof(*out->cuts));
    out->cut_count = out->text_cut_count;
    if (out->text_cut_count)
        memcpy(out->cuts, out->text_cuts, out->text_cut_count * sizeof(*out->cuts));
    if (!encode(out, model, err))
        return false;
    keep_cuts(out);
    return place_media(out, MT_CHAT_IMAGE, model, err) && place_media(out, MT_CHAT_VIDEO, model, err);
}
