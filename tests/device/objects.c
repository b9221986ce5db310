/* What is no operation: states and features that are read out and written back, and tokens that are chosen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "check.h"
#include "sample/chain.h"
#include "sample/counts.h"
#include "sample/limits.h"
#include "sample/sampler.h"
#include "sample/settings.h"

/* The bytes of a slot are the device's own, but a round trip through the host changes none. */
static void states(run *r)
{
    const mt_state_shape shape = {
        .layers = 2, .key_heads = 2, .value_heads = 4, .key_dim = 16, .value_dim = 24, .taps = 4};
    const size_t bytes = mt_state_slot_bytes(r->dev, &shape);
    mt_states *all = mt_state_new(r->set, &shape, 1);
    mt_reading *reading = mt_reading_aside(r->set, bytes);
    mt_sending *sending = mt_sending_new(r->set, 64 + bytes);
    uint8_t *copy = (uint8_t *)mt_sending_room(r->dev, sending) + 64;
    mt_error err;
    bool same = mt_state_reserve(r->set, all, 2, &err);
    for (size_t i = 0; i < bytes; i++)
        copy[i] = (uint8_t)below(r, 256);
    mt_state_restore(r->dev, all, 1, sending, 64);
    mt_sending_wait(r->dev, sending);
    same = same && mt_sending_gone(r->dev, sending);
    mt_read_state(r->dev, reading, all, 1);
    same = same && memcmp(copy, mt_reading_data(r->dev, reading), bytes) == 0 && !mt_state_poisoned(r->dev, all, 1);
    mt_state_poison(r->dev, all, 1);
    same = same && mt_state_poisoned(r->dev, all, 1) && !mt_state_poisoned(r->dev, all, 0);
    for (size_t i = 0; i < r->units; i++)
        give_floats(r, &(float){same ? 1.0f : (float)(intptr_t)r->dev}, 1);
}

/* Rows that are written at once, into a part of a tensor: what is beside them stays. */
static bool rows_together(run *r, size_t cols)
{
    enum { ROWS = 5 };
    float *x = mt_alloc_array(ROWS * cols, sizeof(*x));
    mt_tensor *whole = mt_tensor_new(r->set, ROWS + 2, cols + 2),
              *some = mt_tensor_part(r->set, whole, 1, ROWS, 1, cols);
    mt_reading *reading = mt_reading_new(r->set, (ROWS + 2) * (cols + 2) * sizeof(float));
    bool same = true;
    fill(r, 9, 0, x, ROWS * cols);
    mt_tensor_write(r->dev, some, 0, ROWS, x);
    mt_read_rows(r->dev, reading, whole, 0, ROWS + 2);
    for (size_t i = 0; i < ROWS + 2; i++) {
        const float *row = mt_reading_row(r->dev, reading, i);
        const bool inside = i >= 1 && i <= ROWS;
        same = same && row[0] == 0 && row[cols + 1] == 0;
        for (size_t c = 0; c < cols; c++)
            same = same && row[1 + c] == (inside ? x[(i - 1) * cols + c] : 0.0f);
    }
    mt_free(x);
    return same;
}

/* The same of features of pictures: rows of a tensor that are anybody's, in any order. */
static void features(run *r)
{
    enum { ROWS = 40 };
    const size_t cols = 1 + below(r, 300);
    mt_error err;
    mt_tensor *all = mt_tensor_reserve(r->set, 2 * ROWS, cols, &err);
    mt_reading *reading = mt_reading_new(r->set, cols * sizeof(float));
    float(*x)[300] = mt_alloc_array(ROWS, sizeof(*x)), *copy = mt_alloc_array(cols, sizeof(*copy));
    bool same = all != NULL;
    say(r, "%zu columns", cols);
    for (size_t i = 0; same && i < ROWS; i++) {
        fill(r, 0, (uint32_t)i, x[i], cols);
        mt_tensor_write(r->dev, all, i * 7 % ROWS, 1, x[i]);
    }
    same = same && rows_together(r, cols);
    for (size_t i = 0; same && i < ROWS; i++) {
        mt_read_rows(r->dev, reading, all, i * 7 % ROWS, 1);
        memcpy(copy, mt_reading_row(r->dev, reading, 0), cols * sizeof(*copy));
        mt_tensor_write(r->dev, all, ROWS + i, 1, copy);
        mt_op_clear(r->dev, all, i * 7 % ROWS, 1);
    }
    for (size_t i = 0; same && i < ROWS; i++) {
        mt_read_rows(r->dev, reading, all, ROWS + i, 1);
        same = memcmp(x[i], mt_reading_row(r->dev, reading, 0), cols * sizeof(*copy)) == 0;
    }
    for (size_t i = 0; i < r->units; i++)
        give_floats(r, &(float){same ? 1.0f : (float)(intptr_t)r->dev}, 1);
    mt_free(x);
    mt_free(copy);
}

