/* Several regular expressions at once, with bounds on the length: a deterministic automaton over characters whose
   states say where each expression may be and how long the text is. It becomes right-linear rules, one a state.

   The expressions are first made into one list of nodes: each reads a character of a set, or goes on to up to two
   others without reading. */
#include "base/utf8.h"
#include "sample/constraint/regex.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"

enum { READS, FORKS, ENDS };

typedef struct node {
    int kind;
    const mt_regex *set; /* of READS */
    uint32_t next, other;
} node;

typedef struct machine {
    node *nodes;
    size_t count, cap;
    bool full;
    uint32_t *borders; /* where sets begin, ascending; between two of them all characters are alike */
    size_t border_count;

    size_t words;   /* of a set of nodes */
    uint64_t *sets; /* [states][words] */
    uint32_t *lengths;
    size_t states, state_cap;
    uint32_t *slots; /* hash to state, plus 1 */
    uint32_t least, most;
    size_t work;            /* nodes looked at */
    const uint32_t *starts; /* of each expression's nodes; [expressions + 1] */
    size_t expressions;
} machine;

static uint32_t add_node(machine *m, int kind, const mt_regex *set, uint32_t next, uint32_t other)
{
    if (m->count == MT_LIMIT_REGEX_NODES) {
        m->full = true;
        return 0;
    }
    if (m->count == m->cap) {
        const size_t cap = m->cap ? 2 * m->cap : 64;

        m->nodes = mt_realloc(m->nodes, m->cap * sizeof(*m->nodes), cap * sizeof(*m->nodes));
        m->cap = cap;
    }
    m->nodes[m->count] = (node){kind, set, next, other};
    return (uint32_t)m->count++;
}

static uint32_t add_regex(machine *m, const mt_regex *r, uint32_t next);

static uint32_t add_repeat(machine *m, const mt_regex *r, uint32_t next)
{
    if (r->most == MT_GRAMMAR_UNLIMITED) {
        const uint32_t fork = add_node(m, FORKS, NULL, 0, next), body = m->full ? 0 : add_regex(m, r->parts[0], fork);

        if (!m->full)
            m->nodes[fork].next = body;
        next = fork;
    }
    for (uint32_t i = r->least; r->most != MT_GRAMMAR_UNLIMITED && i < r->most && !m->full; i++)
        next = add_node(m, FORKS, NULL, add_regex(m, r->parts[0], next), next);
    for (uint32_t i = 0; i < r->least && !m->full; i++)
        next = add_regex(m, r->parts[0], next);
    return next;
}

static uint32_t add_regex(machine *m, const mt_regex *r, uint32_t next)
{
    uint32_t at = next;

    if (m->full)
        return 0;
    switch (r->kind) {
    case MT_REGEX_SET: return add_node(m, READS, r, next, 0);
    case MT_REGEX_REPEAT: return add_repeat(m, r, next);
    case MT_REGEX_ANY:
        at = add_regex(m, r->parts[r->count - 1], next);
        for (size_t i = r->count - 1; i-- > 0 && !m->full;)
            at = add_node(m, FORKS, NULL, add_regex(m, r->parts[i], next), at);
        return at;
    case MT_REGEX_LIST:
        for (size_t i = r->count; i-- > 0 && !m->full;)
            at = add_regex(m, r->parts[i], at);
        return at;
    default: return next;
    }
}

static int by_value(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    return (a > b) - (a < b);
}

static void find_borders(machine *m)
{
    size_t total = 1, kept = 0;

    for (size_t i = 0; i < m->count; i++)
        total += m->nodes[i].kind == READS ? 2 * m->nodes[i].set->count : 0;
    m->borders = mt_alloc_array(total + 1, sizeof(*m->borders));
    total = 1;
    for (size_t i = 0; i < m->count; i++)
        for (size_t k = 0; m->nodes[i].kind == READS && k < m->nodes[i].set->count; k++) {
            m->borders[total++] = m->nodes[i].set->ranges[k].low;
            m->borders[total++] = m->nodes[i].set->ranges[k].high + 1;
        }
    qsort(m->borders, total, sizeof(*m->borders), by_value);
    for (size_t i = 1; i < total; i++)
        if (m->borders[i] != m->borders[kept] && m->borders[i] <= MT_CHAR_MAX)
            m->borders[++kept] = m->borders[i];
    m->border_count = kept + 1;
}

/* Adds a node, and where it leads without reading; stack has room for all nodes. */
static void enter(const machine *m, uint64_t *set, uint32_t at, uint32_t *stack)
{
    size_t depth = 0;

    stack[depth++] = at;
    while (depth > 0) {
        const uint32_t i = stack[--depth];

        if (set[i / 64] >> i % 64 & 1)
            continue;
        set[i / 64] |= UINT64_C(1) << i % 64;
        if (m->nodes[i].kind == FORKS) {
            stack[depth++] = m->nodes[i].next;
            stack[depth++] = m->nodes[i].other;
        }
    }
}

