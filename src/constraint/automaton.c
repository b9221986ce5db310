/* The automaton of a program (automaton.h). A state is a set of places in the program, each with a stack of frames to
   return to: all ways in which the text so far can have been read. Only places that read (or the end of all) are kept;
   calls, forks and returns are followed at once. Stacks are lists that share their tails, and equal stacks are stored
   once; so are states with equal places. So a state is a number, and the table of successors is filled as bytes come.

   1. All memory is allocated at the beginning. When a part of it is full, the caller collects: the states it still
      holds are copied to the other of two halves, and others are computed again when needed.
   2. A frame counts the rounds of its repetition. An unlimited one does not count beyond its least.
   3. A place that would need more frames than are left to finish its rule is dropped: see program_end.c.
   4. A walk over many texts keeps the first states that it finds; above a limit, states are forgotten, the last first,
      as the walk goes on. No kept state stores the number of a forgotten one.

   Used by one thread at a time: the one that compiled it, then the engine's. Rejected: an Earley parser, which keeps
   the whole history; and computing all states before the first byte, whose number is enormous with length limits and
   deep grammars. */
#include "constraint/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "constraint/limits.h"

enum {
    STATES = MT_LIMIT_AUTOMATON_STATES,
    STATE_SLOTS = 2 * STATES,
    STACKS = MT_LIMIT_AUTOMATON_STACKS,
    STACK_SLOTS = 2 * STACKS,
    PLACES_LEAST = 16384,   /* least limit on places of one state, where the program does not need more */
    PLACES_ITEMS = 4,       /* limit on places of all states, as a multiple of that */
    WALK_STATES = 8,        /* a walk may keep one part of so many of all states */
    WALK_REST = 4,          /* and of their places and frames */
    GLANCES = 16,           /* places looked at that count as one visit */
    ALIKE_FRAMES = 1 << 16, /* most frames of a state for which one that is alike is looked for */
    LOOK = 4096             /* places visited between two checks of patience */
};

#define NOT_YET UINT32_MAX /* a successor that is not computed yet */
#define CALLED UINT32_MAX  /* in place of a count: the frame of a call */
#define CARRIED UINT32_MAX /* in place of a depth or a slot, while collecting: it was copied to the other half */

/* at: place in the program; stack: index of its top frame */
typedef struct place {
    uint32_t at, stack;
} place;

/* A frame of a stack: where to go on when a call or a round of a repetition ends. */
typedef struct frame {
    uint32_t at;    /* a REPEAT instruction, or where a call returns to */
    uint32_t count; /* completed rounds */
    uint32_t below; /* index of the frame below; 0: the bottom */
    uint32_t depth; /* of the stack; the bottom has 0; or CARRIED */
    uint32_t same;  /* next frame with the same hash, plus 1; of one that is CARRIED: its new index */
} frame;

/* A state, as the head of this file defines it. */
typedef struct state {
    uint32_t begin, count; /* its places in items */
    uint32_t plain;        /* result of mt_automaton_plain */
    uint32_t slot;         /* in state_slots; or CARRIED */
    uint32_t same;         /* next state with the same hash, plus 1; of one that is CARRIED: its new number */
    mt_automaton_state alike;
    bool accepts;
} state;

/* Everything that is copied when states are collected. */
typedef struct half {
    frame *stacks;
    uint32_t stack_count;
    uint32_t *stack_slots;
    place *items;
    uint32_t item_count;
    state *states;
    uint32_t state_count;
    uint32_t *state_slots;
    uint32_t *rows; /* [states][classes of bytes]: successors */
} half;

struct mt_automaton {
    const mt_program *p;
    half halves[2], *h; /* the two halves, and the one in use */
    mt_automaton_state start;
    uint64_t epoch;
    size_t work;                 /* places visited since mt_automaton_rest */
    size_t look;                 /* value of work at which patience is checked next */
    const mt_patience *patience; /* NULL once settled */
    bool full;                   /* a limit was reached while a state was made */
    mt_automaton_lack lack;      /* the last limit that was reached */

    uint32_t kept;          /* during a walk, states from this number on are forgotten; UINT32_MAX: none are */
    mt_automaton_mark base; /* during a walk: first how much may be kept, then what was kept */
    uint32_t base_items;

