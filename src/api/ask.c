/* See ask.h. */
#include "api/ask.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json_tree.h"

void mt_ask_defaults_init(mt_ask_defaults *defaults)
{
    *defaults = (mt_ask_defaults){0};
    mt_sample_settings_init(&defaults->sampling);
}

void mt_ask_init(mt_ask *ask, mt_arena *arena, const json_t *body, const mt_ask_defaults *defaults)
{
    *ask = (mt_ask){.arena = arena,
                    .body = body,
                    .add_special_tokens = true,
                    .skip_special_tokens = true,
                    .n = 1,
                    .keep_alive = NAN,
                    .parallel_calls = true,
                    .sampling = defaults->sampling,
                    .max_tokens = -1,
                    .think_budget = -1,
                    .truncate = MT_TRUNCATE_NONE,
                    .default_max_tokens = defaults->max_tokens,
                    .repeat_limit = defaults->repeat_limit,
                    .form = {.include_reasoning = true, .prompt_logprobs = -1}};
}

void mt_ask_free(mt_ask *ask)
{
    json_decref(ask->owned);
    json_decref(ask->extra);
    json_decref(ask->schema);
    json_decref(ask->call_names);
    ask->owned = ask->extra = ask->schema = ask->call_names = NULL;
}

/* Whether the request says outright that the model is to think: then an effort of "none" does not count. */
static bool thinks(const mt_chat *chat)
{
    const json_t *wanted = json_object_get(chat->kwargs, "enable_thinking");

    return json_is_true(wanted ? wanted : chat->thinking);
}

int64_t mt_ask_budget(const mt_ask *ask, bool by_template)
{
    static const struct {
        const char *effort;
        int64_t tokens;
    } budgets[] = {{"minimal", 512}, {"low", 2048}, {"medium", 8192}, {"high", 24576}};
    const char *effort = mt_json_word(ask->chat.effort);

    if (ask->think_budget >= 0 || by_template || !effort)
        return ask->think_budget;
    for (size_t i = 0; i < MT_COUNT(budgets); i++)
        if (strcmp(effort, budgets[i].effort) == 0)
            return budgets[i].tokens;
    return strcmp(effort, "none") == 0 && !thinks(&ask->chat) ? 0 : -1;
}

const json_t *mt_ask_own(mt_ask *ask, json_t *json)
{
    if (!ask->owned)
        ask->owned = json_array();
    json_array_append_new(ask->owned, json);
    return json;
}

static bool is_noted(const mt_ask *ask, const char *type)
{
    const size_t len = strlen(type);
    const char *at = ask->ignored;

    while ((at = strstr(at, type))) {
        if ((at == ask->ignored || at[-1] == ' ') && (at[len] == ',' || !at[len]))
            return true;
        at++;
    }
    return false;
}

void mt_ask_ignore(mt_ask *ask, const char *type)
{
    static const char more[] = "...";
    const size_t len = strlen(ask->ignored);

    if (!*type) /* an empty name would be found in any text */
        type = "\"\"";
    if (is_noted(ask, type) || is_noted(ask, more))
        return;
    if (len + strlen(type) + sizeof(more) + 4 >= sizeof(ask->ignored)) /* of these, 4 are for two commas with blanks */
        type = more;
    snprintf(ask->ignored + len, sizeof(ask->ignored) - len, "%s%s", len ? ", " : "", type);
}
