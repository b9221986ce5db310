/* The syntax tree of a template. Nodes of all types are one struct, so that a pass over the tree needs no case for each
   type; this table says what the fields of each type hold. Immutable once the template is compiled.

   expressions                left         right        third      list               other
     CONST                                                                            value
     NAME                                                                             name, ref
     LIST, TUPLE                                                   items
     DICT                                                          keys and values in turn
     AND, OR                  left         right
     ARITHMETIC               left         right                                      op
     NOT, NEG, POS            operand
     CONCAT                                                        operands of ~
     COMPARE                  first                                operands           ops: one for each
     CONDITION                then         test         else or 0
     ATTRIBUTE                object                                                  name
     ITEM                     object       subscript
     SLICE (a subscript)      start or 0   stop or 0    step or 0
     CALL                     callee                                                  args
     FILTER                   operand or 0                                            name, builtin or 0, args
     TEST                     operand                                                 name, builtin or 0, args

   statements                 left         right        third      body     orelse    other
     OUTPUT                                                        (list: expressions; text is CONST)
     FOR                      target       iterable     test or 0  body     else      test_target, recursive
     IF                       test                                 body     elif: one IF; or else
     SET                      target       value
     SET_BLOCK                target       filter or 0             body
     NAMESPACE (a target)                                                             name, ref, attribute
     MACRO                                                         body               name, ref, params
     CALL_BLOCK               call                                 body               params
     GENERATION                                                    body
     FILTER_BLOCK             filter                               body
     WITH                                                          body               list: targets and values in turn
     AUTOESCAPE               whether to                           body
     BLOCK                                                         body               name, scoped, required,
                                                                                      else_scope: what it sees
     BREAK, CONTINUE
     LOAD                     what include, import and extends name; fails when reached */
#ifndef MT_TEMPLATE_AST_H
#define MT_TEMPLATE_AST_H

#include "template/value.h"

typedef enum mt_tpl_node_type {
    MT_TPL_N_CONST,
    MT_TPL_N_NAME,
    MT_TPL_N_LIST,
    MT_TPL_N_TUPLE,
    MT_TPL_N_DICT,
    MT_TPL_N_AND,
    MT_TPL_N_OR,
    MT_TPL_N_ARITHMETIC,
    MT_TPL_N_NOT,
    MT_TPL_N_NEG,
    MT_TPL_N_POS,
    MT_TPL_N_CONCAT,
    MT_TPL_N_COMPARE,
    MT_TPL_N_CONDITION,
    MT_TPL_N_ATTRIBUTE,
    MT_TPL_N_ITEM,
    MT_TPL_N_SLICE,
    MT_TPL_N_CALL,
    MT_TPL_N_FILTER,
    MT_TPL_N_TEST,
    MT_TPL_N_OUTPUT,
    MT_TPL_N_FOR,
    MT_TPL_N_IF,
    MT_TPL_N_SET,
    MT_TPL_N_SET_BLOCK,
    MT_TPL_N_NAMESPACE,
    MT_TPL_N_MACRO,
    MT_TPL_N_CALL_BLOCK,
    MT_TPL_N_GENERATION,
    MT_TPL_N_FILTER_BLOCK,
    MT_TPL_N_WITH,
    MT_TPL_N_AUTOESCAPE,
    MT_TPL_N_BLOCK,
    MT_TPL_N_BREAK,
    MT_TPL_N_CONTINUE,
    MT_TPL_N_LOAD
} mt_tpl_node_type;

typedef struct mt_tpl_node mt_tpl_node;

typedef struct mt_tpl_nodes {
    mt_tpl_node **at;
    size_t count, cap;
} mt_tpl_nodes;

/* Where a variable lives: `hops` activations outwards (eval.h), then the slot in it. */
typedef struct mt_tpl_ref {
    uint32_t hops, slot;
} mt_tpl_ref;

/* The value of a variable when its scope is entered. */
typedef enum mt_tpl_load_kind {
    MT_TPL_LOAD_PARAM,   /* set by the code that enters the scope */
    MT_TPL_LOAD_RESOLVE, /* the context's variable of that name */
    MT_TPL_LOAD_ALIAS,   /* the variable of that name in the scope around */
    MT_TPL_LOAD_BLOCK,   /* in a block: what the block was given, else what the top level has set, else the context's */
    MT_TPL_LOAD_SELF,    /* `self`: the blocks of the template */
    MT_TPL_LOAD_NOTHING
} mt_tpl_load_kind;

/* A variable of a scope, and how it is initialised. */
typedef struct mt_tpl_load {
    const mt_tpl_str *name;
    mt_tpl_load_kind kind;
    uint32_t slot;
    bool stored; /* it is set, or is a parameter: not only read */
    /* Of ALIAS; of BLOCK the top level's variable, with slot MT_TPL_NO_SLOT where there is none */
    mt_tpl_ref outer;
} mt_tpl_load;

#define MT_TPL_NO_SLOT UINT32_MAX

/* The variables of a scope. */
typedef struct mt_tpl_scope {
    mt_tpl_load *at;
    size_t count, cap;
} mt_tpl_scope;

/* The parameters of a macro or call block, and which special names its body uses. */
typedef struct mt_tpl_params {
    mt_tpl_nodes names;                     /* of type NAME */
    mt_tpl_nodes defaults;                  /* for the last of the names */
    mt_tpl_node *caller, *varargs, *kwargs; /* of type NAME; NULL where the body does not use it */
    bool explicit_caller;                   /* caller is among the names */
} mt_tpl_params;

/* The arguments of a call as written. */
typedef struct mt_tpl_call_args {
    mt_tpl_nodes at;    /* positional */
    mt_tpl_nodes named; /* values of named arguments; names[i] belongs to named.at[i] */
    const mt_tpl_str **names;
    size_t name_cap;
    mt_tpl_node *star, *star_star; /* *args and **kwargs, or NULL */
} mt_tpl_call_args;

struct mt_tpl_node {
    mt_tpl_node_type type;
    mt_tpl_place place;
    uint32_t height; /* longest path of nodes from here down, this one included */

    mt_tpl_node *left, *right, *third;
    mt_tpl_nodes list, body, orelse;

    const mt_tpl_str *name, *attribute;
    mt_tpl_ref ref;
    mt_tpl_value value;
    mt_tpl_operator op, *ops;
    mt_tpl_call_args *args;
    const struct mt_tpl_builtin *builtin;

    mt_tpl_node *test_target; /* of FOR with a test: a copy of the target for the test */
    bool recursive, store;    /* store: a NAME that is set, not read */
    bool scoped, required;    /* of BLOCK */
    mt_tpl_params *params;
    mt_tpl_scope scope, else_scope, test_scope;
    /* Variables of the function that a macro, call block, recursive loop or block is */
    uint32_t slots;
    uint32_t test_slots; /* variables of the function that a loop's test is */
    mt_tpl_ref loop_ref; /* of FOR: the variable `loop` */
    mt_tpl_node *next;   /* of BLOCK: the next in the list of all blocks */
};

/* All blocks of a template, as a list by `next`. */
typedef struct mt_tpl_blocks {
    mt_tpl_node *last;
    size_t count;
} mt_tpl_blocks;

#endif
