/* GET /v1/models and its kin. Each model is written in the shapes of OpenAI's and of Anthropic's lists at once, since
   clients look only at their own fields, with what the model can do and whether it is loaded. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/json_body.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "server/inside.h"

enum { NAME = 512, UNLOAD_BYTES = 4096 }; /* bytes of a model's name; of the body of a request to unload one */

/* Opens the object of a model, as clients call it. root: its own name; context: 0: not known. */
static void add_head(const mt_server *server, mt_buf *out, const char *name, const char *root, size_t context)
{
    char since[MT_CLOCK_TEXT];

    mt_clock_text((struct timespec){.tv_sec = (time_t)server->created}, 0, since);
    mt_json_write(out,
                  "{'id':%s,'type':'model','display_name':%s,'created_at':%s,'object':'model','created':%" PRId64
                  ",'owned_by':'motet','root':%s,'parent':null",
                  name, name, since, server->created, root);
    if (context)
        mt_json_write(out, "'max_model_len':%zu", context);
    else
        mt_json_write(out, "'max_model_len':null");
}

static void add_abilities(mt_buf *out, const mt_member_facts *f)
{
    const struct {
        const char *name;
        bool is;
    } all[] = {{"completion", f->known && !f->encoder},
               {"chat", f->chats},
               {"vision", f->vision},
               {"tools", f->tools},
               {"thinking", f->thinking},
               {"embedding", f->embeds},
               {"rerank", f->encoder && f->scores}};

    mt_json_write(out, "'capabilities':[");
    for (size_t i = 0; i < MT_COUNT(all); i++)
        if (all[i].is)
            mt_json_write(out, "%s", all[i].name);
    mt_json_write(out, "]");
}

static void add_state(mt_buf *out, const mt_member_view *v)
{
    mt_json_write(out, "'state':%s,'memory':%" PRIu64 ",'requests':%zu,'waiting':%zu", mt_member_state_name(v->state),
                  v->memory, v->references, v->waiting);
    if (v->need)
        mt_json_write(out, "'memory_needed':%" PRIu64, v->need);
    if (v->state == MT_MEMBER_LOADING)
        mt_json_write(out, "'loading_seconds':%.3f", v->seconds);
    if (v->idle >= 0)
        mt_json_write(out, "'idle_seconds':%.3f", v->idle);
    if (v->expires >= 0)
        mt_json_write(out, "'expires_in':%.3f", v->expires);
    if (v->error.code != MT_OK)
        mt_json_write(out, "'error':%s", v->error.text);
}

static void add_model(const mt_server *server, mt_buf *out, const mt_member_view *v, const char *name)
{
    add_head(server, out, name, v->name, server->ready ? v->context : 0);
    add_abilities(out, &v->facts);
    add_state(out, v);
    mt_json_write(out, "}");
}

/* An encoder that is loaded with a single model; its state is that model's. */
static void add_encoder(mt_server *server, mt_buf *out, const mt_member_view *v, const mt_target *t)
{
    const mt_member_facts facts = {
        .known = true, .encoder = true, .scores = t->pool == MT_POOL_SCORE, .embeds = t->pool != MT_POOL_SCORE};

    add_head(server, out, t->name, t->name, t->context);
    add_abilities(out, &facts);
    add_state(out, v);
    mt_json_write(out, "}");
}

/* Writes the encoders beside a single model, which are known while it is loaded: the one of the name `only`, or all
   (NULL). False: there is none. last: gets the name of the last one. */
static bool add_beside(mt_server *server, mt_buf *out, const mt_member_view *v, const char *only, char last[NAME])
{
    mt_member *m = server->fleet.alone ? server->fleet.members[0] : NULL;
    bool any = false;

    mt_fleet_lock(&server->fleet);
    for (size_t i = 0; m && m->open && i + 1 < m->served.target_count; i++) { /* the last target is the model itself */
        const mt_target *t = &m->served.targets[i];

        if (only && !mt_served_called(only, t->name))
            continue;
        add_encoder(server, out, v, t);
        snprintf(last, NAME, "%s", t->name);
        any = true;
    }
    mt_fleet_unlock(&server->fleet);
    return any;
}

bool mt_models_list(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    const mt_option_list *aliases = &server->opt->aliases;
    char last[NAME] = "";
    size_t count;
    mt_member_view *all = mt_fleet_list(&server->fleet, &count);

    (void)request, (void)why;
    mt_json_write(out, "{'object':'list','data':[");
    for (size_t i = 0; i < count; i++) {
        add_model(server, out, &all[i], all[i].name);
        snprintf(last, sizeof(last), "%s", all[i].name);
        for (size_t a = 0; i == 0 && !server->fleet.open && a < aliases->count; a++) {
            add_model(server, out, &all[i], aliases->at[a]);
            snprintf(last, sizeof(last), "%s", aliases->at[a]);
        }
    }
    if (count > 0)
        add_beside(server, out, &all[0], NULL, last);
    mt_json_write(out, "],'has_more':false,'first_id':%s,'last_id':%s}", count && *all[0].name ? all[0].name : NULL,
                  *last ? last : NULL);
    mt_free(all);
    return true;
}

static bool is_unknown(const char *name, mt_failure *why)
{
    return mt_failure_set(why, 404, "model_not_found", "model",
                          "the model \"%.100s\" does not exist here: see /v1/models", name);
}

bool mt_models_get(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    const char *name = request->params[0];
    char last[NAME];
    mt_member *m = mt_fleet_find(&server->fleet, name, true);

    if (!m)
        return is_unknown(name, why);
    const mt_member_view view = mt_member_look(m);
    if (!add_beside(server, out, &view, name, last))
        add_model(server, out, &view, name);
    return true;
}

bool mt_models_may(const mt_server *server, const mt_account *account, mt_failure *why)
{
    return !account || account->admin || server->keys.account_count <= 1 ||
           mt_failure_set(why, 403, "forbidden", NULL, "this key may not unload models: use one that is an admin's");
}

/* The body is {"model": name}. The model is unloaded as soon as no call uses it. */
bool mt_models_unload(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    const size_t len = request->body_len < UNLOAD_BYTES ? request->body_len : UNLOAD_BYTES;
    json_t *json = mt_json_body_parse(request->body ? request->body : "", len, NULL, why);
    const char *name = json_string_value(json_object_get(json, "model"));
    bool ok = json && (name || mt_failure_set(why, 400, "missing_field", "model",
                                              "\"model\" is missing: send the name of one"));

    ok = ok && (mt_fleet_unload(&server->fleet, name) || is_unknown(name, why));
    if (ok) {
        const mt_member_view view = mt_member_look(mt_fleet_find(&server->fleet, name, false));

        add_model(server, out, &view, view.name);
    }
    mt_json_body_free(json, len);
    return ok;
}
