/* Parses the parts of expressions: literals, names, brackets; subscripts, attributes, calls; filters and tests. */
#include <string.h>

#include "template/builtin.h"
#include "template/parser.h"

static mt_tpl_node *constant(mt_tpl_parser *p, mt_tpl_value value)
{
    mt_tpl_node *node = mt_tpl_node_new(p, MT_TPL_N_CONST, p->token);

    if (node)
        node->value = value;
    return mt_tpl_node_checked(p, node);
}

mt_tpl_node *mt_tpl_parse_tuple(mt_tpl_parser *p, mt_tpl_node *(*item)(mt_tpl_parser *p), bool in_parentheses)
{
    mt_tpl_node *tuple = mt_tpl_node_new(p, MT_TPL_N_TUPLE, p->token);
    bool comma = false;

    if (!tuple)
        return NULL;
    while (p->token->type != MT_TPL_T_VARIABLE_END && p->token->type != MT_TPL_T_BLOCK_END &&
           p->token->type != MT_TPL_T_RPAREN) {
        if (!mt_tpl_nodes_add(p, &tuple->list, item(p)))
            return NULL;
        if (!mt_tpl_accept(p, MT_TPL_T_COMMA))
            break;
        comma = true;
    }
    if (!comma && tuple->list.count == 1)
        return tuple->list.at[0];
    if (tuple->list.count == 0 && !in_parentheses) {
        mt_tpl_parse_unexpected(p);
        return NULL;
    }
    return mt_tpl_node_checked(p, tuple);
}

static mt_tpl_node *parse_strings(mt_tpl_parser *p)
{
    mt_tpl_value value;
    mt_tpl_node *node;

    mt_tpl_set_str(&value, p->token->str);
    node = constant(p, value);
    p->token++;
    while (node && p->token->type == MT_TPL_T_STRING) { /* 'a' 'b' is 'ab' */
        mt_tpl_str *joined = mt_tpl_str_concat(p->run, node->value.as.str, p->token->str);

        if (!joined)
            return NULL;
        joined->room = NULL; /* constants are shared by threads, so it must not grow */
        mt_tpl_str_chars(joined);
        mt_tpl_set_str(&node->value, joined);
        p->token++;
    }
    return node;
}

static mt_tpl_node *parse_name(mt_tpl_parser *p)
{
    static const struct {
        const char *word;
        mt_tpl_value value;
    } constants[] = {
        {"true", {.kind = MT_TPL_BOOL, .as.boolean = true}},
        {"True", {.kind = MT_TPL_BOOL, .as.boolean = true}},
        {"false", {.kind = MT_TPL_BOOL}},
        {"False", {.kind = MT_TPL_BOOL}},
        {"none", {.kind = MT_TPL_NONE}},
        {"None", {.kind = MT_TPL_NONE}},
    };
    mt_tpl_node *node = NULL;

    for (size_t i = 0; i < MT_COUNT(constants); i++)
        if (mt_tpl_token_is(p->token, constants[i].word)) {
            node = constant(p, constants[i].value);
            p->token++;
            return node;
        }
    node = mt_tpl_node_new(p, MT_TPL_N_NAME, p->token);
    if (node)
        node->name = p->token->str;
    p->token++;
    return mt_tpl_node_checked(p, node);
}

static mt_tpl_node *parse_list(mt_tpl_parser *p)
{
    mt_tpl_node *list = mt_tpl_node_new(p, MT_TPL_N_LIST, p->token++);

    if (!list)
        return NULL;
    while (p->token->type != MT_TPL_T_RBRACKET) {
        if (!mt_tpl_nodes_add(p, &list->list, p->expression(p)))
            return NULL;
        if (!mt_tpl_accept(p, MT_TPL_T_COMMA))
            break;
    }
    return mt_tpl_expect(p, MT_TPL_T_RBRACKET) ? mt_tpl_node_checked(p, list) : NULL;
}

