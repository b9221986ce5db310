/* The table of routes: for each path the function that answers it, the dialect, and the accounts that may ask. */
#include <string.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/json_reader.h"
#include "base/json_write.h"
#include "files/limits.h"
#include "http/limits.h"
#include "hub/limits.h"
#include "server/inside.h"
#include "server/limits.h"
#include "server/routes/web.h"

/* Whether the account (NULL: the server has no keys) may use a route; false: *why. */
typedef bool permit(const mt_server *server, const mt_account *account, mt_failure *why);

typedef struct entry {
    mt_http_method method;
    const char *pattern;
    const mt_dialect *dialect; /* reads and writes the body, and writes errors; NULL: no body, and OpenAI's errors */
    const mt_dialect *plain;   /* instead of dialect, where the query has no "alt=sse"; NULL: dialect */
    /* What answers, in one of four ways; a handler may fall back to tell and text. All NULL: the engine. */
    const mt_task *task;      /* a preparation thread */
    mt_teller *tell;          /* the io thread, at once: writes the body of a 200, or says why not */
    const char *text;         /* the io thread, with this; behind tell, where that is true */
    mt_http_handler *handler; /* the io thread; owns the request and answers it as it likes */
    const char *type;         /* content type of tell and text; NULL: JSON; NO_TYPE: none */
    permit *may;              /* NULL: all accounts */
    size_t body_bytes;        /* limit of the body; 0: the server's */
    unsigned flags;           /* MT_HTTP_... of http.h */
    bool page;                /* left out with --web off */
    /* Instead of dialect, the one whose field the body has; NULL: dialect, as where it has none of them */
    const struct by_field *fields;
} entry;

/* A dialect, and the field of a body that shows it. A list ends with NULL. */
struct by_field {
    const char *field;
    const mt_dialect *dialect;
};

/* SageMaker has one path for all. */
static const struct by_field invoked[] = {{"messages", &mt_openai_chat},
                                          {"prompt", &mt_openai_completions},
                                          {"input", &mt_openai_embeddings},
                                          {"queries", &mt_score},
                                          {"text_1", &mt_score},
                                          {"data_1", &mt_score},
                                          {"query", &mt_rerank},
                                          {NULL, NULL}};
/* Encoders score texts, and models that write text score the tokens that may follow. */
static const struct by_field scores[] = {{"label_token_ids", &mt_sglang_score}, {NULL, NULL}};

#define NO_TYPE ""

/* Whether the server can answer, as vLLM's clients ask it: not while a model is loaded at the start, while it shuts
   down, or after the device has failed. */
static bool tell_ping(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    (void)request, (void)out;
    if (server->signals) /* to end */
        return mt_failure_set(why, 503, "draining", NULL, "the server is shutting down: ask another");
    if (!server->ready)
        return mt_failure_set(why, 503, "loading", NULL, "the model is being loaded: try again in a moment");
    return !mt_fleet_lost(&server->fleet) ||
           mt_failure_set(why, 503, "device_lost", NULL,
                          "the device has failed and could not be reopened: ask another");
}

/* The same for balancers, which may send clients once it is true: where there is one model, not before the prompts of
   --warm-prompts are computed. */
static bool tell_ready(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    return tell_ping(server, request, out, why) &&
           (!mt_warm_pending(server) ||
            mt_failure_set(why, 503, "warming", NULL,
                           "the prompts of --warm-prompts are computed: try again in a moment"));
}

static bool tell_status(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    (void)why;
    mt_status_write(server, request->who, out);
    return true;
}

/* Cancels the request of that id, or all that the client has named so (x-request-id). */
static bool cancel_request(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    const mt_account *account = mt_account_scope(request->who);
    const char *id = request->params[0];
    const mt_call *found = NULL;

    for (mt_call *call = server->calls; call; call = call->next) {
        const bool meant = strcmp(call->id, id) == 0 || strcmp(call->name, id) == 0;

        if (!meant || mt_call_is_over(call) || (account && call->account != account))
            continue;
        mt_call_cancel(call);
        found = call;
    }
    if (!found)
        return mt_failure_set(why, 404, "request_not_found", NULL,
                              "no request \"%.60s\" is waiting or running: see /v1/status", id);
    mt_json_write(out, "{'id':%s,'object':'request','cancelled':true}", found->id);
    return true;
}

