/* A compiled constraint, and how far an answer has followed it.

   A constraint is made on any thread, with what its first token needs; from then on its states belong to the engine's
   thread, and other threads only count references. Several answers may follow one constraint: each has a run. */
#ifndef MT_SAMPLE_CONSTRAINT_CONSTRAINT_H
#define MT_SAMPLE_CONSTRAINT_CONSTRAINT_H

#include <stdatomic.h>

#include "base/error.h"
#include "sample/constraint/automaton.h"
#include "sample/constraint/vocabulary.h"

typedef struct mt_constraint mt_constraint;
typedef struct mt_run mt_run;

/* Borrows vocabulary, which outlives it; grammar only for the call. NULL with a sentence. Free with
   mt_constraint_release. */
mt_constraint *mt_constraint_new(const mt_grammar *grammar, const mt_vocabulary *vocabulary,
                                 mt_error *err) MT_NODISCARD;

/* The second half of it, for those who want to know first how many bytes it takes. Takes program. Ends
   soon after patience is over; NULL: endless. */
size_t mt_constraint_need(const mt_program *program, const mt_vocabulary *vocabulary);
mt_constraint *mt_constraint_make(mt_program *program, const mt_vocabulary *vocabulary, const mt_patience *patience,
                                  mt_error *err) MT_NODISCARD;

mt_constraint *mt_constraint_hold(mt_constraint *c); /* one more reference; returns it */
void mt_constraint_release(mt_constraint *c);        /* NULL is fine */

const mt_vocabulary *mt_constraint_vocabulary(const mt_constraint *c);
const char *mt_constraint_left_out(const mt_constraint *c); /* names of what is not enforced; "" for nothing */
size_t mt_constraint_bytes(const mt_constraint *c);         /* all that it will ever have */

/* Takes what it has off *total when its last reference goes; total outlives it. Once, by who made it. */
void mt_constraint_charge(mt_constraint *c, atomic_size_t *total);
bool mt_constraint_shared(const mt_constraint *c); /* others than the caller hold it */

/* ---- the engine's thread, and nothing is allocated ---- */

struct mt_run {
    mt_constraint *constraint; /* holds a reference; NULL: nothing constrains the answer */
    mt_automaton_state state;
    bool over;   /* the answer is complete: nothing may follow */
    bool failed; /* the constraint needs more memory than it has */
    mt_run *next, *prev;
};

void mt_run_begin(mt_run *run, mt_constraint *c);
void mt_run_copy(mt_run *run, const mt_run *from); /* to try what may have to be undone: end it, or the other */
void mt_run_end(mt_run *run);                      /* a zeroed one is fine */

/* The answer goes on with this token. False when it may not, or the run has failed. */
bool mt_run_token(mt_run *run, uint32_t token);

/* Sets the bits of the tokens that may follow: mask has the vocabulary's words. False when the run has failed. */
bool mt_run_mask(mt_run *run, uint32_t *mask);

/* A number for all that the mask depends on: equal ones of one constraint have equal masks. */
typedef struct mt_mask_key {
    uint64_t constraint, epoch;
    mt_automaton_state state;
} mt_mask_key;

mt_mask_key mt_run_mask_key(mt_run *run);

#endif
