/* Who a request is for, where clients share what there is. */
#ifndef MT_SERVER_CLIENT_H
#define MT_SERVER_CLIENT_H

#include "api/ask.h"
#include "engine/request.h"
#include "server/account.h"
#include "server/call.h"

/* Whoever has the same account; where no key is needed, the same address: a key that opens no door is only a word, and
   whoever makes up many would be many. */
mt_client mt_client_of(const mt_account *account, const mt_http_request *request);

/* Who shares with nobody what others could see, by the time it takes, to have been sent before; NULL: all share. */
const mt_account *mt_client_apart(const mt_call *call);

/* Preparation thread: what a request of a call is worth to others, and what it may share with them. */
void mt_client_mark(const mt_call *call, const mt_ask *ask, mt_request *request);

#endif
