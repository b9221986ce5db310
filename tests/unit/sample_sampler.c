#include "unit.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/pool.h"
#include "sample/sampler.h"
#include "sample_reference.h"

enum { VOCAB = 3001, PROMPT = 40, OUTPUT = 30, WORDS = (VOCAB + 31) / 32 };

typedef struct fixture {
    mt_kernels k;
    void *scratch, *memory;
    float logits[VOCAB];
    uint32_t prompt[PROMPT], output[OUTPUT], allowed[WORDS];
} fixture;

static uint64_t bits(uint32_t index)
{
    return mt_philox_draw(99, 0, index, MT_PURPOSE_TOKEN);
}

static float noise(uint32_t index)
{
    return (float)(bits(index) >> 40) * 0x1p-24f;
}

/* Flat where spread is small, peaked where it is large; in steps, so that there are ties. */
static void fill_logits(fixture *f, float spread)
{
    for (uint32_t i = 0; i < VOCAB; i++)
        f->logits[i] = roundf(64 * spread * (noise(4 * i) + noise(4 * i + 1) + noise(4 * i + 2) - 1.5f)) / 64;
}

static int setup(void **state)
{
    fixture *f = mt_alloc(sizeof(*f));
    mt_kernels_init(&f->k, mt_cpu_detect());
    f->scratch = mt_alloc_aligned(64, mt_sample_scratch_bytes(VOCAB));
    f->memory = mt_alloc(mt_counts_bytes(PROMPT, OUTPUT, VOCAB, 0));
    fill_logits(f, 6);
    for (uint32_t i = 0; i < PROMPT; i++)
        f->prompt[i] = (uint32_t)(bits(50000 + i) % VOCAB);
    for (uint32_t i = 0; i < OUTPUT; i++)
        f->output[i] = (uint32_t)(bits(60000 + i) % 20);
    for (uint32_t i = 0; i < WORDS; i++)
        f->allowed[i] = i % 3 == 0 ? ~0u : i % 3 == 1 ? 0 : (uint32_t)bits(70000 + i);
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

static mt_sample_settings defaults(void)
{
    mt_sample_settings s;
    mt_sample_settings_init(&s);
    return s;
}

/* Samples as the engine would, with counts where the settings want them, and with allocation forbidden. */
static mt_sampled sample_with(fixture *f, const ref_input *in, const mt_kernels *k)
{
    const mt_sample_settings *s = in->settings;
    mt_sample_row row = {.logits = in->logits, .vocab = in->vocab, .settings = s, .allowed = in->allowed};
    mt_sampled out;
    mt_error err;
    assert_true(mt_sample_settings_check(s, in->vocab, &err));
    row.choice = in->choice;
    row.index = (uint32_t)in->output_count;
    if (mt_sample_settings_penalise(s)) {
        size_t prompt_count = mt_sample_settings_penalise_prompt(s) ? in->prompt_count : 0;
        mt_counts *counts = mt_counts_make(f->memory, in->prompt, prompt_count, OUTPUT, in->vocab, 0);
        for (size_t i = 0; i < in->output_count; i++)
            mt_counts_push(counts, in->output[i]);
        row.counts = counts;
    }
    mt_alloc_forbid();
    assert_int_equal(mt_sample(k, &row, f->scratch, &out), MT_SAMPLE_OK);
    mt_alloc_permit();
    return out;
}

/* Many random numbers after some tokens: the same token as the plain sampler, for every one and at both levels. The
   sanitizers see all there is to see with a few. */
static void agrees_after(fixture *f, const mt_sample_settings *s, bool masked, size_t length, ref_candidate *c)
{
    ref_input in = {.logits = f->logits,
                    .vocab = VOCAB,
                    .settings = s,
                    .prompt = f->prompt,
                    .prompt_count = PROMPT,
                    .output = f->output,
                    .output_count = length,
                    .allowed = masked ? f->allowed : NULL};
    size_t n = ref_candidates(&in, c);
    for (in.choice = 0; in.choice < (unit_quick() ? 5 : 40); in.choice++) {
        uint32_t want = ref_pick(&in, c, n);
        assert_int_equal(sample_with(f, &in, &f->k).chosen.id, want);
        assert_int_equal(sample_with(f, &in, ref_kernels()).chosen.id, want);
    }
}

/* On flat, ordinary and peaked rows, early and late in a sequence. */
static void agrees(fixture *f, const mt_sample_settings *s, bool masked)
{
    static const float spreads[] = {0.25f, 6, 40};
    ref_candidate *c = calloc(VOCAB, sizeof(*c));
    for (size_t r = 0; r < MT_COUNT(spreads); r++) {
        fill_logits(f, spreads[r]);
        agrees_after(f, s, masked, 9, c);
        agrees_after(f, s, masked, OUTPUT - 1, c);
    }
    free(c);
}

static void greedy_takes_the_highest_and_the_lower_id_of_equals(void **state)
{
    mt_sample_settings s = defaults();
    fixture *f = *state;
    s.temperature = 0;
    agrees(f, &s, false);
    for (uint32_t i = 0; i < VOCAB; i++)
        f->logits[i] = i >= 1234 && i % 2 == 0 ? 3.0f : 1.0f;
    ref_input in = {.logits = f->logits, .vocab = VOCAB, .settings = &s};
    assert_int_equal(sample_with(f, &in, &f->k).chosen.id, 1234);
}

static void temperature_alone(void **state)
{
    static const float temperatures[] = {1e-5f, 0.01f, 0.3f, 1, 1.7f, 100};
    mt_sample_settings s = defaults();
    for (size_t i = 0; i < MT_COUNT(temperatures); i++) {
        s.temperature = temperatures[i];
        agrees(*state, &s, false);
    }
}

static void top_p_of_any_size(void **state)
{
    static const float shares[] = {0, 1e-9f, 0.1f, 0.5f, 0.9f, 0.95f, 0.999f, 0.99999994f};
    mt_sample_settings s = defaults();
    for (size_t i = 0; i < MT_COUNT(shares); i++) {
        s.top_p = shares[i];
        agrees(*state, &s, false);
    }
}

static void top_k_of_any_size(void **state)
{
    static const int32_t counts[] = {-1, 0, 1, 2, 20, 63, 64, 65, 1000, VOCAB - 1, VOCAB, INT32_MAX};
    mt_sample_settings s = defaults();
    for (size_t i = 0; i < MT_COUNT(counts); i++) {
        s.top_k = counts[i];
        agrees(*state, &s, false);
    }
}

static void min_p_of_any_size(void **state)
{
    static const float shares[] = {1e-12f, 1e-4f, 0.02f, 0.3f, 1};
    mt_sample_settings s = defaults();
    for (size_t i = 0; i < MT_COUNT(shares); i++) {
        s.min_p = shares[i];
        agrees(*state, &s, false);
    }
}

static void typical_p_of_any_size(void **state)
{
    static const float shares[] = {0, 0.05f, 0.2f, 0.7f, 0.95f, 0.9999f};
    mt_sample_settings s = defaults();
    for (size_t i = 0; i < MT_COUNT(shares); i++) {
        s.typical_p = shares[i];
        agrees(*state, &s, false);
    }
}

static void penalties_of_both_signs(void **state)
{
    mt_sample_settings s = defaults();
    for (int greedy = 0; greedy < 2; greedy++) {
        s = defaults();
        s.temperature = greedy ? 0 : 1;
        s.presence_penalty = 1.5f;
        agrees(*state, &s, false);
        s.presence_penalty = -2;
        s.frequency_penalty = 0.7f;
        agrees(*state, &s, false);
        s.repetition_penalty = 1.3f;
        agrees(*state, &s, false);
        s.frequency_penalty = s.presence_penalty = 0;
        s.repetition_penalty = 0.5f;
        agrees(*state, &s, false);
    }
}

static void what_left_the_window_is_not_penalised(void **state)
{
    void *memory = mt_alloc(mt_counts_bytes(0, 2, VOCAB, 2));
    mt_sample_settings s = defaults();
    fixture *f = *state;
    s.temperature = 0;
    s.repetition_penalty = 2;
    for (uint32_t i = 0; i < VOCAB; i++)
        f->logits[i] = i == 17 ? 9 : i == 4 ? 8 : 0;
    for (size_t window = 1; window <= 2; window++) {
        mt_counts *counts = mt_counts_make(memory, NULL, 0, 2, VOCAB, window);
        const mt_sample_row row = {.logits = f->logits, .vocab = VOCAB, .settings = &s, .counts = counts};
        mt_sampled out;
        mt_counts_push(counts, 17);
        mt_counts_push(counts, 3);
        assert_int_equal(mt_sample(&f->k, &row, f->scratch, &out), MT_SAMPLE_OK);
        assert_int_equal(out.chosen.id, window == 1 ? 17 : 4);
    }
    mt_free(memory);
}

static void bias_mask_and_min_tokens(void **state)
{
    static const mt_logit_bias bias[] = {{3, 100}, {17, 7.5f}, {3, -95}, {2999, 6}, {8, -100}};
    static const uint32_t stops[] = {17, 96}, ends[] = {2, 5000000};
    mt_sample_settings s = defaults();
    for (int greedy = 0; greedy < 2; greedy++) {
        s = defaults();
        s.temperature = greedy ? 0 : 1;
        s.bias = bias;
        s.bias_count = 1;
        agrees(*state, &s, false);
        s.bias_count = MT_COUNT(bias);
        agrees(*state, &s, false);
        agrees(*state, &s, true);
        s.stop_ids = stops;
        s.stop_count = 2;
        s.eos_ids = ends;
        s.eos_count = 2;
        s.min_tokens = 20; /* one of the two lengths that are tried is below */
        agrees(*state, &s, true);
    }
}

/* The likeliest token ends an answer, and is taken from the length on that is asked for; the second is never taken. */
static void an_end_waits_for_min_tokens(void **state)
{
    static const uint32_t end[] = {17}, bad[] = {3};
    mt_sample_settings s = defaults();
    fixture *f = *state;
    ref_input in = {.logits = f->logits, .vocab = VOCAB, .settings = &s};
    s.temperature = 0;
    s.min_tokens = 5;
    s.stop_ids = s.eos_ids = end;
    s.bad = &(mt_bad_word){bad, 1};
    s.bad_count = 1;
    for (uint32_t i = 0; i < VOCAB; i++)
        f->logits[i] = i == end[0] ? 9 : i == bad[0] ? 8 : i == 4 ? 7 : 0;
    for (in.output_count = 0; in.output_count < 10; in.output_count++)
        for (s.stop_count = 0; s.stop_count < 2; s.stop_count++) {
            s.eos_count = 1 - s.stop_count;
            assert_int_equal(sample_with(f, &in, &f->k).chosen.id, in.output_count < 5 ? 4 : end[0]);
        }
}

static void everything_at_once(void **state)
{
    static const mt_logit_bias bias[] = {{1, 3}, {700, -2}};
    static const uint32_t stops[] = {0};
    mt_sample_settings s = {.temperature = 0.8f,
                            .top_p = 0.9f,
                            .top_k = 200,
                            .min_p = 0.001f,
                            .typical_p = 0.8f,
                            .presence_penalty = 0.3f,
                            .frequency_penalty = 0.2f,
                            .repetition_penalty = 1.1f,
                            .logprobs = -1,
                            .min_tokens = 15,
                            .seed = 0xfeedfacecafebeefu,
                            .bias = bias,
                            .bias_count = 2,
                            .stop_ids = stops,
                            .stop_count = 1};
    agrees(*state, &s, true);
    agrees(*state, &s, false);
}

static void a_seed_repeats_and_choices_differ(void **state)
{
    fixture *f = *state;
    mt_sample_settings s = defaults();
    ref_input in = {.logits = f->logits, .vocab = VOCAB, .settings = &s};
    uint32_t tokens[2][3][16], same_choice = 0, same_seed = 0;
    fill_logits(f, 2);
    for (uint32_t seed = 0; seed < 2; seed++) {
        for (uint32_t choice = 0; choice < 3; choice++) {
            for (uint32_t i = 0; i < 16; i++) {
                s.seed = seed;
                in.choice = choice;
                in.output_count = i;
                tokens[seed][choice][i] = sample_with(f, &in, &f->k).chosen.id;
                assert_int_equal(sample_with(f, &in, &f->k).chosen.id, tokens[seed][choice][i]);
            }
        }
    }
    for (uint32_t i = 0; i < 16; i++) {
        same_choice += tokens[0][0][i] == tokens[0][1][i];
        same_seed += tokens[0][0][i] == tokens[1][0][i];
    }
    assert_in_range(same_choice, 0, 4);
    assert_in_range(same_seed, 0, 4);
}

/* By hand: 0.5, 0.25, 0.125, 0.125; the last two are equal, and the lower id comes first. */
static void the_borders_are_where_the_text_says(void **state)
{
    static const float logits[] = {-1.3862944f, -0.6931472f, -2.0794415f, -2.0794415f};
    static const struct {
        float top_p, min_p, typical_p;
        int32_t top_k;
        unsigned set; /* bits by id */
    } cases[] = {
        {1, 0, 1, 0, 15},    {0.49f, 0, 1, 0, 2}, {0.51f, 0, 1, 0, 3},     {0.76f, 0, 1, 0, 7}, {0.9f, 0, 1, 0, 15},
        {1, 0.4f, 1, 0, 3},  {1, 0.2f, 1, 0, 15}, {1, 1, 1, 0, 2},         {1, 0, 1, 3, 7},     {0.6f, 0, 1, 2, 2},
        {0.67f, 0, 1, 2, 3}, {1, 0, 0.2f, 0, 1},  {0.51f, 0, 0.01f, 0, 2},
    };
    fixture *f = *state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_sample_settings s = defaults();
        unsigned set = 0;
        s.top_p = cases[i].top_p;
        s.min_p = cases[i].min_p;
        s.typical_p = cases[i].typical_p;
        s.top_k = cases[i].top_k;
        for (uint32_t choice = 0; choice < 200; choice++) {
            ref_input in = {.logits = logits, .vocab = 4, .settings = &s, .choice = choice};
            set |= 1u << sample_with(f, &in, &f->k).chosen.id;
        }
        if (set != cases[i].set)
            fail_msg("case %zu draws from set %u, not %u", i, set, cases[i].set);
    }
}

