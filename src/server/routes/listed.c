/* See listed.h. */
#include "server/routes/listed.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/json_write.h"
#include "options/limits.h"
#include "server/inside.h"
#include "server/limits.h"

mt_listed mt_listed_member(const mt_member_view *v, const char *name)
{
    mt_listed m = {.view = *v};

    snprintf(m.name, sizeof(m.name), "%s", name);
    return m;
}

static mt_listed list_member(mt_server *server, bool cards, const mt_member_view *v, const char *name)
{
    mt_listed m = mt_listed_member(v, name);

    m.card = cards ? mt_cards_get(&server->cards, v->member->dir) : NULL;
    if (m.card && m.view.context == 0) /* a model that was found a moment ago: its folder is still to be read */
        m.view.context = (size_t)m.card->context;
    return m;
}

static mt_listed list_encoder(mt_server *server, bool cards, const mt_member_view *v, const mt_target *t)
{
    const bool scores = t->pool == MT_POOL_CLASSES && t->width == 1;
    const bool classifies = t->pool == MT_POOL_CLASSES && t->width > 1;
    mt_listed m = mt_listed_member(v, t->name);

    m.beside = true;
    m.view.facts = (mt_member_facts){
        .known = true, .encoder = true, .scores = scores, .classifies = classifies, .embeds = !scores && !classifies};
    m.view.context = t->context;
    m.card = cards ? mt_cards_get(&server->cards, mt_checkpoint_dir(t->encoder.checkpoint)) : NULL;
    return m;
}

/* Appends the encoders that are loaded with a single model: those of that name (only; NULL: all). Returns how many. */
static size_t list_beside(mt_server *server, bool cards, const mt_member_view *v, const char *only, mt_listed *out)
{
    mt_member *m = server->fleet.alone ? server->fleet.members[0] : NULL;
    size_t count = 0;

    pthread_mutex_lock(&server->fleet.lock);
    for (size_t i = 0; m && m->open && i + 1 < m->served.target_count; i++) /* the last is the model itself */
        if (!only || mt_served_called(only, m->served.targets[i].name))
            out[count++] = list_encoder(server, cards, v, &m->served.targets[i]);
    pthread_mutex_unlock(&server->fleet.lock);
    return count;
}

/* A created model, as the one it is made from. False: that is not here. */
static bool list_one_created(mt_server *server, bool cards, const char *name, const char *from, mt_listed *out)
{
    mt_member *m = mt_fleet_find(&server->fleet, from, true);

    if (!m)
        return false;
    const mt_member_view view = mt_member_look(m);
    *out = list_member(server, cards, &view, name);
    out->created = true;
    return true;
}

/* Appends the created models, at most MT_LIMIT_CREATED. Returns how many. */
static size_t list_created(mt_server *server, bool cards, mt_listed *out)
{
    size_t names, count = 0;
    mt_created_name *all = mt_created_list(&server->creations, &names);

    for (size_t i = 0; i < names; i++)
        count += list_one_created(server, cards, all[i].name, all[i].from, &out[count]);
    mt_free(all);
    return count;
}

/* Finds a created model; false: there is none of that name, or the one it is made from is not here. */
static bool find_created(mt_server *server, const char *name, bool cards, mt_listed *out)
{
    json_t *created = mt_created_get(&server->creations, name);
    const bool found =
        created && list_one_created(server, cards, name, json_string_value(json_object_get(created, "from")), out);

    json_decref(created);
    return found;
}

mt_listed *mt_listed_all(mt_server *server, bool cards, size_t *count)
{
    const mt_option_list *aliases = &server->opt->aliases;
    size_t members;
    mt_member_view *all = mt_fleet_list(&server->fleet, &members);
    mt_listed *out = mt_alloc_array(members + 2 * MT_LIMIT_OPTION_LIST + MT_LIMIT_CREATED + 1, sizeof(*out));

    *count = 0;
    for (size_t i = 0; i < members; i++) {
        out[(*count)++] = list_member(server, cards, &all[i], all[i].name);
        for (size_t a = 0; i == 0 && !server->fleet.open && a < aliases->count; a++)
            out[(*count)++] = list_member(server, cards, &all[i], aliases->at[a]);
    }
    if (members > 0)
        *count += list_beside(server, cards, &all[0], NULL, out + *count);
    *count += list_created(server, cards, out + *count);
    mt_free(all);
    return out;
}

bool mt_listed_find(mt_server *server, const char *name, bool cards, mt_listed *out)
{
    mt_listed beside[MT_LIMIT_OPTION_LIST + 1];
    mt_member *m;

    if (find_created(server, name, cards, out))
        return true;
    m = mt_fleet_find(&server->fleet, name, true);

    if (!m)
        return false;
    const mt_member_view view = mt_member_look(m);
    *out = list_beside(server, cards, &view, name, beside) ? beside[0] : list_member(server, cards, &view, name);
    return true;
}

void mt_listed_write_capabilities(const mt_listed *m, bool ollama, mt_buf *out)
{
    const mt_member_facts *f = &m->view.facts;
    const struct {
        const char *name;
        bool is;
    } all[] = {{"completion", (f->known || ollama) && !f->encoder},
               {"chat", f->chats && !ollama},
               {"vision", f->vision},
               {"tools", f->tools},
               {"thinking", f->thinking},
               {"embedding", f->embeds},
               {"rerank", f->encoder && f->scores && !ollama},
               {"classify", f->classifies && !ollama}};

    mt_json_write(out, "'capabilities':[");
    for (size_t i = 0; i < MT_COUNT(all); i++)
        if (all[i].is)
            mt_json_write(out, "%s", all[i].name);
    mt_json_write(out, "]");
}
