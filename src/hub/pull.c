/* Downloads a model (pull.h), in this order:

   1. the list of its files, all of one commit; every file is requested at that commit, whatever happens to its branch;
   2. configs, tokenizer, templates, and which of the weights belong to the checkpoint;
   3. the headers of the weights, and by them whether motet could run it: if not, this is the end;
   4. the weights; when all are complete, the branch is set to the commit.

   A pull owns all its data and runs on the calling thread, beside the threads of its crew, which write only counters
   and their own items. */
#include "hub/pull.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "hub/blob.h"
#include "hub/crew.h"
#include "hub/known.h"
#include "hub/limits.h"
#include "hub/probe.h"
#include "weights/gguf_choice.h"
#include "weights/limits.h"

#define AT_ONCE 4

/* A file of the model. */
typedef struct item {
    mt_remote_file file;
    _Atomic uint64_t done;
    bool chosen;
    bool noted; /* the probe has only its name, even if another process brings it meanwhile */
} item;

/* A download under way. */
typedef struct pull {
    const mt_pull_params *params;
    mt_remote remote;
    mt_hub_name name;
    mt_repo repo;
    mt_probe probe;
    mt_listing list;
    mt_crew crew;
    const char *phase;
    bool described; /* sizes and digests of all items are known; until then the crew may be finding them */
    item *items;    /* all files of the list */
    size_t count;
    size_t *chosen; /* indices of the items being processed */
    size_t chosen_count;
    mt_pull_file *shown;
    const char *gguf; /* the first file of a GGUF model; NULL: it is of another kind */
} pull;

/* Reports progress. */
static void look(void *arg)
{
    pull *p = arg;
    mt_pull_status status = {.phase = p->phase, .files = p->shown};

    if (!p->params->progress)
        return;
    for (size_t i = 0; p->described && i < p->count; i++) {
        const item *it = &p->items[i];
        /* relaxed: only a counter */
        const uint64_t done = atomic_load_explicit(&it->done, memory_order_relaxed);

        if (!it->chosen)
            continue;
        p->shown[status.count++] = (mt_pull_file){it->file.name, it->file.digest, it->file.size, done};
        status.total += it->file.size;
        status.done += done;
    }
    p->params->progress(p->params->arg, &status);
}

static void begin(pull *p, const char *phase)
{
    p->phase = phase;
    look(p);
}

static bool url_of(mt_buf *url, const pull *p, const item *it)
{
    mt_buf_init(url, MT_LIMIT_PULL_URL);
    mt_remote_file_url(url, &p->remote, &p->name, p->list.commit, it->file.name);
    return !url->full;
}

/* For a hub whose list has no digests: asks for each file. */
static bool describe(void *arg, mt_line *line, size_t number, mt_error *err)
{
    pull *p = arg;
    item *it = &p->items[p->chosen[number]];
    mt_line_request request = {.head = true};
    mt_line_answer answer;
    mt_buf url, none;
    bool ok;

    mt_buf_init(&none, 1);
    ok = url_of(&url, p, it);
    request.url = url.data;
    ok = ok && mt_line_get(line, &request, &none, &answer, err);
    if (ok && (!mt_remote_is_digest(answer.digest) || answer.size < 0 || answer.size > MT_LIMIT_PULL_FILE_BYTES))
        ok = mt_fail(err, MT_E_UNSUPPORTED,
                     "%s does not tell the size and the digest of \"%s\", so it cannot be checked: use another hub",
                     p->remote.endpoint, it->file.name);
    if (ok) {
        it->file.digest = mt_strdup(answer.digest);
        it->file.size = (uint64_t)answer.size;
    }
    mt_buf_free(&url);
    mt_buf_free(&none);
    return ok;
}

/* Downloads one item and links it into the snapshot. */
static bool fetch(void *arg, mt_line *line, size_t number, mt_error *err)
{
    pull *p = arg;
    item *it = &p->items[p->chosen[number]];
    mt_blob blob = {.repo = &p->repo,
                    .name = it->file.name,
                    .digest = it->file.digest,
                    .commit = p->list.commit,
                    .size = it->file.size,
                    .done = &it->done,
                    .stop = &p->crew.stop};
    mt_buf url;
    bool ok = url_of(&url, p, it);

    blob.url = url.data;
    ok = ok && mt_blob_fetch(&blob, line, err) &&
         mt_repo_link(&p->repo, p->list.commit, it->file.name, it->file.digest, err);
    mt_buf_free(&url);
    return ok;
}

