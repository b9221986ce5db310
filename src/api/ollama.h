/* Shared by the files of Ollama's dialects. docs/ollama.md says what becomes of each field. */
#ifndef MT_API_OLLAMA_H
#define MT_API_OLLAMA_H

#include "api/answer.h"

/* Readers of the bodies of /api/chat and /api/generate. False: *why. */
bool mt_ollama_read_chat(mt_ask *ask, mt_failure *why) MT_NODISCARD;
bool mt_ollama_read_generate(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Begins reading: notes fields of the body that are not among the names (ended by NULL), and sets ask->extra, which the
   answer needs. */
void mt_ollama_begin(mt_ask *ask, const char *const *names);

/* Reads the settings beside the messages: "model", "options", "format", "keep_alive", "stream", "logprobs",
   "top_logprobs", and of a chat (ask->is_chat) "think". False: *why. */
bool mt_ollama_settings(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Reads "keep_alive", how long the model stays loaded. False: *why. */
bool mt_ollama_keep(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Whether a body only wants its model unloaded: "keep_alive" is 0 and the given field is empty or missing. */
bool mt_ollama_unloads(const json_t *body, const char *field);

/* Checks "options" and notes unknown ones, for calls that do not use them. False: *why. */
bool mt_ollama_options_check(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Reads the settings of a created model, an object with the names of options. False: *why. mt_ollama_parameters_note
   notes unknown ones. */
bool mt_ollama_parameters(mt_ask *ask, const json_t *parameters, mt_failure *why) MT_NODISCARD;
void mt_ollama_parameters_note(mt_ask *ask, const json_t *parameters);

/* Appends {"error":"..."}. */
void mt_ollama_error(mt_buf *out, const mt_failure *why);

/* Appends ,"total_duration":..,"load_duration":.. in nanoseconds, up to this moment. */
void mt_ollama_durations(mt_buf *out, const mt_answer *answer);

#endif
