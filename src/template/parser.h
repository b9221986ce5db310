/* Parses tokens into the syntax tree. */
#ifndef MT_TEMPLATE_PARSER_H
#define MT_TEMPLATE_PARSER_H

#include "template/ast.h"
#include "template/lexer.h"

typedef struct mt_tpl_parser mt_tpl_parser;

struct mt_tpl_parser {
    mt_tpl_run *run;           /* its arena is the template's */
    const mt_tpl_token *token; /* the current one */
    unsigned depth;
    mt_tpl_node *(*expression)(mt_tpl_parser *p); /* parses an expression, for parts that contain others */
    const char *const *end_words;                 /* tags that end the innermost block; NULL outside of blocks */
    mt_tpl_node none;                             /* stands for nodes that there is no memory for */
};

/* Parses a whole template. False: the run has failed. */
bool mt_tpl_parse(mt_tpl_run *run, const mt_tpl_token *tokens, mt_tpl_nodes *out);

/* For the files of the parser. A function that returns a node returns some node also where the run has failed, and may
   be called then; what reads on until some token must look at the run. */

mt_tpl_node *mt_tpl_node_new(mt_tpl_parser *p, mt_tpl_node_type type, const mt_tpl_token *at) MT_NODISCARD;
void mt_tpl_nodes_add(mt_tpl_parser *p, mt_tpl_nodes *list, mt_tpl_node *node); /* nothing once the run has failed */

/* A node's height bounds the recursion of every pass over the tree. mt_tpl_node_checked sets it from all children and
   fails beyond the limit; for a node that grows, mt_tpl_node_raise and mt_tpl_node_check_height do the same child by
   child. */
mt_tpl_node *mt_tpl_node_checked(mt_tpl_parser *p, mt_tpl_node *node);
void mt_tpl_node_raise(mt_tpl_node *node, const mt_tpl_node *child);
void mt_tpl_node_check_height(mt_tpl_parser *p, const mt_tpl_node *node);

/* A node over one or two others; right may be NULL. */
mt_tpl_node *mt_tpl_node_of(mt_tpl_parser *p, mt_tpl_node_type type, const mt_tpl_token *at, mt_tpl_node *left,
                            mt_tpl_node *right) MT_NODISCARD;

bool mt_tpl_fail_nesting(mt_tpl_parser *p, mt_tpl_place at); /* too many expressions or blocks inside one another */
mt_tpl_node *mt_tpl_parse_unexpected(mt_tpl_parser *p);      /* the current token cannot begin an expression */
bool mt_tpl_token_is(const mt_tpl_token *token, const char *word);
const char *mt_tpl_token_describe(const mt_tpl_token *token, char out[64]); /* for errors; returns out */
bool mt_tpl_before(const mt_tpl_parser *p, mt_tpl_token_type type); /* there is more to read before such a token */
bool mt_tpl_accept(mt_tpl_parser *p, mt_tpl_token_type type);
bool mt_tpl_accept_word(mt_tpl_parser *p, const char *word);
bool mt_tpl_expect(mt_tpl_parser *p, mt_tpl_token_type type);
bool mt_tpl_expect_word(mt_tpl_parser *p, const char *word);
bool mt_tpl_parse_enter(mt_tpl_parser *p);
void mt_tpl_parse_leave(mt_tpl_parser *p);

mt_tpl_node *mt_tpl_parse_expression(mt_tpl_parser *p) MT_NODISCARD;
mt_tpl_node *mt_tpl_parse_no_condition(mt_tpl_parser *p) MT_NODISCARD; /* without `if` at its top */
mt_tpl_node *mt_tpl_parse_primary(mt_tpl_parser *p) MT_NODISCARD;
mt_tpl_node *mt_tpl_parse_postfix(mt_tpl_parser *p, mt_tpl_node *node) MT_NODISCARD;     /* .name, [key], (arguments) */
mt_tpl_node *mt_tpl_parse_filter_expr(mt_tpl_parser *p, mt_tpl_node *node) MT_NODISCARD; /* |filter, is test */

/* One expression, or a tuple of several separated by commas. */
mt_tpl_node *mt_tpl_parse_tuple(mt_tpl_parser *p, mt_tpl_node *(*item)(mt_tpl_parser *p),
                                bool in_parentheses) MT_NODISCARD;

/* node | filter | ...; node is NULL for a filter block. at_name: the first filter's bar was read already. */
mt_tpl_node *mt_tpl_parse_filters(mt_tpl_parser *p, mt_tpl_node *node, bool at_name) MT_NODISCARD;

#endif
