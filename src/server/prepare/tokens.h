/* Makes token ids of what a call asks: its chat or its prompts. On preparation threads. */
#ifndef MT_SERVER_PREPARE_TOKENS_H
#define MT_SERVER_PREPARE_TOKENS_H

#include "api/ask.h"
#include "api/failure.h"
#include "chat/prompt.h"
#include "server/fleet/served.h"
#include "server/prepare/pictures.h"

/* A prompt as tokens. Its memory is in the ask's arena. */
typedef struct mt_token_prompt {
    const uint32_t *ids;
    size_t count;
    const uint32_t *cuts; /* positions where turns begin */
    size_t cut_count;
    mt_chat_text text;                  /* the text that was tokenized; data is NULL where ids were sent, and of a chat
                                           unless ask->renders */
    mt_chat_opened_state opened;        /* what the prompt's end leaves open, such as reasoning (chat/opened.h) */
    const mt_chat_templates *templates; /* of a chat: the templates used; live as long as the arena */
    mt_pictures pictures;               /* of a chat; free with mt_pictures_free */
    mt_constraint *constraint;          /* of the answer; NULL: none, or not known yet; release it */
    size_t forgotten;                   /* messages of the chat that were left out to make it shorter */
} mt_token_prompt;

/* Most tokens that are counted for a client that asks only for the count. */
size_t mt_tokens_most(const mt_served *served);

/* Says that a prompt has count tokens, or more than that, and leaves no room for an answer. Agents look for parts of
   the sentence to know that they have to shorten the conversation: those of OpenAI's API for "maximum context length
   is N tokens", those of Anthropic's for "prompt is too long: N tokens > N". Returns false. */
bool mt_tokens_too_long(const mt_served *served, size_t count, bool more, const char *param, mt_failure *why);

/* Makes the prompts of an ask: one of each chat, which is changed thereby, else as many as the ask has. prep->stop:
   gives up once it is true. most: tokens that a text may have, as in mt_encode_options; a longer text is refused
   without reading all of it. False: *why; pictures and constraints of *out must be freed all the same. */
bool mt_tokens_make(mt_served *served, mt_ask *ask, mt_prep *prep, size_t most, mt_token_prompt **out, size_t *count,
                    mt_failure *why) MT_NODISCARD;

/* Makes the prompt of a body in the shape of OpenAI's chat completions, for callers that want only its tokens. text:
   gets the rendered text, in the arena; may be NULL. False: *why. out->pictures must be freed in any case. */
bool mt_tokens_request(mt_served *served, mt_arena *arena, const json_t *body, mt_prep *prep, mt_token_prompt *out,
                       mt_chat_text *text, mt_failure *why) MT_NODISCARD;

/* Makes one prompt of pieces; add_special: begins with what the tokenizer puts before a text. False: *why. */
bool mt_tokens_join(const mt_served *served, mt_arena *arena, const mt_ask_piece *pieces, size_t count,
                    bool add_special, const atomic_bool *stop, size_t most, mt_token_prompt *out,
                    mt_failure *why) MT_NODISCARD;

/* Tokenizes a text; the ids live in the arena. False: *why. */
bool mt_tokens_encode(const mt_served *served, mt_arena *arena, mt_chat_text text, bool add_special,
                      const atomic_bool *stop, size_t most, mt_token_prompt *out, mt_failure *why) MT_NODISCARD;

#endif
