#include "unit.h"

#include "server/keys.h"

static void nobody_needs_a_key_where_none_is_set(void **state)
{
    const mt_option_list none = {.count = 0};
    mt_keys keys;
    mt_error err;

    (void)state;
    assert_true(mt_keys_read(&keys, &none, &err));
    assert_true(mt_keys_admit(&keys, NULL) && mt_keys_admit(&keys, "anything"));
    mt_keys_free(&keys);
}

static void keys_come_from_options_and_files(void **state)
{
    char path[] = "/tmp/motet-keys-XXXXXX", option[64];
    const int fd = mkstemp(path);
    mt_option_list list = {.at = {"one", option}, .count = 2};
    mt_keys keys;
    mt_error err;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "# mine\r\ntwo\r\n\nthree", 19), 19);
    close(fd);
    snprintf(option, sizeof(option), "@%s", path);
    assert_true(mt_keys_read(&keys, &list, &err));
    assert_int_equal(keys.count, 3);
    assert_true(mt_keys_admit(&keys, "one") && mt_keys_admit(&keys, "two") && mt_keys_admit(&keys, "three"));
    assert_false(mt_keys_admit(&keys, NULL) || mt_keys_admit(&keys, "") || mt_keys_admit(&keys, "# mine") ||
                 mt_keys_admit(&keys, "on") || mt_keys_admit(&keys, "one "));
    mt_keys_free(&keys);
    unlink(path);
}

static void what_gives_no_key_is_an_error(void **state)
{
    const mt_option_list empty = {.at = {""}, .count = 1}, missing = {.at = {"@/no/such/file"}, .count = 1},
                         hollow = {.at = {"@/dev/null"}, .count = 1};
    mt_keys keys;
    mt_error err;

    (void)state;
    assert_false(mt_keys_read(&keys, &empty, &err));
    mt_keys_free(&keys);
    assert_false(mt_keys_read(&keys, &missing, &err));
    assert_non_null(strstr(err.text, "/no/such/file"));
    mt_keys_free(&keys);
    assert_false(mt_keys_read(&keys, &hollow, &err));
    mt_keys_free(&keys);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nobody_needs_a_key_where_none_is_set),
    cmocka_unit_test(keys_come_from_options_and_files),
    cmocka_unit_test(what_gives_no_key_is_an_error),
};
UNIT_MAIN(tests)
