/* From messages to the prompt. A request is read by mt_chat_read (chat.h); mt_prompt_make normalises its messages,
   renders them and makes tokens of the text. Both are safe on any number of threads at once that share a model and have
   a chat each: what is loaded does not change.

   A failure is the client's, and its sentence is for the client: MT_E_INVALID (400), or MT_E_TOO_LARGE (413) where a
   limit is reached, or MT_E_TOO_LONG where the prompt has more tokens than the model takes. */
#ifndef MT_CHAT_PROMPT_H
#define MT_CHAT_PROMPT_H

#include "chat/chat_template.h"
#include "chat/context.h"
#include "chat/opened.h"
#include "text/tokenizer.h"

/* What prompts are made with. Everything is borrowed. */
typedef struct mt_prompt_model {
    const mt_chat_templates *templates;
    const mt_tokenizer *tokenizer;
    mt_chat_marks marks; /* what stands for images and videos */

    /* Says what replaces the marker of each of the media in the prompt: texts as trusted as the template, in the chat's
       arena or outliving the prompt. An error is the client's. NULL: markers stay. */
    bool (*describe)(void *ctx, const mt_chat_media *media, size_t count, mt_chat_text *texts, mt_error *err);
    void *describe_ctx;
    const atomic_bool *stop; /* as in mt_encode_options, and while the template is rendered */
    size_t memory;           /* bytes that rendering may take; 0: as limits.h has it */
    size_t most;             /* tokens of the text, as in mt_encode_options; 0: any number */
    bool allow_special;      /* special tokens are taken for what they are even where a client wrote them */
    const struct tm *now;    /* what strftime_now tells; NULL: the local time */
} mt_prompt_model;

typedef struct mt_prompt {
    mt_ids ids;
    size_t *cuts; /* before which tokens a turn begins, the generation prompt's included; ascending, none of them 0 */
    size_t cut_count;
    mt_chat_media *media; /* in the order in which they stand in the prompt; in the arena of the chat */
    size_t media_count;
    mt_chat_opened opened; /* what the generation prompt has begun */

    mt_buf text;         /* that the tokens were made of */
    mt_range *untrusted; /* see mt_rendering */
    size_t untrusted_count;
    size_t *text_cuts; /* the same turns, as byte offsets of the text; some may fall on the same token */
    size_t text_cut_count;
    size_t generation; /* where the generation prompt begins in the text; its length when there is none */
} mt_prompt;

/* chat is changed. out needs no initialisation; free it with mt_prompt_free in any case. */
bool mt_prompt_make(mt_prompt *out, mt_chat *chat, const mt_prompt_model *model, mt_error *err) MT_NODISCARD;

/* Finds the places of the media in a rendered text, and replaces their markers. Part of mt_prompt_make. */
bool mt_prompt_fill_media(mt_prompt *out, const mt_chat *chat, const mt_prompt_model *model,
                          mt_error *err) MT_NODISCARD;

/* mt_prompt_make without tokens: ids and cuts stay empty, and model needs no tokenizer. */
bool mt_prompt_render(mt_prompt *out, mt_chat *chat, const mt_prompt_model *model, mt_error *err) MT_NODISCARD;
void mt_prompt_free(mt_prompt *prompt);

#endif
