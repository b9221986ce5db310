/* One answer in the making: a choice of a request. Made on the thread that submits, then the engine's. */
#ifndef MT_ENGINE_SEQUENCE_H
#define MT_ENGINE_SEQUENCE_H

#include "cache/seq.h"
#include "engine/draft.h"
#include "engine/keep.h"
#include "engine/repeat.h"
#include "engine/request.h"
#include "engine/schedule.h"
#include "sample/chain.h"
#include "text/detokenizer.h"

typedef struct mt_sequence {
    mt_request *request;
    uint32_t choice;
    struct mt_voice *voice; /* what is recorded of it */
    mt_seq seq;
    mt_kept kept;
    size_t generated;
    size_t cached;     /* prompt positions that came from the tree */
    mt_counts *counts; /* NULL where no penalty needs them */
    mt_run run;        /* of the constraint, where there is one */
    mt_candidate candidate;
    uint32_t place; /* among those that run: a number that no other has */
    bool begun;     /* BEGUN was sent */
    size_t told;    /* prompt positions whose logprobs were sent */

    /* what it sees: parts of its request's pictures */
    bool blind;                /* its next position is one of a part without features */
    size_t missing;            /* the first part ahead without them */
    size_t pinned, pinned_end; /* parts whose features are pinned for it */
    size_t waited_for;         /* parts before this one were encoded for it, and are no hits */

    mt_draft draft;        /* what may follow what is known */
    size_t guessed, taken; /* tokens of it that were tried so far, and those that were right */

    /* output */
    mt_detokenizer detokenizer;
    mt_stop_state stop_state;
    mt_buf piece, text;  /* a token's text; what of it comes out */
    int stop_met;        /* the stop string that ended it, or -1 */
    uint32_t stop_token; /* the id that did, or MT_TOKEN_NONE */
    mt_repeat repeat;    /* where its request has a repeat_limit */
    bool repeated;       /* which ended it */

    uint64_t began, first, last; /* mt_clock_ns: left the queue, first token, last token */
    uint64_t seated, answering;  /* likewise: has its seat, and has been answering on it; 0: it is not yet */
} mt_sequence;

/* Makes the sequences of a request, in its arena: what of the memory is not from there goes with
   mt_sequence_close. */
mt_sequence *mt_sequences_new(mt_request *request, size_t groups, size_t context, size_t vocab,
                              const mt_tokenizer *tokenizer);
void mt_sequence_close(mt_sequence *s);

/* Whether a is served before b, where nothing else decides: by priority and arrival. */
static inline bool mt_sequence_before(const mt_sequence *a, const mt_sequence *b)
{
    const mt_request *x = a->request, *y = b->request;
    if (x->priority != y->priority)
        return x->priority < y->priority;
    return x->order != y->order ? x->order < y->order : a->choice < b->choice;
}

/* Whether it stands still because its reader is slow. */
static inline bool mt_sequence_paused(const mt_sequence *s)
{
    return s->generated > 0 && atomic_load_explicit(&s->request->paused, memory_order_relaxed);
}

/* Tokens it may still generate. */
static inline size_t mt_sequence_left(const mt_sequence *s)
{
    return s->seq.limit - s->seq.known;
}

/* Tells the request. */
void mt_sequence_begin(mt_sequence *s);
void mt_sequence_prompt(mt_sequence *s, uint32_t token, const mt_logprob *chosen, const mt_logprob *top, size_t count);

/* A sampled token: it is told, and *finish says why if it is the last. */
bool mt_sequence_token(mt_sequence *s, const mt_sampled *sampled, mt_finish *finish);

/* The last event of the choice. err: of MT_FINISH_ERROR. The request is freed with its last choice. */
void mt_sequence_finish(mt_sequence *s, mt_finish finish, const mt_error *err);

#endif
