/* A chat that does not fit into the context, without its oldest messages. On preparation threads. */
#ifndef MT_SERVER_FORGET_H
#define MT_SERVER_FORGET_H

#include "server/tokens.h"

/* As mt_tokens_chat of the ask's chat, which stays as it is. Where that leaves too little room for an answer, turns
   are left out from the first on, up to a message of the user's, as few as will do; what the system says and the last
   message stay. *forgotten: how many messages. */
bool mt_forget_make(mt_tokens_chat_fn *make, mt_served *served, const mt_ask *ask, const atomic_bool *stop, size_t most,
                    mt_token_prompt *out, size_t *forgotten, mt_failure *why) MT_NODISCARD;

#endif
