/* Makes tokens of the texts that vectors or scores are computed of, truncated where the call allows it. On preparation
   threads. */
#ifndef MT_SERVER_PREPARE_EMBED_TOKENS_H
#define MT_SERVER_PREPARE_EMBED_TOKENS_H

#include "api/ask.h"
#include "api/failure.h"
#include "server/fleet/target.h"

typedef struct mt_embed_text {
    const mt_target *target;
    const mt_ask *ask;
    const mt_ask_prompt *prompt;
    size_t most;             /* tokens that are kept of the text itself; 0: all */
    const atomic_bool *stop; /* ends encoding early, as in mt_encode_options */
} mt_embed_text;

/* Most tokens of a text: what the model takes, or what the call wants, if that is less. */
size_t mt_embed_context(const mt_ask *ask, const mt_target *target);

/* Tokens of a text, or the ids that the client sent. ids: empty before; free with mt_ids_free in any case. */
bool mt_embed_tokens(const mt_embed_text *text, mt_ids *ids, mt_failure *why) MT_NODISCARD;

/* Tokens of a query and a text for a cross-encoder: the query with its special tokens, then the text and the end token.
   *second: where the text begins. */
bool mt_embed_pair(const mt_embed_text *text, mt_ids *ids, size_t *second, mt_failure *why) MT_NODISCARD;

#endif
