#include "server/listed.h"

#include <string.h>

#include "server/inside.h"

static bool shows(const char *own, const char *found)
{
    const char *format = own ? own : found;

    return format && strcmp(format, "none") != 0;
}

static mt_listed list_model(mt_server *server, const char *name)
{
    const mt_served *s = &server->served;
    const mt_chat_template *t = s->templates ? mt_chat_templates_pick(s->templates, true) : NULL;
    const mt_target *self = &s->targets[s->target_count - 1];
    const bool alone = !s->opened.checkpoint; /* an encoder, and nothing else */

    return (mt_listed){.name = name,
                       .card = mt_cards_get(&server->cards,
                                            mt_checkpoint_dir(alone ? self->encoder.checkpoint : s->opened.checkpoint)),
                       .context = s->context,
                       .writes = !alone,
                       .sees = s->opened.processor != NULL,
                       .calls = t && shows(s->formats.tools, t->formats.tools),
                       .thinks = t && shows(s->formats.reasoning, t->formats.reasoning),
                       .embeds = self->embeds && self->pool != MT_POOL_SCORE};
}

static mt_listed list_encoder(mt_server *server, const mt_target *t)
{
    return (mt_listed){.name = t->name,
                       .card = mt_cards_get(&server->cards, mt_checkpoint_dir(t->encoder.checkpoint)),
                       .context = t->context,
                       .embeds = t->pool != MT_POOL_SCORE};
}

size_t mt_listed_all(mt_server *server, mt_listed out[MT_LISTED_MOST])
{
    const mt_served *s = &server->served;
    size_t count = 0;

    out[count++] = list_model(server, s->name);
    for (size_t i = 0; i < s->aliases->count; i++)
        out[count++] = list_model(server, s->aliases->at[i]);
    for (size_t i = 0; i + 1 < s->target_count; i++) /* the last is the model itself */
        out[count++] = list_encoder(server, &s->targets[i]);
    return count;
}

bool mt_listed_find(mt_server *server, const char *name, mt_listed *out)
{
    const mt_target *encoder = mt_served_encoder(&server->served, name);

    if (!encoder && !mt_served_answers(&server->served, name))
        return false;
    *out = encoder ? list_encoder(server, encoder) : list_model(server, name);
    return true;
}
