/* The tokens of texts that vectors or scores are made of, cut where the call allows it. On preparation threads. */
#ifndef MT_SERVER_EMBED_TOKENS_H
#define MT_SERVER_EMBED_TOKENS_H

#include "api/ask.h"
#include "api/failure.h"
#include "server/target.h"

typedef struct mt_embed_text {
    const mt_target *target;
    const mt_ask *ask;
    const mt_ask_prompt *prompt;
    size_t most;             /* tokens of the text alone that are looked at; 0: all */
    const atomic_bool *stop; /* as in mt_encode_options */
} mt_embed_text;

/* Of a text or ids as they stand alone. ids: empty before; free with mt_ids_free in any case. */
bool mt_embed_tokens(const mt_embed_text *text, mt_ids *ids, mt_failure *why) MT_NODISCARD;

/* Of a query and a text, as a cross-encoder reads them: the query as it would stand alone, and behind its end the text
   and another end. *second: where the text begins. */
bool mt_embed_pair(const mt_embed_text *text, mt_ids *ids, size_t *second, mt_failure *why) MT_NODISCARD;

#endif