/* ---- choices ---- */

#define GUESSES 2
#define SEEN_TOKENS 300 /* of a prompt, at most, and as many generated */

/* An answer with settings of its own and a guess or two. */
typedef struct answer {
    mt_chain chain;
    mt_sample_settings settings;
    uint32_t guess[GUESSES], ends[2], bad[2];
    mt_bad_word word;
    mt_logit_bias bias;
    uint32_t *mask, *only;
    void *counts;
} answer;

/* Logits of one kind or another: near each other, a few above all others, equals, some that cannot be chosen. */
static void draw_logits(run *own, uint64_t number, float *x, size_t vocab)
{
    const size_t shape = below(own, 6);
    fill(own, 9, number, x, vocab);
    for (size_t i = 0; shape > 0 && i < vocab; i++)
        switch (shape) {
        case 1: x[i] *= 7; break;
        case 2: x[i] = (float)(int)(x[i] * 3) / 2; break;
        case 3: x[i] = i % 7 ? x[i] : -INFINITY; break;
        case 4: x[i] = 0.5f; break;
        default: x[i] = x[i] > 1.95f ? x[i] * 6 : x[i] - 8;
        }
    if (below(own, 40) == 0)
        x[below(own, vocab)] = below(own, 2) ? NAN : INFINITY;
}

static mt_counts *draw_counts(run *own, answer *a, size_t vocab)
{
    uint32_t prompt[SEEN_TOKENS];
    const size_t count = below(own, SEEN_TOKENS), window = below(own, 3) ? 0 : 1 + below(own, 100);
    if (!mt_sample_settings_penalise(&a->settings))
        return NULL;
    for (size_t i = 0; i < count; i++)
        prompt[i] = (uint32_t)below(own, vocab);
    a->counts = mt_alloc(mt_counts_bytes(count, 2 * SEEN_TOKENS, vocab, window));
    mt_counts *counts = mt_counts_make(a->counts, prompt, count, 2 * SEEN_TOKENS, vocab, window);
    for (size_t i = below(own, SEEN_TOKENS); i > 0; i--)
        mt_counts_push(counts, (uint32_t)below(own, vocab));
    return counts;
}

static uint32_t *draw_mask(run *own, size_t vocab)
{
    uint32_t *mask = mt_alloc_array((vocab + 31) / 32, sizeof(*mask));
    for (size_t i = 0; i < (vocab + 31) / 32; i++)
        mask[i] = below(own, 3) ? UINT32_MAX : (uint32_t)below(own, 1u << 31) | 1;
    return mask;
}

static void draw_settings(run *own, answer *a, size_t vocab)
{
    mt_sample_settings *s = &a->settings;
    mt_sample_settings_init(s);
    s->temperature = below(own, 3) ? real(own, 0.2f, 2) : 0;
    s->top_k = below(own, 2) ? (int32_t)below(own, below(own, 2) ? 30 : 3000) : 0;
    s->top_p = below(own, 2) ? real(own, 0.1f, 1) : 1;
    s->min_p = below(own, 2) ? real(own, 0, 0.3f) : 0;
    s->typical_p = below(own, 8) ? 1 : real(own, 0.2f, 1);
    s->seed = below(own, 1u << 30);
    s->logprobs = below(own, 2) ? -1 : (int32_t)below(own, 1 + MT_LIMIT_TOP_LOGPROBS);
    s->presence_penalty = below(own, 4) ? 0 : real(own, -2, 2);
    s->frequency_penalty = below(own, 4) ? 0 : real(own, -2, 2);
    s->repetition_penalty = below(own, 4) ? 1 : real(own, 0.5f, 2);
    s->min_tokens = below(own, 3) ? 0 : 5;
    for (size_t i = 0; i < 2; i++) {
        a->ends[i] = (uint32_t)below(own, vocab + 5);
        a->bad[i] = (uint32_t)below(own, vocab);
    }
    s->eos_ids = a->ends;
    s->eos_count = 2;
    a->word = (mt_bad_word){.ids = a->bad, .count = 1 + below(own, 2)};
    s->bad = &a->word;
    s->bad_count = below(own, 4) == 0;
    a->bias = (mt_logit_bias){.id = (uint32_t)below(own, vocab), .bias = real(own, -5, 5)};
    s->bias = &a->bias;
    s->bias_count = below(own, 8) == 0;
    if (below(own, 5) == 0)
        s->only = a->only = draw_mask(own, vocab);
}

