/* See thinking.h. */
#include "server/prepare/thinking.h"

#include <string.h>

#include "base/arena.h"
#include "chat/thinking.h"
#include "sample/thought.h"
#include "server/inside.h"

static mt_chat_text text_of(const char *words)
{
    return (mt_chat_text){.data = words, .len = strlen(words)};
}

/* Sets the tokens that end a thought. With tools to call, what begins the answer is forced only where the model thinks
   again after the first time. */
static bool set_end(mt_thought_rule *rule, mt_arena *arena, mt_call *call, const mt_chat_thinking *thinking, bool tools,
                    mt_failure *why)
{
    mt_token_prompt end, answer;
    uint32_t *ids;

    if (!mt_tokens_encode(call->served, arena, text_of(thinking->end), false, &call->stop, 0, &end, why) ||
        !mt_tokens_encode(call->served, arena, text_of(thinking->answer), false, &call->stop, 0, &answer, why))
        return false;
    ids = mt_arena_alloc(arena, (end.count + answer.count) * sizeof(*ids));
    if (!ids)
        return mt_failure_memory(why, NULL);
    memcpy(ids, end.ids, end.count * sizeof(*ids));
    if (answer.count)
        memcpy(ids + end.count, answer.ids, answer.count * sizeof(*ids));
    rule->end = ids;
    rule->end_count = end.count + answer.count;
    rule->end_once = tools ? end.count : rule->end_count;
    return true;
}

/* Whether the model can choose all tokens that end a thought: a tokenizer may have more than its model. */
static bool is_known(const mt_thought_rule *rule, const mt_served *served)
{
    for (size_t i = 0; i < rule->end_count; i++)
        if (rule->end[i] >= served->vocab)
            return false;
    return rule->end_once > 0;
}

bool mt_thinking_limit(mt_request *r, mt_call *call, const mt_ask *ask, const mt_token_prompt *prompt,
                       const mt_parse_settings *parsing, mt_failure *why)
{
    const mt_chat_template *template = mt_chat_templates_pick(prompt->templates, ask->chat.tools != NULL);
    const bool by_template = mt_template_reads(template->tpl, "reasoning_effort");
    const int64_t budget = mt_ask_budget(ask, by_template);
    mt_chat_thinking thinking;
    mt_thought_rule *rule;

    if (!mt_chat_thinking_find(parsing, &thinking)) {
        if (ask->think_field && budget != 0 && (budget > 0 || !by_template))
            mt_call_warn(call, "no thinking to limit: %s", ask->think_field);
        return true;
    }
    if (budget < 0 || (prompt->opened == MT_CHAT_OPENED_ANSWER && !thinking.anywhere))
        return true;
    rule = mt_arena_alloc(r->arena, sizeof(*rule));
    if (!rule)
        return mt_failure_memory(why, NULL);
    *rule = (mt_thought_rule){.budget = (size_t)budget,
                              .open = thinking.open,
                              .close = thinking.close,
                              .breaks = thinking.breaks,
                              .opened = prompt->opened == MT_CHAT_OPENED_REASONING,
                              .anywhere = thinking.anywhere};
    if (!set_end(rule, r->arena, call, &thinking, parsing->tools != NULL, why))
        return false;
    if (is_known(rule, call->served))
        r->thinking = rule;
    else if (ask->think_field)
        mt_call_warn(call, "no thinking is limited, since the model does not have the tokens that end it: %s",
                     ask->think_field);
    return true;
}
