/* Which models there are, what clients call them, and what their folders tell before they are loaded. Part of the
   fleet. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/units.h"
#include "hub/find.h"
#include "hub/known.h"
#include "hub/local.h"
#include "hub/names.h"
#include "server/fleet/fleet_inside.h"
#include "server/limits.h"
#include "weights/folder.h"

#define KEEP_ALIVE 300               /* seconds that a model may be idle, where no option or request says */
#define WORKING (16u << 20)          /* first guess of the bytes that a model needs, however small it is */
#define LISTED 8                     /* how many models the error for an unknown name lists */
#define SCAN_NS UINT64_C(1000000000) /* between two searches of this machine for models */

/* ---- what a folder holds ---- */

/* Reads the chat template: whether there is one, with tool calls, with reasoning. own: a file in its place, or NULL;
   opt: NULL where options about formats are for another model. */
static void read_template(mt_member_facts *facts, const char *dir, const char *own, const mt_options *opt)
{
    mt_error err;
    mt_chat_templates *templates = mt_chat_templates_open(dir, own, &err);
    mt_parse_formats f = {0};

    if (templates)
        f = mt_chat_templates_pick(templates, true)->formats;
    if (opt && opt->tool_format)
        f.tools = opt->tool_format;
    if (opt && opt->reasoning_format)
        f.reasoning = opt->reasoning_format;
    facts->chats = templates != NULL;
    facts->tools = f.tools && strcmp(f.tools, "none") != 0;
    facts->thinking = f.reasoning && strcmp(f.reasoning, "none") != 0;
    mt_chat_templates_free(templates);
}

static bool read_encoder(mt_member_facts *facts, const char *dir, mt_error *err)
{
    mt_encoder encoder = {0};
    const bool ok = mt_encoder_open(&encoder, dir, err);

    if (ok) {
        facts->encoder = true;
        facts->scores = encoder.spec.labels == 1;
        facts->classifies = encoder.spec.labels > 1;
        facts->embeds = encoder.spec.labels == 0;
        facts->context = encoder.spec.context;
        facts->bytes = mt_encoder_weights(&encoder);
    }
    mt_encoder_close(&encoder);
    return ok;
}

/* Reads the draft model of --draft: whether it fits the model, and its size. */
static bool read_draft(mt_member_facts *facts, mt_model_spec *spec, const mt_options *opt, mt_arena *arena,
                       mt_error *err)
{
    char *dir = mt_hub_find(opt->draft, opt->models_dir, getenv, err);
    mt_checkpoint *c = dir ? mt_checkpoint_open(dir, err) : NULL;
    mt_drafter_spec drafter;
    const bool ok = c && mt_drafter_spec_read(&drafter, mt_checkpoint_config(c), arena, err) &&
                    mt_drafter_join(&drafter, spec, err);

    if (ok)
        facts->bytes += mt_checkpoint_bytes(c);
    mt_checkpoint_close(c);
    mt_free(dir);
    return ok;
}

/* first: as for read_folder. */
static bool read_model(mt_member_facts *facts, const mt_checkpoint *c, const mt_options *opt, bool first, mt_error *err)
{
    mt_arena *arena = mt_arena_new(0);
    mt_model_spec spec;
    bool ok = mt_model_spec_read(&spec, mt_checkpoint_config(c), first ? opt->family : NULL, arena, err);

    if (ok) {
        facts->vision = spec.vision && !opt->text_only;
        facts->context = spec.context;
        facts->bytes = mt_checkpoint_bytes(c);
    }
    if (ok && first && opt->draft)
        ok = read_draft(facts, &spec, opt, arena, err);
    mt_arena_free(arena);
    return ok;
}

/* read_folder while its files are held. */
static bool read_held(mt_member_facts *facts, const char *dir, const mt_options *opt, bool first, mt_error *err)
{
    mt_target target = {.embeds = false};
    mt_checkpoint *c;
    bool ok, encodes;

    *facts = (mt_member_facts){.known = true};
    if (!mt_encoder_known(dir, &encodes, err))
        return false;
    if (encodes)
        return read_encoder(facts, dir, err);
    c = mt_checkpoint_open(dir, err);
    ok = c && read_model(facts, c, opt, first, err);
    mt_checkpoint_close(c);
    mt_target_read(&target, dir);
    mt_target_clear(&target);
    facts->embeds = target.embeds && target.unfit.code == MT_OK;
    if (ok)
        read_template(facts, dir, first ? opt->chat_template : NULL, first ? opt : NULL);
    return ok;
}