static bool reads(const mt_regex *set, uint32_t code)
{
    for (size_t i = 0; i < set->count && set->ranges[i].low <= code; i++)
        if (code <= set->ranges[i].high)
            return true;
    return false;
}

/* What each expression may be at has to be something, in all of them. *accepts: all may end. */
static bool alive(const machine *m, const uint64_t *set, bool *accepts)
{
    *accepts = true;
    for (size_t e = 0; e < m->expressions; e++) {
        bool any = false, ends = false;

        for (uint32_t i = m->starts[e]; i < m->starts[e + 1]; i++)
            if (set[i / 64] >> i % 64 & 1) {
                any |= m->nodes[i].kind != FORKS;
                ends |= m->nodes[i].kind == ENDS;
            }
        if (!any)
            return false;
        *accepts &= ends;
    }
    return true;
}

/* The number of a state; UINT32_MAX when there are too many. */
static uint32_t intern(machine *m, const uint64_t *set, uint32_t length)
{
    uint64_t hash = length * UINT64_C(0x9e3779b97f4a7c15);
    size_t slot;

    for (size_t i = 0; i < m->words; i++)
        hash = (hash ^ set[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 31;
    for (slot = hash % (2 * MT_LIMIT_REGEX_STATES); m->slots[slot]; slot = (slot + 1) % (2 * MT_LIMIT_REGEX_STATES)) {
        const uint32_t i = m->slots[slot] - 1;

        if (m->lengths[i] == length && memcmp(m->sets + i * m->words, set, m->words * sizeof(*set)) == 0)
            return i;
    }
    if (m->states == MT_LIMIT_REGEX_STATES)
        return UINT32_MAX;
    if (m->states == m->state_cap) {
        const size_t cap = m->state_cap ? 2 * m->state_cap : 64;

        m->sets = mt_realloc(m->sets, m->state_cap * m->words * sizeof(*m->sets), cap * m->words * sizeof(*m->sets));
        m->lengths = mt_realloc(m->lengths, m->state_cap * sizeof(*m->lengths), cap * sizeof(*m->lengths));
        m->state_cap = cap;
    }
    memcpy(m->sets + m->states * m->words, set, m->words * sizeof(*set));
    m->lengths[m->states] = length;
    m->slots[slot] = (uint32_t)++m->states;
    return (uint32_t)m->states - 1;
}

typedef struct arrow {
    uint32_t to;
    mt_charset set;
} arrow;

/* All that may follow a state: a list of sets and where they lead. False when there are too many states. */
static bool find_arrows(machine *m, uint32_t from, arrow *arrows, size_t *count, uint64_t *set, uint32_t *stack)
{
    uint32_t length = m->lengths[from] + 1;

    *count = 0;
    if (length > m->most && m->most != MT_GRAMMAR_UNLIMITED)
        return true;
    if (m->most == MT_GRAMMAR_UNLIMITED && length > m->least)
        length = m->least;
    for (size_t b = 0; b < m->border_count; b++) {
        const uint32_t low = m->borders[b], high = b + 1 < m->border_count ? m->borders[b + 1] - 1 : MT_CHAR_MAX;
        uint32_t to;
        size_t k = 0;
        bool accepts;

        m->work += m->count;
        if (m->work > MT_LIMIT_REGEX_WORK)
            return false;
        memset(set, 0, m->words * sizeof(*set));
        for (uint32_t i = 0; i < m->count; i++)
            if (m->sets[from * m->words + i / 64] >> i % 64 & 1 && m->nodes[i].kind == READS &&
                reads(m->nodes[i].set, low))
                enter(m, set, m->nodes[i].next, stack);
        if (!alive(m, set, &accepts))
            continue;
        to = intern(m, set, length);
        if (to == UINT32_MAX)
            return false;
        while (k < *count && arrows[k].to != to)
            k++;
        if (k == *count)
            arrows[(*count)++] = (arrow){.to = to};
        mt_charset_add(&arrows[k].set, low, high);
    }
    return true;
}

/* Rules are made as states are found: rule[state]. */
static bool build(machine *m, mt_grammar *g, mt_char_writer *write, mt_rule *rules)
{
    arrow *arrows = mt_alloc_array(m->border_count + 1, sizeof(*arrows));
    mt_expr *parts = mt_alloc_array(m->border_count + 1, sizeof(*parts));
    uint64_t *set = mt_alloc_array(m->words, sizeof(*set));
    uint32_t *stack = mt_alloc_array(2 * m->count + 2, sizeof(*stack));
    size_t made = 1;
    bool ok = true;

    for (uint32_t s = 0; ok && s < m->states; s++) {
        size_t count, at = 0;
        bool accepts;

        ok = find_arrows(m, s, arrows, &count, set, stack) && !mt_grammar_full(g);
        for (; made < m->states; made++)
            rules[made] = mt_grammar_rule(g);
        for (size_t k = 0; k < count; k++) {
            mt_charset_sort(&arrows[k].set);
            if (ok)
                parts[at++] = mt_grammar_seq(g, write(g, arrows[k].set.at, arrows[k].set.count),
                                             mt_grammar_call(g, rules[arrows[k].to]));
            mt_charset_free(&arrows[k].set);
        }
        if (alive(m, m->sets + s * m->words, &accepts) && accepts && m->lengths[s] >= m->least)
            parts[at++] = mt_grammar_empty(g);
        if (ok)
            mt_grammar_define(g, rules[s], mt_grammar_any(g, parts, at));
    }
    mt_free(arrows);
    mt_free(parts);
    mt_free(set);
    mt_free(stack);
    return ok;
}

static bool run(machine *m, const uint32_t *entries, mt_grammar *g, mt_char_writer *write, mt_expr *out)
{
    mt_rule *rules = mt_alloc_array(MT_LIMIT_REGEX_STATES, sizeof(*rules));
    uint64_t *first;
    uint32_t *stack = mt_alloc_array(2 * m->count + 2, sizeof(*stack));
    bool ok;

    find_borders(m);
    m->words = m->count / 64 + 1;
    m->slots = mt_alloc_array(2 * MT_LIMIT_REGEX_STATES, sizeof(*m->slots));
    first = mt_alloc_array(m->words, sizeof(*first));
    for (size_t e = 0; e < m->expressions; e++)
        enter(m, first, entries[e], stack);
    intern(m, first, 0);
    rules[0] = mt_grammar_rule(g);
    *out = mt_grammar_call(g, rules[0]);
    ok = build(m, g, write, rules);
    mt_free(first);
    mt_free(stack);
    mt_free(rules);
    return ok;
}

bool mt_regex_all(const mt_regex *const *list, size_t count, uint32_t least, uint32_t most, mt_grammar *g,
                  mt_char_writer *write, mt_expr *out)
{
    machine m = {.least = least, .most = most, .expressions = count};
    uint32_t *starts = mt_alloc_array(count + 1, sizeof(*starts)), *entries = mt_alloc_array(count, sizeof(*entries));
    bool ok;

    m.starts = starts;
    for (size_t i = 0; i < count && !m.full; i++) {
        starts[i] = (uint32_t)m.count;
        entries[i] = add_regex(&m, list[i], add_node(&m, ENDS, NULL, 0, 0));
        starts[i + 1] = (uint32_t)m.count;
    }
    ok = !m.full && run(&m, entries, g, write, out);
    mt_free(m.nodes);
    mt_free(m.borders);
    mt_free(m.sets);
    mt_free(m.lengths);
    mt_free(m.slots);
    mt_free(starts);
    mt_free(entries);
    return ok;
}

bool mt_regex_matches(const mt_regex *regex, const char *text, size_t len, bool *out)
{
    machine m = {.expressions = 1};
    const uint32_t end = add_node(&m, ENDS, NULL, 0, 0), first = add_regex(&m, regex, end);
    const uint32_t starts[2] = {0, (uint32_t)m.count};
    uint64_t *now = mt_alloc_array(m.count / 64 + 1, sizeof(*now)),
             *then = mt_alloc_array(m.count / 64 + 1, sizeof(*then));
    uint32_t *stack = mt_alloc_array(2 * m.count + 2, sizeof(*stack));

    m.starts = starts;
    m.words = m.count / 64 + 1;
    if (!m.full)
        enter(&m, now, first, stack);
    for (const char *at = text; !m.full && at < text + len; at += mt_utf8_size(*at)) {
        const uint32_t code = mt_utf8_at(at);
        uint64_t *swap = now;

        memset(then, 0, m.words * sizeof(*then));
        for (uint32_t i = 0; i < m.count; i++)
            if (now[i / 64] >> i % 64 & 1 && m.nodes[i].kind == READS && reads(m.nodes[i].set, code))
                enter(&m, then, m.nodes[i].next, stack);
        now = then;
        then = swap;
    }
    *out = !m.full && alive(&m, now, out) && *out;
    mt_free(m.nodes);
    mt_free(now);
    mt_free(then);
    mt_free(stack);
    return !m.full;
}
