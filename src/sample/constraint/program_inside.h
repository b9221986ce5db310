/* What the files of the compiler share. */
#ifndef MT_SAMPLE_CONSTRAINT_PROGRAM_INSIDE_H
#define MT_SAMPLE_CONSTRAINT_PROGRAM_INSIDE_H

#include "sample/constraint/program.h"

typedef struct mt_compiler mt_compiler;

struct mt_compiler {
    uint32_t (*compile)(mt_compiler *c, mt_expr e, uint32_t next); /* where it is entered */
    const mt_grammar *g;
    const mt_byteset *covered;
    mt_program *p;
    size_t cap, target_cap, text_cap;
    uint32_t *entries; /* of the rules */
    bool *nullable;
    uint32_t *first_user; /* [instructions + 1] where in users those begin that go on to an instruction or call it */
    uint32_t *users;
    bool read[256]; /* bytes of texts */
    bool full;      /* of instructions, or nobody wants it any more: what is made from then on means nothing */
};

/* program_emit.c */
uint32_t mt_program_emit(mt_compiler *c, mt_instruction in);   /* its number */
uint32_t mt_program_add_targets(mt_compiler *c, size_t count); /* where they are */
uint32_t mt_program_literal(mt_compiler *c, const char *bytes, size_t len, uint32_t next);

/* program_any.c: alternatives. */
uint32_t mt_program_any(mt_compiler *c, const mt_expr_node *any, uint32_t next);

/* program_end.c: finds who goes on to whom; then what can reach the end of its rule without reading, and the
   heights. */
#define MT_PROGRAM_ENDLESS UINT32_MAX /* the height of what never ends */
void mt_program_link(mt_compiler *c);
void mt_program_find_nullable(mt_compiler *c);
void mt_program_find_heights(mt_compiler *c);

#endif
