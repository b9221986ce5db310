/* The recurrent state of a sequence (mt_seq_state in seq.h). Called by seq.c alone. */
#ifndef MT_CACHE_SEQ_STATE_H
#define MT_CACHE_SEQ_STATE_H

#include "cache/seq.h"

/* Chooses the positions of a new sequence's prompt whose states are to become anchors. */
void mt_seq_state_plan(mt_seq *seq);

/* Takes the state of the anchor that the hit ends at. */
void mt_seq_state_resume(mt_seq *seq, const mt_hit *hit);

/* Chooses the slot that the next step writes. False when none is free. */
bool mt_seq_state_grow(mt_seq *seq) MT_NODISCARD;

/* Piece i of the step is computed, and its positions are in the tree. */
void mt_seq_state_commit(mt_seq *seq, size_t i);

/* Makes the state an anchor, where the tree has none there; then drops it. */
void mt_seq_state_suspend(mt_seq *seq);

#endif
