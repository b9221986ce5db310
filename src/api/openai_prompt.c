/* See openai_prompt.h. */
#include "api/openai_prompt.h"

#include "api/limits.h"
#include "base/json_tree.h"
#include "weights/limits.h"

static bool read_id(const char *name, const json_t *id, uint32_t *out, mt_failure *why)
{
    if (!json_is_integer(id))
        return mt_failure_field(why, "invalid_type", name, "has %s where a token id should be: send ids",
                                mt_json_kind(id));
    if (json_integer_value(id) < 0 || json_integer_value(id) >= MT_LIMIT_VOCAB)
        return mt_failure_value(
            why, name, "has the token id %" JSON_INTEGER_FORMAT ", which is out of vocabulary: send ids of the model's",
            json_integer_value(id));
    *out = (uint32_t)json_integer_value(id);
    return true;
}

bool mt_openai_ids_read(mt_arena *arena, const char *name, const json_t *list, mt_ask_prompt *out, mt_failure *why)
{
    const size_t count = json_array_size(list);
    uint32_t *ids = mt_arena_alloc(arena, (count + 1) * sizeof(*ids));

    if (!ids)
        return mt_failure_memory(why, name);
    for (size_t i = 0; i < count; i++)
        if (!read_id(name, json_array_get(list, i), ids + i, why))
            return false;
    *out = (mt_ask_prompt){.ids = ids, .count = count};
    return true;
}

/* Whether a list is one prompt: it has token ids, and perhaps strings beside them. */
static bool is_one(const json_t *list)
{
    bool ids = false;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);

        if (json_is_array(value) || json_is_object(value))
            return false;
        ids = ids || !json_is_string(value);
    }
    return ids;
}

static bool has_strings(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i)))
            return true;
    return false;
}

/* A list of strings and token ids. */
static bool read_pieces(mt_ask *ask, const char *field, const json_t *list, mt_ask_prompt *out, mt_failure *why)
{
    const size_t count = json_array_size(list);
    mt_ask_piece *pieces = mt_arena_alloc(ask->arena, count * sizeof(*pieces));
    uint32_t *ids = mt_arena_alloc(ask->arena, count * sizeof(*ids));

    if (!pieces || !ids)
        return mt_failure_memory(why, field);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);

        pieces[i] = (mt_ask_piece){.ids = ids + i, .count = 1};
        if (json_is_string(value))
            pieces[i] = (mt_ask_piece){.text = mt_chat_text_of(value)};
        else if (!read_id(field, value, ids + i, why))
            return false;
    }
    *out = (mt_ask_prompt){.pieces = pieces, .piece_count = count};
    return true;
}

/* An object of llama.cpp's: {"prompt_string", "multimodal_data"}. Pictures need a chat, whose template has their
   places. */
static bool read_object(const char *field, const json_t *value, mt_ask_prompt *out, mt_failure *why)
{
    const json_t *text = json_object_get(value, "prompt_string");

    if (json_array_size(json_object_get(value, "multimodal_data")))
        return mt_failure_unsupported(why, field,
                                      "has \"multimodal_data\": send pictures to /v1/chat/completions instead");
    if (!json_is_string(text))
        return mt_failure_field(why, "invalid_type", field, "has an object without a \"prompt_string\": send one");
    out->text = mt_chat_text_of(text);
    return true;
}

static bool read_one(mt_ask *ask, const char *field, const json_t *value, mt_ask_prompt *out, mt_failure *why)
{
    if (json_is_array(value) && !ask->form.vectors && has_strings(value))
        return read_pieces(ask, field, value, out, why);
    if (json_is_array(value))
        return mt_openai_ids_read(ask->arena, field, value, out, why);
    if (json_is_object(value) && !ask->form.vectors)
        return read_object(field, value, out, why);
    if (!json_is_string(value))
        return mt_failure_field(why, "invalid_type", field,
                                "has %s in it: send a string, token ids, or a list of either", mt_json_kind(value));
    out->text = mt_chat_text_of(value);
    return true;
}

bool mt_openai_prompts_read(mt_ask *ask, const char *field, const json_t *prompt, mt_failure *why)
{
    const json_t *first = json_array_get(prompt, 0);
    const bool many =
        json_is_array(prompt) && (ask->form.vectors ? json_is_string(first) || json_is_array(first) : !is_one(prompt));
    const size_t count = many ? json_array_size(prompt) : 1;

    if (!json_is_string(prompt) && !json_is_array(prompt) && (ask->form.vectors || !json_is_object(prompt)))
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

bool mt_openai_suffix_read(mt_ask *ask, const json_t *suffix, mt_failure *why)
{
    static const char field[] = "suffix";
    mt_ask_infill *gaps;

    if (!suffix)
        return true;
    if (!json_is_string(suffix))
        return mt_failure_type(why, field, suffix, "a string");
    if (json_string_length(suffix) == 0)
        return true;
    if (ask->form.echo)
        return mt_failure_unsupported(why, field, "is not taken with \"echo\": leave one of them out");
    gaps = mt_arena_alloc(ask->arena, ask->prompt_count * sizeof(*gaps));
    if (!gaps)
        return mt_failure_memory(why, field);
    for (size_t i = 0; i < ask->prompt_count; i++) {
        if (!ask->prompts[i].text.data)
            return mt_failure_unsupported(why, field, "needs a prompt that is a string: send one");
        gaps[i] = (mt_ask_infill){.field = field, .prefix = ask->prompts[i].text, .suffix = mt_chat_text_of(suffix)};
        ask->prompts[i] = (mt_ask_prompt){.infill = &gaps[i]};
    }
    return true;
}
