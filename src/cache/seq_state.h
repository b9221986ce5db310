/* The part of a sequence that is its recurrent state; for seq.c alone. */
#ifndef MT_CACHE_SEQ_STATE_H
#define MT_CACHE_SEQ_STATE_H

#include "cache/seq.h"

/* Where the states of a new sequence's prompt are to be kept. */
void mt_seq_state_plan(mt_seq *seq);

/* Takes the state that the hit ends at. */
void mt_seq_state_resume(mt_seq *seq, const mt_hit *hit);

/* A slot for what the next step leaves. False when there is none. */
bool mt_seq_state_grow(mt_seq *seq) MT_NODISCARD;

/* Piece i of the step is done and in the tree. */
void mt_seq_state_commit(mt_seq *seq, size_t i);

/* Leaves the state to the tree, where there is something in it that the tree has not. */
void mt_seq_state_suspend(mt_seq *seq);

#endif
