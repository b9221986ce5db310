#include "unit.h"

#include <inttypes.h>
#include <limits.h>

#include "base/json_write.h"

static mt_buf out;

static void is(const char *expected)
{
    assert_int_equal(strlen(expected), out.len);
    assert_string_equal(expected, out.data);
    mt_buf_free(&out);
}

static void commas_keep_themselves(void **state)
{
    (void)state;
    mt_buf_init(&out, 1000);
    mt_json_write(&out, "{'list':[");
    for (int i = 0; i < 3; i++) {
        mt_json_write(&out, "{'i':%d", i);
        if (i == 1)
            mt_json_write(&out, "'more':[]");
        mt_json_write(&out, "}");
    }
    mt_json_write(&out, "],'a':{");
    mt_json_write(&out, "'b':");
    mt_json_write(&out, "null");
    mt_json_write(&out, "'c':'x'");
    mt_json_write(&out, "'d':true");
    mt_json_write(&out, "'e':7");
    mt_json_text(&out, "f", NULL, 0);
    mt_json_write(&out, "'g':[");
    mt_json_text(&out, NULL, "1,", 2);
    mt_json_text(&out, NULL, "{", 1);
    mt_json_write(&out, "%s", "[");
    mt_json_write(&out, "]}}");
    is("{\"list\":[{\"i\":0},{\"i\":1,\"more\":[]},{\"i\":2}],\"a\":{\"b\":null,\"c\":\"x\",\"d\":true,\"e\":7,"
       "\"f\":\"\",\"g\":[\"1,\",\"{\",\"[\"]}}");
}

static void streams_have_values_without_commas(void **state)
{
    (void)state;
    mt_buf_init(&out, 1000);
    for (int i = 0; i < 2; i++) {
        mt_buf_puts(&out, "data: ");
        mt_json_write(&out, "{'i':%d}", i);
        mt_buf_puts(&out, "\n\n");
    }
    mt_json_write(&out, "{}");
    is("data: {\"i\":0}\n\ndata: {\"i\":1}\n\n{}");
}

static void arguments_of_every_kind(void **state)
{
    const bool yes = true, no = false;
    const char *volatile none = NULL;

    (void)state;
    mt_buf_init(&out, 2000);
    mt_json_write(&out, "[%d,%d,%ld,%lld,%" PRId64 ",%" PRId64, 0, INT32_MIN, LONG_MAX, LLONG_MIN, INT64_MIN,
                  (int64_t)-12);
    is("[0,-2147483648,9223372036854775807,-9223372036854775808,-9223372036854775808,-12");
    mt_json_write(&out, "[%u,%zu,%lu,%llu,%" PRIu64 ",%" PRIu32 "]", UINT32_MAX, SIZE_MAX, ULONG_MAX, ULLONG_MAX,
                  (uint64_t)10, (uint32_t)0);
    is("[4294967295,18446744073709551615,18446744073709551615,18446744073709551615,10,0]");
    mt_json_write(&out, "[%f,%g,%.3f,%.9g,%.0f,%hhd,%hhd]", 0.5, 1e-7, 2.0 / 3, 0.1, 2.5, yes, no);
    is("[0.500000,1e-07,0.667,0.1,2,true,false]");
    mt_json_write(&out, "{%s:%s,'%-s_%u':%-s,'none':%s,'null':%-s}", "a\"b", "it's \x01\xff", "x", 7u, "{\"y\": 1}",
                  none, none);
    is("{\"a\\\"b\":\"it's \\u0001\xef\xbf\xbd\",\"x_7\":{\"y\": 1},\"none\":null,\"null\":null}");
}

static void what_does_not_fit_is_told(void **state)
{
    (void)state;
    for (size_t limit = 0; limit < 40; limit++) {
        mt_buf_init(&out, limit);
        mt_json_write(&out, "{'key':%s,'n':%.3f,'m':%d", "some text", 1.5, 100000);
        mt_json_text(&out, "t", "x", 1);
        mt_json_write(&out, "}");
        assert_true(out.full);
        assert_true(out.len <= limit);
        mt_buf_free(&out);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(commas_keep_themselves),
    cmocka_unit_test(streams_have_values_without_commas),
    cmocka_unit_test(arguments_of_every_kind),
    cmocka_unit_test(what_does_not_fit_is_told),
};
UNIT_MAIN(tests)
