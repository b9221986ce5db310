/* What motet bench counts with, and what its charts hold to. */
#include "unit.h"

#include <math.h>

#include "cli/bench.h"
#include "cli/bench_svg.h"

static void percentiles_stand_between_values(void **state)
{
    mt_series s = {0};
    (void)state;
    assert_true(isnan(mt_series_quantile(&s, 0.5)));
    for (int i = 100; i > 0; i--)
        mt_series_add(&s, i);
    assert_true(fabs(mt_series_quantile(&s, 0) - 1) < 1e-9);
    assert_true(fabs(mt_series_quantile(&s, 0.5) - 50.5) < 1e-9);
    assert_true(fabs(mt_series_quantile(&s, 0.99) - 99.01) < 1e-9);
    assert_true(fabs(mt_series_quantile(&s, 1) - 100) < 1e-9);
    assert_true(fabs(mt_series_mean(&s) - 50.5) < 1e-9);
    mt_series_add(&s, 1000); /* sorted before, and once more now */
    assert_true(fabs(mt_series_quantile(&s, 1) - 1000) < 1e-9);
    mt_series_free(&s);
    mt_series_add(&s, 7);
    assert_true(fabs(mt_series_quantile(&s, 0.99) - 7) < 1e-9);
    mt_series_free(&s);
}

static void arrivals_come_at_the_rate_and_by_chance(void **state)
{
    enum { MANY = 200000 };
    mt_dice a = {1}, b = {1}, c = {2};
    double sum = 0, squares = 0, differs = 0;
    (void)state;
    for (int i = 0; i < MANY; i++) {
        const double gap = mt_dice_gap(&a, 4);
        assert_true(gap >= 0 && isfinite(gap));
        assert_true(gap == mt_dice_gap(&b, 4)); /* a seed decides it */
        differs += gap != mt_dice_gap(&c, 4);
        sum += gap;
        squares += gap * gap;
    }
    const double mean = sum / MANY, variance = squares / MANY - mean * mean;
    assert_true(fabs(mean - 0.25) < 0.0025);
    assert_true(fabs(sqrt(variance) - 0.25) < 0.005); /* of exponential gaps the spread is the mean */
    assert_true(differs > MANY * 0.99);
}

static void lists_are_numbers_within_their_range(void **state)
{
    static const char *const wrong[] = {"", ",", "1,,2", "x", "1 2", "0", "101", "-1", "1,nan", "1e999", "inf"};
    mt_bench_list list;
    mt_error err;
    (void)state;
    assert_true(mt_bench_list_read(&list, "clients", "1,2,40", "9", 1, 100, &err));
    assert_int_equal(list.count, 3);
    assert_true(list.at[0] == 1 && list.at[2] == 40);
    assert_true(mt_bench_list_read(&list, "clients", NULL, "9", 1, 100, &err));
    assert_true(list.count == 1 && list.at[0] == 9);
    assert_true(mt_bench_list_read(&list, "rate", "0.5,2", "1", 0.001, 100, &err));
    assert_true(list.at[0] == 0.5);
    for (size_t i = 0; i < MT_COUNT(wrong); i++) {
        assert_false(mt_bench_list_read(&list, "clients", wrong[i], "9", 1, 100, &err));
        assert_non_null(strstr(err.text, "--clients"));
    }
    assert_false(mt_bench_list_read(&list, "clients", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "9", 1, 100, &err));
}

static void hashes_see_every_bit(void **state)
{
    const float a[] = {1, 0, -2}, b[] = {1, -0.0f, -2};
    (void)state;
    assert_true(mt_bench_hash(MT_BENCH_HASH, a, 3) != mt_bench_hash(MT_BENCH_HASH, b, 3));
    assert_true(mt_bench_hash(mt_bench_hash(MT_BENCH_HASH, a, 1), a + 1, 2) == mt_bench_hash(MT_BENCH_HASH, a, 3));
}

/* Draws what is hard to draw and looks whether every number in it is one. */
static void check_drawing(const mt_chart *c)
{
    mt_buf out;
    mt_buf_init(&out, 1 << 20);
    mt_chart_draw(&out, c);
    assert_false(out.full);
    assert_null(strstr(out.data, "nan"));
    assert_null(strstr(out.data, "inf"));
    assert_null(strstr(out.data, "<b>"));
    assert_non_null(strstr(out.data, "</svg></figure>"));
    mt_buf_free(&out);
}

static void charts_draw_whatever_they_get(void **state)
{
    (void)state;
    for (int log = 0; log < 2; log++) {
        mt_chart c = {.title = "<b>\"&", .x = "x", .y = "y", .log_x = log, .log_y = log};
        check_drawing(&c); /* nothing at all */
        mt_chart_line *line = mt_chart_add(&c, "one", 4);
        mt_chart_point(line, NAN, 1);
        mt_chart_point(line, 1, INFINITY);
        assert_int_equal(line->count, 0);
        check_drawing(&c);
        mt_chart_point(line, 5, 5); /* a single point has no range */
        check_drawing(&c);
        mt_chart_point(line, 5e9, 1e-7);
        check_drawing(&c);
        for (size_t i = 1; i < MT_CHART_LINES; i++)
            assert_non_null(mt_chart_add(&c, "more", 1));
        assert_null(mt_chart_add(&c, "too many", 1));
        mt_chart_free(&c);
    }
}

static void numbers_on_axes_are_short(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"}, {0.25, "0.25"}, {12, "12"}, {1500, "1.5k"}, {2e6, "2M"}, {3e9, "3G"}, {-1000, "-1k"}};
    char text[32];
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_svg_number(text, sizeof(text), cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(percentiles_stand_between_values),     cmocka_unit_test(arrivals_come_at_the_rate_and_by_chance),
    cmocka_unit_test(lists_are_numbers_within_their_range), cmocka_unit_test(hashes_see_every_bit),
    cmocka_unit_test(charts_draw_whatever_they_get),        cmocka_unit_test(numbers_on_axes_are_short),
};

UNIT_MAIN(tests)
