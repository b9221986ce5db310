/* Parses regular expressions (regex.h) by recursive descent, and removes ^ and $ where possible: at the beginning and
   end of an alternative they say whether anything may precede and follow, and are then dropped. An expression that
   still has some, or looks ahead, is aware: only an automaton (regex_all.c) can handle it. */
#include "constraint/regex.h"

#include <string.h>

#include "constraint/limits.h"
#include "constraint/regex_class.h"
#include "text/limits.h"

static mt_regex *make(mt_regex_reader *r, mt_regex_kind kind, size_t parts)
{
    mt_regex *node = mt_arena_alloc(r->arena, sizeof(*node));

    *node = (mt_regex){.kind = kind, .count = parts};
    if (parts)
        node->parts = mt_arena_alloc(r->arena, parts * sizeof(*node->parts));
    return node;
}

static mt_regex *make_set(mt_regex_reader *r, mt_charset *set)
{
    mt_regex *node = make(r, MT_REGEX_SET, 0);
    mt_char_range *ranges = mt_arena_alloc(r->arena, (set->count + 1) * sizeof(*ranges));

    if (set->count)
        memcpy(ranges, set->at, set->count * sizeof(*ranges));
    node->ranges = ranges;
    node->count = set->count;
    mt_charset_free(set);
    return node;
}

static mt_regex *read_any(mt_regex_reader *r);

static mt_regex *make_rest(mt_regex_reader *r);

/* A look-ahead: `inside` and then anything follows. */
static mt_regex *make_look(mt_regex_reader *r, mt_regex *inside, bool inverted)
{
    mt_regex *look = make(r, MT_REGEX_LOOK, 1), *list = make(r, MT_REGEX_LIST, 2);

    list->parts[0] = inside;
    list->parts[1] = make_rest(r);
    look->parts[0] = list;
    look->inverted = inverted;
    r->aware = true;
    return look;
}

/* Reads (?<name>, (?P<name>, (?:, (?= and (?!; *ahead: 1 for (?=, -1 for (?!, else 0. */
static bool read_prefix(mt_regex_reader *r, int *ahead)
{
    *ahead = mt_regex_accept(r, '=') ? 1 : mt_regex_accept(r, '!') ? -1 : 0;
    if (*ahead || mt_regex_accept(r, ':'))
        return true;
    if (mt_regex_accept(r, 'P') || mt_regex_at(r, '<')) {
        const bool named = mt_regex_accept(r, '<') && !mt_regex_at(r, '=') && !mt_regex_at(r, '!');

        while (named && r->at < r->len && !mt_regex_at(r, '>'))
            r->at++;
        if (named && mt_regex_accept(r, '>'))
            return true;
        return mt_regex_fail(r, "looks behind or names a group in an unknown way, which is not supported") != NULL;
    }
    return mt_regex_fail(r, "sets flags, which is not supported") != NULL;
}

/* Called behind "(". */
static mt_regex *read_group(mt_regex_reader *r)
{
    mt_regex *inside;
    int ahead = 0;

    if (mt_regex_accept(r, '?') && !read_prefix(r, &ahead))
        return NULL;
    if (++r->depth > MT_LIMIT_GRAMMAR_NESTING)
        return mt_regex_fail(r, "has too many groups within one another");
    inside = read_any(r);
    r->depth--;
    if (inside && !mt_regex_accept(r, ')'))
        return mt_regex_fail(r, "has a \"(\" without its \")\"");
    return inside && ahead ? make_look(r, inside, ahead < 0) : inside;
}

/* Reads \b and \B, and Python's \A, \Z and \z; NULL: it is something else. */
static mt_regex *read_border(mt_regex_reader *r)
{
    const char c = mt_regex_at(r, '\\') && r->at + 1 < r->len ? r->text[r->at + 1] : '\0';
    mt_regex *border;

    if (!c || !strchr("bBAZz", c))
        return NULL;
    r->at += 2;
    border = make(r, c == 'A' ? MT_REGEX_BEGIN : c == 'Z' || c == 'z' ? MT_REGEX_END : MT_REGEX_BORDER, 0);
    border->inverted = c == 'B';
    r->aware |= border->kind == MT_REGEX_BORDER;
    return border;
}

/* Reads a character, a class, a group or an anchor. */
static mt_regex *read_atom(mt_regex_reader *r)
{
    mt_regex *border = read_border(r);
    mt_charset set = {0};

    if (border)
        return border;
    if (mt_regex_accept(r, '('))
        return read_group(r);
    if (mt_regex_accept(r, '^'))
        return make(r, MT_REGEX_BEGIN, 0);
    if (mt_regex_accept(r, '$'))
        return make(r, MT_REGEX_END, 0);
    if (mt_regex_at(r, '*') || mt_regex_at(r, '+') || mt_regex_at(r, '?'))
        return mt_regex_fail(r, "repeats nothing");
    if (!mt_regex_read_class(r, &set)) {
        mt_charset_free(&set);
        return NULL;
    }
    return make_set(r, &set);
}

