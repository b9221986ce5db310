/* Formulas over regular expressions (regex_inside.h). Expressions become one list of nodes, from their end to their
   beginning. A position in a text is a formula over nodes: "or" of all nodes that the expression may be at, with "and"
   and "not" only for look-ahead. Equal formulas are stored once, so the formulas that texts lead to are the states of a
   deterministic automaton. */
#include "constraint/regex_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "constraint/limits.h"

enum { READS, FORKS, ENDS, ANYTHING, BEGINS, STOPS, LOOKS, BORDERS }; /* kinds of nodes */
enum { FALSE_FORMULA, TRUE_FORMULA, LEAF, OR, AND, NOT };             /* kinds of formulas */
enum { SLOTS = 1 << 15, FORMULAS = 1 << 16, PARTS = 1 << 22 };

/* ---- nodes ---- */

static uint32_t add_node(mt_formulas *m, mt_regex_node node)
{
    if (m->count == MT_LIMIT_REGEX_NODES) {
        m->full = true;
        return 0;
    }
    m->nodes = mt_grow(m->nodes, &m->cap, m->count + 1, sizeof(*m->nodes));
    m->nodes[m->count] = node;
    return (uint32_t)m->count++;
}

static uint32_t add_regex(mt_formulas *m, const mt_regex *r, uint32_t next);

static uint32_t add_fork(mt_formulas *m, uint32_t next, uint32_t other)
{
    return add_node(m, (mt_regex_node){.kind = FORKS, .next = next, .other = other});
}

static bool anything(const mt_regex *r)
{
    return r->kind == MT_REGEX_SET && r->count == 1 && r->ranges[0].low == 0 && r->ranges[0].high >= MT_CHAR_MAX;
}

/* Adds the nodes of a repetition, followed by `next`; returns its first node. */
static uint32_t add_repeat(mt_formulas *m, const mt_regex *r, uint32_t next)
{
    const uint32_t end = next;

    if (r->most == MT_GRAMMAR_UNLIMITED && r->least == 0 && anything(r->parts[0]) &&
        (m->nodes[next].kind == ENDS || m->nodes[next].kind == ANYTHING))
        return add_node(m, (mt_regex_node){.kind = ANYTHING});
    if (r->most == MT_GRAMMAR_UNLIMITED) {
        const uint32_t fork = add_fork(m, 0, next), body = m->full ? 0 : add_regex(m, r->parts[0], fork);

        if (!m->full)
            m->nodes[fork].next = body;
        next = fork;
    }
    for (uint32_t i = r->least; r->most != MT_GRAMMAR_UNLIMITED && i < r->most && !m->full; i++)
        next = add_fork(m, add_regex(m, r->parts[0], next), end);
    for (uint32_t i = 0; i < r->least && !m->full; i++) {
        const size_t count = m->count;

        next = add_regex(m, r->parts[0], next);
        if (m->count == count) /* it is empty, and so is any number of it */
            break;
    }
    return next;
}

static uint32_t add_look(mt_formulas *m, const mt_regex *r, uint32_t next)
{
    const uint32_t end = add_node(m, (mt_regex_node){.kind = ENDS});
    const uint32_t other = m->full ? 0 : add_regex(m, r->parts[0], end);

    return add_node(m, (mt_regex_node){.kind = LOOKS, .next = next, .other = other, .inverted = r->inverted});
}

/* Adds the nodes of an expression, followed by `next`; returns its first node. */
static uint32_t add_regex(mt_formulas *m, const mt_regex *r, uint32_t next)
{
    uint32_t at = next;

    if (m->full)
        return 0;
    switch (r->kind) {
    case MT_REGEX_EMPTY: return next;
    case MT_REGEX_SET: return add_node(m, (mt_regex_node){.kind = READS, .set = r, .next = next});
    case MT_REGEX_REPEAT: return add_repeat(m, r, next);
    case MT_REGEX_BEGIN: return add_node(m, (mt_regex_node){.kind = BEGINS, .next = next});
    case MT_REGEX_END: return add_node(m, (mt_regex_node){.kind = STOPS, .next = next});
    case MT_REGEX_LOOK: return add_look(m, r, next);
    case MT_REGEX_BORDER:
        m->borders_matter = true;
        return add_node(m, (mt_regex_node){.kind = BORDERS, .next = next, .inverted = r->inverted});
    case MT_REGEX_ANY:
        at = add_regex(m, r->parts[r->count - 1], next);
        for (size_t i = r->count - 1; i-- > 0 && !m->full;)
            at = add_fork(m, add_regex(m, r->parts[i], next), at);
        return at;
    case MT_REGEX_LIST:
        for (size_t i = r->count; i-- > 0 && !m->full;)
            at = add_regex(m, r->parts[i], at);
        return at;
    }
    return next;
}

