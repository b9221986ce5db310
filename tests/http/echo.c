/* A server for tests/http/test_http.py. Settings are NAME=VALUE arguments; "port N" is printed when it listens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "echo.h"

echo_app echo;

long echo_query(const mt_http_request *request, const char *name, long otherwise)
{
    size_t len = strlen(name);

    for (const char *at = request->query; *at; at += strcspn(at, "&"), at += *at == '&')
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return strtol(at + len + 1, NULL, 10);
    return otherwise;
}

static void answer(mt_http_server *server, mt_http_request *request, const char *type, const char *body, size_t len)
{
    mt_http_response response = {.status = 200, .type = type};

    mt_http_answer(server, request->handle, &response, body, len);
    mt_http_request_free(request);
}

static void echo_body(void *user, mt_http_server *server, mt_http_request *request)
{
    (void)user;
    answer(server, request, "application/octet-stream", request->body, request->body_len);
}

/* Streams a message of a WebSocket back, so that each of its lines becomes a message; "count" is answered with how many
   messages the WebSocket has sent. */
static void echo_message(void *user, mt_http_server *server, mt_http_request *request)
{
    mt_http_response response = {.status = 200};
    int *count = request->socket;
    char text[32];

    (void)user;
    ++*count;
    if (strcmp(request->body, "count") == 0) {
        snprintf(text, sizeof(text), "%s %d", mt_http_method_name(request->method), *count);
        mt_http_answer(server, request->handle, &response, text, strlen(text));
    } else {
        mt_http_begin(server, request->handle, &response);
        mt_http_write(server, request->handle, request->body, request->body_len);
        mt_http_end(server, request->handle);
    }
    mt_http_request_free(request);
}

static void *open_socket(void *user)
{
    (void)user;
    atomic_fetch_add(&echo.sockets, 1);
    return calloc(1, sizeof(int));
}

static void close_socket(void *user, void *socket)
{
    (void)user;
    atomic_fetch_sub(&echo.sockets, 1);
    free(socket);
}

/* What the server understood of a request, a line each. */
static void echo_show(void *user, mt_http_server *server, mt_http_request *request)
{
    mt_buf text;

    (void)user;
    mt_buf_init(&text, 1 << 20);
    mt_buf_printf(&text, "%s %s\nquery %s\npeer %s\nclient %s\n", mt_http_method_name(request->method), request->path,
                  request->query, request->peer, request->client);
    for (size_t i = 0; i < request->param_count; i++)
        mt_buf_printf(&text, "param %s\n", request->params[i]);
    for (size_t i = 0; i < request->header_count; i++)
        mt_buf_printf(&text, "%s: %s\n", request->headers[i].name, request->headers[i].value);
    answer(server, request, "text/plain", text.data, text.len);
    mt_buf_free(&text);
}

static void echo_large(void *user, mt_http_server *server, mt_http_request *request)
{
    size_t len = (size_t)echo_query(request, "bytes", 1000);
    char *body = malloc(len + 1);

    (void)user;
    memset(body, 'z', len);
    answer(server, request, "text/plain", body, len);
    free(body);
}

/* A value that quotes the client can end no header. */
static void echo_header(void *user, mt_http_server *server, mt_http_request *request)
{
    mt_http_header header = {"x-quoted", "a\r\nx-forged: b"};
    mt_http_response response = {.status = 204, .headers = &header, .header_count = 1};

    (void)user;
    mt_http_answer(server, request->handle, &response, NULL, 0);
    mt_http_request_free(request);
}

static void echo_abort(void *user, mt_http_server *server, mt_http_request *request)
{
    mt_http_response response = {.status = 200, .type = "text/plain"};

    (void)user;
    mt_http_begin(server, request->handle, &response);
    mt_http_write(server, request->handle, "half", 4);
    mt_http_abort(server, request->handle);
    mt_http_request_free(request);
}

static void echo_fail(void *user, mt_http_server *server, mt_http_request *request)
{
    (void)user;
    mt_http_fail(server, request->handle, request->path, 422, "said \"no\"");
    mt_http_request_free(request);
}

static void echo_drain(void *user, mt_http_server *server, mt_http_request *request)
{
    (void)user;
    mt_http_server_drain(server, (int)echo_query(request, "ms", 10000));
    answer(server, request, "text/plain", "draining", 8);
}

