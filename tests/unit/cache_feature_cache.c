/* Media by content, and features within their rows. */
#include "unit.h"

#include "cache/feature_cache.h"

static const uint8_t no_salt[32];
static float content[500]; /* of rows of features */

typedef struct name {
    uint8_t digest[32];
} name;

/* Digests that differ in their last byte only: whatever part of them decides, it is not the whole. */
static name named(unsigned n)
{
    name d = {{7}};
    d.digest[30] = (uint8_t)(n >> 8);
    d.digest[31] = (uint8_t)n;
    return d;
}

static mt_medium *hold(mt_feature_cache *g, unsigned n)
{
    const name d = named(n);
    return mt_feature_cache_hold(g, d.digest, no_salt);
}

static void fill(mt_feature_cache *g, mt_medium *e, size_t rows, float value)
{
    const uint32_t *to = mt_feature_cache_fill(g, e, rows);
    assert_non_null(to);
    assert_true(mt_medium_filling(e));
    assert_null(mt_feature_cache_features(g, e));
    for (size_t i = 0; i < rows; i++)
        content[to[i]] = value;
    mt_feature_cache_filled(g, e, true);
}

static void equal_content_is_one_medium(void **state)
{
    mt_feature_cache *g = mt_feature_cache_new(100);
    uint8_t salt[32] = {0};
    (void)state;
    salt[31] = 1;
    mt_medium *a = hold(g, 1), *again = hold(g, 1), *b = hold(g, 2);
    const name first = named(1);
    mt_medium *salted = mt_feature_cache_hold(g, first.digest, salt);
    assert_true(a == again && a != b && a != salted);
    mt_feature_cache_release(g, a);
    mt_feature_cache_release(g, again);
    mt_feature_cache_release(g, b);
    mt_feature_cache_release(g, salted);
    mt_feature_cache_free(g);
}

static void a_medium_stays_as_long_as_its_features(void **state)
{
    mt_feature_cache *g = mt_feature_cache_new(100);
    (void)state;
    mt_medium *kept = hold(g, 0), *a = hold(g, 1);
    fill(g, a, 60, 1);
    mt_feature_cache_release(g, a);
    for (unsigned i = 2; i < 2000; i++)
        mt_feature_cache_release(g, hold(g, i));
    assert_int_equal(mt_feature_cache_look(g).known, 2);
    assert_ptr_equal(hold(g, 1), a);
    assert_true(content[mt_feature_cache_features(g, a)[59]] == 1);
    mt_feature_cache_release(g, a);
    fill(g, kept, 50, 0);
    assert_int_equal(mt_feature_cache_look(g).known, 1); /* a's features had to go, and a with them */
    mt_feature_cache_release(g, kept);
    mt_feature_cache_free(g);
}

static void features_go_in_the_order_of_their_last_use(void **state)
{
    mt_feature_cache *g = mt_feature_cache_new(100);
    mt_medium *e[5];
    (void)state;
    for (unsigned i = 0; i < 5; i++)
        e[i] = hold(g, i);
    for (unsigned i = 0; i < 4; i++)
        fill(g, e[i], 25, (float)i);
    assert_int_equal(mt_feature_cache_look(g).rows, 100);
    assert_true(content[mt_feature_cache_features(g, e[0])[24]] == 0);
    fill(g, e[4], 25, 4);
    assert_null(mt_feature_cache_features(g, e[1]));
    assert_true(content[mt_feature_cache_features(g, e[0])[24]] == 0 &&
                content[mt_feature_cache_features(g, e[4])[0]] == 4);
    assert_int_equal(mt_feature_cache_look(g).rows, 100);
    assert_int_equal(mt_feature_cache_look(g).evictions, 1);
    for (unsigned i = 0; i < 5; i++)
        mt_feature_cache_release(g, e[i]);
    mt_feature_cache_clear(g);
    assert_int_equal(mt_feature_cache_look(g).rows, 0);
    mt_feature_cache_free(g);
}

