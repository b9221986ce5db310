/* See preparation.h. */
#include "server/prepare/preparation.h"

#include "base/alloc.h"
#include "base/json_tree.h"
#include "server/inside.h"

/* Gives back the room that a waiting preparation took: it is worked on again, for which the server has other memory. */
static void unpark(mt_call *call)
{
    mt_room_give(&call->server->room, call->preparation->charged);
    call->preparation->charged = 0;
}

mt_preparation *mt_preparation_get(mt_call *call, const json_t *body, mt_failure *why)
{
    mt_arena *arena;
    mt_ask *ask;

    if (call->preparation) {
        unpark(call);
        return call->preparation;
    }
    arena = mt_arena_new(MT_LIMIT_REQUEST_MEMORY);
    ask = mt_arena_alloc(arena, sizeof(*ask));
    if (!ask) {
        mt_arena_free(arena);
        mt_failure_memory(why, NULL);
        return NULL;
    }
    mt_ask_init(ask, arena, body, &call->served->generation.defaults);
    ask->store = mt_call_store(call);
    ask->recent = call->recent;
    call->preparation = mt_alloc(sizeof(*call->preparation));
    call->preparation->arena = arena;
    call->preparation->ask = ask;
    return call->preparation;
}

void mt_preparation_park(mt_call *call)
{
    mt_preparation *d = call->preparation;
    size_t bytes = d ? mt_arena_used(d->arena) + mt_json_tree_memory(d->ask->owned) : 0;

    if (!d)
        return;
    for (size_t i = 0; d->prompts && i < d->count; i++)
        bytes += d->prompts[i].count * sizeof(*d->prompts[i].ids);
    if (mt_alloc_refused() == call->refused && mt_room_take(&call->server->room, bytes))
        d->charged = bytes;
    else
        mt_preparation_free(call);
}

void mt_preparation_free(mt_call *call)
{
    mt_preparation *d = call->preparation;

    if (!d)
        return;
    unpark(call);
    for (size_t i = 0; d->prompts && i < d->count; i++) {
        mt_pictures_free(&d->prompts[i].pictures);
        mt_constraint_release(d->prompts[i].constraint);
    }
    mt_ask_free(d->ask);
    if (!call->answer)
        mt_arena_free(d->arena);
    mt_free(d);
    call->preparation = NULL;
}
