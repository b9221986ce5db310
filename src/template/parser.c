/* Parses statements. Parsing recurses; p->depth bounds it, and the height of nodes bounds every later pass over the
   tree. */
#include "template/parser.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "template/unicode.h"

static bool parse_body(mt_tpl_parser *p, const char *const *end_words, mt_tpl_nodes *out);

/* Makes an expression a target of an assignment. False: it cannot be one. */
static bool make_target(mt_tpl_parser *p, mt_tpl_node *node)
{
    if (!node)
        return false;
    if (node->type == MT_TPL_N_NAME) {
        node->store = true;
        return true;
    }
    if (node->type == MT_TPL_N_TUPLE) {
        for (size_t i = 0; i < node->list.count; i++)
            if (!make_target(p, node->list.at[i]))
                return false;
        return true;
    }
    if (node->type == MT_TPL_N_NAMESPACE)
        return true;
    return mt_tpl_fail_at(p->run, node->place,
                          "can't assign to this; a name, or names with commas between, can be set");
}

/* A name, or name.attribute of a namespace. */
static mt_tpl_node *parse_set_item(mt_tpl_parser *p)
{
    mt_tpl_node *node;

    if (p->token->type != MT_TPL_T_NAME || p->token[1].type != '.')
        return mt_tpl_parse_primary(p);
    node = mt_tpl_node_new(p, MT_TPL_N_NAMESPACE, p->token);
    if (!node)
        return NULL;
    node->name = p->token->str;
    p->token += 2;
    node->attribute = p->token->str;
    return mt_tpl_expect(p, MT_TPL_T_NAME) ? node : NULL;
}

static mt_tpl_node *parse_name_target(mt_tpl_parser *p)
{
    mt_tpl_node *node = mt_tpl_node_new(p, MT_TPL_N_NAME, p->token);

    if (!node)
        return NULL;
    node->name = p->token->str;
    node->store = true;
    if (!mt_tpl_expect(p, MT_TPL_T_NAME))
        return NULL;
    if (mt_tpl_str_is(node->name, "true") || mt_tpl_str_is(node->name, "false") || mt_tpl_str_is(node->name, "none") ||
        mt_tpl_str_is(node->name, "True") || mt_tpl_str_is(node->name, "False") || mt_tpl_str_is(node->name, "None")) {
        mt_tpl_fail_at(p->run, node->place, "can't assign to 'name'");
        return NULL;
    }
    return node;
}

static mt_tpl_node *copy_target(mt_tpl_parser *p, const mt_tpl_node *target)
{
    mt_tpl_node *copy = mt_tpl_copy(p->run, target, sizeof(*copy));

    if (!copy)
        return NULL;
    copy->list = (mt_tpl_nodes){0};
    for (size_t i = 0; i < target->list.count; i++)
        if (!mt_tpl_nodes_add(p, &copy->list, copy_target(p, target->list.at[i])))
            return NULL;
    return copy;
}

/* A body up to one of the words that end it, which is the current token afterwards. */
static bool parse_until(mt_tpl_parser *p, const char *const *end_words, mt_tpl_nodes *out)
{
    mt_tpl_accept(p, ':');
    return mt_tpl_expect(p, MT_TPL_T_BLOCK_END) && parse_body(p, end_words, out);
}

/* A body with the only word that ends it. */
static bool parse_to(mt_tpl_parser *p, const char *end_word, mt_tpl_nodes *out)
{
    return parse_until(p, (const char *const[]){end_word, NULL}, out) && mt_tpl_expect_word(p, end_word);
}

static bool parse_for(mt_tpl_parser *p, mt_tpl_node *node)
{
    static const char *const ends[] = {"endfor", "else", NULL};

    node->left = mt_tpl_parse_tuple(p, mt_tpl_parse_primary, false);
    if (!make_target(p, node->left) || !mt_tpl_expect_word(p, "in"))
        return false;
    node->right = mt_tpl_parse_tuple(p, mt_tpl_parse_no_condition, false);
    if (!node->right)
        return false;
    if (mt_tpl_accept_word(p, "if")) {
        node->third = mt_tpl_parse_expression(p);
        node->test_target = copy_target(p, node->left);
        if (!node->third || !node->test_target)
            return false;
    }
    node->recursive = mt_tpl_accept_word(p, "recursive");
    if (!parse_until(p, ends, &node->body))
        return false;
    return mt_tpl_accept_word(p, "endfor") || (mt_tpl_expect_word(p, "else") && parse_to(p, "endfor", &node->orelse));
}

