/* See tokens.h. */
#include "server/prepare/tokens.h"

#include <string.h>

#include "base/alloc.h"
#include "server/limits.h"
#include "server/prepare/documents.h"
#include "server/prepare/infill.h"
#include "server/prepare/own_templates.h"
#include "template/limits.h"

size_t mt_tokens_most(const mt_served *served)
{
    const size_t most = served->work / MT_LIMIT_TOKEN_COST;

    return most > served->context ? most : served->context;
}

static bool need_tokenizer(const mt_served *served, mt_failure *why)
{
    return served->tokenizer ||
           mt_failure_set(why, 400, "no_tokenizer", NULL,
                          "the model \"%s\" has no tokenizer: send token ids to /v1/completions", served->name);
}

bool mt_tokens_too_long(const mt_served *served, size_t count, bool more, const char *param, mt_failure *why)
{
    return mt_failure_set(why, 400, "context_length_exceeded", param,
                          "this model's maximum context length is %zu tokens, and the prompt is too long: "
                          "%s%zu tokens > %zu: shorten it",
                          served->context, more ? "more than " : "", count, served->context - 1);
}

/* Says why a prompt could not be made. Returns false. */
static bool fail_prompt(const mt_served *served, size_t most, const mt_error *err, const char *param, mt_failure *why)
{
    if (err->code == MT_E_TOO_LONG)
        return mt_tokens_too_long(served, most, true, param, why);
    return mt_failure_from(why, err, param);
}

/* Has the arena own ids, without copying them. */
static bool keep_ids(mt_arena *arena, mt_ids *ids, mt_token_prompt *out, mt_failure *why)
{
    if (!mt_arena_defer(arena, mt_free, ids->data))
        return mt_failure_memory(why, NULL);
    out->ids = ids->data;
    out->count = ids->count;
    *ids = (mt_ids){0};
    return true;
}

bool mt_tokens_encode(const mt_served *served, mt_arena *arena, mt_chat_text text, bool add_special,
                      const atomic_bool *stop, size_t most, mt_token_prompt *out, mt_failure *why)
{
    const mt_encode_options options = {.add_special = add_special, .stop = stop, .most = most};
    mt_ids ids = {0};
    mt_error err;
    bool ok;

    if (!need_tokenizer(served, why))
        return false;
    *out = (mt_token_prompt){.text = text};
    ok = (mt_tokenizer_encode(served->tokenizer, text.data, text.len, &options, &ids, &err) ||
          fail_prompt(served, most, &err, err.code == MT_E_TOO_LONG ? "prompt" : NULL, why)) &&
         keep_ids(arena, &ids, out, why);
    mt_ids_free(&ids);
    return ok;
}

static bool add_piece(const mt_served *served, const mt_ask_piece *piece, mt_encode_options *options, mt_ids *ids,
                      mt_error *err)
{
    const mt_range all = {.begin = 0, .end = piece->text.len};
    const bool text = piece->text.data != NULL;

    options->plain = &all;
    options->plain_count = piece->plain;
    /* Tokens that the tokenizer puts around a text stand before the first piece, unless that is ids of the client's */
    if ((text || options->add_special) &&
        !mt_tokenizer_encode(served->tokenizer, text ? piece->text.data : "", piece->text.len, options, ids, err))
        return false;
    for (size_t i = 0; !text && i < piece->count; i++)
        mt_ids_add(ids, piece->ids[i]);
    options->add_special = false;
    return true;
}

bool mt_tokens_join(const mt_served *served, mt_arena *arena, const mt_ask_piece *pieces, size_t count,
                    bool add_special, const atomic_bool *stop, size_t most, mt_token_prompt *out, mt_failure *why)
{
    mt_encode_options options = {.add_special = add_special, .stop = stop, .most = most};
    mt_ids ids = {0};
    mt_error err = {0};
    bool ok = need_tokenizer(served, why);

    *out = (mt_token_prompt){.count = 0};
    for (size_t i = 0; ok && i < count; i++)
        ok = (add_piece(served, &pieces[i], &options, &ids, &err) || fail_prompt(served, most, &err, "prompt", why)) &&
             (most == 0 || ids.count <= most || mt_tokens_too_long(served, ids.count, true, "prompt", why));
    ok = ok && keep_ids(arena, &ids, out, why);
    mt_ids_free(&ids);
    return ok;
}

