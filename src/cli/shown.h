/* A prompt with pictures from files, as `motet run` takes it: one message of a user, through the chat template. */
#ifndef MT_CLI_SHOWN_H
#define MT_CLI_SHOWN_H

#include "server/options.h"
#include "server/served.h"
#include "server/tokens.h"

typedef struct mt_shown {
    mt_arena *arena;
    mt_served served; /* as much of it as making a prompt needs; the checkpoint is borrowed */
    mt_token_prompt *prompt;
} mt_shown;

/* Free with mt_shown_free in any case, after the requests that its pictures were given to. */
bool mt_shown_make(mt_shown *s, const mt_options *opt, const mt_opened *opened, mt_tokenizer *tokenizer,
                   mt_error *err) MT_NODISCARD;
void mt_shown_free(mt_shown *s);

#endif
