/* What is drawn many times has the probabilities that the settings promise, computed here in double with libm. */
#include "unit.h"

#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "sample/sampler.h"

enum { VOCAB = 12 };

static const float logits[VOCAB] = {0.3f, 2.1f, -1.0f, 1.7f, 0.0f, 2.1f, -4.0f, 1.1f, 0.9f, -0.4f, 3.0f, 0.5f};

/* Chi-square of the draws against p; a token with p = 0 must never come. */
static double chi_square(const mt_sample_settings *s, const double *p, uint32_t draws)
{
    void *scratch = mt_alloc_aligned(64, mt_sample_scratch_bytes(VOCAB));
    uint32_t seen[VOCAB] = {0};
    double chi = 0;
    mt_kernels k;
    mt_kernels_init(&k, mt_cpu_detect());
    for (uint32_t i = 0; i < draws; i++) {
        mt_sample_row row = {.logits = logits, .vocab = VOCAB, .settings = s, .index = i};
        mt_sampled out;
        assert_int_equal(mt_sample(&k, &row, scratch, &out), MT_SAMPLE_OK);
        seen[out.chosen.id]++;
    }
    for (size_t i = 0; i < VOCAB; i++) {
        double expected = p[i] * draws, off = seen[i] - expected;
        if (p[i] == 0)
            assert_int_equal(seen[i], 0);
        else
            chi += off * off / expected;
    }
    mt_free(scratch);
    return chi;
}

/* p of the kept tokens (bits by id) at a temperature. */
static void probabilities(double *p, double temperature, unsigned kept)
{
    double sum = 0;
    for (size_t i = 0; i < VOCAB; i++)
        sum += p[i] = kept >> i & 1 ? exp((double)logits[i] / temperature) : 0;
    for (size_t i = 0; i < VOCAB; i++)
        p[i] /= sum;
}

/* 37.4 is the chi-square that 11 degrees of freedom exceed once in ten thousand; fewer degrees exceed it less often. */
static void check(mt_sample_settings s, unsigned kept)
{
    uint32_t draws = unit_quick() ? 5000 : 100000;
    double p[VOCAB], chi;
    probabilities(p, (double)s.temperature, kept);
    chi = chi_square(&s, p, draws);
    if (!(chi < 37.4))
        fail_msg("chi-square is %g", chi);
}

static mt_sample_settings settings(float temperature)
{
    mt_sample_settings s;
    mt_sample_settings_init(&s);
    s.temperature = temperature;
    s.seed = 12345;
    return s;
}

static void plain_temperatures(void **state)
{
    (void)state;
    check(settings(1), 0xfff);
    check(settings(0.4f), 0xfff);
    check(settings(5), 0xfff);
}

static void the_best_few(void **state)
{
    mt_sample_settings s = settings(1);
    (void)state;
    s.top_k = 4;
    check(s, 1u << 10 | 1u << 1 | 1u << 5 | 1u << 3);
}

/* The best at temperature 1: 0.36, 0.15, 0.15, 0.10, 0.05 and less. */
static void the_nucleus(void **state)
{
    mt_sample_settings s = settings(1);
    (void)state;
    s.top_p = 0.6f;
    check(s, 1u << 10 | 1u << 1 | 1u << 5);
}

/* exp(-1.3) = 0.27 of the best is enough, exp(-1.9) = 0.15 is not. */
static void the_likely_enough(void **state)
{
    mt_sample_settings s = settings(1);
    (void)state;
    s.min_p = 0.2f;
    check(s, 1u << 10 | 1u << 1 | 1u << 5 | 1u << 3);
}

/* A broken generator would pass none of these: the test can tell. */
static void a_wrong_temperature_is_noticed(void **state)
{
    mt_sample_settings s = settings(1.1f);
    double p[VOCAB];
    (void)state;
    probabilities(p, 1, 0xfff);
    assert_true(chi_square(&s, p, 20000) > 37.4);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(plain_temperatures),
    cmocka_unit_test(the_best_few),
    cmocka_unit_test(the_nucleus),
    cmocka_unit_test(the_likely_enough),
    cmocka_unit_test(a_wrong_temperature_is_noticed),
};
UNIT_MAIN(tests)
