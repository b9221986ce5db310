#include "unit.h"

#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "sample/candidates.h"
#include "sample/philox.h"

enum { VOCAB = 2600 };

typedef struct fixture {
    mt_kernels k;
    mt_ranking ranking;
    mt_candidates c;
    float logits[VOCAB], weights[VOCAB];
    void *room;
} fixture;

static int setup(void **state)
{
    fixture *f = mt_alloc(sizeof(*f));
    f->room = mt_alloc_aligned(64, mt_ranking_room_bytes(VOCAB));
    mt_kernels_init(&f->k, mt_cpu_detect());
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    mt_free(f->room);
    mt_free(f);
    return 0;
}

static void start(fixture *f, size_t n, float temperature, float min_p)
{
    mt_ranking_start(&f->ranking, &f->k, f->logits, n, f->room);
    mt_candidates_start(&f->c, &f->k, &f->ranking, f->weights, temperature, min_p, 0);
}

/* From 0 down to 30 below, where weights end: each of them in blocks of its own too. */
static void fill(fixture *f, bool falling)
{
    for (uint32_t i = 0; i < VOCAB; i++) {
        float part = (float)(mt_philox_draw(8, 0, i, MT_PURPOSE_TOKEN) >> 40) * 0x1p-24f;
        f->logits[i] = -30 * (falling ? (float)i / VOCAB : part);
    }
}

/* Added block by block or candidate by candidate, to the last unit. */
static void the_total_is_the_sum_of_the_candidates(void **state)
{
    static const float temperatures[] = {0.05f, 0.9f, 1, 1.07f, 3}, shares[] = {0, 1e-11f, 1e-5f, 0.3f, 1};
    fixture *f = *state;
    for (size_t i = 0; i < 2 * MT_COUNT(temperatures) * MT_COUNT(shares) * 3; i++) {
        uint64_t sum = 0;
        fill(f, i % 2);
        start(f, VOCAB - i % 3 * 100, temperatures[i / 2 % 5], shares[i / 10 % 5]);
        for (size_t at = 0; mt_candidates_has(&f->c, at); at++)
            sum += mt_candidates_mass(&f->c, at);
        assert_true(mt_candidates_total(&f->c) == sum);
    }
}

static void weights_are_those_of_a_softmax(void **state)
{
    fixture *f = *state;
    fill(f, false);
    start(f, VOCAB, 0.7f, 0);
    for (size_t i = 0; mt_candidates_has(&f->c, i); i++) {
        double want = exp(((double)f->logits[mt_candidates_id(&f->c, i)] - (double)f->ranking.highest) / 0.7);
        double got = (double)mt_candidates_mass(&f->c, i) / (double)MT_MASS_ONE;
        assert_true(fabs(got - want) < 1e-5 * want + 0x1p-40);
    }
    assert_true(mt_candidates_mass(&f->c, 0) == MT_MASS_ONE);
}

static void min_p_ends_the_candidates(void **state)
{
    fixture *f = *state;
    size_t count = 0;
    fill(f, true);
    start(f, VOCAB, 1, 0.1f);
    while (mt_candidates_has(&f->c, count))
        count++;
    assert_true(mt_candidates_scaled(&f->c, count - 1) > -2.302586f);
    assert_true(f->logits[count] - f->logits[0] < -2.302585f);
    assert_false(mt_candidates_has(&f->c, count + 100));
}

static void a_share_is_never_nothing_and_never_more_than_all(void **state)
{
    (void)state;
    assert_true(mt_mass_share(0, MT_MASS_ONE) == 1);
    assert_true(mt_mass_share(0.5f, MT_MASS_ONE) == MT_MASS_ONE / 2);
    assert_true(mt_mass_share(1, ((uint64_t)1 << 62) - 1) == ((uint64_t)1 << 62) - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
    TEST(the_total_is_the_sum_of_the_candidates),
    TEST(weights_are_those_of_a_softmax),
    TEST(min_p_ends_the_candidates),
    TEST(a_share_is_never_nothing_and_never_more_than_all),
};
UNIT_MAIN(tests)