static void echo_stats(void *user, mt_http_server *server, mt_http_request *request)
{
    mt_http_stats s;
    mt_buf text;

    (void)user;
    mt_http_server_stats(server, &s);
    mt_buf_init(&text, 4096);
    mt_buf_printf(&text,
                  "{\"live\": %d, \"sockets\": %d, \"app_gone\": %d, \"pauses\": %d, \"open\": %d, \"accepted\": %d, "
                  "\"refused\": %d, \"yielded\": %d, "
                  "\"exchanges\": %d, \"ok\": %d, \"bad\": %d, \"in\": %d, \"out\": %d, \"bodies\": %d, \"slow\": %d, "
                  "\"timed_out\": %d, \"gone\": %d}",
                  atomic_load(&echo.live), atomic_load(&echo.sockets), atomic_load(&echo.gone),
                  atomic_load(&echo.pauses), (int)s.connections_open, (int)s.connections_accepted,
                  (int)s.connections_refused, (int)s.connections_yielded, (int)s.exchanges_open, (int)s.answers[2],
                  (int)s.answers[4], (int)s.bytes_in, (int)s.bytes_out, (int)s.body_bytes, (int)s.dropped_slow,
                  (int)s.dropped_timed_out, (int)s.gone);
    answer(server, request, "application/json", text.data, text.len);
    mt_buf_free(&text);
}

static mt_http_handle many[100];
static size_t many_count;

static void many_gone(void *user)
{
    (void)user;
    atomic_fetch_add(&echo.gone, 1);
}

/* Of a WebSocket that answers many messages at once. "hold" is answered by the route below, "error" by an error that
   says what it is about; anything else is sent back at once. */
static void echo_many(void *user, mt_http_server *server, mt_http_request *request)
{
    static const mt_http_follower follower = {.gone = many_gone};

    (void)user;
    if (strcmp(request->body, "hold") == 0) {
        mt_http_follow(server, request->handle, &follower, NULL);
        many[many_count++] = request->handle;
        mt_http_request_free(request);
    } else if (strcmp(request->body, "error") == 0) {
        mt_http_errors_begin(server, request->handle, "{\"id\":1,\"error\":");
        echo_fail(user, server, request);
    } else
        answer(server, request, NULL, request->body, request->body_len);
}

/* Answers all that is held, the latest first, with two lines each; every other in pieces. */
static void echo_many_answer(void *user, mt_http_server *server, mt_http_request *request)
{
    const mt_http_response response = {.status = 200};
    char lines[40];

    (void)user;
    for (size_t i = many_count; i-- > 0;) {
        const int len = snprintf(lines, sizeof(lines), "held %zu\nmore\n", i);

        if (i % 2 == 0) {
            mt_http_answer(server, many[i], &response, lines, (size_t)len);
        } else if (mt_http_begin(server, many[i], &response)) {
            mt_http_write(server, many[i], lines, (size_t)len - 5);
            mt_http_write(server, many[i], "more\n", 5);
            mt_http_end(server, many[i]);
        }
    }
    many_count = 0;
    answer(server, request, "text/plain", "answered", 8);
}

const mt_http_route echo_routes[] = {
    {.method = MT_HTTP_GET, .pattern = "/show", .handler = echo_show},
    {.method = MT_HTTP_POST, .pattern = "/show", .handler = echo_show},
    {.method = MT_HTTP_GET, .pattern = "/show/{id}", .handler = echo_show},
    {.method = MT_HTTP_GET, .pattern = "/rest/{path*}", .handler = echo_show},
    {.method = MT_HTTP_POST, .pattern = "/echo", .handler = echo_body},
    {.method = MT_HTTP_POST, .pattern = "/ten", .handler = echo_body, .body_bytes = 10},
    {.method = MT_HTTP_GET, .pattern = "/large", .handler = echo_large},
    {.method = MT_HTTP_GET, .pattern = "/header", .handler = echo_header},
    {.method = MT_HTTP_GET, .pattern = "/abort", .handler = echo_abort},
    {.method = MT_HTTP_GET, .pattern = "/fail", .handler = echo_fail},
    {.method = MT_HTTP_GET, .pattern = "/stream", .handler = echo_stream},
    {.method = MT_HTTP_GET, .pattern = "/flood", .handler = echo_flood},
    {.method = MT_HTTP_GET, .pattern = "/wait", .handler = echo_wait},
    {.method = MT_HTTP_POST, .pattern = "/wait", .handler = echo_wait},
    {.method = MT_HTTP_GET, .pattern = "/late", .handler = echo_late},
    {.method = MT_HTTP_GET, .pattern = "/held", .handler = echo_held},
    {.method = MT_HTTP_GET, .pattern = "/release", .handler = echo_release},
    {.method = MT_HTTP_GET, .pattern = "/socket", .handler = echo_message, .flags = MT_HTTP_SOCKET},
    {.method = MT_HTTP_GET,
     .pattern = "/socket/many",
     .handler = echo_many,
     .flags = MT_HTTP_SOCKET | MT_HTTP_SOCKET_MANY},
    {.method = MT_HTTP_GET, .pattern = "/many", .handler = echo_many_answer},
    {.method = MT_HTTP_GET, .pattern = "/socket/ten", .handler = echo_body, .flags = MT_HTTP_SOCKET, .body_bytes = 10},
    {.method = MT_HTTP_GET, .pattern = "/socket/wait", .handler = echo_wait, .flags = MT_HTTP_SOCKET},
    {.method = MT_HTTP_GET, .pattern = "/socket/flood", .handler = echo_flood, .flags = MT_HTTP_SOCKET},
    {.method = MT_HTTP_GET, .pattern = "/socket/abort", .handler = echo_abort, .flags = MT_HTTP_SOCKET},
    {.method = MT_HTTP_GET, .pattern = "/socket/fail", .handler = echo_fail, .flags = MT_HTTP_SOCKET},
    {.method = MT_HTTP_POST, .pattern = "/drain", .handler = echo_drain, .flags = MT_HTTP_ALWAYS},
    {.method = MT_HTTP_GET, .pattern = "/stats", .handler = echo_stats, .flags = MT_HTTP_PUBLIC | MT_HTTP_ALWAYS},
};
const size_t echo_route_count = MT_COUNT(echo_routes);

