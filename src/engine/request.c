/* Makes and frees requests (request.h). */
#include "engine/request.h"

#include <string.h>

mt_request *mt_request_new(void)
{
    mt_arena *arena = mt_arena_new(0);
    mt_request *r = mt_arena_alloc(arena, sizeof(*r));
    r->arena = arena;
    r->choices = 1;
    r->client.share = 1;
    r->name = "";
    mt_sample_settings_init(&r->sampling);
    return r;
}

void mt_request_free(mt_request *r)
{
    if (r)
        mt_arena_free(r->arena);
}

const char *mt_finish_name(mt_finish finish)
{
    static const char *const names[] = {"stop", "length", "cancelled", "error"};
    return names[finish];
}
