/* Shared by the files of Anthropic's dialect. */
#ifndef MT_API_ANTHROPIC_H
#define MT_API_ANTHROPIC_H

#include "api/ask.h"
#include "api/failure.h"

/* Reads the body of POST /v1/messages into the ask. False: *why. */
bool mt_anthropic_read(mt_ask *ask, mt_failure *why);

/* Reads "tools" of the body into the ask's chat. False: *why. */
bool mt_anthropic_tools(mt_ask *ask, mt_failure *why);

#endif
