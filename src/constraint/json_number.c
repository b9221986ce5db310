/* Numbers within bounds and multiples (json_number.h): an automaton reads them digit by digit. Its state has how the
   digits so far compare with each bound's, the number of digits, and the remainder of the division. Each state becomes
   a rule: a character, then the rule of the state that it leads to; or nothing, where the number may end. */
#include "constraint/json_number.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* A parser that reads numbers as doubles must not round them past a bound: numbers with a fraction have at most
   PRECISION digits. STATES: most states of a machine. */
enum { PRECISION = 15, STATES = 16384 };
/* How a number compares with a bound, by magnitude. */
enum { LESS, SAME, MORE };
/* What was read last, in the order in which it comes; ZERO: a single 0 before the point, after which no digit comes. */
enum { START, MINUS, ZERO, WHOLE, POINT, FRACTION };

/* What is known of the number behind the characters read so far. */
typedef struct state {
    uint32_t left;                      /* remainder of the digits so far, divided by mt_number.divisor */
    uint8_t phase;                      /* START to FRACTION */
    uint8_t whole, fraction;            /* number of digits before the point, until it comes, and behind it */
    uint8_t room;                       /* most digits behind the point; set when it comes */
    bool negative, some, broken;        /* some: a digit other than zero came; broken: one behind the point */
    uint8_t compared[MT_NUMBER_BOUNDS]; /* with each bound, as far as digits have come */
} state;

/* All states that were found, with their rules. */
typedef struct machine {
    const mt_number *n;
    mt_grammar *g;
    state *states;
    mt_rule *rules;
    size_t count, cap; /* of states and of rules */
    uint32_t *slots;   /* hash table: 1 + the number of a state; 0: empty */
    bool full;         /* there would be more than STATES */
} machine;

bool mt_decimal_read(const char *text, mt_decimal *out)
{
    char digits[400];
    long point = -1, exponent = 0, first, last;
    size_t count = 0;

    *out = (mt_decimal){.negative = *text == '-'};
    text += *text == '-' || *text == '+';
    for (; (*text >= '0' && *text <= '9') || *text == '.'; text++) {
        if (*text == '.')
            point = (long)count;
        else if (count < sizeof(digits))
            digits[count++] = *text;
        else
            return false;
    }
    if (*text == 'e' || *text == 'E')
        exponent = strtol(text + 1, NULL, 10);
    if (point < 0)
        point = (long)count;
    if (exponent > 1000 || exponent < -1000)
        return false;
    point += exponent;
    /* digits [first, last) are what is left without zeros on both sides */
    for (first = 0; first < (long)count && digits[first] == '0'; first++)
        continue;
    for (last = (long)count; last > first && digits[last - 1] == '0'; last--)
        continue;
    if (first == last) {
        out->negative = false;
        return true;
    }
    if (point - first > MT_DECIMAL_DIGITS || last - point > MT_DECIMAL_DIGITS)
        return false;
    for (long i = first < point ? first : point; i < (last > point ? last : point); i++) {
        const char digit = i < first || i >= last ? '0' : digits[i];

        if (i < point)
            out->whole[out->whole_count++] = digit;
        else
            out->fraction[out->fraction_count++] = digit;
    }
    return true;
}

