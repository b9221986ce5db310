/* See cors.h. */
#include "http/cors.h"

#include <string.h>

const char *mt_http_cors_origin(const mt_http_config *config, const char *origin)
{
    if (!origin)
        return NULL;
    for (size_t i = 0; i < config->origin_count; i++) {
        if (strcmp(config->origins[i], "*") == 0)
            return "*";
        if (strcmp(config->origins[i], origin) == 0)
            return origin;
    }
    return NULL;
}

size_t mt_http_preflight(const mt_http_request *request, const char *allowed_origin, const char *methods,
                         mt_http_header headers[MT_HTTP_PREFLIGHT_HEADERS])
{
    const char *wanted = mt_http_request_header(request, "access-control-request-headers");
    size_t n = 0;

    headers[n++] = (mt_http_header){"allow", methods};
    if (!allowed_origin || !mt_http_request_header(request, "access-control-request-method"))
        return n;
    headers[n++] = (mt_http_header){"access-control-allow-methods", methods};
    headers[n++] = (mt_http_header){"access-control-max-age", "86400"};
    if (wanted) /* any header may be sent: only the origin decides whether a page may call */
        headers[n++] = (mt_http_header){"access-control-allow-headers", wanted};
    return n;
}
