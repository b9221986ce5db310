/* GET /v1/models and its kin. Each model is written in the shapes of OpenAI's and of Anthropic's lists at once, since
   clients look only at their own fields, with what the model can do and whether it is loaded. Gemini's list is a member
   of its own of the same body, since the "name" of its models begins with "models/". */
#include <inttypes.h>
#include <time.h>

#include "api/json_body.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "server/inside.h"
#include "server/routes/listed.h"

enum { UNLOAD_BYTES = 4096 }; /* of the body of a request to unload a model */

static void add_state(mt_buf *out, const mt_member_view *v)
{
    static const char *const states[] = {[MT_MEMBER_UNLOADED] = "unloaded",
                                         [MT_MEMBER_LOADING] = "loading",
                                         [MT_MEMBER_READY] = "ready",
                                         [MT_MEMBER_LEAVING] = "leaving"};

    mt_json_write(out, "'state':%s,'memory':%" PRIu64 ",'memory_used':%" PRIu64 ",'requests':%zu,'waiting':%zu",
                  states[v->state], v->memory, v->used, v->references, v->waiting);
    if (v->need)
        mt_json_write(out, "'memory_needed':%" PRIu64, v->need);
    if (v->too_large)
        mt_json_write(out, "'too_large':true");
    if (v->state == MT_MEMBER_LOADING)
        mt_json_write(out, "'loading_seconds':%.3f", v->seconds);
    if (v->idle >= 0)
        mt_json_write(out, "'idle_seconds':%.3f", v->idle);
    if (v->expires >= 0)
        mt_json_write(out, "'expires_in':%.3f", v->expires);
    if (v->error.code != MT_OK)
        mt_json_write(out, "'error':%s", v->error.text);
}

/* Opens the object of a model. */
static void open_model(const mt_server *server, mt_buf *out, const mt_listed *m)
{
    char since[MT_CLOCK_TEXT];

    mt_clock_text((struct timespec){.tv_sec = (time_t)server->created}, 0, since);
    mt_json_write(out,
                  "{'id':%s,'type':'model','display_name':%s,'created_at':%s,'object':'model','created':%" PRId64
                  ",'owned_by':'motet','root':%s,'parent':null",
                  m->name, m->name, since, server->created, m->beside ? m->name : m->view.name);
    if (m->view.context && (m->beside || server->ready))
        mt_json_write(out, "'max_model_len':%zu", m->view.context);
    else
        mt_json_write(out, "'max_model_len':null");
    if (m->view.facts.pixels)
        mt_json_write(out, "'max_picture_pixels':%" PRIu64, m->view.facts.pixels);
    mt_listed_write_capabilities(m, false, out);
    add_state(out, &m->view);
}

static void add_model(const mt_server *server, mt_buf *out, const mt_listed *m)
{
    open_model(server, out, m);
    mt_json_write(out, "}");
}

bool mt_models_list(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    size_t count;
    mt_listed *all = mt_listed_all(server, false, &count);

    (void)request, (void)why;
    mt_json_write(out, "{'object':'list','data':[");
    for (size_t i = 0; i < count; i++)
        add_model(server, out, &all[i]);
    mt_json_write(out, "],'has_more':false,'first_id':%s,'last_id':%s", count && *all[0].name ? all[0].name : NULL,
                  count && *all[count - 1].name ? all[count - 1].name : NULL);
    mt_listed_write_models(all, count, out);
    mt_json_write(out, "}");
    mt_free(all);
    return true;
}

bool mt_models_get(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    mt_listed m;

    if (!mt_listed_find(server, request->params[0], false, &m))
        return mt_fleet_lacks(request->params[0], "", why);
    open_model(server, out, &m);
    mt_listed_write_gemini(&m, out);
    mt_json_write(out, "}");
    return true;
}

bool mt_models_may(const mt_server *server, const mt_account *account, mt_failure *why)
{
    const bool may = !account || account->admin || server->keys.account_count <= 1;

    if (!may && why)
        mt_failure_set(why, 403, "forbidden", NULL, "this key may not unload models: use one that is an admin's");
    return may;
}

/* The body is {"model": name}. The model is unloaded as soon as no call uses it. */
bool mt_models_unload(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    const size_t len = request->body_len < UNLOAD_BYTES ? request->body_len : UNLOAD_BYTES;
    json_t *json = mt_json_body_parse(request->body ? request->body : "", len, NULL, why);
    const char *name = mt_json_word(json_object_get(json, "model"));
    mt_member *unloaded = name ? mt_created_unload(&server->creations, &server->fleet, name) : NULL;

    if (unloaded) {
        const mt_member_view view = mt_member_look(unloaded);
        const mt_listed m = mt_listed_member(&view, view.name);

        add_model(server, out, &m);
    } else if (name) {
        mt_fleet_lacks(name, "", why);
    } else if (json) {
        mt_failure_field(why, "missing_field", "model", "is missing: send the name of one");
    }
    mt_json_body_free(json, len);
    return unloaded != NULL;
}
