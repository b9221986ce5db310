/* See openai_prompt.h. */
#include "api/openai_prompt.h"

#include "base/json_tree.h"
#include "base/limits.h"

bool mt_openai_ids_read(mt_arena *arena, const char *name, const json_t *list, mt_ask_prompt *out, mt_failure *why)
{
    const size_t count = json_array_size(list);
    uint32_t *ids = mt_arena_alloc(arena, (count + 1) * sizeof(*ids));

    if (!ids)
        return mt_failure_memory(why, name);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(list, i);

        if (!json_is_integer(id))
            return mt_failure_field(why, "invalid_type", name, "has %s where a token id should be: send ids",
                                    mt_json_kind(id));
        if (json_integer_value(id) < 0 || json_integer_value(id) >= MT_LIMIT_VOCAB)
            return mt_failure_value(why, name,
                                    "has the token id %" JSON_INTEGER_FORMAT
                                    ", which no vocabulary has: send ids of the model's",
                                    json_integer_value(id));
        ids[i] = (uint32_t)json_integer_value(id);
    }
    *out = (mt_ask_prompt){.ids = ids, .count = count};
    return true;
}

static bool read_one(mt_ask *ask, const char *field, const json_t *value, mt_ask_prompt *out, mt_failure *why)
{
    if (json_is_array(value))
        return mt_openai_ids_read(ask->arena, field, value, out, why);
    if (!json_is_string(value))
        return mt_failure_field(why, "invalid_type", field,
                                "has %s in it: send a string, token ids, or a list of either", mt_json_kind(value));
    out->text = mt_chat_text_of(value);
    return true;
}

bool mt_openai_prompts_read(mt_ask *ask, const char *field, const json_t *prompt, mt_failure *why)
{
    const json_t *first = json_array_get(prompt, 0);
    const bool many = json_is_array(prompt) && (json_is_string(first) || json_is_array(first));
    const size_t count = many ? json_array_size(prompt) : 1;

    if (!json_is_string(prompt) && !json_is_array(prompt))
        return mt_failure_type(why, field, prompt, "a string, token ids, or a list of either");
    if (json_is_array(prompt) && json_array_size(prompt) == 0)
        return mt_failure_value(why, field, "is an empty list: send a %s", ask->form.vectors ? "text" : "prompt");
    if (ask->form.vectors && count > MT_LIMIT_EMBEDDINGS)
        return mt_failure_value(why, field, "has %zu texts, and %d may be sent at once: send them in several requests",
                                count, MT_LIMIT_EMBEDDINGS);
    if (!ask->form.vectors && count * (size_t)ask->n > MT_LIMIT_CHOICES)
        return mt_failure_set(why, 400, "invalid_value", field,
                              "%zu prompts with n = %d are more than %d answers: send them in several requests", count,
                              (int)ask->n, MT_LIMIT_CHOICES);
    ask->prompts = mt_arena_alloc(ask->arena, count * sizeof(*ask->prompts));
    if (!ask->prompts)
        return mt_failure_memory(why, field);
    for (; ask->prompt_count < count; ask->prompt_count++)
        if (!read_one(ask, field, many ? json_array_get(prompt, ask->prompt_count) : prompt,
                      &ask->prompts[ask->prompt_count], why))
            return false;
    return true;
}