/* Compares from the first digit on; zeros follow the last. */
static int compare_digits(const char *a, size_t a_count, const char *b, size_t b_count)
{
    for (size_t i = 0; i < a_count || i < b_count; i++) {
        const int x = i < a_count ? a[i] : '0', y = i < b_count ? b[i] : '0';

        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

int mt_decimal_compare(const mt_decimal *a, const mt_decimal *b)
{
    const int sign = a->negative ? -1 : 1;
    int whole;

    if (a->negative != b->negative)
        return sign;
    if (a->whole_count != b->whole_count)
        return a->whole_count < b->whole_count ? -sign : sign;
    whole = compare_digits(a->whole, a->whole_count, b->whole, b->whole_count);
    return sign * (whole ? whole : compare_digits(a->fraction, a->fraction_count, b->fraction, b->fraction_count));
}

/* The number of a state, which gets a rule when it is new. */
static uint32_t intern(machine *m, const state *s)
{
    uint64_t hash = 1;
    const unsigned char *bytes = (const unsigned char *)s;
    size_t slot, cap = m->cap;

    for (size_t i = 0; i < sizeof(*s); i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
    for (slot = hash % (2 * STATES); m->slots[slot]; slot = (slot + 1) % (2 * STATES))
        if (memcmp(&m->states[m->slots[slot] - 1], s, sizeof(*s)) == 0)
            return m->slots[slot] - 1;
    if (m->count == STATES) {
        m->full = true;
        return 0;
    }
    m->states = mt_grow(m->states, &cap, m->count + 1, sizeof(*m->states));
    m->rules = mt_grow(m->rules, &m->cap, m->count + 1, sizeof(*m->rules));
    m->states[m->count] = *s;
    m->rules[m->count] = mt_grammar_rule(m->g);
    m->slots[slot] = (uint32_t)++m->count;
    return (uint32_t)m->count - 1;
}

/* How the complete whole part compares with a bound's, by magnitude. */
static uint8_t compare_whole(const state *s, const mt_decimal *bound, uint8_t so_far)
{
    const size_t count = s->phase == ZERO ? 0 : s->whole;

    if (count != bound->whole_count)
        return count < bound->whole_count ? LESS : MORE;
    return so_far;
}

/* How the number compares with a bound by magnitude, if it ends here. */
static uint8_t compare_all(const state *s, const mt_decimal *bound, uint8_t so_far)
{
    if (s->phase <= WHOLE)
        so_far = compare_whole(s, bound, so_far);
    return so_far == SAME && s->fraction < bound->fraction_count ? LESS : so_far;
}

/* Whether a number that ends here keeps all bounds. */
static bool within(const mt_number *n, const state *s)
{
    for (size_t i = 0; i < n->bound_count; i++) {
        const mt_number_bound *b = &n->bounds[i];
        const uint8_t magnitude = compare_all(s, &b->value, s->compared[i]);
        const bool negative = s->negative && s->some; /* -0 is not */
        /* of the number and the bound: below 0, 0 or above 0 */
        const int order = negative != b->value.negative ? (negative ? -1 : 1)
                          : negative                    ? 1 - (int)magnitude
                                                        : (int)magnitude - 1;

        if (b->kind == MT_NUMBER_NOT ? order == 0
            : order == 0             ? b->exclusive
                                     : (b->kind == MT_NUMBER_LEAST) != (order > 0))
            return false;
    }
    return true;
}

/* Whether a number may end here. */
static bool accepts(const machine *m, const state *s)
{
    uint64_t left = s->left;

    if (s->phase != ZERO && s->phase != WHOLE && s->phase != FRACTION)
        return false;
    if (m->n->broken && !s->broken)
        return false;
    if (m->n->divisor) {
        for (unsigned i = s->fraction; i < m->n->scale; i++)
            left = left * 10 % m->n->divisor;
        if (left)
            return false;
    }
    return within(m->n, s);
}

/* Compares leading digits as they come; that there are more than the bound has is found where the whole part ends. */
static void compare_digit(const machine *m, state *s, char digit)
{
    for (size_t i = 0; i < m->n->bound_count; i++) {
        const mt_decimal *b = &m->n->bounds[i].value;
        const bool whole = s->phase == WHOLE;
        const size_t at = whole ? s->whole : s->fraction, count = whole ? b->whole_count : b->fraction_count;
        const char other = at < count ? (whole ? b->whole : b->fraction)[at] : '0';

        if (s->compared[i] == SAME && digit != other)
            s->compared[i] = digit < other ? LESS : MORE;
    }
}

/* Reads a digit; false where it may not come here. */
static bool read_digit(const machine *m, state *s, char digit)
{
    const mt_number *n = m->n;

    if (s->phase == ZERO)
        return false;
    if (s->phase == START || s->phase == MINUS) {
        s->phase = digit == '0' ? ZERO : WHOLE;
        if (digit == '0' && s->negative && !n->fractions) /* only -0 could become of it */
            return false;
    }
    if (s->phase == WHOLE && s->whole == n->digits)
        return false;
    if (s->phase >= POINT && (s->fraction == s->room || (n->divisor && s->fraction == n->scale)))
        return false;
    if (s->phase == POINT)
        s->phase = FRACTION;
    s->some |= digit != '0';
    s->broken |= digit != '0' && s->phase == FRACTION && n->broken;
    if (s->phase != ZERO)
        compare_digit(m, s, digit);
    if (n->divisor)
        s->left = (uint32_t)(((uint64_t)s->left * 10 + (uint64_t)(digit - '0')) % n->divisor);
    s->whole = (uint8_t)(s->whole + (s->phase == WHOLE));
    s->fraction = (uint8_t)(s->fraction + (s->phase == FRACTION));
    return true;
}

/* Reads a sign, point or digit; false where it may not come here. */
static bool read_char(const machine *m, state *s, char c)
{
    if (c >= '0' && c <= '9')
        return read_digit(m, s, c);
    if (c == '-' && s->phase == START) {
        s->phase = MINUS;
        return s->negative = true;
    }
    if (c != '.' || !m->n->fractions || (s->phase != ZERO && s->phase != WHOLE) || (m->n->divisor && !m->n->scale))
        return false;
    for (size_t i = 0; i < m->n->bound_count; i++)
        s->compared[i] = compare_whole(s, &m->n->bounds[i].value, s->compared[i]);
    s->phase = POINT;
    s->room = s->whole < PRECISION ? (uint8_t)(PRECISION - s->whole) : 0;
    s->whole = 0; /* no longer needed: states that differ only in it become one */
    return s->room > 0;
}

/* Whether further digits cannot change the result, so that they only have to be counted. That -0.0 may still become
   negative changes nothing: it is SAME as a bound of 0, and to any other bound it compares as what it becomes. */
static bool decided(const machine *m, const state *s)
{
    if ((s->phase != POINT && s->phase != FRACTION) || m->n->divisor || (m->n->broken && !s->broken))
        return false;
    for (size_t i = 0; i < m->n->bound_count; i++)
        if (s->compared[i] == SAME)
            return false;
    return true;
}

/* Defines the rule of a state that is decided: any digits, if any number that begins so is accepted. */
static void define_rest(machine *m, uint32_t at)
{
    state s = m->states[at];
    const uint32_t least = s.phase == POINT, most = (uint32_t)s.room - s.fraction;
    mt_byteset digits = {0};
    mt_expr rest;

    s.phase = FRACTION;
    mt_byteset_add(&digits, '0', '9');
    rest = mt_grammar_repeat(m->g, mt_grammar_bytes(m->g, &digits), least, most);
    mt_grammar_define(m->g, m->rules[at], accepts(m, &s) ? rest : mt_grammar_never(m->g));
}

/* Defines the rule of a state: characters that lead to the same state are one alternative. */
static void define(machine *m, uint32_t at)
{
    static const char chars[] = "-.0123456789";
    mt_expr parts[16];
    uint32_t targets[12];
    size_t count = 0;

    if (decided(m, &m->states[at])) {
        define_rest(m, at);
        return;
    }
    for (size_t i = 0; i < 12; i++) {
        state next = m->states[at];

        targets[i] = read_char(m, &next, chars[i]) ? intern(m, &next) : UINT32_MAX;
    }
    for (size_t i = 0; i < 12; i++) {
        mt_byteset set = {0};
        size_t before = 0;

        while (before < i && targets[before] != targets[i])
            before++;
        if (before < i || targets[i] == UINT32_MAX || m->full)
            continue;
        for (size_t k = i; k < 12; k++)
            if (targets[k] == targets[i])
                mt_byteset_add(&set, (unsigned char)chars[k], (unsigned char)chars[k]);
        parts[count++] =
            mt_grammar_seq(m->g, mt_grammar_bytes(m->g, &set), mt_grammar_call(m->g, m->rules[targets[i]]));
    }
    if (accepts(m, &m->states[at]))
        parts[count++] = mt_grammar_empty(m->g);
    mt_grammar_define(m->g, m->rules[at], mt_grammar_any(m->g, parts, count));
}

bool mt_number_expr(mt_grammar *g, const mt_number *n, mt_expr *out)
{
    machine m = {.n = n, .g = g};
    state first;

    memset(&first, 0, sizeof(first)); /* padding too, as its bytes are compared */
    memset(first.compared, SAME, sizeof(first.compared));
    m.slots = mt_alloc_array((size_t)2 * STATES, sizeof(*m.slots));
    intern(&m, &first);
    *out = mt_grammar_call(g, m.rules[0]);
    for (uint32_t i = 0; i < m.count && !m.full; i++)
        define(&m, i);
    mt_free(m.states);
    mt_free(m.rules);
    mt_free(m.slots);
    return !m.full;
}