/* The markers of pictures and videos, for templates that accept only text. */
static mt_chat_marks marks_of(const mt_processor *processor)
{
    const char *image = mt_processor_marker(processor, false), *video = mt_processor_marker(processor, true);

    return (mt_chat_marks){
        .of = {
            [MT_CHAT_IMAGE] = {.token = image, .marker = image}, [MT_CHAT_VIDEO] = {.token = video, .marker = video}}};
}

/* The model's templates, or those that the request brings. NULL: *why. */
static const mt_chat_templates *templates_of(const mt_served *served, const mt_chat *chat, const json_t *body,
                                             const atomic_bool *stop, mt_failure *why)
{
    const json_t *given = json_object_get(body, "chat_template");
    const mt_chat_templates *own;
    mt_error err = {0};

    if (!given || json_is_null(given)) {
        if (!served->templates)
            mt_failure_set(why, 400, "no_chat_template", NULL,
                           "the model \"%s\" has no chat template: use /v1/completions, or start the server with "
                           "--chat-template",
                           served->name);
        return served->video_templates && mt_chat_has_video(chat) ? served->video_templates : served->templates;
    }
    if (!json_is_string(given))
        mt_failure_type(why, "chat_template", given, "a string");
    else if (!served->own_templates)
        mt_failure_unsupported(why, "chat_template",
                               "is given, and this server takes none from its clients: leave it out, or start the "
                               "server with --allow-chat-template");
    else {
        own = mt_own_templates_get(served->own_templates, chat->arena, json_string_value(given),
                                   json_string_length(given), stop, &err);
        if (!own)
            mt_failure_from(why, &err, "chat_template");
        return own;
    }
    return NULL;
}

static bool make_prompt(const mt_served *served, mt_chat *chat, mt_pictures *pictures,
                        const mt_chat_templates *templates, size_t most, mt_prompt *prompt, mt_failure *why)
{
    mt_prompt_model model = {.templates = templates,
                             .tokenizer = served->tokenizer,
                             .allow_special = served->allow_special,
                             .describe = mt_pictures_describe,
                             .describe_ctx = pictures,
                             .stop = pictures->prep->stop,
                             .memory = served->work < MT_LIMIT_TEMPLATE_MEMORY ? served->work : 0,
                             .most = most};
    const bool own = templates != served->templates && templates != served->video_templates;
    mt_error err;

    if (!served->opened.processor && mt_chat_has_media(chat))
        return mt_failure_set(why, 400, "unsupported_value", chat->field, "this model takes no pictures: send text");
    if (served->opened.processor)
        model.marks = marks_of(served->opened.processor);
    if (mt_prompt_make(prompt, chat, &model, &err))
        return true;
    return fail_prompt(served, most, &err, own && err.code != MT_E_TOO_LONG ? "chat_template" : chat->field, why);
}

static bool copy_text(mt_arena *arena, const mt_buf *text, mt_chat_text *out, mt_failure *why)
{
    *out = (mt_chat_text){.data = mt_arena_copy(arena, text->data, text->len), .len = text->len};
    return out->data || mt_failure_memory(why, NULL);
}

/* Has the arena own what is needed of a prompt, without copying it. */
static bool keep_prompt(mt_arena *arena, mt_prompt *prompt, mt_token_prompt *out, mt_failure *why)
{
    *out = (mt_token_prompt){.cut_count = prompt->cut_count, .opened = prompt->opened.state};
    if (!mt_arena_defer(arena, mt_free, prompt->cuts))
        return mt_failure_memory(why, NULL);
    out->cuts = prompt->cuts;
    prompt->cuts = NULL;
    return keep_ids(arena, &prompt->ids, out, why);
}

/* Positions in the expanded prompt where turns begin, and where pictures end, since other requests may continue from
   there. */
static size_t move_cuts(const mt_token_prompt *p, uint32_t *cuts)
{
    const mt_expanded *to = &p->pictures.prompt;
    size_t count = 0, span = 0, at = 0;

    for (size_t i = 0; i <= p->cut_count; i++) {
        while (at < to->count && (i == p->cut_count || to->origin[at] < p->cuts[i]))
            at++;
        for (; span < to->span_count && to->spans[span].first + to->spans[span].count < at; span++)
            cuts[count++] = to->spans[span].first + to->spans[span].count;
        if (i < p->cut_count)
            cuts[count++] = (uint32_t)at;
    }
    return count;
}