/* Fetches bytes [from, to) of a file. */
static bool fetch_part(const pull *p, mt_line *line, const item *it, uint64_t from, uint64_t to, mt_buf *out,
                       mt_error *err)
{
    mt_line_request request = {.from = from, .to = to};
    mt_line_answer answer;
    mt_buf url;
    bool ok = url_of(&url, p, it);

    request.url = url.data;
    ok = ok && mt_line_get(line, &request, out, &answer, err);
    mt_buf_free(&url);
    return ok && (out->len == to || mt_fail(err, MT_E_INVALID,
                                            "the hub does not send the header of \"%s\": try again "
                                            "later",
                                            it->file.name));
}

/* Fetches the header of a weight file: eight bytes with its length, and JSON. */
static bool fetch_header(void *arg, mt_line *line, size_t number, mt_error *err)
{
    pull *p = arg;
    const item *it = &p->items[p->chosen[number]];
    uint64_t len = 0;
    mt_buf head;
    bool ok;

    mt_buf_init(&head, MT_LIMIT_HEADER_BYTES + sizeof(len));
    ok = it->file.size < sizeof(len) || fetch_part(p, line, it, 0, sizeof(len), &head, err);
    for (size_t i = 0; i < sizeof(len) && i < head.len; i++)
        len |= (uint64_t)(unsigned char)head.data[i] << 8 * i;
    /* an impossible header is reported by the code that reads it */
    if (ok && len <= MT_LIMIT_HEADER_BYTES && len <= it->file.size - head.len && len > 0)
        ok = fetch_part(p, line, it, head.len, head.len + len, &head, err);
    ok = ok && mt_probe_fill(&p->probe, it->file.name, head.data, head.len, it->file.size, err);
    mt_buf_free(&head);
    return ok;
}

/* Selects the items to be processed next; returns their number. */
static size_t choose(pull *p, bool (*wanted)(const pull *p, const item *it))
{
    p->chosen_count = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].chosen && wanted(p, &p->items[i]))
            p->chosen[p->chosen_count++] = i;
    return p->chosen_count;
}

static bool is_nameless(const pull *p, const item *it)
{
    (void)p;
    return !it->file.digest;
}

static bool is_small(const pull *p, const item *it)
{
    (void)p;
    return !it->file.weights;
}

static bool is_weights(const pull *p, const item *it)
{
    (void)p;
    return it->file.weights;
}

static bool is_noted(const pull *p, const item *it)
{
    (void)p;
    return it->noted;
}

static bool is_noted_first(const pull *p, const item *it)
{
    return it->noted && strcmp(it->file.name, p->gguf) == 0;
}

static bool do_all(pull *p, bool (*wanted)(const pull *p, const item *it),
                   bool (*work)(void *arg, mt_line *line, size_t number, mt_error *err), mt_error *err)
{
    return mt_crew_run(&p->crew, choose(p, wanted), work, err);
}

static bool list_files(void *arg, mt_line *line, size_t number, mt_error *err)
{
    pull *p = arg;
    mt_line_request request = {0};
    mt_line_answer answer;
    mt_buf url, text;
    bool ok;

    (void)number;
    mt_buf_init(&url, MT_LIMIT_PULL_URL);
    mt_buf_init(&text, MT_LIMIT_PULL_ANSWER);
    mt_remote_list_url(&url, &p->remote, &p->name);
    request.url = url.data;
    ok = mt_line_get(line, &request, &text, &answer, err) &&
         mt_listing_read(&p->list, text.len ? text.data : "", text.len, err);
    mt_buf_free(&url);
    mt_buf_free(&text);
    return ok;
}

/* Skips large files that are no weights: motet reads none. */
static void choose_files(pull *p)
{
    for (size_t i = 0; i < p->count; i++)
        p->items[i].chosen = p->items[i].file.weights || p->items[i].file.size <= MT_LIMIT_PULL_SMALL_BYTES;
}

