#include "unit.h"

#include "base/compiler.h"
#include "base/nearest.h"

static void the_closest_wins(void **state)
{
    static const char *const names[] = {"info", "run", "help", "log-level", "log-format", "max-tokens"};
    static const struct {
        const char *typed, *meant;
    } rows[] = {
        {"run", "run"},
        {"rum", "run"},
        {"rnu", "run"},
        {"rn", "run"},
        {"inof", "info"},
        {"infos", "info"},
        {"hlep", "help"},
        {"max_token", "max-tokens"},
        {"loglevel", "log-level"},
        {"log-formt", "log-format"},
        {"xyz", NULL},
        {"", NULL},
        {"serve", NULL},
        {"r", NULL},
        {"0123456789012345678901234567890123456789012345678901234567890123456789", NULL},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_nearest nearest;

        mt_nearest_init(&nearest, rows[i].typed);
        for (size_t k = 0; k < MT_COUNT(names); k++)
            mt_nearest_offer(&nearest, names[k]);
        if (rows[i].meant)
            assert_string_equal(nearest.best, rows[i].meant);
        else
            assert_null(nearest.best);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_closest_wins),
};
UNIT_MAIN(tests)
