/* Parses statements. Parsing recurses; p->depth bounds it, and the height of nodes bounds every later pass over the
   tree. */
#include "template/parser.h"

#include <stdio.h>

#include "base/utf8.h"
#include "template/limits.h"
#include "template/unicode.h"

static void parse_body(mt_tpl_parser *p, const char *const *end_words, mt_tpl_nodes *out);

/* Makes an expression a target of an assignment. */
static void make_target(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->store = node->type == MT_TPL_N_NAME;
    if (node->type == MT_TPL_N_TUPLE)
        for (size_t i = 0; i < node->list.count; i++)
            make_target(p, node->list.at[i]);
    else if (!node->store && node->type != MT_TPL_N_NAMESPACE)
        mt_tpl_fail_at(p->run, node->place, "can't assign to this; a name, or names with commas between, can be set");
}

/* A target of an assignment, made of such items. */
static mt_tpl_node *parse_target(mt_tpl_parser *p, mt_tpl_node *(*item)(mt_tpl_parser *p))
{
    mt_tpl_node *target = mt_tpl_parse_tuple(p, item, false);

    make_target(p, target);
    return target;
}

/* A name, or name.attribute of a namespace. */
static mt_tpl_node *parse_set_item(mt_tpl_parser *p)
{
    mt_tpl_node *node;

    if (p->token->type != MT_TPL_T_NAME || p->token[1].type != '.')
        return mt_tpl_parse_primary(p);
    node = mt_tpl_node_new(p, MT_TPL_N_NAMESPACE, p->token);
    node->name = p->token->str;
    p->token += 2;
    node->attribute = p->token->str;
    mt_tpl_expect(p, MT_TPL_T_NAME);
    return node;
}

static mt_tpl_node *parse_name_target(mt_tpl_parser *p)
{
    static const char *const constants[] = {"true", "True", "false", "False", "none", "None"};
    mt_tpl_node *node = mt_tpl_node_new(p, MT_TPL_N_NAME, p->token);

    node->name = p->token->str;
    node->store = true;
    for (size_t i = 0; i < MT_COUNT(constants); i++)
        if (mt_tpl_token_is(p->token, constants[i]))
            mt_tpl_fail_at(p->run, node->place, "can't assign to 'name'");
    mt_tpl_expect(p, MT_TPL_T_NAME);
    return node;
}

static mt_tpl_node *copy_target(mt_tpl_parser *p, const mt_tpl_node *target)
{
    mt_tpl_node *copy = mt_tpl_copy(p->run, target, sizeof(*copy));

    if (!copy)
        return &p->none;
    copy->list = (mt_tpl_nodes){0};
    for (size_t i = 0; i < target->list.count; i++)
        mt_tpl_nodes_add(p, &copy->list, copy_target(p, target->list.at[i]));
    return copy;
}

/* A body up to one of the words that end it, which is the current token afterwards. */
static void parse_until(mt_tpl_parser *p, const char *const *end_words, mt_tpl_nodes *out)
{
    mt_tpl_accept(p, ':');
    if (mt_tpl_expect(p, MT_TPL_T_BLOCK_END))
        parse_body(p, end_words, out);
}

/* A body with the only word that ends it. */
static void parse_to(mt_tpl_parser *p, const char *end_word, mt_tpl_nodes *out)
{
    parse_until(p, (const char *const[]){end_word, NULL}, out);
    mt_tpl_expect_word(p, end_word);
}

static void parse_for(mt_tpl_parser *p, mt_tpl_node *node)
{
    static const char *const ends[] = {"endfor", "else", NULL};

    node->left = parse_target(p, mt_tpl_parse_primary);
    mt_tpl_expect_word(p, "in");
    node->right = mt_tpl_parse_tuple(p, mt_tpl_parse_no_condition, false);
    if (mt_tpl_accept_word(p, "if")) {
        node->third = mt_tpl_parse_expression(p);
        node->test_target = copy_target(p, node->left);
    }
    node->recursive = mt_tpl_accept_word(p, "recursive");
    parse_until(p, ends, &node->body);
    if (mt_tpl_accept_word(p, "else"))
        parse_to(p, "endfor", &node->orelse);
    else
        mt_tpl_expect_word(p, "endfor");
}