uint32_t mt_formulas_add(mt_formulas *m, const mt_regex *regex)
{
    const uint32_t end = add_node(m, (mt_regex_node){.kind = ENDS});

    return m->full ? 0 : add_regex(m, regex, end);
}

/* ---- formulas ---- */

void mt_formulas_toil(mt_formulas *m, size_t work)
{
    m->work += work;
    m->full |= m->work > m->most;
}

/* Whether a formula of these parts is true at the end of the text. */
static bool accepts(const mt_formulas *m, uint8_t kind, uint32_t leaf, const mt_formula *parts, size_t count)
{
    bool any = false, all = true;

    for (size_t i = 0; i < count; i++) {
        any |= m->formulas[parts[i]].accepts;
        all &= m->formulas[parts[i]].accepts;
    }
    switch (kind) {
    case TRUE_FORMULA: return true;
    case LEAF: return m->nodes[leaf].kind == ENDS || m->nodes[leaf].kind == STOPS;
    case OR: return any;
    case AND: return all;
    case NOT: return !any;
    default: return false;
    }
}

/* The number of a formula, which is stored when it is new. leaf: the node of a LEAF. */
static mt_formula intern(mt_formulas *m, uint8_t kind, uint32_t leaf, const mt_formula *parts, size_t count)
{
    const uint64_t prime = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = (kind + 1u) * prime + leaf;
    uint32_t *slot;
    mt_formula_node *f;

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ parts[i]) * prime ^ hash >> 31;
    slot = &m->slots[(hash >> 20) % SLOTS];
    for (uint32_t i = *slot; i; i = m->formulas[i - 1].same) {
        f = &m->formulas[i - 1];
        if (f->kind == kind &&
            (kind == LEAF ? f->begin == leaf
                          : f->count == count && memcmp(m->parts + f->begin, parts, count * sizeof(*parts)) == 0))
            return i - 1;
    }
    if (m->formula_count == FORMULAS || m->part_count + count > PARTS) {
        m->full = true;
        return MT_FORMULA_FALSE;
    }
    m->formulas = mt_grow(m->formulas, &m->formula_cap, m->formula_count + 1, sizeof(*f));
    m->parts = mt_grow(m->parts, &m->part_cap, m->part_count + count, sizeof(*m->parts));
    if (count)
        memcpy(m->parts + m->part_count, parts, count * sizeof(*parts));
    m->formulas[m->formula_count] = (mt_formula_node){.kind = kind,
                                                      .accepts = accepts(m, kind, leaf, parts, count),
                                                      .begin = kind == LEAF ? leaf : (uint32_t)m->part_count,
                                                      .count = (uint32_t)count,
                                                      .same = *slot};
    m->part_count += count;
    *slot = (uint32_t)++m->formula_count;
    return (mt_formula)m->formula_count - 1;
}

static void push(mt_formulas *m, mt_formula f)
{
    m->stack = mt_grow(m->stack, &m->stack_cap, m->stack_count + 1, sizeof(*m->stack));
    m->stack[m->stack_count++] = f;
}

/* Pushes the parts of a formula of the same kind, else the formula itself. */
static void push_flat(mt_formulas *m, uint8_t kind, mt_formula f)
{
    if (m->formulas[f].kind != kind) {
        push(m, f);
        return;
    }
    for (uint32_t i = 0; i < m->formulas[f].count; i++)
        push(m, m->parts[m->formulas[f].begin + i]);
    mt_formulas_toil(m, m->formulas[f].count);
}

static int by_value(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    return (a > b) - (a < b);
}

