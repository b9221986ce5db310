/* Parses the parts of expressions: literals, names, brackets; subscripts, attributes, calls; filters and tests. */
#include <string.h>

#include "template/builtin.h"
#include "template/parser.h"

/* Of the current token, which is read. */
static mt_tpl_node *constant(mt_tpl_parser *p, mt_tpl_value value)
{
    mt_tpl_node *node = mt_tpl_node_new(p, MT_TPL_N_CONST, p->token++);

    if (node)
        node->value = value;
    return node;
}

mt_tpl_node *mt_tpl_parse_tuple(mt_tpl_parser *p, mt_tpl_node *(*item)(mt_tpl_parser *p), bool in_parentheses)
{
    mt_tpl_node *tuple = mt_tpl_node_new(p, MT_TPL_N_TUPLE, p->token);
    bool comma = false;

    if (!tuple)
        return NULL;
    while (p->token->type != MT_TPL_T_VARIABLE_END && p->token->type != MT_TPL_T_BLOCK_END && p->token->type != ')') {
        if (!mt_tpl_nodes_add(p, &tuple->list, item(p)))
            return NULL;
        if (!mt_tpl_accept(p, ','))
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
    mt_tpl_node *node = constant(p, mt_tpl_const(p->token->str));

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
    mt_tpl_node *node;

    for (size_t i = 0; i < MT_COUNT(constants); i++)
        if (mt_tpl_token_is(p->token, constants[i].word))
            return constant(p, constants[i].value);
    node = mt_tpl_node_new(p, MT_TPL_N_NAME, p->token);
    if (node)
        node->name = p->token->str;
    p->token++;
    return node;
}

static mt_tpl_node *parse_list(mt_tpl_parser *p)
{
    mt_tpl_node *list = mt_tpl_node_new(p, MT_TPL_N_LIST, p->token++);

    if (!list)
        return NULL;
    while (p->token->type != ']') {
        if (!mt_tpl_nodes_add(p, &list->list, p->expression(p)))
            return NULL;
        if (!mt_tpl_accept(p, ','))
            break;
    }
    return mt_tpl_expect(p, ']') ? mt_tpl_node_checked(p, list) : NULL;
}

static mt_tpl_node *parse_dict(mt_tpl_parser *p)
{
    mt_tpl_node *dict = mt_tpl_node_new(p, MT_TPL_N_DICT, p->token++);

    if (!dict)
        return NULL;
    while (p->token->type != '}') {
        if (!mt_tpl_nodes_add(p, &dict->list, p->expression(p)) || !mt_tpl_expect(p, ':') ||
            !mt_tpl_nodes_add(p, &dict->list, p->expression(p)))
            return NULL;
        if (!mt_tpl_accept(p, ','))
            break;
    }
    return mt_tpl_expect(p, '}') ? mt_tpl_node_checked(p, dict) : NULL;
}

mt_tpl_node *mt_tpl_parse_primary(mt_tpl_parser *p)
{
    mt_tpl_node *node;

    switch (p->token->type) {
    case MT_TPL_T_NAME: return parse_name(p);
    case MT_TPL_T_STRING: return parse_strings(p);
    case MT_TPL_T_INTEGER: return constant(p, mt_tpl_int(p->token->integer));
    case MT_TPL_T_FLOAT: return constant(p, mt_tpl_float(p->token->real));
    case '(':
        p->token++;
        node = mt_tpl_parse_tuple(p, p->expression, true);
        return node && mt_tpl_expect(p, ')') ? node : NULL;
    case '[': return parse_list(p);
    case '{': return parse_dict(p);
    default: mt_tpl_parse_unexpected(p); return NULL;
    }
}

static bool ends_subscript(const mt_tpl_parser *p)
{
    return p->token->type == ']' || p->token->type == ',';
}

/* What stands between brackets: an expression or a slice. */
static mt_tpl_node *parse_subscribed(mt_tpl_parser *p)
{
    const mt_tpl_token *at = p->token;
    mt_tpl_node *first = NULL, *slice;

    if (p->token->type != ':') {
        first = p->expression(p);
        if (!first || p->token->type != ':')
            return first;
    }
    p->token++;
    slice = mt_tpl_node_new(p, MT_TPL_N_SLICE, at);
    if (!slice)
        return NULL;
    slice->left = first;
    if (p->token->type != ':' && !ends_subscript(p))
        slice->right = p->expression(p);
    if (!p->run->failed && mt_tpl_accept(p, ':') && !ends_subscript(p))
        slice->third = p->expression(p);
    return p->run->failed ? NULL : mt_tpl_node_checked(p, slice);
}

static mt_tpl_node *parse_item(mt_tpl_parser *p, mt_tpl_node *object)
{
    const mt_tpl_token *at = p->token++;
    mt_tpl_node *tuple = mt_tpl_node_new(p, MT_TPL_N_TUPLE, at);

    if (!tuple)
        return NULL;
    while (p->token->type != ']') {
        if (tuple->list.count > 0 && !mt_tpl_expect(p, ','))
            return NULL;
        if (!mt_tpl_nodes_add(p, &tuple->list, parse_subscribed(p)))
            return NULL;
    }
    p->token++;
    for (size_t i = 0; tuple->list.count > 1 && i < tuple->list.count; i++)
        if (tuple->list.at[i]->type == MT_TPL_N_SLICE) {
            mt_tpl_fail_at(p->run, at->place, "invalid syntax: a slice among several subscripts");
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

    if (p->token->type == MT_TPL_T_INTEGER)
        return mt_tpl_node_binary(p, MT_TPL_N_ITEM, at, object, constant(p, mt_tpl_int(p->token->integer)));
    if (p->token->type != MT_TPL_T_NAME) {
        mt_tpl_fail_at(p->run, p->token->place, "expected name or number");
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
            return mt_tpl_fail_at(p->run, name->place, "keyword argument repeated: %.*s", (int)name->str->len,
                                  name->str->data);
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
    const bool one = p->token->type == '*', two = p->token->type == MT_TPL_POW;
    const bool named = p->token->type == MT_TPL_T_NAME && p->token[1].type == '=';

    if (args->star_star || (args->star && !two && !named) || (args->named.count && !one && !two && !named))
        return mt_tpl_fail_at(p->run, open->place, "invalid syntax for function call expression");
    if (named)
        return add_named(p, args);
    if (!one && !two)
        return mt_tpl_nodes_add(p, &args->at, p->expression(p));
    p->token++;
    *(one ? &args->star : &args->star_star) = p->expression(p);
    return !p->run->failed;
}

static mt_tpl_call_args *parse_call_args(mt_tpl_parser *p)
{
    const mt_tpl_token *open = p->token;
    mt_tpl_call_args *args = mt_tpl_alloc(p->run, sizeof(*args));

    if (!args || !mt_tpl_expect(p, '('))
        return NULL;
    while (p->token->type != ')') {
        if (!add_arg(p, args, open))
            return NULL;
        if (p->token->type != ')' && !mt_tpl_expect(p, ','))
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
        case '.': node = parse_attribute(p, node); break;
        case '[': node = parse_item(p, node); break;
        case '(': node = parse_call(p, node); break;
        default: return node;
        }
    }
}

/* The name of a filter or test, which may have dots, and its arguments, if any. */
static bool parse_builtin(mt_tpl_parser *p, mt_tpl_node *node)
{
    const mt_tpl_token *token = p->token;
    mt_tpl_build name = {.run = p->run};

    if (!mt_tpl_expect(p, MT_TPL_T_NAME))
        return false;
    node->name = token->str;
    if (p->token->type == '.') {
        mt_tpl_build_str(&name, token->str);
        while (mt_tpl_accept(p, '.')) {
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
    if (p->token->type != '(')
        return true;
    node->args = parse_call_args(p);
    return node->args != NULL;
}

mt_tpl_node *mt_tpl_parse_filters(mt_tpl_parser *p, mt_tpl_node *node, bool at_name)
{
    while (at_name || p->token->type == '|') {
        mt_tpl_node *filter = mt_tpl_node_new(p, MT_TPL_N_FILTER, at_name ? p->token : p->token + 1);

        p->token += at_name ? 0 : 1;
        at_name = false;
        if (!filter || !parse_builtin(p, filter))
            return NULL;
        filter->left = node;
        filter->builtin = mt_tpl_filter(filter->name);
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
    case '[':
    case '{': return true;
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
    test->builtin = mt_tpl_test(test->name);
    if (!test->args && starts_test_argument(p)) {
        if (mt_tpl_token_is(p->token, "is")) {
            mt_tpl_fail_at(p->run, p->token->place, "You cannot chain multiple tests with is");
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
        if (p->token->type == '|')
            node = mt_tpl_parse_filters(p, node, false);
        else if (mt_tpl_token_is(p->token, "is"))
            node = parse_test(p, node);
        else if (p->token->type == '(')
            node = parse_call(p, node);
        else
            return node;
    }
}
