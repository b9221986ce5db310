/* Parses the parts of expressions: literals, names, brackets; subscripts, attributes, calls; filters and tests. */
#include "template/builtin.h"
#include "template/parser.h"

/* Of the current token, which is read. */
static mt_tpl_node *constant(mt_tpl_parser *p, mt_tpl_value value)
{
    mt_tpl_node *node = mt_tpl_node_new(p, MT_TPL_N_CONST, p->token++);

    node->value = value;
    return node;
}

mt_tpl_node *mt_tpl_parse_tuple(mt_tpl_parser *p, mt_tpl_node *(*item)(mt_tpl_parser *p), bool in_parentheses)
{
    mt_tpl_node *tuple = mt_tpl_node_new(p, MT_TPL_N_TUPLE, p->token);
    bool comma = false;

    while (p->token->type != MT_TPL_T_VARIABLE_END && p->token->type != MT_TPL_T_BLOCK_END && p->token->type != ')') {
        mt_tpl_nodes_add(p, &tuple->list, item(p));
        if (!mt_tpl_accept(p, ','))
            break;
        comma = true;
    }
    if (!comma && tuple->list.count == 1)
        return tuple->list.at[0];
    if (tuple->list.count == 0 && !in_parentheses)
        return mt_tpl_parse_unexpected(p);
    return mt_tpl_node_checked(p, tuple);
}

static mt_tpl_node *parse_strings(mt_tpl_parser *p)
{
    mt_tpl_node *node = constant(p, mt_tpl_const(p->token->str));

    while (p->token->type == MT_TPL_T_STRING) { /* 'a' 'b' is 'ab' */
        mt_tpl_str *joined = mt_tpl_str_concat(p->run, node->value.as.str, p->token->str);

        if (!joined)
            return node;
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
    node->name = p->token++->str;
    return node;
}

/* A list, or a dict: then pairs with colons. */
static mt_tpl_node *parse_items(mt_tpl_parser *p, mt_tpl_node_type type, mt_tpl_token_type close)
{
    mt_tpl_node *node = mt_tpl_node_new(p, type, p->token++);

    while (p->token->type != close) {
        mt_tpl_nodes_add(p, &node->list, p->expression(p));
        if (type == MT_TPL_N_DICT && mt_tpl_expect(p, ':'))
            mt_tpl_nodes_add(p, &node->list, p->expression(p));
        if (!mt_tpl_accept(p, ','))
            break;
    }
    mt_tpl_expect(p, close);
    return mt_tpl_node_checked(p, node);
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
        mt_tpl_expect(p, ')');
        return node;
    case '[': return parse_items(p, MT_TPL_N_LIST, ']');
    case '{': return parse_items(p, MT_TPL_N_DICT, '}');
    default: return mt_tpl_parse_unexpected(p);
    }
}

static bool ends_subscript(const mt_tpl_parser *p)
{
    return p->token->type == ']' || p->token->type == ',';
}

/* The contents of brackets: an expression or a slice. */
static mt_tpl_node *parse_subscribed(mt_tpl_parser *p)
{
    const mt_tpl_token *at = p->token;
    mt_tpl_node *first = NULL, *slice;

    if (p->token->type != ':') {
        first = p->expression(p);
        if (p->token->type != ':')
            return first;
    }
    p->token++;
    slice = mt_tpl_node_new(p, MT_TPL_N_SLICE, at);
    slice->left = first;
    if (p->token->type != ':' && !ends_subscript(p))
        slice->right = p->expression(p);
    if (mt_tpl_accept(p, ':') && !ends_subscript(p))
        slice->third = p->expression(p);
    return mt_tpl_node_checked(p, slice);
}

static mt_tpl_node *parse_item(mt_tpl_parser *p, mt_tpl_node *object)
{
    const mt_tpl_token *at = p->token++;
    mt_tpl_node *tuple = mt_tpl_node_new(p, MT_TPL_N_TUPLE, at);

    while (mt_tpl_before(p, ']')) {
        if (tuple->list.count > 0)
            mt_tpl_expect(p, ',');
        mt_tpl_nodes_add(p, &tuple->list, parse_subscribed(p));
    }
    mt_tpl_expect(p, ']');
    for (size_t i = 0; tuple->list.count > 1 && i < tuple->list.count; i++)
        if (tuple->list.at[i]->type == MT_TPL_N_SLICE)
            mt_tpl_fail_at(p->run, at->place, "invalid syntax: a slice among several subscripts");
    mt_tpl_node_checked(p, tuple);
    return mt_tpl_node_of(p, MT_TPL_N_ITEM, at, object, tuple->list.count == 1 ? tuple->list.at[0] : tuple);
}

static mt_tpl_node *parse_attribute(mt_tpl_parser *p, mt_tpl_node *object)
{
    const mt_tpl_token *at = p->token++;
    mt_tpl_node *node;

    if (p->token->type == MT_TPL_T_INTEGER)
        return mt_tpl_node_of(p, MT_TPL_N_ITEM, at, object, constant(p, mt_tpl_int(p->token->integer)));
    node = mt_tpl_node_of(p, MT_TPL_N_ATTRIBUTE, at, object, NULL);
    node->name = p->token->str;
    if (!mt_tpl_accept(p, MT_TPL_T_NAME))
        mt_tpl_fail_at(p->run, p->token->place, "expected name or number");
    return node;
}

