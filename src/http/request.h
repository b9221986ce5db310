/* The request as the server builds it. */
#ifndef MT_HTTP_REQUEST_H
#define MT_HTTP_REQUEST_H

#include "http/head.h"
#include "http/http.h"
#include "http/proxies.h"
#include "http/router.h"

/* Takes *head, which is left zeroed. NULL when the path cannot be decoded. proxies: that are trusted; may be NULL. */
mt_http_request *mt_http_request_new(mt_http_head *head, const char *peer, const mt_http_proxies *proxies);

/* The path as sent: what a router takes. */
const char *mt_http_request_raw_path(const mt_http_request *request, size_t *len);

/* Takes the match's text. */
void mt_http_request_set_match(mt_http_request *request, mt_http_match *match);

/* Takes the buffer's memory; an empty one gives "". charged: what of the room is the body's; the request gives it back,
   unless somebody takes the body. */
void mt_http_request_set_body(mt_http_request *request, mt_buf *body, mt_room *room, size_t charged);

#endif
