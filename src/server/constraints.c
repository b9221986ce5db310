/* The vocabulary is laid out on a thread of its own that starts with the server, so that the first constraint does not
   wait for it. Compiling happens outside of the lock; two threads that compile the same thing at once both do it, and
   one of the two is kept.

   All that is compiled, kept or in use, is within a number of bytes. Room for the largest that there can be is taken
   before compiling, and what it did not need is given back. Where there is none, those that nobody uses go, the oldest
   first; where that is not enough, whoever compiles something else is waited for; and where nobody does, the request
   is told to come again. One alone is always compiled, however little room there is. */
#include "server/constraints.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/json_tree.h"
#include "base/limits.h"
#include "media/digest.h"

typedef struct entry {
    uint8_t digest[MT_DIGEST_BYTES];
    mt_constraint *constraint; /* NULL: free */
    uint64_t used;
} entry;

struct mt_constraints {
    const mt_tokenizer *tokenizer;
    size_t vocab;
    const uint32_t *ends;
    size_t end_count;
    size_t limit;           /* bytes for the vocabulary and all that is compiled */
    atomic_size_t bytes;    /* of what is compiled, or being compiled; taken with the lock, given back without */
    pthread_mutex_t lock;   /* of all that follows */
    pthread_cond_t changed; /* the vocabulary is there, somebody has compiled */
    mt_vocabulary *vocabulary;
    size_t compiling;
    entry entries[MT_LIMIT_CONSTRAINTS];
    uint64_t clock;
    mt_constraints_stats stats;
};

/* With the lock held. */
static void wait_for_vocabulary(mt_constraints *c)
{
    while (!c->vocabulary)
        pthread_cond_wait(&c->changed, &c->lock);
}

/* A detached thread, which does not touch c once it has let go of the lock. */
static void *build_vocabulary(void *arg)
{
    mt_constraints *c = arg;
    mt_vocabulary *v = mt_vocabulary_new(c->tokenizer, c->vocab, c->ends, c->end_count);

    pthread_mutex_lock(&c->lock);
    c->vocabulary = v;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

mt_constraints *mt_constraints_new(const mt_tokenizer *tokenizer, size_t vocab, const uint32_t *ends, size_t end_count,
                                   size_t limit, mt_error *err)
{
    mt_constraints *c = mt_alloc(sizeof(*c));
    pthread_t builder;

    c->tokenizer = tokenizer;
    c->vocab = vocab;
    c->ends = ends;
    c->end_count = end_count;
    c->limit = limit;
    atomic_init(&c->bytes, 0);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    if (pthread_create(&builder, NULL, build_vocabulary, c) == 0) {
        pthread_detach(builder);
        return c;
    }
    mt_fail(err, MT_E_MEMORY, "the thread that lays out the vocabulary cannot be started");
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    mt_free(c);
    return NULL;
}

void mt_constraints_free(mt_constraints *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    wait_for_vocabulary(c);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < MT_LIMIT_CONSTRAINTS; i++)
        mt_constraint_release(c->entries[i].constraint);
    assert(atomic_load(&c->bytes) == 0);
    mt_vocabulary_free(c->vocabulary);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    mt_free(c);
}

/* False when there is no telling it apart from others. */
static bool digest_of(const uint8_t *owner, const mt_shape *s, uint8_t out[MT_DIGEST_BYTES])
{
    const json_t *values[] = {s->source.value, s->tools, s->names};
    char numbers[64];
    mt_buf dumped[MT_COUNT(values)];
    const char *texts[3 + MT_COUNT(values)] = {numbers, s->formats.tools, s->formats.reasoning};
    mt_digest_part parts[MT_COUNT(texts) + 1] = {[MT_COUNT(texts)] = {.data = owner, .size = owner ? 32 : 0}};
    bool ok = true;

    snprintf(numbers, sizeof(numbers), "%d %d %d %d", (int)s->source.kind, (int)s->calls, (int)s->one, (int)s->opened);
    for (size_t i = 0; i < MT_COUNT(values); i++) {
        mt_buf_init(&dumped[i], MT_LIMIT_BODY_BYTES * 2ul);
        ok = (!values[i] || mt_json_tree_write(&dumped[i], values[i])) && ok;
        texts[3 + i] = dumped[i].data ? dumped[i].data : "";
    }
    for (size_t i = 0; i < MT_COUNT(texts); i++)
        parts[i] = (mt_digest_part){.data = texts[i], .size = strlen(texts[i])};
    mt_digest(out, parts, MT_COUNT(parts));
    for (size_t i = 0; i < MT_COUNT(values); i++)
        mt_buf_free(&dumped[i]);
    return ok;
}

/* With the lock held. A reference for the caller; NULL when it is not there. */
static mt_constraint *find(mt_constraints *c, const uint8_t digest[MT_DIGEST_BYTES])
{
    for (size_t i = 0; i < MT_LIMIT_CONSTRAINTS; i++) {
        entry *e = &c->entries[i];

        if (!e->constraint || memcmp(e->digest, digest, MT_DIGEST_BYTES) != 0)
            continue;
        e->used = ++c->clock;
        return mt_constraint_hold(e->constraint);
    }
    return NULL;
}

