/* A rank other than 0: opens and closes checkpoints and models as rank 0 tells it, under rank 0's numbers. One thread;
   the process does nothing else.

   A failure of this machine alone (a missing folder, too little memory) is answered to rank 0, which reports it and
   goes on or ends. A failure that cannot be answered ends the process, and with it all ranks. */
#include "engine/follow.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "engine/lead.h"
#include "engine/opened.h"
#include "models/relay.h"
#include "ranks/ranks.h"

/* An open checkpoint. */
typedef struct folder {
    struct folder *next;
    uint32_t serial;
    mt_opened o;
} folder;

/* An open model; its calls come through models/relay_follow.c. */
typedef struct model {
    struct model *next;
    uint32_t number;
    mt_follower *f;
} model;

/* All that this rank has open. */
typedef struct following {
    mt_ranks *ranks;
    const mt_device_params *params;
    folder *folders;
    model *models;
} following;

/* ---- checkpoints ---- */

/* The text that is packed into `count` words and ends with a zero byte; NULL where there is no such text before
   `end`. */
static const char *text_in(const uint32_t *words, size_t count, const uint32_t *end)
{
    return count <= (size_t)(end - words) && memchr(words, 0, count * sizeof(*words)) ? (const char *)words : NULL;
}

/* Whether what was opened here is what rank 0 has opened. */
static bool check(const mt_opened *o, const mt_lead_words *w, mt_error *err)
{
    const uint64_t bytes = w->bytes[0] | (uint64_t)w->bytes[1] << 32;
    if (mt_checkpoint_bytes(o->checkpoint) != bytes)
        return mt_fail(err, MT_E_INVALID,
                       "\"%s\" has %llu bytes of weights here and %llu at rank 0; give every machine the same files",
                       mt_checkpoint_dir(o->checkpoint), (unsigned long long)mt_checkpoint_bytes(o->checkpoint),
                       (unsigned long long)bytes);
    return mt_device_fingerprint(o->dev) == w->fingerprint ||
           mt_fail(
               err, MT_E_UNSUPPORTED,
               "its numbers differ from those of rank 0 (fingerprint %08x, %08x there); use processors of one kind, "
               "or take away what one of them lacks with --cpu-mask",
               mt_device_fingerprint(o->dev), w->fingerprint);
}

/* Opens a checkpoint as rank 0's message says; false with a sentence. */
static bool open_folder(following *f, const uint32_t *words, size_t count, mt_error *err)
{
    mt_lead_words w;
    const size_t first = sizeof(w) / sizeof(*words);
    if (count < first)
        return mt_fail(err, MT_E_INTERNAL, "rank 0 has named no folder");
    memcpy(&w, words, sizeof(w));
    const char *text[3] = {NULL};
    const uint32_t *const given[] = {&w.dir, &w.family, &w.draft}, *at = words + first;
    for (size_t i = 0; i < MT_COUNT(given); at += *given[i++])
        if (*given[i] && !(text[i] = text_in(at, *given[i], words + count)))
            return mt_fail(err, MT_E_INTERNAL, "rank 0 has named no folder");
    mt_device_params params = *f->params;
    params.name = "cpu";
    params.precision = (mt_precision)w.precision;
    params.kv_bits = (mt_kv_bits)w.kv_bits;
    const mt_open_wish wish = {.family = text[1], .text_only = true, .draft = text[2]};
    folder *opened = mt_alloc(sizeof(*opened));
    opened->serial = w.serial;
    if (!text[0] || !mt_opened_open(&opened->o, text[0], &params, &wish, err)) {
        mt_free(opened);
        return false;
    }
    opened->next = f->folders;
    f->folders = opened;
    return check(&opened->o, &w, err);
}

static folder *find_folder(following *f, uint32_t serial)
{
    folder *at = f->folders;
    while (at && at->serial != serial)
        at = at->next;
    return at;
}

static void close_folder(following *f, uint32_t serial)
{
    folder *at = find_folder(f, serial), **link = &f->folders;
    if (!at)
        return;
    while (*link != at)
        link = &(*link)->next;
    *link = at->next;
    mt_opened_close(&at->o);
    mt_free(at);
}

/* ---- models ---- */

/* Makes a model as rank 0's message says; false with a sentence. */
static bool new_model(following *f, const uint32_t *words, size_t count, mt_error *err)
{
    folder *at = count > 2 ? find_folder(f, words[2]) : NULL;
    if (!at)
        return mt_fail(err, MT_E_INTERNAL, "rank 0 has made a model of a folder that was not opened");
    model *m = mt_alloc(sizeof(*m));
    m->number = words[1];
    m->f = mt_follower_new(at->o.dev, &at->o.spec, &at->o.weights, words, count, err);
    if (!m->f) {
        mt_free(m);
        return false;
    }
    m->next = f->models;
    f->models = m;
    return true;
}

static model *find_model(following *f, uint32_t number)
{
    model *m = f->models;
    while (m && m->number != number)
        m = m->next;
    return m;
}

static void free_model(following *f, uint32_t number)
{
    model *m = find_model(f, number), **link = &f->models;
    if (!m)
        return;
    while (*link != m)
        link = &(*link)->next;
    *link = m->next;
    mt_follower_free(m->f);
    mt_free(m);
}

/* ---- what is told ---- */

/* Answers rank 0 whether the last message could be obeyed. */
static void answer(following *f, bool ok, mt_error *err)
{
    if (ok)
        mt_error_clear(err);
    mt_ranks_answer(f->ranks, err);
    mt_error_clear(err);
}

/* Does what one message says. False where the ranks cannot go on. */
static bool obey(following *f, const uint32_t *words, size_t count, mt_error *err)
{
    if (count < 2)
        return mt_fail(err, MT_E_INTERNAL, "rank 0 has said nothing");
    model *m = find_model(f, words[1]);
    switch (words[0]) {
    case MT_TOLD_OPEN: answer(f, open_folder(f, words, count, err), err); return true;
    case MT_TOLD_CLOSE: close_folder(f, words[1]); return true;
    case MT_TOLD_NEW: answer(f, new_model(f, words, count, err), err); return true;
    case MT_TOLD_FREE: free_model(f, words[1]); return true;
    case MT_TOLD_RESERVE:
        if (!m)
            break;
        answer(f, mt_follower_do(m->f, words, count, err), err);
        return true;
    default: break;
    }
    return m ? mt_follower_do(m->f, words, count, err)
             : mt_fail(err, MT_E_INTERNAL, "rank 0 has used a model that it has not made");
}

bool mt_follow(mt_ranks *ranks, const mt_device_params *params, mt_error *err)
{
    following f = {.ranks = ranks, .params = params};
    const uint32_t *words;
    size_t count = 0;
    bool ok = true;
    while (ok && (words = mt_ranks_hear(ranks, &count)) && count > 0)
        ok = obey(&f, words, count, err);
    while (f.models)
        free_model(&f, f.models->number);
    while (f.folders)
        close_folder(&f, f.folders->serial);
    return ok;
}
