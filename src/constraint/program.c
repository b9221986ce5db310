/* Compiles a grammar (program.h). Expressions are compiled from their end, so that each instruction knows its successor
   when it is made. program_any.c compiles alternatives, program_end.c finds which instructions can reach an end. */
#include "constraint/program.h"

#include <string.h>

#include "base/alloc.h"
#include "constraint/limits.h"
#include "constraint/program_inside.h"

static uint32_t compile(mt_compiler *c, mt_expr e, uint32_t next);

enum { PLAIN_FORKS = 2 }; /* depth of nested forks that are searched for what may follow */

/* A loop without a counter; where the body comes at least once, the loop is entered there. */
static uint32_t compile_loop(mt_compiler *c, const mt_expr_node *n, uint32_t next)
{
    const uint32_t targets = mt_program_add_targets(c, 2);
    const uint32_t fork =
        mt_program_emit(c, (mt_instruction){.op = MT_OP_FORK, .plain = n->plain, .a = targets, .b = 2});
    const uint32_t body = compile(c, n->a, fork); /* may move the targets */

    c->p->targets[targets] = body;
    c->p->targets[targets + 1] = next;
    return n->b ? body : fork;
}

/* An optional expression needs no counter, either. */
static uint32_t compile_maybe(mt_compiler *c, const mt_expr_node *n, uint32_t next)
{
    const uint32_t body = compile(c, n->a, next), targets = mt_program_add_targets(c, 2);

    c->p->targets[targets] = body;
    c->p->targets[targets + 1] = next;
    return mt_program_emit(c, (mt_instruction){.op = MT_OP_FORK, .a = targets, .b = 2});
}

/* Marks the first instructions of a plain repetition's body. */
static void mark_first(mt_program *p, uint32_t at)
{
    mt_instruction *in = &p->code[at];

    in->plain |= in->op == MT_OP_BYTE || in->op == MT_OP_TEXT;
    for (uint32_t i = 0; in->op == MT_OP_FORK && i < in->b; i++)
        mark_first(p, p->targets[in->a + i]);
}

/* Whether a plain character may come first at `at`. Returns from a rule, calls and repetitions count as yes. */
static bool begins_plain(const mt_program *p, uint32_t at, unsigned depth)
{
    const mt_instruction *in = mt_program_at(p, at);

    if (in && in->op == MT_OP_FORK && depth > 0) {
        for (uint32_t i = 0; i < in->b; i++)
            if (begins_plain(p, p->targets[in->a + i], depth - 1))
                return true;
        return false;
    }
    if (in && in->op != MT_OP_BYTE && in->op != MT_OP_TEXT)
        return true;
    for (unsigned byte = 0; byte < 256; byte++)
        if (mt_plain_byte((unsigned char)byte) && mt_program_reads(p, at, (uint8_t)byte))
            return true;
    return false;
}

/* For a limited plain repetition the automaton tells how many plain characters may follow, and not one more. So it is
   treated as plain only where no plain character can follow the last one. */
static uint32_t compile_repeat(mt_compiler *c, const mt_expr_node *n, uint32_t next)
{
    const bool plain = n->plain && (n->c == MT_GRAMMAR_UNLIMITED || !begins_plain(c->p, next, PLAIN_FORKS));
    uint32_t at, body;

    if (n->c == MT_GRAMMAR_UNLIMITED && n->b <= 1)
        return compile_loop(c, n, next);
    if (n->b == 0 && n->c == 1 && !plain)
        return compile_maybe(c, n, next);
    at = mt_program_emit(c, (mt_instruction){.op = MT_OP_REPEAT, .plain = plain, .b = n->b, .c = n->c, .next = next});
    body = compile(c, n->a, 0);
    if (c->full)
        return 0;
    c->p->code[at].a = body;
    if (plain)
        mark_first(c->p, body);
    return at;
}

/* Compiles expression e, which is followed by instruction `next`; returns its first instruction. */
static uint32_t compile(mt_compiler *c, mt_expr e, uint32_t next)
{
    const mt_expr_node *n = &c->g->nodes[e];

    if (c->full)
        return next;
    switch ((mt_expr_kind)n->kind) {
    case MT_EXPR_EMPTY: return next;
    case MT_EXPR_NEVER: return mt_program_emit(c, (mt_instruction){.op = MT_OP_FORK});
    case MT_EXPR_BYTES: return mt_program_emit(c, (mt_instruction){.op = MT_OP_BYTE, .a = 256 + n->a, .next = next});
    case MT_EXPR_TOKEN: return mt_program_emit(c, (mt_instruction){.op = MT_OP_TOKEN, .a = n->a, .next = next});
    case MT_EXPR_CALL: return mt_program_emit(c, (mt_instruction){.op = MT_OP_CALL, .a = n->a, .next = next});
    case MT_EXPR_LITERAL: return mt_program_literal(c, c->g->text + n->a, n->b, next);
    case MT_EXPR_LIST:
        for (uint32_t i = n->b; i-- > 0;)
            next = compile(c, c->g->parts[n->a + i], next);
        return next;
    case MT_EXPR_ANY: return mt_program_any(c, n, next);
    case MT_EXPR_REPEAT: return compile_repeat(c, n, next);
    case MT_EXPR_FREE:
        next = compile(c, n->a, next);
        return mt_program_emit(c, (mt_instruction){.op = MT_OP_FREE, .next = next});
    }
    return next;
}