static void pinned_features_stay_and_what_does_not_fit_waits(void **state)
{
    mt_feature_cache *g = mt_feature_cache_new(100);
    mt_medium *a = hold(g, 1), *b = hold(g, 2), *c = hold(g, 3);
    (void)state;
    fill(g, a, 60, 1);
    mt_feature_cache_pin(g, a);
    mt_feature_cache_pin(g, a);
    assert_null(mt_feature_cache_fill(g, b, 50));
    fill(g, b, 40, 2);
    assert_null(mt_feature_cache_fill(g, c, 50)); /* b had to go for nothing: what is pinned leaves 40 */
    mt_feature_cache_unpin(g, a);
    assert_null(mt_feature_cache_fill(g, c, 50));
    mt_feature_cache_unpin(g, a);
    fill(g, c, 50, 3);
    assert_null(mt_feature_cache_features(g, a));
    assert_null(mt_feature_cache_fill(g, a, 101)); /* never */
    mt_feature_cache_release(g, a);
    mt_feature_cache_release(g, b);
    mt_feature_cache_release(g, c);
    mt_feature_cache_free(g);
}

static void features_that_are_not_sound_are_forgotten(void **state)
{
    mt_feature_cache *g = mt_feature_cache_new(100);
    mt_medium *a = hold(g, 1);
    (void)state;
    assert_non_null(mt_feature_cache_fill(g, a, 100));
    mt_feature_cache_filled(g, a, false);
    assert_null(mt_feature_cache_features(g, a));
    assert_int_equal(mt_feature_cache_look(g).rows, 0);
    mt_feature_cache_release(g, a);
    mt_feature_cache_free(g);
}

/* Random use against what is written down here. */
static void nothing_is_ever_mixed_up(void **state)
{
    enum { MEDIA = 40, STEPS = 20000 };
    mt_feature_cache *g = mt_feature_cache_new(500);
    mt_medium *held[MEDIA] = {0};
    bool pinned[MEDIA] = {false};
    uint64_t seed = 3;
    (void)state;
    for (size_t i = 0; i < STEPS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const unsigned n = (unsigned)(seed >> 33) % MEDIA, what = (unsigned)(seed >> 50) % 4;
        const uint32_t *features = held[n] ? mt_feature_cache_features(g, held[n]) : NULL;
        for (size_t row = 0; features && row < 8 + n; row++)
            assert_true((unsigned)content[features[row]] == n);
        assert_true(features || !pinned[n]);
        if (!held[n])
            held[n] = hold(g, n);
        else if (what == 0 && !pinned[n]) {
            mt_feature_cache_release(g, held[n]);
            held[n] = NULL;
        } else if (what == 1 && !features) {
            const uint32_t *to = mt_feature_cache_fill(g, held[n], 8 + n);
            for (size_t row = 0; to && row < 8 + n; row++)
                content[to[row]] = (float)n;
            if (to)
                mt_feature_cache_filled(g, held[n], true);
        } else if (what == 2 && features) {
            (pinned[n] ? mt_feature_cache_unpin : mt_feature_cache_pin)(g, held[n]);
            pinned[n] = !pinned[n];
        }
        assert_true(mt_feature_cache_look(g).rows <= 500 && mt_feature_cache_look(g).known <= MEDIA);
    }
    for (unsigned n = 0; n < MEDIA; n++) {
        if (pinned[n])
            mt_feature_cache_unpin(g, held[n]);
        if (held[n])
            mt_feature_cache_release(g, held[n]);
    }
    mt_feature_cache_free(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_content_is_one_medium),
    cmocka_unit_test(a_medium_stays_as_long_as_its_features),
    cmocka_unit_test(features_go_in_the_order_of_their_last_use),
    cmocka_unit_test(pinned_features_stay_and_what_does_not_fit_waits),
    cmocka_unit_test(features_that_are_not_sound_are_forgotten),
    cmocka_unit_test(nothing_is_ever_mixed_up),
};

UNIT_MAIN(tests)