static mt_tpl_node *parse_dict(mt_tpl_parser *p)
{
    mt_tpl_node *dict = mt_tpl_node_new(p, MT_TPL_N_DICT, p->token++);

    if (!dict)
        return NULL;
    while (p->token->type != MT_TPL_T_RBRACE) {
        if (!mt_tpl_nodes_add(p, &dict->list, p->expression(p)) || !mt_tpl_expect(p, MT_TPL_T_COLON) ||
            !mt_tpl_nodes_add(p, &dict->list, p->expression(p)))
            return NULL;
        if (!mt_tpl_accept(p, MT_TPL_T_COMMA))
            break;
    }
    return mt_tpl_expect(p, MT_TPL_T_RBRACE) ? mt_tpl_node_checked(p, dict) : NULL;
}

mt_tpl_node *mt_tpl_parse_primary(mt_tpl_parser *p)
{
    mt_tpl_node *node;

    switch (p->token->type) {
    case MT_TPL_T_NAME: return parse_name(p);
    case MT_TPL_T_STRING: return parse_strings(p);
    case MT_TPL_T_INTEGER:
        node = constant(p, mt_tpl_int(p->token->integer));
        p->token++;
        return node;
    case MT_TPL_T_FLOAT:
        node = constant(p, mt_tpl_float(p->token->real));
        p->token++;
        return node;
    case MT_TPL_T_LPAREN:
        p->token++;
        node = mt_tpl_parse_tuple(p, p->expression, true);
        return node && mt_tpl_expect(p, MT_TPL_T_RPAREN) ? node : NULL;
    case MT_TPL_T_LBRACKET: return parse_list(p);
    case MT_TPL_T_LBRACE: return parse_dict(p);
    default: mt_tpl_parse_unexpected(p); return NULL;
    }
}

static bool ends_subscript(const mt_tpl_parser *p)
{
    return p->token->type == MT_TPL_T_RBRACKET || p->token->type == MT_TPL_T_COMMA;
}

/* What stands between brackets: an expression or a slice. */
static mt_tpl_node *parse_subscribed(mt_tpl_parser *p)
{
    const mt_tpl_token *at = p->token;
    mt_tpl_node *first = NULL, *slice;

    if (p->token->type != MT_TPL_T_COLON) {
        first = p->expression(p);
        if (!first || p->token->type != MT_TPL_T_COLON)
            return first;
    }
    p->token++;
    slice = mt_tpl_node_new(p, MT_TPL_N_SLICE, at);
    if (!slice)
        return NULL;
    slice->left = first;
    if (p->token->type != MT_TPL_T_COLON && !ends_subscript(p)) {
        slice->right = p->expression(p);
        if (!slice->right)
            return NULL;
    }
    if (mt_tpl_accept(p, MT_TPL_T_COLON) && !ends_subscript(p)) {
        slice->third = p->expression(p);
        if (!slice->third)
            return NULL;
    }
    return mt_tpl_node_checked(p, slice);
}

static mt_tpl_node *parse_item(mt_tpl_parser *p, mt_tpl_node *object)
{
    const mt_tpl_token *at = p->token++;
    mt_tpl_node *tuple = mt_tpl_node_new(p, MT_TPL_N_TUPLE, at);

    if (!tuple)
        return NULL;
    while (p->token->type != MT_TPL_T_RBRACKET) {
        if (tuple->list.count > 0 && !mt_tpl_expect(p, MT_TPL_T_COMMA))
            return NULL;
        if (!mt_tpl_nodes_add(p, &tuple->list, parse_subscribed(p)))
            return NULL;
    }
    p->token++;
    for (size_t i = 0; tuple->list.count > 1 && i < tuple->list.count; i++)
        if (tuple->list.at[i]->type == MT_TPL_N_SLICE) {
            mt_tpl_parse_fail(p, at, "invalid syntax: a slice among several subscripts");
            return NULL;
        }
    if (!mt_tpl_node_check(p, tuple))
        return NULL;
    return mt_tpl_node_binary(p, MT_TPL_N_ITEM, at, object, tuple->list.count == 1 ? tuple->list.at[0] : tuple);
}

