/* Records in memory: what was written is read, as long as there is room, whatever else is done meanwhile. */
#include "unit.h"

#include <pthread.h>

#include "base/alloc.h"
#include "tier/shelf.h"

#define SIZE 20000

static void make_key(uint8_t key[MT_TIER_KEY], uint32_t number)
{
    memset(key, (int)(number % 251), MT_TIER_KEY);
    memcpy(key, &number, sizeof(number));
}

static void make_data(uint8_t *data, size_t size, uint32_t number)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * 7 + number * 13 + (i >> 8));
}

static size_t size_of(uint32_t number)
{
    return number % 5 == 4 ? SIZE / 3 : number % 5 == 3 ? 2 * SIZE : SIZE;
}

static void write_one(mt_shelf *s, uint32_t number)
{
    uint8_t key[MT_TIER_KEY], data[2 * SIZE];
    const size_t size = size_of(number), first = size / 3;
    make_key(key, number);
    make_data(data, size, number);
    mt_shelf_write(s, key, 1, (mt_tier_part[]){{data, first}, {data + first, size - first}}, 2);
}

/* Whether it is there; then it is what was written. */
static bool read_one(mt_shelf *s, uint32_t number)
{
    uint8_t key[MT_TIER_KEY], data[2 * SIZE], found[2 * SIZE];
    const size_t size = size_of(number), first = size / 3;
    make_key(key, number);
    make_data(data, size, number);
    if (!mt_shelf_read(s, key, 1, (mt_tier_part[]){{found, first}, {found + first, size - first}}, 2))
        return false;
    assert_memory_equal(found, data, size);
    return true;
}

static void what_was_written_is_read(void **state)
{
    mt_shelf *s = mt_shelf_new(2 << 20, SIZE);
    uint8_t key[MT_TIER_KEY], data[SIZE];
    (void)state;
    assert_false(read_one(s, 1));
    write_one(s, 1);
    write_one(s, 1);
    assert_true(read_one(s, 1));
    assert_int_equal(mt_shelf_look(s).records, 1);
    make_key(key, 1);
    assert_false(mt_shelf_read(s, key, 2, &(mt_tier_part){data, SIZE}, 1)); /* of another kind, and cut otherwise */
    assert_false(mt_shelf_read(s, key, 1, &(mt_tier_part){data, SIZE}, 1));
    mt_shelf_free(s);
}

static void the_least_lately_used_go(void **state)
{
    mt_shelf *s = mt_shelf_new(2 << 20, SIZE);
    size_t there = 0;
    (void)state;
    for (uint32_t i = 0; i < 2000; i++) {
        write_one(s, i);
        assert_true(read_one(s, i));
        if (i > 0)
            assert_true(read_one(s, 0)); /* which is used */
        assert_true(mt_shelf_look(s).bytes <= 2 << 20);
    }
    for (uint32_t i = 0; i < 2000; i++)
        there += read_one(s, i);
    assert_int_equal(there, mt_shelf_look(s).records);
    assert_true(there > 40 && there < 120);
    assert_true(read_one(s, 1999) && !read_one(s, 1000));
    mt_shelf_free(s);
}

enum { MARKED = 300 };

typedef struct notes {
    bool gone[MARKED];
} notes;

static void note_gone(void *ctx, const uint8_t key[MT_TIER_KEY], uint32_t kind)
{
    notes *n = ctx;
    uint32_t number;
    memcpy(&number, key, sizeof(number));
    assert_int_equal(kind, 1);
    assert_true(number < MARKED && !n->gone[number]);
    n->gone[number] = true;
}

/* Of those that were marked each is told once, when it goes; of the others none is. */
static void who_watches_is_told(void **state)
{
    mt_shelf *s = mt_shelf_new(2 << 20, SIZE);
    static notes n;
    uint8_t key[MT_TIER_KEY];
    (void)state;
    mt_shelf_watch(s, note_gone, &n);
    make_key(key, 0);
    assert_false(mt_shelf_is_new(s, key));
    assert_false(mt_shelf_mark(s, key));
    for (uint32_t i = 0; i < MARKED; i++) {
        make_key(key, i);
        write_one(s, i);
        assert_true(mt_shelf_is_new(s, key));
        if (i % 2 == 0)
            assert_true(mt_shelf_mark(s, key));
        assert_int_equal(mt_shelf_is_new(s, key), i % 2);
    }
    for (uint32_t i = 0; i < MARKED; i++)
        assert_int_equal(n.gone[i], i % 2 == 0 && !read_one(s, i));
    write_one(s, 0); /* it is another one */
    make_key(key, 0);
    assert_true(n.gone[0] && mt_shelf_is_new(s, key));
    mt_shelf_free(s);
}

static void too_little_is_none(void **state)
{
    (void)state;
    assert_null(mt_shelf_new(0, SIZE));
    assert_null(mt_shelf_new(SIZE, SIZE));
    assert_null(mt_shelf_new(1 << 20, 0));
    mt_shelf_free(NULL);
}

static void *work(void *arg)
{
    mt_shelf *s = arg;
    for (uint32_t i = 0; i < 3000; i++) {
        write_one(s, i % 170);
        read_one(s, (i * 7) % 170);
    }
    return NULL;
}

static void several_at_once(void **state)
{
    mt_shelf *s = mt_shelf_new(2 << 20, SIZE);
    pthread_t other;
    (void)state;
    assert_int_equal(pthread_create(&other, NULL, work, s), 0);
    work(s);
    pthread_join(other, NULL);
    mt_shelf_free(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_written_is_read), cmocka_unit_test(the_least_lately_used_go),
    cmocka_unit_test(who_watches_is_told), cmocka_unit_test(too_little_is_none), cmocka_unit_test(several_at_once)};
UNIT_MAIN(tests)
