/* Results of the preparation of a call so far. A call that changes its lane takes it along and goes on where it was, so
   that its body is read, its template rendered and its text tokenized once. Preparation threads, one at a time. */
#ifndef MT_SERVER_PREPARE_PREPARATION_H
#define MT_SERVER_PREPARE_PREPARATION_H

#include "server/calls/call.h"
#include "server/prepare/tokens.h"

typedef struct mt_preparation {
    mt_arena *arena;          /* owned, until call->answer is made, which owns it from then on */
    mt_ask *ask;              /* in the arena */
    bool read;                /* the ask has what the body asks for */
    mt_token_prompt *prompts; /* NULL: not made yet */
    size_t count;
    size_t constrained; /* how many of the prompts, from the first, have their constraint or need none */
    size_t charged;     /* bytes taken from the server's room while the call waits for its lane */
} mt_preparation;

/* The preparation of a call, or a new one with an ask for the body, which it borrows. NULL: *why. */
mt_preparation *mt_preparation_get(mt_call *call, const json_t *body, mt_failure *why) MT_NODISCARD;

/* Before the call waits in another lane: takes room for the preparation's memory. Where there is none, or memory was
   refused meanwhile so that something may be missing, frees the preparation: it begins again in the other lane. */
void mt_preparation_park(mt_call *call);

void mt_preparation_free(mt_call *call); /* none is fine */

#endif
