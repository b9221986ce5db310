/* Works limits on the length into the repetitions of an expression (mt_regex_fit): so no automaton has to count
   characters, and limits of many thousands cost nothing. Exact where only one repetition varies; else each part gets a
   share of the length, and texts whose parts have very different lengths are lost. */
#include "constraint/regex.h"

#include <string.h>

#define UNLIMITED MT_GRAMMAR_UNLIMITED

enum { ROUNDS = 8 }; /* limit for an unlimited repetition of something without limit */

typedef struct fitter {
    mt_arena *arena;
    bool narrow;
} fitter;

static mt_regex *copy(fitter *f, const mt_regex *node)
{
    mt_regex *made = mt_arena_alloc(f->arena, sizeof(*made));

    *made = *node;
    if (node->kind != MT_REGEX_SET && node->count) {
        made->parts = mt_arena_alloc(f->arena, node->count * sizeof(*made->parts));
        memcpy(made->parts, node->parts, node->count * sizeof(*made->parts));
    }
    return made;
}

static mt_regex *never(fitter *f)
{
    mt_regex *made = mt_arena_alloc(f->arena, sizeof(*made));

    *made = (mt_regex){.kind = MT_REGEX_SET, .ranges = mt_arena_alloc(f->arena, sizeof(mt_char_range))};
    return made;
}

static const mt_regex *fit(fitter *f, const mt_regex *node, uint32_t least, uint32_t most);

static const mt_regex *fit_any(fitter *f, const mt_regex *node, uint32_t least, uint32_t most)
{
    mt_regex *made = copy(f, node);

    for (size_t i = 0; i < node->count; i++) {
        const mt_regex *part = fit(f, node->parts[i], least, most);

        if (!part)
            return NULL;
        made->parts[i] = (mt_regex *)part;
    }
    return made;
}

/* Limits the rounds of a repetition. */
static const mt_regex *fit_repeat(fitter *f, const mt_regex *node, uint32_t least, uint32_t most)
{
    mt_regex *made = copy(f, node);
    uint32_t low, high, rounds;

    mt_regex_length(node->parts[0], &low, &high);
    if (low == high && low > 0) {
        const uint32_t from = least / low + (least % low != 0), to = most == UNLIMITED ? UNLIMITED : most / low;

        made->least = from > node->least ? from : node->least;
        made->most = to < node->most ? to : node->most;
        return made->least > made->most ? never(f) : made;
    }
    if (!f->narrow || least > 0 || most == UNLIMITED || (uint64_t)low * node->least > most)
        return NULL;
    rounds = high == UNLIMITED || high == 0 ? ROUNDS : most / high;
    rounds = rounds < node->least ? node->least : rounds > node->most ? node->most : rounds;
    if (low && rounds > most / low)
        rounds = most / low;
    made->most = rounds;
    if (rounds > 0)
        made->parts[0] = (mt_regex *)fit(f, node->parts[0], 0, most / rounds);
    return made->parts[0] ? made : NULL;
}

/* The only part whose length varies gets what the others leave. */
static const mt_regex *fit_one(fitter *f, const mt_regex *node, size_t at, uint32_t fixed, uint32_t least,
                               uint32_t most)
{
    mt_regex *made = copy(f, node);
    const mt_regex *part;

    if (most != UNLIMITED && fixed > most)
        return never(f);
    part = fit(f, node->parts[at], least > fixed ? least - fixed : 0, most == UNLIMITED ? most : most - fixed);
    made->parts[at] = (mt_regex *)part;
    return part ? made : NULL;
}

/* Parts that need less than their share leave the rest to the others. */
static const mt_regex *fit_shares(fitter *f, const mt_regex *node, uint32_t spare)
{
    mt_regex *made = copy(f, node);
    size_t left = 0;
    bool changed = true;
    uint32_t low, high;

    for (size_t i = 0; i < node->count; i++) {
        mt_regex_length(node->parts[i], &low, &high);
        left += low != high;
    }
    while (changed && left > 0) {
        size_t given = 0;
        uint32_t taken = 0;

        for (size_t i = 0; i < node->count; i++) {
            mt_regex_length(made->parts[i], &low, &high);
            if (low == high || high == UNLIMITED || high - low > spare / left || made->parts[i]->aware)
                continue;
            taken += high - low;
            given++;
            made->parts[i] = copy(f, made->parts[i]);
            made->parts[i]->aware = true; /* `aware` marks parts that have their share, until the last loop */
        }
        changed = given > 0;
        left -= given;
        spare -= taken;
    }
    for (size_t i = 0; i < node->count; i++) {
        mt_regex_length(made->parts[i], &low, &high);
        if (made->parts[i]->aware)
            made->parts[i]->aware = false;
        else if (low != high && !(made->parts[i] = (mt_regex *)fit(f, made->parts[i], 0, low + spare / (uint32_t)left)))
            return NULL;
    }
    return made;
}

/* Limits the length of a sequence. */
static const mt_regex *fit_list(fitter *f, const mt_regex *node, uint32_t least, uint32_t most)
{
    uint32_t low, high, total = 0, fixed = 0;
    size_t varying = 0, at = 0;

    for (size_t i = 0; i < node->count; i++) {
        mt_regex_length(node->parts[i], &low, &high);
        total += low;
        if (low == high) {
            fixed += low;
        } else {
            varying++;
            at = i;
        }
    }
    if (varying == 1)
        return fit_one(f, node, at, fixed, least, most);
    if (!f->narrow || most == UNLIMITED || least > total)
        return NULL;
    return total > most ? never(f) : fit_shares(f, node, most - total);
}

/* The node restricted to texts of least to most characters. */
static const mt_regex *fit(fitter *f, const mt_regex *node, uint32_t least, uint32_t most)
{
    uint32_t low, high;

    mt_regex_length(node, &low, &high);
    if (low >= least && high <= most)
        return node;
    if (high < least || low > most)
        return never(f);
    switch (node->kind) {
    case MT_REGEX_ANY: return fit_any(f, node, least, most);
    case MT_REGEX_REPEAT: return fit_repeat(f, node, least, most);
    case MT_REGEX_LIST: return fit_list(f, node, least, most);
    default: return node;
    }
}

const mt_regex *mt_regex_fit(mt_arena *arena, const mt_regex *regex, uint32_t least, uint32_t most, bool narrow)
{
    fitter f = {.arena = arena, .narrow = narrow};

    return regex->aware ? NULL : fit(&f, regex, least, most);
}