static bool read_count(mt_regex_reader *r, uint32_t *out)
{
    const size_t begin = r->at;

    for (*out = 0; r->at < r->len && r->text[r->at] >= '0' && r->text[r->at] <= '9'; r->at++)
        if (*out < MT_LIMIT_GRAMMAR_NODES)
            *out = *out * 10 + (uint32_t)(r->text[r->at] - '0');
    return r->at > begin;
}

/* {2}, {2,} and {2,5}; any other "{" is the character itself. */
static bool read_bounds(mt_regex_reader *r, uint32_t *least, uint32_t *most)
{
    const size_t begin = r->at;

    if (!mt_regex_accept(r, '{'))
        return false;
    if (read_count(r, least)) {
        *most = *least;
        if (mt_regex_accept(r, ',') && !read_count(r, most))
            *most = MT_GRAMMAR_UNLIMITED;
        if (mt_regex_accept(r, '}'))
            return true;
    }
    r->at = begin;
    return false;
}

/* Reads a repetition sign; false where there is none. */
static bool read_quantifier(mt_regex_reader *r, uint32_t *least, uint32_t *most)
{
    *least = 0;
    *most = MT_GRAMMAR_UNLIMITED;
    if (mt_regex_accept(r, '*'))
        return true;
    if (mt_regex_accept(r, '+')) {
        *least = 1;
        return true;
    }
    if (mt_regex_accept(r, '?')) {
        *most = 1;
        return true;
    }
    return read_bounds(r, least, most);
}

/* Groups and lists of one thing are that thing. */
static mt_regex *single(mt_regex *node)
{
    while ((node->kind == MT_REGEX_LIST || node->kind == MT_REGEX_ANY) && node->count == 1)
        node = node->parts[0];
    return node;
}

static mt_regex *read_repeat(mt_regex_reader *r)
{
    mt_regex *atom = read_atom(r), *repeat, *inner;
    uint32_t least, most;

    while (atom && read_quantifier(r, &least, &most)) {
        if (atom->kind == MT_REGEX_BEGIN || atom->kind == MT_REGEX_END || atom->kind == MT_REGEX_BORDER)
            return mt_regex_fail(r, "repeats \"^\", \"$\" or a border of words");
        if (least > most || (most != MT_GRAMMAR_UNLIMITED && most >= MT_LIMIT_GRAMMAR_NODES) ||
            least >= MT_LIMIT_GRAMMAR_NODES)
            return mt_regex_fail(r, "has bounds that are too large, or in the wrong order");
        mt_regex_accept(r, '?'); /* lazy: matches the same texts */
        if (++r->parts > MT_LIMIT_GRAMMAR_NODES)
            return mt_regex_fail(r, "is too long");
        inner = single(atom);
        if (inner->kind == MT_REGEX_REPEAT &&
            mt_repeat_within(inner->least, inner->most, single(inner->parts[0])->kind != MT_REGEX_SET, &least, &most))
            atom = inner->parts[0];
        repeat = make(r, MT_REGEX_REPEAT, 1);
        repeat->parts[0] = atom;
        repeat->least = least;
        repeat->most = most;
        atom = repeat;
    }
    return atom;
}

/* Reads parts up to the end of a list or of alternatives, as a node of that kind. */
static mt_regex *read_parts(mt_regex_reader *r, mt_regex_kind kind)
{
    mt_regex *list[MT_REGEX_CHUNK], *node, *part;
    size_t count = 0;

    while (count < MT_REGEX_CHUNK && r->at < r->len && !mt_regex_at(r, '|') && !mt_regex_at(r, ')')) {
        part = read_repeat(r);
        if (!part)
            return NULL;
        list[count++] = part;
    }
    node = make(r, kind, count + 1);
    memcpy(node->parts, list, count * sizeof(*list));
    node->count = count;
    if (count == MT_REGEX_CHUNK) { /* the rest becomes a list within the list */
        if (++r->depth > MT_LIMIT_GRAMMAR_NESTING)
            return mt_regex_fail(r, "is too long");
        node->parts[node->count] = read_parts(r, kind);
        r->depth--;
        if (!node->parts[node->count++])
            return NULL;
    }
    return node;
}

/* Reads alternatives, separated by "|". */
static mt_regex *read_any(mt_regex_reader *r)
{
    mt_regex *first = read_parts(r, MT_REGEX_LIST), *any = first, *more;
    size_t cap = 1;

    while (any && mt_regex_accept(r, '|')) {
        more = read_parts(r, MT_REGEX_LIST);
        if (!more)
            return NULL;
        if (any == first || any->count == cap) {
            mt_regex *wider = make(r, MT_REGEX_ANY, 2 * cap + 2);

            wider->count = any == first ? 1 : any->count;
            memcpy(wider->parts, any == first ? &first : any->parts, wider->count * sizeof(*wider->parts));
            cap = 2 * cap + 2;
            any = wider;
        }
        any->parts[any->count++] = more;
    }
    return any;
}

/* Any text. */
static mt_regex *make_rest(mt_regex_reader *r)
{
    mt_charset all = {0};
    mt_regex *repeat = make(r, MT_REGEX_REPEAT, 1);

    mt_charset_add(&all, 0, MT_CHAR_MAX);
    repeat->parts[0] = make_set(r, &all);
    repeat->most = MT_GRAMMAR_UNLIMITED;
    return repeat;
}