/* Not recursive, since there may be many elif: each becomes the only node in `orelse` of the one before. */
static bool parse_if(mt_tpl_parser *p, mt_tpl_node *node)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    mt_tpl_node *first = node, *branches[MT_LIMIT_TEMPLATE_NESTING];
    size_t count = 0;

    for (;;) {
        mt_tpl_node *next;

        if (count == MT_COUNT(branches))
            return mt_tpl_fail_limit(p->run, "an if of more than %d branches", MT_LIMIT_TEMPLATE_NESTING) ||
                   mt_tpl_locate(p->run, first->place);
        branches[count++] = node;
        node->left = mt_tpl_parse_tuple(p, mt_tpl_parse_no_condition, false);
        if (!node->left || !parse_until(p, ends, &node->body))
            return false;
        if (!mt_tpl_token_is(p->token, "elif"))
            break;
        next = mt_tpl_node_new(p, MT_TPL_N_IF, p->token++);
        if (!mt_tpl_nodes_add(p, &node->orelse, next))
            return false;
        node = next;
    }
    if (mt_tpl_accept_word(p, "else") ? !parse_to(p, "endif", &node->orelse) : !mt_tpl_expect_word(p, "endif"))
        return false;
    while (count-- > 1)
        if (!mt_tpl_node_check(p, branches[count]))
            return false;
    return true;
}

static bool parse_set(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->left = mt_tpl_parse_tuple(p, parse_set_item, false);
    if (!make_target(p, node->left))
        return false;
    if (mt_tpl_accept(p, '=')) {
        node->right = mt_tpl_parse_tuple(p, mt_tpl_parse_expression, false);
        return node->right != NULL;
    }
    node->type = MT_TPL_N_SET_BLOCK;
    node->right = mt_tpl_parse_filters(p, NULL, false);
    return !p->run->failed && parse_to(p, "endset", &node->body);
}

static bool parse_signature(mt_tpl_parser *p, mt_tpl_params *params)
{
    if (!mt_tpl_expect(p, '('))
        return false;
    while (p->token->type != ')') {
        mt_tpl_node *name;

        if (params->names.count > 0 && !mt_tpl_expect(p, ','))
            return false;
        name = parse_name_target(p);
        for (size_t i = 0; name && i < params->names.count; i++)
            if (mt_tpl_str_equal(params->names.at[i]->name, name->name))
                return mt_tpl_fail_at(p->run, name->place, "duplicate argument '%.*s' in function definition",
                                      (int)name->name->len, name->name->data);
        if (!mt_tpl_nodes_add(p, &params->names, name))
            return false;
        if (mt_tpl_accept(p, '=')) {
            if (!mt_tpl_nodes_add(p, &params->defaults, mt_tpl_parse_expression(p)))
                return false;
        } else if (params->defaults.count > 0)
            return mt_tpl_fail_at(p->run, p->token->place, "non-default argument follows default argument");
    }
    p->token++;
    return true;
}

static bool new_params(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->params = mt_tpl_alloc(p->run, sizeof(*node->params));
    return node->params != NULL;
}

static bool parse_macro(mt_tpl_parser *p, mt_tpl_node *node)
{
    mt_tpl_node *name = parse_name_target(p);

    if (!name || !new_params(p, node))
        return false;
    node->name = name->name;
    return parse_signature(p, node->params) && parse_to(p, "endmacro", &node->body);
}

static bool parse_call_block(mt_tpl_parser *p, mt_tpl_node *node)
{
    if (!new_params(p, node) || (p->token->type == '(' && !parse_signature(p, node->params)))
        return false;
    node->left = mt_tpl_parse_expression(p);
    if (!node->left)
        return false;
    if (node->left->type != MT_TPL_N_CALL)
        return mt_tpl_fail_at(p->run, node->place, "expected call");
    return parse_to(p, "endcall", &node->body);
}

static bool parse_generation(mt_tpl_parser *p, mt_tpl_node *node)
{
    return new_params(p, node) && parse_to(p, "endgeneration", &node->body);
}

static bool parse_filter_block(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->left = mt_tpl_parse_filters(p, NULL, true);
    return node->left && parse_to(p, "endfilter", &node->body);
}

