/* Who a request is for, where clients share what there is. */
#ifndef MT_SERVER_CLIENT_H
#define MT_SERVER_CLIENT_H

#include "engine/clients.h"
#include "http/http.h"
#include "server/keys.h"

/* Whoever has the same key; where none are needed, the same address: a key that opens no door is only a word, and
   whoever makes up many would be many. */
mt_client mt_client_of(const mt_keys *keys, const mt_http_request *request);

#endif
