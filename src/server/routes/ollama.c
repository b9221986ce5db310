/* Ollama's API about models: lists of all and of those that are loaded, what is known of one, deleting one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/chat_body.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "hub/remove.h"
#include "server/inside.h"
#include "server/limits.h"
#include "server/routes/listed.h"
#include "weights/gguf_place.h"

/* Names in Ollama's API have a tag; a name without one gets the usual tag. */
static void add_name(mt_buf *out, const char *key, const char *name)
{
    const char *slash = strrchr(name, '/');
    mt_buf full = {.limit = MT_LIMIT_PATH};

    mt_buf_printf(&full, "%s%s", name, strchr(slash ? slash : name, ':') ? "" : ":latest");
    mt_json_text(out, key, full.data, full.len);
    mt_buf_free(&full);
}

/* seconds: since 1970. */
static void add_time(mt_buf *out, const char *key, int64_t seconds)
{
    char text[MT_CLOCK_TEXT];

    mt_json_write(out, "%s:%s", key, mt_clock_text((struct timespec){.tv_sec = (time_t)seconds}, 0, text));
}

static void add_details(mt_buf *out, const mt_listed *m)
{
    const mt_card *card = m->card;
    const bool gguf = mt_gguf_named(card->dir) || mt_gguf_is_manifest(card->dir);

    mt_json_write(out,
                  "'details':{'parent_model':%s,'format':%s,'family':%s,'families':[%s],"
                  "'parameter_size':%s,'quantization_level':%s}",
                  m->created ? m->view.name : "", gguf ? "gguf" : "safetensors", card->family, card->family, card->size,
                  card->quantisation);
}

/* Writes {"name":..,"model":..,"size":..,"digest":..,"details":{..} and leaves the object open. */
static void open_model(mt_buf *out, const mt_listed *m)
{
    mt_json_write(out, "{");
    add_name(out, "name", m->name);
    add_name(out, "model", m->name);
    mt_json_write(out, "'size':%" PRIu64 ",'digest':%s", m->card->bytes, m->card->digest);
    add_details(out, m);
}

static bool answer_tags(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    size_t count;
    mt_listed *all = mt_listed_all(call->server, true, &count);

    (void)body;
    (void)why;
    mt_json_write(out, "{'models':[");
    for (size_t i = 0; i < count; i++) {
        open_model(out, &all[i]);
        add_time(out, "modified_at", all[i].card->modified);
        mt_listed_write_capabilities(&all[i], true, out);
        mt_json_write(out, "}");
    }
    mt_json_write(out, "]}");
    mt_free(all);
    return true;
}

const mt_task mt_task_tags = {.run = answer_tags, .no_model = true};

/* Lists loaded models. One that is never unloaded is said to expire in a century, as Ollama says it. */
static bool answer_ps(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    enum { CENTURY = 100 * 365 * 24 * 3600ll };
    size_t count;
    mt_listed *all = mt_listed_all(call->server, true, &count);

    (void)body;
    (void)why;
    mt_json_write(out, "{'models':[");
    for (size_t i = 0; i < count; i++) {
        const double left = all[i].view.expires;

        if (all[i].view.state != MT_MEMBER_READY)
            continue;
        open_model(out, &all[i]);
        add_time(out, "expires_at", (int64_t)time(NULL) + (left < 0 ? CENTURY : (int64_t)left));
        mt_json_write(out, "'size_vram':0,'context_length':%zu}", all[i].view.context);
    }
    mt_json_write(out, "]}");
    mt_free(all);
    return true;
}

const mt_task mt_task_ps = {.run = answer_ps, .no_model = true};

/* A number under the name that clients look for, such as "qwen3.context_length"; 0: it is not known, and left out. */
static void add_number(mt_buf *out, const mt_card *card, const char *key, int64_t value)
{
    char name[sizeof(card->family) + 32];

    snprintf(name, sizeof(name), "%s.%s", card->family, key);
    if (value > 0)
        mt_json_write(out, "%s:%" PRId64, name, value);
}

static void add_info(mt_buf *out, const mt_listed *m)
{
    const mt_card *c = m->card;

    mt_json_write(out,
                  "'model_info':{'general.architecture':%s,'general.basename':%s,'general.parameter_count':%" PRIu64,
                  c->family, m->name, c->parameters);
    add_number(out, c, "context_length", (int64_t)m->view.context);
    add_number(out, c, "embedding_length", c->width);
    add_number(out, c, "block_count", c->layers);
    add_number(out, c, "attention.head_count", c->heads);
    add_number(out, c, "attention.head_count_kv", c->kv_heads);
    add_number(out, c, "feed_forward_length", c->ffn);
    add_number(out, c, "vocab_size", c->vocab);
    mt_json_write(out, "}");
}

