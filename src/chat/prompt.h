/* From messages to the prompt: the text, who wrote which part of it, and where turns begin. */
#ifndef MT_CHAT_PROMPT_H
#define MT_CHAT_PROMPT_H

#include "chat/chat_template.h"
#include "chat/context.h"

typedef struct mt_prompt_options {
    const struct tm *now;           /* see mt_template_options */
    const mt_chat_markers *markers; /* NULL: none */
} mt_prompt_options;

typedef struct mt_prompt {
    mt_buf text;
    mt_range *untrusted; /* see mt_rendering */
    size_t untrusted_count;
    size_t *cuts; /* byte offsets where a turn begins, the generation prompt's included; ascending, none of them 0 */
    size_t cut_count;
    const mt_chat_media *media; /* in the arena of the chat */
    size_t media_count;
} mt_prompt;

/* Normalises chat, which is changed, and renders it. An error is a sentence for the client: what is wrong with the
   messages, or what the template said. out needs no initialisation; free it with mt_prompt_free in any case. */
bool mt_prompt_make(mt_prompt *out, mt_chat *chat, const mt_chat_template *tpl, const mt_prompt_options *options,
                    mt_error *err) MT_NODISCARD;
void mt_prompt_free(mt_prompt *prompt);

#endif
