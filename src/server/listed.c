/* See listed.h. */
#include "server/listed.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "server/inside.h"

static mt_listed list_model(mt_server *server, const mt_member_view *v, const char *name)
{
    mt_listed m = {.card = mt_cards_get(&server->cards, v->member->dir),
                   .view = *v,
                   .context = v->context,
                   .writes = !v->facts.encoder,
                   .sees = v->facts.vision,
                   .calls = v->facts.tools,
                   .thinks = v->facts.thinking,
                   .embeds = v->facts.embeds};

    snprintf(m.name, sizeof(m.name), "%s", name);
    return m;
}

static mt_listed list_encoder(mt_server *server, const mt_member_view *v, const mt_target *t)
{
    mt_listed m = {.card = mt_cards_get(&server->cards, mt_checkpoint_dir(t->encoder.checkpoint)),
                   .view = *v,
                   .context = t->context,
                   .embeds = t->pool != MT_POOL_SCORE};

    snprintf(m.name, sizeof(m.name), "%s", t->name);
    return m;
}

/* Appends the encoders that are loaded with a single model: those of that name (only; NULL: all). Returns how many. */
static size_t list_beside(mt_server *server, const mt_member_view *v, const char *only, mt_listed *out)
{
    mt_member *m = server->fleet.alone ? server->fleet.members[0] : NULL;
    size_t count = 0;

    mt_fleet_lock(&server->fleet);
    for (size_t i = 0; m && m->open && i + 1 < m->served.target_count; i++) /* the last is the model itself */
        if (!only || mt_served_called(only, m->served.targets[i].name))
            out[count++] = list_encoder(server, v, &m->served.targets[i]);
    mt_fleet_unlock(&server->fleet);
    return count;
}

mt_listed *mt_listed_all(mt_server *server, size_t *count)
{
    const mt_option_list *aliases = &server->opt->aliases;
    size_t members;
    mt_member_view *all = mt_fleet_list(&server->fleet, &members);
    mt_listed *out = mt_alloc_array(members + 2 * MT_LIMIT_OPTION_LIST + 1, sizeof(*out));

    *count = 0;
    for (size_t i = 0; i < members; i++) {
        out[(*count)++] = list_model(server, &all[i], all[i].name);
        for (size_t a = 0; i == 0 && !server->fleet.open && a < aliases->count; a++)
            out[(*count)++] = list_model(server, &all[i], aliases->at[a]);
    }
    if (members > 0)
        *count += list_beside(server, &all[0], NULL, out + *count);
    mt_free(all);
    return out;
}

bool mt_listed_find(mt_server *server, const char *name, mt_listed *out)
{
    mt_listed beside[MT_LIMIT_OPTION_LIST + 1];
    mt_member *m = mt_fleet_find(&server->fleet, name, true);

    if (!m)
        return false;
    const mt_member_view view = mt_member_look(m);
    *out = list_beside(server, &view, name, beside) ? beside[0] : list_model(server, &view, name);
    return true;
}
