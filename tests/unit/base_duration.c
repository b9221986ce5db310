#include "unit.h"

#include "base/compiler.h"
#include "base/duration.h"

static void times_are_read_as_people_write_them(void **state)
{
    static const struct {
        const char *text;
        double seconds;
    } good[] = {{"0", 0},       {"90", 90},      {"90s", 90},     {"5m", 300},   {"1h30m", 5400},
                {"1.5h", 5400}, {"250ms", 0.25}, {"2d", 172800},  {"never", -1}, {"-1", -1},
                {"-5m", -1},    {"-0", 0},       {"1h1m1s", 3661}};
    static const char *const bad[] = {"",     "-",   "m",   "5x",  "5 m", " 5",    "five", "1e3",
                                      "0x10", "nan", "inf", "5mm", "--1", "1h-1m", "+5",   "9999999999999999s"};
    double seconds;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(good); i++) {
        assert_true(mt_duration_parse(good[i].text, &seconds));
        assert_true(seconds > good[i].seconds - 1e-9 && seconds < good[i].seconds + 1e-9);
    }
    for (size_t i = 0; i < MT_COUNT(bad); i++)
        if (mt_duration_parse(bad[i], &seconds))
            fail_msg("\"%s\" was read as %g s", bad[i], seconds);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(times_are_read_as_people_write_them),
};
UNIT_MAIN(tests)
