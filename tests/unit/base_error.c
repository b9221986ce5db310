#include "unit.h"

#include "base/error.h"

static void fail_writes_code_and_sentence(void **state)
{
    mt_error err = {0};

    (void)state;
    assert_false(mt_fail(&err, MT_E_NOT_FOUND, "\"%s\" does not exist: check the path", "a.json"));
    assert_int_equal(err.code, MT_E_NOT_FOUND);
    assert_string_equal(err.text, "\"a.json\" does not exist: check the path");
}

static void fail_accepts_null(void **state)
{
    (void)state;
    assert_false(mt_fail(NULL, MT_E_IO, "nobody listens"));
    assert_false(mt_fail_within(NULL, "here"));
    mt_error_clear(NULL);
}

static void within_puts_a_prefix_and_keeps_the_code(void **state)
{
    mt_error err;

    (void)state;
    mt_fail(&err, MT_E_INVALID, "byte %d is wrong", 7);
    assert_false(mt_fail_within(&err, "shard %d", 2));
    assert_false(mt_fail_within(&err, "\"%s\"", "model"));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_string_equal(err.text, "\"model\": shard 2: byte 7 is wrong");
}

static void sentences_end_at_the_limit(void **state)
{
    char longer[2 * MT_LIMIT_ERROR_TEXT];
    mt_error err;

    (void)state;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    mt_fail(&err, MT_E_INVALID, "%s", longer);
    assert_int_equal(strlen(err.text), MT_LIMIT_ERROR_TEXT - 1);
    mt_fail_within(&err, "prefix");
    assert_int_equal(strlen(err.text), MT_LIMIT_ERROR_TEXT - 1);
    assert_memory_equal(err.text, "prefix: xxx", 11);
    mt_fail_within(&err, "%s", longer);
    assert_int_equal(strlen(err.text), MT_LIMIT_ERROR_TEXT - 1);
}

static void clients_see_no_folders(void **state)
{
    static const struct {
        const char *text, *name, *shown;
    } rows[] = {
        {"\"/srv/box/config.json\" does not exist: check the path", NULL,
         "\"config.json\" does not exist: check the path"},
        {"cannot open \"box/a b\": no", NULL, "cannot open \"a b\": no"},
        {"\"/srv/box/\" lacks \"x\" and \"/y\"", NULL, "\"box\" lacks \"x\" and \"y\""},
        {"\"/\" is a folder", NULL, "\"\" is a folder"},
        {"\"a/box\" is gated, \"a/box/config.json\" is not", "a/box",
         "\"a/box\" is gated, \"a/box/config.json\" is not"},
        {"\"a/box\" has no revision \"x\" in \"/srv\"", "a/box@x", "\"a/box\" has no revision \"x\" in \"srv\""},
        {"\"a/box\" is gated: see http://x/y", "b", "\"box\" is gated: see http://x/y"},
        {"the hub leads to \"https://x/y\", and on", "", "the hub leads to \"https://x/y\", and on"},
        {"\"\" and \"x\" and 1/2 s", NULL, "\"\" and \"x\" and 1/2 s"},
        {"there is no room for \"/srv/secret", NULL, "there is no room for \""},
        {"", NULL, ""},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_error err;

        mt_fail(&err, MT_E_IO, "%s", rows[i].text);
        mt_error_hide_paths(&err, rows[i].name);
        assert_string_equal(err.text, rows[i].shown);
        assert_int_equal(err.code, MT_E_IO);
    }
}

static void sentences_can_be_shown(void **state)
{
    char longer[MT_LIMIT_ERROR_TEXT + 1];
    mt_error err;

    (void)state;
    mt_fail(&err, MT_E_INVALID, "\"%s\" is no role", "\x1b[2J\r\n\t\x7f\xc2\x9b\xff\xed\xa0\x80 \xc3\xa9");
    assert_string_equal(err.text, "\"?[2J????"
                                  "??"
                                  "?"
                                  "???"
                                  " \xc3\xa9\" is no role");
    mt_fail_within(&err, "\x1b");
    assert_memory_equal(err.text, "?: \"?[2J", 8);
    for (size_t i = 0; i < sizeof(longer); i++)
        longer[i] = i % 2 ? '\xa9' : '\xc3';
    longer[MT_LIMIT_ERROR_TEXT] = '\0';
    mt_fail(&err, MT_E_INVALID, "%s", longer);
    assert_int_equal(strlen(err.text), MT_LIMIT_ERROR_TEXT - 2); /* the half of a character is left out */
}

static void clear_resets(void **state)
{
    mt_error err;

    (void)state;
    mt_fail(&err, MT_E_IO, "text");
    mt_error_clear(&err);
    assert_int_equal(err.code, MT_OK);
    assert_string_equal(err.text, "");
}

static void every_code_has_a_status(void **state)
{
    static const struct {
        mt_code code;
        int status;
    } rows[] = {
        {MT_OK, 200},         {MT_E_INVALID, 400},  {MT_E_NOT_FOUND, 404},   {MT_E_TOO_LARGE, 413},
        {MT_E_TOO_LONG, 400}, {MT_E_BUSY, 429},     {MT_E_UNSUPPORTED, 501}, {MT_E_MEMORY, 503},
        {MT_E_IO, 500},       {MT_E_INTERNAL, 500}, {(mt_code)99, 500},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        assert_int_equal(mt_code_status(rows[i].code), rows[i].status);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fail_writes_code_and_sentence),
    cmocka_unit_test(fail_accepts_null),
    cmocka_unit_test(within_puts_a_prefix_and_keeps_the_code),
    cmocka_unit_test(sentences_end_at_the_limit),
    cmocka_unit_test(clients_see_no_folders),
    cmocka_unit_test(sentences_can_be_shown),
    cmocka_unit_test(clear_resets),
    cmocka_unit_test(every_code_has_a_status),
};
UNIT_MAIN(tests)
