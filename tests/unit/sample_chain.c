/* Chains: rows that a device chooses for one by one, as if every guess before them were right, give the tokens that
   choosing one after the other gives. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "sample/chain.h"
#include "sample/limits.h"
#include "sample/philox.h"
#include "sample/steer.h"

enum { VOCAB = 210, WORDS = (VOCAB + 31) / 32, GUESSES = 3, PROMPT = 30, TRIALS = 3000 };

typedef struct fixture {
    mt_kernels k;
    void *scratch, *memory;
    uint32_t trial, drawn;
    float logits[GUESSES + 1][VOCAB];
    uint32_t guess[GUESSES], mask[GUESSES + 1][WORDS], only[WORDS], ends[3], words[2];
    mt_bad_word word;
    mt_sample_settings settings;
    mt_chain chain;
} fixture;

static int setup(void **state)
{
    fixture *f = mt_alloc(sizeof(*f));
    mt_kernels_init(&f->k, mt_cpu_detect());
    f->scratch = mt_alloc_aligned(64, mt_sample_scratch_bytes(VOCAB));
    f->memory = mt_alloc(mt_counts_bytes(PROMPT, PROMPT, VOCAB, 0));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    mt_free(f->memory);
    mt_free(f->scratch);
    mt_free(f);
    return 0;
}

static uint32_t below(fixture *f, uint32_t n)
{
    return (uint32_t)(mt_philox_draw(7, f->trial, f->drawn++, MT_PURPOSE_TOKEN) >> 20) % n;
}

static float real(fixture *f, float low, float high)
{
    return low + (high - low) * (float)below(f, 1 << 20) / (float)(1 << 20);
}

static void draw_mask(fixture *f, uint32_t mask[WORDS])
{
    for (size_t i = 0; i < WORDS; i++)
        mask[i] = below(f, 3) ? UINT32_MAX : below(f, 1u << 31);
}

static void draw_settings(fixture *f)
{
    mt_sample_settings *s = &f->settings;
    mt_sample_settings_init(s);
    s->temperature = below(f, 2) ? real(f, 0.2f, 2) : 0;
    s->top_p = below(f, 2) ? real(f, 0.5f, 1) : 1;
    s->seed = below(f, 1000);
    s->logprobs = (int32_t)below(f, 5) - 1;
    s->repetition_penalty = below(f, 3) ? 1 : 1.2f;
    s->presence_penalty = below(f, 3) ? 0 : 0.5f;
    s->min_tokens = below(f, 2) ? 0 : 6;
    for (size_t i = 0; i < MT_COUNT(f->ends); i++)
        f->ends[i] = below(f, VOCAB + 20); /* some are in no vocabulary */
    s->stop_ids = f->ends;
    s->stop_count = 1;
    s->eos_ids = f->ends + 1;
    s->eos_count = 2;
    f->words[0] = f->guess[0];
    f->words[1] = below(f, 2) ? f->guess[1] : below(f, VOCAB);
    f->word = (mt_bad_word){.ids = f->words, .count = 1 + below(f, 2)};
    s->bad = &f->word;
    s->bad_count = below(f, 4) == 0;
    if (below(f, 5) == 0) {
        draw_mask(f, f->only);
        s->only = f->only;
    }
}

/* Guesses are the likeliest tokens, so that they are right as a rule. */
static void draw_chain(fixture *f)
{
    uint32_t prompt[PROMPT];
    f->drawn = 0;
    for (size_t i = 0; i <= GUESSES; i++) {
        for (size_t t = 0; t < VOCAB; t++)
            f->logits[i][t] = real(f, -3, 3);
        const uint32_t best = below(f, VOCAB);
        f->logits[i][best] = 9;
        if (i < GUESSES)
            f->guess[i] = best;
        draw_mask(f, f->mask[i]);
        if (below(f, 60) == 0)
            f->logits[i][below(f, VOCAB)] = NAN;
        if (below(f, 30) == 0)
            memset(f->mask[i], 0, sizeof(f->mask[i]));
    }
    draw_settings(f);
    f->chain = (mt_chain){.settings = &f->settings,
                          .choice = below(f, 3),
                          .index = below(f, 9),
                          .tail = {f->guess[0], f->guess[2]},
                          .tail_count = below(f, 3),
                          .constrained = below(f, 3) == 0,
                          .guessed = below(f, GUESSES + 1),
                          .guess = f->guess,
                          .allowed_count = below(f, GUESSES + 2)};
    for (size_t i = 0; i <= GUESSES; i++) {
        f->chain.allowed[i] = f->mask[i];
        f->chain.forced[i] = below(f, 2) ? MT_SAMPLE_ANY : i < GUESSES && below(f, 2) ? f->guess[i] : below(f, VOCAB);
    }
    f->chain.forces = below(f, 5) == 0;
    for (size_t i = 0; i < PROMPT; i++)
        prompt[i] = below(f, VOCAB);
    if (mt_sample_settings_penalise(&f->settings))
        f->chain.counts = mt_counts_make(f->memory, prompt, PROMPT, PROMPT, VOCAB, 0);
}

