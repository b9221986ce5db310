/* Sorts logits as far as needed (ranking.h), in bands. The first band reaches down to the wanted-th highest block
   maximum, so it holds at least that many logits (or as many as there are blocks). Each further band is meant to make
   the sorted part GROWTH times as large; a sorted sample tells how far down that is. The last band takes all that is
   left. Where a band ends only decides how much is sorted at a time: bands lie below one another, so together they are
   the beginning of the complete order, ties included.

   Rejected: a heap (two cache misses for each logit looked at), and selection without order (drawing by the cumulative
   distribution walks in order). */
#include "sample/ranking.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/convert.h"

enum {
    CHUNK = 32,
    MIN_WANTED = 16,
    MAX_WANTED = 64,
    GROWTH = 4,
    SPACING = 64, /* one of so many logits is in the sample */
    FEW = 40,     /* most keys that are sorted by insertion */
    DIGITS = 4,
    DIGIT = 256,
    ALIGN = 64
};

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t blocks_of(size_t n)
{
    return (n + MT_RANKING_BLOCK - 1) / MT_RANKING_BLOCK;
}

size_t mt_ranking_room_bytes(size_t n)
{
    return 2 * aligned((n + 1) * sizeof(uint64_t)) + aligned(n / SPACING * sizeof(uint64_t)) +
           aligned(blocks_of(n) * sizeof(float));
}

float mt_ranking_start(mt_ranking *r, const mt_kernels *k, const float *x, size_t n, void *room)
{
    size_t list = aligned((n + 1) * sizeof(uint64_t));
    uint8_t *base = room;
    *r = (mt_ranking){.x = x, .n = n, .blocks = blocks_of(n), .floor = INFINITY};
    r->keys = (uint64_t *)(void *)base;
    r->spare = (uint64_t *)(void *)(base + list);
    r->sample = (uint64_t *)(void *)(base + 2 * list);
    r->peaks = (float *)(void *)(base + 2 * list + aligned(n / SPACING * sizeof(uint64_t)));
    for (size_t b = 0; b < r->blocks; b++) {
        size_t i = b * MT_RANKING_BLOCK;
        r->peaks[b] = k->max(x + i, n - i < MT_RANKING_BLOCK ? n - i : MT_RANKING_BLOCK);
    }
    r->highest = k->max(r->peaks, r->blocks);
    return r->highest;
}

uint32_t mt_ranking_best(const mt_ranking *r)
{
    size_t i = 0;
    while (r->peaks[i] != r->highest)
        i++;
    i *= MT_RANKING_BLOCK;
    while (r->x[i] != r->highest)
        i++;
    return (uint32_t)i;
}

/* A key that is smaller for larger logits. Adding 0 turns -0 into 0, as the two compare equal. */
static uint64_t key_of(float x, size_t id)
{
    uint32_t bits = mt_f32_bits(x + 0.0f), ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)~ascending << 32 | (uint32_t)id;
}

static float logit_of(uint64_t key)
{
    uint32_t ascending = ~(uint32_t)(key >> 32);
    return mt_f32_from_bits(ascending >> 31 ? ascending & 0x7fffffffu : ~ascending);
}

float mt_ranking_logit(const mt_ranking *r, size_t position)
{
    return logit_of(r->keys[position]);
}

uint32_t mt_ranking_id(const mt_ranking *r, size_t position)
{
    return (uint32_t)r->keys[position];
}