static bool parse_with(mt_tpl_parser *p, mt_tpl_node *node)
{
    while (p->token->type != MT_TPL_T_BLOCK_END) {
        mt_tpl_node *target;

        if (node->list.count > 0 && !mt_tpl_expect(p, ','))
            return false;
        target = mt_tpl_parse_tuple(p, mt_tpl_parse_primary, false);
        if (!make_target(p, target) || !mt_tpl_nodes_add(p, &node->list, target) || !mt_tpl_expect(p, '=') ||
            !mt_tpl_nodes_add(p, &node->list, mt_tpl_parse_expression(p)))
            return false;
    }
    return parse_to(p, "endwith", &node->body);
}

static bool parse_autoescape(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->left = mt_tpl_parse_expression(p);
    return node->left && parse_to(p, "endautoescape", &node->body);
}

/* Whether a body has only white space. */
static bool is_blank(const mt_tpl_nodes *body)
{
    for (size_t i = 0; i < body->count; i++)
        for (size_t k = 0; k < body->at[i]->list.count; k++) {
            const mt_tpl_node *part = body->at[i]->list.at[k];
            const mt_tpl_str *text = part->value.as.str;

            if (body->at[i]->type != MT_TPL_N_OUTPUT || part->type != MT_TPL_N_CONST)
                return false;
            for (size_t at = 0; at < text->len; at += mt_utf8_size(text->data[at]))
                if (!mt_tpl_is_space(mt_utf8_at(text->data + at)))
                    return false;
        }
    return true;
}

static bool parse_block(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->name = p->token->str;
    if (!mt_tpl_expect(p, MT_TPL_T_NAME))
        return false;
    node->scoped = mt_tpl_accept_word(p, "scoped");
    node->required = mt_tpl_accept_word(p, "required");
    if (!parse_to(p, "endblock", &node->body))
        return false;
    if (node->required && !is_blank(&node->body))
        return mt_tpl_fail_at(p->run, p->token->place, "Required blocks can only contain comments or whitespace");
    if (p->token->type == MT_TPL_T_NAME && mt_tpl_str_equal(p->token->str, node->name))
        p->token++;
    return true;
}

static bool parse_print(mt_tpl_parser *p, mt_tpl_node *node)
{
    while (p->token->type != MT_TPL_T_BLOCK_END) {
        if (node->list.count > 0 && !mt_tpl_expect(p, ','))
            return false;
        if (!mt_tpl_nodes_add(p, &node->list, mt_tpl_parse_expression(p)))
            return false;
    }
    return true;
}

/* include, import, from and extends: the rest of the tag is skipped, since reaching it fails. */
static bool parse_load(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->left = mt_tpl_parse_expression(p);
    while (node->left && p->token->type != MT_TPL_T_BLOCK_END && p->token->type != MT_TPL_T_EOF)
        p->token++;
    return node->left != NULL;
}

static const struct {
    const char *word;
    mt_tpl_node_type type;
    bool (*parse)(mt_tpl_parser *p, mt_tpl_node *node); /* the rest of the tag; NULL: there is none */
} statements[] = {
    {"for", MT_TPL_N_FOR, parse_for},
    {"if", MT_TPL_N_IF, parse_if},
    {"set", MT_TPL_N_SET, parse_set},
    {"macro", MT_TPL_N_MACRO, parse_macro},
    {"call", MT_TPL_N_CALL_BLOCK, parse_call_block},
    {"generation", MT_TPL_N_GENERATION, parse_generation},
    {"filter", MT_TPL_N_FILTER_BLOCK, parse_filter_block},
    {"with", MT_TPL_N_WITH, parse_with},
    {"autoescape", MT_TPL_N_SCOPE, parse_autoescape},
    {"block", MT_TPL_N_BLOCK, parse_block},
    {"print", MT_TPL_N_OUTPUT, parse_print},
    {"break", MT_TPL_N_BREAK, NULL},
    {"continue", MT_TPL_N_CONTINUE, NULL},
    {"include", MT_TPL_N_LOAD, parse_load},
    {"import", MT_TPL_N_LOAD, parse_load},
    {"from", MT_TPL_N_LOAD, parse_load},
    {"extends", MT_TPL_N_LOAD, parse_load},
};

