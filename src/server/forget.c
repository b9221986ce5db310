#include "server/forget.h"

#include <stdint.h>
#include <string.h>

/* Tokens that a prompt may have: an answer needs room, too, as much as it may have or an eighth of the context. */
static size_t room_of(const mt_served *served, const mt_ask *ask)
{
    const size_t wanted = ask->max_tokens >= 0 ? (size_t)ask->max_tokens : served->context / 8;
    const size_t most = served->context / 2;

    return served->context - (wanted < 1 ? 1 : wanted < most ? wanted : most);
}

static bool has_role(const json_t *message, const char *role)
{
    const char *own = json_string_value(json_object_get(message, "role"));

    return own && strcmp(own, role) == 0;
}

/* Where what is left in may begin: with a user's message, or with the last. Returns how many such places there are. */
static size_t find_starts(const json_t *messages, size_t *starts)
{
    const size_t all = json_array_size(messages);
    size_t count = 0;

    for (size_t i = 1; i < all; i++)
        if (i + 1 == all || has_role(json_array_get(messages, i), "user"))
            starts[count++] = i;
    return count;
}

static void drop(void *json)
{
    json_decref(json);
}

/* The body with what the system says and the messages from one on. It lives as long as the arena. */
static const json_t *body_from(mt_arena *arena, const json_t *body, size_t from, size_t *forgotten)
{
    const json_t *all = json_object_get(body, "messages");
    json_t *copy = json_copy((json_t *)(uintptr_t)body), *kept = json_array(); /* shares what is in it */

    for (size_t i = 0; i < json_array_size(all); i++) {
        json_t *message = json_array_get(all, i);

        if (i >= from || has_role(message, "system") || has_role(message, "developer"))
            json_array_append(kept, message);
    }
    *forgotten = json_array_size(all) - json_array_size(kept);
    json_object_set_new(copy, "messages", kept);
    if (mt_arena_defer(arena, drop, copy))
        return copy;
    json_decref(copy);
    return NULL;
}

typedef enum outcome { FITS, TOO_LONG, FAILED } outcome;

typedef struct attempt {
    mt_served *served;
    const mt_ask *ask;
    const atomic_bool *stop;
    size_t most;
    mt_token_prompt *out;
    size_t *forgotten;
    mt_failure *why;
} attempt;

/* What an earlier one has left is freed. */
static outcome try_from(const attempt *a, size_t from)
{
    const json_t *body = from ? body_from(a->ask->arena, a->ask->body, from, a->forgotten) : a->ask->body;

    mt_pictures_free(&a->out->pictures);
    *a->out = (mt_token_prompt){.count = 0};
    a->why->code = NULL;
    if (!body) {
        mt_failure_memory(a->why, "messages");
        return FAILED;
    }
    if (mt_tokens_chat(a->served, a->ask->arena, body, a->stop, a->most, a->out, NULL, a->why))
        return a->out->count <= room_of(a->served, a->ask) ? FITS : TOO_LONG;
    return a->why->code && strcmp(a->why->code, "context_length_exceeded") == 0 ? TOO_LONG : FAILED;
}

bool mt_forget_make(mt_served *served, const mt_ask *ask, const atomic_bool *stop, size_t most, mt_token_prompt *out,
                    size_t *forgotten, mt_failure *why)
{
    const attempt a = {served, ask, stop, most, out, forgotten, why};
    const json_t *messages = json_object_get(ask->body, "messages");
    outcome found = try_from(&a, 0);
    size_t *starts, count, low, high;

    *forgotten = 0;
    if (found != TOO_LONG)
        return found == FITS;
    starts = mt_arena_alloc(ask->arena, (json_array_size(messages) + 1) * sizeof(*starts));
    if (!starts)
        return mt_failure_memory(why, "messages");
    count = find_starts(messages, starts);
    for (low = 0, high = count; low < high && found != FAILED;) { /* the later one begins, the shorter it is */
        const size_t middle = low + (high - low) / 2;

        found = try_from(&a, starts[middle]);
        if (found == FITS)
            high = middle;
        else
            low = middle + 1;
    }
    if (found != FAILED && count > 0)
        found = try_from(&a, starts[high < count ? high : count - 1]);
    return found == FITS || (found == TOO_LONG && out->count > 0); /* what still does not fit is refused as any other */
}