static void extreme_rows(void **state)
{
    fixture *f = *state;
    mt_sample_settings s = defaults();
    for (int kind = 0; kind < 5; kind++) {
        for (uint32_t i = 0; i < VOCAB; i++) {
            f->logits[i] = kind == 0   ? 2.5f
                           : kind == 1 ? (i % 2 ? FLT_MAX : -FLT_MAX)
                           : kind == 2 ? (i == 1500 ? -FLT_MAX : -INFINITY)
                           : kind == 3 ? (i % 7 ? -INFINITY : noise(i))
                                       : (i % 2 ? 0.0f : -0.0f);
        }
        for (uint32_t i = 0; i < 40; i++) {
            ref_input in = {.logits = f->logits, .vocab = VOCAB, .settings = &s, .choice = i};
            s = defaults();
            s.top_p = i % 4 == 1 ? 1e-30f : i % 4 == 2 ? 0.5f : 1;
            s.min_p = i % 5 == 1 ? 1 : 0;
            s.top_k = i % 3 == 1 ? 5 : 0;
            s.typical_p = i % 7 == 1 ? 0.5f : 1;
            assert_int_equal(sample_with(f, &in, &f->k).chosen.id, ref_sample(&in));
        }
    }
}

static mt_sample_status status_with(fixture *f, const mt_sample_row *row)
{
    mt_sampled out = {.chosen.id = 77};
    mt_sample_status status = mt_sample(&f->k, row, f->scratch, &out);
    if (status != MT_SAMPLE_OK)
        assert_int_equal(out.chosen.id, 77);
    return status;
}

