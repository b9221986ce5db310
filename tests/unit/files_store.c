/* The store of clients' files: whose they are, what a restart leaves, and how many bytes, files and seconds there may
   be. */
#include "folder.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "files/store.h"

#define ADA "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BEN "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static mt_error err;

static mt_files *open_files(uint64_t bytes)
{
    mt_files *f = mt_files_open(folder, (mt_files_limits){.bytes = bytes, .files = 10}, &err);

    assert_non_null(f);
    return f;
}

/* Keeps a file of so many bytes; false: it is refused. */
static bool keep(mt_files *f, const char *owner, const char *name, size_t bytes, int64_t seconds, mt_files_about *about)
{
    mt_files_part *part = mt_files_begin(f, owner, 0, &err);
    char *data = mt_alloc(bytes + 1);
    bool ok = part != NULL;

    memset(data, 'x', bytes);
    *about = (mt_files_about){.purpose = "user_data", .type = "text/plain", .expires = seconds};
    snprintf(about->name, sizeof(about->name), "%s", name);
    if (ok && !mt_files_add(part, data, bytes, &err)) {
        mt_files_drop(part);
        ok = false;
    }
    mt_free(data);
    return ok && mt_files_end(part, about, &err);
}

static size_t entries(void)
{
    DIR *dir = opendir(folder);
    size_t count = 0;

    for (const struct dirent *d = readdir(dir); d; d = readdir(dir))
        count += strncmp(d->d_name, "file-", 5) == 0;
    closedir(dir);
    return count;
}

static size_t listed(mt_files *f, const char *owner, mt_files_query query)
{
    mt_files_page page;
    size_t count;

    if (!query.limit)
        query.limit = 100;
    assert_true(mt_files_list(f, owner, &query, &page, &err));
    count = page.count;
    mt_free(page.at);
    return count;
}

static void a_file_is_its_owners(void **state)
{
    mt_files *f = open_files(1 << 20);
    mt_files_about about, found;
    char text[16] = "";
    int fd;

    (void)state;
    assert_true(keep(f, ADA, "notes.txt", 10, 0, &about));
    assert_int_equal(about.bytes, 10);
    assert_string_equal(about.sha256, "fc11d6f28e59d3cc33c0b14ceb644bf0902ebd63d61218dffe9e7dac7c254542");
    assert_false(mt_files_find(f, BEN, about.id, &found));
    assert_false(mt_files_find(f, "", about.id, &found));
    assert_int_equal(mt_files_read(f, BEN, about.id, &found, &err), -1);
    assert_int_equal(err.code, MT_E_NOT_FOUND);
    assert_false(mt_files_remove(f, BEN, about.id));
    assert_int_equal(listed(f, BEN, (mt_files_query){0}), 0);
    assert_true(mt_files_find(f, ADA, about.id, &found));
    assert_string_equal(found.name, "notes.txt");
    fd = mt_files_read(f, ADA, about.id, &found, &err);
    assert_int_equal(read(fd, text, sizeof(text)), 10);
    assert_int_equal(strspn(text, "x"), 10);
    close(fd);
    assert_true(mt_files_remove(f, ADA, about.id));
    assert_false(mt_files_remove(f, ADA, about.id));
    assert_int_equal(entries(), 0);
    assert_int_equal(mt_files_look(f).bytes, 0);
    mt_files_close(f);
}

static void a_restart_finds_whole_files(void **state)
{
    mt_files *f = open_files(1 << 20);
    mt_files_about about[3], found;
    mt_files_part *part;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_true(keep(f, i == 1 ? BEN : "", "a \"name\" \xC3\xA4", 100 * i, 0, &about[i]));
    part = mt_files_begin(f, "", 0, &err);
    assert_true(mt_files_add(part, "half", 4, &err));
    assert_int_equal(entries(), 4);
    mt_files_drop(part);
    assert_int_equal(entries(), 3);
    mt_files_close(f);

    put("file-000000000000000000000000.part", "what a killed server was writing");
    put("file-000000000000000000000001", "motet file 1 00000000\n{}\n");
    put("mine.txt", "not of the store");
    f = open_files(1 << 20);
    assert_int_equal(mt_files_look(f).count, 3);
    assert_int_equal(mt_files_look(f).bytes, 300);
    assert_int_equal(entries(), 4); /* the broken one is left alone */
    for (size_t i = 0; i < 3; i++) {
        assert_true(mt_files_find(f, i == 1 ? BEN : "", about[i].id, &found));
        assert_memory_equal(&found.bytes, &about[i].bytes, sizeof(found.bytes));
        assert_string_equal(found.sha256, about[i].sha256);
        assert_string_equal(found.name, about[i].name);
        assert_int_equal(found.created, about[i].created);
    }
    mt_files_close(f);
}

