/* Pieces of JSON that answers are made of. Each appends to out, with a comma before it where one is due. */
#ifndef MT_API_WRITE_H
#define MT_API_WRITE_H

#include "api/answer.h"

/* "logprob": finite, since JSON has no infinity: -9999 stands for it, as with OpenAI. */
void mt_write_number(mt_buf *out, float value);

void mt_write_floats(mt_buf *out, const float *values, size_t count);
void mt_write_ids(mt_buf *out, const char *key, const uint32_t *ids, size_t count); /* "key":[..] */
void mt_write_said_ids(mt_buf *out, const mt_said_list *said);                      /* "token_ids":[..] */

/* The text of a token as a JSON string; where it is a part of a character, with U+FFFD. Its bytes are left in *bytes,
   which is cleared first. */
void mt_write_token(mt_buf *out, const mt_answer *answer, uint32_t id, mt_buf *bytes);

/* {"token","logprob","bytes","top_logprobs"} of a token in a list; a list of these for all of them. */
void mt_write_logprobs(mt_buf *out, const mt_answer *answer, const mt_said_list *said, const mt_said *token);
void mt_write_logprob_list(mt_buf *out, const mt_answer *answer, const mt_said_list *said);

/* The arguments of a call as an object; those that are none come as they are, in one of our own. */
void mt_write_arguments(mt_buf *out, const mt_speech_part *call);

/* "usage":{"prompt_tokens":...}, as OpenAI has it. */
void mt_write_usage(mt_buf *out, const mt_answer *answer);

/* "timings":{...} of the first choice, with llama.cpp's names, where the call wants them and it is done. */
void mt_write_timings(mt_buf *out, const mt_answer *answer);

/* "finish_reason": "stop", "tool_calls" (or "function_call"), "length", "abort", or null while it is not done; once it
   is, "stop_reason" too, which has what of the request ended it. */
void mt_write_finish(mt_buf *out, const mt_answer *answer, const mt_choice *choice);

/* "prompt_logprobs":[..], as vLLM has it: an object from ids to logprobs for each position, null for the first. */
void mt_write_prompt_logprobs(mt_buf *out, const mt_answer *answer, const mt_said_list *said);

size_t mt_count_characters(const char *text, size_t len); /* of UTF-8 */

#endif
