/* Answers that are kept, and those that have to go. */
#include "folder.h"

#include <pthread.h>
#include <sqlite3.h>
#include <time.h>

#include "api/limits.h"
#include "api/store.h"
#include "base/alloc.h"

static mt_store *open_store(const char *path, int64_t entries, int64_t bytes)
{
    mt_error err = {0};
    mt_store *store = mt_store_open(path, (mt_store_size){.entries = entries, .bytes = bytes}, &err);

    assert_string_equal(err.text, "");
    assert_non_null(store);
    return store;
}

/* Waits until all is written. */
static void flush(mt_store *store)
{
    while (mt_store_look(store).waiting > 0)
        usleep(100);
}

static void keep(mt_store *store, const char *id, const char *text)
{
    mt_store_put(store, id, mt_strdup(text), strlen(text));
    flush(store);
}

static mt_store_size held(mt_store *store)
{
    return mt_store_look(store).held;
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
    keep(store, "a", "{\"x\":\"y\\u0000z\"}");
    found = mt_store_get(store, "a");
    assert_int_equal(json_string_length(json_object_get(found, "x")), 3);
    json_decref(found);
    keep(store, "a", "{}");
    assert_int_equal(held(store).entries, 1);
    assert_int_equal(held(store).bytes, 2);
    assert_false(has(store, "b"));
    assert_true(mt_store_remove(store, "a"));
    assert_false(mt_store_remove(store, "a"));
    assert_false(has(store, "a"));
    assert_int_equal(held(store).entries, 0);
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
    keep(store, "a", "{}");
    keep(store, "b", "{}");
    assert_true(has(store, "a"));
    keep(store, "c", "{}");
    assert_true(has(store, "a"));
    assert_false(has(store, "b"));
    assert_true(has(store, "c"));
    mt_store_close(store);
}

static void bytes_count_as_well(void **state)
{
    mt_store *store = open_store(NULL, 10, 20);

    (void)state;
    keep(store, "a", "{\"x\":\"12345\"}");
    keep(store, "b", "{}");
    assert_true(has(store, "a"));
    keep(store, "c", "{\"x\":\"1234\"}");
    assert_true(has(store, "c"));
    assert_false(has(store, "b"));
    assert_false(has(store, "a"));
    keep(store, "d", "{\"x\":\"12345678901234567890\"}"); /* more than all may be together */
    assert_int_equal(held(store).entries, 0);
    mt_store_close(store);
}

static void nothing_is_kept_where_nothing_may_be(void **state)
{
    mt_store *store = open_store(NULL, 0, 1000);

    (void)state;
    keep(store, "a", "{}");
    assert_false(has(store, "a"));
    mt_store_close(store);
}

static void a_file_outlives_the_process(void **state)
{
    char path[100];
    mt_store *store;

    (void)state;
    snprintf(path, sizeof(path), "%s/store.db", folder);
    store = open_store(path, 10, 1000);
    keep(store, "a", "{\"x\":1}");
    keep(store, "b", "{}");
    mt_store_close(store);
    store = open_store(path, 1, 1000);
    assert_int_equal(held(store).entries, 2);
    assert_true(has(store, "a"));
    keep(store, "c", "{}");
    assert_int_equal(held(store).entries, 1);
    mt_store_close(store);
}

static void a_file_that_is_no_store_is_refused_with_a_sentence(void **state)
{
    const mt_store_size limits = {.entries = 1, .bytes = 1};
    char path[100];
    mt_error err = {0};
    FILE *file;

    (void)state;
    snprintf(path, sizeof(path), "%s/no-store.db", folder);
    file = fopen(path, "w");
    fputs("this is some text that is long enough not to be taken for the beginning of a database\n", file);
    fclose(file);
    assert_null(mt_store_open(path, limits, &err));
    assert_non_null(strstr(err.text, "cannot be used"));
    assert_null(mt_store_open("/nowhere/at/all.db", limits, &err));
    assert_string_equal(err.text, "the store \"/nowhere/at/all.db\" cannot be used: No such "
                                  "file or directory");
}

static void what_was_put_is_found_at_once_and_in_order(void **state)
{
    mt_store *store = open_store(NULL, 1000, 1 << 20);
    char id[20];

    (void)state;
    for (int i = 0; i < 300; i++) {
        snprintf(id, sizeof(id), "id%d", i);
        mt_store_put(store, id, mt_strdup("{}"), 2);
        if (i % 7 == 0)
            assert_true(has(store, id));
    }
    assert_true(mt_store_remove(store, id)); /* the last, which may wait still */
    assert_false(has(store, id));
    flush(store);
    assert_int_equal(held(store).entries, 299);
    assert_int_equal(mt_store_look(store).waiting, 0);
    assert_int_equal(mt_store_look(store).failed, 0);
    mt_store_close(store);
}

