/* The index of the vocabulary is built by a thread of its own that starts with the model, so that the first constraint
   does not wait for it. Constraints are compiled outside of the lock; where two threads compile the same one at once,
   one of the two results is kept.

   All compiled constraints, kept or in use, share a limit of bytes. How many bytes a constraint will need is known once
   its program exists, and they are reserved before the rest is made. Where too few are left, kept constraints that no
   request uses are dropped, least recently used first; where that is not enough, the request is refused with MT_E_BUSY.
   No thread waits for the compilation of another request. A single constraint is always compiled, whatever the
   limit. */
#include "server/prepare/constraints.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/json_tree.h"
#include "media/digest.h"
#include "server/limits.h"

typedef struct entry {
    uint8_t digest[MT_DIGEST_BYTES];
    mt_constraint *constraint; /* NULL: this entry is free */
    uint64_t used;             /* value of `clock` at the last use */
} entry;

struct mt_constraints {
    const mt_tokenizer *tokenizer;
    size_t vocab;
    const uint32_t *ends;
    size_t end_count;
    size_t limit; /* bytes for the vocabulary's index and all compiled constraints */
    /* Of constraints, compiled or being compiled; added to under the lock, subtracted from without */
    atomic_size_t bytes;
    pthread_mutex_t lock;   /* of all fields below */
    pthread_cond_t changed; /* signalled when vocabulary is set */
    mt_vocabulary *vocabulary;
    entry entries[MT_LIMIT_CONSTRAINTS];
    uint64_t clock; /* counts uses */
    mt_constraints_stats stats;
};

/* The caller has the lock. */
static void wait_for_vocabulary(mt_constraints *c)
{
    while (!c->vocabulary)
        pthread_cond_wait(&c->changed, &c->lock);
}

/* A detached thread, which does not touch c after it has released the lock. */
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

/* A digest of all that a constraint is compiled from. False where the shape cannot be written as text: then it is not
   kept. */
static bool digest_of(const uint8_t *owner, const mt_shape *s, uint8_t out[MT_DIGEST_BYTES])
{
    const json_t *values[] = {s->source.value, s->tools, s->names};
    char numbers[64];
    mt_buf dumped[MT_COUNT(values)];
    const char *texts[3 + MT_COUNT(values)] = {numbers, s->formats.tools, s->formats.reasoning};
    mt_digest_part parts[MT_COUNT(texts) + 1] = {[MT_COUNT(texts)] = {.data = owner, .size = owner ? 32 : 0}};
    bool ok = true;

    snprintf(numbers, sizeof(numbers), "%d %d %d %d %d", (int)s->source.kind, (int)s->source.strict, (int)s->calls,
             (int)s->one, (int)s->opened);
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

/* The kept constraint of a digest, with a reference for the caller; NULL: there is none. The caller has the lock. */
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

/* Keeps a compiled constraint in place of the least recently used one. Returns it, or the equal one that another thread
   has kept meanwhile. */
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

/* Drops the least recently used constraint that no request uses. False: there is none. The caller has the lock. */
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

/* Whether a constraint of so many bytes may be made. The caller has the lock. */
static bool fits(const mt_constraints *c, size_t bytes)
{
    /* Relaxed: it only grows under the lock */
    const size_t held = atomic_load_explicit(&c->bytes, memory_order_relaxed);

    return held == 0 || held + bytes + mt_vocabulary_memory(c->vocabulary) <= c->limit;
}

/* Reserves bytes for a constraint, dropping others where needed. False: *err. */
static bool take_room(mt_constraints *c, size_t bytes, mt_error *err)
{
    bool ok;

    if (bytes > MT_LIMIT_CONSTRAINT_ONE)
        return mt_fail(err, MT_E_INVALID, "the constraint takes %zu MiB, compiled; make it smaller, for %u MiB at most",
                       bytes >> 20, MT_LIMIT_CONSTRAINT_ONE >> 20);
    pthread_mutex_lock(&c->lock);
    while (!(ok = fits(c, bytes)) && forget(c))
        ;
    if (ok)
        atomic_fetch_add_explicit(&c->bytes, bytes, memory_order_relaxed); /* relaxed: the lock orders it */
    else
        c->stats.busy++;
    pthread_mutex_unlock(&c->lock);
    return ok ||
           mt_fail(err, MT_E_BUSY,
                   "the constraints of other requests take all the memory that there is for them; try again later");
}

static mt_program *write_program(mt_constraints *c, const mt_shape *shape, const mt_patience *patience, mt_error *err)
{
    mt_grammar *g = mt_grammar_new();
    mt_program *program = NULL;

    mt_grammar_watch(g, patience);
    if (mt_shape_write(shape, c->tokenizer, g, err))
        program = mt_program_new(g, &c->vocabulary->covered, err);
    mt_grammar_free(g);
    return program;
}

static mt_constraint *compile(mt_constraints *c, const mt_shape *shape, const mt_patience *patience, mt_error *err)
{
    mt_program *program = write_program(c, shape, patience, err);
    const size_t bytes = program ? mt_constraint_need(program, c->vocabulary) : 0;
    mt_constraint *made;

    if (!program || !take_room(c, bytes, err)) {
        mt_program_free(program);
        return NULL;
    }
    made = mt_constraint_make(program, c->vocabulary, patience, err);
    if (made)
        mt_constraint_charge(made, &c->bytes);
    else
        atomic_fetch_sub_explicit(&c->bytes, bytes, memory_order_relaxed); /* relaxed: only a count */
    return made;
}

/* later: there was no time left, but processor time; the constraint will be asked for again, in another lane, and is
   counted then. */
static void count_compiled(mt_constraints *c, uint64_t begin, bool made, bool later)
{
    pthread_mutex_lock(&c->lock);
    c->stats.asked += !later;
    c->stats.compiled += made;
    c->stats.refused += !made && !later;
    c->stats.compiling_ns += mt_clock_ns() - begin;
    pthread_mutex_unlock(&c->lock);
}

/* As mt_constraints_find. *known: the shape has a digest, which is written to digest. */
static mt_constraint *find_known(mt_constraints *c, const uint8_t *owner, const mt_shape *shape,
                                 uint8_t digest[MT_DIGEST_BYTES], bool *known)
{
    mt_constraint *there;

    *known = digest_of(owner, shape, digest);
    pthread_mutex_lock(&c->lock);
    there = *known ? find(c, digest) : NULL;
    c->stats.asked += there != NULL;
    pthread_mutex_unlock(&c->lock);
    return there;
}

mt_constraint *mt_constraints_find(mt_constraints *c, const uint8_t *owner, const mt_shape *shape)
{
    uint8_t digest[MT_DIGEST_BYTES];
    bool known;

    return find_known(c, owner, shape, digest, &known);
}

mt_constraint *mt_constraints_get(mt_constraints *c, const uint8_t *owner, const mt_shape *shape,
                                  const mt_patience *patience, mt_error *err)
{
    const uint64_t begin = mt_clock_ns();
    uint8_t digest[MT_DIGEST_BYTES];
    bool known;
    mt_constraint *made = find_known(c, owner, shape, digest, &known);

    if (made)
        return made;
    pthread_mutex_lock(&c->lock);
    wait_for_vocabulary(c);
    pthread_mutex_unlock(&c->lock);
    made = compile(c, shape, patience, err);
    count_compiled(c, begin, made != NULL, !made && mt_patience_over(patience) && !mt_patience_spent(patience));
    return made && known ? keep(c, digest, made) : made;
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
