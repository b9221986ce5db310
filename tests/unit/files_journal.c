/* Journals of results: what is synced is there again, what was torn is cut off, wherever that was. */
#include "folder.h"

#include <fcntl.h>
#include <unistd.h>

#include "files/journal.h"

static mt_error err;

/* What a reader was told. */
typedef struct told {
    size_t count, bytes, stop; /* stop: records after which no more is wanted; 0: all are */
    uint32_t last;
} told;

static bool note(void *ctx, const mt_journal_record *r)
{
    told *t = ctx;

    assert_int_equal(strlen(r->text), r->len);
    assert_int_equal(r->kind, r->line % 2 ? 'e' : 'o');
    t->count++;
    t->bytes += r->len;
    t->last = r->line;
    return t->count != t->stop;
}

static void add(mt_journal *j, uint32_t line, const char *text)
{
    const mt_journal_record r = {.line = line, .kind = line % 2 ? 'e' : 'o', .text = text, .len = strlen(text)};

    assert_true(mt_journal_add(j, &r, &err));
}

static mt_journal *reopen(int at, told *t)
{
    mt_journal *j;

    *t = (told){0};
    j = mt_journal_open(at, "j", note, t, &err);
    assert_non_null(j);
    return j;
}

static void records_are_there_again(void **state)
{
    const int at = open(folder, O_RDONLY | O_DIRECTORY);
    told t;
    mt_journal *j = reopen(at, &t);

    (void)state;
    assert_int_equal(t.count, 0);
    add(j, 7, "{\"a\":1}");
    add(j, 0, "");
    add(j, UINT32_MAX, "three");
    assert_true(mt_journal_sync(j, &err));
    assert_int_equal(mt_journal_bytes(j), mt_journal_size(7) + mt_journal_size(0) + mt_journal_size(5));
    mt_journal_close(j);
    j = reopen(at, &t);
    assert_int_equal(t.count, 3);
    assert_int_equal(t.bytes, 12);
    assert_int_equal(t.last, UINT32_MAX);
    add(j, 8, "more");
    assert_true(mt_journal_sync(j, &err));
    t = (told){0};
    assert_true(mt_journal_read(at, "j", note, &t, &err)); /* while it is open */
    assert_int_equal(t.count, 4);
    t = (told){.stop = 2};
    assert_false(mt_journal_read(at, "j", note, &t, &err));
    assert_int_equal(t.count, 2);
    t = (told){0};
    assert_true(mt_journal_read(at, "none", note, &t, &err));
    assert_int_equal(t.count, 0);
    mt_journal_close(j);
    unlinkat(at, "j", 0);
    close(at);
}

/* Cut anywhere, or with any byte changed, a journal has the records before that place, and goes on behind them. */
static void what_is_torn_is_cut_off(void **state)
{
    const int at = open(folder, O_RDONLY | O_DIRECTORY);
    const size_t ends[] = {0, mt_journal_size(5), mt_journal_size(5) + mt_journal_size(3)};
    char all[200];
    told t;
    mt_journal *j = reopen(at, &t);
    int fd;

    (void)state;
    add(j, 0, "first");
    add(j, 1, "two");
    assert_true(mt_journal_sync(j, &err));
    mt_journal_close(j);
    fd = openat(at, "j", O_RDWR);
    assert_int_equal(read(fd, all, sizeof(all)), ends[2]);
    for (size_t cut = 0; cut < 2 * ends[2]; cut++) {
        const size_t place = cut / 2, whole = place >= ends[1] ? 1 : 0;

        assert_int_equal(pwrite(fd, all, ends[2], 0), ends[2]);
        if (cut % 2)
            assert_int_equal(pwrite(fd, "~", 1, (off_t)place), 1);
        else
            assert_int_equal(ftruncate(fd, (off_t)place), 0);
        j = reopen(at, &t);
        assert_int_equal(t.count, whole);
        assert_int_equal(mt_journal_bytes(j), ends[whole]);
        add(j, 2, "again");
        assert_true(mt_journal_sync(j, &err));
        mt_journal_close(j);
        j = reopen(at, &t);
        assert_int_equal(t.count, whole + 1);
        assert_int_equal(t.last, 2);
        mt_journal_close(j);
    }
    close(fd);
    close(at);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

static const struct CMUnitTest tests[] = {
    IN_FOLDER(records_are_there_again),
    IN_FOLDER(what_is_torn_is_cut_off),
};
UNIT_MAIN(tests)
