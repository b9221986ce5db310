/* Sets of characters (charset.h). */
#include "constraint/charset.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/alloc.h"

void mt_charset_free(mt_charset *set)
{
    mt_free(set->at);
    *set = (mt_charset){0};
}

void mt_charset_add(mt_charset *set, uint32_t low, uint32_t high)
{
    set->at = mt_grow(set->at, &set->cap, set->count + 1, sizeof(*set->at));
    set->at[set->count++] = (mt_char_range){low, high};
}

void mt_charset_add_all(mt_charset *set, const mt_charset *others)
{
    for (size_t i = 0; i < others->count; i++)
        mt_charset_add(set, others->at[i].low, others->at[i].high);
}

static int by_low(const void *x, const void *y)
{
    const mt_char_range *a = x, *b = y;

    return (a->low > b->low) - (a->low < b->low);
}

void mt_charset_sort(mt_charset *set)
{
    size_t kept = 0;

    if (set->count == 0)
        return;
    qsort(set->at, set->count, sizeof(*set->at), by_low);
    for (size_t i = 1; i < set->count; i++) {
        if (set->at[i].low > set->at[kept].high + 1)
            set->at[++kept] = set->at[i];
        else if (set->at[i].high > set->at[kept].high)
            set->at[kept].high = set->at[i].high;
    }
    set->count = kept + 1;
}

void mt_charset_invert(mt_charset *set)
{
    mt_charset other = {0};
    uint32_t next = 0;

    for (size_t i = 0; i < set->count; i++) {
        if (set->at[i].low > next)
            mt_charset_add(&other, next, set->at[i].low - 1);
        next = set->at[i].high + 1;
    }
    if (next <= MT_CHAR_MAX)
        mt_charset_add(&other, next, MT_CHAR_MAX);
    mt_charset_free(set);
    *set = other;
}

bool mt_charset_has(const mt_charset *set, uint32_t code)
{
    for (size_t i = 0; i < set->count; i++)
        if (code >= set->at[i].low && code <= set->at[i].high)
            return true;
    return false;
}

bool mt_char_ranges_plain(const mt_char_range *ranges, size_t count)
{
    uint32_t next = 0x20;
    size_t i = 0;

    while (next <= MT_CHAR_MAX) {
        while (i < count && ranges[i].high < next)
            i++;
        if (i < count && ranges[i].low <= next)
            next = ranges[i].high + 1;
        else if ((next < 0x80 && !mt_plain_byte((unsigned char)next)) || next == 0x2028 || next == 0x2029)
            next++;
        else if (next >= 0xd800 && next <= 0xdfff)
            next = 0xe000;
        else
            return false;
    }
    return true;
}

/* Characters above are tags, variation selectors and private use: they are in no category here. */
#define LAST 0x3ffffu

bool mt_charset_add_category(mt_charset *set, const char *name, size_t len)
{
    bool known = false;

    if (len < 1 || len > 2)
        return false;
    for (uint32_t code = 0, low = 0; code <= LAST + 1; code++) {
        const char *category = code <= LAST ? utf8proc_category_string((utf8proc_int32_t)code) : "--";
        const bool in = memcmp(category, name, len) == 0;

        known |= in;
        if (!in && low < code)
            mt_charset_add(set, low, code - 1);
        if (!in)
            low = code + 1;
    }
    return known;
}
