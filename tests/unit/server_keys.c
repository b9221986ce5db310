/* Keys from options and files, and what a line says of whoever has one. */
#include "folder.h"

#include <openssl/sha.h>

#include "server/calls/keys.h"

static const mt_option_list none = {.count = 0};

static const char *file_of(const char *text)
{
    static char path[100];
    FILE *file;

    snprintf(path, sizeof(path), "%s/keys", folder);
    file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    return path;
}

static mt_keys keys_of(const char *text)
{
    mt_keys keys;
    mt_error err = {0};

    if (!mt_keys_read(&keys, &none, file_of(text), &err))
        fail_msg("%s", err.text);
    return keys;
}

static void nobody_needs_a_key_where_none_is_set(void **state)
{
    mt_keys keys;
    mt_error err;

    (void)state;
    assert_true(mt_keys_read(&keys, &none, NULL, &err));
    assert_int_equal(keys.count, 0);
    assert_null(mt_keys_find(&keys, "anything"));
    mt_keys_free(&keys);
}

static void keys_come_from_options_and_files(void **state)
{
    char option[128];
    mt_option_list list = {.at = {"one", option}, .count = 2};
    mt_keys keys;
    mt_error err;

    (void)state;
    snprintf(option, sizeof(option), "@%s",
             file_of("# mine, with more words than a line may have: a b c d e f g h i\r\n"
                     "two\r\n\n  three\t"));
    assert_true(mt_keys_read(&keys, &list, NULL, &err));
    assert_int_equal(keys.count, 3);
    assert_int_equal(keys.account_count, 3);
    assert_true(mt_keys_find(&keys, "one") && mt_keys_find(&keys, "two") && mt_keys_find(&keys, "three"));
    assert_false(mt_keys_find(&keys, NULL) || mt_keys_find(&keys, "") || mt_keys_find(&keys, "# mine") ||
                 mt_keys_find(&keys, "on") || mt_keys_find(&keys, "one "));
    assert_string_equal(mt_keys_find(&keys, "one")->name, "#1");
    assert_string_equal(mt_keys_find(&keys, "three")->name, "#3");
    assert_true(mt_keys_find(&keys, "one")->client.id != mt_keys_find(&keys, "two")->client.id);
    mt_keys_free(&keys);
}

static void a_line_says_what_its_key_may(void **state)
{
    mt_keys keys = keys_of("a name=ci requests/min=60 tokens/min=100000 priority=-1 share=4\nb name=ops admin\nc");
    const mt_account *ci = mt_keys_find(&keys, "a"), *ops = mt_keys_find(&keys, "b"), *c = mt_keys_find(&keys, "c");

    (void)state;
    assert_string_equal(ci->name, "ci");
    assert_int_equal(ci->requests.limit, 60);
    assert_int_equal(ci->tokens.limit, 100000);
    assert_true(ci->tokens.left == 100000);
    assert_int_equal(ci->priority, -1);
    assert_int_equal(ci->client.share, 4);
    assert_false(ci->admin);
    assert_true(ops->admin && mt_account_scope(ops) == NULL && mt_account_scope(ci) == ci);
    assert_int_equal(c->requests.limit + c->tokens.limit + c->priority, 0);
    assert_int_equal(c->client.share, 1);
    mt_keys_free(&keys);
}

static void keys_of_one_name_are_one_accounts_also_after_a_change(void **state)
{
    mt_keys before = keys_of("old name=ci share=2\nx"), after = keys_of("y\nold name=ci share=2\nnew name=ci\nx");
    const mt_account *ci = mt_keys_find(&after, "new");

    (void)state;
    assert_ptr_equal(ci, mt_keys_find(&after, "old"));
    assert_int_equal(after.count, 4);
    assert_int_equal(after.account_count, 3);
    assert_memory_equal(ci->owner, mt_keys_find(&before, "old")->owner, 32);
    assert_memory_equal(mt_keys_find(&after, "x")->owner, mt_keys_find(&before, "x")->owner, 32);
    assert_memory_not_equal(mt_keys_find(&after, "x")->owner, mt_keys_find(&after, "y")->owner, 32);
    mt_keys_free(&before);
    mt_keys_free(&after);
}

static void a_digest_stands_for_its_key(void **state)
{
    uint8_t digest[32];
    char text[200] = "sha256:";
    mt_keys keys;

    (void)state;
    SHA256((const unsigned char *)"secret", 6, digest);
    for (size_t i = 0; i < 32; i++)
        snprintf(text + 7 + 2 * i, 3, i % 2 ? "%02x" : "%02X", digest[i]);
    snprintf(text + 7 + 64, sizeof(text) - 7 - 64, " name=a");
    keys = keys_of(text);
    assert_non_null(mt_keys_find(&keys, "secret"));
    assert_null(mt_keys_find(&keys, text));
    mt_keys_free(&keys);
}

static void faults(const char *text, const char *const *words)
{
    mt_keys keys;
    mt_error err = {0};

    assert_false(mt_keys_read(&keys, &none, file_of(text), &err));
    for (; *words; words++)
        if (!strstr(err.text, *words))
            fail_msg("\"%s\" is not in: %s", *words, err.text);
    mt_keys_free(&keys);
}

#define FAULTS(text, ...) faults(text, (const char *const[]){__VA_ARGS__, NULL})

static void faults_name_their_line(void **state)
{
    (void)state;
    FAULTS("a\nb rate=4", "line 2", "\"rate=4\"", "requests/min=");
    FAULTS("a b", "line 1", "no blanks");
    FAULTS("#\n\na share=0", "line 3", "\"share=0\"", "1 to 1000");
    FAULTS("a requests/min=", "line 1", "whole number");
    FAULTS("a requests/min=1.5", "line 1", "whole number");
    FAULTS("a tokens/min=99999999999999999999", "line 1");
    FAULTS("a name=", "line 1", "is not a name");
    FAULTS("a name=x\"y", "line 1", "is not a name");
    FAULTS("a name=#1", "line 1", "is not a name");
    FAULTS("a name=ci\nb name=ci share=2", "line 2", "\"ci\"");
    FAULTS("a\na", "line 2", "twice");
    FAULTS("sha256:12", "line 1", "64 hexadecimal digits");
    FAULTS("sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff0", "line 1",
           "64 hexadecimal digits");
    FAULTS("a admin admin admin admin admin admin admin admin admin admin admin admin admin admin admin admin",
           "line 1", "too many");
    FAULTS("# nothing\n", "has no API key");
}

static void what_gives_no_key_is_an_error(void **state)
{
    const mt_option_list empty = {.at = {""}, .count = 1}, missing = {.at = {"@/no/such/file"}, .count = 1},
                         hollow = {.at = {"@/dev/null"}, .count = 1}, twice = {.at = {"a", "a"}, .count = 2};
    const mt_option_list *const lists[] = {&empty, &missing, &hollow, &twice};
    mt_keys keys;
    mt_error err;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(lists); i++) {
        assert_false(mt_keys_read(&keys, lists[i], NULL, &err));
        mt_keys_free(&keys);
    }
    assert_false(mt_keys_read(&keys, &none, "/no/such/file", &err));
    assert_non_null(strstr(err.text, "/no/such/file"));
    mt_keys_free(&keys);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nobody_needs_a_key_where_none_is_set),
    cmocka_unit_test_setup_teardown(keys_come_from_options_and_files, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_line_says_what_its_key_may, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(keys_of_one_name_are_one_accounts_also_after_a_change, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_digest_stands_for_its_key, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(faults_name_their_line, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(what_gives_no_key_is_an_error, make_folder, remove_folder),
};
UNIT_MAIN(tests)