/* Replaces each pad token by as many as its picture has features, and moves the cuts along. */
static bool expand(const mt_chat *chat, mt_token_prompt *p, mt_failure *why)
{
    mt_pictures *all = &p->pictures;
    mt_expanded *to = &all->prompt;
    uint32_t *cuts;
    mt_error err;

    if (!mt_processor_expand(all->processor, p->ids, p->count, all->at, all->count, all->arena, to, &err))
        return mt_failure_from(why, &err, chat->field);
    cuts = mt_arena_alloc(chat->arena, (p->cut_count + to->span_count + 1) * sizeof(*cuts));
    if (!cuts)
        return mt_failure_memory(why, NULL);
    p->cut_count = move_cuts(p, cuts);
    p->cuts = cuts;
    p->ids = mt_arena_copy(chat->arena, to->ids, to->count * sizeof(*to->ids)); /* the answer outlives the pictures */
    p->count = to->count;
    return p->ids || mt_failure_memory(why, NULL);
}

/* Makes the prompt of a chat, which is changed. body: may have settings for pictures and a template. text: gets the
   rendered text, in the arena; may be NULL. out->pictures must be freed in any case. */
static bool make_chat(mt_served *served, mt_chat *chat, const json_t *body, mt_prep *prep, size_t most,
                      mt_token_prompt *out, mt_chat_text *text, mt_failure *why)
{
    mt_pictures pictures = {
        .processor = served->opened.processor, .limits = &served->media, .room = &served->room, .prep = prep};
    const mt_chat_templates *templates = NULL;
    mt_prompt prompt = {.cut_count = 0};
    mt_error err;
    bool ok = mt_pictures_init(&pictures, body, &err) || mt_failure_from(why, &err, NULL);

    if (ok && need_tokenizer(served, why))
        templates = templates_of(served, chat, body, prep->stop, why);
    ok = ok && templates && make_prompt(served, chat, &pictures, templates, most, &prompt, why) &&
         keep_prompt(chat->arena, &prompt, out, why) && (!text || copy_text(chat->arena, &prompt.text, text, why));
    out->templates = templates;
    out->pictures = pictures;
    mt_prompt_free(&prompt);
    return ok && (pictures.count == 0 || expand(chat, out, why));
}

/* Most tokens that a prompt may have so that its answer has room: max_tokens, or an eighth of the context, at most
   half. */
static size_t room_of(const mt_served *served, const mt_ask *ask)
{
    const size_t wanted = ask->max_tokens >= 0 ? (size_t)ask->max_tokens : served->context / 8;
    const size_t most = served->context / 2;

    return served->context - (wanted < 1 ? 1 : wanted < most ? wanted : most);
}

/* Finds the messages from which a shortened chat may begin: a user's, or the last. Returns how many. */
static size_t find_starts(const mt_chat *chat, size_t *starts)
{
    size_t count = 0;

    for (size_t i = 1; i < chat->count; i++)
        if (i + 1 == chat->count || chat->messages[i].role == MT_CHAT_USER)
            starts[count++] = i;
    return count;
}

/* A copy of the chat, which may be changed, with system messages and the messages from number `from` on. */
static mt_chat chat_from(const mt_chat *chat, size_t from)
{
    mt_chat kept = *chat;

    kept.messages = NULL;
    kept.count = 0;
    for (size_t i = 0; i < chat->count; i++) {
        mt_chat_message copy = chat->messages[i];

        if (i < from && copy.role != MT_CHAT_SYSTEM)
            continue;
        copy.parts = mt_arena_copy(kept.arena, copy.parts, copy.part_count * sizeof(*copy.parts));
        kept.starved = kept.starved || !copy.parts;
        copy.part_count = copy.parts ? copy.part_count : 0;
        mt_chat_put(&kept, &copy);
    }
    return kept;
}

/* The outcome of an attempt to make a prompt of the last messages of a chat. */
typedef enum outcome { FITS, TOO_LONG, FAILED } outcome;

