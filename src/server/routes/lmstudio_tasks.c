/* Answers LM Studio's SDKs' questions about models and files, on preparation threads. */
#include <string.h>

#include "api/chat_body.h"
#include "api/lmstudio_socket.h"
#include "api/write.h"
#include "base/alloc.h"
#include "base/json_write.h"
#include "media/source.h"
#include "server/inside.h"
#include "server/limits.h"
#include "server/prepare/tokens.h"
#include "server/routes/listed.h"
#include "weights/gguf_place.h"

/* On the socket of embedding models a model that writes text is one of these, too: it embeds. */
static void add_model(mt_buf *out, const mt_call *call, const mt_listed *m)
{
    const mt_card *card = m->card;
    const mt_lmstudio_model model = {
        .name = m->name,
        .family = card->family,
        .size = card->size,
        .quantisation = card->quantisation,
        .bytes = card->bytes,
        .context = m->view.state == MT_MEMBER_READY ? (int64_t)m->view.context : 0,
        .longest = card->context ? card->context : (int64_t)m->view.context,
        .gguf = mt_gguf_named(card->dir) || mt_gguf_is_manifest(card->dir),
        .encoder = m->view.facts.encoder || call->dialect->vectors,
        .vision = m->view.facts.vision,
        .tools = m->view.facts.tools,
    };

    mt_lmstudio_model_write(out, &model);
}

/* Whether a model is loaded and of the kind that the call's socket is about. */
static bool is_meant(const mt_call *call, const mt_listed *m)
{
    const mt_member_facts *f = &m->view.facts;

    return m->view.state == MT_MEMBER_READY &&
           (call->dialect->vectors ? f->encoder && !f->scores && !f->classifies : !f->encoder);
}

/* listLoaded, and listDownloadedModels, which has all, loaded or not. */
static bool answer_lmstudio_list(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const bool loaded = strcmp(mt_body_text(body, "endpoint"), "listLoaded") == 0;
    size_t count;
    mt_listed *all = mt_listed_all(call->server, true, &count);

    (void)why;
    mt_json_write(out, "{'type':'rpcResult','callId':%lld,'result':[",
                  (long long)json_integer_value(json_object_get(body, "callId")));
    for (size_t i = 0; i < count; i++)
        if (!loaded || is_meant(call, &all[i]))
            add_model(out, call, &all[i]);
    mt_json_write(out, "]}");
    mt_free(all);
    return true;
}

const mt_task mt_task_lmstudio_list = {.run = answer_lmstudio_list, .no_model = true};

/* The loaded model of that name; where none is named, any. */
static bool find_loaded(mt_call *call, const char *name, mt_listed *out)
{
    size_t count;
    mt_listed *all;
    bool found = false;

    if (name)
        return mt_listed_find(call->server, name, true, out) && is_meant(call, out);
    all = mt_listed_all(call->server, true, &count);
    for (size_t i = 0; i < count && !found; i++)
        if (is_meant(call, &all[i])) {
            *out = all[i];
            found = true;
        }
    mt_free(all);
    return found;
}

/* getModelInfo: a model that is loaded. */
static bool answer_lmstudio_find(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const char *name = json_string_value(mt_lmstudio_named(body));
    mt_listed m;
    const bool found = find_loaded(call, name, &m);

    if (!found && json_is_true(mt_body_get(mt_lmstudio_parameter(body), "throwIfNotFound")))
        return mt_failure_set(why, 404, "model_not_found", NULL, "no model \"%.100s\" is loaded", name ? name : "");
    mt_json_write(out, "{'type':'rpcResult','callId':%lld",
                  (long long)json_integer_value(json_object_get(body, "callId")));
    if (found) {
        mt_json_write(out, "'result':");
        add_model(out, call, &m);
    }
    mt_json_write(out, "}");
    return true;
}

const mt_task mt_task_lmstudio_find = {.run = answer_lmstudio_find, .no_model = true};

static void add_packet(mt_buf *out, const mt_call *call, const json_t *body, const char *type, const mt_listed *m)
{
    mt_lmstudio_packet(out, body);
    mt_json_write(out, "'type':%s,'info':", type);
    add_model(out, call, m);
    mt_buf_puts(out, "}}\n");
}

/* loadModel and getOrLoad: the call has its model, so that it is loaded. */
static bool answer_lmstudio_load(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const char *named = json_string_value(mt_lmstudio_named(body)), *name = named ? named : call->served->name;
    mt_listed m;

    /* --any-model: the name that the client has given is none of a model */
    if (!mt_listed_find(call->server, name, true, &m) && !mt_listed_find(call->server, call->served->name, true, &m))
        return mt_fleet_lacks(name, "", why);
    m.view.state = MT_MEMBER_READY;
    m.view.context = call->served->context;
    if (strcmp(mt_body_text(body, "endpoint"), "loadModel") == 0) {
        add_packet(out, call, body, "resolved", &m);
        add_packet(out, call, body, "success", &m);
    } else
        add_packet(out, call, body, "alreadyLoaded", &m);
    mt_lmstudio_close(out, body);
    return true;
}

