/* Answers that are kept, and those that have to go. */
#include "unit.h"

#include <unistd.h>

#include "api/store.h"

static mt_store *open_store(const char *path, int64_t entries, int64_t bytes)
{
    mt_error err = {0};
    mt_store *store = mt_store_open(path, (mt_store_limits){.entries = entries, .bytes = bytes}, &err);

    assert_string_equal(err.text, "");
    assert_non_null(store);
    return store;
}

static void put(mt_store *store, const char *id, const char *text)
{
    mt_store_put(store, id, text, strlen(text));
}

static bool has(mt_store *store, const char *id)
{
    json_t *found = mt_store_get(store, id);
    const bool there = json_is_object(found);

    json_decref(found);
    return there;
}

static void what_was_put_is_there_until_it_is_removed(void **state)
{
    mt_store *store = open_store(NULL, 10, 1000);
    json_t *found;

    (void)state;
    put(store, "a", "{\"x\":\"y\\u0000z\"}");
    found = mt_store_get(store, "a");
    assert_int_equal(json_string_length(json_object_get(found, "x")), 3);
    json_decref(found);
    put(store, "a", "{}");
    assert_int_equal(mt_store_held(store).entries, 1);
    assert_int_equal(mt_store_held(store).bytes, 2);
    assert_false(has(store, "b"));
    assert_true(mt_store_remove(store, "a"));
    assert_false(mt_store_remove(store, "a"));
    assert_false(has(store, "a"));
    assert_int_equal(mt_store_held(store).entries, 0);
    mt_store_close(store);
}

static void no_store_has_nothing(void **state)
{
    (void)state;
    assert_null(mt_store_get(NULL, "a"));
    mt_store_close(NULL);
}

static void the_one_not_asked_for_longest_goes_first(void **state)
{
    mt_store *store = open_store(NULL, 2, 1000);

    (void)state;
    put(store, "a", "{}");
    put(store, "b", "{}");
    assert_true(has(store, "a"));
    put(store, "c", "{}");
    assert_true(has(store, "a"));
    assert_false(has(store, "b"));
    assert_true(has(store, "c"));
    mt_store_close(store);
}

static void bytes_count_as_well(void **state)
{
    mt_store *store = open_store(NULL, 10, 20);

    (void)state;
    put(store, "a", "{\"x\":\"12345\"}");
    put(store, "b", "{}");
    assert_true(has(store, "a"));
    put(store, "c", "{\"x\":\"1234\"}");
    assert_true(has(store, "c"));
    assert_false(has(store, "b"));
    assert_false(has(store, "a"));
    put(store, "d", "{\"x\":\"12345678901234567890\"}"); /* more than all may be together */
    assert_int_equal(mt_store_held(store).entries, 0);
    mt_store_close(store);
}

static void nothing_is_kept_where_nothing_may_be(void **state)
{
    mt_store *store = open_store(NULL, 0, 1000);

    (void)state;
    put(store, "a", "{}");
    assert_false(has(store, "a"));
    mt_store_close(store);
}

static void remove_files(const char *path)
{
    static const char *const tails[] = {"", "-wal", "-shm"};
    char name[200];

    for (size_t i = 0; i < MT_COUNT(tails); i++) {
        snprintf(name, sizeof(name), "%s%s", path, tails[i]);
        unlink(name);
    }
}

static void a_file_outlives_the_process(void **state)
{
    char path[100];
    mt_store *store;

    (void)state;
    snprintf(path, sizeof(path), "store-%ld.db", (long)getpid());
    store = open_store(path, 10, 1000);
    put(store, "a", "{\"x\":1}");
    put(store, "b", "{}");
    mt_store_close(store);
    store = open_store(path, 1, 1000);
    assert_int_equal(mt_store_held(store).entries, 2);
    assert_true(has(store, "a"));
    put(store, "c", "{}");
    assert_int_equal(mt_store_held(store).entries, 1);
    mt_store_close(store);
    remove_files(path);
}

static void a_file_that_is_no_store_is_refused_with_a_sentence(void **state)
{
    const mt_store_limits limits = {.entries = 1, .bytes = 1};
    char path[100];
    mt_error err = {0};
    FILE *file;

    (void)state;
    snprintf(path, sizeof(path), "no-store-%ld.db", (long)getpid());
    file = fopen(path, "w");
    fputs("this is some text that is long enough not to be taken for the beginning of a database\n", file);
    fclose(file);
    assert_null(mt_store_open(path, limits, &err));
    assert_non_null(strstr(err.text, "cannot be used"));
    assert_null(mt_store_open("/nowhere/at/all.db", limits, &err));
    assert_non_null(strstr(err.text, "\"/nowhere/at/all.db\""));
    remove_files(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_put_is_there_until_it_is_removed),
    cmocka_unit_test(no_store_has_nothing),
    cmocka_unit_test(the_one_not_asked_for_longest_goes_first),
    cmocka_unit_test(bytes_count_as_well),
    cmocka_unit_test(nothing_is_kept_where_nothing_may_be),
    cmocka_unit_test(a_file_outlives_the_process),
    cmocka_unit_test(a_file_that_is_no_store_is_refused_with_a_sentence),
};
UNIT_MAIN(tests)
