/* Pictures that clients have uploaded: whose they are, which of them go first, and how many there may be. */
#include "unit.h"

#include "base/alloc.h"
#include "server/calls/account.h"
#include "server/limits.h"
#include "server/prepare/uploads.h"

static const mt_account ada, ben;

typedef struct fixture {
    mt_room room;
    mt_uploads uploads;
} fixture;

static void open_uploads(fixture *f, size_t room, size_t limit)
{
    *f = (fixture){.room = {.limit = room}};
    mt_uploads_init(&f->uploads, &f->room);
    mt_uploads_allow(&f->uploads, limit);
}

/* Everything that was taken from the room is given back. */
static void close_uploads(fixture *f)
{
    mt_uploads_free(&f->uploads);
    assert_int_equal(atomic_load(&f->room.used), 0);
}

static bool add(fixture *f, const mt_account *owner, size_t bytes, char id[MT_RANDOM_ID])
{
    char *const data = mt_alloc(bytes + 1);

    memset(data, 'x', bytes);
    assert_true(mt_room_take(&f->room, bytes));
    if (mt_uploads_add(&f->uploads, owner, data, bytes, bytes, id))
        return true;
    mt_room_give(&f->room, bytes);
    mt_free(data);
    return false;
}

static void an_upload_is_its_owners(void **state)
{
    fixture f;
    char id[MT_RANDOM_ID], url[MT_RANDOM_ID + 16];
    mt_buf bytes;
    mt_error err = {0};

    (void)state;
    open_uploads(&f, 1000, 1000);
    assert_true(add(&f, &ada, 10, id));
    snprintf(url, sizeof(url), "upload:%s", id);
    assert_true(mt_uploads_is(url, strlen(url)));

    assert_false(mt_uploads_load(&f.uploads, &ben, url, strlen(url), NULL, &bytes, &err));
    assert_non_null(strstr(err.text, "is not here any more: upload it again"));
    mt_buf_free(&bytes);
    assert_false(mt_uploads_has(&f.uploads, &ben, id, true));

    assert_true(mt_uploads_load(&f.uploads, &ada, url, strlen(url), NULL, &bytes, &err));
    assert_int_equal(bytes.len, 10);
    assert_memory_equal(bytes.data, "xxxxxxxxxx", 10);
    mt_buf_free(&bytes);
    assert_true(mt_uploads_has(&f.uploads, &ada, id, true));
    assert_false(mt_uploads_has(&f.uploads, &ada, id, false));
    assert_int_equal(mt_uploads_look(&f.uploads).missed, 3);
    close_uploads(&f);
}

static void the_oldest_of_whoever_has_most_goes_first(void **state)
{
    fixture f;
    char first[MT_RANDOM_ID], second[MT_RANDOM_ID], third[MT_RANDOM_ID], bens[MT_RANDOM_ID], last[MT_RANDOM_ID];

    (void)state;
    open_uploads(&f, 1000, 100);
    assert_true(add(&f, &ben, 10, bens));
    assert_true(add(&f, &ada, 30, first));
    assert_true(add(&f, &ada, 30, second));
    assert_true(add(&f, &ada, 30, third));
    assert_true(mt_uploads_has(&f.uploads, &ada, first, false)); /* used: the second is the oldest now */
    assert_true(add(&f, &ben, 20, last));
    assert_false(mt_uploads_has(&f.uploads, &ada, second, false));
    assert_true(mt_uploads_has(&f.uploads, &ada, first, false) && mt_uploads_has(&f.uploads, &ada, third, false));
    assert_true(mt_uploads_has(&f.uploads, &ben, bens, false) && mt_uploads_has(&f.uploads, &ben, last, false));
    assert_int_equal(mt_uploads_look(&f.uploads).evicted, 1);
    close_uploads(&f);
}

static void what_is_larger_than_all_room_is_refused(void **state)
{
    fixture f;
    char id[MT_RANDOM_ID];

    (void)state;
    open_uploads(&f, 1000, 100);
    assert_true(add(&f, &ada, 100, id));
    assert_false(add(&f, &ada, 101, id));
    assert_int_equal(mt_uploads_look(&f.uploads).count, 1);
    close_uploads(&f);
}

static void there_are_so_many_at_most(void **state)
{
    fixture f;
    char first[MT_RANDOM_ID], id[MT_RANDOM_ID];

    (void)state;
    open_uploads(&f, 2 * MT_LIMIT_UPLOADED, 2 * MT_LIMIT_UPLOADED);
    assert_true(add(&f, &ada, 1, first));
    for (size_t i = 1; i < MT_LIMIT_UPLOADED; i++)
        assert_true(add(&f, &ada, 1, id));
    assert_int_equal(mt_uploads_look(&f.uploads).evicted, 0);
    assert_true(add(&f, &ada, 1, id));
    assert_int_equal(mt_uploads_look(&f.uploads).evicted, 1);
    assert_int_equal(mt_uploads_look(&f.uploads).count, MT_LIMIT_UPLOADED);
    assert_false(mt_uploads_has(&f.uploads, &ada, first, false));
    close_uploads(&f);
}

/* Whoever keeps as many tiny ones as there may be loses one of them, and not others their picture. */
static void many_tiny_ones_drive_nobody_out(void **state)
{
    fixture f;
    char picture[MT_RANDOM_ID], first[MT_RANDOM_ID], id[MT_RANDOM_ID];

    (void)state;
    open_uploads(&f, 1 << 20, 1 << 20);
    assert_true(add(&f, &ada, 1 << 19, picture));
    assert_true(add(&f, &ben, 1, first));
    for (size_t i = 2; i < 2 * MT_LIMIT_UPLOADED; i++)
        assert_true(add(&f, &ben, 1, id));
    assert_true(mt_uploads_has(&f.uploads, &ada, picture, false));
    assert_false(mt_uploads_has(&f.uploads, &ben, first, false));
    assert_int_equal(mt_uploads_look(&f.uploads).count, MT_LIMIT_UPLOADED);
    assert_int_equal(mt_uploads_look(&f.uploads).evicted, MT_LIMIT_UPLOADED);
    close_uploads(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_upload_is_its_owners),
    cmocka_unit_test(the_oldest_of_whoever_has_most_goes_first),
    cmocka_unit_test(what_is_larger_than_all_room_is_refused),
    cmocka_unit_test(there_are_so_many_at_most),
    cmocka_unit_test(many_tiny_ones_drive_nobody_out),
};
UNIT_MAIN(tests)
