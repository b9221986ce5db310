/* What the files of Anthropic's dialect share. */
#ifndef MT_API_ANTHROPIC_H
#define MT_API_ANTHROPIC_H

#include "api/ask.h"
#include "api/failure.h"

/* Makes a chat of the body, and reads that. */
bool mt_anthropic_read(mt_ask *ask, mt_failure *why);

/* Appends {"type":"error","error":{...}}. */
void mt_anthropic_error(mt_buf *out, const mt_failure *why);

#endif
