/* Several regular expressions at once, with limits on the length (mt_regex_query_expr): a deterministic automaton over
   characters whose states say where each expression may be (a formula, regex_inside.h) and how long the text is. Each
   state becomes a right-linear rule. Characters that no expression distinguishes are one class. */
#include "base/utf8.h"
#include "constraint/regex_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "constraint/limits.h"

enum { TOLD = 31, WRITTEN = 1024 };
enum {
    GLANCES = 16,    /* marks compared that count as one visit of a formula */
    BEGIN_WORK = 512 /* what making and freeing an automaton counts as */
};

/* Characters that no expression distinguishes. */
typedef struct class_of_chars {
    uint64_t mark; /* which sets contain it */
    uint32_t code; /* one of its characters */
    mt_charset set;
} class_of_chars;

/* Where ranges of characters begin and end. */
typedef struct border {
    uint32_t at;
    uint64_t change; /* of the mark */
} border;

/* Where a class of characters leads from a state. */
typedef struct target {
    uint32_t state; /* UINT32_MAX: nowhere */
    uint32_t class; /* index of the class */
} target;

/* The automaton that is being built. */
typedef struct machine {
    const mt_regex_query *q;
    mt_formulas m;
    uint32_t entries[TOLD + 1 + 64];
    class_of_chars *classes;
    size_t class_count, class_cap;
    target *targets; /* [classes] of the state being made */

    size_t width;   /* of a state: the formula of all, those of `told`, the length */
    uint32_t *keys; /* [states][width] */
    size_t states, state_cap;
    uint32_t *slots; /* hash table of states, plus 1 */

    mt_grammar *g;
    mt_char_writer *write;
    mt_rule *rules;
    struct {
        uint64_t hash;
        mt_expr expr;
    } written[WRITTEN]; /* sets of characters that were written before */
} machine;

static int by_border(const void *x, const void *y)
{
    const border *a = x, *b = y;

    return (a->at > b->at) - (a->at < b->at);
}

