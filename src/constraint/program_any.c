/* Compiles alternatives. Each often begins with a text; a trie holds all these texts, so that alternatives with a
   common beginning are one place, and a list of any length is in one place after a few bytes. Where there are many,
   equal instructions are shared, so that texts with common ends share them: numbers from 1 to 100000 are a few dozen
   instructions.

   The trie is made from sorted texts in one pass: `open` are the nodes on the path to the last text, `pending` their
   targets so far, those of each node behind those of the node above. A node is complete, and becomes an instruction,
   when the next text leaves the path before it. Nothing recurses with the length of a text. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "constraint/limits.h"
#include "constraint/program_inside.h"

enum {
    PURE_DEPTH = 4,
    MANY = 16
}; /* depth of nested lists that are searched; least number of alternatives for which equal instructions are shared */

/* An alternative: the text that it begins with, and the instruction behind the text. */
typedef struct branch {
    const char *text;
    uint32_t begin, len; /* offset in the buffer, which moves while it grows; length */
    uint32_t behind;     /* the instruction that follows */
} branch;

/* An open node of the trie. */
typedef struct node {
    size_t depth; /* number of bytes that lead to it */
    size_t first; /* index of its first target */
} node;

/* The trie that is being built. */
typedef struct trie {
    mt_compiler *c;
    mt_buf text;
    branch *branches;
    size_t count, cap;
    node *open;
    size_t open_count, open_cap;
    uint32_t *pending;
    size_t pending_count, pending_cap;
    uint32_t *made; /* hash table of instructions, plus 1; NULL: not shared */
    size_t slots;
} trie;

/* The only byte of a set; -1 where it has none or several. */
static int only_byte(const mt_byteset *set)
{
    int found = -1;

    for (unsigned k = 0; k < 4; k++) {
        if (!set->bits[k])
            continue;
        if (found >= 0 || (set->bits[k] & (set->bits[k] - 1)))
            return -1;
        for (found = (int)(64 * k); !(set->bits[k] >> (found & 63) & 1);)
            found++;
    }
    return found;
}

/* A call of a rule that is only a text becomes the text. */
static const mt_expr_node *look_through(const mt_grammar *g, mt_expr e)
{
    const mt_expr_node *n = &g->nodes[e];

    if (n->kind == MT_EXPR_CALL && g->nodes[g->rules[n->a]].kind == MT_EXPR_LITERAL)
        return &g->nodes[g->rules[n->a]];
    return n;
}

/* Whether an expression is one text and nothing else. */
static bool is_pure(const mt_grammar *g, mt_expr e, int depth)
{
    const mt_expr_node *n = look_through(g, e);

    switch ((mt_expr_kind)n->kind) {
    case MT_EXPR_EMPTY:
    case MT_EXPR_LITERAL: return true;
    case MT_EXPR_BYTES: return only_byte(&g->sets[n->a]) >= 0;
    case MT_EXPR_LIST:
        for (uint32_t i = 0; i < n->b; i++)
            if (depth == 0 || !is_pure(g, g->parts[n->a + i], depth - 1))
                return false;
        return true;
    default: return false;
    }
}

/* Adds the text that an expression begins with to the buffer; returns the instruction for the rest. */
static uint32_t peel(trie *t, mt_expr e, uint32_t next)
{
    const mt_grammar *g = t->c->g;
    const mt_expr_node *n = look_through(g, e);
    uint32_t pure = 0;

    switch ((mt_expr_kind)n->kind) {
    case MT_EXPR_EMPTY: return next;
    case MT_EXPR_LITERAL: mt_buf_add(&t->text, g->text + n->a, n->b); return next;
    case MT_EXPR_BYTES:
        if (only_byte(&g->sets[n->a]) < 0)
            break;
        mt_buf_add(&t->text, &(char){(char)only_byte(&g->sets[n->a])}, 1);
        return next;
    case MT_EXPR_LIST:
        for (; pure < n->b && is_pure(g, g->parts[n->a + pure], PURE_DEPTH); pure++)
            peel(t, g->parts[n->a + pure], 0);
        for (uint32_t i = n->b; i-- > pure + 1;)
            next = t->c->compile(t->c, g->parts[n->a + i], next);
        return pure < n->b ? peel(t, g->parts[n->a + pure], next) : next;
    default: break;
    }
    return t->c->compile(t->c, e, next);
}

/* Alternatives within alternatives are flattened. */
static void collect(trie *t, const mt_expr_node *any, uint32_t next)
{
    const mt_grammar *g = t->c->g;

    for (uint32_t i = 0; i < any->b && !t->c->full; i++) {
        const mt_expr e = g->parts[any->a + i];
        const size_t begin = t->text.len;
        uint32_t behind;

        if (g->nodes[e].kind == MT_EXPR_NEVER)
            continue;
        if (g->nodes[e].kind == MT_EXPR_ANY) {
            collect(t, &g->nodes[e], next);
            continue;
        }
        behind = peel(t, e, next);
        t->branches = mt_grow(t->branches, &t->cap, t->count + 1, sizeof(*t->branches));
        t->branches[t->count++] =
            (branch){.begin = (uint32_t)begin, .len = (uint32_t)(t->text.len - begin), .behind = behind};
    }
}

static int by_text(const void *x, const void *y)
{
    const branch *a = x, *b = y;
    const int order = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);

    if (order != 0)
        return order;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

