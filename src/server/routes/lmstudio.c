/* LM Studio's REST API about models: /api/v0/models and /api/v0/models/{model}. */
#include <string.h>

#include "base/alloc.h"
#include "base/json_write.h"
#include "server/inside.h"
#include "server/routes/listed.h"
#include "weights/gguf_place.h"

static void add_model(mt_buf *out, const mt_listed *m)
{
    const mt_member_facts *f = &m->view.facts;
    const char *slash = strchr(m->name, '/');
    const int64_t most = m->card->context ? m->card->context : (int64_t)m->view.context;
    const bool loaded = m->view.state == MT_MEMBER_READY;
    const bool gguf = mt_gguf_named(m->card->dir) || mt_gguf_is_manifest(m->card->dir);

    mt_json_write(out, "{'id':%s,'object':'model','type':%s", m->name,
                  f->encoder  ? "embeddings"
                  : f->vision ? "vlm"
                              : "llm");
    mt_json_text(out, "publisher", m->name, slash ? (size_t)(slash - m->name) : 0);
    mt_json_write(out,
                  "'arch':%s,'compatibility_type':%s,'quantization':%s,'state':%s,"
                  "'max_context_length':%lld",
                  m->card->family, gguf ? "gguf" : "safetensors", m->card->quantisation,
                  loaded ? "loaded" : "not-loaded", (long long)most);
    if (loaded)
        mt_json_write(out, "'loaded_context_length':%zu", m->view.context);
    mt_json_write(out, "}");
}

static bool answer_lmstudio_models(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    size_t count;
    mt_listed *all = mt_listed_all(call->server, true, &count);

    (void)body, (void)why;
    mt_json_write(out, "{'object':'list','data':[");
    for (size_t i = 0; i < count; i++)
        add_model(out, &all[i]);
    mt_json_write(out, "]}");
    mt_free(all);
    return true;
}

const mt_task mt_task_lmstudio_models = {.run = answer_lmstudio_models, .no_model = true};

static bool answer_lmstudio_model(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    mt_listed m;

    (void)body;
    if (!mt_listed_find(call->server, call->param, true, &m))
        return mt_fleet_lacks(call->param, "", why);
    add_model(out, &m);
    return true;
}

const mt_task mt_task_lmstudio_model = {.run = answer_lmstudio_model, .no_model = true};
