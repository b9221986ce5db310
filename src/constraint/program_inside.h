/* Shared by the files program*.c, which compile a grammar. */
#ifndef MT_CONSTRAINT_PROGRAM_INSIDE_H
#define MT_CONSTRAINT_PROGRAM_INSIDE_H

#include "constraint/program.h"

typedef struct mt_compiler mt_compiler;

struct mt_compiler {
    /* compiles an expression that is followed by instruction `next`; returns its first instruction */
    uint32_t (*compile)(mt_compiler *c, mt_expr e, uint32_t next);
    const mt_grammar *g;
    const mt_byteset *covered;
    mt_program *p;
    size_t cap, target_cap, text_cap;
    uint32_t *entries; /* first instruction of each rule */
    bool *nullable;    /* [instructions]: the end of the rule can be reached without reading */
    /* [instructions + 1]: index in users of the first instruction that continues with or calls this one */
    uint32_t *first_user;
    uint32_t *users;
    bool read[256]; /* bytes that occur in texts */
    bool full;      /* too many instructions, or patience is over: further results are meaningless */
};

/* program_emit.c */
uint32_t mt_program_emit(mt_compiler *c, mt_instruction in);   /* returns its number */
uint32_t mt_program_add_targets(mt_compiler *c, size_t count); /* returns the index of the first */
uint32_t mt_program_literal(mt_compiler *c, const char *bytes, size_t len, uint32_t next);

/* program_any.c: alternatives. */
uint32_t mt_program_any(mt_compiler *c, const mt_expr_node *any, uint32_t next);

/* program_end.c: mt_program_link finds the users of each instruction; the others set nullable and heights. */
#define MT_PROGRAM_ENDLESS UINT32_MAX /* the height of an instruction from which the rule's end cannot be reached */
void mt_program_link(mt_compiler *c);
void mt_program_find_nullable(mt_compiler *c);
void mt_program_find_heights(mt_compiler *c);

#endif