const mt_task mt_task_lmstudio_load = {.run = answer_lmstudio_load};

/* getLoadConfig */
static bool answer_lmstudio_config(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    (void)why;
    mt_lmstudio_result(out, body);
    mt_json_write(out, "'fields':[{'key':%s,'value':%zu}]}}",
                  call->dialect->vectors ? "embedding.load.contextLength" : "llm.load.contextLength",
                  call->served->context);
    return true;
}

const mt_task mt_task_lmstudio_config = {.run = answer_lmstudio_config};

/* tokenize and countTokens */
static bool answer_lmstudio_tokenize(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const json_t *text = mt_body_get(mt_lmstudio_parameter(body), "inputString");
    mt_token_prompt tokens = {.count = 0};

    if (!json_is_string(text))
        return mt_failure_type(why, "inputString", text, "a string");
    if (!mt_tokens_encode(call->served, call->arena, mt_chat_text_of(text), false, &call->stop,
                          mt_tokens_most(call->served), &tokens, why))
        return false;
    mt_lmstudio_result(out, body);
    if (strcmp(mt_body_text(body, "endpoint"), "tokenize") == 0)
        mt_write_ids(out, "tokens", tokens.ids, tokens.count);
    else
        mt_json_write(out, "'tokenCount':%zu", tokens.count);
    mt_buf_puts(out, "}}");
    return true;
}

const mt_task mt_task_lmstudio_tokenize = {.run = answer_lmstudio_tokenize};

static bool is_picture(const mt_buf *bytes)
{
    static const struct {
        const char *begin;
        size_t len;
    } known[] = {{"\x89PNG", 4}, {"\xFF\xD8\xFF", 3}, {"GIF8", 4}, {"BM", 2}};

    for (size_t i = 0; i < MT_COUNT(known); i++)
        if (bytes->len > known[i].len && memcmp(bytes->data, known[i].begin, known[i].len) == 0)
            return true;
    return bytes->len > 12 && memcmp(bytes->data, "RIFF", 4) == 0 && memcmp(bytes->data + 8, "WEBP", 4) == 0;
}

/* Keeps a picture as POST /v1/uploads/pictures does. The server's room is charged for it. */
static bool keep(mt_call *call, mt_buf *bytes, char id[MT_RANDOM_ID], mt_failure *why)
{
    const size_t len = bytes->len;
    char *data;

    if (!mt_room_take(&call->server->room, len))
        return mt_failure_set(why, 503, "overloaded", NULL, "there is no room for the file now: try again in a moment");
    data = mt_realloc(bytes->data, bytes->cap, len);
    mt_buf_init(bytes, 0);
    if (mt_uploads_add(&call->server->uploaded, call->account, data, len, len, id))
        return true;
    mt_free(data);
    mt_room_give(&call->server->room, len);
    return mt_failure_set(why, 413, "upload_too_large", NULL,
                          "a picture of %zu bytes cannot be kept here: %zu bytes may be (--upload-bytes)", len,
                          mt_uploads_look(&call->server->uploaded).limit);
}

/* uploadFileBase64 */
static bool answer_lmstudio_upload(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const json_t *content = mt_body_get(mt_lmstudio_parameter(body), "contentBase64");
    mt_buf bytes = {.limit = MT_LIMIT_MEDIA_BYTES};
    char id[MT_RANDOM_ID];
    mt_error err;
    size_t len;
    bool ok;

    if (!json_is_string(content))
        return mt_failure_type(why, "contentBase64", content, "a string");
    ok = mt_base64_decode(&bytes, json_string_value(content), json_string_length(content), &err) ||
         mt_failure_from(why, &err, "contentBase64");
    len = bytes.len;
    ok = ok && (is_picture(&bytes) ||
                mt_failure_unsupported(why, "contentBase64", "is no picture: files of other kinds are not kept here"));
    ok = ok && keep(call, &bytes, id, why);
    mt_buf_free(&bytes);
    if (!ok)
        return false;
    mt_lmstudio_result(out, body);
    mt_json_write(out, "'identifier':%s,'fileType':'image','sizeBytes':%zu}}", id, len);
    return true;
}

const mt_task mt_task_lmstudio_upload = {.run = answer_lmstudio_upload, .no_model = true};
