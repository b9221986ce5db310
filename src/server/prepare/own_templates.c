/* A client's template runs on this machine, so it is bounded as all input is: its text by a limit here; steps, memory
   and output of each rendering, probes included, by the template language. It can read only the request and write only
   the prompt. It may use special tokens, as a prompt of /v1/completions may.

   Compiling happens outside of the lock; where two threads compile the same text at once, one result is kept. */
#include "server/prepare/own_templates.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "media/digest.h"
#include "server/limits.h"

/* A compiled template with a count of its holders: the cache's entry, and each arena it was given to. Freed with the
   last. */
typedef struct held {
    atomic_size_t holders;
    mt_chat_templates *set;
} held;

typedef struct entry {
    uint8_t digest[MT_DIGEST_BYTES];
    held *held;    /* NULL: this entry is free */
    uint64_t used; /* value of `clock` at the last use */
} entry;

struct mt_own_templates {
    const json_t *tokens;
    pthread_mutex_t lock; /* of the fields below */
    entry entries[MT_LIMIT_OWN_TEMPLATES];
    uint64_t clock; /* counts uses */
};

static void let_go(void *object)
{
    held *h = object;

    /* The last holder must see what others wrote */
    if (!h || atomic_fetch_sub_explicit(&h->holders, 1, memory_order_acq_rel) > 1)
        return;
    mt_chat_templates_free(h->set);
    mt_free(h);
}

mt_own_templates *mt_own_templates_new(const json_t *tokens)
{
    mt_own_templates *own = mt_alloc(sizeof(*own));

    own->tokens = tokens;
    pthread_mutex_init(&own->lock, NULL);
    return own;
}

void mt_own_templates_free(mt_own_templates *own)
{
    if (!own)
        return;
    for (size_t i = 0; i < MT_LIMIT_OWN_TEMPLATES; i++)
        let_go(own->entries[i].held);
    pthread_mutex_destroy(&own->lock);
    mt_free(own);
}

/* The kept template of a digest, with one more holder; NULL: there is none. The caller has the lock. */
static held *find(mt_own_templates *own, const uint8_t digest[MT_DIGEST_BYTES])
{
    for (size_t i = 0; i < MT_LIMIT_OWN_TEMPLATES; i++) {
        entry *e = &own->entries[i];

        if (!e->held || memcmp(e->digest, digest, MT_DIGEST_BYTES) != 0)
            continue;
        e->used = ++own->clock;
        /* Relaxed: the entry holds it meanwhile */
        atomic_fetch_add_explicit(&e->held->holders, 1, memory_order_relaxed);
        return e->held;
    }
    return NULL;
}

/* Keeps `made` in place of the least recently used one. Returns it, or the equal one that another thread has kept
   meanwhile, held for the caller. */
static held *keep(mt_own_templates *own, const uint8_t digest[MT_DIGEST_BYTES], held *made)
{
    entry *oldest = own->entries;
    held *there, *old = NULL;

    pthread_mutex_lock(&own->lock);
    there = find(own, digest);
    for (size_t i = 1; i < MT_LIMIT_OWN_TEMPLATES; i++)
        if (own->entries[i].used < oldest->used)
            oldest = &own->entries[i];
    if (!there) {
        old = oldest->held;
        atomic_fetch_add_explicit(&made->holders, 1, memory_order_relaxed); /* relaxed: no other thread knows it yet */
        *oldest = (entry){.held = made, .used = ++own->clock};
        memcpy(oldest->digest, digest, MT_DIGEST_BYTES);
    }
    pthread_mutex_unlock(&own->lock);
    let_go(there ? made : old);
    return there ? there : made;
}

static held *compile(const mt_own_templates *own, const char *text, size_t len, const atomic_bool *stop, mt_error *err)
{
    mt_chat_templates *set = mt_chat_templates_new(text, len, own->tokens, stop, err);
    held *made;

    if (!set)
        return NULL;
    made = mt_alloc(sizeof(*made));
    made->set = set;
    atomic_init(&made->holders, 1);
    return made;
}

const mt_chat_templates *mt_own_templates_get(mt_own_templates *own, mt_arena *arena, const char *text, size_t len,
                                              const atomic_bool *stop, mt_error *err)
{
    const mt_digest_part part = {.data = text, .size = len};
    uint8_t digest[MT_DIGEST_BYTES];
    held *h;

    if (len > MT_LIMIT_OWN_TEMPLATE_BYTES) {
        mt_fail(err, MT_E_TOO_LARGE, "the chat template has %zu bytes; send at most %d", len,
                MT_LIMIT_OWN_TEMPLATE_BYTES);
        return NULL;
    }
    mt_digest(digest, &part, 1);
    pthread_mutex_lock(&own->lock);
    h = find(own, digest);
    pthread_mutex_unlock(&own->lock);
    if (!h) {
        h = compile(own, text, len, stop, err);
        if (h && stop && atomic_load_explicit(stop, memory_order_relaxed)) { /* its probes may have been cut short */
            let_go(h);
            h = NULL;
            mt_fail(err, MT_E_INVALID, "the request was cancelled before it began");
        }
        h = h ? keep(own, digest, h) : NULL;
    }
    if (h && !mt_arena_defer(arena, let_go, h)) {
        let_go(h);
        mt_fail(err, MT_E_TOO_LARGE, "the request needs more memory than it may have; make it smaller");
        return NULL;
    }
    return h ? h->set : NULL;
}