/* Adds a line for a setting, or for each value of a list: a word, the name in so many columns, the value. */
static void add_lines(mt_buf *text, const char *word, int columns, const char *key, const json_t *value)
{
    const size_t count = json_is_array(value) ? json_array_size(value) : 1;

    for (size_t i = 0; i < count; i++) {
        mt_buf_printf(text, "\n%s%-*s ", word, columns, key);
        mt_json_tree_write(text, json_is_array(value) ? json_array_get(value, i) : value);
    }
}

/* Default settings of a model, one on each line; d: NULL for an encoder; created: as below. Clients look for
   num_ctx. */
static void add_parameters(mt_buf *out, const mt_ask_defaults *d, const mt_listed *m, const json_t *created)
{
    const struct {
        const char *name;
        double value;
    } usual[] = {{"num_ctx", (double)m->view.context},
                 {"temperature", d ? (double)d->sampling.temperature : 0},
                 {"top_p", d ? (double)d->sampling.top_p : 0},
                 {"top_k", d ? (double)d->sampling.top_k : 0},
                 {"min_p", d ? (double)d->sampling.min_p : 0},
                 {"repeat_penalty", d ? (double)d->sampling.repetition_penalty : 0}};
    json_t *given = json_object_get(created, "parameters"), *value;
    mt_buf text = {.limit = 2 * MT_LIMIT_CREATED_BYTES};
    const char *key;

    for (size_t i = 0; i < (d ? MT_COUNT(usual) : 1); i++)
        if (i == 0 || !json_object_get(given, usual[i].name)) /* the context is the server's */
            mt_buf_printf(&text, "%s%-30s %.*g", i ? "\n" : "", usual[i].name, i ? 6 : 15, usual[i].value);
    json_object_foreach(given, key, value)
        if (strcmp(key, usual[0].name) != 0)
            add_lines(&text, "", 30, key, value);
    mt_json_text(out, "parameters", text.data, text.len);
    mt_buf_free(&text);
}

/* created: what the model has beside the one it is made from; NULL: it is that itself. */
static void add_modelfile(mt_buf *out, const mt_listed *m, const json_t *created)
{
    const char *system = mt_body_text(created, "system"), *key;
    mt_buf text = {.limit = 2 * MT_LIMIT_CREATED_BYTES};
    json_t *value;

    mt_buf_printf(&text, "FROM %s", created ? mt_body_text(created, "from") : m->name);
    if (*system)
        mt_buf_printf(&text, "\nSYSTEM \"\"\"%s\"\"\"", system);
    json_object_foreach(json_object_get(created, "parameters"), key, value)
        add_lines(&text, "PARAMETER ", 0, key, value);
    mt_buf_puts(&text, "\n");
    mt_json_text(out, "modelfile", text.data, text.len);
    mt_buf_free(&text);
}

bool mt_ollama_may(const mt_server *server, const mt_account *account, mt_failure *why)
{
    if (!server->opt->allow_pull)
        return mt_failure_set(
            why, 403, "forbidden", NULL,
            "models are neither fetched, created nor deleted by request here: use motet pull and motet rm, or "
            "start the server with --allow-pull");
    return !account || account->admin ||
           mt_failure_set(why, 403, "forbidden", NULL,
                          "this key may not change which models there are: use one that has the word admin");
}

char *mt_ollama_plain_name(const char *name)
{
    static const char tag[] = ":latest";
    char *copy = mt_strdup(name);
    const size_t len = strlen(copy), end = sizeof(tag) - 1;

    if (len > end && strcmp(copy + len - end, tag) == 0)
        copy[len - end] = '\0';
    return copy;
}

char *mt_ollama_model(const json_t *body, mt_failure *why)
{
    const char *name = *mt_body_text(body, "model") ? mt_body_text(body, "model") : mt_body_text(body, "name");
    char *copy = mt_ollama_plain_name(name);

    if (*copy)
        return copy;
    mt_free(copy);
    mt_failure_set(why, 400, "invalid_value", "model", "the model is missing: name one as \"model\"");
    return NULL;
}

/* A model that is to be deleted. */
typedef struct deletion {
    const char *name, *models_dir;
} deletion;

static bool affects(void *ctx, const char *path)
{
    const deletion *d = ctx;

    return mt_local_affects(d->name, d->models_dir, getenv, path);
}

/* Whether clients know a model of the command line by that name. */
static bool is_served(mt_server *server, const char *name)
{
    mt_listed found;

    return !server->fleet.open && !server->opt->any_model && mt_listed_find(server, name, false, &found);
}

/* Removes a model's files. What is in use, or named on the command line, is not removed, whatever it is called here.
   One that is loaded and idle is unloaded: its files are mapped, and stay until then. */