static void faults_are_reported(void **state)
{
    fixture *f = *state;
    static const uint32_t none[WORDS];
    mt_sample_settings s = defaults();
    mt_sample_row row = {.logits = f->logits, .vocab = VOCAB, .settings = &s};
    for (int greedy = 0; greedy < 2; greedy++) {
        s.temperature = greedy ? 0 : 1;
        fill_logits(f, 6);
        row.allowed = none;
        assert_int_equal(status_with(f, &row), MT_SAMPLE_NOTHING);
        row.allowed = NULL;
        for (uint32_t at = 0; at < VOCAB; at += 500) {
            float was = f->logits[at];
            f->logits[at] = NAN;
            assert_int_equal(status_with(f, &row), MT_SAMPLE_NOT_FINITE);
            f->logits[at] = INFINITY;
            assert_int_equal(status_with(f, &row), MT_SAMPLE_NOT_FINITE);
            f->logits[at] = -INFINITY;
            assert_int_equal(status_with(f, &row), MT_SAMPLE_OK);
            f->logits[at] = was;
        }
        for (uint32_t i = 0; i < VOCAB; i++)
            f->logits[i] = -INFINITY;
        assert_int_equal(status_with(f, &row), MT_SAMPLE_NOTHING);
    }
}

static void a_penalty_that_overflows_is_reported(void **state)
{
    fixture *f = *state;
    mt_sample_settings s = defaults();
    mt_counts *counts = mt_counts_make(f->memory, f->prompt, PROMPT, OUTPUT, VOCAB, 0);
    mt_sample_row row = {.logits = f->logits, .vocab = VOCAB, .settings = &s, .counts = counts};
    s.repetition_penalty = 0.01f;
    f->logits[f->prompt[0]] = FLT_MAX;
    assert_int_equal(status_with(f, &row), MT_SAMPLE_NOT_FINITE);
    f->logits[f->prompt[0]] = -FLT_MAX;
    s.repetition_penalty = 100;
    assert_int_equal(status_with(f, &row), MT_SAMPLE_OK);
}