/* Makes *out of the chat's messages from number `from` on; frees what an earlier attempt left there. */
static outcome try_from(mt_served *served, const mt_ask *ask, size_t from, mt_prep *prep, size_t most,
                        mt_token_prompt *out, mt_failure *why)
{
    mt_chat chat = chat_from(&ask->chat, from);

    mt_pictures_free(&out->pictures);
    *out = (mt_token_prompt){.count = 0};
    why->code = NULL;
    if (chat.starved) {
        mt_failure_memory(why, chat.field);
        return FAILED;
    }
    const size_t forgotten = ask->chat.count - chat.count;
    const bool made = make_chat(served, &chat, ask->body, prep, most, out, ask->renders ? &out->text : NULL, why);
    out->forgotten = forgotten;
    if (made)
        return out->count <= room_of(served, ask) ? FITS : TOO_LONG;
    return why->code && strcmp(why->code, "context_length_exceeded") == 0 ? TOO_LONG : FAILED;
}

/* Makes the prompt of the ask's chat, which stays unchanged. Where too little room is left for an answer, the oldest
   turns are left out, as few as possible; system messages and the last message stay. */
static bool make_shorter(mt_served *served, const mt_ask *ask, mt_prep *prep, size_t most, mt_token_prompt *out,
                         mt_failure *why)
{
    outcome found = try_from(served, ask, 0, prep, most, out, why);
    size_t *starts, count, low, high;

    if (found != TOO_LONG)
        return found == FITS;
    starts = mt_arena_alloc(ask->arena, (ask->chat.count + 1) * sizeof(*starts));
    if (!starts)
        return mt_failure_memory(why, ask->chat.field);
    count = find_starts(&ask->chat, starts);
    /* Binary search: the later the beginning, the shorter the prompt */
    for (low = 0, high = count; low < high && found != FAILED;) {
        const size_t middle = low + (high - low) / 2;

        found = try_from(served, ask, starts[middle], prep, most, out, why);
        if (found == FITS)
            high = middle;
        else
            low = middle + 1;
    }
    if (found != FAILED && count > 0)
        found = try_from(served, ask, starts[high < count ? high : count - 1], prep, most, out, why);
    /* One that is still too long is refused later, as any other */
    return found == FITS || (found == TOO_LONG && out->count > 0);
}

bool mt_tokens_request(mt_served *served, mt_arena *arena, const json_t *body, mt_prep *prep, mt_token_prompt *out,
                       mt_chat_text *text, mt_failure *why)
{
    mt_error err = {0};
    mt_chat chat;

    return mt_chat_read(&chat, arena, body, &err) &&
                   mt_documents_fill(&chat, &served->media, served->opened.processor, prep, &err)
               ? make_chat(served, &chat, body, prep, mt_tokens_most(served), out, text, why)
               : mt_failure_from(why, &err, "messages");
}

static bool make_one(const mt_served *served, mt_ask *ask, const mt_ask_prompt *from, const atomic_bool *stop,
                     size_t most, mt_token_prompt *out, mt_failure *why)
{
    const mt_ask_piece *pieces = from->pieces;
    size_t count = from->piece_count;

    if (from->infill && !mt_infill_pieces(served, ask, from->infill, &pieces, &count, why))
        return false;
    if (pieces)
        return mt_tokens_join(served, ask->arena, pieces, count,
                              ask->add_special_tokens && (from->infill || pieces[0].text.data), stop, most, out, why);
    if (from->text.data)
        return mt_tokens_encode(served, ask->arena, from->text, ask->add_special_tokens, stop, most, out, why);
    *out = (mt_token_prompt){.ids = from->ids, .count = from->count};
    return true;
}

/* How many tokens of a prompt are kept. */
static size_t kept_of(const mt_served *served, const mt_ask *ask)
{
    const size_t answer = ask->max_tokens < 1 ? 1 : (size_t)ask->max_tokens;

    if (ask->truncate != MT_TRUNCATE_FIT)
        return (size_t)ask->truncate;
    return answer < served->context ? served->context - answer : 1;
}