/* Answers by route->tell and route->text. */
static void tell(void *user, mt_http_server *http, mt_http_request *request)
{
    const entry *route = request->route->about;
    const char *type = route->type ? route->type : "application/json";
    const mt_http_response response = {.status = 200, .type = *type ? type : NULL};
    mt_failure why;
    mt_buf body = {.limit = MT_LIMIT_RESPONSE_BYTES};

    if (route->tell && !route->tell(user, request, &body, &why))
        mt_server_fail(user, request->handle, route->dialect, &why);
    else {
        mt_buf_puts(&body, route->text ? route->text : "");
        mt_http_answer(http, request->handle, &response, body.len ? body.data : "", body.len);
    }
    mt_buf_free(&body);
    mt_http_request_free(request);
}

/* Browsers get the chat page; programs get the text of the route. */
static void get_root(void *user, mt_http_server *http, mt_http_request *request)
{
    (mt_web_wanted(user, request) ? mt_web_get : tell)(user, http, request);
}

/* The dialect whose field is the first of such in the body, or NULL. Only the beginning of a large body is read, since
   this is done on the io thread. */
static const mt_dialect *dialect_by_field(const struct by_field *known, const mt_http_request *request)
{
    const mt_dialect *found = NULL;
    mt_json_reader r;

    if (request->coding != MT_HTTP_PLAIN)
        return NULL;
    mt_json_reader_init(&r, request->body, MT_MIN(request->body_len, MT_LIMIT_SMALL_BODY));
    if (mt_json_next(&r) == MT_JSON_OBJECT_BEGIN)
        while (!found && mt_json_next(&r) == MT_JSON_KEY) {
            for (size_t i = 0; known[i].field; i++)
                if (r.len == strlen(known[i].field) && memcmp(r.str, known[i].field, r.len) == 0)
                    found = known[i].dialect;
            if (!found && !mt_json_skip(&r))
                break;
        }
    mt_json_reader_free(&r);
    return found;
}

/* Google's clients say in the query whether they want a stream of events. */
static const mt_dialect *dialect_of(const entry *route, const mt_http_request *request)
{
    const mt_dialect *found = route->fields ? dialect_by_field(route->fields, request) : NULL;
    char *alt = route->plain ? mt_http_request_query(request, "alt") : NULL;
    const bool events = alt && strcmp(alt, "sse") == 0;

    mt_free(alt);
    if (found)
        return found;
    return route->plain && !events ? route->plain : route->dialect;
}

/* The http server's handler of all routes. */
static void serve(void *user, mt_http_server *http, mt_http_request *request)
{
    const entry *route = request->route->about;
    mt_failure why;

    if (route->may && !route->may(user, request->who, &why)) {
        mt_server_fail(user, request->handle, route->dialect, &why);
        mt_http_request_free(request);
    } else if (route->handler) {
        route->handler(user, http, request);
    } else if (route->tell || route->text) {
        tell(user, http, request);
    } else {
        mt_call_start(user, request, dialect_of(route, request), route->task);
    }
}

/* Routes for health checks: without a key, at any time, and not counted among the answers. */
#define PROBE (MT_HTTP_PUBLIC | MT_HTTP_ALWAYS | MT_HTTP_PROBE | MT_HTTP_NAMELESS)
#define OK "{\"status\":\"ok\"}"

/* Ollama's clients look for the words, and refuse versions of Ollama that are too old for them. */
#define RUNNING "{\"status\":\"ok\",\"message\":\"Ollama is running\"}"
#define OLLAMA "0.32.0"

/* Gemini's API. A model's name may have slashes in it. */
#define GEMINI (MT_SERVER_MODEL | MT_HTTP_QUERY_KEY)
#define GEMINI_ROUTES(version)                                                                                   \
    {MT_HTTP_POST, version "/models/{model*}:generateContent", .dialect = &mt_gemini_generate, .flags = GEMINI}, \
        {MT_HTTP_POST, version "/models/{model*}:streamGenerateContent", .dialect = &mt_gemini_stream,           \
         .plain = &mt_gemini_list, .flags = GEMINI},                                                             \
        {MT_HTTP_POST, version "/models/{model*}:countTokens", .dialect = &mt_gemini_count, .flags = GEMINI},    \
        {MT_HTTP_POST, version "/models/{model*}:embedContent", .dialect = &mt_gemini_embed, .flags = GEMINI},   \
    {                                                                                                            \
        MT_HTTP_POST, version "/models/{model*}:batchEmbedContents", .dialect = &mt_gemini_embed_batch,          \
                                                                     .flags = GEMINI                             \
    }