static void add_named(mt_tpl_parser *p, mt_tpl_call_args *args)
{
    const mt_tpl_token *name = p->token;

    p->token += 2;
    for (size_t i = 0; i < args->named.count; i++)
        if (mt_tpl_str_equal(args->names[i], name->str))
            mt_tpl_fail_at(p->run, name->place, "keyword argument repeated: %.*s", (int)name->str->len,
                           name->str->data);
    if (mt_tpl_grow(p->run, &args->names, args->named.count, 1, &args->name_cap, sizeof(const mt_tpl_str *)))
        args->names[args->named.count] = name->str;
    mt_tpl_nodes_add(p, &args->named, p->expression(p));
}

static void add_arg(mt_tpl_parser *p, mt_tpl_call_args *args, const mt_tpl_token *open)
{
    const bool one = p->token->type == '*', two = p->token->type == MT_TPL_POW;
    const bool named = p->token->type == MT_TPL_T_NAME && p->token[1].type == '=';

    if (args->star_star || (args->star && !two && !named) || (args->named.count && !one && !two && !named))
        mt_tpl_fail_at(p->run, open->place, "invalid syntax for function call expression");
    else if (named)
        add_named(p, args);
    else if (mt_tpl_accept(p, '*'))
        args->star = p->expression(p);
    else if (mt_tpl_accept(p, MT_TPL_POW))
        args->star_star = p->expression(p);
    else
        mt_tpl_nodes_add(p, &args->at, p->expression(p));
}

/* NULL: there is no memory. */
static mt_tpl_call_args *parse_call_args(mt_tpl_parser *p)
{
    const mt_tpl_token *open = p->token++;
    mt_tpl_call_args *args = mt_tpl_alloc(p->run, sizeof(*args));

    while (mt_tpl_before(p, ')')) {
        add_arg(p, args, open);
        if (p->token->type != ')')
            mt_tpl_expect(p, ',');
    }
    mt_tpl_expect(p, ')');
    return args;
}

static mt_tpl_node *parse_call(mt_tpl_parser *p, mt_tpl_node *callee)
{
    mt_tpl_node *node = mt_tpl_node_new(p, MT_TPL_N_CALL, p->token);

    node->left = callee;
    node->args = parse_call_args(p);
    return mt_tpl_node_checked(p, node);
}

mt_tpl_node *mt_tpl_parse_postfix(mt_tpl_parser *p, mt_tpl_node *node)
{
    for (;;) {
        switch (p->token->type) {
        case '.': node = parse_attribute(p, node); break;
        case '[': node = parse_item(p, node); break;
        case '(': node = parse_call(p, node); break;
        default: return node;
        }
    }
}

/* The name of a filter or test, which may have dots, and its arguments, if any. False: the run has failed. */
static bool parse_builtin(mt_tpl_parser *p, mt_tpl_node *node)
{
    mt_tpl_build name = {.run = p->run};

    node->name = p->token->str;
    mt_tpl_expect(p, MT_TPL_T_NAME);
    if (p->token->type == '.' && !p->run->failed) {
        mt_tpl_build_str(&name, node->name);
        while (mt_tpl_accept(p, '.')) {
            mt_tpl_build_lit(&name, ".");
            if (p->token->type == MT_TPL_T_NAME)
                mt_tpl_build_str(&name, p->token->str);
            mt_tpl_expect(p, MT_TPL_T_NAME);
        }
        node->name = mt_tpl_build_end(&name);
    }
    if (p->token->type == '(')
        node->args = parse_call_args(p);
    return !p->run->failed;
}

mt_tpl_node *mt_tpl_parse_filters(mt_tpl_parser *p, mt_tpl_node *node, bool at_name)
{
    while (at_name || p->token->type == '|') {
        mt_tpl_node *filter = mt_tpl_node_new(p, MT_TPL_N_FILTER, at_name ? p->token : p->token + 1);

        p->token += at_name ? 0 : 1;
        at_name = false;
        filter->left = node;
        if (parse_builtin(p, filter))
            filter->builtin = mt_tpl_filter(filter->name);
        node = mt_tpl_node_checked(p, filter);
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

    test->left = node;
    if (parse_builtin(p, test))
        test->builtin = mt_tpl_test(test->name);
    if (!test->args && starts_test_argument(p)) {
        if (mt_tpl_token_is(p->token, "is"))
            mt_tpl_fail_at(p->run, p->token->place, "You cannot chain multiple tests with is");
        test->args = mt_tpl_alloc(p->run, sizeof(*test->args));
        if (test->args)
            mt_tpl_nodes_add(p, &test->args->at, mt_tpl_parse_postfix(p, mt_tpl_parse_primary(p)));
    }
    mt_tpl_node_checked(p, test);
    return negated ? mt_tpl_node_of(p, MT_TPL_N_NOT, at, test, NULL) : test;
}

mt_tpl_node *mt_tpl_parse_filter_expr(mt_tpl_parser *p, mt_tpl_node *node)
{
    for (;;) {
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
