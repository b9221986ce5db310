/* Ranges of numbers, digit by digit. */
#include <stdio.h>
#include <string.h>

#include "sample/constraint/json.h"

enum { DIGITS = 18 };

static mt_expr digit(mt_json *j, char low, char high)
{
    mt_byteset set = {0};

    if (low > high)
        return mt_grammar_never(j->g);
    mt_byteset_add(&set, (unsigned char)low, (unsigned char)high);
    return mt_grammar_bytes(j->g, &set);
}

static mt_expr any_digits(mt_json *j, size_t count)
{
    return mt_grammar_repeat(j->g, digit(j, '0', '9'), (uint32_t)count, (uint32_t)count);
}

/* Digits from `low` up to all nines (up), or from all zeros up to `high`. */
static mt_expr one_sided(mt_json *j, const char *bound, bool up)
{
    mt_expr all = mt_grammar_empty(j->g);

    for (size_t i = strlen(bound); i-- > 0;) {
        const mt_expr same = mt_grammar_seq(j->g, digit(j, bound[i], bound[i]), all);
        const mt_expr inner = up ? digit(j, (char)(bound[i] + 1), '9') : digit(j, '0', (char)(bound[i] - 1));
        const bool none = up ? bound[i] == '9' : bound[i] == '0';

        all =
            none ? same : mt_grammar_or(j->g, same, mt_grammar_seq(j->g, inner, any_digits(j, strlen(bound) - i - 1)));
    }
    return all;
}

/* Numbers of as many digits as low and high have both. */
static mt_expr same_length(mt_json *j, const char *low, const char *high)
{
    size_t shared = 0;
    mt_expr parts[3];
    size_t count = 0;

    while (low[shared] && low[shared] == high[shared])
        shared++;
    if (!low[shared])
        return mt_grammar_text(j->g, low);
    parts[count++] = mt_grammar_seq(j->g, digit(j, low[shared], low[shared]), one_sided(j, low + shared + 1, true));
    if (low[shared] + 1 < high[shared])
        parts[count++] = mt_grammar_seq(j->g, digit(j, (char)(low[shared] + 1), (char)(high[shared] - 1)),
                                        any_digits(j, strlen(low) - shared - 1));
    parts[count++] = mt_grammar_seq(j->g, digit(j, high[shared], high[shared]), one_sided(j, high + shared + 1, false));
    return mt_grammar_seq(j->g, mt_grammar_literal(j->g, low, shared), mt_grammar_any(j->g, parts, count));
}

/* 0 <= low <= high. */
static mt_expr naturals(mt_json *j, int64_t low, int64_t high)
{
    mt_expr parts[DIGITS + 1];
    size_t count = 0;
    int64_t power = 1;

    for (size_t length = 1; length <= DIGITS; length++) {
        const int64_t least = length == 1 ? 0 : power, most = 10 * power - 1;
        const int64_t from = low > least ? low : least, to = high < most ? high : most;
        char a[24], b[24];

        power *= 10;
        if (from > to)
            continue;
        snprintf(a, sizeof(a), "%lld", (long long)from);
        snprintf(b, sizeof(b), "%lld", (long long)to);
        parts[count++] = same_length(j, a, b);
    }
    return mt_grammar_any(j->g, parts, count);
}

mt_expr mt_json_integers(mt_json *j, int64_t low, int64_t high)
{
    mt_expr all = mt_grammar_never(j->g);

    if (low > high)
        return all;
    if (low <= -MT_JSON_INTEGER_MAX && high >= MT_JSON_INTEGER_MAX)
        return mt_json_integer(j);
    if (high >= 0)
        all = naturals(j, low > 0 ? low : 0, high);
    if (low < 0)
        all = mt_grammar_or(j->g, all,
                            mt_grammar_seq(j->g, mt_grammar_text(j->g, "-"), naturals(j, high < 0 ? -high : 1, -low)));
    return all;
}

/* Digits behind a point that are not all zeros. */
static mt_expr some_fraction(mt_json *j)
{
    return mt_grammar_list(j->g,
                           (mt_expr[]){mt_grammar_text(j->g, "."),
                                       mt_grammar_repeat(j->g, mt_grammar_text(j->g, "0"), 0, DIGITS / 2),
                                       digit(j, '1', '9'), mt_grammar_repeat(j->g, digit(j, '0', '9'), 0, DIGITS / 2)},
                           4);
}

static mt_expr fraction(mt_json *j)
{
    return mt_grammar_seq(j->g, mt_grammar_text(j->g, "."), mt_grammar_repeat(j->g, digit(j, '0', '9'), 1, DIGITS));
}

static mt_expr zeros(mt_json *j)
{
    return mt_grammar_seq(j->g, mt_grammar_text(j->g, "."),
                          mt_grammar_repeat(j->g, mt_grammar_text(j->g, "0"), 1, DIGITS / 2));
}

/* From low to high, both at least 0, with fractions. */
static mt_expr magnitudes(mt_json *j, int64_t low, bool above, int64_t high, bool below)
{
    mt_expr parts[3];
    size_t count = 0;

    if (low > high || (low == high && (above || below)))
        return mt_grammar_never(j->g);
    if (above && low < high)
        parts[count++] = mt_grammar_seq(j->g, naturals(j, low, low), some_fraction(j));
    if (low + above < high)
        parts[count++] = mt_grammar_seq(j->g, naturals(j, low + above, high - 1), mt_grammar_maybe(j->g, fraction(j)));
    if (!below)
        parts[count++] = mt_grammar_seq(j->g, naturals(j, high, high), mt_grammar_maybe(j->g, zeros(j)));
    return mt_grammar_any(j->g, parts, count);
}

mt_expr mt_json_numbers(mt_json *j, int64_t low, bool above, int64_t high, bool below)
{
    const mt_expr minus = mt_grammar_text(j->g, "-");
    mt_expr all = mt_grammar_never(j->g);

    if (low <= -MT_JSON_INTEGER_MAX && high >= MT_JSON_INTEGER_MAX)
        return mt_json_number(j);
    if (high >= 0)
        all = magnitudes(j, low > 0 ? low : 0, above && low >= 0, high, below);
    if (low < 0) {
        const bool reaches = high >= 0; /* zero is among those that are not negative */

        all = mt_grammar_or(
            j->g, all, mt_grammar_seq(j->g, minus, magnitudes(j, reaches ? 0 : -high, reaches || below, -low, above)));
    }
    return all;
}