/* What a device would give back for the rows of a chain. */
static void choose_rows(fixture *f, mt_best best[GUESSES + 1], mt_tops tops[GUESSES + 1])
{
    mt_counts *counts = f->chain.counts;
    for (size_t i = 0; i <= f->chain.guessed; i++) {
        uint32_t tail[MT_LIMIT_BAD_TOKENS];
        mt_sampled got;
        mt_sample_row row = mt_chain_row(&f->chain, i, tail);
        row.logits = f->logits[i];
        row.vocab = VOCAB;
        if (i > 0 && counts)
            mt_counts_push(counts, f->guess[i - 1]);
        const mt_sample_status status = mt_sample(&f->k, &row, f->scratch, &got);
        best[i] = (mt_best){.logit = status == MT_SAMPLE_OK ? 1 : status == MT_SAMPLE_NOTHING ? -INFINITY : NAN};
        if (status != MT_SAMPLE_OK)
            continue;
        best[i].id = got.chosen.id;
        tops[i] = (mt_tops){.logprob = got.chosen.logprob, .count = (uint32_t)got.top_count};
        memcpy(tops[i].top, got.top, got.top_count * sizeof(*got.top));
    }
    if (counts)
        mt_counts_roll_back(counts, f->chain.guessed);
}

static void a_row_stands_behind_the_guesses_before_it(void **state)
{
    fixture *f = *state;
    draw_chain(f);
    f->settings.bad_count = 1;
    for (size_t said = 0; said <= MT_LIMIT_BAD_TOKENS; said++) {
        f->chain.tail[said ? said - 1 : 0] = 1000 + (uint32_t)said;
        f->chain.tail_count = said;
        for (size_t ahead = 0; ahead <= GUESSES; ahead++) {
            uint32_t tail[MT_LIMIT_BAD_TOKENS];
            const mt_sample_row row = mt_chain_row(&f->chain, ahead, tail);
            assert_int_equal(row.index, f->chain.index + ahead);
            assert_int_equal(row.tail_count, MT_MIN(said + ahead, MT_LIMIT_BAD_TOKENS));
            for (size_t back = 1; back <= row.tail_count; back++)
                assert_int_equal(tail[row.tail_count - back],
                                 back <= ahead ? f->guess[ahead - back] : 1000 + said + ahead + 1 - back);
        }
    }
}

static void rows_by_themselves_make_the_same_chain(void **state)
{
    fixture *f = *state;
    size_t most = 0;
    for (f->trial = 0; f->trial < TRIALS; f->trial++) {
        mt_best best[GUESSES + 1];
        mt_tops tops[GUESSES + 1];
        draw_chain(f);
        mt_chain wanted = f->chain, got = f->chain;
        mt_chain_choose(&wanted, &f->k, f->logits[0], VOCAB, VOCAB, f->scratch);
        choose_rows(f, best, tops);
        mt_chain_take(&got, best, f->settings.logprobs >= 0 ? tops : NULL);
        assert_int_equal(got.status, wanted.status);
        assert_int_equal(got.sampled_count, wanted.sampled_count);
        assert_true(!got.constrained || got.sampled_count <= got.allowed_count);
        for (size_t i = 0; i < got.sampled_count; i++) {
            const mt_sampled *a = &got.sampled[i], *b = &wanted.sampled[i];
            assert_true(!got.forces || got.forced[i] == MT_SAMPLE_ANY || a->chosen.id == got.forced[i]);
            assert_memory_equal(&a->chosen, &b->chosen, sizeof(a->chosen));
            assert_int_equal(a->top_count, b->top_count);
            assert_memory_equal(a->top, b->top, a->top_count * sizeof(*a->top));
        }
        most = MT_MAX(most, got.sampled_count);
    }
    assert_int_equal(most, GUESSES + 1);
}

static void a_mask_is_what_steering_leaves(void **state)
{
    fixture *f = *state;
    size_t with = 0;
    for (f->trial = 0; f->trial < TRIALS; f->trial++) {
        uint32_t tail[MT_LIMIT_BAD_TOKENS], mask[WORDS];
        float steered[VOCAB];
        draw_chain(f);
        mt_sample_row row = mt_chain_row(&f->chain, f->chain.guessed, tail);
        row.logits = f->logits[0];
        row.vocab = VOCAB;
        const bool any = mt_steer_mask(mask, &row);
        mt_steer(steered, &row);
        for (size_t t = 0; t < VOCAB; t++)
            assert_int_equal(!any || mask[t / 32] >> t % 32 & 1, steered[t] != -INFINITY);
        with += any;
    }
    assert_true(with > TRIALS / 4 && with < TRIALS);
}

static void the_best_are_chosen_where_nothing_else_is_asked_for(void **state)
{
    fixture *f = *state;
    size_t greedy = 0;
    for (f->trial = 0; f->trial < TRIALS; f->trial++) {
        uint32_t tail[MT_LIMIT_BAD_TOKENS], mask[WORDS];
        draw_chain(f);
        mt_sample_row row = mt_chain_row(&f->chain, 0, tail);
        row.vocab = VOCAB;
        const bool wanted = f->settings.temperature == 0 && f->settings.logprobs < 0 && !f->chain.constrained &&
                            !f->chain.forces && !f->chain.counts && !mt_steer_mask(mask, &row);
        assert_int_equal(mt_chain_greedy(&f->chain), wanted);
        greedy += wanted;
    }
    assert_true(greedy > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
    TEST(a_row_stands_behind_the_guesses_before_it),
    TEST(rows_by_themselves_make_the_same_chain),
    TEST(a_mask_is_what_steering_leaves),
    TEST(the_best_are_chosen_where_nothing_else_is_asked_for),
};
UNIT_MAIN(tests)
