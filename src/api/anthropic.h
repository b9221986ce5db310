/* What the files of Anthropic's dialect share. */
#ifndef MT_API_ANTHROPIC_H
#define MT_API_ANTHROPIC_H

#include "api/ask.h"
#include "api/failure.h"

/* Fills the ask's chat, and reads what else the body says. */
bool mt_anthropic_read(mt_ask *ask, mt_failure *why);

#endif
