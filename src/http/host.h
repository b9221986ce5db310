/* The host and port of a "host" header, of a request's target or of an origin: the one place that knows their syntax.
   Which hosts are this server's own is the application's to say. */
#ifndef MT_HTTP_HOST_H
#define MT_HTTP_HOST_H

#include <stdbool.h>

#include "base/compiler.h"
#include "http/limits.h"

typedef struct mt_http_host {
    char name[MT_LIMIT_HTTP_HOST + 1]; /* a name without its final dot, or an address without brackets and zone */
    bool address;                      /* it is a numeric address */
    unsigned port;                     /* 0: not given */
} mt_http_host;

/* Parses "name", "name:port", "1.2.3.4", "[::1]:port" or "[fe80::1%zone]". False: it is none of these, and *host is
   empty. */
bool mt_http_host_read(mt_http_host *host, const char *text) MT_NODISCARD;

/* Whether two are the same, where `usual` is the port of one that gives none. */
bool mt_http_host_equal(const mt_http_host *a, const mt_http_host *b, unsigned usual);

#endif