/* The "or" or "and" of what was pushed since `from`; pops it. */
static mt_formula join(mt_formulas *m, uint8_t kind, size_t from)
{
    const mt_formula ends = kind == OR ? MT_FORMULA_TRUE : MT_FORMULA_FALSE, none = kind == OR ? MT_FORMULA_FALSE : 1;
    mt_formula *list = m->stack + from, made;
    const size_t total = m->stack_count - from;
    size_t count = 0;

    m->joins++;
    for (size_t i = 0; i < total; i++) {
        mt_formula_node *f = &m->formulas[list[i]];

        if (list[i] == ends) {
            m->stack_count = from;
            return ends;
        }
        if (list[i] != none && f->listed != m->joins)
            list[count++] = list[i];
        f->listed = m->joins;
    }
    if (count > 1)
        qsort(list, count, sizeof(*list), by_value);
    made = count == 0 ? none : count == 1 ? list[0] : intern(m, kind, 0, list, count);
    m->stack_count = from;
    return made;
}

mt_formula mt_formula_not(mt_formulas *m, mt_formula f)
{
    if (f <= MT_FORMULA_TRUE)
        return !f;
    return m->formulas[f].kind == NOT ? m->parts[m->formulas[f].begin] : intern(m, NOT, 0, &f, 1);
}

mt_formula mt_formula_and(mt_formulas *m, mt_formula a, mt_formula b)
{
    const size_t from = m->stack_count;

    push_flat(m, AND, a);
    push_flat(m, AND, b);
    return join(m, AND, from);
}

void mt_formulas_begin(mt_formulas *m, size_t most)
{
    m->most = most;
    m->slots = mt_alloc_array(SLOTS, sizeof(*m->slots));
    m->known = mt_alloc_array(3 * m->count + 1, sizeof(*m->known));
    m->open = mt_alloc_array(m->count + 1, sizeof(*m->open));
    m->met = mt_alloc_array(m->count + 1, sizeof(*m->met));
    intern(m, FALSE_FORMULA, 0, NULL, 0);
    intern(m, TRUE_FORMULA, 0, NULL, 0);
}

void mt_formulas_free(mt_formulas *m)
{
    mt_free(m->nodes);
    mt_free(m->formulas);
    mt_free(m->parts);
    mt_free(m->slots);
    mt_free(m->known);
    mt_free(m->open);
    mt_free(m->met);
    mt_free(m->ways);
    mt_free(m->stack);
}

static mt_formula enter(mt_formulas *m, uint32_t at, mt_regex_before before);

/* A word border: true where a word character follows if none precedes, and the other way round. */
static mt_formula border(mt_formulas *m, uint32_t at, mt_regex_before before)
{
    /* whether a word character has to follow */
    const bool wanted = (before == MT_BEFORE_WORD) == m->nodes[at].inverted;
    const mt_formula word = intern(m, LEAF, at, NULL, 0);

    return mt_formula_and(m, wanted ? word : mt_formula_not(m, word), enter(m, m->nodes[at].next, before));
}

/* The formula of a node, by its kind. */
static mt_formula enter_inside(mt_formulas *m, uint32_t at, mt_regex_before before)
{
    const mt_regex_node *n = &m->nodes[at];
    mt_formula look;

    switch (n->kind) {
    case ANYTHING: return MT_FORMULA_TRUE;
    case BEGINS: return before == MT_BEFORE_NOTHING ? enter(m, n->next, before) : MT_FORMULA_FALSE;
    case BORDERS: return border(m, at, before);
    case LOOKS:
        look = enter(m, n->other, before);
        return mt_formula_and(m, n->inverted ? mt_formula_not(m, look) : look, enter(m, n->next, before));
    case STOPS: return mt_formula_and(m, intern(m, LEAF, at, NULL, 0), enter(m, n->next, before));
    default: return intern(m, LEAF, at, NULL, 0);
    }
}

/* Adds a node to those that forks lead to, unless it is one of them, or a fork that is being entered already: what that
   one leads to is part of the formula around this one. */
static void add_way(mt_formulas *m, uint32_t node)
{
    if (m->met[node] == m->rounds)
        return;
    m->met[node] = m->rounds;
    mt_formulas_toil(m, 1);
    if (m->open[node]) {
        m->cut = m->open[node] < m->cut ? m->open[node] : m->cut;
        return;
    }
    m->ways = mt_grow(m->ways, &m->way_cap, m->way_count + 1, sizeof(*m->ways));
    m->ways[m->way_count++] = node;
}

