/* The functions that answer a request by its handle. Where the client has left, the handle finds nothing, and they
   return false. */

#include "base/alloc.h"
#include "http/connection.h"
#include "http/response.h"

static mt_http_connection *find(mt_http_server *server, mt_http_handle handle)
{
    uint64_t slot = handle.id & ((1u << MT_HTTP_SLOT_BITS) - 1);
    mt_http_connection *c;

    mt_http_server_owned(server);
    if (handle.id == 0 || slot >= server->slot_count)
        return NULL;
    c = server->slots[slot];
    return c && !c->doomed && mt_http_connection_turn_to(c, handle.id) ? c : NULL;
}

bool mt_http_follow(mt_http_server *server, mt_http_handle handle, const mt_http_follower *follower, void *user)
{
    mt_http_connection *c = find(server, handle);

    if (!c)
        return false;
    c->exchange.follower = follower;
    c->exchange.follower_user = user;
    return true;
}

void mt_http_hold(mt_http_server *server, mt_http_handle handle, bool held)
{
    mt_http_connection *c = find(server, handle);

    if (c)
        mt_http_connection_hold(c, held);
}

void mt_http_errors_begin(mt_http_server *server, mt_http_handle handle, const char *text)
{
    mt_http_connection *c = find(server, handle);

    if (!c)
        return;
    mt_free(c->exchange.errors);
    c->exchange.errors = mt_strdup(text);
}

void mt_http_socket_bound(mt_http_server *server, mt_http_handle handle, size_t bytes)
{
    mt_http_connection *c = find(server, handle);

    if (c && c->socket)
        c->socket->frames.limit = bytes;
}

bool mt_http_answer(mt_http_server *server, mt_http_handle handle, const mt_http_response *response, const void *body,
                    size_t len)
{
    mt_http_connection *c = find(server, handle);

    if (!c)
        return false;
    mt_http_response_whole(c, response, body, len);
    mt_http_connection_finish(c);
    return true;
}

bool mt_http_fail(mt_http_server *server, mt_http_handle handle, const char *path, int status, const char *sentence)
{
    mt_http_connection *c = find(server, handle);

    if (!c)
        return false;
    mt_http_response_error(c, path, status, NULL, sentence, NULL, 0);
    mt_http_connection_finish(c);
    return true;
}

bool mt_http_begin(mt_http_server *server, mt_http_handle handle, const mt_http_response *response)
{
    mt_http_connection *c = find(server, handle);

    if (c)
        mt_http_response_begin(c, response);
    return c != NULL;
}

bool mt_http_write(mt_http_server *server, mt_http_handle handle, const void *data, size_t len)
{
    mt_http_connection *c = find(server, handle);

    return c && mt_http_response_write(c, data, len);
}

bool mt_http_end(mt_http_server *server, mt_http_handle handle)
{
    mt_http_connection *c = find(server, handle);

    if (!c)
        return false;
    mt_http_response_end(c);
    mt_http_connection_finish(c);
    return true;
}

bool mt_http_abort(mt_http_server *server, mt_http_handle handle)
{
    mt_http_connection *c = find(server, handle);

    if (c)
        mt_http_connection_close(c);
    return c != NULL;
}