#define GEMINI_LISTS(version)                                                                             \
    {MT_HTTP_GET, version "/models", .dialect = &mt_gemini_generate, .tell = mt_gemini_models,            \
     .flags = MT_HTTP_QUERY_KEY},                                                                         \
    {                                                                                                     \
        MT_HTTP_GET, version "/models/{model*}", .dialect = &mt_gemini_generate, .tell = mt_gemini_model, \
                                                 .flags = MT_HTTP_QUERY_KEY                               \
    }

/* WebSockets of LM Studio's SDKs, one for each part of their API. The first message holds the client's key; its size is
   limited as that of a small body. */
#define LMSTUDIO_SOCKET(path)                                                                \
    {                                                                                        \
        MT_HTTP_GET, path, .dialect = &mt_lmstudio_call, .handler = mt_lmstudio_message,     \
                           .body_bytes = MT_LIMIT_GREETING_BYTES,                            \
                           .flags = MT_HTTP_SOCKET | MT_HTTP_SOCKET_MANY | MT_SERVER_GREETED \
    }

static const entry routes[] = {
    {MT_HTTP_POST, "/v1/chat/completions", .dialect = &mt_openai_chat},
    {MT_HTTP_POST, "/v1/chat/completions/batch", .dialect = &mt_openai_chat_batch}, /* vLLM's */
    {MT_HTTP_POST, "/chat/completions", .dialect = &mt_openai_chat},                /* as llama.cpp has it, too */
    {MT_HTTP_POST, "/invocations", .dialect = &mt_openai_chat, .fields = invoked},  /* as SageMaker calls a container */
    {MT_HTTP_POST, "/v1/completions", .dialect = &mt_openai_completions},
    {MT_HTTP_POST, "/completion", .dialect = &mt_llama_completion},
    {MT_HTTP_POST, "/completions", .dialect = &mt_llama_completion},
    {MT_HTTP_POST, "/infill", .dialect = &mt_llama_infill},
    {MT_HTTP_POST, "/v1/embeddings", .dialect = &mt_openai_embeddings},
    {MT_HTTP_POST, "/v2/embed", .dialect = &mt_cohere_embed},
    {MT_HTTP_POST, "/pooling", .dialect = &mt_pooling},
    {MT_HTTP_POST, "/classify", .dialect = &mt_classify},
    {MT_HTTP_POST, "/score", .dialect = &mt_score, .fields = scores},
    {MT_HTTP_POST, "/v1/score", .dialect = &mt_score, .fields = scores},
    {MT_HTTP_POST, "/generative_scoring", .dialect = &mt_vllm_score} /* vLLM's */,
    {MT_HTTP_POST, "/rerank", .dialect = &mt_rerank},
    {MT_HTTP_POST, "/v1/rerank", .dialect = &mt_rerank_v1},
    {MT_HTTP_POST, "/v2/rerank", .dialect = &mt_rerank_v2},
    {MT_HTTP_POST, "/v1/responses", .dialect = &mt_openai_responses},
    {MT_HTTP_POST, "/responses", .dialect = &mt_openai_responses},
    {MT_HTTP_GET, "/v1/responses", .dialect = &mt_responses_socket, .flags = MT_HTTP_SOCKET},
    {MT_HTTP_GET, "/responses", .dialect = &mt_responses_socket, .flags = MT_HTTP_SOCKET},
    {MT_HTTP_POST, "/v1/responses/compact", .dialect = &mt_responses_compact},
    {MT_HTTP_POST, "/responses/compact", .dialect = &mt_responses_compact},
    {MT_HTTP_POST, "/v1/responses/input_tokens", .dialect = &mt_responses_input_tokens},
    {MT_HTTP_GET, "/v1/responses/{id}", .handler = mt_stored_get},
    {MT_HTTP_DELETE, "/v1/responses/{id}", .handler = mt_stored_delete},
    {MT_HTTP_GET, "/v1/responses/{id}/input_items", .handler = mt_stored_items},
    {MT_HTTP_POST, "/v1/responses/{id}/cancel", .handler = mt_stored_cancel},
    {MT_HTTP_POST, "/v1/uploads/pictures", .handler = mt_upload_put, .body_bytes = MT_LIMIT_MEDIA_BYTES},
    {MT_HTTP_GET, "/v1/uploads/pictures/{id}", .tell = mt_upload_get},
    {MT_HTTP_DELETE, "/v1/uploads/pictures/{id}", .tell = mt_upload_delete},
    {MT_HTTP_POST, "/v1/files", .handler = mt_files_put, .flags = MT_HTTP_STREAMED | MT_HTTP_REQUEST_ID,
     .body_bytes = MT_LIMIT_FILE_BYTES + MT_LIMIT_FORM_EXTRA},
    {MT_HTTP_GET, "/v1/files", .handler = mt_files_list_get, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_GET, "/v1/files/{id}", .handler = mt_files_get, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_GET, "/v1/files/{id}/content", .handler = mt_files_content, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_DELETE, "/v1/files/{id}", .handler = mt_files_delete, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_POST, "/v1/batches", .task = &mt_task_batch_create, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_GET, "/v1/batches", .handler = mt_batches_listed, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_GET, "/v1/batches/{id}", .handler = mt_batches_get, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_POST, "/v1/batches/{id}/cancel", .handler = mt_batches_cancelled, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_POST, "/v1/messages/batches", .dialect = &mt_anthropic_messages, .task = &mt_task_batch_create_list,
     .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_GET, "/v1/messages/batches", .dialect = &mt_anthropic_messages, .handler = mt_batches_listed,
     .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_GET, "/v1/messages/batches/{id}", .dialect = &mt_anthropic_messages, .handler = mt_batches_get,
     .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_GET, "/v1/messages/batches/{id}/results", .dialect = &mt_anthropic_messages, .handler = mt_batches_content,
     .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_POST, "/v1/messages/batches/{id}/cancel", .dialect = &mt_anthropic_messages,
     .handler = mt_batches_cancelled, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_DELETE, "/v1/messages/batches/{id}", .dialect = &mt_anthropic_messages, .handler = mt_batches_deleted,
     .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_POST, "/v1/messages", .dialect = &mt_anthropic_messages, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_POST, "/v1/messages/count_tokens", .dialect = &mt_anthropic_count_tokens, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_POST, "/generate", .dialect = &mt_sglang_generate},
    {MT_HTTP_POST, "/api/chat", .dialect = &mt_ollama_chat},
    {MT_HTTP_POST, "/api/generate", .dialect = &mt_ollama_generate},
    {MT_HTTP_POST, "/api/embed", .dialect = &mt_ollama_embed},
    {MT_HTTP_POST, "/api/embeddings", .dialect = &mt_ollama_embeddings},
    {MT_HTTP_POST, "/api/show", .dialect = &mt_ollama_chat, .task = &mt_task_show},
    {MT_HTTP_GET, "/api/tags", .dialect = &mt_ollama_chat, .task = &mt_task_tags},
    {MT_HTTP_GET, "/api/ps", .dialect = &mt_ollama_chat, .task = &mt_task_ps},
    {MT_HTTP_POST, "/api/pull", .dialect = &mt_ollama_chat, .handler = mt_ollama_pull, .may = mt_ollama_may,
     .body_bytes = MT_LIMIT_PULL_BODY},
    {MT_HTTP_POST, "/api/create", .dialect = &mt_ollama_chat, .task = &mt_task_create, .may = mt_ollama_may,
     .body_bytes = MT_LIMIT_CREATED_BYTES},
    {MT_HTTP_POST, "/api/copy", .dialect = &mt_ollama_chat, .task = &mt_task_copy, .may = mt_ollama_may,
     .body_bytes = MT_LIMIT_PULL_BODY},
    {MT_HTTP_HEAD, "/api/blobs/{digest}", .dialect = &mt_ollama_chat, .task = &mt_task_blob, .may = mt_ollama_may},
    {MT_HTTP_POST, "/api/blobs/{digest}", .dialect = &mt_ollama_chat, .handler = mt_blobs_put, .may = mt_ollama_may,
     .flags = MT_HTTP_STREAMED, .body_bytes = MT_LIMIT_UPLOAD_BYTES},
    {MT_HTTP_POST, "/api/push", .dialect = &mt_ollama_chat, .tell = mt_others_push},
    {MT_HTTP_DELETE, "/api/delete", .dialect = &mt_ollama_chat, .task = &mt_task_delete, .may = mt_ollama_may},
    {MT_HTTP_GET, "/api/version", .dialect = &mt_ollama_chat,
     .text = "{\"version\":\"" OLLAMA "\",\"motet\":\"" MT_VERSION "\"}"},
    {MT_HTTP_POST, "/api/v0/chat/completions", .dialect = &mt_lmstudio_chat},
    {MT_HTTP_POST, "/api/v0/completions", .dialect = &mt_lmstudio_completions},
    {MT_HTTP_POST, "/api/v0/embeddings", .dialect = &mt_openai_embeddings},
    {MT_HTTP_GET, "/api/v0/models", .dialect = &mt_lmstudio_chat, .task = &mt_task_lmstudio_models},
    {MT_HTTP_GET, "/api/v0/models/{id*}", .dialect = &mt_lmstudio_chat, .task = &mt_task_lmstudio_model},
    {MT_HTTP_GET, "/lmstudio-greeting", .text = "{\"lmstudio\":true}", .flags = MT_HTTP_PUBLIC},
    LMSTUDIO_SOCKET("/llm"),
    LMSTUDIO_SOCKET("/embedding"),
    LMSTUDIO_SOCKET("/system"),
    LMSTUDIO_SOCKET("/files"),
    LMSTUDIO_SOCKET("/diagnostics"),
    LMSTUDIO_SOCKET("/repository"),
    LMSTUDIO_SOCKET("/plugins"),
    LMSTUDIO_SOCKET("/runtime"),
    {MT_HTTP_GET, "/props", .task = &mt_task_props},
    {MT_HTTP_GET, "/slots", .task = &mt_task_slots},
    {MT_HTTP_GET, "/tokenizer_info", .task = &mt_task_tokenizer_info},
    {MT_HTTP_GET, "/version", .text = "{\"version\":\"" MT_VERSION "\"}"},
    {MT_HTTP_GET, "/load", .tell = mt_others_load, .flags = MT_HTTP_ALWAYS},
    /* vLLM's engines can sleep; ours cannot */
    {MT_HTTP_GET, "/is_sleeping", .text = "{\"is_sleeping\":false}", .flags = MT_HTTP_ALWAYS},
    {MT_HTTP_GET, "/ping", .tell = tell_ping, .type = NO_TYPE, .flags = PROBE},
    {MT_HTTP_POST, "/ping", .tell = tell_ping, .type = NO_TYPE, .flags = PROBE},
    {MT_HTTP_GET, "/v1/models", .tell = mt_models_list, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_GET, "/models", .tell = mt_models_list, .flags = MT_HTTP_REQUEST_ID},
    {MT_HTTP_GET, "/v1/models/{id*}", .tell = mt_models_get, .flags = MT_HTTP_REQUEST_ID},
    GEMINI_ROUTES("/v1beta"),
    GEMINI_ROUTES("/v1"),
    GEMINI_ROUTES("/v1alpha"),
    GEMINI_LISTS("/v1beta"),
    GEMINI_LISTS("/v1alpha"),
    {MT_HTTP_POST, "/v1/models/unload", .tell = mt_models_unload, .may = mt_models_may},
    {MT_HTTP_POST, "/models/unload", .tell = mt_models_unload, .may = mt_models_may},
    {MT_HTTP_GET, "/v1/cache/stats", .tell = mt_cache_tell}, /* as vllm-mlx and mlx-vlm have it */
    {MT_HTTP_GET, "/cache/stats", .tell = mt_cache_tell},
    {MT_HTTP_POST, "/v1/cache/reset", .task = &mt_task_cache_reset, .may = mt_cache_may}, /* mlx-vlm's */
    {MT_HTTP_POST, "/cache/reset", .task = &mt_task_cache_reset, .may = mt_cache_may},
    {MT_HTTP_DELETE, "/v1/cache", .task = &mt_task_cache_reset, .may = mt_cache_may}, /* vllm-mlx's */
    {MT_HTTP_DELETE, "/v1/cache/prefix", .task = &mt_task_cache_reset, .may = mt_cache_may},
    {MT_HTTP_POST, "/reset_prefix_cache", .task = &mt_task_cache_reset, .may = mt_cache_may}, /* vLLM's */
    {MT_HTTP_POST, "/flush_cache", .task = &mt_task_cache_reset, .may = mt_cache_may},        /* SGLang's */
    {MT_HTTP_GET, "/v1/status", .tell = tell_status, .flags = MT_HTTP_ALWAYS},
    {MT_HTTP_DELETE, "/v1/requests/{id}", .tell = cancel_request},
    {MT_HTTP_POST, "/v1/requests/{id}/cancel", .tell = cancel_request},
    {MT_HTTP_POST, "/tokenize", .task = &mt_task_tokenize},
    {MT_HTTP_POST, "/v1/chat/completions/render", .task = &mt_task_render_chat},
    {MT_HTTP_POST, "/v1/completions/render", .task = &mt_task_render},
    {MT_HTTP_POST, "/detokenize", .task = &mt_task_detokenize},
    {MT_HTTP_POST, "/apply-template", .task = &mt_task_apply_template},
    {MT_HTTP_GET, "/metrics", .tell = mt_metrics_tell, .type = "text/plain; version=0.0.4; charset=utf-8",
     .flags = MT_HTTP_ALWAYS | MT_HTTP_NAMELESS},
    {MT_HTTP_GET, "/", .handler = get_root, .text = RUNNING, .flags = MT_HTTP_PUBLIC | MT_HTTP_ALWAYS},
    {MT_HTTP_GET, "/dashboard", .handler = mt_web_get, .page = true, .flags = MT_HTTP_PUBLIC},
    {MT_HTTP_GET, "/dashboard/events", .handler = mt_dashboard_get, .page = true},
    {MT_HTTP_GET, "/web/limits", .tell = mt_web_limits, .page = true},
    {MT_HTTP_GET, "/assets/{path*}", .handler = mt_web_get, .page = true, .flags = MT_HTTP_PUBLIC},
    {MT_HTTP_GET, "/health", .tell = tell_ping, .text = OK, .flags = PROBE},
    {MT_HTTP_GET, "/v1/health", .tell = tell_ping, .text = OK, .flags = PROBE},
    {MT_HTTP_GET, "/ready", .tell = tell_ready, .text = OK, .flags = PROBE},
    {MT_HTTP_GET, "/live", .text = OK, .flags = PROBE},
    {MT_HTTP_GET, "/health_generate", .tell = tell_ping, .text = OK, .flags = PROBE}, /* SGLang's */
};

