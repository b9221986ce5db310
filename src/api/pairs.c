/* See pairs.h. */
#include "api/pairs.h"

#include <math.h>

#include "api/chat_body.h"
#include "api/limits.h"
#include "base/json_tree.h"

/* The text number i of a list, or the only one; NULL: it is no text. */
static const json_t *text_at(const json_t *given, size_t i)
{
    const json_t *one = json_is_array(given) ? json_array_get(given, i) : given;

    if (json_is_object(one))
        one = json_object_get(one, "text");
    return json_is_string(one) ? one : NULL;
}

static size_t count_of(const json_t *given)
{
    return json_is_array(given) ? json_array_size(given) : 1;
}

static bool check_list(const json_t *given, const char *name, mt_failure *why)
{
    const size_t count = count_of(given);

    if (!given)
        return mt_failure_field(why, "missing_required_parameter", name, "is missing: send texts");
    if (count == 0)
        return mt_failure_value(why, name, "is an empty list: send a text");
    if (count > MT_LIMIT_EMBEDDINGS)
        return mt_failure_value(why, name, "has %zu texts, and %d may be sent at once: send them in several requests",
                                count, MT_LIMIT_EMBEDDINGS);
    for (size_t i = 0; i < count; i++)
        if (!text_at(given, i))
            return mt_failure_field(why, "invalid_type", name, "has %s in it: send strings",
                                    mt_json_kind(json_is_array(given) ? json_array_get(given, i) : given));
    return true;
}

bool mt_pairs_read(mt_ask *ask, const char *const names[2], mt_failure *why)
{
    const json_t *first = mt_body_get(ask->body, names[0]), *second = mt_body_get(ask->body, names[1]);
    const size_t queries = count_of(first), count = count_of(second);

    if (!check_list(first, names[0], why) || !check_list(second, names[1], why))
        return false;
    if (queries > 1 && queries != count)
        return mt_failure_value(why, names[0], "has %zu texts and \"%s\" %zu: send one, or as many", queries, names[1],
                                count);
    ask->prompts = mt_arena_alloc(ask->arena, count * sizeof(*ask->prompts));
    if (!ask->prompts)
        return mt_failure_memory(why, names[1]);
    for (size_t i = 0; i < count; i++)
        ask->prompts[i] = (mt_ask_prompt){.text = mt_chat_text_of(text_at(second, i)),
                                          .query = mt_chat_text_of(text_at(first, queries > 1 ? i : 0))};
    ask->prompt_count = count;
    ask->query_count = queries;
    ask->text_field = names[1];
    return true;
}

size_t mt_pairs_count(const mt_answer *a)
{
    return a->choice_count - a->queries;
}

static double cosine(const mt_choice *a, const mt_choice *b)
{
    double dot = 0, x = 0, y = 0;

    for (size_t i = 0; i < a->vector_len; i++) {
        dot += (double)a->vector[i] * (double)b->vector[i];
        x += (double)a->vector[i] * (double)a->vector[i];
        y += (double)b->vector[i] * (double)b->vector[i];
    }
    return dot / fmax(sqrt(x) * sqrt(y), 1e-8);
}

double mt_pairs_score(const mt_answer *a, size_t pair)
{
    const double score = (double)a->choices[pair].vector[0];

    if (a->queries)
        return cosine(&a->choices[a->queries > 1 ? pair : 0], &a->choices[a->queries + pair]);
    return a->form.scaling == MT_SCALING_OFF ? score : 1 / (1 + exp(-score));
}
