/* Limits how long the answers of a call think. On preparation threads. */
#ifndef MT_SERVER_PREPARE_THINKING_H
#define MT_SERVER_PREPARE_THINKING_H

#include "chat/parse.h"
#include "server/calls/call.h"
#include "server/prepare/tokens.h"

/* Sets request->thinking where the ask of a chat has a budget, and the model thinks; warns the client where the model
   does not. False: *why. */
bool mt_thinking_limit(mt_request *request, mt_call *call, const mt_ask *ask, const mt_token_prompt *prompt,
                       const mt_parse_settings *parsing, mt_failure *why) MT_NODISCARD;

#endif
