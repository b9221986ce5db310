/* CORS headers: which origins may call. */
#ifndef MT_HTTP_CORS_H
#define MT_HTTP_CORS_H

#include "http/http.h"

enum { MT_HTTP_PREFLIGHT_HEADERS = 4 };

/* The value of access-control-allow-origin for a page of this origin: "*", the origin, or NULL for no header. */
const char *mt_http_cors_origin(const mt_http_config *config, const char *origin);

/* The headers of the answer to an OPTIONS request, preflight or not, beside access-control-allow-origin, which
   response.c adds to every response. allowed_origin: the value of that one; NULL: none. Returns how many. The headers
   borrow from request and methods. */
size_t mt_http_preflight(const mt_http_request *request, const char *allowed_origin, const char *methods,
                         mt_http_header headers[MT_HTTP_PREFLIGHT_HEADERS]);

#endif