/* Whatever steers the choice, logprobs are those of the raw row. */
static void logprobs_are_of_the_raw_logits(void **state)
{
    static const mt_logit_bias bias[] = {{5, 100}};
    fixture *f = *state;
    mt_sample_settings s = defaults();
    ref_input in = {.logits = f->logits, .vocab = VOCAB, .settings = &s};
    double sum = 0;
    for (uint32_t i = 0; i < VOCAB; i++)
        sum += exp((double)f->logits[i]);
    s.temperature = 0;
    s.logprobs = 20;
    mt_sampled plain = sample_with(f, &in, &f->k);
    s.bias = bias;
    s.bias_count = 1;
    mt_sampled steered = sample_with(f, &in, &f->k);
    assert_int_equal(plain.top_count, 20);
    assert_int_equal(plain.chosen.id, plain.top[0].id);
    assert_memory_equal(plain.top, steered.top, sizeof(plain.top));
    assert_int_equal(steered.chosen.id, 5);
    assert_true(fabs((double)steered.chosen.logprob - ((double)f->logits[5] - log(sum))) < 1e-5);
    for (size_t i = 0; i < 20; i++)
        assert_true(fabs((double)plain.top[i].logprob - ((double)f->logits[plain.top[i].id] - log(sum))) < 1e-5);
    s.logprobs = 0;
    steered = sample_with(f, &in, &f->k);
    assert_int_equal(steered.top_count, 0);
    assert_true(steered.chosen.logprob < 0);
    s.logprobs = -1;
    assert_true(sample_with(f, &in, &f->k).chosen.logprob == 0);
}