static bool begin_items(pull *p, mt_error *err)
{
    if (mt_hub_is_commit(p->name.revision) && strcmp(p->name.revision, p->list.commit) != 0)
        return mt_fail(err, MT_E_INVALID, "the hub lists commit %s and was asked for %s: check HF_ENDPOINT",
                       p->list.commit, p->name.revision);
    p->items = mt_alloc_array(p->list.count + 1, sizeof(*p->items));
    p->chosen = mt_alloc_array(p->list.count + 1, sizeof(*p->chosen));
    p->shown = mt_alloc_array(p->list.count + 1, sizeof(*p->shown));
    for (size_t i = 0; i < p->list.count; i++)
        p->items[i] = (item){.file = p->list.files[i], .chosen = true};
    p->count = p->list.count;
    for (size_t i = 0; i < p->count; i++)
        p->items[i].file.digest = p->items[i].file.digest ? mt_strdup(p->items[i].file.digest) : NULL;
    if (!do_all(p, is_nameless, describe, err))
        return false;
    p->described = true;
    choose_files(p);
    return true;
}

static bool check_room(const pull *p, mt_error *err)
{
    uint64_t missing = 0;

    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].chosen)
            missing += p->items[i].file.size - mt_repo_have(&p->repo, p->items[i].file.digest, p->items[i].file.size);
    return mt_repo_check_room(&p->repo, missing, err);
}

static uint64_t weight_bytes(const pull *p)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].chosen && p->items[i].file.weights)
            bytes += p->items[i].file.size;
    return bytes;
}

/* Links what is downloaded of the model into the probe; of other files it gets only the names. */
static bool lay_out(pull *p, mt_error *err)
{
    bool ok = mt_probe_open(&p->probe, p->name.id, err);

    for (size_t i = 0; ok && i < p->count; i++) {
        const mt_remote_file *f = &p->items[i].file;
        char path[MT_LIMIT_PATH];

        if (!p->items[i].chosen)
            continue;
        if (mt_repo_whole(&p->repo, f->digest, f->size))
            ok = mt_repo_blob(path, &p->repo, f->digest, false, err) && mt_probe_link(&p->probe, f->name, path, err);
        else
            ok = p->items[i].noted = mt_probe_note(&p->probe, f->name, err);
    }
    return ok && (!p->list.other || mt_probe_note(&p->probe, p->list.other, err));
}

static bool has_safetensors(const pull *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].file.weights && !mt_gguf_named(p->items[i].file.name))
            return true;
    return false;
}

/* Whether it is a GGUF model: there are no other weights, or a tag chooses among GGUF files. */
static bool is_gguf(const pull *p)
{
    bool found = false;

    for (size_t i = 0; i < p->count; i++)
        found |= mt_gguf_named(p->items[i].file.name);
    return found && (*p->name.tag || !has_safetensors(p));
}

/* Selects the shards of one quantisation, and the projector. */
static bool choose_gguf(pull *p, mt_error *err)
{
    mt_gguf_file *files = mt_alloc_array(p->count, sizeof(*files));
    size_t first = 0;

    for (size_t i = 0; i < p->count; i++)
        files[i] = (mt_gguf_file){p->items[i].file.name, p->items[i].file.size};
    const bool ok = mt_gguf_choose(files, p->count, p->name.tag, mt_probe_memory(p->params->memory), &first, err);
    const size_t projector = ok ? mt_gguf_choose_projector(files, p->count, files[first].name) : p->count;
    for (size_t i = 0; ok && i < p->count; i++)
        p->items[i].chosen &=
            !p->items[i].file.weights || i == projector || mt_gguf_same(files[i].name, files[first].name);
    p->gguf = ok ? files[first].name : NULL;
    mt_free(files);
    return ok || mt_fail_within(err, "%s", p->name.id);
}

/* Fetches the first bytes of a GGUF file, which tell the architecture. */
static bool fetch_head(void *arg, mt_line *line, size_t number, mt_error *err)
{
    enum { HEAD = 4096 };
    pull *p = arg;
    const item *it = &p->items[p->chosen[number]];
    const uint64_t len = it->file.size < HEAD ? it->file.size : HEAD;
    mt_buf head;
    bool ok;

    mt_buf_init(&head, HEAD);
    ok = (len == 0 || fetch_part(p, line, it, 0, len, &head, err)) &&
         mt_probe_fill(&p->probe, it->file.name, head.data, head.len, it->file.size, err);
    mt_buf_free(&head);
    return ok;
}

