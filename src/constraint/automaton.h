/* The states of a program (program.h) as it reads a text, found when they are needed: a state is a small number, and
   its successor for a byte is stored once computed. Used by constraint.c. See automaton.c. */
#ifndef MT_CONSTRAINT_AUTOMATON_H
#define MT_CONSTRAINT_AUTOMATON_H

#include "constraint/program.h"

typedef struct mt_automaton mt_automaton;

typedef uint32_t mt_automaton_state;

#define MT_STATE_DEAD 0u              /* the text cannot be continued, and may not end here */
#define MT_STATE_UNKNOWN UINT32_MAX   /* there is no memory for the state: collect, then try again */
#define MT_STATE_BOUNDLESS UINT32_MAX /* result of mt_automaton_plain: any number */

/* Which limit was reached. */
typedef enum mt_automaton_lack {
    MT_LACK_STATES, /* states in memory */
    MT_LACK_PLACES, /* places of one state (automaton.c) */
    MT_LACK_ITEMS,  /* places of all states */
    MT_LACK_STACKS, /* stack frames of all states */
    MT_LACK_WORK,   /* places visited since mt_automaton_rest */
    MT_LACK_STOPPED /* patience was over: the request was cancelled or took too long */
} mt_automaton_lack;

/* Borrows program. Allocates all memory at once. The start state is UNKNOWN where a limit was reached. Until
   mt_automaton_settle, long work ends when patience is over (NULL: never). Free with mt_automaton_free. */
mt_automaton *mt_automaton_new(const mt_program *program, const mt_patience *patience);
void mt_automaton_settle(mt_automaton *a);
void mt_automaton_free(mt_automaton *a); /* NULL is fine */

mt_automaton_state mt_automaton_start(const mt_automaton *a); /* stays valid when states are collected */

/* The state behind a byte, or behind a special token; UNKNOWN when there is no memory for it. */
mt_automaton_state mt_automaton_byte(mt_automaton *a, mt_automaton_state state, unsigned char byte);
mt_automaton_state mt_automaton_token(mt_automaton *a, mt_automaton_state state, uint32_t id);

bool mt_automaton_accepts(const mt_automaton *a, mt_automaton_state state); /* the text may end here */
bool mt_automaton_open(const mt_automaton *a, mt_automaton_state state);    /* the text may go on */

/* How many plain characters (grammar.h) may follow in a row, whatever they are; MT_STATE_BOUNDLESS: any number. */
uint32_t mt_automaton_plain(const mt_automaton *a, mt_automaton_state state);

/* Whether bytes of this set may follow besides the plain characters that mt_automaton_plain counts. */
bool mt_automaton_others(const mt_automaton *a, mt_automaton_state state, const mt_byteset *set);

/* Special token number i that may follow; false when there are no more. */
bool mt_automaton_tokens(const mt_automaton *a, mt_automaton_state state, size_t i, uint32_t *id);

/* A state that allows the same continuations of up to `bytes` bytes, for more cache hits: repetition counts that are
   far from their limits are treated alike. The state itself when there is no memory. */
mt_automaton_state mt_automaton_alike(mt_automaton *a, mt_automaton_state state, uint32_t bytes);

/* A depth-first walk over many texts with common beginnings may find more states than fit. Between mt_automaton_walk
   and mt_automaton_walked, mt_automaton_back forgets the states found since `to` was got from mt_automaton_here. */
typedef struct mt_automaton_mark {
    uint32_t states, stacks;
} mt_automaton_mark;

void mt_automaton_walk(mt_automaton *a);
mt_automaton_mark mt_automaton_here(const mt_automaton *a);
void mt_automaton_back(mt_automaton *a, mt_automaton_mark to);
void mt_automaton_walked(mt_automaton *a);

/* Forgets all states but those in `kept`, which get new numbers; other numbers become invalid. mt_automaton_epoch
   counts these calls. */
void mt_automaton_collect(mt_automaton *a, mt_automaton_state *const *kept, size_t count);

/* Work between two rests is limited: beyond, every new state is UNKNOWN. */
void mt_automaton_rest(mt_automaton *a);
uint64_t mt_automaton_epoch(const mt_automaton *a);

/* Which limit was reached when a state was last UNKNOWN; *most: the limit. */
mt_automaton_lack mt_automaton_lacks(const mt_automaton *a, uint32_t *most);

size_t mt_automaton_bytes(const mt_program *program); /* memory that an automaton of this program allocates */

#endif
