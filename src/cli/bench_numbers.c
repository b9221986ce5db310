/* Numbers of motet bench: see bench.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/bench.h"

bool mt_bench_list_read(mt_bench_list *list, const char *option, const char *text, const char *usual, double least,
                        double most, mt_error *err)
{
    list->count = 0;
    for (const char *p = text ? text : usual; *p;) {
        char *end;
        errno = 0;
        const double value = strtod(p, &end);
        if (end == p || errno || !(value >= least && value <= most) || (*end && *end != ','))
            return mt_fail(err, MT_E_INVALID, "\"--%s\" has \"%.16s\" where a number from %.9g to %.9g should be",
                           option, p, least, most);
        if (list->count == MT_BENCH_LIST)
            return mt_fail(err, MT_E_INVALID, "\"--%s\" has more than %d numbers; give fewer", option, MT_BENCH_LIST);
        list->at[list->count++] = value;
        p = *end ? end + 1 : end;
    }
    return list->count > 0 || mt_fail(err, MT_E_INVALID, "\"--%s\" is empty; give at least one number", option);
}

void mt_series_add(mt_series *s, double value)
{
    if (s->count == s->capacity) {
        const size_t grown = s->capacity ? 2 * s->capacity : 256;
        s->at = mt_realloc(s->at, s->capacity * sizeof(*s->at), grown * sizeof(*s->at));
        s->capacity = grown;
    }
    s->at[s->count++] = value;
    s->sorted = false;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double mt_series_quantile(mt_series *s, double q)
{
    if (s->count == 0)
        return NAN;
    if (!s->sorted)
        qsort(s->at, s->count, sizeof(*s->at), ascending);
    s->sorted = true;
    const double place = q * (double)(s->count - 1);
    const size_t below = (size_t)place, above = below + 1 < s->count ? below + 1 : below;
    return s->at[below] + (place - (double)below) * (s->at[above] - s->at[below]);
}

double mt_series_mean(const mt_series *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->at[i];
    return s->count ? sum / (double)s->count : NAN;
}

void mt_series_free(mt_series *s)
{
    mt_free(s->at);
    *s = (mt_series){0};
}

uint64_t mt_dice_roll(mt_dice *d)
{
    uint64_t x = d->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A random number in (0, 1]. */
static double share_of(mt_dice *d)
{
    return (double)((mt_dice_roll(d) >> 11) + 1) * 0x1p-53;
}

double mt_dice_gap(mt_dice *d, double rate)
{
    return -log(share_of(d)) / rate;
}

uint64_t mt_bench_hash(uint64_t hash, const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    return hash;
}

/* Whether a comma-separated list has the word. */
static bool has_word(const char *list, const char *word)
{
    const size_t len = strlen(word);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == len && strncmp(p, word, len) == 0)
            return true;
    return false;
}

/* The part "company" takes minutes: it runs only where --only names it. */
bool mt_bench_wants(const mt_model_bench *b, const char *part)
{
    return b->opt->bench_only ? has_word(b->opt->bench_only, part) : strcmp(part, "company") != 0;
}
