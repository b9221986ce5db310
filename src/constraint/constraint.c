/* Compiled constraints, and token masks by walking the vocabulary (constraint.h). */
#include "constraint/constraint.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "constraint/limits.h"

struct mt_constraint {
    atomic_size_t references;
    uint64_t number; /* unique in the process */
    const mt_vocabulary *v;
    mt_program *program;
    mt_automaton *automaton;
    mt_run *runs;                /* list; used by the engine's thread */
    mt_automaton_state **states; /* pointers to the runs' states, while collecting */
    mt_automaton_state *path;    /* [longest token + 2]: states along the bytes of a token */
    mt_automaton_mark *marks;    /* [longest token + 2]: what the automaton knew at each of them */
    uint32_t *first;             /* mask of the first token of every answer */
    atomic_size_t *total;        /* reduced when this is freed; NULL: none */
};

static bool compute(mt_constraint *c, mt_automaton_state state, uint32_t *mask);

/* Sets the error for the limit that the automaton reached. */
static bool say_lack(const mt_automaton *a, const mt_patience *patience, mt_error *err)
{
    static const char *const what[] = {
        [MT_LACK_STATES] = "states",
        [MT_LACK_PLACES] = "places at once",
        [MT_LACK_ITEMS] = "places in all its states",
        [MT_LACK_STACKS] = "rules and repetitions within one another in all its states",
        [MT_LACK_WORK] = "steps",
    };
    uint32_t most;
    const mt_automaton_lack lack = mt_automaton_lacks(a, &most);

    if (lack == MT_LACK_STOPPED)
        return mt_grammar_say_stopped(patience, err);
    return mt_fail(err, MT_E_INVALID, "the constraint needs more than %u %s to find its first token; make it simpler",
                   most, what[lack]);
}

/* Computes the mask of the first token here, so that the engine's thread need not. */
static bool warm(mt_constraint *c, const mt_patience *patience, mt_error *err)
{
    const mt_automaton_state start = mt_automaton_start(c->automaton);
    bool any = false;

    if (start == MT_STATE_UNKNOWN || !compute(c, start, c->first))
        return say_lack(c->automaton, patience, err);
    for (size_t i = 0; i < c->v->words; i++)
        any |= c->first[i] != 0;
    return any || mt_fail(err, MT_E_INVALID, "the model has no token to begin such an answer with");
}

mt_constraint *mt_constraint_make(mt_program *program, const mt_vocabulary *vocabulary, const mt_patience *patience,
                                  mt_error *err)
{
    static atomic_uint_fast64_t numbers;
    mt_constraint *c = mt_alloc(sizeof(*c));

    atomic_init(&c->references, 1);
    /* relaxed: numbers only have to differ */
    c->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
    c->v = vocabulary;
    c->path = mt_alloc_array(vocabulary->longest + 2, sizeof(*c->path));
    c->marks = mt_alloc_array(vocabulary->longest + 2, sizeof(*c->marks));
    c->first = mt_alloc_array(vocabulary->words, sizeof(*c->first));
    c->states = mt_alloc_array(MT_LIMIT_CONSTRAINT_RUNS, sizeof(*c->states));
    c->program = program;
    c->automaton = mt_automaton_new(program, patience);
    if (warm(c, patience, err)) {
        mt_automaton_settle(c->automaton);
        return c;
    }
    mt_constraint_release(c);
    return NULL;
}

mt_constraint *mt_constraint_new(const mt_grammar *grammar, const mt_vocabulary *vocabulary, mt_error *err)
{
    mt_program *program = mt_program_new(grammar, &vocabulary->covered, err);

    return program ? mt_constraint_make(program, vocabulary, grammar->patience, err) : NULL;
}

mt_constraint *mt_constraint_hold(mt_constraint *c)
{
    /* relaxed: the caller's own reference keeps it alive */
    atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
    return c;
}

void mt_constraint_release(mt_constraint *c)
{
    /* release: uses by this thread come before the end; acquire: the end comes after uses by others */
    if (!c || atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) > 1)
        return;
    assert(!c->runs);
    if (c->total)
        atomic_fetch_sub_explicit(c->total, mt_constraint_bytes(c), memory_order_relaxed); /* relaxed: only a counter */
    mt_automaton_free(c->automaton);
    mt_program_free(c->program);
    mt_free(c->states);
    mt_free(c->path);
    mt_free(c->marks);
    mt_free(c->first);
    mt_free(c);
}