/* Not recursive, since there may be many elif: each becomes the only node in `orelse` of the one before. */
static void parse_if(mt_tpl_parser *p, mt_tpl_node *node)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    mt_tpl_node *next, *branches[MT_LIMIT_TEMPLATE_NESTING];
    size_t count = 0;

    do {
        if (count == MT_COUNT(branches)) {
            mt_tpl_fail_limit(p->run, "an if of more than %d branches", MT_LIMIT_TEMPLATE_NESTING);
            mt_tpl_locate(p->run, node->place);
            return;
        }
        next = count ? mt_tpl_node_new(p, MT_TPL_N_IF, p->token - 1) : node;
        if (count > 0)
            mt_tpl_nodes_add(p, &branches[count - 1]->orelse, next);
        branches[count++] = next;
        next->left = mt_tpl_parse_tuple(p, mt_tpl_parse_no_condition, false);
        parse_until(p, ends, &next->body);
    } while (mt_tpl_accept_word(p, "elif"));
    if (mt_tpl_accept_word(p, "else"))
        parse_to(p, "endif", &next->orelse);
    else
        mt_tpl_expect_word(p, "endif");
    while (count-- > 1)
        mt_tpl_node_checked(p, branches[count]);
}

static void parse_set(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->left = parse_target(p, parse_set_item);
    if (mt_tpl_accept(p, '=')) {
        node->right = mt_tpl_parse_tuple(p, mt_tpl_parse_expression, false);
        return;
    }
    node->type = MT_TPL_N_SET_BLOCK;
    node->right = mt_tpl_parse_filters(p, NULL, false);
    parse_to(p, "endset", &node->body);
}

static void add_parameter(mt_tpl_parser *p, mt_tpl_params *params)
{
    mt_tpl_node *name = parse_name_target(p);

    for (size_t i = 0; !p->run->failed && i < params->names.count; i++)
        if (mt_tpl_str_equal(params->names.at[i]->name, name->name))
            mt_tpl_fail_at(p->run, name->place, "duplicate argument '%.*s' in function definition",
                           (int)name->name->len, name->name->data);
    mt_tpl_nodes_add(p, &params->names, name);
    if (mt_tpl_accept(p, '='))
        mt_tpl_nodes_add(p, &params->defaults, mt_tpl_parse_expression(p));
    else if (params->defaults.count > 0)
        mt_tpl_fail_at(p->run, p->token->place, "non-default argument follows default argument");
}

static void parse_signature(mt_tpl_parser *p, mt_tpl_params *params)
{
    mt_tpl_expect(p, '(');
    while (mt_tpl_before(p, ')')) {
        if (params->names.count > 0)
            mt_tpl_expect(p, ',');
        add_parameter(p, params);
    }
    mt_tpl_expect(p, ')');
}

static void parse_macro(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->name = parse_name_target(p)->name;
    parse_signature(p, node->params);
    parse_to(p, "endmacro", &node->body);
}

static void parse_call_block(mt_tpl_parser *p, mt_tpl_node *node)
{
    if (p->token->type == '(')
        parse_signature(p, node->params);
    node->left = mt_tpl_parse_expression(p);
    if (node->left->type != MT_TPL_N_CALL)
        mt_tpl_fail_at(p->run, node->place, "expected call");
    parse_to(p, "endcall", &node->body);
}

static void parse_generation(mt_tpl_parser *p, mt_tpl_node *node)
{
    parse_to(p, "endgeneration", &node->body);
}

static void parse_filter_block(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->left = mt_tpl_parse_filters(p, NULL, true);
    parse_to(p, "endfilter", &node->body);
}

