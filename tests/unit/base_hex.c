#include "unit.h"

#include "base/hex.h"

static void digits_of_either_case_have_a_value_and_nothing_else_has(void **state)
{
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";

    (void)state;
    for (int c = 0; c < 256; c++) {
        const char *low = c ? strchr(lower, c) : NULL, *up = c ? strchr(upper, c) : NULL;

        assert_int_equal(mt_hex_digit((char)c), low ? low - lower : up ? up - upper : -1);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(digits_of_either_case_have_a_value_and_nothing_else_has),
};
UNIT_MAIN(tests)
