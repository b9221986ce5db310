/* Dispatches requests: the functions of mt_http_upward (server.h) that connection.c calls. */
#ifndef MT_HTTP_DISPATCH_H
#define MT_HTTP_DISPATCH_H

#include "http/connection.h"

bool mt_http_dispatch_head(mt_http_connection *connection);
void mt_http_dispatch_request(mt_http_connection *connection);
void mt_http_dispatch_message(mt_http_connection *connection);
void mt_http_dispatch_fault(mt_http_connection *connection, int status, const char *sentence);

#endif
