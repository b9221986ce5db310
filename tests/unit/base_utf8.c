#include "unit.h"

#include "base/compiler.h"
#include "base/utf8.h"

/* All code points: encode, then find the length and the code point again; truncations are never valid. */
static void every_code_point_round_trips(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char out[MT_UTF8_MAX];
        size_t len;

        if (code >= 0xD800 && code <= 0xDFFF)
            continue;
        len = mt_utf8_encode(code, out);
        if (mt_utf8_length(out, len) != len)
            fail_msg("U+%04X", code);
        if (mt_utf8_size(out[0]) != len || mt_utf8_at(out) != code || mt_utf8_before(out, len) != 0)
            fail_msg("U+%04X is read as U+%04X", code, mt_utf8_at(out));
        for (size_t cut = 0; cut < len; cut++)
            if (mt_utf8_length(out, cut) != 0)
                fail_msg("U+%04X cut to %zu", code, cut);
    }
}

/* Stray, overlong, surrogate, too high, cut short. */
static void malformed_sequences_have_no_length(void **state)
{
    static const char *const rows[] = {
        "\x80",         "\xbf",         "\xc0\x80", "\xc1\xbf",         "\xc2\x7f",         "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xe1\x80", "\xe1\x80\xc0",     "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80", "\xff",         "\xfe",     "\xf1\x80\x80\x41",
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        assert_int_equal(mt_utf8_length(rows[i], strlen(rows[i])), 0);
    assert_int_equal(mt_utf8_length("", 0), 0);
    assert_int_equal(mt_utf8_length("\0", 1), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_code_point_round_trips),
    cmocka_unit_test(malformed_sequences_have_no_length),
};
UNIT_MAIN(tests)