static mt_tpl_node *parse_attribute(mt_tpl_parser *p, mt_tpl_node *object)
{
    const mt_tpl_token *at = p->token++;
    mt_tpl_node *node;

    if (p->token->type == MT_TPL_T_INTEGER) {
        node = constant(p, mt_tpl_int(p->token->integer));
        p->token++;
        return mt_tpl_node_binary(p, MT_TPL_N_ITEM, at, object, node);
    }
    if (p->token->type != MT_TPL_T_NAME) {
        mt_tpl_parse_fail(p, p->token, "expected name or number");
        return NULL;
    }
    node = mt_tpl_node_unary(p, MT_TPL_N_ATTRIBUTE, at, object);
    if (node)
        node->name = p->token->str;
    p->token++;
    return node;
}

static bool add_named(mt_tpl_parser *p, mt_tpl_call_args *args)
{
    const mt_tpl_token *name = p->token;
    const mt_tpl_str **names;

    p->token += 2;
    for (size_t i = 0; i < args->named.count; i++)
        if (mt_tpl_str_equal(args->names[i], name->str))
            return mt_tpl_parse_fail(p, name, "keyword argument repeated: %.*s", (int)name->str->len, name->str->data);
    names = mt_tpl_alloc_array(p->run, args->named.count + 1, sizeof(*names));
    if (!names)
        return false;
    if (args->named.count)
        memcpy(names, args->names, args->named.count * sizeof(const mt_tpl_str *));
    names[args->named.count] = name->str;
    args->names = names;
    return mt_tpl_nodes_add(p, &args->named, p->expression(p));
}

static bool add_arg(mt_tpl_parser *p, mt_tpl_call_args *args, const mt_tpl_token *open)
{
    bool ok = true;

    if (p->token->type == MT_TPL_T_MUL) {
        ok = !args->star && !args->star_star;
        p->token++;
        if (ok)
            args->star = p->expression(p);
        if (ok && !args->star)
            return false;
    } else if (p->token->type == MT_TPL_T_POW) {
        ok = !args->star_star;
        p->token++;
        if (ok)
            args->star_star = p->expression(p);
        if (ok && !args->star_star)
            return false;
    } else if (p->token->type == MT_TPL_T_NAME && p->token[1].type == MT_TPL_T_ASSIGN) {
        ok = !args->star_star;
        if (ok)
            return add_named(p, args);
    } else {
        ok = !args->star && !args->star_star && args->named.count == 0;
        if (ok)
            return mt_tpl_nodes_add(p, &args->at, p->expression(p));
    }
    return ok || mt_tpl_parse_fail(p, open, "invalid syntax for function call expression");
}

static mt_tpl_call_args *parse_call_args(mt_tpl_parser *p)
{
    const mt_tpl_token *open = p->token;
    mt_tpl_call_args *args = mt_tpl_alloc(p->run, sizeof(*args));

    if (!args || !mt_tpl_expect(p, MT_TPL_T_LPAREN))
        return NULL;
    while (p->token->type != MT_TPL_T_RPAREN) {
        if (!add_arg(p, args, open))
            return NULL;
        if (p->token->type != MT_TPL_T_RPAREN && !mt_tpl_expect(p, MT_TPL_T_COMMA))
            return NULL;
    }
    p->token++;
    return args;
}

static mt_tpl_node *parse_call(mt_tpl_parser *p, mt_tpl_node *callee)
{
    mt_tpl_node *node = mt_tpl_node_new(p, MT_TPL_N_CALL, p->token);

    if (!node)
        return NULL;
    node->left = callee;
    node->args = parse_call_args(p);
    return node->args ? mt_tpl_node_checked(p, node) : NULL;
}

mt_tpl_node *mt_tpl_parse_postfix(mt_tpl_parser *p, mt_tpl_node *node)
{
    for (;;) {
        if (!node)
            return NULL;
        switch (p->token->type) {
        case MT_TPL_T_DOT: node = parse_attribute(p, node); break;
        case MT_TPL_T_LBRACKET: node = parse_item(p, node); break;
        case MT_TPL_T_LPAREN: node = parse_call(p, node); break;
        default: return node;
        }
    }
}