static void sort_few(uint64_t *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

static void distribute(uint64_t *to, const uint64_t *from, size_t n, uint32_t counts[DIGIT], int shift)
{
    uint32_t start = 0;
    for (int d = 0; d < DIGIT; d++) {
        uint32_t count = counts[d];
        counts[d] = start;
        start += count;
    }
    for (size_t i = 0; i < n; i++)
        to[counts[from[i] >> shift & (DIGIT - 1)]++] = from[i];
}

/* Radix sort by the logit's half of the key, lowest digit first. It keeps the order of equals, which come by ascending
   id. */
static void sort_many(uint64_t *keys, uint64_t *spare, size_t n)
{
    uint32_t counts[DIGITS][DIGIT] = {{0}};
    uint64_t *from = keys, *to = spare;
    for (size_t i = 0; i < n; i++)
        for (int d = 0; d < DIGITS; d++)
            counts[d][keys[i] >> (32 + 8 * d) & (DIGIT - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        int shift = 32 + 8 * d;
        if (counts[d][from[0] >> shift & (DIGIT - 1)] == n)
            continue;
        distribute(to, from, n, counts[d], shift);
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof(*keys));
}

/* A constant number of logits and no branch: compilers vectorise it. */
static bool any_from(const float *x, float low)
{
    int above = 0;
    for (int i = 0; i < CHUNK; i++)
        above += x[i] >= low;
    return above > 0;
}

/* Appends the keys of x[begin, end) with values in [low, high). Keys written without being counted are overwritten. */
static size_t gather(const mt_ranking *r, size_t count, size_t begin, size_t end, float low, float high)
{
    for (size_t i = begin; i < end; i++) {
        r->keys[count] = key_of(r->x[i], i);
        count += (size_t)((r->x[i] >= low) & (r->x[i] < high));
    }
    return count;
}

static size_t gather_block(const mt_ranking *r, size_t count, size_t block, float low, float high)
{
    size_t i = block * MT_RANKING_BLOCK, end = r->n - i < MT_RANKING_BLOCK ? r->n : i + MT_RANKING_BLOCK;
    for (; i + CHUNK <= end; i += CHUNK)
        if (any_from(r->x + i, low))
            count = gather(r, count, i, i + CHUNK, low, high);
    return gather(r, count, i, end, low, high);
}

static void sort(uint64_t *keys, uint64_t *spare, size_t n)
{
    if (n <= FEW)
        sort_few(keys, n);
    else
        sort_many(keys, spare, n);
}

static void lower(mt_ranking *r, float low)
{
    size_t count = r->sorted;
    for (size_t b = 0; b < r->blocks; b++)
        if (r->peaks[b] >= low)
            count = gather_block(r, count, b, low, r->floor);
    sort(r->keys + r->sorted, r->spare, count - r->sorted);
    r->sorted = count;
    r->floor = low;
    r->bands++;
}

/* The wanted-th highest of the block maxima. */
static float peak_of_rank(const mt_ranking *r, size_t wanted)
{
    float best[MAX_WANTED];
    size_t count = 0;
    for (size_t b = 0; b < r->blocks; b++) {
        if (count == wanted && !(r->peaks[b] > best[count - 1]))
            continue;
        size_t at = count < wanted ? count++ : count - 1;
        for (; at > 0 && r->peaks[b] > best[at - 1]; at--)
            best[at] = best[at - 1];
        best[at] = r->peaks[b];
    }
    return best[count - 1];
}

static void sort_sample(mt_ranking *r)
{
    size_t count = r->n / SPACING;
    for (size_t i = 0; i < count; i++)
        r->sample[i] = key_of(r->x[i * SPACING], i);
    sort(r->sample, r->spare, count);
}

/* The value down to which GROWTH times as many logits should be found. */
static float sampled_floor(const mt_ranking *r)
{
    size_t count = r->n / SPACING, i = r->sorted * GROWTH / SPACING;
    while (i < count && logit_of(r->sample[i]) >= r->floor)
        i++;
    return i < count ? logit_of(r->sample[i]) : -FLT_MAX;
}

/* At least -FLT_MAX, which is everything but -inf. */
static float next_floor(mt_ranking *r, size_t wanted)
{
    float low;
    if (r->bands == 1)
        sort_sample(r);
    if (r->bands > 0)
        low = sampled_floor(r);
    else
        low = peak_of_rank(r, wanted < MIN_WANTED ? MIN_WANTED : wanted > MAX_WANTED ? MAX_WANTED : wanted);
    return low >= -FLT_MAX ? low : -FLT_MAX;
}

bool mt_ranking_has(mt_ranking *r, size_t position, size_t wanted)
{
    while (position >= r->sorted && r->floor > -FLT_MAX)
        lower(r, next_floor(r, wanted));
    return position < r->sorted;
}
