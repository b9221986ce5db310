/* Which client a call belongs to: see client.h. */
#include "server/calls/client.h"

#include <string.h>

#include "base/hash.h"
#include "server/inside.h"

uint64_t mt_client_address(const mt_http_request *request)
{
    return mt_hash(request->client, strlen(request->client));
}

mt_client mt_client_of(const mt_account *account, const mt_http_request *request)
{
    return account ? account->client : (mt_client){.id = mt_client_address(request), .share = 1};
}

/* Lower runs first. Where the server has several accounts, a request may ask to run later than others of its account,
   but not earlier. */
static int32_t priority_of(const mt_call *call, const mt_ask *ask)
{
    if (call->over) /* of the server itself */
        return INT32_MAX;

    const int64_t own = call->server->keys.account_count > 1 && ask->priority < 0 ? 0 : ask->priority;
    const int64_t sum = own + (call->account ? call->account->priority : 0);

    return (int32_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}

const mt_account *mt_client_apart(const mt_call *call)
{
    return call->server->isolate ? call->account : NULL;
}

void mt_client_mark(const mt_call *call, const mt_ask *ask, mt_request *r)
{
    mt_account_salt(mt_client_apart(call), ask->cache_salt, r->salt);
    r->salt_name = ask->cache_salt && !mt_client_apart(call) ? mt_arena_strdup(r->arena, ask->cache_salt) : NULL;
    r->priority = priority_of(call, ask);
    r->client = call->client;
    r->received = call->received;
}
