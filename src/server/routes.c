/* The routes, and the answers that need nothing but what the io thread knows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "server/inside.h"
#include "server/web.h"

static bool answer(mt_server *server, mt_http_handle handle, int status, const char *type, const mt_buf *body)
{
    const mt_http_response response = {.status = status, .type = type};

    return mt_http_answer(server->http, handle, &response, body->len ? body->data : "", body->len);
}

bool mt_server_json(mt_server *server, mt_http_handle handle, const mt_buf *body)
{
    return answer(server, handle, 200, "application/json", body);
}

bool mt_server_fail(mt_server *server, mt_http_handle handle, const mt_dialect *dialect, const mt_failure *why)
{
    char seconds[16];
    /* Clients that are told to allow more time must not try the same again by themselves. */
    const mt_http_header later = {"retry-after", seconds}, never = {"x-should-retry", "false"};
    const mt_http_response response = {.status = why->status,
                                       .type = "application/json",
                                       .headers = why->status == 504 ? &never : &later,
                                       .header_count = why->status == 429 || why->status == 503 || why->status == 504};
    mt_buf body;
    bool ok;

    snprintf(seconds, sizeof(seconds), "%d", why->retry_after ? why->retry_after : 1);
    mt_buf_init(&body, 8 * (size_t)MT_LIMIT_ERROR_TEXT);
    (dialect ? dialect->error : mt_failure_write)(&body, why);
    ok = mt_http_answer(server->http, handle, &response, body.data, body.len);
    mt_buf_free(&body);
    return ok;
}

/* What a route to the model asks for: an answer in a dialect, or a task. */
typedef struct asked {
    const mt_dialect *dialect;
    mt_task *task;
} asked;

static void post(void *user, mt_http_server *http, mt_http_request *request)
{
    const asked *what = request->route->about;

    (void)http;
    mt_call_start(user, request, what->dialect, what->task);
}

static void say(mt_server *server, mt_http_request *request, const char *text)
{
    mt_buf body;

    mt_buf_init(&body, 256);
    mt_buf_puts(&body, text);
    mt_server_json(server, request->handle, &body);
    mt_buf_free(&body);
    mt_http_request_free(request);
}

static void get_live(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    say(user, request, "{\"status\":\"ok\"}");
}

/* vLLM's engines may sleep; ours never does. */
static void get_sleeping(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    say(user, request, "{\"is_sleeping\":false}");
}

/* Probes are told that we live, in words that Ollama's clients look for; people are shown the chat. */
static void get_root(void *user, mt_http_server *http, mt_http_request *request)
{
    if (mt_web_wanted(user, request))
        mt_web_get(user, http, request);
    else
        say(user, request, "{\"status\":\"ok\",\"message\":\"Ollama is running\"}");
}

/* Whether the server answers: not while a model loads, nor while it ends, nor without what computes. */
static void tell_health(mt_server *server, mt_http_request *request, mt_http_handler *healthy)
{
    mt_failure why;

    if (server->signals)
        mt_failure_set(&why, 503, "draining", NULL, "the server is shutting down: ask another");
    else if (!server->ready)
        mt_failure_set(&why, 503, "loading", NULL, "the model is being loaded: try again in a moment");
    else if (mt_fleet_lost(&server->fleet))
        mt_failure_set(&why, 503, "device_lost", NULL,
                       "the device has failed and could not be opened anew: ask another");
    else {
        healthy(server, server->http, request);
        return;
    }
    mt_server_fail(server, request->handle, NULL, &why);
    mt_http_request_free(request);
}

static void get_health(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    tell_health(user, request, get_live);
}

/* vLLM's way to ask the same. */
static void say_nothing(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)user;
    mt_http_answer(http, request->handle, &(mt_http_response){.status = 200}, "", 0);
    mt_http_request_free(request);
}

static void get_ping(void *user, mt_http_server *http, mt_http_request *request)
{
    (void)http;
    tell_health(user, request, say_nothing);
}

