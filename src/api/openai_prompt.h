/* Reads the prompt of /v1/completions and fields like it: a string, a list of strings, a list of token ids, or a list
   of such lists. Where text is wanted, a list may also have strings and ids side by side, and a prompt may be an object
   with "prompt_string", as llama.cpp has them. */
#ifndef MT_API_OPENAI_PROMPT_H
#define MT_API_OPENAI_PROMPT_H

#include "api/ask.h"
#include "api/failure.h"

/* Sets ask->prompts. Texts are borrowed from the body; field: its name, for errors. False: *why. */
bool mt_openai_prompts_read(mt_ask *ask, const char *field, const json_t *prompt, mt_failure *why) MT_NODISCARD;

/* Makes the prompts, which must be texts, prompts to fill in the middle: each answer stands between its prompt and the
   suffix. suffix: the body's, a string that is not empty; NULL: nothing changes. False: *why. */
bool mt_openai_suffix_read(mt_ask *ask, const json_t *suffix, mt_failure *why) MT_NODISCARD;

/* Reads a list of token ids into the arena; name: of the field, for errors. False: *why. */
bool mt_openai_ids_read(mt_arena *arena, const char *name, const json_t *list, mt_ask_prompt *out,
                        mt_failure *why) MT_NODISCARD;

#endif