static void compile_rules(mt_compiler *c)
{
    mt_program *p = c->p;

    mt_program_emit(c, (mt_instruction){.op = MT_OP_RETURN});
    for (size_t r = 0; r < c->g->rule_count && !c->full; r++)
        c->entries[r] = compile(c, c->g->rules[r], 0);
    for (size_t i = 0; i < p->count && !c->full; i++)
        if (p->code[i].op == MT_OP_CALL)
            p->code[i].a = c->entries[p->code[i].a];
    p->start = c->entries[MT_GRAMMAR_START];
}

/* For repetitions of what may be empty, least becomes 0: it is the same language, and the count stays bounded. */
static bool bound_repeats(mt_compiler *c, mt_error *err)
{
    for (size_t i = 0; i < c->p->count; i++) {
        mt_instruction *in = &c->p->code[i];

        if (in->op != MT_OP_REPEAT || !c->nullable[in->a])
            continue;
        in->b = 0;
        if (in->c != MT_GRAMMAR_UNLIMITED && in->c > MT_LIMIT_GRAMMAR_EMPTY_REPEAT)
            return mt_fail(err, MT_E_INVALID,
                           "something that may be empty is repeated up to %u times; repeat something that is not empty",
                           in->c);
    }
    return true;
}

/* For each rule, the rules that it may call before it has read anything. */
typedef struct walk {
    uint32_t *stack; /* instructions to be looked at */
    uint32_t *seen;  /* the last rule that met each instruction */
    uint32_t *rule_at;
    uint32_t *edges, *edge_end; /* rules that each rule may begin with */
    size_t edge_count, edge_cap;
} walk;

static void add_edge(walk *w, uint32_t rule)
{
    w->edges = mt_grow(w->edges, &w->edge_cap, w->edge_count + 1, sizeof(*w->edges));
    w->edges[w->edge_count++] = rule;
}

static size_t push(walk *w, size_t depth, uint32_t at, uint32_t rule)
{
    if (w->seen[at] == rule + 1)
        return depth;
    w->seen[at] = rule + 1;
    w->stack[depth] = at;
    return depth + 1;
}

/* Lists the rules that may be called before this rule has read anything. */
static void list_first(const mt_compiler *c, walk *w, uint32_t rule)
{
    size_t depth = push(w, 0, c->entries[rule], rule);

    while (depth > 0) {
        const mt_instruction *in = &c->p->code[w->stack[--depth]];

        if (in->op == MT_OP_CALL)
            add_edge(w, w->rule_at[in->a]);
        if (in->op == MT_OP_REPEAT)
            depth = push(w, depth, in->a, rule);
        if (in->op == MT_OP_FREE || (in->op == MT_OP_CALL && c->nullable[in->a]) ||
            (in->op == MT_OP_REPEAT && (in->b == 0 || c->nullable[in->a])))
            depth = push(w, depth, in->next, rule);
        for (uint32_t i = 0; in->op == MT_OP_FORK && i < in->b; i++)
            depth = push(w, depth, c->p->targets[in->a + i], rule);
    }
    w->edge_end[rule] = (uint32_t)w->edge_count;
}

/* Removes rules that no other begins with, until none is left (true) or the rest form a cycle. */
static bool sorted(walk *w, size_t rules)
{
    uint32_t *uses = mt_alloc_array(rules, sizeof(*uses)), *ready = mt_alloc_array(rules, sizeof(*ready));
    size_t count = 0, taken = 0;

    for (size_t i = 0; i < w->edge_count; i++)
        uses[w->edges[i]]++;
    for (size_t r = 0; r < rules; r++)
        if (uses[r] == 0)
            ready[count++] = (uint32_t)r;
    for (; taken < count; taken++) {
        const uint32_t r = ready[taken];

        for (uint32_t i = r ? w->edge_end[r - 1] : 0; i < w->edge_end[r]; i++)
            if (--uses[w->edges[i]] == 0)
                ready[count++] = w->edges[i];
    }
    mt_free(uses);
    mt_free(ready);
    return taken == rules;
}

static bool left_recursive(const mt_compiler *c)
{
    const size_t rules = c->g->rule_count, count = c->p->count;
    walk w = {.stack = mt_alloc_array(count, sizeof(*w.stack)),
              .seen = mt_alloc_array(count, sizeof(*w.seen)),
              .rule_at = mt_alloc_array(count, sizeof(*w.rule_at)),
              .edge_end = mt_alloc_array(rules, sizeof(*w.edge_end))};
    bool ok;

    for (size_t r = 0; r < rules; r++) /* rules that are aliases share their first instruction, and so the result */
        w.rule_at[c->entries[r]] = (uint32_t)r;
    for (size_t r = 0; r < rules; r++)
        list_first(c, &w, (uint32_t)r);
    ok = sorted(&w, rules);
    mt_free(w.stack);
    mt_free(w.seen);
    mt_free(w.rule_at);
    mt_free(w.edges);
    mt_free(w.edge_end);
    return !ok;
}

