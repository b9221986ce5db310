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

/* Puts the settings beside the messages ("options", "format", "think", "keep_alive", "stream", "logprobs") into `to`, a
   body with OpenAI's field names; chat: for a chat, else for a plain completion. False: *why. */
bool mt_ollama_settings(mt_ask *ask, json_t *to, bool chat, mt_failure *why) MT_NODISCARD;

/* Reads "keep_alive", how long the model stays loaded. False: *why. */
bool mt_ollama_keep(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Whether a body only wants its model unloaded: "keep_alive" is 0 and the given field is empty or missing. */
bool mt_ollama_unloads(const json_t *body, const char *field);

/* Checks "options" and notes unknown ones, for calls that do not use them. False: *why. */
bool mt_ollama_options_check(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Puts the settings of a created model, an object with the names of options, into `to` as mt_ollama_settings does.
   False: *why. mt_ollama_parameters_note notes unknown ones. */
bool mt_ollama_parameters(const json_t *parameters, json_t *to, mt_failure *why) MT_NODISCARD;
void mt_ollama_parameters_note(mt_ask *ask, const json_t *parameters);

/* Replaces OpenAI's name of the field at fault by the one that Ollama's clients know. */
void mt_ollama_rename(mt_failure *why);

/* Appends {"error":"..."}. */
void mt_ollama_error(mt_buf *out, const mt_failure *why);

/* Appends ,"total_duration":..,"load_duration":.. in nanoseconds, up to this moment. */
void mt_ollama_durations(mt_buf *out, const mt_answer *answer);

#endif
