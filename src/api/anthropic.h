/* What the files of Anthropic's dialect share. */
#ifndef MT_API_ANTHROPIC_H
#define MT_API_ANTHROPIC_H

#include "api/ask.h"
#include "api/failure.h"

/* Makes a chat of the body, and reads that. */
bool mt_anthropic_read(mt_ask *ask, mt_failure *why);

/* Of a chat made of a body: an answer to a last message of the assistant's goes on with it. */
bool mt_anthropic_prefill(const json_t *body, json_t *chat, mt_failure *why) MT_NODISCARD;

/* Appends {"type":"error","error":{...}}. */
void mt_anthropic_error(mt_buf *out, const mt_failure *why);

#endif
