/* A compiled constraint (what an answer must look like), and the state of an answer that follows it.

   A constraint is made on any thread, with the token mask of the first token; from then on its states belong to the
   engine's thread, and other threads may only count references. Several answers may follow one constraint: each has a
   mt_run. */
#ifndef MT_CONSTRAINT_CONSTRAINT_H
#define MT_CONSTRAINT_CONSTRAINT_H

#include <stdatomic.h>

#include "base/error.h"
#include "constraint/automaton.h"
#include "constraint/vocabulary.h"

typedef struct mt_constraint mt_constraint;
typedef struct mt_run mt_run;

/* Borrows vocabulary, which must outlive it; grammar only during the call. NULL with a sentence. Free with
   mt_constraint_release. */
mt_constraint *mt_constraint_new(const mt_grammar *grammar, const mt_vocabulary *vocabulary,
                                 mt_error *err) MT_NODISCARD;

/* The same in two steps, for callers that need to know the memory first. mt_constraint_need: bytes that a constraint
   with this program takes. mt_constraint_make owns program afterwards, also on failure; ends soon after patience is
   over (NULL: never). */
size_t mt_constraint_need(const mt_program *program, const mt_vocabulary *vocabulary);
mt_constraint *mt_constraint_make(mt_program *program, const mt_vocabulary *vocabulary, const mt_patience *patience,
                                  mt_error *err) MT_NODISCARD;

mt_constraint *mt_constraint_hold(mt_constraint *c); /* adds a reference; returns c */
void mt_constraint_release(mt_constraint *c);        /* NULL is fine */

const mt_vocabulary *mt_constraint_vocabulary(const mt_constraint *c);

/* Names of schema keywords that are not enforced; "": none. */
const char *mt_constraint_left_out(const mt_constraint *c);
size_t mt_constraint_bytes(const mt_constraint *c); /* all memory that it has */

/* Subtracts its bytes from *total when its last reference is released; total must outlive it. Once, by its maker. */
void mt_constraint_charge(mt_constraint *c, atomic_size_t *total);
bool mt_constraint_shared(const mt_constraint *c); /* whether others than the caller hold references */

/* ---- on the engine's thread; nothing is allocated ---- */

struct mt_run {
    mt_constraint *constraint; /* holds a reference; NULL: the answer is not constrained */
    mt_automaton_state state;
    bool over;           /* the answer is complete: no token may follow */
    bool failed;         /* the constraint needs more memory than it has */
    mt_run *next, *prev; /* list of the constraint's runs */
};

void mt_run_begin(mt_run *run, mt_constraint *c);
void mt_run_copy(mt_run *run, const mt_run *from); /* a copy to try tokens with; end one of the two */
void mt_run_end(mt_run *run);                      /* a zeroed run is fine */

/* The answer goes on with this token. False where that is not allowed, or the run has failed. */
bool mt_run_token(mt_run *run, uint32_t token);

/* Sets the bits of the tokens that may follow; mask has vocabulary->words words. False where the run has failed. */
bool mt_run_mask(mt_run *run, uint32_t *mask);

/* Identifies a mask: runs of one constraint with equal keys have equal masks. */
typedef struct mt_mask_key {
    uint64_t constraint, epoch;
    mt_automaton_state state;
} mt_mask_key;

mt_mask_key mt_run_mask_key(mt_run *run);

#endif