const char *mt_constraint_left_out(const mt_constraint *c)
{
    return c->program->left_out;
}

const mt_vocabulary *mt_constraint_vocabulary(const mt_constraint *c)
{
    return c->v;
}

size_t mt_constraint_need(const mt_program *program, const mt_vocabulary *v)
{
    return sizeof(mt_constraint) + mt_program_bytes(program) + mt_automaton_bytes(program) +
           MT_LIMIT_CONSTRAINT_RUNS * sizeof(mt_automaton_state *) + v->words * sizeof(uint32_t) +
           (v->longest + 2) * (sizeof(mt_automaton_state) + sizeof(mt_automaton_mark));
}

size_t mt_constraint_bytes(const mt_constraint *c)
{
    return mt_constraint_need(c->program, c->v);
}

void mt_constraint_charge(mt_constraint *c, atomic_size_t *total)
{
    assert(!c->total);
    c->total = total;
}

bool mt_constraint_shared(const mt_constraint *c)
{
    /* relaxed: others get references only from the caller */
    return atomic_load_explicit(&c->references, memory_order_relaxed) > 1;
}

static void link_run(mt_run *run, mt_constraint *c)
{
    run->prev = NULL;
    run->next = c->runs;
    if (c->runs)
        c->runs->prev = run;
    c->runs = run;
}

void mt_run_begin(mt_run *run, mt_constraint *c)
{
    *run = (mt_run){.constraint = mt_constraint_hold(c), .state = mt_automaton_start(c->automaton)};
    link_run(run, c);
}

void mt_run_copy(mt_run *run, const mt_run *from)
{
    *run = *from;
    if (run->constraint)
        link_run(run, mt_constraint_hold(run->constraint));
}

void mt_run_end(mt_run *run)
{
    mt_constraint *c = run->constraint;

    if (!c)
        return;
    if (run->prev)
        run->prev->next = run->next;
    else
        c->runs = run->next;
    if (run->next)
        run->next->prev = run->prev;
    *run = (mt_run){.constraint = NULL};
    mt_constraint_release(c);
}

/* Frees states. Runs beyond the limit lose their state, and fail. */
static void collect(mt_constraint *c)
{
    size_t count = 0;

    for (mt_run *r = c->runs; r; r = r->next) {
        if (count < MT_LIMIT_CONSTRAINT_RUNS)
            c->states[count++] = &r->state;
        else
            r->state = MT_STATE_DEAD;
    }
    mt_automaton_collect(c->automaton, c->states, count);
    for (mt_run *r = c->runs; r; r = r->next)
        r->failed |= r->state == MT_STATE_DEAD;
}

/* Whether what could not be done may be done after mt_automaton_collect. The work of both is bounded together. */
static bool room_helps(const mt_constraint *c)
{
    uint32_t most;
    const mt_automaton_lack lack = mt_automaton_lacks(c->automaton, &most);

    return lack != MT_LACK_WORK && lack != MT_LACK_PLACES;
}

static mt_automaton_state read_token(const mt_constraint *c, mt_automaton_state state, uint32_t token)
{
    size_t len;
    const char *bytes = mt_vocabulary_bytes(c->v, token, &len);

    if (len == 0)
        return mt_automaton_token(c->automaton, state, token);
    for (size_t i = 0; i < len && state != MT_STATE_DEAD && state != MT_STATE_UNKNOWN; i++)
        state = mt_automaton_byte(c->automaton, state, (unsigned char)bytes[i]);
    return state;
}

bool mt_run_token(mt_run *run, uint32_t token)
{
    mt_constraint *c = run->constraint;
    mt_automaton_state next;

    if (run->over || run->failed)
        return false;
    if (mt_vocabulary_ends(c->v, token) && mt_automaton_accepts(c->automaton, run->state)) {
        run->over = true;
        return true;
    }
    mt_automaton_rest(c->automaton);
    next = read_token(c, run->state, token);
    if (next == MT_STATE_UNKNOWN && room_helps(c)) {
        collect(c);
        next = run->failed ? MT_STATE_UNKNOWN : read_token(c, run->state, token);
    }
    run->failed |= next == MT_STATE_UNKNOWN;
    if (run->failed || next == MT_STATE_DEAD)
        return false;
    run->state = next;
    run->over = !mt_automaton_open(c->automaton, next);
    return true;
}

