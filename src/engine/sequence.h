/* A sequence: one answer in the making, that is one choice of a request. Made on the thread that submits the request,
   then used by the engine's thread alone. */
#ifndef MT_ENGINE_SEQUENCE_H
#define MT_ENGINE_SEQUENCE_H

#include "cache/seq.h"
#include "constraint/constraint.h"
#include "engine/draft.h"
#include "engine/keep.h"
#include "engine/repeat.h"
#include "engine/request.h"
#include "engine/schedule.h"
#include "sample/chain.h"
#include "sample/thought.h"
#include "text/detokenizer.h"

typedef struct mt_sequence {
    mt_request *request;
    uint32_t choice;
    struct mt_voice *voice; /* the dashboard's record of it; NULL: it is not recorded */
    mt_seq seq;             /* its tokens and its pages in the prefix cache */
    mt_kept kept;           /* what cache tiers have of it */
    size_t generated;       /* tokens of the answer so far */
    size_t cached;          /* prompt positions that came from the prefix tree or a tier */
    mt_counts *counts;      /* how often each token occurred; NULL where no sampling penalty needs it */
    mt_run run;             /* the state of the constraint, where the request has one */
    mt_thought thought;     /* where it is in thinking, where the request limits that */
    mt_candidate candidate; /* how the scheduler sees it */
    uint32_t place;         /* its number among the sequences that run, which no other of them has */
    bool begun;             /* the BEGUN event was sent */
    size_t told;            /* prompt positions whose PROMPT events were sent */

    /* features of pictures; parts are elements of request->media_parts */
    bool lacks_features;       /* the next position belongs to a part whose features do not exist yet */
    size_t missing;            /* the first part ahead of seq.done without features */
    size_t pinned, pinned_end; /* [pinned, pinned_end): parts whose features are pinned for it */
    /* parts before this one were encoded because this sequence waited, and do not count as cache hits */
    size_t waited_for;

    mt_draft draft;        /* guesses at the next tokens */
    size_t guessed, taken; /* guesses that were tried so far, and how many of them were right */

    /* output */
    mt_detokenizer detokenizer;
    mt_stop_state stop_state;
    mt_buf piece, text;  /* the text of one token; the text that goes out with the next event */
    int stop_met;        /* index of the stop string that ended the answer, or -1 */
    uint32_t stop_token; /* the token id that ended the answer, or MT_TOKEN_NONE */
    mt_repeat repeat;    /* counts repetition, where the request has a repeat_limit */
    bool repeated;       /* repeat_limit ended the answer */

    uint64_t began, first, last; /* mt_clock_ns: when it left the queue, when its first and its last token came */
    /* mt_clock_ns: when it got its present seat, and when it began to answer on it; 0: not yet */
    uint64_t seated, answering;
} mt_sequence;

/* Makes the sequences of a request, one for each choice, in the request's arena. mt_sequence_close frees what a
   sequence holds outside the arena. */
mt_sequence *mt_sequences_new(mt_request *request, size_t groups, size_t context, size_t vocab,
                              const mt_tokenizer *tokenizer);
void mt_sequence_close(mt_sequence *s);

/* Whether a is served before b where only priority and arrival decide. */
static inline bool mt_sequence_before(const mt_sequence *a, const mt_sequence *b)
{
    const mt_request *x = a->request, *y = b->request;
    if (x->priority != y->priority)
        return x->priority < y->priority;
    return x->order != y->order ? x->order < y->order : a->choice < b->choice;
}

/* Whether the sequence generates nothing now because its client reads slowly. */
static inline bool mt_sequence_paused(const mt_sequence *s)
{
    return s->generated > 0 && atomic_load_explicit(&s->request->paused, memory_order_relaxed);
}

/* How many tokens the sequence may still generate. */
static inline size_t mt_sequence_left(const mt_sequence *s)
{
    return s->seq.limit - s->seq.known;
}

/* Send BEGUN, and PROMPT for one prompt position. */
void mt_sequence_begin(mt_sequence *s);
void mt_sequence_prompt(mt_sequence *s, uint32_t token, const mt_logprob *chosen, size_t rank, const mt_logprob *top,
                        size_t count);

/* Adds a sampled token and sends its event. True when the token is the last; then *finish says why. */
bool mt_sequence_token(mt_sequence *s, const mt_sampled *sampled, mt_finish *finish);

/* Takes a state of thinking, its own or a copy to try guesses with, over a token. */
void mt_sequence_think(mt_sequence *s, mt_thought *thought, uint32_t token);

/* Sends DONE. err: the reason, with MT_FINISH_ERROR. The request is freed with the last of its choices. */
void mt_sequence_finish(mt_sequence *s, mt_finish finish, const mt_error *err);

#endif