/* Truncates a prompt that is longer than the call allows, at its beginning unless the call says otherwise. */
static bool truncate(const mt_served *served, const mt_ask *ask, mt_token_prompt *p, mt_failure *why)
{
    const size_t kept = kept_of(served, ask), first = ask->side == MT_TRUNCATE_RIGHT ? 0 : p->count - kept;
    size_t count = 0;
    uint32_t *cuts;

    if (ask->truncate == MT_TRUNCATE_NONE || p->count <= kept)
        return true;
    if (p->pictures.count > 0)
        return mt_failure_set(why, 400, "unsupported_value", "truncate_prompt_tokens",
                              "the prompt has %zu tokens, and one with pictures is not cut: leave "
                              "\"truncate_prompt_tokens\" out, and send less",
                              p->count);
    cuts = mt_arena_alloc(ask->arena, (p->cut_count + 1) * sizeof(*cuts));
    if (!cuts)
        return mt_failure_memory(why, NULL);
    for (size_t i = 0; i < p->cut_count; i++)
        if (p->cuts[i] > first && p->cuts[i] < first + kept)
            cuts[count++] = (uint32_t)(p->cuts[i] - first);
    p->ids += first;
    p->count = kept;
    p->cuts = cuts;
    p->cut_count = count;
    p->text.data = NULL; /* it does not match the tokens any more */
    return true;
}

/* The token that begins a text, which a template may write; MT_TOKEN_NONE: there is none. */
static uint32_t begin_of_text(const mt_served *served, const mt_token_prompt *p)
{
    const json_t *tokens = p->templates ? mt_chat_templates_tokens(p->templates) : NULL;
    const json_t *bos = json_object_get(tokens, "bos_token");

    return json_is_string(bos) ? mt_tokenizer_find(served->tokenizer, json_string_value(bos), json_string_length(bos))
                               : MT_TOKEN_NONE;
}

/* Puts the tokens of an earlier conversation before a chat's, which does not begin a text then. */
static bool put_before(const mt_served *served, const mt_ask *ask, mt_token_prompt *p, mt_failure *why)
{
    const size_t skipped = p->count > 0 && p->ids[0] == begin_of_text(served, p);
    const size_t count = ask->before_count + p->count - skipped;
    uint32_t *ids, *cuts;

    if (ask->before_count == 0)
        return true;
    ids = mt_arena_alloc(ask->arena, count * sizeof(*ids));
    cuts = mt_arena_alloc(ask->arena, (p->cut_count + 1) * sizeof(*cuts));
    if (!ids || !cuts)
        return mt_failure_memory(why, "context");
    memcpy(ids, ask->before, ask->before_count * sizeof(*ids));
    memcpy(ids + ask->before_count, p->ids + skipped, (p->count - skipped) * sizeof(*ids));
    for (size_t i = 0; i < p->cut_count; i++)
        cuts[i] = (uint32_t)(p->cuts[i] + ask->before_count - (p->cuts[i] > 0 ? skipped : 0));
    p->ids = ids;
    p->count = count;
    p->cuts = cuts;
    p->text.data = NULL; /* it does not have what stands before it */
    return true;
}

/* Makes the prompt of one of the ask's conversations, which is changed. */
static bool make_conversation(mt_served *served, const mt_ask *ask, mt_chat *chat, mt_prep *prep, size_t most,
                              mt_token_prompt *out, mt_failure *why)
{
    mt_error err = {0};

    if (!mt_documents_fill(chat, &served->media, served->opened.processor, prep, &err))
        return mt_failure_from(why, &err, chat->field);
    if (ask->forgets)
        return make_shorter(served, ask, prep, most, out, why);
    return make_chat(served, chat, ask->body, prep, most, out, ask->renders ? &out->text : NULL, why) &&
           put_before(served, ask, out, why) && truncate(served, ask, out, why);
}

bool mt_tokens_make(mt_served *served, mt_ask *ask, mt_prep *prep, size_t most, mt_token_prompt **out, size_t *count,
                    mt_failure *why)
{
    *count = ask->is_chat ? 1 + ask->further_count : ask->prompt_count;
    *out = mt_arena_alloc(ask->arena, *count * sizeof(**out));
    if (!*out)
        return mt_failure_memory(why, NULL);
    if (ask->truncate != MT_TRUNCATE_NONE)
        most = 0; /* a text that is too long is truncated, not refused */
    for (size_t i = 0; ask->is_chat && i < *count; i++)
        if (!make_conversation(served, ask, i ? &ask->further[i - 1] : &ask->chat, prep, most, *out + i, why))
            return false;
    for (size_t i = 0; !ask->is_chat && i < *count; i++)
        if (!make_one(served, ask, &ask->prompts[i], prep->stop, most, *out + i, why) ||
            !truncate(served, ask, *out + i, why))
            return false;
    return true;
}