static void a_changed_file_is_left_out(void **state)
{
    mt_files *f = open_files(1 << 20);
    mt_files_about about;
    char path[256];

    (void)state;
    assert_true(keep(f, "", "x", 100, 0, &about));
    mt_files_close(f);
    snprintf(path, sizeof(path), "%s/%s", folder, about.id);
    assert_int_equal(truncate(path, 4096 + 99), 0);
    f = open_files(1 << 20);
    assert_int_equal(mt_files_look(f).count, 0);
    mt_files_close(f);
}

static void the_folder_has_one_process(void **state)
{
    mt_files *f = open_files(1 << 20);
    char path[128];

    (void)state;
    assert_null(mt_files_open(folder, (mt_files_limits){.bytes = 1, .files = 1}, &err));
    assert_non_null(strstr(err.text, "is in use by another process"));
    mt_files_close(f);
    put("plain", "");
    snprintf(path, sizeof(path), "%s/plain", folder);
    assert_null(mt_files_open(path, (mt_files_limits){.bytes = 1, .files = 1}, &err));
    assert_non_null(strstr(err.text, "cannot be used"));
}

static void bytes_are_bounded(void **state)
{
    mt_files *f = open_files(1000);
    mt_files_about about, second;

    (void)state;
    assert_true(keep(f, "", "a", 600, 0, &about));
    assert_false(keep(f, "", "b", 401, 0, &second));
    assert_int_equal(err.code, MT_E_TOO_LARGE);
    assert_non_null(strstr(err.text, "more than 1000 bytes"));
    assert_int_equal(entries(), 1);
    assert_int_equal(mt_files_look(f).refused, 1);
    assert_null(mt_files_begin(f, "", 401, &err));
    assert_true(keep(f, "", "b", 400, 0, &second));
    assert_true(mt_files_remove(f, "", about.id));
    assert_true(keep(f, "", "c", 600, 0, &about));
    mt_files_close(f);
}

static void an_account_leaves_room_for_others(void **state)
{
    mt_files *f = open_files(1000);
    mt_files_about about;

    (void)state;
    assert_true(keep(f, ADA, "a", 750, 0, &about));
    assert_false(keep(f, ADA, "b", 1, 0, &about));
    assert_non_null(strstr(err.text, "more than its share"));
    assert_true(keep(f, BEN, "c", 180, 0, &about));
    assert_false(keep(f, BEN, "d", 20, 0, &about));
    mt_files_close(f);
}

static void files_expire(void **state)
{
    mt_files *f = mt_files_open(folder, (mt_files_limits){.bytes = 1000, .files = 10, .seconds = 50}, &err);
    mt_files_about a, b, over, found;

    (void)state;
    assert_true(keep(f, "", "a", 1, 0, &a));
    assert_true(keep(f, "", "b", 1, 5000, &b));
    assert_int_equal(a.expires, a.created + 50);
    assert_int_equal(b.expires, b.created + 5000);
    assert_true(keep(f, "", "over", 1, -1, &over)); /* not found from its first second on */
    assert_false(mt_files_find(f, "", over.id, &found));
    assert_int_equal(listed(f, "", (mt_files_query){0}), 2);
    mt_files_sweep(f, over.created);
    assert_int_equal(entries(), 2);
    mt_files_sweep(f, b.created + 4999);
    assert_int_equal(entries(), 1);
    assert_int_equal(mt_files_look(f).expired, 2);
    assert_int_equal(mt_files_look(f).bytes, 1);
    mt_files_sweep(f, b.created + 5000);
    assert_int_equal(entries(), 0);
    mt_files_close(f);
}

static void check_page(mt_files *f, mt_files_query query, const char *names, bool more)
{
    mt_files_page page;
    mt_buf text = {.limit = 100};

    mt_buf_puts(&text, "");
    assert_true(mt_files_list(f, "", &query, &page, &err));
    for (size_t i = 0; i < page.count; i++)
        mt_buf_puts(&text, page.at[i].name);
    assert_string_equal(text.data, names);
    assert_int_equal(page.more, more);
    mt_buf_free(&text);
    mt_free(page.at);
}