static bool admit(void *user, mt_http_request *request, mt_http_refusal *refusal)
{
    const echo_app *app = user;
    const char *key = mt_http_request_key(request);

    if (!app->key || (key && strcmp(key, app->key) == 0))
        return true;
    refusal->status = 401;
    snprintf(refusal->text, sizeof(refusal->text), "the key is missing or wrong");
    return false;
}

static void error_body(void *user, const mt_http_route *route, const mt_http_request *request, const char *path,
                       int status, const char *code, const char *sentence, mt_buf *body)
{
    (void)user, (void)route, (void)request, (void)code;
    mt_buf_printf(body, "{\"status\": %d, \"path\": ", status);
    mt_buf_json_string(body, path ? path : "", path ? strlen(path) : 0);
    mt_buf_puts(body, ", \"error\": ");
    mt_buf_json_string(body, sentence, strlen(sentence));
    mt_buf_puts(body, "}");
}

static bool set_number(mt_http_limits *limits, const char *name, long value)
{
    const struct {
        const char *name;
        size_t *size;
        int *ms;
    } fields[] = {
        {"connections", &limits->connections, NULL},   {"head_bytes", &limits->head_bytes, NULL},
        {"headers", &limits->headers, NULL},           {"body_bytes", &limits->body_bytes, NULL},
        {"bodies_bytes", &limits->bodies_bytes, NULL}, {"pipeline_bytes", &limits->pipeline_bytes, NULL},
        {"output_pause", &limits->output_pause, NULL}, {"output_drop", &limits->output_drop, NULL},
        {"idle_ms", NULL, &limits->idle_ms},           {"head_ms", NULL, &limits->head_ms},
        {"body_ms", NULL, &limits->body_ms},           {"send_ms", NULL, &limits->send_ms},
        {"linger_ms", NULL, &limits->linger_ms},       {"spare", &limits->spare, NULL},
        {"socket_ms", NULL, &limits->socket_ms},
    };

    for (size_t i = 0; i < MT_COUNT(fields); i++)
        if (strcmp(name, fields[i].name) == 0) {
            if (fields[i].size)
                *fields[i].size = (size_t)value;
            else
                *fields[i].ms = (int)value;
            return true;
        }
    return false;
}

static const char *origins[4];

static bool set(mt_http_config *config, char *argument)
{
    char *value = strchr(argument, '=');

    if (!value)
        return false;
    *value++ = '\0';
    if (strcmp(argument, "host") == 0)
        config->host = value;
    else if (strcmp(argument, "port") == 0)
        config->port = (int)strtol(value, NULL, 10);
    else if (strcmp(argument, "certificate") == 0)
        config->tls_certificate = value;
    else if (strcmp(argument, "tls_key") == 0)
        config->tls_key = value;
    else if (strcmp(argument, "key") == 0)
        echo.key = value;
    else if (strcmp(argument, "origin") == 0 && config->origin_count < MT_COUNT(origins))
        origins[config->origin_count++] = value;
    else
        return set_number(&config->limits, argument, strtol(value, NULL, 10));
    return true;
}

static int serve(const mt_http_config *config)
{
    mt_http_server *server;
    mt_error err;

    server = mt_http_server_new(config, &err);
    if (!server) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("port %d\n", mt_http_server_port(server));
    fflush(stdout);
    mt_http_server_run(server);
    mt_http_server_free(server);
    printf("live %d\n", atomic_load(&echo.live));
    return 0;
}

int main(int argc, char **argv)
{
    mt_http_config config = {
        .host = "127.0.0.1",
        .routes = echo_routes,
        .route_count = echo_route_count,
        .hooks = {.user = &echo,
                  .admit = admit,
                  .error_body = error_body,
                  .socket_open = open_socket,
                  .socket_closed = close_socket},
        .origins = origins,
        .limits = mt_http_limits_default(),
    };

    for (int i = 1; i < argc; i++)
        if (!set(&config, argv[i])) {
            fprintf(stderr, "setting \"%s\" is not known\n", argv[i]);
            return 2;
        }
    return serve(&config);
}