static void parse_with(mt_tpl_parser *p, mt_tpl_node *node)
{
    while (mt_tpl_before(p, MT_TPL_T_BLOCK_END)) {
        if (node->list.count > 0)
            mt_tpl_expect(p, ',');
        mt_tpl_nodes_add(p, &node->list, parse_target(p, mt_tpl_parse_primary));
        mt_tpl_expect(p, '=');
        mt_tpl_nodes_add(p, &node->list, mt_tpl_parse_expression(p));
    }
    parse_to(p, "endwith", &node->body);
}

static void parse_autoescape(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->left = mt_tpl_parse_expression(p);
    parse_to(p, "endautoescape", &node->body);
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

static void parse_block(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->name = p->token->str;
    mt_tpl_expect(p, MT_TPL_T_NAME);
    node->scoped = mt_tpl_accept_word(p, "scoped");
    node->required = mt_tpl_accept_word(p, "required");
    parse_to(p, "endblock", &node->body);
    if (p->run->failed)
        return;
    if (node->required && !is_blank(&node->body))
        mt_tpl_fail_at(p->run, p->token->place, "Required blocks can only contain comments or whitespace");
    if (p->token->type == MT_TPL_T_NAME && mt_tpl_str_equal(p->token->str, node->name))
        p->token++;
}

static void parse_print(mt_tpl_parser *p, mt_tpl_node *node)
{
    while (mt_tpl_before(p, MT_TPL_T_BLOCK_END)) {
        if (node->list.count > 0)
            mt_tpl_expect(p, ',');
        mt_tpl_nodes_add(p, &node->list, mt_tpl_parse_expression(p));
    }
}

/* include, import, from and extends: the rest of the tag is skipped, since reaching it fails. */
static void parse_load(mt_tpl_parser *p, mt_tpl_node *node)
{
    node->left = mt_tpl_parse_expression(p);
    while (mt_tpl_before(p, MT_TPL_T_BLOCK_END) && p->token->type != MT_TPL_T_EOF)
        p->token++;
}

static const struct {
    const char *word;
    mt_tpl_node_type type;
    void (*parse)(mt_tpl_parser *p, mt_tpl_node *node); /* the rest of the tag; NULL: there is none */
} statements[] = {
    {"for", MT_TPL_N_FOR, parse_for},
    {"if", MT_TPL_N_IF, parse_if},
    {"set", MT_TPL_N_SET, parse_set},
    {"macro", MT_TPL_N_MACRO, parse_macro},
    {"call", MT_TPL_N_CALL_BLOCK, parse_call_block},
    {"generation", MT_TPL_N_GENERATION, parse_generation},
    {"filter", MT_TPL_N_FILTER_BLOCK, parse_filter_block},
    {"with", MT_TPL_N_WITH, parse_with},
    {"autoescape", MT_TPL_N_AUTOESCAPE, parse_autoescape},
    {"block", MT_TPL_N_BLOCK, parse_block},
    {"print", MT_TPL_N_OUTPUT, parse_print},
    {"break", MT_TPL_N_BREAK, NULL},
    {"continue", MT_TPL_N_CONTINUE, NULL},
    {"include", MT_TPL_N_LOAD, parse_load},
    {"import", MT_TPL_N_LOAD, parse_load},
    {"from", MT_TPL_N_LOAD, parse_load},
    {"extends", MT_TPL_N_LOAD, parse_load},
};

static void fail_tag(mt_tpl_parser *p)
{
    const mt_tpl_token *tag = p->token;
    char name[64], wanted[128] = "";
    size_t len = 0;

    for (const char *const *word = p->end_words; word && *word; word++)
        len += (size_t)snprintf(wanted + len, sizeof(wanted) - len, "%s'%s'", len ? " or " : "", *word);
    mt_tpl_token_describe(tag, name);
    if (tag->type == MT_TPL_T_EOF)
        mt_tpl_fail_at(p->run, tag->place, "Unexpected end of template. Jinja was looking for the following tags: %s.",
                       wanted);
    else if (!*wanted)
        mt_tpl_fail_at(p->run, tag->place, "Encountered unknown tag '%s'.", name);
    else
        mt_tpl_fail_at(p->run, tag->place,
                       "Encountered unknown tag '%s'. Jinja was looking for the following tags: %s.", name, wanted);
}

static bool has_params(mt_tpl_node_type type)
{
    return type == MT_TPL_N_MACRO || type == MT_TPL_N_CALL_BLOCK || type == MT_TPL_N_GENERATION;
}

static mt_tpl_node *parse_statement(mt_tpl_parser *p)
{
    for (size_t i = 0; i < MT_COUNT(statements); i++) {
        mt_tpl_node *node;

        if (!mt_tpl_token_is(p->token, statements[i].word))
            continue;
        node = mt_tpl_node_new(p, statements[i].type, p->token++);
        if (has_params(node->type) && !(node->params = mt_tpl_alloc(p->run, sizeof(*node->params))))
            return node;
        if (statements[i].parse)
            statements[i].parse(p, node);
        return mt_tpl_node_checked(p, node);
    }
    if (p->token->type == MT_TPL_T_NAME)
        fail_tag(p);
    else
        mt_tpl_fail_at(p->run, p->token->place, "tag name expected");
    return &p->none;
}

static void add_output(mt_tpl_parser *p, mt_tpl_nodes *body, mt_tpl_node **output, mt_tpl_node *node)
{
    if (!*output) {
        *output = mt_tpl_node_new(p, MT_TPL_N_OUTPUT, p->token);
        (*output)->place = node->place;
        mt_tpl_nodes_add(p, body, *output);
    }
    mt_tpl_node_raise(*output, node);
    mt_tpl_nodes_add(p, &(*output)->list, node);
    mt_tpl_node_check_height(p, *output);
}

static bool is_end(const mt_tpl_parser *p, const char *const *end_words)
{
    for (; end_words && *end_words; end_words++)
        if (mt_tpl_token_is(p->token, *end_words))
            return true;
    return false;
}

/* Parses up to one of the end words, which is the current token afterwards, or to the end of the template. */
static void parse_rest(mt_tpl_parser *p, const char *const *end_words, mt_tpl_nodes *out)
{
    mt_tpl_node *output = NULL, *node;

    while (mt_tpl_before(p, MT_TPL_T_EOF)) {
        if (p->token->type == MT_TPL_T_DATA) {
            node = mt_tpl_node_new(p, MT_TPL_N_CONST, p->token);
            node->value = mt_tpl_const(p->token++->str);
            add_output(p, out, &output, node);
        } else if (mt_tpl_accept(p, MT_TPL_T_VARIABLE_BEGIN)) {
            add_output(p, out, &output, mt_tpl_parse_tuple(p, mt_tpl_parse_expression, false));
            mt_tpl_expect(p, MT_TPL_T_VARIABLE_END);
        } else {
            output = NULL;
            p->token++; /* the lexer gives only the beginning of a block here */
            if (is_end(p, end_words))
                return;
            mt_tpl_nodes_add(p, out, parse_statement(p));
            mt_tpl_expect(p, MT_TPL_T_BLOCK_END);
        }
    }
    if (end_words)
        fail_tag(p);
}

static void parse_body(mt_tpl_parser *p, const char *const *end_words, mt_tpl_nodes *out)
{
    const char *const *outer = p->end_words;

    if (!mt_tpl_parse_enter(p))
        return;
    p->end_words = end_words;
    parse_rest(p, end_words, out);
    p->end_words = outer;
    mt_tpl_parse_leave(p);
}

bool mt_tpl_parse(mt_tpl_run *run, const mt_tpl_token *tokens, mt_tpl_nodes *out)
{
    mt_tpl_parser p = {.expression = mt_tpl_parse_expression, .run = run, .token = tokens};

    parse_body(&p, NULL, out);
    return !run->failed;
}
