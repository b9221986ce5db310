/* The states a program can be in, found as they are needed: a state is a small number, and what a byte makes of it is
   looked up once it was computed. See automaton.c. */
#ifndef MT_SAMPLE_CONSTRAINT_AUTOMATON_H
#define MT_SAMPLE_CONSTRAINT_AUTOMATON_H

#include "sample/constraint/program.h"

typedef struct mt_automaton mt_automaton;

typedef uint32_t mt_automaton_state;

#define MT_STATE_DEAD 0u              /* nothing can follow, and it is no end */
#define MT_STATE_UNKNOWN UINT32_MAX   /* there is no room for it: collect, and try again */
#define MT_STATE_BOUNDLESS UINT32_MAX /* plain characters that may follow */

/* Borrows program. Reserves all the memory it will ever have. Free with mt_automaton_free. */
mt_automaton *mt_automaton_new(const mt_program *program);
void mt_automaton_free(mt_automaton *a); /* NULL is fine */

mt_automaton_state mt_automaton_start(const mt_automaton *a); /* never collected */

/* UNKNOWN when there is no room. */
mt_automaton_state mt_automaton_byte(mt_automaton *a, mt_automaton_state state, unsigned char byte);
mt_automaton_state mt_automaton_token(mt_automaton *a, mt_automaton_state state, uint32_t id); /* a special token */

bool mt_automaton_accepts(const mt_automaton *a, mt_automaton_state state); /* the text may end here */
bool mt_automaton_open(const mt_automaton *a, mt_automaton_state state);    /* something may follow */

/* How many plain characters may follow without another byte between them; MT_STATE_BOUNDLESS for any number. */
uint32_t mt_automaton_plain(const mt_automaton *a, mt_automaton_state state);

/* Whether bytes of this set may follow for a reason that mt_automaton_plain does not count. */
bool mt_automaton_others(const mt_automaton *a, mt_automaton_state state, const mt_byteset *set);

/* The i-th special token that may follow; false from the last on. */
bool mt_automaton_tokens(const mt_automaton *a, mt_automaton_state state, size_t i, uint32_t *id);

/* A state that allows the same texts of up to `bytes` bytes: counters far from their bounds count alike. The state
   itself when there is no room. */
mt_automaton_state mt_automaton_alike(mt_automaton *a, mt_automaton_state state, uint32_t bytes);

/* Forgets all states but those listed, which get new numbers; the others' are void. The epoch counts these times. */
void mt_automaton_collect(mt_automaton *a, mt_automaton_state *const *kept, size_t count);

/* What is done between two rests is bounded: beyond, every state is UNKNOWN. */
void mt_automaton_rest(mt_automaton *a);
uint64_t mt_automaton_epoch(const mt_automaton *a);

size_t mt_automaton_states(const mt_automaton *a); /* known at present */
size_t mt_automaton_bytes(const mt_automaton *a);  /* reserved */

#endif
