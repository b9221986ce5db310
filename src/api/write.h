/* Pieces of JSON that several dialects write. Each function appends to out, with a comma before it where needed. */
#ifndef MT_API_WRITE_H
#define MT_API_WRITE_H

#include "api/answer.h"

/* A logprob or other number. JSON has no infinity: -9999 stands for it, as with OpenAI. */
void mt_write_number(mt_buf *out, float value);

void mt_write_floats(mt_buf *out, const float *values, size_t count);
void mt_write_base64(mt_buf *out, const float *values, size_t count);               /* their bytes, as a string */
void mt_write_ids(mt_buf *out, const char *key, const uint32_t *ids, size_t count); /* "key":[..] */
void mt_write_said_ids(mt_buf *out, const mt_said_list *said);                      /* "token_ids":[..] */

/* The text of a token as a JSON string, with U+FFFD where it is a part of a character. *bytes gets the token's
   bytes. */
void mt_write_token(mt_buf *out, const mt_answer *answer, uint32_t id, mt_buf *bytes);

/* {"token","logprob","bytes","top_logprobs"} of one token; a list of these for all tokens of a list. */
void mt_write_logprobs(mt_buf *out, const mt_answer *answer, const mt_said_list *said, const mt_said *token);
void mt_write_logprob_list(mt_buf *out, const mt_answer *answer, const mt_said_list *said);

/* The arguments of a call as an object; where they are no object, as text under MT_CHAT_BROKEN. */
void mt_write_arguments(mt_buf *out, const mt_speech_part *call);

/* "usage":{"prompt_tokens":...}, as OpenAI has it. */
void mt_write_usage(mt_buf *out, const mt_answer *answer);

/* "timings":{...} of the first choice, with llama.cpp's names, where the call wants them and the choice is done. */
void mt_write_timings(mt_buf *out, const mt_answer *answer);
/* The same of any choice, also of one that goes on. */
void mt_write_choice_timings(mt_buf *out, const mt_answer *answer, const mt_choice *choice);

/* "finish_reason": "stop", "tool_calls" (or "function_call"), "length", "abort", or null while the choice is not done;
   then also "stop_reason": what of the request ended it. */
void mt_write_finish(mt_buf *out, const mt_answer *answer, const mt_choice *choice);

/* "prompt_logprobs":[..], as vLLM has it: for each position an object from ids to logprobs, null for the first. */
void mt_write_prompt_logprobs(mt_buf *out, const mt_answer *answer, const mt_said_list *said);

#endif
