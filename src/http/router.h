/* Finds the route for a method and a path. */
#ifndef MT_HTTP_ROUTER_H
#define MT_HTTP_ROUTER_H

#include "http/http.h"
#include "http/limits.h"

enum { MT_HTTP_ALLOW_SIZE = 64 }; /* bytes for the names of all methods */

typedef struct mt_http_match {
    const mt_http_route *route; /* NULL: no route has this path and method */
    unsigned allowed;           /* a bit for each method that the path has routes for; 0: none */
    char *text;                 /* params point into it; mt_free */
    const char *params[MT_LIMIT_HTTP_PARAMS];
    size_t param_count;
} mt_http_match;

/* path: as sent, without the query; mt_http_path_decode must accept it. A HEAD without a route gets that of GET. */
void mt_http_router_match(const mt_http_route *routes, size_t count, mt_http_method method, const char *path,
                          size_t len, mt_http_match *match);

/* The route whose pattern is most similar to a decoded path that has none; NULL: none is similar. Of a long path only
   a part is compared. */
const mt_http_route *mt_http_router_nearest(const mt_http_route *routes, size_t count, const char *path);

/* Whether each pattern begins with '/', has at most MT_LIMIT_HTTP_PARAMS parameters, and {name*} only last. False:
   *err. */
bool mt_http_router_check(const mt_http_route *routes, size_t count, mt_error *err) MT_NODISCARD;

/* Decodes %XX into out, which has len + 1 bytes. False: a broken escape, an escaped control character, or a segment "."
   or "..", which clients resolve before they send. */
bool mt_http_path_decode(const char *path, size_t len, char *out);

/* Writes such as "GET, HEAD, OPTIONS". */
void mt_http_allow_format(unsigned allowed, char *text, size_t size);

#endif
