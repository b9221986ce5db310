/* WebSockets: a connection that has become one, by the handshake of RFC 6455. Each message is a request for the handler
   of the route, and each line of its answer is a message to the client. */
#ifndef MT_HTTP_SOCKET_H
#define MT_HTTP_SOCKET_H

#include "http/connection.h"

/* Why a request is not a good handshake; NULL: it is. *status: of the error. */
const char *mt_http_socket_refusal(const mt_http_request *request, bool http10, int *status);

/* Answers a good handshake. Owns greeting. */
void mt_http_socket_open(mt_http_connection *connection, mt_http_request *greeting);

/* Reads one event from the input of a WebSocket. While a message is answered, only control frames are read. */
mt_http_event mt_http_socket_read(mt_http_connection *connection);

/* The connection is as old as it may be: tells the client, and closes. */
void mt_http_socket_expire(mt_http_connection *connection);

/* Writes a close frame for a WebSocket that the server ends, unless one was sent already. */
void mt_http_socket_leave(mt_http_connection *connection);

/* Sends a close frame and closes. What was computed for the client is cancelled. */
void mt_http_socket_close(mt_http_connection *connection, mt_frames_code code, const char *sentence);

#endif