/* Keeps a constraint in the place of the one that was not used for longest, unless another thread was quicker. */
static mt_constraint *keep(mt_constraints *c, const uint8_t digest[MT_DIGEST_BYTES], mt_constraint *made)
{
    mt_constraint *there, *old = NULL;
    entry *oldest = &c->entries[0];

    pthread_mutex_lock(&c->lock);
    there = find(c, digest);
    for (size_t i = 1; i < MT_LIMIT_CONSTRAINTS; i++)
        if (c->entries[i].used < oldest->used)
            oldest = &c->entries[i];
    if (!there) {
        old = oldest->constraint;
        *oldest = (entry){.constraint = mt_constraint_hold(made), .used = ++c->clock};
        memcpy(oldest->digest, digest, MT_DIGEST_BYTES);
    }
    pthread_mutex_unlock(&c->lock);
    mt_constraint_release(old);
    if (there)
        mt_constraint_release(made);
    return there ? there : made;
}

/* With the lock held. Forgets the one that was not used for longest, of those that nobody uses. */
static bool forget(mt_constraints *c)
{
    entry *oldest = NULL;

    for (size_t i = 0; i < MT_LIMIT_CONSTRAINTS; i++) {
        entry *e = &c->entries[i];

        if (e->constraint && !mt_constraint_shared(e->constraint) && (!oldest || e->used < oldest->used))
            oldest = e;
    }
    if (!oldest)
        return false;
    mt_constraint_release(oldest->constraint);
    *oldest = (entry){0};
    return true;
}

/* With the lock held. */
static bool fits(const mt_constraints *c)
{
    const size_t held = atomic_load_explicit(&c->bytes, memory_order_relaxed); /* only grows with the lock held */

    return held == 0 || held + MT_LIMIT_CONSTRAINT_ONE + mt_vocabulary_memory(c->vocabulary) <= c->limit;
}

/* With the lock held: takes room for one. What it looks for may be compiled while it waits: then it is handed over. */
static bool take_room(mt_constraints *c, const uint8_t *digest, mt_constraint **there, mt_error *err)
{
    wait_for_vocabulary(c);
    while (!fits(c)) {
        if (forget(c))
            continue;
        if (c->compiling == 0) {
            c->stats.busy++;
            return mt_fail(err, MT_E_BUSY,
                           "the constraints of other requests take all the memory that there is for "
                           "them; try again later");
        }
        pthread_cond_wait(&c->changed, &c->lock);
        *there = digest ? find(c, digest) : NULL;
        if (*there)
            return true;
    }
    atomic_fetch_add_explicit(&c->bytes, MT_LIMIT_CONSTRAINT_ONE, memory_order_relaxed); /* the lock orders it */
    c->compiling++;
    return true;
}

/* With room taken for it; what it does not need is given back. */
static mt_constraint *compile(mt_constraints *c, const mt_shape *shape, mt_error *err)
{
    const uint64_t begin = mt_clock_ns();
    mt_grammar *g = mt_grammar_new();
    mt_constraint *made = NULL;
    size_t bytes = 0;

    if (mt_shape_write(shape, c->tokenizer, g, err))
        made = mt_constraint_new(g, c->vocabulary, err);
    mt_grammar_free(g);
    if (made) {
        bytes = mt_constraint_bytes(made);
        assert(bytes <= MT_LIMIT_CONSTRAINT_ONE);
        mt_constraint_charge(made, &c->bytes);
    }
    pthread_mutex_lock(&c->lock);
    atomic_fetch_sub_explicit(&c->bytes, MT_LIMIT_CONSTRAINT_ONE - bytes, memory_order_relaxed);
    c->compiling--;
    c->stats.compiled += made != NULL;
    c->stats.refused += made == NULL;
    c->stats.compiling_ns += mt_clock_ns() - begin;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return made;
}

mt_constraint *mt_constraints_get(mt_constraints *c, const uint8_t *owner, const mt_shape *shape, mt_error *err)
{
    uint8_t digest[MT_DIGEST_BYTES];
    const bool known = digest_of(owner, shape, digest);
    mt_constraint *there;
    bool ok;

    pthread_mutex_lock(&c->lock);
    c->stats.asked++;
    there = known ? find(c, digest) : NULL;
    ok = there || take_room(c, known ? digest : NULL, &there, err);
    pthread_mutex_unlock(&c->lock);
    if (there || !ok)
        return there;
    there = compile(c, shape, err);
    return there && known ? keep(c, digest, there) : there;
}

void mt_constraints_stats_read(mt_constraints *c, mt_constraints_stats *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->stats;
    out->bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed) +
                 (c->vocabulary ? mt_vocabulary_memory(c->vocabulary) : 0);
    for (size_t i = 0; i < MT_LIMIT_CONSTRAINTS; i++)
        out->kept += c->entries[i].constraint != NULL;
    pthread_mutex_unlock(&c->lock);
}