static bool fail_tag(mt_tpl_parser *p)
{
    const mt_tpl_token *tag = p->token;
    char name[64], wanted[128] = "";
    size_t len = 0;

    for (const char *const *word = p->end_words; word && *word; word++)
        len += (size_t)snprintf(wanted + len, sizeof(wanted) - len, "%s'%s'", len ? " or " : "", *word);
    if (tag->type == MT_TPL_T_EOF)
        return mt_tpl_fail_at(p->run, tag->place,
                              "Unexpected end of template. Jinja was looking for the following tags: %s.", wanted);
    mt_tpl_token_describe(tag, name);
    if (!*wanted)
        return mt_tpl_fail_at(p->run, tag->place, "Encountered unknown tag '%s'.", name);
    return mt_tpl_fail_at(p->run, tag->place,
                          "Encountered unknown tag '%s'. Jinja was looking for the following tags: %s.", name, wanted);
}

static mt_tpl_node *parse_statement(mt_tpl_parser *p)
{
    for (size_t i = 0; i < MT_COUNT(statements); i++) {
        mt_tpl_node *node;

        if (!mt_tpl_token_is(p->token, statements[i].word))
            continue;
        node = mt_tpl_node_new(p, statements[i].type, p->token++);
        return node && (!statements[i].parse || statements[i].parse(p, node)) ? mt_tpl_node_checked(p, node) : NULL;
    }
    if (p->token->type == MT_TPL_T_NAME)
        fail_tag(p);
    else
        mt_tpl_fail_at(p->run, p->token->place, "tag name expected");
    return NULL;
}

static bool add_output(mt_tpl_parser *p, mt_tpl_nodes *body, mt_tpl_node **output, mt_tpl_node *node)
{
    if (!node)
        return false;
    if (!*output) {
        *output = mt_tpl_node_new(p, MT_TPL_N_OUTPUT, p->token);
        if (!mt_tpl_nodes_add(p, body, *output))
            return false;
        (*output)->place = node->place;
    }
    mt_tpl_node_raise(*output, node);
    return mt_tpl_nodes_add(p, &(*output)->list, node) && mt_tpl_node_check_height(p, *output);
}

static bool add_data(mt_tpl_parser *p, mt_tpl_nodes *body, mt_tpl_node **output)
{
    mt_tpl_node *node = mt_tpl_node_new(p, MT_TPL_N_CONST, p->token);

    if (!node)
        return false;
    mt_tpl_set_str(&node->value, p->token->str);
    p->token++;
    return add_output(p, body, output, node);
}

static bool is_end(const mt_tpl_parser *p, const char *const *end_words)
{
    for (; end_words && *end_words; end_words++)
        if (mt_tpl_token_is(p->token, *end_words))
            return true;
    return false;
}

/* Parses up to one of the end words, which is the current token afterwards, or to the end of the template. */
static bool parse_rest(mt_tpl_parser *p, const char *const *end_words, mt_tpl_nodes *out)
{
    mt_tpl_node *output = NULL;

    while (p->token->type != MT_TPL_T_EOF) {
        if (p->token->type == MT_TPL_T_DATA) {
            if (!add_data(p, out, &output))
                return false;
        } else if (mt_tpl_accept(p, MT_TPL_T_VARIABLE_BEGIN)) {
            if (!add_output(p, out, &output, mt_tpl_parse_tuple(p, mt_tpl_parse_expression, false)) ||
                !mt_tpl_expect(p, MT_TPL_T_VARIABLE_END))
                return false;
        } else {
            output = NULL;
            p->token++; /* the lexer gives only the beginning of a block here */
            if (is_end(p, end_words))
                return true;
            if (!mt_tpl_nodes_add(p, out, parse_statement(p)) || !mt_tpl_expect(p, MT_TPL_T_BLOCK_END))
                return false;
        }
    }
    return !end_words || fail_tag(p);
}

static bool parse_body(mt_tpl_parser *p, const char *const *end_words, mt_tpl_nodes *out)
{
    const char *const *outer = p->end_words;
    bool ok;

    if (!mt_tpl_parse_enter(p))
        return false;
    p->end_words = end_words;
    ok = parse_rest(p, end_words, out);
    p->end_words = outer;
    mt_tpl_parse_leave(p);
    return ok;
}

bool mt_tpl_parse(mt_tpl_run *run, const mt_tpl_token *tokens, mt_tpl_nodes *out)
{
    mt_tpl_parser p = {.expression = mt_tpl_parse_expression, .run = run, .token = tokens};

    return parse_body(&p, NULL, out);
}