static void lists_have_pages(void **state)
{
    mt_files *f = open_files(1000);
    mt_files_about at[5], other;
    mt_files_page page;

    (void)state;
    for (size_t i = 0; i < 5; i++)
        assert_true(keep(f, "", (const char[]){(char)('a' + i), '\0'}, 1, 0, &at[i]));
    assert_true(keep(f, ADA, "z", 1, 0, &other));
    check_page(f, (mt_files_query){.limit = 9}, "edcba", false);
    check_page(f, (mt_files_query){.limit = 5, .oldest_first = true}, "abcde", false);
    check_page(f, (mt_files_query){.limit = 2}, "ed", true);
    check_page(f, (mt_files_query){.limit = 2, .after = at[3].id}, "cb", true);
    check_page(f, (mt_files_query){.limit = 2, .after = at[1].id}, "a", false);
    check_page(f, (mt_files_query){.limit = 2, .after = at[1].id, .oldest_first = true}, "cd", true);
    check_page(f, (mt_files_query){.limit = 2, .before = at[0].id}, "cb", true);
    check_page(f, (mt_files_query){.limit = 9, .before = at[3].id}, "e", false);
    check_page(f, (mt_files_query){.limit = 9, .after = at[4].id, .before = at[1].id}, "dc", false);
    check_page(f, (mt_files_query){.limit = 9, .purpose = "batch"}, "", false);
    assert_false(mt_files_list(f, "", &(mt_files_query){.limit = 9, .after = other.id}, &page, &err));
    mt_free(page.at);
    assert_non_null(strstr(err.text, "to list from"));
    mt_files_close(f);
}

static void files_are_counted(void **state)
{
    mt_files *f = mt_files_open(folder, (mt_files_limits){.bytes = 1000, .files = 8}, &err);
    mt_files_about about;
    mt_files_part *part;

    (void)state;
    for (size_t i = 0; i < 7; i++)
        assert_true(keep(f, "", "x", 1, 0, &about));
    part = mt_files_begin(f, "", 0, &err);
    assert_non_null(part);
    assert_int_equal(mt_files_look(f).count, 8);
    assert_null(mt_files_begin(f, "", 0, &err));
    assert_non_null(strstr(err.text, "8 files are kept here already"));
    mt_files_drop(part);
    assert_true(keep(f, "", "x", 1, 0, &about));
    mt_files_close(f);
}

/* Of the number, too, an account leaves some to others. */
static void an_account_has_so_many_files(void **state)
{
    mt_files *f = mt_files_open(folder, (mt_files_limits){.bytes = 1000, .files = 8}, &err);
    mt_files_about about;

    (void)state;
    for (size_t i = 0; i < 6; i++)
        assert_true(keep(f, ADA, "x", 1, 0, &about));
    assert_false(keep(f, ADA, "x", 1, 0, &about));
    assert_non_null(strstr(err.text, "more than its share"));
    assert_true(keep(f, BEN, "x", 1, 0, &about));
    mt_files_close(f);
}

static void one_file_has_so_many_bytes(void **state)
{
    mt_files *f = open_files(UINT64_MAX);
    mt_files_part *part = mt_files_begin(f, "", 0, &err);
    char byte = 0;

    (void)state;
    assert_false(mt_files_add(part, &byte, MT_LIMIT_FILE_BYTES + 1, &err));
    assert_int_equal(err.code, MT_E_TOO_LARGE);
    mt_files_drop(part);
    mt_files_close(f);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

static const struct CMUnitTest tests[] = {
    IN_FOLDER(a_file_is_its_owners),
    IN_FOLDER(a_restart_finds_whole_files),
    IN_FOLDER(a_changed_file_is_left_out),
    IN_FOLDER(the_folder_has_one_process),
    IN_FOLDER(bytes_are_bounded),
    IN_FOLDER(an_account_leaves_room_for_others),
    IN_FOLDER(files_expire),
    IN_FOLDER(lists_have_pages),
    IN_FOLDER(files_are_counted),
    IN_FOLDER(an_account_has_so_many_files),
    IN_FOLDER(one_file_has_so_many_bytes),
};
UNIT_MAIN(tests)