static size_t common(const branch *a, const branch *b)
{
    size_t n = 0;

    while (n < a->len && n < b->len && a->text[n] == b->text[n])
        n++;
    return n;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static bool same_edge(const mt_program *p, const mt_instruction *in, const char *bytes, size_t len, uint32_t next)
{
    if (in->next != next)
        return false;
    if (in->op == MT_OP_BYTE)
        return len == 1 && in->a == (unsigned char)bytes[0];
    if (in->op != MT_OP_TEXT || in->b != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((p->text[in->a + i] & 0xff) != (unsigned char)bytes[i])
            return false;
    return true;
}

/* An instruction that reads a text. */
static uint32_t edge(trie *t, const char *bytes, size_t len, uint32_t next)
{
    const mt_program *p = t->c->p;
    uint64_t hash = mix(1, next);
    uint32_t made;

    if (!t->made)
        return mt_program_literal(t->c, bytes, len, next);
    for (size_t i = 0; i < len; i++)
        hash = mix(hash, (unsigned char)bytes[i]);
    for (hash &= t->slots - 1; t->made[hash]; hash = (hash + 1) & (t->slots - 1))
        if (same_edge(p, &p->code[t->made[hash] - 1], bytes, len, next))
            return t->made[hash] - 1;
    made = mt_program_literal(t->c, bytes, len, next);
    t->made[hash] = made + 1;
    return made;
}

static uint32_t emit_fork(trie *t, const uint32_t *targets, size_t count)
{
    const uint32_t at = mt_program_add_targets(t->c, count);

    memcpy(t->c->p->targets + at, targets, count * sizeof(*targets));
    return mt_program_emit(t->c, (mt_instruction){.op = MT_OP_FORK, .a = at, .b = (uint32_t)count});
}

/* An instruction that continues at all of some targets. */
static uint32_t fork(trie *t, const uint32_t *targets, size_t count)
{
    const mt_program *p = t->c->p;
    uint64_t hash = mix(2, count);
    uint32_t made;

    if (count == 1)
        return targets[0];
    if (!t->made)
        return emit_fork(t, targets, count);
    for (size_t i = 0; i < count; i++)
        hash = mix(hash, targets[i]);
    for (hash &= t->slots - 1; t->made[hash]; hash = (hash + 1) & (t->slots - 1)) {
        const mt_instruction *in = &p->code[t->made[hash] - 1];

        if (in->op == MT_OP_FORK && in->b == count &&
            memcmp(p->targets + in->a, targets, count * sizeof(*targets)) == 0)
            return t->made[hash] - 1;
    }
    made = emit_fork(t, targets, count);
    t->made[hash] = made + 1;
    return made;
}

static void open_node(trie *t, size_t depth)
{
    t->open = mt_grow(t->open, &t->open_cap, t->open_count + 1, sizeof(*t->open));
    t->open[t->open_count++] = (node){.depth = depth, .first = t->pending_count};
}

static void add_target(trie *t, uint32_t target)
{
    t->pending = mt_grow(t->pending, &t->pending_cap, t->pending_count + 1, sizeof(*t->pending));
    t->pending[t->pending_count++] = target;
}

/* Completes the nodes on the path to a text that are deeper than `depth` bytes. */
static void close_to(trie *t, const branch *last, size_t depth)
{
    while (t->open[t->open_count - 1].depth > depth && !t->c->full) {
        const node done = t->open[--t->open_count];
        const size_t above = t->open[t->open_count - 1].depth, from = above > depth ? above : depth;
        const uint32_t at = fork(t, t->pending + done.first, t->pending_count - done.first);
        const uint32_t read = edge(t, last->text + from, done.depth - from, at);

        t->pending_count = done.first;
        if (above < from)
            open_node(t, from);
        add_target(t, read);
    }
}

/* Builds the trie; returns its first instruction. */
static uint32_t build(trie *t)
{
    open_node(t, 0);
    for (size_t i = 0; i < t->count && !t->c->full; i++) {
        const branch *b = &t->branches[i];

        if (i > 0)
            close_to(t, b - 1, common(b - 1, b));
        if (b->len > t->open[t->open_count - 1].depth)
            open_node(t, b->len);
        add_target(t, b->behind);
    }
    if (t->count > 0)
        close_to(t, &t->branches[t->count - 1], 0);
    return t->c->full ? 0 : fork(t, t->pending, t->pending_count);
}

uint32_t mt_program_any(mt_compiler *c, const mt_expr_node *any, uint32_t next)
{
    trie t = {.c = c};
    uint32_t at = 0;

    mt_buf_init(&t.text, MT_LIMIT_GRAMMAR_BYTES);
    collect(&t, any, next);
    for (size_t i = 0; i < t.count; i++)
        t.branches[i].text = t.text.len ? t.text.data + t.branches[i].begin : "";
    if (t.text.full) /* texts of rules that are used often are copied, and can exceed the limit */
        c->full = true;
    if (!c->full) {
        qsort(t.branches, t.count, sizeof(*t.branches), by_text);
        /* a text makes at most two reading instructions and a fork */
        for (t.slots = 1; t.count >= MANY && t.slots < 4 * t.count;)
            t.slots *= 2;
        t.made = t.slots > 1 ? mt_alloc_array(t.slots, sizeof(*t.made)) : NULL;
        at = build(&t);
    }
    mt_buf_free(&t.text);
    mt_free(t.branches);
    mt_free(t.open);
    mt_free(t.pending);
    mt_free(t.made);
    return at;
}
