/* Keys and values in 8 and 4 bits: what the settings promise, and that a fault in them is not hidden. How near they
   are, and that every device and level has the same bits, is for checkkernels and checkdevice. */
#include "unit.h"

#include <math.h>

#include "device/device.h"

enum { HEADS = 2, DIM = 64, ROWS = 40 };

static mt_device *open_device(mt_precision precision, mt_kv_bits bits)
{
    const mt_device_params params = {
        .name = unit_device(), .host = {.threads = 1, .cpu_mask = ~0u}, .precision = precision, .kv_bits = bits};
    mt_error err = {0};
    mt_device *dev = mt_device_open(&params, &err);
    assert_non_null(dev);
    return dev;
}

static void every_setting_has_a_fingerprint_of_its_own(void **state)
{
    uint32_t seen[6];
    size_t count = 0;
    (void)state;
    for (mt_precision p = MT_PRECISION_FAST; p <= MT_PRECISION_REFERENCE; p++)
        for (mt_kv_bits b = MT_KV_BITS_16; b <= MT_KV_BITS_4; b++) {
            mt_device *dev = open_device(p, b);
            seen[count] = mt_device_fingerprint(dev);
            for (size_t i = 0; i < count; i++)
                assert_int_not_equal(seen[i], seen[count]);
            count++;
            mt_device_close(dev);
        }
}

static mt_kv_shape shape_of(mt_kv_type type)
{
    return (mt_kv_shape){.layers = 3,
                         .heads = HEADS,
                         .query_heads = HEADS,
                         .head_dim = DIM,
                         .page_tokens = MT_PAGE_TOKENS,
                         .type = type};
}

static void fewer_bits_take_fewer_bytes(void **state)
{
    mt_device *dev = open_device(MT_PRECISION_FAST, MT_KV_BITS_4);
    const mt_kv_shape whole = shape_of(mt_kv_type_of(dev)), eight = shape_of(MT_KV_Q8), four = shape_of(MT_KV_Q4);
    const double bytes = (double)mt_kv_page_bytes(dev, &whole);
    (void)state;
    assert_int_equal(mt_kv_cached_type(dev), MT_KV_Q4);
    assert_true(bytes > 1.9 * (double)mt_kv_page_bytes(dev, &eight));
    assert_true(bytes > 3.7 * (double)mt_kv_page_bytes(dev, &four));
    mt_device_close(dev);
}

/* The result of the last row, whose third key (or value) has `odd` in it. */
static float last_row(mt_precision precision, mt_kv_type type, bool value, float odd)
{
    mt_device *dev = open_device(precision, MT_KV_BITS_16);
    mt_set *set = mt_set_new(dev);
    const mt_kv_shape shape = shape_of(type);
    mt_error err = {0};
    mt_kv *kv = mt_kv_new(set, &shape, &err);
    mt_tensor *k = mt_tensor_new(set, ROWS, HEADS * DIM), *v = mt_tensor_new(set, ROWS, HEADS * DIM);
    mt_tensor *y = mt_tensor_new(set, ROWS, HEADS * DIM);
    mt_reading *reading = mt_reading_new(set, HEADS * DIM * sizeof(float));
    const uint32_t pages[] = {1, 0};
    const mt_span span = {.rows = ROWS, .pages = {pages}};
    float row[HEADS * DIM];
    assert_true(kv && mt_kv_reserve(set, kv, 2, &err) && mt_device_plan(dev, ROWS, &err));
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t i = 0; i < HEADS * DIM; i++)
            row[i] = sinf((float)(r * 31 + i));
        mt_tensor_write(dev, k, r, 1, row);
        mt_tensor_write(dev, v, r, 1, row);
        row[5] = odd;
        if (r == 2)
            mt_tensor_write(dev, value ? v : k, r, 1, row);
    }
    mt_step_begin(dev, &(mt_batch){.rows = ROWS, .spans = 1, .span = &span});
    mt_op_kv_write(dev, kv, 1, k, v);
    mt_op_attention(dev, y, k, kv, 1, (mt_attention){.scale = 0.1f});
    mt_read_rows(dev, reading, y, ROWS - 1, 1);
    const float result = mt_reading_row(dev, reading, 0)[7];
    mt_read_rows(dev, reading, y, 1, 1);
    if (precision == MT_PRECISION_FAST) /* a row before it does not see it: integers are not multiplied by NaN */
        assert_true(isfinite(mt_reading_row(dev, reading, 0)[7]));
    mt_set_free(set);
    mt_device_close(dev);
    return result;
}

static void what_is_not_finite_shows(void **state)
{
    (void)state;
    for (mt_precision p = MT_PRECISION_FAST; p <= MT_PRECISION_REFERENCE; p++)
        for (mt_kv_type type = MT_KV_Q8; type <= MT_KV_Q4; type++)
            for (unsigned value = 0; value < 2; value++) {
                assert_true(isfinite(last_row(p, type, value, 1.0f)));
                assert_true(!isfinite(last_row(p, type, value, NAN)));
                assert_true(!isfinite(last_row(p, type, value, -INFINITY)));
            }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_setting_has_a_fingerprint_of_its_own),
    cmocka_unit_test(fewer_bits_take_fewer_bytes),
    cmocka_unit_test(what_is_not_finite_shows),
};

UNIT_MAIN(tests)
