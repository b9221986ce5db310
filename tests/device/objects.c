/* What is no operation: states and features that are read out and written back, and tokens that are chosen. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "check.h"

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

/* Each unit is an answer with settings of its own and a guess or two. */
static void choices(run *r)
{
    const bool large = below(r, 4) == 0; /* so that only the best logits have to be looked at */
    const size_t vocab = large ? 17000 + below(r, 4000) : 40 + below(r, 400);
    mt_tensor *logits = mt_tensor_new(r->set, 3 * r->units, vocab);
    mt_chooser *chooser = mt_chooser_new(r->set, vocab);
    mt_chain *chains = mt_alloc_array(r->units, sizeof(*chains)), **list = mt_alloc_array(r->units, sizeof(mt_chain *));
    mt_sample_settings *settings = mt_alloc_array(r->units, sizeof(*settings));
    uint32_t(*guesses)[2] = mt_alloc_array(r->units, sizeof(*guesses)), (*masks)[16];
    float *row = mt_alloc_array(vocab, sizeof(*row));
    masks = mt_alloc_array(r->units, sizeof(*masks));
    say(r, "%zu tokens", vocab);
    for (size_t i = 0; i < r->units; i++) {
        run own = *r;
        own.rng = r->seed + 31 * (r->unit[i] + 1);
        mt_sample_settings_init(&settings[i]);
        settings[i].temperature = below(&own, 3) ? real(&own, 0.2f, 2) : 0;
        settings[i].top_k = below(&own, 2) ? (int32_t)below(&own, 30) : 0;
        settings[i].top_p = below(&own, 2) ? real(&own, 0.1f, 1) : 1;
        settings[i].min_p = below(&own, 2) ? real(&own, 0, 0.3f) : 0;
        settings[i].seed = r->unit[i];
        settings[i].logprobs = (int32_t)below(&own, 4) - 1;
        for (size_t k = 0; k < 16; k++)
            masks[i][k] = (uint32_t)below(&own, 1u << 31) | 1;
        for (size_t k = 0; k < 3; k++) {
            size_t best = 0;
            fill(r, (unsigned)k, 1 + r->unit[i], row, vocab);
            for (size_t t = 0; t < vocab; t++)
                best = row[t] > row[best] ? t : best;
            if (k < 2)
                guesses[i][k] = (uint32_t)best; /* right where the likeliest is taken */
            mt_tensor_write(r->dev, logits, 3 * i + k, 1, row);
        }
        chains[i] = (mt_chain){.first = 3 * i,
                               .settings = &settings[i],
                               .index = (uint32_t)below(&own, 9),
                               .constrained = below(&own, 3) == 0 && !large,
                               .guessed = below(&own, 3),
                               .guess = guesses[i],
                               .allowed = {masks[i], masks[i]},
                               .allowed_count = 2};
        list[i] = &chains[i];
    }
    mt_step_choose(r->dev, chooser, logits, list, r->units);
    mt_step_chosen(r->dev, chooser, logits, list, r->units);
    for (size_t i = 0; i < r->units; i++) {
        const mt_chain *c = &chains[i];
        float told[16] = {(float)c->status, (float)c->sampled_count};
        for (size_t k = 0; k < c->sampled_count; k++) {
            told[2 + 4 * k] = (float)c->sampled[k].chosen.id;
            told[3 + 4 * k] = c->sampled[k].chosen.logprob;
            told[4 + 4 * k] = c->sampled[k].top_count ? (float)c->sampled[k].top[0].id : -1;
            told[5 + 4 * k] = c->sampled[k].top_count ? c->sampled[k].top[0].logprob : 0;
        }
        give_floats(r, told, 16);
    }
    void *const arrays[] = {chains, list, settings, guesses, masks, row};
    for (size_t i = 0; i < MT_COUNT(arrays); i++)
        mt_free(arrays[i]);
}

const device_check object_checks[] = {{.name = "state_restore read_state", .fn = states},
                                      {.name = "tensor_reserve tensor_write read_rows", .fn = features},
                                      {.name = "step_choose", .fn = choices},
                                      {0}};
