/* What the files of Anthropic's dialect share. */
#ifndef MT_API_ANTHROPIC_H
#define MT_API_ANTHROPIC_H

#include "api/ask.h"
#include "api/failure.h"

/* Fills the ask's chat, and reads what else the body says. */
bool mt_anthropic_read(mt_ask *ask, mt_failure *why);

/* Of a chat whose messages are read: an answer to a last message of the assistant's goes on with it. formatted: what
   the answer has to look like is given. */
bool mt_anthropic_prefill(mt_ask *ask, bool formatted, mt_failure *why) MT_NODISCARD;

#endif
