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
    return row->allowed || row->counts || row->settings->only || row->settings->bad_count > 0 ||
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

static void mask_ids(float *y, size_t vocab, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] < vocab)
            y[ids[i]] = -INFINITY;
}

/* Masks the last token of every bad word whose other tokens have just been generated. */
static void mask_bad(float *y, const mt_sample_row *row)
{
    for (size_t i = 0; i < row->settings->bad_count; i++) {
        const mt_bad_word *word = &row->settings->bad[i];
        const size_t before = word->count - 1;

        if (before <= row->tail_count &&
            (before == 0 || memcmp(row->tail + row->tail_count - before, word->ids, before * sizeof(*word->ids)) == 0))
            y[word->ids[before]] = -INFINITY;
    }
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
    if (row->allowed)
        copy_allowed(y, row->logits, row->allowed, row->vocab);
    else
        memcpy(y, row->logits, row->vocab * sizeof(*y));
    if (s->only)
        copy_allowed(y, y, s->only, row->vocab);
    mask_bad(y, row);
    if (ends_masked(row)) {
        mask_ids(y, row->vocab, s->stop_ids, s->stop_count);
        mask_ids(y, row->vocab, s->eos_ids, s->eos_count);
    }
    for (size_t i = 0; i < s->bias_count; i++)
        y[s->bias[i].id] += s->bias[i].bias;
    if (row->counts)
        penalise(y, s, row->counts);
}
