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

/* Where what is left in may begin: with a user's message, or with the last. Returns how many such places there are. */
static size_t find_starts(const mt_chat *chat, size_t *starts)
{
    size_t count = 0;

    for (size_t i = 1; i < chat->count; i++)
        if (i + 1 == chat->count || chat->messages[i].role == MT_CHAT_USER)
            starts[count++] = i;
    return count;
}

/* A copy, which may be changed, of what the system says and the messages from one on. */
static mt_chat chat_from(const mt_chat *chat, size_t from)
{
    mt_chat kept = *chat;

    kept.messages = NULL;
    kept.count = 0;
    for (size_t i = 0; i < chat->count; i++) {
        mt_chat_message copy = chat->messages[i];

        if (i < from && copy.role != MT_CHAT_SYSTEM)
            continue;
        copy.parts = mt_arena_alloc(kept.arena, copy.part_count * sizeof(*copy.parts) + 1);
        kept.starved = kept.starved || !copy.parts;
        if (copy.parts && copy.part_count)
            memcpy(copy.parts, chat->messages[i].parts, copy.part_count * sizeof(*copy.parts));
        copy.part_count = copy.parts ? copy.part_count : 0;
        mt_chat_put(&kept, &copy);
    }
    return kept;
}

typedef enum outcome { FITS, TOO_LONG, FAILED } outcome;

typedef struct attempt {
    mt_tokens_chat_fn *make;
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
    mt_chat chat = chat_from(&a->ask->chat, from);

    mt_pictures_free(&a->out->pictures);
    *a->out = (mt_token_prompt){.count = 0};
    a->why->code = NULL;
    *a->forgotten = a->ask->chat.count - chat.count;
    if (chat.starved) {
        mt_failure_memory(a->why, "messages");
        return FAILED;
    }
    if (a->make(a->served, &chat, a->ask->body, a->stop, a->most, a->out, NULL, a->why))
        return a->out->count <= room_of(a->served, a->ask) ? FITS : TOO_LONG;
    return a->why->code && strcmp(a->why->code, "context_length_exceeded") == 0 ? TOO_LONG : FAILED;
}

bool mt_forget_make(mt_tokens_chat_fn *make, mt_served *served, const mt_ask *ask, const atomic_bool *stop, size_t most,
                    mt_token_prompt *out, size_t *forgotten, mt_failure *why)
{
    const attempt a = {make, served, ask, stop, most, out, forgotten, why};
    outcome found = try_from(&a, 0);
    size_t *starts, count, low, high;

    if (found != TOO_LONG)
        return found == FITS;
    starts = mt_arena_alloc(ask->arena, (ask->chat.count + 1) * sizeof(*starts));
    if (!starts)
        return mt_failure_memory(why, "messages");
    count = find_starts(&ask->chat, starts);
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
