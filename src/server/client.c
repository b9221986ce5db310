#include "server/client.h"

/* FNV-1a */
static uint64_t hash(const char *text)
{
    uint64_t sum = 14695981039346656037u;

    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 1099511628211u;
    return sum;
}

mt_client mt_client_of(const mt_keys *keys, const mt_http_request *request)
{
    const char *key = keys->count > 0 ? mt_http_request_key(request) : NULL;

    return (mt_client){.id = hash(key ? key : request->client), .share = 1};
}
