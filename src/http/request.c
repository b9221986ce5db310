/* See request.h. */
#include "http/request.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "http/field.h"
#include "http/limits.h"
#include "http/name.h"

enum { PEER_SIZE = 64 };

typedef struct owned_request {
    mt_http_request seen; /* first, so that a pointer to it is one to the whole */
    mt_http_head head;
    char *path;
    char *match_text;
    char *query_key, *socket_key;
    mt_room *room; /* borrowed */
    const char *params[MT_LIMIT_HTTP_PARAMS];
    char peer[PEER_SIZE], client[MT_HTTP_CLIENT_SIZE];
} owned_request;

static owned_request *owned(mt_http_request *request)
{
    return (owned_request *)request;
}

/* Removes superfluous slashes from a path: all but one of several in a row, and one at the end. Returns its length. */
static size_t tidy(char *path, size_t len)
{
    size_t kept = 0;

    if (path[0] != '/')
        return len;
    for (size_t i = 0; i < len; i++)
        if (path[i] != '/' || kept == 0 || path[kept - 1] != '/')
            path[kept++] = path[i];
    kept -= kept > 1 && path[kept - 1] == '/';
    path[kept] = '\0';
    return kept;
}

/* The API key among the subprotocols that a client offers; NULL: none. Free with mt_free. */
static char *find_socket_key(const mt_http_request *request)
{
    static const char begin[] = MT_HTTP_SOCKET_KEY;
    const char *list = mt_http_request_header(request, "sec-websocket-protocol");
    size_t len;

    for (const char *one = list ? mt_http_list_next(&list, &len) : NULL; one; one = mt_http_list_next(&list, &len))
        if (len > sizeof(begin) - 1 && strncmp(one, begin, sizeof(begin) - 1) == 0)
            return memcpy(mt_alloc(len - sizeof(begin) + 2), one + sizeof(begin) - 1, len - sizeof(begin) + 1);
    return NULL;
}

mt_http_request *mt_http_request_new(mt_http_head *head, const char *peer, const mt_http_proxies *proxies)
{
    owned_request *made = mt_alloc(sizeof(*made));
    size_t len;

    made->head = *head;
    *head = (mt_http_head){0};
    made->seen.method = made->head.method;
    made->seen.headers = made->head.headers;
    made->seen.header_count = made->head.header_count;
    made->seen.params = made->params;
    made->seen.body = mt_strdup("");
    made->seen.announced = made->head.chunked ? UINT64_MAX : made->head.length;
    strncpy(made->peer, peer, sizeof(made->peer) - 1);
    made->seen.peer = made->peer;
    mt_http_client(proxies, peer, made->seen.headers, made->seen.header_count, made->client);
    made->seen.client = made->client;
    len = strcspn(made->head.target, "?");
    made->seen.query = made->head.target + len + (made->head.target[len] == '?');
    made->query_key = mt_http_request_query(&made->seen, "key");
    made->seen.query_key = made->query_key;
    made->socket_key = find_socket_key(&made->seen);
    made->seen.socket_key = made->socket_key;
    len = tidy(made->head.text + (made->head.target - made->head.text), len);
    made->path = mt_alloc(len + 1);
    made->seen.path = made->path;
    if (mt_http_path_decode(made->head.target, len, made->path))
        return &made->seen;
    mt_http_request_free(&made->seen);
    return NULL;
}

/* Copies a string to *at and moves *at behind it. Returns the copy. */
static const char *put(char **at, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);

    *at += size;
    return copy;
}

mt_http_request *mt_http_request_again(const mt_http_request *request, const mt_http_proxies *proxies)
{
    const owned_request *from = (const owned_request *)request;
    mt_http_head head = {.method = MT_HTTP_POST, .header_count = request->header_count};
    size_t size = strlen(from->head.target) + strlen(request->query) + 2; /* the target ends where its '?' was */
    mt_http_request *made;
    char *at;

    for (size_t i = 0; i < request->header_count; i++)
        size += strlen(request->headers[i].name) + strlen(request->headers[i].value) + 2;
    head.text = at = mt_alloc(size);
    head.target = put(&at, from->head.target);
    at[-1] = '?';
    put(&at, request->query);
    head.headers = mt_alloc_array(request->header_count ? request->header_count : 1, sizeof(*head.headers));
    for (size_t i = 0; i < request->header_count; i++) {
        head.headers[i].name = put(&at, request->headers[i].name);
        head.headers[i].value = put(&at, request->headers[i].value);
    }
    made = mt_http_request_new(&head, request->peer, proxies); /* its path was decoded before */
    made->route = request->route;
    return made;
}

void mt_http_request_free(mt_http_request *request)
{
    if (!request)
        return;
    mt_http_head_free(&owned(request)->head);
    if (request->charged)
        mt_room_give(owned(request)->room, request->charged);
    mt_free(owned(request)->path);
    mt_free(owned(request)->match_text);
    mt_free(owned(request)->query_key);
    mt_free(owned(request)->socket_key);
    mt_free(request->body);
    mt_free(request);
}

const char *mt_http_request_raw_path(const mt_http_request *request, size_t *len)
{
    const owned_request *made = (const owned_request *)request;

    *len = strcspn(made->head.target, "?");
    return made->head.target;
}

void mt_http_request_set_match(mt_http_request *request, mt_http_match *match)
{
    mt_free(owned(request)->match_text);
    owned(request)->match_text = match->text;
    memcpy(owned(request)->params, match->params, sizeof(match->params));
    request->param_count = match->param_count;
    match->text = NULL;
}

void mt_http_request_set_body(mt_http_request *request, mt_buf *body, mt_room *room, size_t charged)
{
    owned(request)->room = room;
    request->charged = charged;
    if (!body->data)
        return;
    mt_free(request->body);
    request->body = mt_realloc(body->data, body->cap, body->len + 1); /* shrunk, since it may be kept for long */
    request->body_len = body->len;
    mt_buf_init(body, body->limit);
}

const char *mt_http_request_header(const mt_http_request *request, const char *name)
{
    return mt_http_field_get(request->headers, request->header_count, name);
}

const char *mt_http_request_name(const mt_http_request *request)
{
    const char *name = mt_http_request_header(request, "x-request-id");

    return name && mt_http_name_valid(name) ? name : NULL;
}

const char *mt_http_request_session(const mt_http_request *request)
{
    const char *name = mt_http_request_header(request, "x-session-id");

    return name && mt_http_name_valid(name) ? name : NULL;
}

char *mt_http_request_query(const mt_http_request *request, const char *key)
{
    const char *query = request->query;
    const size_t len = strlen(key);
    size_t size;
    char *value;

    while (*query && !(strncmp(query, key, len) == 0 && query[len] == '=')) {
        query += strcspn(query, "&");
        query += *query == '&';
    }
    if (!*query)
        return NULL;
    query += len + 1;
    size = strcspn(query, "&");
    value = mt_alloc(size + 1);
    if (mt_http_path_decode(query, size, value))
        return value;
    mt_free(value);
    return NULL;
}

const char *mt_http_request_key(const mt_http_request *request)
{
    const char *value = mt_http_request_header(request, "authorization");

    if (value && strncasecmp(value, "Bearer ", 7) == 0)
        return value + 7 + strspn(value + 7, " ");
    value = mt_http_request_header(request, "x-api-key");
    value = value ? value : mt_http_request_header(request, "x-goog-api-key");
    if (value || !request->route)
        return value;
    if (request->route->flags & MT_HTTP_SOCKET)
        return request->socket_key;
    return request->route->flags & MT_HTTP_QUERY_KEY ? request->query_key : NULL;
}
