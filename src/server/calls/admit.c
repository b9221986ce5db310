/* Whether a request may go on, judged by its head: by the server's state, its client's key and rates, and room. */
#include <stdio.h>

#include "base/clock.h"
#include "server/inside.h"
#include "server/limits.h"

/* Finds the account of the request's key and checks its rates. False: *refusal. */
static bool admit_account(mt_server *server, mt_http_request *request, mt_http_refusal *refusal)
{
    mt_account *account = mt_keys_find(&server->keys, mt_http_request_key(request));

    if (!account) {
        refusal->status = 401;
        snprintf(refusal->text, sizeof(refusal->text),
                 "the API key is missing or wrong: send it as \"authorization: Bearer KEY\" or "
                 "\"x-api-key: KEY\"");
        return false;
    }
    request->who = account;
    refusal->status = 429;
    /* The handshake of a WebSocket asks for nothing yet; each message does, as a POST. */
    return !(request->route->flags & MT_SERVER_METERED) || request->method != MT_HTTP_POST ||
           mt_account_ask(account, mt_clock_ns(), refusal->text, &refusal->retry_after);
}

/* Refuses a large body before it is read where no place is left. Small ones are read and refused by mt_call_start,
   which keeps their connections usable. */
static bool admit_large(mt_server *server, const mt_http_request *request, mt_http_refusal *refusal)
{
    mt_failure why;

    if (request->announced <= MT_LIMIT_SMALL_BODY || mt_call_may_start(server, request, &why))
        return true;
    refusal->status = why.status;
    refusal->code = why.code;
    refusal->retry_after = 1;
    snprintf(refusal->text, sizeof(refusal->text), "%s", why.text);
    return false;
}

/* After SIGTERM only what says how the server is is answered. */
static bool admit_late(mt_server *server, const mt_http_request *request, mt_http_refusal *refusal)
{
    if (!server->signals || (request->route->flags & MT_HTTP_ALWAYS))
        return true;
    server->refused_total++;
    refusal->status = 503;
    refusal->code = "draining";
    refusal->retry_after = 1;
    snprintf(refusal->text, sizeof(refusal->text), "the server is shutting down: ask another");
    return false;
}

bool mt_server_admit(mt_server *server, mt_http_request *request, mt_http_refusal *refusal)
{
    return admit_late(server, request, refusal) &&
           (server->keys.count == 0 ? mt_guard_admit(&server->guard, request, refusal)
                                    : admit_account(server, request, refusal)) &&
           admit_large(server, request, refusal);
}

bool mt_server_admit_greeting(mt_server *server, mt_http_request *request, mt_http_refusal *refusal)
{
    return admit_late(server, request, refusal) &&
           (server->keys.count > 0 || mt_guard_admit(&server->guard, request, refusal));
}