/* Every level of this processor alone gives the same bits as portable C. */
static void every_level_gives_the_same_bits(void **state)
{
    fixture *f = *state;
    mt_sample_settings s = defaults();
    mt_kernels level;
    s.top_p = 0.9f;
    s.typical_p = 0.9f;
    s.logprobs = 20;
    for (uint32_t bit = 0; bit < 11; bit++) {
        mt_kernels_init(&level, mt_cpu_detect() & ((2u << bit) - 1));
        for (uint32_t i = 0; i < 20; i++) {
            ref_input in = {.logits = f->logits, .vocab = VOCAB - i % 3, .settings = &s, .choice = i};
            mt_sampled want = sample_with(f, &in, ref_kernels()), got = sample_with(f, &in, &level);
            assert_memory_equal(&want.chosen, &got.chosen, sizeof(want.chosen));
            assert_memory_equal(want.top, got.top, sizeof(want.top));
        }
    }
}

enum { ROWS = 64, THREADS = 3 };

typedef struct shared_rows {
    fixture *f;
    mt_sample_settings settings;
    void *scratch[THREADS];
    mt_sampled out[ROWS];
    mt_sample_status status[ROWS];
} shared_rows;

static void sample_item(void *ctx, size_t item, size_t worker)
{
    shared_rows *w = ctx;
    mt_sample_row row = {.logits = w->f->logits, .vocab = VOCAB, .settings = &w->settings, .choice = (uint32_t)item};
    w->status[item] = mt_sample(&w->f->k, &row, w->scratch[worker], &w->out[item]);
}

