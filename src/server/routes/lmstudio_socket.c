/* The WebSockets of LM Studio's own SDKs: one for each part of their API, "/llm" and its kin. The first message says
   who the client is; what each further one wants stands in its first members, which are read here, on the io thread.
   Work on it is a call like any other. What is no call is answered here at once. */
#include <stdio.h>
#include <string.h>

#include "api/json_body.h"
#include "api/lmstudio_envelope.h"
#include "api/lmstudio_socket.h"
#include "base/alloc.h"
#include "base/json_write.h"
#include "server/inside.h"
#include "server/limits.h"

enum { GUEST = 16 }; /* letters of what comes before a key */

/* Sends lines and frees the request. */
static void answer(mt_server *server, mt_http_request *request, const mt_buf *lines)
{
    const mt_http_response response = {.status = 200};

    mt_http_answer(server->http, request->handle, &response, lines->len ? lines->data : "", lines->len);
    mt_http_request_free(request);
}

static void refuse(mt_server *server, mt_http_request *request, const mt_failure *why)
{
    mt_server_fail(server, request->handle, &mt_lmstudio_call, why);
    mt_http_request_free(request);
}

/* How the messages of a socket are admitted: as requests that ask for text, or for something else. */
static const mt_http_route asks = {.flags = MT_HTTP_SOCKET | MT_SERVER_METERED | MT_SERVER_WRITES},
                           looks = {.flags = MT_HTTP_SOCKET};

/* Whether a key is good; an empty one, where the server needs none. */
static bool is_good(mt_server *server, mt_http_request *request, const char *key, mt_http_refusal *refusal)
{
    request->route = &looks;
    request->socket_key = *key ? key : NULL;
    return mt_server_admit(server, request, refusal);
}

/* The key is the passkey alone, or both, as LM Studio's own keys have it. From here on messages may be large. */
static void greet(mt_server *server, mt_http_request *request, const mt_lmstudio_envelope *e)
{
    mt_socket *socket = request->socket;
    mt_http_refusal refusal = {.status = 401};
    char both[2 * MT_LMSTUDIO_KEY + GUEST];
    mt_buf out = {.limit = 4 * (size_t)MT_LIMIT_ERROR_TEXT};
    const char *key = e->passkey;

    snprintf(both, sizeof(both), "sk-lm-%s:%s", e->client, e->passkey);
    if (!is_good(server, request, key, &refusal)) {
        key = both;
        if (!is_good(server, request, key, &refusal)) {
            mt_json_write(&out, "{'success':false,'error':%s}", refusal.text);
            answer(server, request, &out);
            mt_buf_free(&out);
            return;
        }
    }
    mt_free(socket->key);
    socket->key = mt_strdup(key);
    mt_http_socket_bound(server->http, request->handle, server->body_most);
    mt_json_write(&out, "{'success':true}");
    answer(server, request, &out);
    mt_buf_free(&out);
}

/* Cancels what answers on a channel of this socket. */
static void cancel(mt_server *server, const mt_http_request *request, int64_t channel)
{
    const mt_socket *socket = request->socket;

    for (mt_call *call = server->calls; call; call = call->next)
        if (call->recent == socket->recent && call->channel == channel && channel >= 0 && !mt_call_is_over(call))
            mt_call_cancel(call);
}

/* Unloads the model that a small body names, as soon as no call uses it. */
static bool unload(mt_server *server, const mt_http_request *request, mt_failure *why)
{
    const size_t len = request->body_len < MT_LIMIT_SMALL_BODY ? request->body_len : MT_LIMIT_SMALL_BODY;
    json_t *body = mt_models_may(server, request->who, why) ? mt_json_body_parse(request->body, len, NULL, why) : NULL;
    const char *name = json_string_value(mt_lmstudio_named(body));
    const bool ok = body && name && mt_created_unload(&server->creations, &server->fleet, name);

    if (body && !ok)
        mt_fleet_lacks(name ? name : "", "", why);
    mt_json_body_free(body, len);
    return ok;
}

static bool do_nothing(mt_server *server, const mt_http_request *request, mt_failure *why)
{
    (void)server, (void)request, (void)why;
    return true;
}

/* The calls and channels of each WebSocket, and what answers them: the engine through a dialect, a task on a
   preparation thread, or a function on the io thread. */
