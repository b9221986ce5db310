/* Builds requests, for the server. Declared in http.h, mt_http_request is what handlers see. */
#ifndef MT_HTTP_REQUEST_H
#define MT_HTTP_REQUEST_H

#include "http/head.h"
#include "http/http.h"
#include "http/proxies.h"
#include "http/router.h"

/* Owns *head, which is left zeroed. proxies: the trusted ones; may be NULL. NULL: the path cannot be decoded. */
mt_http_request *mt_http_request_new(mt_http_head *head, const char *peer, const mt_http_proxies *proxies);

/* A POST with the target, the headers and the route of another request. proxies: as above. */
mt_http_request *mt_http_request_again(const mt_http_request *request, const mt_http_proxies *proxies);

/* The path as sent, for the router. */
const char *mt_http_request_raw_path(const mt_http_request *request, size_t *len);

/* Owns the match's text. */
void mt_http_request_set_match(mt_http_request *request, mt_http_match *match);

/* Owns the buffer's memory; an empty one gives "". charged: bytes of the room taken for the body, which the request
   gives back unless a handler becomes the owner of the body. */
void mt_http_request_set_body(mt_http_request *request, mt_buf *body, mt_room *room, size_t charged);

#endif
