#include "unit.h"

#include "http/field.h"

static void lists_have_their_items(void **state)
{
    (void)state;
    assert_true(mt_http_list_has("close, Keep-Alive", "keep-alive"));
    assert_false(mt_http_list_has("keep-alive-not", "keep-alive"));
    assert_false(mt_http_list_has("", "x"));
}

static void weights_of_nothing_are_a_no(void **state)
{
    static const char *const yes[] = {"gzip",     "br, GZIP", "gzip;q=1",    "gzip ; q=0.001", "deflate;q=0,gzip",
                                      "gzip;x=0", ",,gzip,",  "gzip;q=0.5;x"};
    static const char *const no[] = {"",  "br",     "gzipped", "gzip;q=0", "gzip; q=0.000", "gzip;x=1;Q=0",
                                     "*", "x-gzip", "br;gzip", ";",        "gzip;q=0,br"};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(yes); i++)
        if (!mt_http_list_accepts(yes[i], "gzip"))
            fail_msg("\"%s\" accepts gzip", yes[i]);
    for (size_t i = 0; i < MT_COUNT(no); i++)
        if (mt_http_list_accepts(no[i], "gzip"))
            fail_msg("\"%s\" does not accept gzip", no[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lists_have_their_items),
    cmocka_unit_test(weights_of_nothing_are_a_no),
};
UNIT_MAIN(tests)