/* Whether a pattern ends with how its parameter has to end, "}:verb", and the path does so, too. */
static bool ends_alike(const char *path, const char *pattern)
{
    const char *verb = strrchr(pattern, ':');
    const size_t len = verb ? strlen(verb) : 0, all = strlen(path);

    return len > 0 && all >= len && strcmp(path + all - len, verb) == 0;
}

/* How many path segments a path and a route's pattern have in common at their beginnings. */
static size_t alike(const char *path, const char *pattern)
{
    size_t count = 0;

    for (; *path && *path == *pattern; path++, pattern++)
        count += *path == '/';
    /* a last segment that is equal only in part does not count */
    return (*path == '\0' || *path == '/') && (*pattern == '\0' || *pattern == '/') ? count : count - (count > 0);
}

const mt_dialect *mt_server_dialect(const char *path, const mt_http_request *request)
{
    const mt_dialect *nearest = NULL;
    size_t most = 0;

    for (size_t i = 0; path && i < MT_COUNT(routes); i++) {
        if (routes[i].flags & MT_SERVER_GREETED) /* not of what is asked by HTTP */
            continue;
        const size_t count = alike(path, routes[i].pattern) + ends_alike(path, routes[i].pattern);

        if (count > most) {
            nearest = routes[i].dialect;
            most = count;
        }
    }
    if (nearest)
        return nearest;
    return request ? mt_server_dialect_spoken(request) : &mt_openai_chat;
}