static const struct endpoint {
    const char *space, *name; /* of the WebSocket's path; of the call, or of the channel that is created */
    const mt_dialect *dialect;
    const mt_task *task;
    bool (*at_once)(mt_server *server, const mt_http_request *request, mt_failure *why); /* without a result */
    const char *result;                                                                  /* behind at_once; or NULL */
    bool open; /* a channel that says nothing */
} endpoints[] = {
#define MODELS(space, call)                                                                                     \
    {space, "loadModel", &call, .task = &mt_task_lmstudio_load},                                                \
        {space, "getOrLoad", &call, .task = &mt_task_lmstudio_load}, {space, "unloadModel", .at_once = unload}, \
        {space, "listLoaded", &call, .task = &mt_task_lmstudio_list},                                           \
        {space, "getModelInfo", &call, .task = &mt_task_lmstudio_find},                                         \
        {space, "getLoadConfig", &call, .task = &mt_task_lmstudio_config},                                      \
        {space, "tokenize", &call, .task = &mt_task_lmstudio_tokenize},                                         \
    {                                                                                                           \
        space, "countTokens", &call, .task = &mt_task_lmstudio_tokenize                                         \
    }
    MODELS("/llm", mt_lmstudio_call),
    MODELS("/embedding", mt_lmstudio_vectors),
    {"/llm", "predict", .dialect = &mt_lmstudio_predict},
    {"/llm", "completeRawText", .dialect = &mt_lmstudio_predict},
    {"/llm", "applyPromptTemplate", .dialect = &mt_lmstudio_template},
    {"/embedding", "embedString", .dialect = &mt_lmstudio_embed},
    {"/files", "uploadFileBase64", &mt_lmstudio_call, .task = &mt_task_lmstudio_upload},
    {"/system", "listDownloadedModels", &mt_lmstudio_call, .task = &mt_task_lmstudio_list},
    {"/system", "version", .at_once = do_nothing, .result = "{\"version\":\"" MT_VERSION "\",\"build\":1}"},
    {"/system", "info", .at_once = do_nothing,
     .result = "{\"version\":\"" MT_VERSION "\",\"pid\":1,\"isDaemon\":true}"},
    {"/system", "getExperimentFlags", .at_once = do_nothing, .result = "[]"},
    {"/system", "notify", .at_once = do_nothing},
    {"/system", "alive", .open = true},
};

static const struct endpoint *find_endpoint(const char *space, const char *name)
{
    for (size_t i = 0; i < MT_COUNT(endpoints); i++)
        if (strcmp(endpoints[i].space, space) == 0 && strcmp(endpoints[i].name, name) == 0)
            return &endpoints[i];
    return NULL;
}

static void answer_at_once(mt_server *server, mt_http_request *request, const struct endpoint *p,
                           const mt_lmstudio_envelope *e)
{
    mt_failure why;
    mt_buf out = {.limit = 1024};

    if (!p->at_once(server, request, &why)) {
        refuse(server, request, &why);
        return;
    }
    mt_json_write(&out, "{'type':'rpcResult','callId':%lld", (long long)e->number);
    if (p->result)
        mt_json_write(&out, "'result':%-s", p->result);
    mt_json_write(&out, "}");
    answer(server, request, &out);
    mt_buf_free(&out);
}

/* Starts what a call or a new channel is for. */
static void start(mt_server *server, mt_http_request *request, const mt_lmstudio_envelope *e, bool channel)
{
    const struct endpoint *p = find_endpoint(request->route->pattern, e->endpoint);
    const mt_socket *socket = request->socket;
    char begin[96];
    mt_http_refusal refusal = {.status = 401};
    mt_failure why;
    mt_call *call;

    snprintf(begin, sizeof(begin), "{\"type\":\"%s\",\"%s\":%lld,\"error\":", channel ? "channelError" : "rpcError",
             channel ? "channelId" : "callId", (long long)e->number);
    mt_http_errors_begin(server->http, request->handle, begin);
    request->route = p && p->dialect && p->dialect->chunk ? &asks : &looks;
    request->socket_key = socket->key;
    if (!mt_server_admit(server, request, &refusal))
        mt_failure_set(&why, refusal.status, refusal.code, NULL, "%s", refusal.text);
    else if (!p)
        mt_failure_set(&why, 404, "not_found", NULL,
                       "there is no \"%s\" of LM Studio's here: docs/lmstudio.md has a list", e->endpoint);
    else if (p->at_once || p->open) {
        mt_buf none = {.limit = 1};

        if (p->at_once)
            answer_at_once(server, request, p, e);
        else
            answer(server, request, &none);
        return;
    } else {
        call = mt_call_start(server, request, p->dialect, p->task);
        if (call && channel)
            call->channel = e->number;
        return;
    }
    refuse(server, request, &why);
}

void mt_lmstudio_message(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    const mt_lmstudio_envelope e =
        mt_lmstudio_envelope_read(request->body, MT_MIN(request->body_len, MT_LIMIT_SMALL_BODY));
    mt_buf out = {.limit = 1024};

    (void)http;
    if (e.greets) {
        greet(server, request, &e);
        return;
    }
    if (strcmp(e.type, "rpcCall") == 0 || strcmp(e.type, "channelCreate") == 0) {
        start(server, request, &e, e.type[0] == 'c');
        return;
    }
    if (strcmp(e.type, "keepAlive") == 0)
        mt_json_write(&out, "{'type':'keepAliveAck'}");
    else if (strcmp(e.type, "channelSend") == 0 && (strcmp(e.said, "cancel") == 0 || strcmp(e.said, "stop") == 0))
        cancel(server, request, e.number);
    else if (strcmp(e.type, "signalSubscribe") == 0 || strcmp(e.type, "writableSignalSubscribe") == 0)
        mt_json_write(&out, "{'type':%s,'subscribeId':%lld,'error':{'title':'there are no signals here'}}",
                      e.type[0] == 's' ? "signalError" : "writableSignalError", (long long)e.number);
    answer(server, request, &out);
    mt_buf_free(&out);
}
