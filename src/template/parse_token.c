/* Reads tokens one by one, and reports those that should not be there. Part of parser.h. */
#include "template/limits.h"
#include "template/parser.h"

#include <stdio.h>

bool mt_tpl_fail_nesting(mt_tpl_parser *p, mt_tpl_place at)
{
    return mt_tpl_fail_limit(p->run, "more than %d expressions or blocks inside one another",
                             MT_LIMIT_TEMPLATE_NESTING) ||
           mt_tpl_locate(p->run, at);
}

bool mt_tpl_parse_enter(mt_tpl_parser *p)
{
    if (p->depth == MT_LIMIT_TEMPLATE_NESTING)
        return mt_tpl_fail_nesting(p, p->token->place);
    p->depth++;
    return true;
}

void mt_tpl_parse_leave(mt_tpl_parser *p)
{
    p->depth--;
}

const char *mt_tpl_token_describe(const mt_tpl_token *token, char out[64])
{
    if (token->type == MT_TPL_T_NAME)
        snprintf(out, 64, "%.*s", token->str->len < 60 ? (int)token->str->len : 60, token->str->data);
    else
        snprintf(out, 64, "%s", mt_tpl_token_text(token->type));
    return out;
}

mt_tpl_node *mt_tpl_parse_unexpected(mt_tpl_parser *p)
{
    char found[64];

    mt_tpl_fail_at(p->run, p->token->place, "unexpected '%s'; an expression should be here",
                   mt_tpl_token_describe(p->token, found));
    return &p->none;
}

bool mt_tpl_token_is(const mt_tpl_token *token, const char *word)
{
    return token->type == MT_TPL_T_NAME && mt_tpl_str_is(token->str, word);
}

bool mt_tpl_before(const mt_tpl_parser *p, mt_tpl_token_type type)
{
    return !p->run->failed && p->token->type != type;
}

bool mt_tpl_accept(mt_tpl_parser *p, mt_tpl_token_type type)
{
    if (p->token->type != type)
        return false;
    p->token++;
    return true;
}

bool mt_tpl_accept_word(mt_tpl_parser *p, const char *word)
{
    if (!mt_tpl_token_is(p->token, word))
        return false;
    p->token++;
    return true;
}

static bool fail_expected(mt_tpl_parser *p, const char *wanted)
{
    char found[64];

    if (p->token->type == MT_TPL_T_EOF)
        return mt_tpl_fail_at(p->run, p->token->place, "unexpected end of template, expected '%s'.", wanted);
    return mt_tpl_fail_at(p->run, p->token->place, "expected token '%s', got '%s'", wanted,
                          mt_tpl_token_describe(p->token, found));
}

bool mt_tpl_expect(mt_tpl_parser *p, mt_tpl_token_type type)
{
    return mt_tpl_accept(p, type) || fail_expected(p, mt_tpl_token_text(type));
}

bool mt_tpl_expect_word(mt_tpl_parser *p, const char *word)
{
    return mt_tpl_accept_word(p, word) || fail_expected(p, word);
}