static bool has_anchor(const mt_regex *node)
{
    if (node->kind == MT_REGEX_BEGIN || node->kind == MT_REGEX_END)
        return true;
    if (node->kind == MT_REGEX_SET)
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (has_anchor(node->parts[i]))
            return true;
    return false;
}

/* Removes the anchors of an expression that has to match a whole text, where possible. */
static mt_regex *anchor(mt_regex_reader *r, mt_regex *node, bool search)
{
    size_t begin = 0, end = node->count, at = 0;
    mt_regex *list;

    if (node->kind == MT_REGEX_ANY) {
        for (size_t i = 0; i < node->count; i++)
            node->parts[i] = anchor(r, node->parts[i], search);
        return node;
    }
    if (node->kind == MT_REGEX_LIST && node->count == 1 &&
        (node->parts[0]->kind == MT_REGEX_LIST || node->parts[0]->kind == MT_REGEX_ANY))
        return anchor(r, node->parts[0], search);
    while (node->kind == MT_REGEX_LIST && begin < end && node->parts[begin]->kind == MT_REGEX_BEGIN)
        begin++;
    while (node->kind == MT_REGEX_LIST && begin < end && node->parts[end - 1]->kind == MT_REGEX_END)
        end--;
    list = make(r, MT_REGEX_LIST, node->count + 2);
    if (search && begin == 0)
        list->parts[at++] = make_rest(r);
    for (size_t i = begin; node->kind == MT_REGEX_LIST && i < end; i++)
        list->parts[at++] = node->parts[i];
    if (node->kind != MT_REGEX_LIST)
        list->parts[at++] = node;
    if (search && end == node->count)
        list->parts[at++] = make_rest(r);
    list->count = at;
    r->aware |= has_anchor(list);
    return list;
}

mt_regex *mt_regex_read(mt_arena *arena, const char *text, size_t len, bool search, mt_error *err)
{
    mt_regex_reader r = {.arena = arena, .text = text, .len = len, .err = err};
    mt_regex *node;

    if (len > MT_LIMIT_REGEX)
        return mt_regex_fail(&r, "is too long");
    node = read_any(&r);
    if (node && r.at < r.len)
        return mt_regex_fail(&r, "has a \")\" without its \"(\"");
    if (!node)
        return NULL;
    node = anchor(&r, node, search);
    node->aware = r.aware;
    return node;
}

static uint32_t times(uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return 0;
    return a == MT_GRAMMAR_UNLIMITED || b == MT_GRAMMAR_UNLIMITED || a > (MT_GRAMMAR_UNLIMITED - 1) / b
               ? MT_GRAMMAR_UNLIMITED
               : a * b;
}

static uint32_t plus(uint32_t a, uint32_t b)
{
    return a > MT_GRAMMAR_UNLIMITED - b ? MT_GRAMMAR_UNLIMITED : a + b;
}

void mt_regex_length(const mt_regex *node, uint32_t *least, uint32_t *most)
{
    uint32_t low, high;

    *least = *most = node->kind == MT_REGEX_SET;
    if (node->kind == MT_REGEX_SET)
        return;
    for (size_t i = 0; i < node->count; i++) {
        mt_regex_length(node->parts[i], &low, &high);
        if (node->kind == MT_REGEX_ANY) {
            *least = i == 0 || low < *least ? low : *least;
            *most = high > *most ? high : *most;
        } else {
            *least = plus(*least, low);
            *most = plus(*most, high);
        }
    }
    if (node->kind == MT_REGEX_REPEAT) {
        *least = times(*least, node->least);
        *most = times(*most, node->most);
    }
}

static mt_expr repeat(const mt_regex *node, mt_grammar *g, mt_char_writer *write)
{
    const mt_regex *what = node->parts[0];
    const mt_expr body = mt_regex_expr(what, g, write);

    if (what->kind == MT_REGEX_SET && mt_char_ranges_plain(what->ranges, what->count))
        return mt_grammar_repeat_plain(g, body, node->least, node->most);
    return mt_grammar_repeat(g, body, node->least, node->most);
}

mt_expr mt_regex_expr(const mt_regex *node, mt_grammar *g, mt_char_writer *write)
{
    mt_expr list[MT_REGEX_CHUNK + 2], all = mt_grammar_empty(g);
    size_t count = 0;
    bool any = node->kind == MT_REGEX_ANY;

    if (node->kind == MT_REGEX_SET)
        return write(g, node->ranges, node->count);
    if (node->kind == MT_REGEX_REPEAT)
        return repeat(node, g, write);
    if (any)
        all = mt_grammar_never(g);
    for (size_t i = 0; i < node->count; i++) {
        list[count++] = mt_regex_expr(node->parts[i], g, write);
        if (count < MT_REGEX_CHUNK && i + 1 < node->count)
            continue;
        all = any ? mt_grammar_or(g, all, mt_grammar_any(g, list, count))
                  : mt_grammar_seq(g, all, mt_grammar_list(g, list, count));
        count = 0;
    }
    return all;
}