static void make_sets(mt_compiler *c)
{
    mt_program *p = c->p;

    p->set_count = 256 + c->g->set_count;
    p->sets = mt_alloc_array(p->set_count, sizeof(*p->sets));
    for (unsigned b = 0; b < 256; b++)
        mt_byteset_add(&p->sets[b], b, b);
    if (c->g->set_count)
        memcpy(p->sets + 256, c->g->sets, c->g->set_count * sizeof(*p->sets));
    for (size_t i = 0; i < p->set_count; i++)
        for (size_t k = 0; k < 4; k++)
            p->sets[i].bits[k] &= c->covered->bits[k];
}

/* Splits the classes of bytes by one set: bytes of a class that are in the set get a class of their own. */
static void refine(mt_program *p, const mt_byteset *set)
{
    int split[256];
    bool outside[256] = {false};

    memset(split, -1, sizeof(split));
    for (unsigned b = 0; b < 256; b++)
        if (!mt_byteset_has(set, b))
            outside[p->class_of[b]] = true;
    for (unsigned b = 0; b < 256; b++) {
        const uint8_t old = p->class_of[b];

        if (!mt_byteset_has(set, b) || !outside[old])
            continue;
        if (split[old] < 0)
            split[old] = (int)p->class_count++;
        p->class_of[b] = (uint8_t)split[old];
    }
}

/* Only sets that are used count: most one-byte sets are not. */
static void make_classes(const mt_compiler *c)
{
    mt_program *p = c->p;
    bool *used = mt_alloc_array(p->set_count, sizeof(*used));

    p->class_count = 1;
    memcpy(used, c->read, sizeof(c->read));
    for (size_t i = 0; i < p->count; i++)
        if (p->code[i].op == MT_OP_BYTE)
            used[p->code[i].a] = true;
    for (size_t i = 0; i < p->set_count && p->class_count < 256; i++)
        if (used[i])
            refine(p, &p->sets[i]);
    for (unsigned b = 0; b < 256; b++)
        p->class_byte[p->class_of[b]] = (uint8_t)b;
    mt_free(used);
}

/* Completes the program behind its code, or refuses it with a sentence. */
static bool check(mt_compiler *c, mt_error *err)
{
    mt_program *p = c->p;

    if (mt_grammar_stopped(c->g))
        return mt_grammar_say_stopped(c->g->patience, err);
    if (mt_grammar_full(c->g))
        return mt_grammar_say_full(c->g, err);
    if (c->full)
        return mt_fail(err, MT_E_INVALID,
                       "the constraint compiles to more than %u instructions or %u bytes of texts; make it smaller",
                       MT_LIMIT_PROGRAM_CODE, MT_LIMIT_GRAMMAR_BYTES);
    mt_program_link(c);
    mt_program_find_nullable(c);
    if (!bound_repeats(c, err))
        return false;
    if (left_recursive(c))
        return mt_fail(err, MT_E_INVALID, "a rule of the grammar begins with itself; write it the other way round");
    mt_program_find_heights(c);
    if (p->code[p->start].height == MT_PROGRAM_ENDLESS)
        return mt_fail(err, MT_E_INVALID, "the constraint allows no answer at all; loosen it");
    if (p->code[p->start].height > MT_LIMIT_GRAMMAR_FRAMES)
        return mt_fail(err, MT_E_INVALID, "the constraint nests more than %d levels deep; make it flatter",
                       MT_LIMIT_GRAMMAR_FRAMES);
    make_classes(c);
    return true;
}

mt_program *mt_program_new(const mt_grammar *grammar, const mt_byteset *covered, mt_error *err)
{
    mt_compiler c = {.compile = compile, .g = grammar, .p = mt_alloc(sizeof(*c.p)), .covered = covered};
    bool ok;

    c.entries = mt_alloc_array(grammar->rule_count, sizeof(*c.entries));
    memcpy(c.p->left_out, mt_grammar_left_out(grammar), sizeof(c.p->left_out));
    make_sets(&c);
    if (!mt_grammar_full(grammar))
        compile_rules(&c);
    ok = check(&c, err);
    mt_free(c.entries);
    mt_free(c.nullable);
    mt_free(c.first_user);
    mt_free(c.users);
    if (ok)
        return c.p;
    mt_program_free(c.p);
    return NULL;
}

void mt_program_free(mt_program *p)
{
    if (!p)
        return;
    mt_free(p->code);
    mt_free(p->targets);
    mt_free(p->text);
    mt_free(p->sets);
    mt_free(p);
}

size_t mt_program_bytes(const mt_program *p)
{
    return sizeof(*p) + p->count * sizeof(*p->code) + p->target_count * sizeof(*p->targets) +
           p->text_len * sizeof(*p->text) + p->set_count * sizeof(*p->sets);
}
