/* Reads fields that say how much to think: words, whose meaning the template or a table here decides, or a number of
   tokens. */
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "base/json_tree.h"
#include "base/words.h"
#include "sample/limits.h"

bool mt_read_effort(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    static const char *const efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max", NULL};

    if (ask->think_budget < 0)
        ask->think_field = name;
    return mt_words_have(efforts, mt_json_word(value)) ||
           mt_failure_value(
               why, name,
               "is none of none, minimal, low, medium, high, xhigh and max: send one, or what the template "
               "knows in \"chat_template_kwargs\"");
}

/* -1 means no limit, as in vLLM and llama.cpp: it becomes a budget that no answer reaches, which comes before an
   effort. */
bool mt_read_think_budget(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const json_int_t tokens = json_integer_value(value);

    if (!json_is_integer(value))
        return mt_failure_type(why, name, value, "an integer");
    if (tokens < -1)
        return mt_failure_value(why, name, "is %" JSON_INTEGER_FORMAT ": send 0 or more tokens, or -1 for no limit",
                                tokens);
    ask->think_budget = tokens < 0 || tokens > MT_LIMIT_CONTEXT ? MT_LIMIT_CONTEXT : tokens;
    ask->think_field = tokens < 0 ? NULL : name;
    return true;
}

bool mt_read_thinking(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const json_t *budget = mt_body_get(value, "budget_tokens");

    (void)name;
    return !budget || strcmp(mt_body_text(value, "type"), "disabled") == 0 ||
           mt_read_think_budget(ask, "thinking.budget_tokens", budget, why);
}

bool mt_read_reasoning(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    static const char *const members[] = {"effort",     "enabled", "exclude", "generate_summary",
                                          "max_tokens", "summary", NULL};
    const json_t *effort = mt_body_get(value, "effort"), *most = mt_body_get(value, "max_tokens");

    if (!json_is_object(value))
        return mt_failure_type(why, name, value, "an object");
    if (json_is_true(json_object_get(value, "exclude")))
        ask->form.include_reasoning = false;
    mt_fields_note(ask, "reasoning.", value, NULL, 0, (const char *const *const[3]){members});
    return (!effort || mt_read_effort(ask, "reasoning.effort", effort, why)) &&
           (!most || mt_read_think_budget(ask, "reasoning.max_tokens", most, why));
}