/* The "or" of all nodes that forks lead to. Each fork is followed once, even where forks lead in cycles. */
static mt_formula enter_forks(mt_formulas *m, uint32_t at, mt_regex_before before)
{
    const size_t first = m->way_count, from = m->stack_count;
    size_t end;

    m->rounds++;
    add_way(m, at);
    for (size_t i = first; i < m->way_count; i++)
        if (m->nodes[m->ways[i]].kind == FORKS) {
            const mt_regex_node *n = &m->nodes[m->ways[i]];

            m->open[m->ways[i]] = m->depth;
            add_way(m, n->next);
            add_way(m, n->other);
        }
    end = m->way_count;
    for (size_t i = first; i < end && !m->full; i++)
        if (m->nodes[m->ways[i]].kind != FORKS)
            push_flat(m, OR, enter(m, m->ways[i], before));
    for (size_t i = first; i < end; i++)
        if (m->nodes[m->ways[i]].kind == FORKS)
            m->open[m->ways[i]] = 0;
    m->way_count = first;
    return join(m, OR, from);
}

/* A cycle without reading matches nothing that is not matched without it. A result that lacks what a cycle led back to,
   outside of the node, is incomplete and not stored. */
static mt_formula enter(mt_formulas *m, uint32_t at, mt_regex_before before)
{
    const uint32_t outside = m->cut;
    mt_formula f = m->known[before * m->count + at];

    mt_formulas_toil(m, 1);
    if (f)
        return f - 1;
    if (m->open[at])
        m->cut = m->open[at] < m->cut ? m->open[at] : m->cut;
    if (m->open[at] || m->full)
        return MT_FORMULA_FALSE;
    m->cut = UINT32_MAX;
    m->depth++;
    if (m->nodes[at].kind == FORKS) {
        f = enter_forks(m, at, before);
    } else {
        m->open[at] = m->depth;
        f = enter_inside(m, at, before);
        m->open[at] = 0;
    }
    if (m->cut >= m->depth) {
        m->known[before * m->count + at] = f + 1;
        m->cut = UINT32_MAX;
    }
    m->depth--;
    m->cut = m->cut < outside ? m->cut : outside;
    return f;
}

mt_formula mt_formula_enter(mt_formulas *m, uint32_t node, mt_regex_before before)
{
    m->cut = UINT32_MAX;
    return enter(m, node, before);
}

static bool reads(const mt_regex *set, uint32_t code)
{
    size_t low = 0, high = set->count;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (set->ranges[middle].high < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && set->ranges[low].low <= code;
}

static mt_formula step_leaf(mt_formulas *m, uint32_t at, uint32_t code, mt_regex_before before)
{
    const mt_regex_node *n = &m->nodes[at];

    if (n->kind == BORDERS)
        return mt_regex_word(code) ? MT_FORMULA_TRUE : MT_FORMULA_FALSE;
    if (n->kind != READS || !reads(n->set, code))
        return MT_FORMULA_FALSE;
    return mt_formula_enter(m, n->next, m->borders_matter ? before : MT_BEFORE_OTHER);
}

static mt_formula step(mt_formulas *m, mt_formula f, uint32_t code, mt_regex_before before)
{
    const mt_formula_node n = m->formulas[f];
    const size_t from = m->stack_count;
    mt_formula made = f;

    mt_formulas_toil(m, 1);
    if (n.stepped == m->steps)
        return n.made;
    switch (n.kind) {
    case LEAF: made = step_leaf(m, n.begin, code, before); break;
    case NOT: made = mt_formula_not(m, step(m, m->parts[n.begin], code, before)); break;
    case OR:
    case AND:
        for (uint32_t i = 0; i < n.count && !m->full; i++)
            push_flat(m, n.kind, step(m, m->parts[n.begin + i], code, before));
        made = join(m, n.kind, from);
        break;
    default: break;
    }
    m->formulas[f].stepped = m->steps;
    m->formulas[f].made = made;
    return made;
}

mt_formula mt_formula_step(mt_formulas *m, mt_formula f, uint32_t code, mt_regex_before before)
{
    m->steps++;
    return step(m, f, code, before);
}

bool mt_formula_accepts(const mt_formulas *m, mt_formula f)
{
    return m->formulas[f].accepts;
}
