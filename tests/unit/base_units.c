#include "unit.h"

#include "base/units.h"

static void sizes(void **state)
{
    char out[MT_UNITS_TEXT];

    (void)state;
    assert_string_equal(mt_bytes_text(0, out), "0 B");
    assert_string_equal(mt_bytes_text(1023, out), "1023 B");
    assert_string_equal(mt_bytes_text(1536, out), "1.5 KiB");
    assert_string_equal(mt_bytes_text(UINT64_C(300) << 20, out), "300 MiB");
    assert_string_equal(mt_bytes_text(UINT64_MAX, out), "16.0 EiB");
}

static void times(void **state)
{
    char out[MT_UNITS_TEXT];

    (void)state;
    assert_string_equal(mt_seconds_text(0, out), "0 s");
    assert_string_equal(mt_seconds_text(59, out), "59 s");
    assert_string_equal(mt_seconds_text(185, out), "3:05 min");
    assert_string_equal(mt_seconds_text(7640, out), "2:07 h");
    assert_string_equal(mt_seconds_text(4 * 86400 + 5, out), "4 days");
    assert_string_equal(mt_seconds_text(UINT64_MAX, out), "213503982334601 days");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes),
    cmocka_unit_test(times),
};

UNIT_MAIN(tests)