const mt_dialect *mt_server_dialect_of(const mt_http_route *route)
{
    return ((const entry *)route->about)->dialect;
}

/* Whether all calls of a dialect want text. Those that count tokens, want vectors, or may only load a model, need no
   place in the queue for text. */
static bool writes(const mt_dialect *d)
{
    return !d->count && !d->vectors && !d->nothing;
}

mt_http_route *mt_server_routes(mt_server *server, size_t *count)
{
    mt_http_route *made = mt_alloc_array(MT_COUNT(routes), sizeof(*made));

    *count = 0;
    for (size_t i = 0; i < MT_COUNT(routes); i++) {
        const entry *r = &routes[i];
        /* For work on what its body has */
        const bool asks =
            (r->method == MT_HTTP_POST || (r->flags & MT_HTTP_SOCKET)) && !r->handler && !r->tell && !r->text;
        const bool text = asks && !r->task && writes(r->dialect);

        if (r->page && server->opt->web != MT_WEB_ON)
            continue;
        made[(*count)++] =
            (mt_http_route){.method = r->method,
                            .pattern = r->pattern,
                            .handler = serve,
                            .user = server,
                            .about = r,
                            .flags = r->flags | (asks ? MT_SERVER_METERED : 0) | (text ? MT_SERVER_WRITES : 0),
                            .body_bytes = r->body_bytes};
    }
    return made;
}
