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

/* What there may be too little of. */
typedef enum mt_automaton_lack {
    MT_LACK_STATES, /* known at once */
    MT_LACK_PLACES, /* of one state */
    MT_LACK_ITEMS,  /* places of all states */
    MT_LACK_STACKS, /* frames of all states */
    MT_LACK_WORK,   /* places visited */
    MT_LACK_STOPPED /* nobody wants it any more */
} mt_automaton_lack;

/* Borrows program. Reserves all the memory it will ever have. The start is UNKNOWN where there was too little of
   something. Long work ends when patience is over (NULL: endless), until mt_automaton_settle. Free with
   mt_automaton_free. */
mt_automaton *mt_automaton_new(const mt_program *program, const mt_patience *patience);
void mt_automaton_settle(mt_automaton *a);
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

/* A walk over many texts that begin alike, depth first, may find more states than there is room for. Between
   mt_automaton_walk and mt_automaton_walked it says with each mt_automaton_back that what was found behind `to`,
   which is where it was then, is needed no more. */
typedef struct mt_automaton_mark {
    uint32_t states, stacks;
} mt_automaton_mark;

void mt_automaton_walk(mt_automaton *a);
mt_automaton_mark mt_automaton_here(const mt_automaton *a);
void mt_automaton_back(mt_automaton *a, mt_automaton_mark to);
void mt_automaton_walked(mt_automaton *a);

/* Forgets all states but those listed, which get new numbers; the others' are void. The epoch counts these times. */
void mt_automaton_collect(mt_automaton *a, mt_automaton_state *const *kept, size_t count);

/* What is done between two rests is bounded: beyond, every state is UNKNOWN. */
void mt_automaton_rest(mt_automaton *a);
uint64_t mt_automaton_epoch(const mt_automaton *a);

/* What there was too little of when last a state was UNKNOWN, and how much there is. */
mt_automaton_lack mt_automaton_lacks(const mt_automaton *a, uint32_t *most);

size_t mt_automaton_bytes(const mt_program *program); /* that one of this program reserves */

#endif
