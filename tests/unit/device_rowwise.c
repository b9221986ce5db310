/* What operations on rows do with numbers that are none: devices that are compared with each other never see any. */
#include "unit.h"

#include <math.h>

#include "device/device.h"

enum { WIDTH = 40, ROWS = 3 };

/* A row whose numbers are not finite ends its sequence later on; until then its token is one of the vocabulary. */
static void the_largest_of_a_row_is_in_it(void **state)
{
    const mt_device_params params = {.name = unit_device(), .host = {.threads = 1, .cpu_mask = ~0u}};
    mt_error err = {0};
    mt_device *dev = mt_device_open(&params, &err);
    float row[WIDTH];
    (void)state;
    assert_non_null(dev);
    mt_set *set = mt_set_new(dev);
    mt_tensor *x = mt_tensor_new(set, ROWS, WIDTH), *y = mt_tensor_new(set, ROWS, 1);
    mt_index *at = mt_index_new(set, ROWS);
    mt_tensor *numbers = mt_tensor_new(set, WIDTH, 1);
    mt_reading *reading = mt_reading_new(set, ROWS * sizeof(float));
    assert_true(mt_device_plan(dev, WIDTH, &err));
    for (size_t i = 0; i < WIDTH; i++) {
        const float number = (float)i;
        mt_tensor_write(dev, numbers, i, 1, &number);
        row[i] = NAN;
    }
    mt_tensor_write(dev, x, 0, 1, row);
    row[WIDTH - 1] = -INFINITY;
    mt_tensor_write(dev, x, 1, 1, row);
    for (size_t i = 0; i < WIDTH; i++)
        row[i] = -(float)((i + 5) % WIDTH);
    mt_tensor_write(dev, x, 2, 1, row);
    mt_op_argmax(dev, at, x, ROWS);
    mt_op_gather(dev, y, numbers, at, ROWS);
    mt_read_rows(dev, reading, y, 0, ROWS);
    assert_true(*mt_reading_row(dev, reading, 0) < WIDTH);
    assert_true(*mt_reading_row(dev, reading, 1) < WIDTH);
    assert_true(*mt_reading_row(dev, reading, 2) == WIDTH - 5);
    mt_set_free(set);
    mt_device_close(dev);
}

/* Shifted, then scaled, then cut off; what is no number passes, so that it is noticed later on. */
static void what_is_adjusted_is_cut_off_last(void **state)
{
    static const float given[] = {1, -2, 30, -30, NAN, 5}, bias[] = {0.5f, 1, 0, 0, 0, 5}, w[] = {4, 2, 1, 1, 1, -1};
    static const float wanted[] = {2, -6, 7, -8, NAN, 0};
    const mt_device_params params = {.name = unit_device(), .host = {.threads = 1, .cpu_mask = ~0u}};
    mt_error err = {0};
    mt_device *dev = mt_device_open(&params, &err);
    (void)state;
    assert_non_null(dev);
    mt_set *set = mt_set_new(dev);
    mt_tensor *x = mt_tensor_of(set, given, 1, 6);
    mt_reading *reading = mt_reading_new(set, sizeof(given));
    assert_true(mt_device_plan(dev, 1, &err));
    mt_op_adjust(dev, x, 1, mt_tensor_of(set, bias, 1, 6), mt_tensor_of(set, w, 1, 6), -8, 7);
    mt_op_adjust(dev, x, 1, NULL, NULL, -INFINITY, INFINITY); /* changes nothing */
    mt_read_rows(dev, reading, x, 0, 1);
    for (size_t i = 0; i < 6; i++) {
        const float got = mt_reading_row(dev, reading, 0)[i];
        assert_true(isnan(wanted[i]) ? isnan(got) : got == wanted[i]);
    }
    mt_set_free(set);
    mt_device_close(dev);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_largest_of_a_row_is_in_it),
    cmocka_unit_test(what_is_adjusted_is_cut_off_last),
};

UNIT_MAIN(tests)