static void what_waits_is_bounded(void **state)
{
    mt_store *store = open_store(NULL, 10, INT64_MAX);

    (void)state;
    mt_store_put(store, "a", mt_strdup("{}"), MT_LIMIT_STORE_BYTES + 1); /* its text is not looked at */
    assert_false(has(store, "a"));
    assert_int_equal(mt_store_look(store).failed, 1);
    mt_store_close(store);
}

static void a_file_that_cannot_be_written_costs_answers_only(void **state)
{
    sqlite3 *other = NULL;
    char path[100];
    mt_store *store;

    (void)state;
    snprintf(path, sizeof(path), "%s/locked.db", folder);
    store = open_store(path, 10, 1000);
    keep(store, "a", "{}");
    assert_true(has(store, "a"));
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    keep(store, "b", "{}");
    assert_false(has(store, "b"));
    assert_true(has(store, "a"));
    assert_int_equal(mt_store_look(store).failed, 1);
    sqlite3_close(other);
    keep(store, "c", "{}");
    assert_true(has(store, "c"));
    mt_store_close(store);
}

static void *commit_later(void *other)
{
    usleep(200000);
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    return NULL;
}

static void another_process_that_writes_is_waited_for(void **state)
{
    sqlite3 *other = NULL;
    mt_store *store = NULL;
    pthread_t thread;
    char path[100];

    (void)state;
    snprintf(path, sizeof(path), "%s/shared.db", folder);
    mt_store_close(open_store(path, 10, 1000));
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    for (int i = 0; i < 2; i++) { /* when it is opened, and when an answer is written */
        assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(pthread_create(&thread, NULL, commit_later, other), 0);
        store = store ? store : open_store(path, 10, 1000);
        keep(store, "a", "{}");
        pthread_join(thread, NULL);
    }
    assert_int_equal(mt_store_look(store).failed, 0);
    sqlite3_close(other);
    mt_store_close(store);
}

static void what_one_owner_keeps_is_not_there_for_others(void **state)
{
    mt_store *store = open_store(NULL, 10, 1000), *one = mt_store_view(store, "one"),
             *two = mt_store_view(store, "two");

    (void)state;
    keep(one, "a", "{}");
    keep(store, "b", "{}");
    assert_true(has(one, "a"));
    assert_false(has(two, "a") || has(store, "a") || has(one, "b") || has(two, "b"));
    assert_false(mt_store_remove(two, "a") || mt_store_remove(store, "a"));
    assert_true(has(one, "a"));
    assert_int_equal(held(two).entries, 2); /* the bounds are all of theirs */
    mt_store_adopt(two);
    assert_true(has(two, "b") && has(one, "a"));
    assert_false(has(store, "b") || has(two, "a"));
    assert_true(mt_store_remove(one, "a") && mt_store_remove(two, "b"));
    mt_store_close(one);
    mt_store_close(two);
    mt_store_close(store);
}

static void who_keeps_most_gives_way(void **state)
{
    mt_store *store = open_store(NULL, 4, 1000), *one = mt_store_view(store, "one"), *two = mt_store_view(store, "two");
    char id[8];

    (void)state;
    keep(store, "nobody", "{}"); /* whose it is cannot ask for it any more */
    keep(one, "a", "{}");
    keep(one, "b", "{}");
    keep(two, "c", "{}");
    keep(two, "d", "{}");
    assert_false(has(store, "nobody"));
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof(id), "two%d", i);
        keep(two, id, "{}");
    }
    assert_true(has(one, "a") && has(one, "b") && has(two, "two8") && has(two, "two9"));
    assert_int_equal(held(store).entries, 4);
    keep(one, "e", "{}");
    assert_false(has(one, "a"));
    assert_true(has(two, "two8") && has(one, "b") && has(one, "e"));
    mt_store_close(one);
    mt_store_close(two);
    mt_store_close(store);
}