static void draw_answer(run *r, answer *a, size_t at, mt_tensor *logits, size_t vocab)
{
    run own = *r;
    float *row = mt_alloc_array(vocab, sizeof(*row));
    own.rng = r->seed + 31 * (r->unit[at] + 1);
    draw_settings(&own, a, vocab);
    for (size_t k = 0; k <= GUESSES; k++) {
        size_t best = 0;
        draw_logits(&own, (GUESSES + 1) * r->unit[at] + k, row, vocab);
        for (size_t t = 0; t < vocab; t++)
            best = row[t] > row[best] ? t : best;
        if (k < GUESSES)
            a->guess[k] = (uint32_t)best; /* right where the likeliest is taken */
        mt_tensor_write(r->dev, logits, (GUESSES + 1) * at + k, 1, row);
    }
    a->mask = draw_mask(&own, vocab);
    a->chain = (mt_chain){.first = (GUESSES + 1) * at,
                          .settings = &a->settings,
                          .counts = draw_counts(&own, a, vocab),
                          .index = (uint32_t)below(&own, 9),
                          .tail = {a->bad[0]},
                          .tail_count = below(&own, 2),
                          .constrained = below(&own, 3) == 0,
                          .guessed = below(&own, GUESSES + 1),
                          .guess = a->guess,
                          .allowed = {a->mask, a->mask},
                          .allowed_count = below(&own, 3),
                          .forces = below(&own, 4) == 0};
    for (size_t k = 0; k <= GUESSES; k++)
        a->chain.forced[k] = below(&own, 2) ? MT_SAMPLE_ANY : k < GUESSES ? a->guess[k] : (uint32_t)below(&own, vocab);
    mt_free(row);
}

/* How many tokens count, which choosing does not change. */
static float counted(const mt_counts *counts)
{
    size_t n = 0, all = 0;
    const mt_count *seen = counts ? mt_counts_seen(counts, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        all += seen[i].count + seen[i].places;
    return (float)all;
}

static void give_chain(run *r, const mt_chain *c)
{
    float told[3 + 5 * (GUESSES + 1)] = {(float)c->status, (float)c->sampled_count, counted(c->counts)};
    for (size_t k = 0; k < c->sampled_count; k++) {
        const mt_sampled *s = &c->sampled[k];
        float *t = told + 3 + 5 * k;
        t[0] = (float)s->chosen.id;
        t[1] = s->chosen.logprob;
        t[2] = (float)s->top_count;
        for (size_t i = 0; i < s->top_count; i++) {
            t[3] += (float)(i + 1) * (float)s->top[i].id;
            t[4] += (float)(i + 1) * s->top[i].logprob;
        }
    }
    give_floats(r, told, MT_COUNT(told));
}

static void choices(run *r)
{
    const size_t many = 17000 + below(r, r->quick ? 4000 : 60000), few = 40 + below(r, 400);
    const size_t sizes[] = {few, few / 32 * 32, few, few, many, few / 32 * 32, few, few};
    const size_t vocab = in_turn(r, sizes, MT_COUNT(sizes));
    mt_tensor *logits = mt_tensor_new(r->set, (GUESSES + 1) * r->units, vocab);
    mt_chooser *chooser = mt_chooser_new(r->set, vocab);
    answer *a = mt_alloc_array(r->units, sizeof(*a));
    mt_chain **list = mt_alloc_array(r->units, sizeof(mt_chain *));
    say(r, "%zu tokens", vocab);
    for (size_t i = 0; i < r->units; i++) {
        draw_answer(r, &a[i], i, logits, vocab);
        list[i] = &a[i].chain;
    }
    mt_step_choose(r->dev, chooser, logits, list, r->units);
    mt_step_chosen(r->dev, chooser, logits, list, r->units);
    for (size_t i = 0; i < r->units; i++) {
        give_chain(r, &a[i].chain);
        mt_free(a[i].mask);
        mt_free(a[i].only);
        mt_free(a[i].counts);
    }
    mt_free(a);
    mt_free(list);
}

const device_check object_checks[] = {{.name = "state_restore read_state", .fn = states},
                                      {.name = "tensor_reserve tensor_write read_rows", .fn = features},
                                      {.name = "step_choose", .fn = choices, .units = MOST_UNITS / 3},
                                      {0}};