/* Sets the bits of the tokens that end at nodes [from, to). */
static void set_tokens(const mt_token_trie *t, size_t from, size_t to, uint32_t *mask)
{
    for (uint32_t k = t->token[from]; k < t->token[to]; k++)
        mask[t->ids[k] / 32] |= UINT32_C(1) << t->ids[k] % 32;
}

/* Sets the bits of the tokens of a trie that may follow. plain: all tokens have only plain characters, so that where
   these may follow without limit, all tokens below may. False when there is no memory for states. */
static bool walk(mt_constraint *c, const mt_token_trie *t, bool plain, mt_automaton_state from, uint32_t *mask)
{
    mt_automaton_state *path = c->path;
    bool ok = true;

    path[0] = from;
    mt_automaton_walk(c->automaton);
    c->marks[0] = mt_automaton_here(c->automaton);
    for (size_t i = 0; i < t->count;) {
        const unsigned depth = t->depth[i];
        mt_automaton_state next;
        size_t to = i + 1;

        mt_automaton_back(c->automaton, c->marks[depth]);
        next = mt_automaton_byte(c->automaton, path[depth], t->byte[i]);
        ok = next != MT_STATE_UNKNOWN;
        if (!ok)
            break;
        if (next == MT_STATE_DEAD || (plain && mt_automaton_plain(c->automaton, next) == MT_STATE_BOUNDLESS))
            to = t->skip[i];
        path[depth + 1] = next;
        c->marks[depth + 1] = mt_automaton_here(c->automaton);
        if (next != MT_STATE_DEAD)
            set_tokens(t, i, to, mask);
        i = to;
    }
    mt_automaton_walked(c->automaton);
    return ok;
}

static void set_bit(const mt_vocabulary *v, uint32_t *mask, uint32_t id)
{
    if (id < v->size)
        mask[id / 32] |= UINT32_C(1) << id % 32;
}

/* Sets the bits of all tokens that may follow a state; false when there is no memory for states. */
static bool compute(mt_constraint *c, mt_automaton_state state, uint32_t *mask)
{
    const mt_vocabulary *v = c->v;
    const uint32_t plain = mt_automaton_plain(c->automaton, state);
    uint32_t id;

    memset(mask, 0, v->words * sizeof(*mask));
    if (plain > 0 && v->upto_count > 0) {
        const size_t upto = plain < v->upto_count ? plain : v->upto_count;

        memcpy(mask, v->upto + (upto - 1) * v->words, v->words * sizeof(*mask));
    }
    if (plain < v->upto_count && mt_automaton_others(c->automaton, state, &v->plain_first) &&
        !walk(c, &v->plain, true, state, mask))
        return false;
    if (!walk(c, &v->rest, false, state, mask))
        return false;
    for (size_t i = 0; mt_automaton_tokens(c->automaton, state, i, &id); i++)
        set_bit(v, mask, id);
    for (size_t i = 0; mt_automaton_accepts(c->automaton, state) && i < v->end_count; i++)
        set_bit(v, mask, v->ends[i]);
    return true;
}

mt_mask_key mt_run_mask_key(mt_run *run)
{
    mt_constraint *c = run->constraint;

    return (mt_mask_key){.constraint = c->number,
                         .epoch = mt_automaton_epoch(c->automaton),
                         .state = mt_automaton_alike(c->automaton, run->state, c->v->longest)};
}

bool mt_run_mask(mt_run *run, uint32_t *mask)
{
    mt_constraint *c = run->constraint;
    bool ok;

    if (run->failed)
        return false;
    if (run->state == mt_automaton_start(c->automaton)) {
        memcpy(mask, c->first, c->v->words * sizeof(*mask));
        return true;
    }
    mt_automaton_rest(c->automaton);
    ok = compute(c, mt_run_mask_key(run).state, mask);
    if (!ok && room_helps(c)) {
        collect(c);
        ok = !run->failed && compute(c, mt_run_mask_key(run).state, mask);
    }
    run->failed |= !ok;
    return ok;
}
