/* Masks, biases and penalties on logits (steer.h). */
#include "sample/steer.h"

#include <math.h>
#include <string.h>

enum { WORD_BITS = 32 };

static bool ends_masked(const mt_sample_row *row)
{
    return row->index < row->settings->min_tokens && row->settings->stop_count + row->settings->eos_count > 0;
}

bool mt_steer_needed(const mt_sample_row *row)
{
    return row->forced || row->allowed || row->counts || row->settings->only || row->settings->bad_count > 0 ||
           row->settings->bias_count > 0 || ends_masked(row);
}

/* By words of the mask: most are all ones or all zeros. */
static void copy_allowed(float *y, const float *x, const uint32_t *allowed, size_t n)
{
    for (size_t i = 0; i < n; i += WORD_BITS) {
        uint32_t bits = allowed[i / WORD_BITS];
        size_t count = n - i < WORD_BITS ? n - i : WORD_BITS;
        if (bits == UINT32_MAX) {
            memmove(y + i, x + i, count * sizeof(*y)); /* y may be x */
            continue;
        }
        for (size_t j = 0; j < count; j++)
            y[i + j] = bits >> j & 1 ? x[i + j] : -INFINITY;
    }
}

/* The next token that must not be chosen, whatever the mask says: the last one of every bad word whose other tokens
   have just been generated, and ends that come too early. *at: 0 at first. */
static bool next_forbidden(const mt_sample_row *row, size_t *at, uint32_t *id)
{
    const mt_sample_settings *s = row->settings;
    const size_t ends = ends_masked(row) ? s->stop_count + s->eos_count : 0;
    while (*at < s->bad_count + ends) {
        const size_t i = (*at)++, end = i - s->bad_count;
        if (i >= s->bad_count) {
            *id = end < s->stop_count ? s->stop_ids[end] : s->eos_ids[end - s->stop_count];
            if (*id < row->vocab)
                return true;
            continue;
        }
        const mt_bad_word *word = &s->bad[i];
        const size_t before = word->count - 1;
        *id = word->ids[before];
        if (before <= row->tail_count &&
            (before == 0 || memcmp(row->tail + row->tail_count - before, word->ids, before * sizeof(*word->ids)) == 0))
            return true;
    }
    return false;
}

bool mt_steer_mask(uint32_t *mask, const mt_sample_row *row)
{
    const mt_sample_settings *s = row->settings;
    const size_t words = (row->vocab + WORD_BITS - 1) / WORD_BITS;
    uint32_t id;
    size_t at = 0;
    if (row->forced) {
        memset(mask, 0, words * sizeof(*mask));
        mask[*row->forced / WORD_BITS] = 1u << *row->forced % WORD_BITS;
        return true;
    }
    if (!row->allowed && !s->only && s->bad_count == 0 && !ends_masked(row))
        return false;
    for (size_t i = 0; i < words; i++)
        mask[i] = (row->allowed ? row->allowed[i] : UINT32_MAX) & (s->only ? s->only[i] : UINT32_MAX);
    while (next_forbidden(row, &at, &id))
        mask[id / WORD_BITS] &= ~(1u << id % WORD_BITS);
    return true;
}

static void force(float *y, const mt_sample_row *row)
{
    for (size_t i = 0; i < row->vocab; i++)
        y[i] = -INFINITY;
    y[*row->forced] = row->logits[*row->forced];
}

static void penalise(float *y, const mt_sample_settings *s, const mt_counts *counts)
{
    size_t n;
    const mt_count *seen = mt_counts_seen(counts, &n);
    for (size_t i = 0; i < n; i++) {
        if (seen[i].places == 0)
            continue;
        float x = y[seen[i].id], times = (float)seen[i].count;
        x = x > 0.0f ? x / s->repetition_penalty : x * s->repetition_penalty;
        x -= s->frequency_penalty * times;
        y[seen[i].id] = x - (seen[i].count > 0 ? s->presence_penalty : 0.0f);
    }
}

void mt_steer(float *y, const mt_sample_row *row)
{
    const mt_sample_settings *s = row->settings;
    uint32_t id;
    size_t at = 0;
    if (row->forced) {
        force(y, row);
        return;
    }
    if (row->allowed)
        copy_allowed(y, row->logits, row->allowed, row->vocab);
    else
        memcpy(y, row->logits, row->vocab * sizeof(*y));
    if (s->only)
        copy_allowed(y, y, s->only, row->vocab);
    while (next_forbidden(row, &at, &id))
        y[id] = -INFINITY;
    for (size_t i = 0; i < s->bias_count; i++)
        y[s->bias[i].id] += s->bias[i].bias;
    if (row->counts)
        penalise(y, s, row->counts);
}
