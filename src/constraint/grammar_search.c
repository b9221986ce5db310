/* Texts with and without markers (mt_grammar_until), as right-linear rules: one for each prefix of a marker that the
   text may end with. They are found by the algorithm of Aho and Corasick, so that one state follows all markers at
   once. */
#include "constraint/grammar.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "constraint/limits.h"

enum { NO_MARKER, FIRST_MARKER, OTHER_MARKER };

/* The automaton of Aho and Corasick over classes of bytes. */
typedef struct search {
    uint8_t class_of[256]; /* 0: bytes that occur in no marker */
    unsigned classes;
    size_t count;   /* prefixes of markers, the empty one first */
    uint16_t *go;   /* [count][classes]: the longest prefix that the text ends with after another byte */
    uint16_t *own;  /* [count]: the longest shorter prefix that this one ends with */
    uint8_t *whole; /* [count]: whether it ends with a marker */
} search;

static uint16_t *cell(const search *s, size_t at, unsigned class)
{
    return &s->go[at * s->classes + class];
}

static void add_classes(search *s, const char *marker)
{
    for (; *marker; marker++)
        if (s->class_of[(unsigned char)*marker] == 0)
            s->class_of[(unsigned char)*marker] = (uint8_t)s->classes++;
}

static void add_marker(search *s, const char *marker, uint8_t which)
{
    size_t at = 0;

    for (; *marker; marker++) {
        uint16_t *next = cell(s, at, s->class_of[(unsigned char)*marker]);

        if (*next == 0)
            *next = (uint16_t)s->count++;
        at = *next;
    }
    s->whole[at] = s->whole[at] ? s->whole[at] : which;
}

/* Breadth first: for a byte that does not continue a prefix, its longest suffix that is a prefix decides. */
static void connect(search *s)
{
    uint16_t *queue = mt_alloc_array(s->count, sizeof(*queue));
    size_t first = 0, last = 1; /* the empty prefix is in the queue */

    for (; first < last; first++) {
        const size_t at = queue[first];

        if (!s->whole[at])
            s->whole[at] = s->whole[s->own[at]];
        for (unsigned c = 0; c < s->classes; c++) {
            const uint16_t shorter = at ? *cell(s, s->own[at], c) : 0;
            uint16_t *next = cell(s, at, c);

            if (*next == 0) {
                *next = shorter;
                continue;
            }
            s->own[*next] = shorter;
            queue[last++] = *next;
        }
    }
    mt_free(queue);
}

static mt_byteset bytes_of(const search *s, size_t from, size_t to)
{
    mt_byteset set = {0};

    for (unsigned b = 0; b < 256; b++)
        if (*cell(s, from, s->class_of[b]) == to)
            mt_byteset_add(&set, b, b);
    return set;
}

/* Whether any number of plain characters leads to a state without a begun marker. */
static bool is_loose(const search *s, size_t at)
{
    for (unsigned b = 0; b < 256; b++)
        if (mt_plain_byte((unsigned char)b) && (*cell(s, at, s->class_of[b]) || *cell(s, 0, s->class_of[b])))
            return false;
    return true;
}

/* ends: the text has no marker and may end anywhere; else it ends with the first marker and has none of the others. */
static mt_expr write_rule(mt_grammar *g, const search *s, mt_rule first, size_t at, bool ends)
{
    mt_expr *parts = mt_alloc_array(s->classes + 1, sizeof(*parts)), any;
    size_t count = 0;

    for (unsigned c = 0; c < s->classes; c++) {
        const uint16_t to = *cell(s, at, c);
        bool seen = false;
        mt_byteset set;

        for (unsigned d = 0; d < c && !seen; d++)
            seen = *cell(s, at, d) == to;
        if (seen || s->whole[to] == OTHER_MARKER || (ends && s->whole[to]))
            continue;
        set = bytes_of(s, at, to);
        parts[count++] = mt_grammar_seq(g, mt_grammar_bytes(g, &set),
                                        s->whole[to] ? mt_grammar_empty(g) : mt_grammar_call(g, first + to));
    }
    if (ends)
        parts[count++] = mt_grammar_empty(g);
    any = mt_grammar_any(g, parts, count);
    mt_free(parts);
    return is_loose(s, at) ? mt_grammar_loose(g, any) : any;
}

static mt_expr write_rules(mt_grammar *g, const search *s, bool ends)
{
    const mt_rule first = (mt_rule)g->rule_count;

    for (size_t i = 0; i < s->count; i++)
        mt_grammar_rule(g);
    for (size_t i = 0; i < s->count && !g->full; i++)
        if (!s->whole[i])
            mt_grammar_define(g, first + (mt_rule)i, write_rule(g, s, first, i, ends));
    return mt_grammar_call(g, first);
}

/* Builds the search and writes its rules. */
static mt_expr write(mt_grammar *g, const char *const *markers, size_t count, bool ends)
{
    search s = {.classes = 1, .count = 1};
    size_t most = 1;
    mt_expr e;

    for (size_t i = 0; i < count; i++) {
        assert(markers[i][0]);
        add_classes(&s, markers[i]);
        most += strlen(markers[i]);
    }
    if (most > MT_LIMIT_GRAMMAR_SEARCH) {
        mt_grammar_fill(g, "bytes of markers that are looked for", MT_LIMIT_GRAMMAR_SEARCH);
        return mt_grammar_never(g);
    }
    s.go = mt_alloc_array(most * s.classes, sizeof(*s.go));
    s.own = mt_alloc_array(most, sizeof(*s.own));
    s.whole = mt_alloc_array(most, sizeof(*s.whole));
    for (size_t i = 0; i < count; i++)
        add_marker(&s, markers[i], i ? OTHER_MARKER : FIRST_MARKER);
    connect(&s);
    e = write_rules(g, &s, ends);
    mt_free(s.go);
    mt_free(s.own);
    mt_free(s.whole);
    return e;
}

mt_expr mt_grammar_until(mt_grammar *g, const char *const *markers, size_t count)
{
    return write(g, markers, count, false);
}

mt_expr mt_grammar_without(mt_grammar *g, const char *const *markers, size_t count)
{
    return write(g, markers, count, true);
}
