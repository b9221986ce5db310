/* Gemini's API about models: the list of all, and one. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/json_write.h"
#include "server/inside.h"
#include "server/routes/listed.h"

/* A model that is not loaded, and whose folder was not read yet, is said to write text. */
static void add_methods(mt_buf *out, const mt_member_facts *f)
{
    mt_json_write(out, "'supportedGenerationMethods':[");
    if (!f->encoder)
        mt_json_write(out, "'generateContent','countTokens'");
    if (f->embeds)
        mt_json_write(out, "'embedContent','batchEmbedContents'");
    mt_json_write(out, "]");
}

void mt_listed_write_gemini(const mt_listed *m, mt_buf *out)
{
    char name[sizeof(m->name) + 8];
    const int len = snprintf(name, sizeof(name), "models/%s", m->name);

    mt_json_text(out, "name", name, (size_t)len);
    mt_json_write(out, "'version':'1','displayName':%s", m->name);
    if (m->view.context)
        mt_json_write(out, "'inputTokenLimit':%zu,'outputTokenLimit':%zu", m->view.context, m->view.context);
    add_methods(out, &m->view.facts);
    mt_json_write(out, "'maxTemperature':2,'thinking':%hhd", m->view.facts.thinking);
}

void mt_listed_write_models(const mt_listed *all, size_t count, mt_buf *out)
{
    mt_json_write(out, "'models':[");
    for (size_t i = 0; i < count; i++) {
        mt_json_write(out, "{");
        mt_listed_write_gemini(&all[i], out);
        mt_json_write(out, "}");
    }
    mt_json_write(out, "]");
}

bool mt_gemini_models(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    size_t count;
    mt_listed *all = mt_listed_all(server, false, &count);

    (void)request;
    (void)why;
    mt_json_write(out, "{");
    mt_listed_write_models(all, count, out);
    mt_json_write(out, "}");
    mt_free(all);
    return true;
}

bool mt_gemini_model(mt_server *server, const mt_http_request *request, mt_buf *out, mt_failure *why)
{
    mt_listed m;

    if (!mt_listed_find(server, request->params[0], false, &m))
        return mt_fleet_lacks(request->params[0], "", why);
    mt_json_write(out, "{");
    mt_listed_write_gemini(&m, out);
    mt_json_write(out, "}");
    return true;
}
