/* The vocabulary is laid out when the first constraint is asked for: many servers never are. Compiling happens
   outside of the lock; two threads that compile the same thing at once both do it, and one of the two is kept. */
#include "server/constraints.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
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
    pthread_mutex_t lock; /* of all that follows */
    mt_vocabulary *vocabulary;
    entry entries[MT_LIMIT_CONSTRAINTS];
    uint64_t clock;
    mt_constraints_stats stats;
};

mt_constraints *mt_constraints_new(const mt_tokenizer *tokenizer, size_t vocab, const uint32_t *ends, size_t end_count)
{
    mt_constraints *c = mt_alloc(sizeof(*c));

    c->tokenizer = tokenizer;
    c->vocab = vocab;
    c->ends = ends;
    c->end_count = end_count;
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void mt_constraints_free(mt_constraints *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < MT_LIMIT_CONSTRAINTS; i++)
        mt_constraint_release(c->entries[i].constraint);
    mt_vocabulary_free(c->vocabulary);
    pthread_mutex_destroy(&c->lock);
    mt_free(c);
}

/* False when there is no telling it apart from others. */
static bool digest_of(const mt_shape *s, uint8_t out[MT_DIGEST_BYTES])
{
    const json_t *values[] = {s->source.value, s->tools};
    char *dumped[MT_COUNT(values)], numbers[64];
    const char *texts[6] = {numbers, s->name ? s->name : "", s->formats.tools, s->formats.reasoning};
    mt_digest_part parts[MT_COUNT(texts)];
    bool ok = true;

    snprintf(numbers, sizeof(numbers), "%d %d %d %d %d", (int)s->source.kind, (int)s->calls, (int)s->one,
             (int)s->opened, s->name != NULL);
    for (size_t i = 0; i < MT_COUNT(values); i++) {
        dumped[i] = values[i] ? json_dumps(values[i], JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
        texts[4 + i] = dumped[i] ? dumped[i] : "";
        ok = ok && (!values[i] || dumped[i]);
    }
    for (size_t i = 0; i < MT_COUNT(texts); i++)
        parts[i] = (mt_digest_part){.data = texts[i], .size = strlen(texts[i])};
    mt_digest(out, parts, MT_COUNT(parts));
    for (size_t i = 0; i < MT_COUNT(values); i++)
        mt_free(dumped[i]);
    return ok;
}

static const mt_vocabulary *vocabulary_of(mt_constraints *c)
{
    const mt_vocabulary *v;

    pthread_mutex_lock(&c->lock);
    if (!c->vocabulary)
        c->vocabulary = mt_vocabulary_new(c->tokenizer, c->vocab, c->ends, c->end_count);
    v = c->vocabulary;
    pthread_mutex_unlock(&c->lock);
    return v;
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

static mt_constraint *compile(mt_constraints *c, const mt_shape *shape, mt_error *err)
{
    const mt_vocabulary *v = vocabulary_of(c);
    const uint64_t begin = mt_clock_ns();
    mt_grammar *g = mt_grammar_new();
    mt_constraint *made = NULL;

    if (mt_shape_write(shape, c->tokenizer, g, err))
        made = mt_constraint_new(g, v, err);
    mt_grammar_free(g);
    pthread_mutex_lock(&c->lock);
    c->stats.compiled += made != NULL;
    c->stats.refused += made == NULL;
    c->stats.compiling_ns += mt_clock_ns() - begin;
    pthread_mutex_unlock(&c->lock);
    return made;
}

mt_constraint *mt_constraints_get(mt_constraints *c, const mt_shape *shape, mt_error *err)
{
    uint8_t digest[MT_DIGEST_BYTES];
    mt_constraint *there;

    const bool known = digest_of(shape, digest);

    pthread_mutex_lock(&c->lock);
    c->stats.asked++;
    there = known ? find(c, digest) : NULL;
    pthread_mutex_unlock(&c->lock);
    if (there)
        return there;
    there = compile(c, shape, err);
    return there && known ? keep(c, digest, there) : there;
}

void mt_constraints_stats_read(mt_constraints *c, mt_constraints_stats *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->stats;
    for (size_t i = 0; i < MT_LIMIT_CONSTRAINTS; i++)
        out->kept += c->entries[i].constraint != NULL;
    pthread_mutex_unlock(&c->lock);
}