/* Reads the folder of a model. first: options for a single model (--family, --chat-template, ...) are about this one.
   False: *err. Without the lock. */
static bool read_folder(mt_member_facts *facts, const char *dir, const mt_options *opt, bool first, mt_error *err)
{
    mt_folder_held held;
    bool ok;

    mt_folder_hold(&held, dir);
    ok = read_held(facts, dir, opt, first, err);
    mt_folder_release(&held);
    return ok;
}

/* Bytes of a model's file; 0 where it is made of a GGUF file. */
static uint64_t file_bytes(const char *dir, const char *name)
{
    char path[MT_LIMIT_PATH];
    struct stat info;

    mt_folder_source(path, dir, name);
    const char *slash = strrchr(path, '/');
    return slash && strcmp(slash + 1, name) == 0 && stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* A first guess of the bytes that a model needs: its weights; roughly a sixteenth of that and WORKING for what else the
   engine has; a few times the tokenizer's file for its tables. The engine tells the true number when the model is
   loaded. */
static uint64_t guess_need(const mt_member *m)
{
    return m->facts.bytes + m->facts.bytes / 16 + 4 * file_bytes(m->dir, "tokenizer.json") + WORKING;
}

bool mt_fleet_read_one(mt_fleet *f)
{
    mt_member_facts facts;
    mt_member *m = NULL;
    mt_error err;
    bool ok;

    for (size_t i = 0; i < f->count && !m; i++)
        if (!f->members[i]->facts.known)
            m = f->members[i];
    if (!m)
        return false;
    pthread_mutex_unlock(&f->lock);
    ok = read_folder(&facts, m->dir, f->params.opt, false, &err);
    pthread_mutex_lock(&f->lock);
    if (ok)
        m->facts = facts;
    else
        m->error = err;
    m->facts.known = true;
    m->need = guess_need(m);
    f->changes++;
    return true;
}

/* ---- lists ---- */

/* A new member at the end of the list. Owns name and dir from here on. */
static mt_member *add(mt_fleet *f, char *name, char *dir)
{
    mt_member *m = mt_alloc(sizeof(*m));

    m->fleet = f;
    m->number = f->count;
    m->name = name;
    m->dir = dir;
    m->last = &m->first;
    m->keep_alive = f->keep_alive;
    m->since = m->used = mt_clock_ns();
    f->members = mt_grow(f->members, &f->cap, f->count + 1, sizeof(mt_member *));
    f->members[f->count++] = m;
    return m;
}

/* The member of that name, by name alone; NULL: none. */
static mt_member *find_name(const mt_fleet *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (!f->members[i]->gone && mt_served_called(name, f->members[i]->name))
            return f->members[i];
    return NULL;
}

/* Adds a model of the command line. given: a folder or a name of the hub; name: what clients call it, or NULL. */
static bool add_named(mt_fleet *f, const char *given, const char *name, mt_error *err)
{
    const mt_options *opt = f->params.opt;
    char *dir = mt_hub_find(given, opt->models_dir, getenv, err), *called;
    mt_member *m;

    if (!dir)
        return false;
    /* A name of the hub is its own; a folder is called by the last part of its path */
    called = name ? mt_strdup(name) : strcmp(dir, given) != 0 ? mt_strdup(given) : mt_served_folder_name(dir);
    if (find_name(f, called)) {
        mt_fail(err, MT_E_INVALID, "two models are called \"%s\": name one of them with --model NAME=%s", called,
                given);
        mt_free(called);
        mt_free(dir);
        return false;
    }
    m = add(f, called, dir);
    if (!read_folder(&m->facts, dir, opt, !f->open && m->number == 0, err))
        return false;
    m->need = guess_need(m);
    return true;
}

/* Adds a model of --model, whose value is [NAME=]MODEL. */
static bool add_option(mt_fleet *f, const char *text, mt_error *err)
{
    const char *mark = strchr(text, '=');
    struct stat info;
    char *name;
    bool ok;

    if (!mark || mark == text || stat(text, &info) == 0) /* a folder's name may have a "=", too */
        return add_named(f, text, NULL, err);
    name = mt_strdup(text);
    name[mark - text] = '\0';
    ok = add_named(f, mark + 1, name, err);
    mt_free(name);
    return ok;
}

/* Sets what is known of a model that was found on this machine before its folder is read. */
static void set_found(mt_fleet *f, mt_member *m, const mt_local_model *l)
{
    m->facts = (mt_member_facts){.bytes = l->bytes,
                                 .encoder = !(l->can & MT_LOCAL_TEXT),
                                 .scores = l->can & MT_LOCAL_SCORE,
                                 .classifies = l->can & MT_LOCAL_LABEL,
                                 .embeds = l->can & MT_LOCAL_EMBED,
                                 .vision = (l->can & MT_LOCAL_VISION) && !f->params.opt->text_only};
    m->need = guess_need(m);
    m->measured = false;
    m->error = (mt_error){.code = MT_OK};
    m->expired = m->state == MT_MEMBER_LOADING || m->state == MT_MEMBER_READY; /* of files that are deleted */
    f->changes++;
}

/* Whether all of a model is here, as far as its config.json and the names of its files tell. */
static bool is_servable(const mt_local_model *l)
{
    return l->whole && !*l->problem;
}

/* Whether the member is a model that was found before. A model of that name in another folder is another model. */
static bool was_found(const mt_member *m, const mt_local_model *l)
{
    return m->found && strcmp(m->name, l->name) == 0 && strcmp(m->dir, l->folder) == 0;
}

/* Members that are not deleted. Those that are keep their memory (invariant 6 in fleet.c), but no place. */
static size_t count_present(const mt_fleet *f)
{
    size_t count = 0;

    for (size_t i = 0; i < f->count; i++)
        count += !f->members[i]->gone;
    return count;
}

/* The member of a model that is on this machine; a new one where there is none yet. NULL: it cannot be served, or there
   is another of its name. */
static mt_member *member_for(mt_fleet *f, const mt_local_model *l)
{
    mt_member *m;

    if (!is_servable(l))
        return NULL;
    for (size_t i = 0; i < f->count; i++)
        if (was_found(f->members[i], l))
            return f->members[i];
    if (find_name(f, l->name) || count_present(f) >= MT_LIMIT_MODELS)
        return NULL;
    m = add(f, mt_strdup(l->name), mt_strdup(l->folder));
    m->found = m->gone = true;
    return m;
}

/* Adds new models and marks those that are deleted or not whole any more; named models keep their names. A folder that
   was deleted and is there again may have another model in it. With the lock. */
static void update_found(mt_fleet *f, const mt_local *list)
{
    for (size_t i = 0; i < f->count; i++) {
        mt_member *m = f->members[i];
        bool there = false;

        for (size_t k = 0; k < list->count && !there; k++)
            there = is_servable(&list->at[k]) && was_found(m, &list->at[k]);
        if (m->found && !m->gone && !there)
            mt_member_set_gone(m);
    }
    for (size_t i = 0; i < list->count; i++) {
        mt_member *m = member_for(f, &list->at[i]);

        if (m && m->gone)
            set_found(f, m, &list->at[i]);
        if (m)
            m->gone = false;
    }
}

/* Where no model was named: searches this machine for models, at most once a second. Without the lock. */
static void scan(mt_fleet *f)
{
    const uint64_t now = mt_clock_ns();
    uint64_t removals;
    mt_local list;
    mt_error err;
    bool due;

    pthread_mutex_lock(&f->lock);
    due = f->open && !f->removing && (!f->scanned || now - f->scanned > SCAN_NS);
    if (due)
        f->scanned = now;
    removals = f->removals;
    pthread_mutex_unlock(&f->lock);
    if (!due)
        return;
    if (mt_local_list(&list, f->params.opt->models_dir, getenv, &err)) {
        pthread_mutex_lock(&f->lock);
        if (removals == f->removals) /* else it may list what is deleted by now */
            update_found(f, &list);
        pthread_cond_signal(&f->changed); /* the fleet's thread reads the folders of new ones */
        pthread_mutex_unlock(&f->lock);
    } else
        mt_log_warn("model.search", "%s", err.text);
    mt_local_free(&list);
}

/* Whether the weights of a single model fit into --memory. Of an encoder, engine/memory.c asks when it is loaded. */
static bool check_alone(const mt_fleet *f, mt_error *err)
{
    const uint64_t bytes = f->members[0]->facts.bytes, memory = (uint64_t)f->params.opt->memory;
    char may[MT_UNITS_TEXT], needs[MT_UNITS_TEXT];

    return !memory || f->members[0]->facts.encoder || bytes <= memory ||
           mt_fail(err, MT_E_MEMORY, "\"--memory\" is %s and the weights take %s; raise it", mt_bytes_text(memory, may),
                   mt_bytes_text(bytes, needs));
}

/* Adds models of the command line that are called as they are given. */
static bool add_all(mt_fleet *f, const mt_option_list *list, mt_error *err)
{
    for (size_t i = 0; i < list->count; i++)
        if (!add_named(f, list->at[i], NULL, err))
            return false;
    return true;
}

bool mt_fleet_name(mt_fleet *f, mt_error *err)
{
    const mt_options *opt = f->params.opt;

    f->open = !opt->dir && opt->models.count == 0;
    f->alone = !f->open && opt->more.count + opt->models.count + (opt->dir != NULL) == 1;
    f->keep_alive = !isnan(opt->keep_alive) ? opt->keep_alive : f->alone ? -1 : KEEP_ALIVE;
    if ((opt->dir && !add_named(f, opt->dir, opt->served_name, err)) || !add_all(f, &opt->more, err))
        return false;
    for (size_t i = 0; i < opt->models.count; i++)
        if (!add_option(f, opt->models.at[i], err))
            return false;
    if (f->alone)
        return check_alone(f, err);
    if (!add_all(f, &opt->embedding_models, err)) /* a single model has them beside it */
        return false;
    scan(f);
    if (f->count == 0)
        mt_log_warn("model.none", "no model is on this machine yet: get one with motet pull");
    return true;
}

/* ---- what clients call them ---- */

/* Whether the name is that of an encoder beside a single model: it is part of that member. */
static bool names_encoder(const mt_fleet *f, const char *name)
{
    const mt_option_list *list = &f->params.opt->embedding_models;
    bool found = false;

    for (size_t i = 0; f->alone && i < list->count && !found; i++) {
        char *folder = mt_served_folder_name(list->at[i]);

        found = mt_served_called(name, list->at[i]) || mt_served_called(name, folder);
        mt_free(folder);
    }
    return found;
}

/* The member for a call that names none: for vectors the first encoder; else the first that was named; where none was
   named, of those that write text the last used one that is loaded, or the only one. */
static mt_member *by_default(const mt_fleet *f, bool vectors)
{
    mt_member *last = NULL, *only = NULL;
    size_t count = 0;

    for (size_t i = 0; vectors && !f->alone && i < f->count; i++)
        if (f->members[i]->facts.encoder && !f->members[i]->gone)
            return f->members[i];
    if (!f->open)
        return f->members[0];
    for (size_t i = 0; i < f->count; i++) {
        mt_member *m = f->members[i];

        if (m->gone || m->facts.encoder)
            continue;
        only = count++ ? NULL : m;
        if (m->state == MT_MEMBER_READY && (!last || m->used > last->used))
            last = m;
    }
    return last ? last : only;
}

/* As mt_fleet_find_named, with the lock held; vectors: encoders beside a model count, too. */
static mt_member *find_named(const mt_fleet *f, const char *name, bool vectors)
{
    const mt_options *opt = f->params.opt;
    mt_member *m = find_name(f, name);

    for (size_t i = 0; !m && !f->open && i < opt->aliases.count; i++)
        if (mt_served_called(name, opt->aliases.at[i]))
            m = f->members[0];
    if (!m && mt_hub_known(name))
        m = find_name(f, mt_hub_known(name));
    return !m && vectors && names_encoder(f, name) ? f->members[0] : m;
}

/* As mt_fleet_find, with the lock held. */
static mt_member *find(const mt_fleet *f, const char *name, bool vectors)
{
    const mt_options *opt = f->params.opt;
    mt_member *m = name ? find_named(f, name, vectors) : NULL;

    if (m)
        return m;
    return !name || mt_served_called(name, "default") || opt->any_model ? by_default(f, vectors) : NULL;
}

mt_member *mt_fleet_find(mt_fleet *f, const char *name, bool vectors)
{
    mt_member *m;

    pthread_mutex_lock(&f->lock);
    m = find(f, name, vectors);
    pthread_mutex_unlock(&f->lock);
    if (m || !f->open)
        return m;
    scan(f);
    pthread_mutex_lock(&f->lock);
    m = find(f, name, vectors);
    pthread_mutex_unlock(&f->lock);
    return m;
}

mt_member *mt_fleet_find_named(mt_fleet *f, const char *name)
{
    mt_member *m;

    scan(f);
    pthread_mutex_lock(&f->lock);
    m = find_named(f, name, true);
    if (!m && f->count > 0 && mt_served_called(name, "default"))
        m = f->members[0];
    pthread_mutex_unlock(&f->lock);
    return m;
}

bool mt_fleet_lacks(const char *name, const char *advice, mt_failure *why)
{
    return mt_failure_set(why, 404, "model_not_found", "model",
                          "the model \"%.100s\" was not found here: %ssee /v1/models", name, advice);
}

bool mt_fleet_mute(const char *name, mt_failure *why)
{
    return mt_failure_set(why, 400, "unsupported_value", "model",
                          "the model \"%.100s\" is an encoder and writes no text: use /v1/embeddings or /v1/rerank",
                          name);
}

bool mt_fleet_unknown(mt_fleet *f, const char *name, mt_failure *why)
{
    mt_buf list = {.limit = MT_LIMIT_ERROR_TEXT / 2};
    size_t count = 0;

    if (name && names_encoder(f, name))
        return mt_fleet_mute(name, why);
    pthread_mutex_lock(&f->lock);
    if (mt_fleet_fetched(f, name, why)) {
        pthread_mutex_unlock(&f->lock);
        return false;
    }
    for (size_t i = 0; i < f->count && count < LISTED; i++)
        if (!f->members[i]->gone && !list.full)
            mt_buf_printf(&list, "%s\"%s\"", count++ ? ", " : "ask for ", f->members[i]->name);
    pthread_mutex_unlock(&f->lock);
    mt_buf_puts(&list, count ? ", or " : ""); /* where the names are too long for an error, none is told */
    if (name)
        mt_fleet_lacks(name, list.full ? "" : list.data, why);
    else
        mt_failure_field(why, "missing_field", "model", "is missing: %ssee /v1/models", list.full ? "" : list.data);
    mt_buf_free(&list);
    return false;
}

/* ---- what others see ---- */

static mt_member_view view_of(const mt_member *m, uint64_t now)
{
    const bool idle = m->state == MT_MEMBER_READY && m->references == 0 && m->waiting == 0;
    mt_member_view v = {.member = m,
                        .name = m->name,
                        .state = m->first && m->state == MT_MEMBER_UNLOADED ? MT_MEMBER_LOADING : m->state,
                        .facts = m->facts,
                        .context = m->open ? m->served.context : m->facts.context,
                        .memory = m->grant,
                        .used = m->open ? mt_engine_used(m->served.engine) : 0,
                        .need = m->fleet->alone ? 0 : m->need, /* one alone has all memory, whatever it needs */
                        .references = m->references,
                        .waiting = m->waiting,
                        .seconds = (double)(now - m->since) * 1e-9,
                        .idle = -1,
                        .expires = -1,
                        .error = m->error};

    mt_error why;

    v.too_large = v.state == MT_MEMBER_UNLOADED && !mt_fleet_fits(m->fleet, m, &why);
    if (idle)
        v.idle = (double)(now - m->used) * 1e-9;
    if (m->state == MT_MEMBER_READY && m->keep_alive >= 0)
        v.expires = MT_MAX(0, m->keep_alive - MT_MAX(0, v.idle));
    mt_error_hide_paths(&v.error, m->name);
    return v;
}

mt_member_view mt_member_look(mt_member *m)
{
    mt_member_view v;

    pthread_mutex_lock(&m->fleet->lock);
    v = view_of(m, mt_clock_ns());
    pthread_mutex_unlock(&m->fleet->lock);
    return v;
}

mt_member_view *mt_fleet_list(mt_fleet *f, size_t *count)
{
    mt_member_view *views;

    scan(f);
    pthread_mutex_lock(&f->lock);
    views = mt_alloc_array(f->count + 1, sizeof(*views));
    *count = 0;
    for (size_t i = 0; i < f->count; i++)
        if (!f->members[i]->gone)
            views[(*count)++] = view_of(f->members[i], mt_clock_ns());
    pthread_mutex_unlock(&f->lock);
    return views;
}
