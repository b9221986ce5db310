/* Builds grammars (grammar.h). */
#include "constraint/grammar.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "constraint/limits.h"

enum { NEVER = 0, EMPTY = 1 }; /* the first two expressions of every grammar */

enum { LOOK = 1024 }; /* additions between two checks of patience */

void mt_grammar_fill(mt_grammar *g, const char *of, size_t at)
{
    if (!g->full) {
        g->full_of = of;
        g->full_at = at;
    }
    g->full = true;
}

/* Makes room for `more` entries, or makes the grammar full. */
static bool reserve(mt_grammar *g, void *list, size_t count, size_t *cap, size_t more, size_t size)
{
    const bool bytes = size == 1;
    const size_t limit = bytes ? MT_LIMIT_GRAMMAR_BYTES : MT_LIMIT_GRAMMAR_NODES;
    void **at = list;

    if (count + more > limit)
        mt_grammar_fill(g, bytes ? "bytes of texts" : "parts", limit);
    if (count % LOOK == 0 && mt_grammar_stopped(g))
        g->full = true;
    if (!g->full)
        *at = mt_grow(*at, cap, count + more, size);
    return !g->full;
}

static mt_expr add(mt_grammar *g, mt_expr_kind kind, uint32_t a, uint32_t b, uint32_t c)
{
    if (!reserve(g, &g->nodes, g->node_count, &g->node_cap, 1, sizeof(*g->nodes)))
        return NEVER;
    g->nodes[g->node_count] = (mt_expr_node){.kind = (uint8_t)kind, .a = a, .b = b, .c = c};
    return (mt_expr)g->node_count++;
}

mt_grammar *mt_grammar_new(void)
{
    mt_grammar *g = mt_alloc(sizeof(*g));

    add(g, MT_EXPR_NEVER, 0, 0, 0);
    add(g, MT_EXPR_EMPTY, 0, 0, 0);
    mt_grammar_rule(g);
    return g;
}

void mt_grammar_free(mt_grammar *g)
{
    if (!g)
        return;
    mt_free(g->nodes);
    mt_free(g->sets);
    mt_free(g->parts);
    mt_free(g->text);
    mt_free(g->rules);
    mt_free(g);
}

bool mt_grammar_full(const mt_grammar *g)
{
    return g->full;
}

bool mt_grammar_say_full(const mt_grammar *g, mt_error *err)
{
    return mt_fail(err, MT_E_INVALID, "the constraint has more than %zu %s; make it smaller", g->full_at, g->full_of);
}

void mt_grammar_watch(mt_grammar *g, const mt_patience *patience)
{
    g->patience = patience;
}

bool mt_grammar_say_stopped(const mt_patience *patience, mt_error *err)
{
    if (mt_patience_spent(patience))
        return mt_fail(err, MT_E_INVALID,
                       "the constraint takes more than %d seconds of processor time to compile; make it smaller, or "
                       "tell the alternatives of each \"oneOf\" apart by a required property with a constant",
                       MT_LIMIT_CONSTRAINT_MS / 1000);
    return mt_fail(err, MT_E_INVALID, "the request was cancelled while its constraint was compiled");
}

void mt_grammar_leave_out(mt_grammar *g, const char *name)
{
    const size_t len = strlen(name), used = strlen(g->left_out);
    const char *at = g->left_out;

    for (; (at = strstr(at, name)); at += len)
        if ((at == g->left_out || at[-1] == ' ') && (at[len] == ',' || !at[len]))
            return;
    if (used + len + 3 <= sizeof(g->left_out))
        snprintf(g->left_out + used, sizeof(g->left_out) - used, "%s%s", used ? ", " : "", name);
}

const char *mt_grammar_left_out(const mt_grammar *g)
{
    return g->left_out;
}

mt_rule mt_grammar_rule(mt_grammar *g)
{
    if (!reserve(g, &g->rules, g->rule_count, &g->rule_cap, 1, sizeof(*g->rules)))
        return MT_GRAMMAR_START;
    g->rules[g->rule_count] = NEVER;
    return (mt_rule)g->rule_count++;
}

void mt_grammar_define(mt_grammar *g, mt_rule rule, mt_expr value)
{
    assert(g->full || (rule < g->rule_count && g->rules[rule] == NEVER));
    g->rules[rule] = value;
}