/* The name of a filter or test, which may have dots, and its arguments, if any. */
static bool parse_builtin(mt_tpl_parser *p, mt_tpl_node *node)
{
    const mt_tpl_token *token = p->token;
    mt_tpl_build name;

    if (!mt_tpl_expect(p, MT_TPL_T_NAME))
        return false;
    node->name = token->str;
    if (p->token->type == MT_TPL_T_DOT) {
        mt_tpl_build_init(&name, p->run);
        mt_tpl_build_str(&name, token->str);
        while (mt_tpl_accept(p, MT_TPL_T_DOT)) {
            mt_tpl_build_lit(&name, ".");
            if (p->token->type == MT_TPL_T_NAME)
                mt_tpl_build_str(&name, p->token->str);
            if (!mt_tpl_expect(p, MT_TPL_T_NAME))
                return false;
        }
        node->name = mt_tpl_build_end(&name);
        if (!node->name)
            return false;
    }
    if (p->token->type != MT_TPL_T_LPAREN)
        return true;
    node->args = parse_call_args(p);
    return node->args != NULL;
}

mt_tpl_node *mt_tpl_parse_filters(mt_tpl_parser *p, mt_tpl_node *node, bool at_name)
{
    while (at_name || p->token->type == MT_TPL_T_PIPE) {
        mt_tpl_node *filter = mt_tpl_node_new(p, MT_TPL_N_FILTER, at_name ? p->token : p->token + 1);

        p->token += at_name ? 0 : 1;
        at_name = false;
        if (!filter || !parse_builtin(p, filter))
            return NULL;
        filter->left = node;
        filter->builtin = mt_tpl_filter(filter->name->data, filter->name->len);
        node = mt_tpl_node_checked(p, filter);
        if (!node)
            return NULL;
    }
    return node;
}

static bool starts_test_argument(const mt_tpl_parser *p)
{
    switch (p->token->type) {
    case MT_TPL_T_NAME:
        return !mt_tpl_token_is(p->token, "else") && !mt_tpl_token_is(p->token, "or") &&
               !mt_tpl_token_is(p->token, "and");
    case MT_TPL_T_STRING:
    case MT_TPL_T_INTEGER:
    case MT_TPL_T_FLOAT:
    case MT_TPL_T_LBRACKET:
    case MT_TPL_T_LBRACE: return true;
    default: return false;
    }
}

static mt_tpl_node *parse_test(mt_tpl_parser *p, mt_tpl_node *node)
{
    const mt_tpl_token *at = p->token++;
    bool negated = mt_tpl_accept_word(p, "not");
    mt_tpl_node *test = mt_tpl_node_new(p, MT_TPL_N_TEST, at);

    if (!test || !parse_builtin(p, test))
        return NULL;
    test->left = node;
    test->builtin = mt_tpl_test(test->name->data, test->name->len);
    if (!test->args && starts_test_argument(p)) {
        if (mt_tpl_token_is(p->token, "is")) {
            mt_tpl_parse_fail(p, p->token, "You cannot chain multiple tests with is");
            return NULL;
        }
        test->args = mt_tpl_alloc(p->run, sizeof(*test->args));
        if (!test->args || !mt_tpl_nodes_add(p, &test->args->at, mt_tpl_parse_postfix(p, mt_tpl_parse_primary(p))))
            return NULL;
    }
    test = mt_tpl_node_checked(p, test);
    return negated ? mt_tpl_node_unary(p, MT_TPL_N_NOT, at, test) : test;
}

mt_tpl_node *mt_tpl_parse_filter_expr(mt_tpl_parser *p, mt_tpl_node *node)
{
    for (;;) {
        if (!node)
            return NULL;
        if (p->token->type == MT_TPL_T_PIPE)
            node = mt_tpl_parse_filters(p, node, false);
        else if (mt_tpl_token_is(p->token, "is"))
            node = parse_test(p, node);
        else if (p->token->type == MT_TPL_T_LPAREN)
            node = parse_call(p, node);
        else
            return node;
    }
}
