/* What a call asks for as token ids. On preparation threads. */
#ifndef MT_SERVER_TOKENS_H
#define MT_SERVER_TOKENS_H

#include "api/ask.h"
#include "api/failure.h"
#include "chat/prompt.h"
#include "server/pictures.h"
#include "server/served.h"

/* In the ask's arena. */
typedef struct mt_token_prompt {
    const uint32_t *ids;
    size_t count;
    const uint32_t *cuts; /* positions where turns begin */
    size_t cut_count;
    mt_chat_text text;                  /* what it was made from; data is NULL for ids */
    mt_chat_opened_state opened;        /* what its end has begun */
    const mt_chat_templates *templates; /* of a chat: what it was made with; as long as the arena */
    mt_pictures pictures;               /* of a chat; free with mt_pictures_free */
    mt_constraint *constraint;          /* of the answer; NULL: none, or not yet; release it */
    size_t forgotten;                   /* messages of the chat that were left out */
} mt_token_prompt;

/* How many tokens may be counted for somebody who wants nothing but that. */
size_t mt_tokens_most(const mt_served *served);

/* *out has *count prompts: one of a chat, which is changed, else as many as the ask has. stop: true once nobody
   waits for it any more. most: tokens that a text may have, as in mt_encode_options: what has more is not read to its
   end. */
bool mt_tokens_make(mt_served *served, mt_ask *ask, const atomic_bool *stop, size_t most, mt_token_prompt **out,
                    size_t *count, mt_failure *why) MT_NODISCARD;

/* The prompt of a request in the shape of OpenAI's chat completions, for somebody who wants nothing but its tokens.
   text: that they were made of, a copy in the arena; NULL where nobody wants it. out->pictures are to be freed in any
   case. */
bool mt_tokens_request(mt_served *served, mt_arena *arena, const json_t *body, const atomic_bool *stop,
                       mt_token_prompt *out, mt_chat_text *text, mt_failure *why) MT_NODISCARD;

/* A text to ids in the arena. */
bool mt_tokens_encode(const mt_served *served, mt_arena *arena, mt_chat_text text, bool add_special,
                      const atomic_bool *stop, size_t most, mt_token_prompt *out, mt_failure *why) MT_NODISCARD;

#endif