    /* the state that is being made */
    uint32_t places, items, slots; /* limits: places of one state, of all states; slots of `seen` */
    place *found;                  /* [places]: places that read */
    uint32_t found_count;
    place *todo; /* [places]: places to be followed */
    uint32_t todo_count;
    place *seen; /* [slots]: hash set of places visited */
    uint32_t *seen_round, round;
    uint32_t seen_count;
    uint32_t plain;
    bool accepts;
};

/* A limit is reached: the state cannot be made. */
static uint32_t fill(mt_automaton *a, mt_automaton_lack lack)
{
    a->full = true;
    a->lack = lack;
    return MT_STATE_UNKNOWN;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static void half_init(half *h, size_t classes, size_t items)
{
    h->stacks = mt_alloc_array(STACKS, sizeof(*h->stacks));
    h->stack_slots = mt_alloc_array(STACK_SLOTS, sizeof(*h->stack_slots));
    h->items = mt_alloc_array(items, sizeof(*h->items));
    h->states = mt_alloc_array(STATES, sizeof(*h->states));
    h->state_slots = mt_alloc_array(STATE_SLOTS, sizeof(*h->state_slots));
    h->rows = mt_alloc_array(STATES * classes, sizeof(*h->rows));
}

static void half_free(half *h)
{
    mt_free(h->stacks);
    mt_free(h->stack_slots);
    mt_free(h->items);
    mt_free(h->states);
    mt_free(h->state_slots);
    mt_free(h->rows);
}

/* Index 0 of stacks is the bottom, of states the dead state. */
static void half_clear(half *h)
{
    memset(h->stack_slots, 0, STACK_SLOTS * sizeof(*h->stack_slots));
    memset(h->state_slots, 0, STATE_SLOTS * sizeof(*h->state_slots));
    h->stacks[0] = (frame){0};
    h->stack_count = 1;
    h->item_count = 0;
    h->states[0] = (state){0};
    h->state_count = 1;
}

/* The stack with one more frame; sets a->full where there is no memory. */
static uint32_t push_frame(mt_automaton *a, uint32_t at, uint32_t count, uint32_t below)
{
    half *h = a->h;
    const uint64_t hash = mix(mix(mix(1, at), count), below);
    uint32_t *slot = &h->stack_slots[hash % STACK_SLOTS];

    for (uint32_t i = *slot; i; i = h->stacks[i - 1].same)
        if (h->stacks[i - 1].at == at && h->stacks[i - 1].count == count && h->stacks[i - 1].below == below)
            return i - 1;
    if (h->stack_count == STACKS) {
        fill(a, MT_LACK_STACKS);
        return 0;
    }
    h->stacks[h->stack_count] =
        (frame){.at = at, .count = count, .below = below, .depth = h->stacks[below].depth + 1, .same = *slot};
    *slot = h->stack_count + 1;
    return h->stack_count++;
}

static void visit(mt_automaton *a, uint32_t at, uint32_t stack)
{
    const place wanted = {at, stack};
    const mt_instruction *in = mt_program_at(a->p, at); /* within a text no frames are needed */
    uint32_t slot = (uint32_t)mix(mix(2, at), stack) & (a->slots - 1);

    if (in && (uint64_t)a->h->stacks[stack].depth + in->height > MT_LIMIT_GRAMMAR_FRAMES)
        return;
    for (; a->seen_round[slot] == a->round; slot = (slot + 1) & (a->slots - 1))
        if (a->seen[slot].at == at && a->seen[slot].stack == stack)
            return;
    if (a->work++ >= MT_LIMIT_AUTOMATON_WORK)
        fill(a, MT_LACK_WORK);
    if (a->work >= a->look) {
        a->look = a->work + LOOK;
        if (mt_patience_over(a->patience))
            fill(a, MT_LACK_STOPPED);
    }
    if (a->seen_count == a->places)
        fill(a, MT_LACK_PLACES);
    if (a->full)
        return;
    a->seen[slot] = wanted;
    a->seen_round[slot] = a->round;
    a->seen_count++;
    a->todo[a->todo_count++] = wanted;
}

static void note_plain(mt_automaton *a, uint32_t characters)
{
    if (characters > a->plain)
        a->plain = characters;
}

/* A repetition has had `count` rounds: begins another, or goes on, or both. */
static void enter_repeat(mt_automaton *a, uint32_t at, uint32_t count, uint32_t below)
{
    const mt_instruction *in = &a->p->code[at];

    if (count < in->c) {
        const uint32_t stack = push_frame(a, at, count, below);

        if (a->full)
            return;
        visit(a, in->a, stack);
        if (in->plain)
            note_plain(a, in->c == MT_GRAMMAR_UNLIMITED ? MT_STATE_BOUNDLESS : in->c - count);
    }
    if (count >= in->b)
        visit(a, in->next, below);
}

/* Whether a frame belongs to a repetition; else to a call. */
static bool repeats(const mt_automaton *a, const frame *f)
{
    return f->at != 0 && f->count != CALLED && a->p->code[f->at].op == MT_OP_REPEAT;
}

/* Returns from a rule or a repetition's body: goes on behind the call, or with another round. */
static void leave(mt_automaton *a, uint32_t stack)
{
    const frame f = a->h->stacks[stack];
    const mt_instruction *in = &a->p->code[f.at];
    uint32_t count = f.count + 1;

    if (stack == 0) {
        a->accepts = true;
        return;
    }
    if (!repeats(a, &f)) {
        visit(a, f.at, f.below);
        return;
    }
    if (in->c == MT_GRAMMAR_UNLIMITED && count > in->b)
        count = in->b;
    enter_repeat(a, f.at, count, f.below);
}

static void follow(mt_automaton *a, place from)
{
    const mt_instruction *in = mt_program_at(a->p, from.at);

    if (!in) {
        a->found[a->found_count++] = from;
        return;
    }
    switch ((mt_op)in->op) {
    case MT_OP_RETURN: leave(a, from.stack); break;
    case MT_OP_BYTE:
    case MT_OP_TEXT:
    case MT_OP_TOKEN: a->found[a->found_count++] = from; break;
    case MT_OP_CALL: {
        /* a call at the end of a rule needs no frame, so right recursion does not grow the stack */
        const uint32_t stack = in->next == 0 ? from.stack : push_frame(a, in->next, CALLED, from.stack);

        if (!a->full)
            visit(a, in->a, stack);
        break;
    }
    case MT_OP_REPEAT: enter_repeat(a, from.at, 0, from.stack); break;
    case MT_OP_FORK:
        if (in->plain)
            note_plain(a, MT_STATE_BOUNDLESS);
        for (uint32_t i = 0; i < in->b; i++)
            visit(a, a->p->targets[in->a + i], from.stack);
        break;
    case MT_OP_FREE:
        note_plain(a, MT_STATE_BOUNDLESS);
        visit(a, in->next, from.stack);
        break;
    }
}

static void begin_state(mt_automaton *a)
{
    a->round++;
    if (a->round == 0) {
        memset(a->seen_round, 0, a->slots * sizeof(*a->seen_round));
        a->round = 1;
    }
    a->found_count = a->todo_count = a->seen_count = a->plain = 0;
    a->accepts = a->full = false;
}

static int by_place(const void *x, const void *y)
{
    const place *a = x, *b = y;

    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return (a->stack > b->stack) - (a->stack < b->stack);
}

static bool same_state(const mt_automaton *a, const state *s)
{
    return s->count == a->found_count && s->accepts == a->accepts && s->plain == a->plain &&
           memcmp(a->h->items + s->begin, a->found, a->found_count * sizeof(*a->found)) == 0;
}

/* The number of the state with the places that were found. */
static mt_automaton_state intern(mt_automaton *a)
{
    half *h = a->h;
    uint64_t hash = mix(mix(3, a->accepts), a->plain);
    uint32_t *slot;

    if (a->found_count == 0 && !a->accepts)
        return MT_STATE_DEAD;
    qsort(a->found, a->found_count, sizeof(*a->found), by_place);
    for (uint32_t i = 0; i < a->found_count; i++)
        hash = mix(mix(hash, a->found[i].at), a->found[i].stack);
    slot = &h->state_slots[hash % STATE_SLOTS];
    for (uint32_t i = *slot; i; i = h->states[i - 1].same)
        if (same_state(a, &h->states[i - 1]))
            return i - 1;
    if (h->state_count == STATES)
        return fill(a, MT_LACK_STATES);
    if (h->item_count + a->found_count > a->items)
        return fill(a, MT_LACK_ITEMS);
    memcpy(h->items + h->item_count, a->found, a->found_count * sizeof(*a->found));
    h->states[h->state_count] = (state){.begin = h->item_count,
                                        .count = a->found_count,
                                        .plain = a->plain,
                                        .accepts = a->accepts,
                                        .alike = NOT_YET,
                                        .slot = (uint32_t)(slot - h->state_slots),
                                        .same = *slot};
    memset(h->rows + (size_t)h->state_count * a->p->class_count, 0xff, a->p->class_count * sizeof(*h->rows));
    h->item_count += a->found_count;
    *slot = h->state_count + 1;
    return h->state_count++;
}

static mt_automaton_state finish_state(mt_automaton *a)
{
    while (a->todo_count > 0 && !a->full)
        follow(a, a->todo[--a->todo_count]);
    return a->full ? MT_STATE_UNKNOWN : intern(a);
}

/* The widest fork of the program tells how many places one state may need at least. */
static uint32_t places_of(const mt_program *program)
{
    uint32_t places = PLACES_LEAST;

    while (places < MT_LIMIT_AUTOMATON_PLACES && places < 2 * (uint64_t)program->widest)
        places *= 2;
    return places;
}

static size_t items_of(uint32_t places)
{
    return PLACES_ITEMS * (size_t)places;
}

mt_automaton *mt_automaton_new(const mt_program *program, const mt_patience *patience)
{
    mt_automaton *a = mt_alloc(sizeof(*a));

    a->p = program;
    a->patience = patience;
    a->kept = UINT32_MAX;
    a->places = places_of(program);
    a->items = (uint32_t)items_of(a->places);
    a->slots = 2 * a->places;
    a->found = mt_alloc_array(a->places, sizeof(*a->found));
    a->todo = mt_alloc_array(a->places, sizeof(*a->todo));
    a->seen = mt_alloc_array(a->slots, sizeof(*a->seen));
    a->seen_round = mt_alloc_array(a->slots, sizeof(*a->seen_round));
    half_init(&a->halves[0], program->class_count, a->items);
    half_init(&a->halves[1], program->class_count, a->items);
    a->h = &a->halves[0];
    half_clear(a->h);
    begin_state(a);
    visit(a, program->start, 0);
    a->start = finish_state(a);
    return a;
}

void mt_automaton_free(mt_automaton *a)
{
    if (!a)
        return;
    half_free(&a->halves[0]);
    half_free(&a->halves[1]);
    mt_free(a->found);
    mt_free(a->todo);
    mt_free(a->seen);
    mt_free(a->seen_round);
    mt_free(a);
}

mt_automaton_lack mt_automaton_lacks(const mt_automaton *a, uint32_t *most)
{
    const uint32_t limits[] = {
        [MT_LACK_STATES] = STATES, [MT_LACK_PLACES] = a->places, [MT_LACK_ITEMS] = a->items,
        [MT_LACK_STACKS] = STACKS, [MT_LACK_STOPPED] = 0,        [MT_LACK_WORK] = MT_LIMIT_AUTOMATON_WORK};

    *most = limits[a->lack];
    return a->lack;
}

void mt_automaton_settle(mt_automaton *a)
{
    a->patience = NULL;
}

void mt_automaton_rest(mt_automaton *a)
{
    a->work = a->look = 0;
}

mt_automaton_state mt_automaton_start(const mt_automaton *a)
{
    return a->start;
}

static mt_automaton_state step(mt_automaton *a, mt_automaton_state from, unsigned class)
{
    const state *s = &a->h->states[from];
    const uint8_t byte = a->p->class_byte[class];

    begin_state(a);
    a->work += s->count / GLANCES; /* most places do not read this byte and cost little, but not nothing */
    for (uint32_t i = 0; i < s->count && !a->full; i++) {
        const place at = a->h->items[s->begin + i];

        if (mt_program_reads(a->p, at.at, byte))
            visit(a, mt_program_behind(a->p, at.at), at.stack);
    }
    return finish_state(a);
}

mt_automaton_state mt_automaton_byte(mt_automaton *a, mt_automaton_state from, unsigned char byte)
{
    const unsigned class = a->p->class_of[byte];
    uint32_t *cell = &a->h->rows[(size_t)from * a->p->class_count + class];
    mt_automaton_state next;

    if (from == MT_STATE_DEAD || *cell != NOT_YET)
        return from == MT_STATE_DEAD ? MT_STATE_DEAD : *cell;
    next = step(a, from, class);
    if (next < a->kept) /* UNKNOWN equals NOT_YET, so it is tried again */
        *cell = next;
    return next;
}

mt_automaton_mark mt_automaton_here(const mt_automaton *a)
{
    return (mt_automaton_mark){a->h->state_count, a->h->stack_count};
}

void mt_automaton_walk(mt_automaton *a)
{
    a->kept = UINT32_MAX;
    a->base = (mt_automaton_mark){a->h->state_count + STATES / WALK_STATES, a->h->stack_count + STACKS / WALK_REST};
    a->base_items = a->h->item_count + a->items / WALK_REST;
}

/* Removes the last states and frames, each of which is the first in its hash list. */
static void shrink(half *h, mt_automaton_mark to)
{
    while (h->state_count > to.states) {
        const state *s = &h->states[--h->state_count];

        h->state_slots[s->slot] = s->same;
        h->item_count = s->begin;
    }
    while (h->stack_count > to.stacks) {
        const frame *f = &h->stacks[--h->stack_count];

        h->stack_slots[mix(mix(mix(1, f->at), f->count), f->below) % STACK_SLOTS] = f->same;
    }
}

void mt_automaton_back(mt_automaton *a, mt_automaton_mark to)
{
    const half *h = a->h;

    if (a->kept == UINT32_MAX) {
        if (h->state_count < a->base.states && h->stack_count < a->base.stacks && h->item_count < a->base_items)
            return;
        a->base = mt_automaton_here(a);
        a->kept = a->base.states;
    }
    to.states = to.states > a->base.states ? to.states : a->base.states;
    to.stacks = to.stacks > a->base.stacks ? to.stacks : a->base.stacks;
    shrink(a->h, to);
}

void mt_automaton_walked(mt_automaton *a)
{
    if (a->kept != UINT32_MAX)
        shrink(a->h, a->base);
    a->kept = UINT32_MAX;
}

mt_automaton_state mt_automaton_token(mt_automaton *a, mt_automaton_state from, uint32_t id)
{
    const state *s = &a->h->states[from];

    begin_state(a);
    for (uint32_t i = 0; i < s->count && !a->full; i++) {
        const place at = a->h->items[s->begin + i];
        const mt_instruction *in = mt_program_at(a->p, at.at);

        if (in && in->op == MT_OP_TOKEN && in->a == id)
            visit(a, in->next, at.stack);
    }
    return finish_state(a);
}

bool mt_automaton_accepts(const mt_automaton *a, mt_automaton_state at)
{
    return a->h->states[at].accepts;
}

bool mt_automaton_open(const mt_automaton *a, mt_automaton_state at)
{
    return a->h->states[at].count > 0;
}

uint32_t mt_automaton_plain(const mt_automaton *a, mt_automaton_state at)
{
    return a->h->states[at].plain;
}

/* Whether a place may read a byte of the set. */
static bool reads_any(const mt_automaton *a, uint32_t at, const mt_byteset *set)
{
    const mt_instruction *in = mt_program_at(a->p, at);
    uint32_t text;

    if (mt_program_text(a->p, at, &text))
        return mt_byteset_has(set, a->p->text[text] & 0xff);
    for (size_t k = 0; in->op == MT_OP_BYTE && k < 4; k++)
        if (a->p->sets[in->a].bits[k] & set->bits[k])
            return true;
    return false;
}

bool mt_automaton_others(const mt_automaton *a, mt_automaton_state at, const mt_byteset *set)
{
    const state *s = &a->h->states[at];

    for (uint32_t i = 0; i < s->count; i++) {
        const place from = a->h->items[s->begin + i];
        const frame *top = &a->h->stacks[from.stack];
        const mt_instruction *in = mt_program_at(a->p, from.at);
        const bool counted = in && in->plain && repeats(a, top) && a->p->code[top->at].plain;

        if (!counted && reads_any(a, from.at, set))
            return true;
    }
    return false;
}

bool mt_automaton_tokens(const mt_automaton *a, mt_automaton_state at, size_t index, uint32_t *id)
{
    const state *s = &a->h->states[at];

    for (uint32_t i = 0; i < s->count; i++) {
        const mt_instruction *in = mt_program_at(a->p, a->h->items[s->begin + i].at);

        if (!in || in->op != MT_OP_TOKEN || index-- > 0)
            continue;
        *id = in->a;
        return true;
    }
    return false;
}

/* A count that allows the same numbers of further rounds, up to `bytes`. */
static uint32_t alike_count(const mt_instruction *in, uint32_t count, uint32_t bytes)
{
    if (in->op != MT_OP_REPEAT || count == CALLED)
        return count;
    if (count < in->b)
        return in->b - count > bytes ? 0 : count;
    if (in->c == MT_GRAMMAR_UNLIMITED || in->c - count <= bytes)
        return count;
    return in->b;
}

static uint32_t alike_stack(mt_automaton *a, uint32_t stack, uint32_t bytes)
{
    const frame f = a->h->stacks[stack];
    uint32_t below, count;

    if (stack == 0)
        return 0;
    below = alike_stack(a, f.below, bytes);
    count = alike_count(&a->p->code[f.at], f.count, bytes);
    return below == f.below && count == f.count ? stack : push_frame(a, f.at, count, below);
}

mt_automaton_state mt_automaton_alike(mt_automaton *a, mt_automaton_state from, uint32_t bytes)
{
    state *s = &a->h->states[from];
    mt_automaton_state made;
    uint64_t frames = 0;

    if (s->alike != NOT_YET)
        return s->alike;
    for (uint32_t i = 0; i < s->count; i++)
        frames += a->h->stacks[a->h->items[s->begin + i].stack].depth;
    if (frames > ALIKE_FRAMES)
        s->alike = from;
    if (frames > ALIKE_FRAMES)
        return from;
    begin_state(a);
    a->accepts = s->accepts;
    a->plain = s->plain > bytes ? MT_STATE_BOUNDLESS : s->plain;
    for (uint32_t i = 0; i < s->count && !a->full; i++) {
        const place at = a->h->items[s->begin + i];

        a->found[a->found_count++] = (place){at.at, alike_stack(a, at.stack, bytes)};
    }
    made = a->full ? MT_STATE_UNKNOWN : intern(a);
    s->alike = made == MT_STATE_UNKNOWN ? from : made;
    return s->alike;
}

/* Copies a stack from the other half, once. */
static uint32_t carry_stack(mt_automaton *a, half *old, uint32_t stack)
{
    frame *f = &old->stacks[stack];
    uint32_t to;

    if (stack == 0 || a->full)
        return 0;
    if (f->depth == CARRIED)
        return f->same;
    to = push_frame(a, f->at, f->count, carry_stack(a, old, f->below));
    if (!a->full) {
        f->depth = CARRIED;
        f->same = to;
    }
    return to;
}

/* Copies a state from the other half, once; returns its new number. */
static mt_automaton_state carry(mt_automaton *a, half *old, mt_automaton_state from)
{
    state *s = &old->states[from];
    mt_automaton_state made;

    if (s->slot == CARRIED)
        return s->same;
    begin_state(a);
    a->accepts = s->accepts;
    a->plain = s->plain;
    for (uint32_t i = 0; i < s->count && !a->full; i++) {
        const place at = old->items[s->begin + i];

        a->found[a->found_count++] = (place){at.at, carry_stack(a, old, at.stack)};
    }
    made = a->full ? MT_STATE_UNKNOWN : intern(a);
    s->slot = CARRIED;
    s->same = made == MT_STATE_UNKNOWN ? MT_STATE_DEAD : made;
    return s->same;
}

void mt_automaton_collect(mt_automaton *a, mt_automaton_state *const *kept, size_t count)
{
    half *old = a->h;

    a->h = &a->halves[a->h == &a->halves[0]];
    half_clear(a->h);
    a->epoch++;
    a->start = carry(a, old, a->start);
    for (size_t i = 0; i < count; i++)
        *kept[i] = carry(a, old, *kept[i]);
}

uint64_t mt_automaton_epoch(const mt_automaton *a)
{
    return a->epoch;
}

size_t mt_automaton_bytes(const mt_program *program)
{
    const size_t places = places_of(program), classes = program->class_count;
    const size_t one = 2 * sizeof(place) + 2 * (sizeof(place) + sizeof(uint32_t));

    return sizeof(mt_automaton) + places * one +
           2 * (STACKS * sizeof(frame) + items_of((uint32_t)places) * sizeof(place) + STATES * sizeof(state) +
                (STACK_SLOTS + STATE_SLOTS + STATES * classes) * sizeof(uint32_t));
}
