/* What the files of Ollama's dialects share. docs/ollama.md says what becomes of each field. */
#ifndef MT_API_OLLAMA_H
#define MT_API_OLLAMA_H

#include "api/answer.h"

/* The readers of /api/chat and /api/generate. */
bool mt_ollama_read_chat(mt_ask *ask, mt_failure *why) MT_NODISCARD;
bool mt_ollama_read_generate(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Notes fields of the body that none of these names is, and sets what the answer repeats. */
void mt_ollama_begin(mt_ask *ask, const char *const *names, size_t count);

/* What stands beside the messages: "options", "format", "think", "keep_alive", "stream", "logprobs"; put into a body
   of OpenAI's, for chats or for plain completions. */
bool mt_ollama_settings(mt_ask *ask, json_t *to, bool chat, mt_failure *why) MT_NODISCARD;

/* How long the model is to stay. For calls without such settings, too. */
bool mt_ollama_keep(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Whether a body has no use for its model, neither now (nothing stands in this field) nor later. */
bool mt_ollama_unloads(const json_t *body, const char *field);

/* Checks "options" and notes those that nobody knows, for calls that have no use for them. */
bool mt_ollama_options_check(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Speaks of a field by the name that Ollama's clients know. Always false. */
bool mt_ollama_rename(mt_failure *why);

/* {"error":"..."} */
void mt_ollama_error(mt_buf *out, const mt_failure *why);

/* ,"total_duration":..,"load_duration":..: nanoseconds, to this moment. */
void mt_ollama_durations(mt_buf *out, const mt_answer *answer);

#endif
