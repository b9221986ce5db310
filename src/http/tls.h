/* TLS for accepted connections. */
#ifndef MT_HTTP_TLS_H
#define MT_HTTP_TLS_H

#include "base/error.h"

struct bufferevent;
struct event_base;

typedef struct mt_http_tls mt_http_tls;

/* Reads PEM files: a certificate with its chain, and its key without a passphrase. NULL: *err. */
mt_http_tls *mt_http_tls_new(const char *certificate, const char *key, mt_error *err) MT_NODISCARD;
void mt_http_tls_free(mt_http_tls *tls); /* NULL is fine */

/* A bufferevent with deferred callbacks on fd, which it owns; plain where tls is NULL. NULL: it failed, and fd is
   closed. */
struct bufferevent *mt_http_tls_bufferevent(mt_http_tls *tls, struct event_base *loop, int fd) MT_NODISCARD;

/* Sends TLS's close notification, where there is TLS. */
void mt_http_tls_shut(struct bufferevent *bev);

#endif
