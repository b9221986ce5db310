/* Whose pages may call: the CORS headers. */
#ifndef MT_HTTP_CORS_H
#define MT_HTTP_CORS_H

#include "http/http.h"

enum { MT_HTTP_PREFLIGHT_HEADERS = 4 };

/* What access-control-allow-origin says to a page of this origin: "*", the origin, or NULL for nothing. */
const char *mt_http_cors_origin(const mt_http_config *config, const char *origin);

/* The headers of the answer to an OPTIONS request, preflight or not; returns how many. Borrows request and methods. */
size_t mt_http_preflight(const mt_http_request *request, const char *allowed_origin, const char *methods,
                         mt_http_header headers[MT_HTTP_PREFLIGHT_HEADERS]);

#endif
