/* An expression as an alternating automaton over characters: nodes that read a character, fork, ask what follows, and
   formulas over them that say which nodes have to lead to an end. For regex_formula.c and regex_all.c. */
#ifndef MT_SAMPLE_CONSTRAINT_REGEX_INSIDE_H
#define MT_SAMPLE_CONSTRAINT_REGEX_INSIDE_H

#include "sample/constraint/regex.h"

typedef uint32_t mt_formula;

#define MT_FORMULA_FALSE 0u
#define MT_FORMULA_TRUE 1u

/* What stands before a position. */
typedef enum mt_regex_before { MT_BEFORE_NOTHING, MT_BEFORE_WORD, MT_BEFORE_OTHER } mt_regex_before;

typedef struct mt_regex_node {
    int kind;
    const mt_regex *set; /* of those that read */
    uint32_t next, other;
    bool inverted;
} mt_regex_node;

typedef struct mt_formula_node {
    uint8_t kind;
    uint32_t begin, count; /* of its parts; of a leaf: the node */
    uint32_t same;         /* the next of the same hash, plus 1 */
} mt_formula_node;

typedef struct mt_formulas {
    mt_regex_node *nodes;
    size_t count, cap;
    bool full;
    bool borders_matter; /* some node asks for borders of words */

    mt_formula_node *formulas;
    size_t formula_count, formula_cap;
    mt_formula *parts;
    size_t part_count, part_cap;
    uint32_t *slots;
    mt_formula *known; /* [3][nodes]: what a node stands for, plus 1 */
    bool *entered;
    mt_formula *stack; /* of parts being gathered */
    size_t stack_count, stack_cap;
    size_t work;
} mt_formulas;

void mt_formulas_begin(mt_formulas *m);
void mt_formulas_free(mt_formulas *m);

/* Adds an expression that ends the text; returns where it begins. All are added before the first formula is made. */
uint32_t mt_formulas_add(mt_formulas *m, const mt_regex *regex);

mt_formula mt_formula_enter(mt_formulas *m, uint32_t node, mt_regex_before before);
mt_formula mt_formula_not(mt_formulas *m, mt_formula f);
mt_formula mt_formula_and(mt_formulas *m, mt_formula a, mt_formula b);
mt_formula mt_formula_step(mt_formulas *m, mt_formula f, uint32_t code,
                           mt_regex_before before); /* behind a character */
bool mt_formula_accepts(const mt_formulas *m, mt_formula f);

static inline bool mt_regex_word(uint32_t code)
{
    return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || code == '_' || (code >= 'a' && code <= 'z');
}

#endif
