/* A regular expression as an alternating automaton over characters: nodes read a character, fork, or look ahead;
   formulas over nodes say which of them have to lead to the end of the text. Used by regex_formula.c and
   regex_all.c. */
#ifndef MT_CONSTRAINT_REGEX_INSIDE_H
#define MT_CONSTRAINT_REGEX_INSIDE_H

#include "constraint/regex.h"

typedef uint32_t mt_formula;

#define MT_FORMULA_FALSE 0u
#define MT_FORMULA_TRUE 1u

/* The character before a position. */
typedef enum mt_regex_before { MT_BEFORE_NOTHING, MT_BEFORE_WORD, MT_BEFORE_OTHER } mt_regex_before;

typedef struct mt_regex_node {
    int kind;
    const mt_regex *set; /* of a node that reads a character */
    uint32_t next, other;
    bool inverted; /* of look-ahead and borders */
} mt_regex_node;

typedef struct mt_formula_node {
    uint8_t kind;
    bool accepts;           /* whether it is true at the end of the text */
    uint32_t begin, count;  /* its parts; of a leaf: the node */
    uint32_t same;          /* next formula with the same hash, plus 1 */
    uint32_t stepped, made; /* the last step that met it, and its result */
    uint32_t listed;        /* the last join that met it */
} mt_formula_node;

typedef struct mt_formulas {
    mt_regex_node *nodes; /* of all expressions */
    size_t count, cap;
    bool full;           /* there are too many nodes or formulas, or too much work: results are meaningless */
    bool borders_matter; /* some node is a word border */
    size_t work, most;   /* nodes and formulas visited, and the limit on them */

    mt_formula_node *formulas;
    size_t formula_count, formula_cap;
    mt_formula *parts; /* of all formulas */
    size_t part_count, part_cap;
    uint32_t *slots;       /* hash table of formulas, plus 1 */
    uint32_t steps, joins; /* so far */
    mt_formula *known;     /* [3][nodes]: the formula of a node, by mt_regex_before, plus 1 */
    uint32_t *open;        /* [nodes]: the depth at which a node is being entered; 0: it is not */
    uint32_t depth;        /* nodes that are being entered within one another */
    uint32_t cut;          /* the least depth that a cycle led back to */
    uint32_t *met, rounds; /* [nodes]: the last round of following forks that met it; all rounds so far */
    uint32_t *ways;        /* nodes that forks lead to */
    size_t way_count, way_cap;
    mt_formula *stack; /* parts that are being collected */
    size_t stack_count, stack_cap;
} mt_formulas;

/* `most`: how much work may be done. */
void mt_formulas_begin(mt_formulas *m, size_t most);
void mt_formulas_free(mt_formulas *m);

/* Adds an expression that must match to the text's end; returns its first node. All are added before the first formula
   is made. */
uint32_t mt_formulas_add(mt_formulas *m, const mt_regex *regex);

/* Formulas: of a node; negation; conjunction; behind a character; whether the text may end. */
mt_formula mt_formula_enter(mt_formulas *m, uint32_t node, mt_regex_before before);
mt_formula mt_formula_not(mt_formulas *m, mt_formula f);
mt_formula mt_formula_and(mt_formulas *m, mt_formula a, mt_formula b);
mt_formula mt_formula_step(mt_formulas *m, mt_formula f, uint32_t code, mt_regex_before before);
bool mt_formula_accepts(const mt_formulas *m, mt_formula f);
void mt_formulas_toil(mt_formulas *m, size_t work); /* full where that is too much */

static inline bool mt_regex_word(uint32_t code)
{
    return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || code == '_' || (code >= 'a' && code <= 'z');
}

#endif
