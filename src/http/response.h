/* Writes responses to the request that a connection is answering (its exchange, connection.h) into the connection's
   output. Whether the exchange is over, callers decide. The follower is the mt_http_follower of the request. */
#ifndef MT_HTTP_RESPONSE_H
#define MT_HTTP_RESPONSE_H

#include "http/connection.h"

void mt_http_response_whole(mt_http_connection *connection, const mt_http_response *response, const void *body,
                            size_t len);
void mt_http_response_begin(mt_http_connection *connection, const mt_http_response *response);

/* False: the client has read too little for too long, and is doomed. May call the follower's `paused`. */
bool mt_http_response_write(mt_http_connection *connection, const void *data, size_t len);
void mt_http_response_end(mt_http_connection *connection);

/* Writes a frame of a WebSocket; the close frame, unless one was sent already. */
void mt_http_response_frame(mt_http_connection *connection, mt_frames_opcode opcode, const void *data, size_t len);
void mt_http_response_close(mt_http_connection *connection, mt_frames_code code, const char *sentence);

/* Writes an error. path, code: NULL where not known. */
void mt_http_response_error(mt_http_connection *connection, const char *path, int status, const char *code,
                            const char *sentence, const mt_http_header *headers, size_t count);

/* Tells the follower when a paused client has caught up. */
void mt_http_response_resume(mt_http_connection *connection);

#endif
