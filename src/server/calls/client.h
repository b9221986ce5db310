/* Which client a call belongs to, where clients share the engine and the cache. */
#ifndef MT_SERVER_CALLS_CLIENT_H
#define MT_SERVER_CALLS_CLIENT_H

#include "api/ask.h"
#include "engine/request.h"
#include "server/calls/account.h"
#include "server/calls/call.h"

/* The client of a request: its account; where no keys are needed, its address. A key that the server does not check is
   not used for this: a client could make up many and get many shares. */
mt_client mt_client_of(const mt_account *account, const mt_http_request *request);

/* Sets calls that the server itself makes for an account, or for none, apart from calls of that account's clients. */
#define MT_CLIENT_OWN UINT64_C(0x6d6f746574)

/* A hash of the address that a request came from, which tells clients of one account apart. */
uint64_t mt_client_address(const mt_http_request *request);

/* The account that must not share cached content with others, who could tell by the time a request takes that the
   content was sent before. NULL: all clients share. */
const mt_account *mt_client_apart(const mt_call *call);

/* Preparation thread: sets the request's priority, client, and the salt of its cached prompt. */
void mt_client_mark(const mt_call *call, const mt_ask *ask, mt_request *request);

#endif