static uint64_t scramble(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void add_range(machine *a, uint64_t mark, uint32_t low, uint32_t high)
{
    size_t i = 0;

    while (i < a->class_count && a->classes[i].mark != mark)
        i++;
    mt_formulas_toil(&a->m, 1 + i / GLANCES);
    a->classes = mt_grow(a->classes, &a->class_cap, i + 1, sizeof(*a->classes));
    if (i == a->class_count)
        a->classes[a->class_count++] = (class_of_chars){.mark = mark, .code = low};
    mt_charset_add(&a->classes[i].set, low, high);
}

static int by_address(const void *x, const void *y)
{
    const mt_regex *const *a = x, *const *b = y;

    return ((uintptr_t)*a > (uintptr_t)*b) - ((uintptr_t)*a < (uintptr_t)*b);
}

/* The sets of all nodes, each once: the copies of a repetition's nodes have the same sets. Returns how many. */
static size_t list_sets(const machine *a, const mt_regex **sets)
{
    size_t total = 0, count = 0;

    for (size_t i = 0; i < a->m.count; i++)
        if (a->m.nodes[i].set)
            sets[total++] = a->m.nodes[i].set;
    if (total)
        qsort(sets, total, sizeof(*sets), by_address);
    for (size_t i = 0; i < total; i++)
        if (i == 0 || sets[i] != sets[i - 1])
            sets[count++] = sets[i];
    return count;
}

/* Each set has a random mark; characters with the same sum of marks are in the same sets. */
static void find_classes(machine *a)
{
    static const mt_char_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    const mt_regex **sets = mt_alloc_array(a->m.count + 1, sizeof(*sets));
    const size_t set_count = list_sets(a, sets);
    size_t total = 2 * MT_COUNT(words) + 1, count = 0;
    border *borders;
    uint64_t mark = 0;

    for (size_t i = 0; i < set_count; i++)
        total += 2 * sets[i]->count;
    borders = mt_alloc_array(total, sizeof(*borders));
    for (size_t i = 0; i < set_count; i++)
        for (size_t k = 0; k < sets[i]->count; k++) {
            const uint64_t own = scramble((uint64_t)(uintptr_t)sets[i]->ranges);

            borders[count++] = (border){sets[i]->ranges[k].low, own};
            borders[count++] = (border){sets[i]->ranges[k].high + 1, 0 - own};
        }
    for (size_t k = 0; a->m.borders_matter && k < MT_COUNT(words); k++) {
        borders[count++] = (border){words[k].low, scramble(1)};
        borders[count++] = (border){words[k].high + 1, 0 - scramble(1)};
    }
    borders[count++] = (border){0, 0};
    qsort(borders, count, sizeof(*borders), by_border);
    for (size_t i = 0; i < count && !a->m.full; i++) {
        const uint32_t high = i + 1 < count ? borders[i + 1].at : MT_CHAR_MAX + 1;

        mark += borders[i].change;
        if (high > borders[i].at && borders[i].at <= MT_CHAR_MAX)
            add_range(a, mark, borders[i].at, high - 1);
    }
    mt_free(borders);
    mt_free(sets);
}

/* The number of a state; UINT32_MAX when there are too many. */
static uint32_t intern(machine *a, const uint32_t *key)
{
    uint64_t hash = 1;
    size_t slot, cap = a->state_cap;

    for (size_t i = 0; i < a->width; i++)
        hash = scramble(hash ^ key[i]);
    for (slot = hash % (2 * MT_LIMIT_REGEX_STATES); a->slots[slot]; slot = (slot + 1) % (2 * MT_LIMIT_REGEX_STATES))
        if (memcmp(a->keys + (a->slots[slot] - 1) * a->width, key, a->width * sizeof(*key)) == 0)
            return a->slots[slot] - 1;
    if (a->states == MT_LIMIT_REGEX_STATES)
        return UINT32_MAX;
    a->keys = mt_grow(a->keys, &cap, a->states + 1, a->width * sizeof(*key));
    a->rules = mt_grow(a->rules, &a->state_cap, a->states + 1, sizeof(*a->rules));
    memcpy(a->keys + a->states * a->width, key, a->width * sizeof(*key));
    a->rules[a->states] = mt_grammar_rule(a->g);
    a->slots[slot] = (uint32_t)++a->states;
    return (uint32_t)a->states - 1;
}

/* The state behind a character of a class; *to: UINT32_MAX: none. False when there are too many states. */
static bool step(machine *a, uint32_t from, const class_of_chars *class, uint32_t *to)
{
    const mt_regex_before before = mt_regex_word(class->code) ? MT_BEFORE_WORD : MT_BEFORE_OTHER;
    uint32_t key[TOLD + 2], length = a->keys[from * a->width + a->width - 1] + 1;

    *to = UINT32_MAX;
    if (a->q->most != MT_GRAMMAR_UNLIMITED && length > a->q->most)
        return true;
    if (a->q->most == MT_GRAMMAR_UNLIMITED && length > a->q->least)
        length = a->q->least;
    for (size_t i = 0; i + 1 < a->width; i++) {
        key[i] = mt_formula_step(&a->m, a->keys[from * a->width + i], class->code, before);
        if (i == 0 && key[i] == MT_FORMULA_FALSE)
            return true;
    }
    key[a->width - 1] = length;
    if (a->m.full)
        return false;
    *to = intern(a, key);
    return *to != UINT32_MAX;
}

/* Writes each set once; a large one becomes a rule. */
static mt_expr write_set(machine *a, const mt_charset *set)
{
    uint64_t hash = 1;
    size_t slot, nodes = a->g->node_count;
    mt_expr e;

    for (size_t i = 0; i < set->count; i++)
        hash = scramble(hash ^ ((uint64_t)set->at[i].low << 32 | set->at[i].high));
    slot = hash % WRITTEN;
    if (a->written[slot].hash == hash)
        return a->written[slot].expr;
    e = a->write(a->g, set->at, set->count);
    if (a->g->node_count - nodes > 8) {
        const mt_rule rule = mt_grammar_rule(a->g);

        mt_grammar_define(a->g, rule, e);
        e = mt_grammar_call(a->g, rule);
    }
    a->written[slot].hash = hash;
    a->written[slot].expr = e;
    return e;
}

static int by_target(const void *x, const void *y)
{
    const target *a = x, *b = y;

    if (a->state != b->state)
        return a->state < b->state ? -1 : 1;
    return (a->class > b->class) - (a->class < b->class);
}

/* The union of all classes that lead to the same state as targets[first]; returns how many there are. */
static size_t gather(machine *a, size_t first, mt_charset *set)
{
    size_t k = first;

    for (; k < a->class_count && a->targets[k].state == a->targets[first].state; k++)
        mt_charset_add_all(set, &a->classes[a->targets[k].class].set);
    mt_formulas_toil(&a->m, set->count);
    mt_charset_sort(set);
    return k - first;
}

static mt_expr end_of(machine *a, const uint32_t *key)
{
    uint32_t told = 0;

    if (!mt_formula_accepts(&a->m, key[0]) || key[a->width - 1] < a->q->least)
        return mt_grammar_never(a->g);
    for (size_t i = 0; i < a->q->told_count; i++)
        told |= (uint32_t)mt_formula_accepts(&a->m, key[1 + i]) << i;
    return a->q->behind ? a->q->behind(a->q->context, told) : mt_grammar_empty(a->g);
}

/* A state that plain characters do not leave becomes a plain repetition, which makes its masks cheap. */
static void define(machine *a, uint32_t state)
{
    mt_expr *parts = mt_alloc_array(a->class_count + 1, sizeof(*parts)), loop = mt_grammar_empty(a->g);
    size_t count = 0;

    parts[count++] = end_of(a, a->keys + state * a->width);
    qsort(a->targets, a->class_count, sizeof(*a->targets), by_target);
    for (size_t k = 0, same; k < a->class_count && a->targets[k].state != UINT32_MAX; k += same) {
        const uint32_t to = a->targets[k].state;
        mt_charset set = {0};

        same = gather(a, k, &set);
        if (to == state && mt_char_ranges_plain(set.at, set.count))
            loop = mt_grammar_repeat_plain(a->g, a->write(a->g, set.at, set.count), 0, MT_GRAMMAR_UNLIMITED);
        else
            parts[count++] = mt_grammar_seq(a->g, write_set(a, &set), mt_grammar_call(a->g, a->rules[to]));
        mt_charset_free(&set);
    }
    mt_grammar_define(a->g, a->rules[state], mt_grammar_seq(a->g, loop, mt_grammar_any(a->g, parts, count)));
    mt_free(parts);
}

static bool build(machine *a)
{
    bool ok = true;

    a->targets = mt_alloc_array(a->class_count + 1, sizeof(*a->targets));
    for (uint32_t s = 0; ok && s < a->states; s++) {
        for (uint32_t k = 0; ok && k < a->class_count; k++) {
            a->targets[k].class = k;
            ok = step(a, s, &a->classes[k], &a->targets[k].state);
        }
        ok = ok && !mt_grammar_full(a->g) && !mt_grammar_stopped(a->g);
        if (ok)
            define(a, s);
    }
    return ok;
}

/* How much work one automaton may take: the limit of one, or what is left of that of the whole grammar. */
static size_t work_left(const mt_grammar *g)
{
    const size_t left = g->regex_work < MT_LIMIT_REGEX_WORK_ALL ? MT_LIMIT_REGEX_WORK_ALL - g->regex_work : 0;

    return left < MT_LIMIT_REGEX_WORK ? left : MT_LIMIT_REGEX_WORK;
}

/* Finds all states and writes their rules. */
static bool run(machine *a, mt_expr *out)
{
    const mt_regex_query *q = a->q;
    uint32_t first[TOLD + 2];
    mt_formula all = MT_FORMULA_TRUE;
    size_t at = 0;

    mt_formulas_begin(&a->m, work_left(a->g));
    find_classes(a);
    for (size_t i = 0; i < q->all_count; i++)
        all = mt_formula_and(&a->m, all, mt_formula_enter(&a->m, a->entries[at++], MT_BEFORE_NOTHING));
    for (size_t i = 0; i < q->none_count; i++)
        all = mt_formula_and(&a->m, all,
                             mt_formula_not(&a->m, mt_formula_enter(&a->m, a->entries[at++], MT_BEFORE_NOTHING)));
    first[0] = all;
    for (size_t i = 0; i < q->told_count; i++)
        first[1 + i] = mt_formula_enter(&a->m, a->entries[at++], MT_BEFORE_NOTHING);
    first[1 + q->told_count] = 0;
    a->width = q->told_count + 2;
    a->slots = mt_alloc_array(2 * MT_LIMIT_REGEX_STATES, sizeof(*a->slots));
    intern(a, first);
    *out = mt_grammar_call(a->g, a->rules[0]);
    return !a->m.full && build(a);
}

static void machine_free(machine *a)
{
    for (size_t i = 0; i < a->class_count; i++)
        mt_charset_free(&a->classes[i].set);
    mt_free(a->classes);
    mt_free(a->targets);
    mt_free(a->keys);
    mt_free(a->rules);
    mt_free(a->slots);
    mt_formulas_free(&a->m);
    mt_free(a);
}

bool mt_regex_query_expr(const mt_regex_query *q, mt_grammar *g, mt_char_writer *write, mt_expr *out)
{
    const size_t nodes = g->node_count, parts = g->part_count, rules = g->rule_count;
    const bool full = g->full;
    machine *a;
    size_t at = 0;
    bool ok;

    if (q->told_count > TOLD || q->all_count + q->none_count > 64)
        return false;
    a = mt_alloc(sizeof(*a));
    a->q = q;
    a->g = g;
    a->write = write;
    for (size_t i = 0; i < q->all_count && !a->m.full; i++)
        a->entries[at++] = mt_formulas_add(&a->m, q->all[i]);
    for (size_t i = 0; i < q->none_count && !a->m.full; i++)
        a->entries[at++] = mt_formulas_add(&a->m, q->none[i]);
    for (size_t i = 0; i < q->told_count && !a->m.full; i++)
        a->entries[at++] = mt_formulas_add(&a->m, q->told[i]);
    ok = !a->m.full && run(a, out);
    g->regex_work += a->m.work + a->m.count + BEGIN_WORK;
    if (!ok) { /* removes what was added to the grammar, to leave room for others */
        g->node_count = nodes;
        g->part_count = parts;
        g->rule_count = rules;
        g->full = full;
    }
    machine_free(a);
    return ok;
}

bool mt_regex_matches(mt_grammar *g, const mt_regex *regex, const char *text, size_t len, bool *out)
{
    mt_formulas m = {0};
    const uint32_t first = mt_formulas_add(&m, regex);
    mt_formula f;

    m.full = m.full || mt_grammar_stopped(g);
    if (!m.full)
        mt_formulas_begin(&m, work_left(g));
    f = m.full ? MT_FORMULA_FALSE : mt_formula_enter(&m, first, MT_BEFORE_NOTHING);
    for (const char *at = text; !m.full && f != MT_FORMULA_FALSE && at < text + len; at += mt_utf8_size(*at)) {
        const uint32_t code = mt_utf8_at(at);

        f = mt_formula_step(&m, f, code, mt_regex_word(code) ? MT_BEFORE_WORD : MT_BEFORE_OTHER);
    }
    *out = !m.full && mt_formula_accepts(&m, f);
    g->regex_work += m.work + m.count + BEGIN_WORK;
    mt_formulas_free(&m);
    return !m.full;
}