/* Of several versions of the weights in a repository, selects those that would be opened. */
static bool choose_weights(pull *p, mt_error *err)
{
    if (is_gguf(p))
        return choose_gguf(p, err);
    if (*p->name.tag)
        return mt_fail(err, MT_E_INVALID, "\"%s\" has no GGUF files, so \"%s\" chooses none: pull it without a tag",
                       p->name.id, p->name.tag);

    mt_arena *arena = mt_arena_new(0);
    mt_shards shards;
    const bool ok = mt_probe_shards(&p->probe, &shards, arena, err);

    for (size_t i = 0; ok && i < p->count; i++) {
        item *it = &p->items[i];
        bool listed = !it->file.weights;

        for (size_t s = 0; s < shards.count; s++)
            listed |= strcmp(shards.names[s], it->file.name) == 0;
        it->chosen &= listed;
    }
    mt_arena_free(arena);
    return ok;
}

/* Checks whether the model can run. With `force` it is downloaded anyway, but not if it would not fit the disk. */
static bool check_model(pull *p, mt_error *err)
{
    if (!lay_out(p, err))
        return false;
    if (!choose_weights(p, err))
        return p->params->force && check_room(p, err);
    if (!check_room(p, err))
        return false;
    if (p->params->force)
        return true;
    if (p->gguf)
        return do_all(p, is_noted_first, fetch_head, err) &&
               mt_probe_judge_gguf(&p->probe, p->gguf, weight_bytes(p), p->params->memory, err);
    return do_all(p, is_noted, fetch_header, err) && mt_probe_judge(&p->probe, p->params->memory, err);
}

static char *finish(pull *p, mt_error *err)
{
    const char *revision = *p->name.revision ? p->name.revision : "main";
    char folder[MT_LIMIT_PATH];

    if (strcmp(revision, p->list.commit) != 0 && !mt_repo_ref(&p->repo, revision, p->list.commit, err))
        return NULL;
    if (snprintf(folder, sizeof(folder), "%s/snapshots/%s%s%s", p->repo.model, p->list.commit, p->gguf ? "/" : "",
                 p->gguf ? p->gguf : "") >= (int)sizeof(folder)) {
        mt_fail(err, MT_E_TOO_LARGE, "the path of the hub's cache is too long: set HF_HUB_CACHE to a shorter one");
        return NULL;
    }
    begin(p, "done");
    return mt_strdup(folder);
}

static bool run(pull *p, mt_error *err)
{
    begin(p, "listing");
    if (!mt_crew_run(&p->crew, 1, list_files, err))
        return false;
    if (!mt_repo_open(&p->repo, p->remote.cache, p->name.id, err) || !begin_items(p, err))
        return false;
    begin(p, "checking");
    if (!do_all(p, is_small, fetch, err) || !check_model(p, err))
        return false;
    begin(p, "downloading");
    return do_all(p, is_weights, fetch, err);
}

static void end(pull *p)
{
    mt_probe_close(&p->probe);
    mt_crew_end(&p->crew);
    mt_listing_free(&p->list);
    for (size_t i = 0; i < p->count; i++)
        mt_free((void *)(uintptr_t)p->items[i].file.digest);
    mt_free(p->items);
    mt_free(p->chosen);
    mt_free(p->shown);
    mt_free(p);
}

char *mt_pull(const mt_pull_params *params, mt_error *err)
{
    pull *p = mt_alloc(sizeof(*p));
    const size_t most = params->at_once ? params->at_once : AT_ONCE;
    char *folder = NULL;

    p->params = params;
    p->crew = (mt_crew){.remote = &p->remote,
                        .name = &p->name,
                        .size = most < MT_LIMIT_PULL_AT_ONCE ? most : MT_LIMIT_PULL_AT_ONCE,
                        .cancel = params->cancel,
                        .look = look,
                        .arg = p};
    if (!mt_hub_name_read_known(&p->name, params->model) || !p->name.owned)
        mt_fail(err, MT_E_INVALID,
                "\"%.200s\" is no model's name: give OWNER/NAME, OWNER/NAME@REVISION, of GGUF files OWNER/NAME:Q4_K_M, "
                "or a short name of motet list --known",
                params->model);
    else if (mt_remote_read(&p->remote, params->env, err) && run(p, err))
        folder = finish(p, err);
    end(p);
    return folder;
}
