#include "unit.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "sample/philox.h"
#include "sample/ranking.h"

static const float *sorted_by;

static int by_logit_then_id(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    if (sorted_by[i] != sorted_by[j])
        return sorted_by[i] > sorted_by[j] ? -1 : 1;
    return i < j ? -1 : 1;
}

/* The whole order, or as much of it as was looked at, against sorting everything. */
static void check_order(const float *x, size_t n, size_t wanted, size_t look)
{
    mt_kernels k;
    mt_kernels_init(&k, mt_cpu_detect());
    void *room = mt_alloc_aligned(64, mt_ranking_room_bytes(n));
    uint32_t *order = mt_alloc_array(n, sizeof(*order));
    size_t finite = 0;
    mt_ranking r;
    float highest = mt_ranking_start(&r, &k, x, n, room);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        finite += x[i] > -INFINITY;
    }
    sorted_by = x;
    qsort(order, n, sizeof(*order), by_logit_then_id);
    assert_true(highest == x[order[0]]);
    if (finite > 0)
        assert_int_equal(mt_ranking_best(&r), order[0]);
    for (size_t i = 0; i < look; i++) {
        assert_true(mt_ranking_has(&r, i, wanted) == (i < finite));
        if (i >= finite)
            break;
        if (mt_ranking_id(&r, i) != order[i])
            fail_msg("position %zu of %zu holds %u, not %u", i, n, mt_ranking_id(&r, i), order[i]);
        assert_true(mt_ranking_logit(&r, i) == x[order[i]]);
    }
    mt_free(order);
    mt_free(room);
}

static float noise(uint32_t i)
{
    return (float)(mt_philox_draw(3, 0, i, MT_PURPOSE_TOKEN) >> 40) * 0x1p-24f;
}

static float bell(uint32_t i)
{
    return 4 * (noise(4 * i) + noise(4 * i + 1) + noise(4 * i + 2) + noise(4 * i + 3) - 2);
}

static float few_values(uint32_t i)
{
    return floorf(8 * noise(i)) - 4;
}

static float equal(uint32_t i)
{
    (void)i;
    return 1.25f;
}

static float zeros_of_both_signs(uint32_t i)
{
    return i % 3 ? 0.0f : -0.0f;
}

static float half_masked(uint32_t i)
{
    return i % 2 ? -INFINITY : bell(i);
}

static float all_masked_but_one(uint32_t i)
{
    return i == 0 ? -3.0f : -INFINITY;
}

static float all_masked(uint32_t i)
{
    (void)i;
    return -INFINITY;
}

static float rising(uint32_t i)
{
    return (float)i;
}

static float falling(uint32_t i)
{
    return -(float)i;
}

static float huge(uint32_t i)
{
    return (noise(i) - 0.5f) * 2 * FLT_MAX;
}

static float one_far_above(uint32_t i)
{
    return i == 77 ? 1e30f : bell(i);
}

static float (*const shapes[])(uint32_t) = {
    bell,   few_values, equal, zeros_of_both_signs, half_masked, all_masked_but_one, all_masked,
    rising, falling,    huge,  one_far_above,
};

static void the_order_is_that_of_sorting_everything(void **state)
{
    static const size_t sizes[] = {1, 2, 31, 33, 255, 256, 257, 1000, 5003, 40000};
    float *x = mt_alloc_array(40000, sizeof(*x));
    (void)state;
    for (size_t shape = 0; shape < MT_COUNT(shapes); shape++) {
        for (uint32_t i = 0; i < 40000; i++)
            x[i] = shapes[shape](i);
        for (size_t s = 0; s < MT_COUNT(sizes); s++)
            for (size_t wanted = 0; wanted <= 100; wanted += 50)
                check_order(x, sizes[s], wanted, sizes[s] + 1);
    }
    mt_free(x);
}

static void little_is_sorted_for_those_who_look_at_little(void **state)
{
    enum { N = 150000 };
    float *x = mt_alloc_array(N, sizeof(*x));
    void *room = mt_alloc_aligned(64, mt_ranking_room_bytes(N));
    mt_kernels k;
    mt_ranking r;
    (void)state;
    mt_kernels_init(&k, mt_cpu_detect());
    for (uint32_t i = 0; i < N; i++)
        x[i] = bell(i);
    mt_ranking_start(&r, &k, x, N, room);
    assert_true(mt_ranking_has(&r, 19, 20));
    assert_in_range(r.sorted, 20, 200);
    assert_true(mt_ranking_has(&r, 999, 20));
    assert_in_range(r.sorted, 1000, 10000);
    mt_free(room);
    mt_free(x);
}

static void nan_shows_wherever_it_is(void **state)
{
    static float x[1000];
    void *room = mt_alloc_aligned(64, mt_ranking_room_bytes(1000));
    mt_kernels k;
    mt_ranking r;
    (void)state;
    mt_kernels_init(&k, mt_cpu_detect());
    for (size_t i = 0; i < 1000; i++) {
        x[i] = NAN;
        assert_true(isnan(mt_ranking_start(&r, &k, x, 1000, room)));
        x[i] = -INFINITY;
    }
    mt_free(room);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_order_is_that_of_sorting_everything),
    cmocka_unit_test(little_is_sorted_for_those_who_look_at_little),
    cmocka_unit_test(nan_shows_wherever_it_is),
};
UNIT_MAIN(tests)