mt_expr mt_grammar_empty(mt_grammar *g)
{
    (void)g;
    return EMPTY;
}

mt_expr mt_grammar_never(mt_grammar *g)
{
    (void)g;
    return NEVER;
}

mt_expr mt_grammar_call(mt_grammar *g, mt_rule rule)
{
    return add(g, MT_EXPR_CALL, rule, 0, 0);
}

/* Mostly stores equal sets once: a set whose hash slot was taken by another is stored again. */
mt_expr mt_grammar_bytes(mt_grammar *g, const mt_byteset *set)
{
    uint64_t hash = 0;
    uint32_t *slot;

    for (size_t i = 0; i < 4; i++)
        hash = (hash ^ set->bits[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 31;
    slot = &g->set_slots[(hash >> 32) % MT_GRAMMAR_SET_SLOTS];
    if (*slot == 0 || memcmp(&g->sets[*slot - 1], set, sizeof(*set)) != 0) {
        if (!reserve(g, &g->sets, g->set_count, &g->set_cap, 1, sizeof(*g->sets)))
            return NEVER;
        g->sets[g->set_count] = *set;
        *slot = (uint32_t)++g->set_count;
    }
    return add(g, MT_EXPR_BYTES, *slot - 1, 0, 0);
}

mt_expr mt_grammar_literal(mt_grammar *g, const char *text, size_t len)
{
    if (len == 0)
        return EMPTY;
    if (!reserve(g, &g->text, g->text_len, &g->text_cap, len, 1))
        return NEVER;
    memcpy(g->text + g->text_len, text, len);
    g->text_len += len;
    return add(g, MT_EXPR_LITERAL, (uint32_t)(g->text_len - len), (uint32_t)len, 0);
}

mt_expr mt_grammar_text(mt_grammar *g, const char *text)
{
    return mt_grammar_literal(g, text, strlen(text));
}

mt_expr mt_grammar_token(mt_grammar *g, uint32_t id)
{
    return add(g, MT_EXPR_TOKEN, id, 0, 0);
}

static mt_expr group(mt_grammar *g, mt_expr_kind kind, const mt_expr *parts, size_t count)
{
    if (count == 1)
        return parts[0];
    if (!reserve(g, &g->parts, g->part_count, &g->part_cap, count, sizeof(*g->parts)))
        return NEVER;
    memcpy(g->parts + g->part_count, parts, count * sizeof(*parts));
    g->part_count += count;
    return add(g, kind, (uint32_t)(g->part_count - count), (uint32_t)count, 0);
}

/* Whether two expressions are the same text or the same set. */
static bool same(const mt_grammar *g, const mt_expr_node *a, const mt_expr_node *b)
{
    if (a->kind != b->kind || a->b != b->b)
        return false;
    return a->kind == MT_EXPR_BYTES ? a->a == b->a
                                    : a->kind == MT_EXPR_LITERAL && memcmp(g->text + a->a, g->text + b->a, a->b) == 0;
}

/* Joins two neighbouring repetitions of the same expression: "a?a?a?" needs one place, not three. */
static bool join(mt_grammar *g, mt_expr first, mt_expr second, mt_expr *out)
{
    const mt_expr_node a = g->nodes[first], b = g->nodes[second];
    const bool endless = a.c == MT_GRAMMAR_UNLIMITED || b.c == MT_GRAMMAR_UNLIMITED;

    if (a.kind != MT_EXPR_REPEAT || b.kind != MT_EXPR_REPEAT || a.plain != b.plain ||
        !same(g, &g->nodes[a.a], &g->nodes[b.a]))
        return false;
    if ((uint64_t)a.b + b.b > MT_LIMIT_GRAMMAR_NODES || (!endless && (uint64_t)a.c + b.c > MT_LIMIT_GRAMMAR_NODES))
        return false;
    *out = add(g, MT_EXPR_REPEAT, a.a, a.b + b.b, endless ? MT_GRAMMAR_UNLIMITED : a.c + b.c);
    g->nodes[*out].plain = a.plain && *out != NEVER;
    return true;
}

mt_expr mt_grammar_list(mt_grammar *g, const mt_expr *parts, size_t count)
{
    mt_expr *joined = NULL, one, list;
    size_t last = 0;

    for (size_t i = 1; i < count; i++) {
        const bool joins = join(g, joined ? joined[last] : parts[i - 1], parts[i], &one);

        if (joins && !joined) {
            joined = mt_alloc_array(count, sizeof(*joined));
            memcpy(joined, parts, i * sizeof(*parts));
            last = i - 1;
        }
        if (joins)
            joined[last] = one;
        else if (joined)
            joined[++last] = parts[i];
    }
    if (!joined)
        return count ? group(g, MT_EXPR_LIST, parts, count) : EMPTY;
    list = group(g, MT_EXPR_LIST, joined, last + 1);
    mt_free(joined);
    return list;
}

mt_expr mt_grammar_any(mt_grammar *g, const mt_expr *parts, size_t count)
{
    return count ? group(g, MT_EXPR_ANY, parts, count) : NEVER;
}

mt_expr mt_grammar_seq(mt_grammar *g, mt_expr a, mt_expr b)
{
    return mt_grammar_list(g, (mt_expr[]){a, b}, 2);
}

mt_expr mt_grammar_or(mt_grammar *g, mt_expr a, mt_expr b)
{
    return mt_grammar_any(g, (mt_expr[]){a, b}, 2);
}

mt_expr mt_grammar_maybe(mt_grammar *g, mt_expr a)
{
    return mt_grammar_or(g, a, EMPTY);
}

bool mt_repeat_within(uint32_t inner_least, uint32_t inner_most, bool empty, uint32_t *least, uint32_t *most)
{
    const uint64_t limit = empty ? MT_LIMIT_GRAMMAR_EMPTY_REPEAT + 1 : MT_LIMIT_GRAMMAR_NODES;
    const bool endless = *most == MT_GRAMMAR_UNLIMITED || inner_most == MT_GRAMMAR_UNLIMITED;
    const uint64_t low = (uint64_t)inner_least * *least, high = (uint64_t)inner_most * *most;
    const uint64_t spread = (uint64_t)(inner_most - inner_least) * *least;

    if (*most == 0 || inner_most == 0) {
        *least = *most = 0;
        return true;
    }
    /* k rounds are from k * inner_least to k * inner_most of it: is there a gap before those of k + 1? */
    if (*least < *most && inner_least > 1 && spread < inner_least - 1)
        return false;
    if (low >= limit || (!endless && high >= limit))
        return false;
    *least = (uint32_t)low;
    *most = endless ? MT_GRAMMAR_UNLIMITED : (uint32_t)high;
    return true;
}

mt_expr mt_grammar_repeat(mt_grammar *g, mt_expr a, uint32_t least, uint32_t most)
{
    const mt_expr_node inner = g->nodes[a];
    bool empty;

    if (least > most)
        return NEVER;
    if (most == 0)
        return EMPTY;
    if (least == 1 && most == 1)
        return a;
    empty = inner.kind == MT_EXPR_REPEAT && !inner.plain && g->nodes[inner.a].kind != MT_EXPR_BYTES &&
            g->nodes[inner.a].kind != MT_EXPR_LITERAL; /* as far as can be seen */
    if (inner.kind == MT_EXPR_REPEAT && mt_repeat_within(inner.b, inner.c, empty, &least, &most))
        return inner.plain ? mt_grammar_repeat_plain(g, inner.a, least, most)
                           : mt_grammar_repeat(g, inner.a, least, most);
    return add(g, MT_EXPR_REPEAT, a, least, most);
}

mt_expr mt_grammar_repeat_plain(mt_grammar *g, mt_expr a, uint32_t least, uint32_t most)
{
    mt_expr repeat;

    if (least > most)
        return NEVER;
    if (most == 0)
        return EMPTY;
    repeat = add(g, MT_EXPR_REPEAT, a, least, most);
    if (!g->full)
        g->nodes[repeat].plain = true;
    return repeat;
}

mt_expr mt_grammar_loose(mt_grammar *g, mt_expr a)
{
    return add(g, MT_EXPR_FREE, a, 0, 0);
}

mt_expr mt_grammar_anything(mt_grammar *g)
{
    mt_byteset all = {0};

    mt_byteset_add(&all, 0, 255);
    return mt_grammar_repeat_plain(g, mt_grammar_bytes(g, &all), 0, MT_GRAMMAR_UNLIMITED);
}
