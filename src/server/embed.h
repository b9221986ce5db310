/* Calls for vectors: embeddings and scores. On preparation threads. */
#ifndef MT_SERVER_EMBED_H
#define MT_SERVER_EMBED_H

#include "api/ask.h"
#include "server/call.h"

/* Makes the call's answer in the ask's arena, and one request for each text, which are handed over. */
bool mt_embed_prepare(mt_call *call, mt_ask *ask, mt_failure *why) MT_NODISCARD;

#endif