static void rows_on_many_threads_do_not_notice_each_other(void **state)
{
    shared_rows *w = mt_alloc(sizeof(*w));
    mt_error err;
    mt_pool *pool = mt_pool_new(THREADS, &err);
    assert_non_null(pool);
    w->f = *state;
    w->settings = defaults();
    w->settings.top_p = 0.95f;
    for (size_t i = 0; i < THREADS; i++)
        w->scratch[i] = mt_alloc_aligned(64, mt_sample_scratch_bytes(VOCAB));
    mt_pool_run(pool, sample_item, w, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        ref_input in = {.logits = w->f->logits, .vocab = VOCAB, .settings = &w->settings, .choice = i};
        assert_int_equal(w->status[i], MT_SAMPLE_OK);
        assert_int_equal(w->out[i].chosen.id, ref_sample(&in));
    }
    for (size_t i = 0; i < THREADS; i++)
        mt_free(w->scratch[i]);
    mt_pool_free(pool);
    mt_free(w);
}

/* The likeliest token after a tail. */
static uint32_t best_after(fixture *f, const mt_sample_settings *s, const uint32_t *tail, size_t count)
{
    const mt_sample_row row = {.logits = f->logits,
                               .vocab = VOCAB,
                               .settings = s,
                               .tail = tail,
                               .tail_count = count,
                               .index = (uint32_t)count};
    mt_sampled out;

    assert_int_equal(mt_sample(&f->k, &row, f->scratch, &out), MT_SAMPLE_OK);
    return out.chosen.id;
}

static void only_tokens_that_may_be_are_chosen(void **state)
{
    fixture *f = *state;
    mt_sample_settings s = defaults();
    uint32_t only[WORDS] = {0};

    only[2500 / 32] |= 1u << 2500 % 32;
    only[7 / 32] |= 1u << 7 % 32;
    s.only = only;
    for (uint32_t i = 0; i < 50; i++) {
        s.seed = i;
        const uint32_t id = best_after(f, &s, NULL, 0);
        assert_true(id == 7 || id == 2500);
    }
    s.temperature = 0;
    assert_int_equal(best_after(f, &s, NULL, 0), f->logits[2500] > f->logits[7] ? 2500 : 7);
}

static void a_bad_word_ends_before_its_last_token(void **state)
{
    fixture *f = *state;
    mt_sample_settings s = defaults();
    mt_error err;
    s.temperature = 0;
    const uint32_t best = best_after(f, &s, NULL, 0), word[] = {5, 6, best}, tail[] = {9, 5, 6};
    const mt_bad_word of_three = {word, 3}, of_one = {word + 2, 1};

    s.bad_count = 1;
    s.bad = &of_three;
    assert_true(mt_sample_settings_check(&s, VOCAB, &err));
    assert_int_equal(best_after(f, &s, tail, 0), best);
    assert_int_equal(best_after(f, &s, tail, 2), best);
    assert_int_equal(best_after(f, &s, tail + 2, 1), best);
    assert_int_not_equal(best_after(f, &s, tail + 1, 2), best);
    assert_int_not_equal(best_after(f, &s, tail, 3), best);
    s.bad = &of_one;
    assert_int_not_equal(best_after(f, &s, NULL, 0), best);
    s.bad = &(mt_bad_word){word, 0};
    assert_false(mt_sample_settings_check(&s, VOCAB, &err));
    s.bad = &(mt_bad_word){(uint32_t[]){VOCAB}, 1};
    assert_false(mt_sample_settings_check(&s, VOCAB, &err));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
    TEST(greedy_takes_the_highest_and_the_lower_id_of_equals),
    TEST(temperature_alone),
    TEST(top_p_of_any_size),
    TEST(top_k_of_any_size),
    TEST(min_p_of_any_size),
    TEST(typical_p_of_any_size),
    TEST(penalties_of_both_signs),
    TEST(what_left_the_window_is_not_penalised),
    TEST(bias_mask_and_min_tokens),
    TEST(an_end_waits_for_min_tokens),
    TEST(only_tokens_that_may_be_are_chosen),
    TEST(a_bad_word_ends_before_its_last_token),
    TEST(everything_at_once),
    TEST(a_seed_repeats_and_choices_differ),
    TEST(the_borders_are_where_the_text_says),
    TEST(extreme_rows),
    TEST(faults_are_reported),
    TEST(a_penalty_that_overflows_is_reported),
    TEST(logprobs_are_of_the_raw_logits),
    TEST(every_level_gives_the_same_bits),
    TEST(rows_on_many_threads_do_not_notice_each_other),
};
UNIT_MAIN(tests)