static void who_keeps_most_bytes_gives_way(void **state)
{
    mt_store *store = open_store(NULL, 100, 40), *one = mt_store_view(store, "one"), *two = mt_store_view(store, "two");

    (void)state;
    for (int i = 0; i < 5; i++)
        keep(one, (const char *[]){"a", "b", "c", "d", "e"}[i], "{}");
    keep(two, "large", "{\"x\":\"12345678901234567890\"}");
    keep(two, "more", "{\"x\":\"1234\"}");
    assert_false(has(two, "large"));
    assert_true(has(two, "more") && has(one, "a") && has(one, "e"));
    mt_store_close(one);
    mt_store_close(two);
    mt_store_close(store);
}

/* Seconds of this thread for finding the answers "a" and "c" again and again. */
static double time_to_find(mt_store *store)
{
    struct timespec begin, end;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int i = 0; i < 50; i++)
        assert_true(has(store, "a") && has(store, "c"));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

/* It took a thousand times as long where a search met the large one. */
static void a_large_answer_does_not_slow_down_others(void **state)
{
    enum { LARGE = 16 << 20 };
    mt_store *store = open_store(NULL, 10, 2 * LARGE);
    char *text = mt_alloc(LARGE + 1);
    double alone, beside;

    (void)state;
    memset(text, ' ', LARGE);
    text[0] = '{';
    text[LARGE - 1] = '}';
    text[LARGE] = '\0';
    keep(store, "a", "{}");
    keep(store, "c", "{}");
    alone = time_to_find(store);
    keep(store, "b", text);
    beside = time_to_find(store);
    assert_true(has(store, "b"));
    if (beside > 10 * alone + 0.02)
        fail_msg("%.3f s instead of %.3f s", beside, alone);
    mt_store_close(store);
    mt_free(text);
}

static void expect_read_on(const char *old)
{
    sqlite3 *other = NULL;
    char path[100];
    mt_store *store, *one;

    snprintf(path, sizeof(path), "%s/old.db", folder);
    remove(path);
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, old, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    for (int i = 0; i < 2; i++) {
        store = open_store(path, 10, 1000);
        one = mt_store_view(store, "one");
        assert_int_equal(held(store).entries, i + 1);
        assert_true(has(store, "a"));
        assert_false(has(one, "a"));
        assert_true(i == 0 || has(one, "b"));
        keep(one, "b", "{}");
        mt_store_close(one);
        mt_store_close(store);
    }
}

static void files_of_older_versions_are_read_on(void **state)
{
    static const char first[] = "PRAGMA journal_mode = WAL;"
                                "CREATE TABLE answer (id TEXT PRIMARY KEY, used INTEGER NOT NULL,"
                                " text BLOB NOT NULL) WITHOUT ROWID; CREATE INDEX answer_used ON answer (used);"
                                "INSERT INTO answer VALUES ('a', 1, '{\"x\":1}'); PRAGMA user_version = 1";
    static const char second[] = "PRAGMA journal_mode = WAL;"
                                 "CREATE TABLE answer (id TEXT PRIMARY KEY, used INTEGER NOT NULL,"
                                 " text BLOB NOT NULL, owner TEXT NOT NULL DEFAULT '') WITHOUT ROWID;"
                                 "CREATE INDEX answer_used ON answer (used);"
                                 "CREATE INDEX answer_owner ON answer (owner, used);"
                                 "INSERT INTO answer VALUES ('a', 1, '{\"x\":1}', ''); PRAGMA user_version = 2";

    (void)state;
    expect_read_on(first);
    expect_read_on(second);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_one_owner_keeps_is_not_there_for_others),
    cmocka_unit_test(who_keeps_most_gives_way),
    cmocka_unit_test(who_keeps_most_bytes_gives_way),
    cmocka_unit_test(a_large_answer_does_not_slow_down_others),
    cmocka_unit_test_setup_teardown(files_of_older_versions_are_read_on, make_folder, remove_folder),
    cmocka_unit_test(what_was_put_is_there_until_it_is_removed),
    cmocka_unit_test(no_store_has_nothing),
    cmocka_unit_test(the_one_not_asked_for_longest_goes_first),
    cmocka_unit_test(bytes_count_as_well),
    cmocka_unit_test(nothing_is_kept_where_nothing_may_be),
    cmocka_unit_test(what_was_put_is_found_at_once_and_in_order),
    cmocka_unit_test(what_waits_is_bounded),
    cmocka_unit_test_setup_teardown(a_file_that_cannot_be_written_costs_answers_only, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(another_process_that_writes_is_waited_for, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_file_outlives_the_process, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_file_that_is_no_store_is_refused_with_a_sentence, make_folder, remove_folder),
};
UNIT_MAIN(tests)