static bool remove_model(mt_server *server, const char *name, mt_failure *why)
{
    deletion d = {.name = name, .models_dir = server->opt->models_dir};
    uint64_t freed;
    mt_error err;
    bool ok;

    if (mt_created_remove(&server->creations, name, &err))
        return true;
    if (err.code != MT_OK)
        return mt_failure_from_files(why, &err, "model", name);
    if (is_served(server, name) || !mt_fleet_remove_begin(&server->fleet, affects, &d))
        return mt_failure_set(why, 409, "in_use", "model", "the model '%.100s' is being served: end that first", name);
    ok = mt_local_remove(name, d.models_dir, getenv, &freed, &err);
    mt_fleet_remove_end(&server->fleet);
    if (ok)
        return true;
    mt_log_warn("model.kept", "\"%.100s\" cannot be deleted: %s", name, err.text);
    return mt_failure_from_files(why, &err, "model", name);
}

static bool answer_delete(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    char *name = mt_ollama_model(body, why);
    const bool ok = name && remove_model(call->server, name, why);

    (void)out;
    mt_free(name);
    return ok;
}

const mt_task mt_task_delete = {.run = answer_delete, .no_model = true};

/* Of a model that is loaded, as it is; of another, as its folder says. */
static void add_settings(mt_buf *out, mt_server *server, const mt_listed *m, const json_t *created)
{
    mt_fleet *fleet = &server->fleet;
    bool encodes = m->view.facts.encoder;
    mt_ask_defaults defaults;
    const mt_served *served;
    char *text = NULL;

    pthread_mutex_lock(&fleet->lock); /* the model must not be unloaded while its settings are read */
    served = m->view.member->open ? &m->view.member->served : NULL;
    if (served) {
        defaults = served->generation.defaults;
        text = mt_strdup(!encodes && served->templates ? mt_chat_templates_text(served->templates) : "");
    }
    pthread_mutex_unlock(&fleet->lock);
    if (!text)
        text = mt_served_describe(m->card->dir, server->opt, !fleet->open && m->view.member->number == 0, &defaults,
                                  &encodes);
    add_parameters(out, encodes ? NULL : &defaults, m, created);
    mt_json_write(out, "'template':%s", *mt_body_text(created, "template") ? mt_body_text(created, "template") : text);
    mt_free(text);
}

static bool is_text(const char *s, size_t len)
{
    size_t at = 0, step = 1;
    for (; at < len && step > 0; at += step)
        step = s[at] ? mt_utf8_length(s + at, len - at) : 0;
    return len > 0 && step > 0;
}

/* The licence that lies beside the weights, if it is a text of a reasonable size. */
static void add_license(mt_buf *out, const char *dir, const json_t *created)
{
    static const char *const names[] = {"LICENSE", "LICENSE.txt", "LICENSE.md"};
    bool found = mt_body_get(created, "license") != NULL;

    for (size_t i = 0; i < MT_COUNT(names) && !found; i++) {
        mt_buf text = {.limit = MT_LIMIT_CREATED_BYTES}, path = {.limit = MT_LIMIT_PATH};
        mt_error err;
        mt_buf_printf(&path, "%s/%s", dir, names[i]);
        found = !path.full && mt_file_read(&text, path.data, &err) && is_text(text.data, text.len);
        if (found)
            mt_json_text(out, "license", text.data, text.len);
        mt_buf_free(&text);
        mt_buf_free(&path);
    }
}

/* Members of models that clients have created. */
static void add_created(mt_buf *out, const json_t *created)
{
    static const char *const members[] = {"system", "messages", "license"};

    for (size_t i = 0; i < MT_COUNT(members); i++)
        if (mt_body_get(created, members[i])) {
            mt_json_write(out, "%s:", members[i]);
            mt_json_tree_write(out, mt_body_get(created, members[i]));
        }
}

static bool answer_show(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    char *name = mt_ollama_model(body, why);
    mt_listed m;
    const bool found = name && mt_listed_find(call->server, name, true, &m);
    json_t *created = found ? mt_created_get(&call->server->creations, name) : NULL;

    if (name && !found)
        mt_failure_set(why, 404, "model_not_found", "model", "model '%.100s' not found: see /api/tags", name);
    mt_free(name);
    if (!found)
        return false;
    mt_json_write(out, "{");
    add_modelfile(out, &m, created);
    add_settings(out, call->server, &m, created);
    add_created(out, created);
    add_license(out, m.card->dir, created);
    add_details(out, &m);
    json_decref(created);
    add_info(out, &m);
    mt_listed_write_capabilities(&m, true, out);
    add_time(out, "modified_at", m.card->modified);
    mt_json_write(out, "}");
    return true;
}

const mt_task mt_task_show = {.run = answer_show, .no_model = true};
