/* Makes the prompt of a chat: mt_prompt_make normalises the messages, renders them by the chat template and tokenizes
   the text. Any number of threads may share a model, with a chat each.

   Failures are the client's, with a sentence for the client: MT_E_INVALID (400), MT_E_TOO_LARGE (413) where a limit is
   reached, MT_E_TOO_LONG where the prompt has too many tokens. */
#ifndef MT_CHAT_PROMPT_H
#define MT_CHAT_PROMPT_H

#include "chat/chat_template.h"
#include "chat/context.h"
#include "chat/opened.h"
#include "text/tokenizer.h"

/* The parts of a model that prompts are made with, for all its requests. Everything is borrowed. */
typedef struct mt_prompt_model {
    const mt_chat_templates *templates;
    const mt_tokenizer *tokenizer;
    mt_chat_marks marks; /* what stands for pictures and videos */

    /* Sets the texts that replace the markers of the media in the prompt. They count as trusted, and live in the chat's
       arena or longer. False: *err, for the client. NULL: markers stay. */
    bool (*describe)(void *ctx, const mt_chat_media *media, size_t count, mt_chat_text *texts, mt_error *err);
    void *describe_ctx;
    const atomic_bool *stop; /* ends rendering and encoding early, as in mt_encode_options */
    size_t memory;           /* bytes that rendering may take; 0: the limit in limits.h */
    size_t most;             /* tokens that the text may have, as in mt_encode_options; 0: any number */
    bool allow_special;      /* special tokens count even in what a client wrote */
    const struct tm *now;    /* the time that strftime_now tells; NULL: the local time */
} mt_prompt_model;

typedef struct mt_prompt {
    mt_ids ids;
    /* Indexes of tokens with which turns begin, the generation prompt's included; ascending, none is 0 */
    uint32_t *cuts;
    size_t cut_count;
    mt_chat_media *media; /* in the order of the prompt; in the chat's arena */
    size_t media_count;
    mt_chat_opened opened; /* what the generation prompt has begun */

    mt_buf text;         /* the text of the tokens */
    mt_range *untrusted; /* ranges of the text that clients wrote, see mt_rendering */
    size_t untrusted_count;
    size_t *text_cuts; /* as cuts, in bytes of the text; several may fall on one token */
    size_t text_cut_count;
    size_t generation; /* where the generation prompt begins in the text; the text's length: there is none */
} mt_prompt;

/* Makes a prompt; changes the chat. out needs no initialisation; free it with mt_prompt_free in any case. False:
   *err. */
bool mt_prompt_make(mt_prompt *out, mt_chat *chat, const mt_prompt_model *model, mt_error *err) MT_NODISCARD;

/* Part of mt_prompt_make: finds the markers of the media in the rendered text and replaces them. False: *err. */
bool mt_prompt_fill_media(mt_prompt *out, const mt_chat *chat, const mt_prompt_model *model,
                          mt_error *err) MT_NODISCARD;

/* mt_prompt_make without tokenizing: ids and cuts stay empty, and model needs no tokenizer. */
bool mt_prompt_render(mt_prompt *out, mt_chat *chat, const mt_prompt_model *model, mt_error *err) MT_NODISCARD;
void mt_prompt_free(mt_prompt *prompt);

#endif
