/* Tools, and constraints of shapes: what the tests of shapes share. */
#ifndef MT_TESTS_UNIT_SHAPE_H
#define MT_TESTS_UNIT_SHAPE_H

#include "unit.h"

#include "../constraint/follow.h"

#include "base/alloc.h"
#include "chat/parse.h"
#include "chat/shape.h"

static const char *const specials[] = {
    "[TOOL_CALLS]",
    "[ARGS]",
    "[CALL_ID]",
    "<|tool_call|>",
    "<|channel|>",
    "<|message|>",
    "<|constrain|>",
    "<|start|>",
    "<|end|>",
    "<|tool_call_begin|>",
    "<|tool_call_end|>",
    "<|tool_call_argument_begin|>",
    "<|action_start|>",
    "<|plugin|>",
    "<|action_end|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁sep｜>",
    "<|python_tag|>",
    "<|python_start|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|\"|>",
    "<|recipient|>",
    "<|content|>",
    "<|from|>",
    "<|START_ACTION|>",
    "<|END_ACTION|>",
    "<|function_call|>",
    "<|tool_call_start|>",
};

static const char tools_json[] =
    "[{'type':'function','function':{'name':'get_weather','parameters':{'type':'object','properties':{"
    "'city':{'type':'string'},'days':{'type':'integer','minimum':1,'maximum':14},'unit':{'enum':['C','F']},"
    "'place':{'type':'object','properties':{'lat':{'type':'number'}},'required':['lat']}},"
    "'required':['city','unit']}}},"
    "{'type':'function','function':{'name':'get_time','strict':true,'parameters':{'type':'object','properties':{"
    "'utc':{'type':'boolean'}},'required':['utc'],'additionalProperties':false}}},"
    "{'type':'function','function':{'name':'now'}}]";

static inline json_t *load(const char *text)
{
    char *json = mt_strdup(text);
    json_t *value;

    for (char *at = json; (at = strchr(at, '\'')); at++)
        *at = '"';
    value = json_loads(json, 0, NULL);
    mt_free(json);
    assert_non_null(value);
    return value;
}

static inline mt_constraint *compile(const mt_shape *shape, const mt_tokenizer *tokenizer, const mt_vocabulary *v,
                                     mt_error *err)
{
    mt_grammar *g = mt_grammar_new();
    mt_constraint *c = mt_shape_write(shape, tokenizer, g, err) ? mt_constraint_new(g, v, err) : NULL;

    mt_grammar_free(g);
    return c;
}

#endif
