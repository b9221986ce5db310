/* The names of a grammar's rules while its text is read: each has a rule from the moment that it is first met. */
#ifndef MT_CONSTRAINT_GRAMMAR_NAMES_H
#define MT_CONSTRAINT_GRAMMAR_NAMES_H

#include "constraint/grammar.h"

typedef struct mt_grammar_name {
    const char *name; /* borrowed */
    size_t len;
    mt_rule rule;
    bool defined; /* set by the reader */
} mt_grammar_name;

typedef struct mt_grammar_names {
    mt_grammar *g; /* borrowed */
    mt_grammar_name *at;
    size_t count, cap;
    uint32_t *slots; /* [2 * cap], a hash table: 1 + index of a name in `at`; 0: empty */
} mt_grammar_names;

/* Finds a name, or adds it with a new rule. The pointer is valid until the next call. */
mt_grammar_name *mt_grammar_names_find(mt_grammar_names *names, const char *name, size_t len);

/* Whether all are defined; false with a sentence that names one that is not. */
bool mt_grammar_names_check(const mt_grammar_names *names, mt_error *err);

/* The rule of a name that is defined; false: there is none. */
bool mt_grammar_names_rule(const mt_grammar_names *names, const char *name, mt_rule *rule);

void mt_grammar_names_free(mt_grammar_names *names);

/* A list of expressions while it grows; free `at` with mt_free. */
typedef struct mt_grammar_parts {
    mt_expr *at;
    size_t count, cap;
} mt_grammar_parts;

void mt_grammar_parts_add(mt_grammar_parts *parts, mt_expr e);

/* Fails with a sentence: the subject ("the grammar"), what is wrong with it, and the line of text[at]. Returns
   false. */
bool mt_grammar_fail(const char *subject, const char *what, const char *text, size_t at, mt_error *err);

#endif