static void get_metrics(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    mt_buf body;

    (void)http;
    mt_buf_init(&body, 1u << 20);
    mt_metrics_write(server, request->who, &body);
    answer(server, request->handle, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
    mt_buf_free(&body);
    mt_http_request_free(request);
}

static void get_status(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    mt_buf body;

    (void)http;
    mt_buf_init(&body, 4u << 20);
    mt_status_write(server, request->who, &body);
    mt_server_json(server, request->handle, &body);
    mt_buf_free(&body);
    mt_http_request_free(request);
}

static void delete_request(void *user, mt_http_server *http, mt_http_request *request)
{
    mt_server *server = user;
    const char *id = request->params[0];
    mt_call *call = mt_call_find(server, mt_account_scope(request->who), id);
    mt_failure why;
    mt_buf body;

    (void)http;
    if (call) {
        mt_call_cancel(call);
        mt_buf_init(&body, 1024);
        mt_buf_printf(&body, "{\"id\":\"%s\",\"object\":\"request\",\"cancelled\":true}", call->id);
        mt_server_json(server, request->handle, &body);
        mt_buf_free(&body);
    } else {
        mt_failure_set(&why, 404, "request_not_found", NULL,
                       "no request \"%.60s\" is waiting or running: see /v1/status", id);
        mt_server_fail(server, request->handle, NULL, &why);
    }
    mt_http_request_free(request);
}

#define ANSWER(spoken)                       \
    .handler = post, .about = &(const asked) \
    {                                        \
        .dialect = &(spoken)                 \
    }
/* A task whose errors look as a dialect's. */
#define TASK_IN(spoken, done)                \
    .handler = post, .about = &(const asked) \
    {                                        \
        .dialect = &(spoken), .task = (done) \
    }
#define TASK(done)                           \
    .handler = post, .about = &(const asked) \
    {                                        \
        .task = (done)                       \
    }
/* How the server is: said to everybody, always, and not counted among answers. */
#define PROBE (MT_HTTP_PUBLIC | MT_HTTP_ALWAYS | MT_HTTP_PROBE)

static const mt_http_route routes[] = {
    {.method = MT_HTTP_POST, .pattern = "/v1/chat/completions", ANSWER(mt_openai_chat)},
    {.method = MT_HTTP_POST, .pattern = "/v1/completions", ANSWER(mt_openai_completions)},
    {.method = MT_HTTP_POST, .pattern = "/v1/embeddings", ANSWER(mt_openai_embeddings)},
    {.method = MT_HTTP_POST, .pattern = "/score", ANSWER(mt_score)},
    {.method = MT_HTTP_POST, .pattern = "/v1/score", ANSWER(mt_score)},
    {.method = MT_HTTP_POST, .pattern = "/rerank", ANSWER(mt_rerank)},
    {.method = MT_HTTP_POST, .pattern = "/v1/rerank", ANSWER(mt_rerank_v1)},
    {.method = MT_HTTP_POST, .pattern = "/v2/rerank", ANSWER(mt_rerank_v2)},
    {.method = MT_HTTP_POST, .pattern = "/v1/responses", ANSWER(mt_openai_responses)},
    {.method = MT_HTTP_POST, .pattern = "/v1/responses/input_tokens", ANSWER(mt_responses_input_tokens)},
    {.method = MT_HTTP_GET, .pattern = "/v1/responses/{id}", .handler = mt_stored_get},
    {.method = MT_HTTP_DELETE, .pattern = "/v1/responses/{id}", .handler = mt_stored_delete},
    {.method = MT_HTTP_GET, .pattern = "/v1/responses/{id}/input_items", .handler = mt_stored_items},
    {.method = MT_HTTP_POST, .pattern = "/v1/responses/{id}/cancel", .handler = mt_stored_cancel},
    {.method = MT_HTTP_POST, .pattern = "/v1/messages", ANSWER(mt_anthropic_messages), .flags = MT_HTTP_REQUEST_ID},
    {.method = MT_HTTP_POST,
     .pattern = "/v1/messages/count_tokens",
     ANSWER(mt_anthropic_count_tokens),
     .flags = MT_HTTP_REQUEST_ID},
    {.method = MT_HTTP_POST, .pattern = "/api/chat", ANSWER(mt_ollama_chat)},
    {.method = MT_HTTP_POST, .pattern = "/api/generate", ANSWER(mt_ollama_generate)},
    {.method = MT_HTTP_POST, .pattern = "/api/embed", ANSWER(mt_ollama_embed)},
    {.method = MT_HTTP_POST, .pattern = "/api/embeddings", ANSWER(mt_ollama_embeddings)},
    {.method = MT_HTTP_POST, .pattern = "/api/show", TASK_IN(mt_ollama_chat, mt_task_show)},
    {.method = MT_HTTP_GET, .pattern = "/api/tags", TASK_IN(mt_ollama_chat, mt_task_tags)},
    {.method = MT_HTTP_GET, .pattern = "/api/ps", TASK_IN(mt_ollama_chat, mt_task_ps)},
    {.method = MT_HTTP_POST, .pattern = "/api/pull", .handler = mt_ollama_pull, .body_bytes = MT_LIMIT_PULL_BODY},
    {.method = MT_HTTP_DELETE, .pattern = "/api/delete", TASK_IN(mt_ollama_chat, mt_task_delete)},
    {.method = MT_HTTP_GET, .pattern = "/api/version", .handler = mt_ollama_version},
    {.method = MT_HTTP_GET, .pattern = "/props", TASK(mt_task_props)},
    {.method = MT_HTTP_GET, .pattern = "/slots", TASK(mt_task_slots)},
    {.method = MT_HTTP_GET, .pattern = "/version", .handler = mt_others_version},
    {.method = MT_HTTP_GET, .pattern = "/load", .handler = mt_others_load, .flags = MT_HTTP_ALWAYS},
    {.method = MT_HTTP_GET, .pattern = "/is_sleeping", .handler = get_sleeping, .flags = MT_HTTP_ALWAYS},
    {.method = MT_HTTP_GET, .pattern = "/ping", .handler = get_ping, .flags = PROBE},
    {.method = MT_HTTP_POST, .pattern = "/ping", .handler = get_ping, .flags = PROBE},
    {.method = MT_HTTP_GET, .pattern = "/v1/models", .handler = mt_models_list, .flags = MT_HTTP_REQUEST_ID},
    {.method = MT_HTTP_GET, .pattern = "/v1/models/{id*}", .handler = mt_models_get, .flags = MT_HTTP_REQUEST_ID},
    {.method = MT_HTTP_POST, .pattern = "/v1/models/unload", .handler = mt_models_unload},
    {.method = MT_HTTP_POST, .pattern = "/models/unload", .handler = mt_models_unload},
    {.method = MT_HTTP_GET, .pattern = "/v1/status", .handler = get_status, .flags = MT_HTTP_ALWAYS},
    {.method = MT_HTTP_DELETE, .pattern = "/v1/requests/{id}", .handler = delete_request},
    {.method = MT_HTTP_POST, .pattern = "/tokenize", TASK(mt_task_tokenize)},
    {.method = MT_HTTP_POST, .pattern = "/v1/chat/completions/render", TASK(mt_task_render_chat)},
    {.method = MT_HTTP_POST, .pattern = "/v1/completions/render", TASK(mt_task_render)},
    {.method = MT_HTTP_POST, .pattern = "/detokenize", TASK(mt_task_detokenize)},
    {.method = MT_HTTP_POST, .pattern = "/apply-template", TASK(mt_task_apply_template)},
    {.method = MT_HTTP_GET, .pattern = "/metrics", .handler = get_metrics, .flags = MT_HTTP_ALWAYS},
    {.method = MT_HTTP_GET, .pattern = "/", .handler = get_root, .flags = MT_HTTP_PUBLIC | MT_HTTP_ALWAYS},
    {.method = MT_HTTP_GET, .pattern = "/dashboard", .handler = mt_web_get, .flags = MT_HTTP_PUBLIC},
    {.method = MT_HTTP_GET, .pattern = "/dashboard/events", .handler = mt_dashboard_get},
    {.method = MT_HTTP_GET, .pattern = "/assets/{path*}", .handler = mt_web_get, .flags = MT_HTTP_PUBLIC},
    {.method = MT_HTTP_GET, .pattern = "/health", .handler = get_health, .flags = PROBE},
    {.method = MT_HTTP_GET, .pattern = "/ready", .handler = get_health, .flags = PROBE},
    {.method = MT_HTTP_GET, .pattern = "/live", .handler = get_live, .flags = PROBE},
};

mt_http_route *mt_server_routes(mt_server *server, size_t *count)
{
    mt_http_route *copy = mt_alloc_array(MT_COUNT(routes), sizeof(*copy));

    *count = 0;
    for (size_t i = 0; i < MT_COUNT(routes); i++) {
        mt_http_route *route = &copy[*count];

        *route = routes[i];
        route->user = server;
        if (route->method == MT_HTTP_POST && route->handler == post)
            route->flags |= MT_SERVER_METERED;
        *count += server->opt->web == MT_WEB_ON || (route->handler != mt_web_get && route->handler != mt_dashboard_get);
    }
    return copy;
}
