/* Records in memory: what was written is read, as long as there is room, whatever else is done meanwhile. */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tier/host_store.h"

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

static void write_one(mt_host_store *s, uint32_t number)
{
    uint8_t key[MT_TIER_KEY], data[2 * SIZE];
    const size_t size = size_of(number), first = size / 3;
    make_key(key, number);
    make_data(data, size, number);
    mt_host_store_write(s, key, 1, (mt_tier_part[]){{data, first}, {data + first, size - first}}, 2);
}

/* Whether it is there; then it is what was written. */
static bool read_one(mt_host_store *s, uint32_t number)
{
    uint8_t key[MT_TIER_KEY], data[2 * SIZE], found[2 * SIZE];
    const size_t size = size_of(number), first = size / 3;
    make_key(key, number);
    make_data(data, size, number);
    if (!mt_host_store_read(s, key, 1, (mt_tier_part[]){{found, first}, {found + first, size - first}}, 2))
        return false;
    assert_memory_equal(found, data, size);
    return true;
}

static void expect_counts(mt_host_store *s, uint64_t records, uint64_t written, uint64_t evicted)
{
    const mt_host_store_stats stats = mt_host_store_look(s);
    assert_int_equal(stats.records, records);
    assert_int_equal(stats.written, written);
    assert_int_equal(stats.evicted, evicted);
}

static void what_was_written_is_read(void **state)
{
    mt_host_store *s = mt_host_store_new(2 << 20, SIZE);
    const size_t first = SIZE / 3;
    uint8_t key[MT_TIER_KEY], data[SIZE];
    (void)state;
    assert_false(read_one(s, 1));
    write_one(s, 1);
    write_one(s, 1);
    assert_true(read_one(s, 1));
    make_key(key, 1); /* of another kind, and cut otherwise */
    assert_false(mt_host_store_read(s, key, 2, (mt_tier_part[]){{data, first}, {data + first, SIZE - first}}, 2));
    assert_false(mt_host_store_read(s, key, 1, (mt_tier_part[]){{data, first}, {data + first, SIZE - first - 1}}, 2));
    assert_false(mt_host_store_read(s, key, 1, (mt_tier_part[]){{data, first - 1}, {data + first, SIZE - first}}, 2));
    assert_false(mt_host_store_read(s, key, 1, &(mt_tier_part){data, first}, 1));
    assert_false(mt_host_store_read(s, key, 1, &(mt_tier_part){data, SIZE}, 1));
    expect_counts(s, 1, 1, 0);
    assert_int_equal(mt_host_store_look(s).read, 1);
    mt_host_store_free(s);
}

static void the_least_lately_used_go(void **state)
{
    mt_host_store *s = mt_host_store_new(2 << 20, SIZE);
    size_t there = 0;
    (void)state;
    for (uint32_t i = 0; i < 2000; i++) {
        write_one(s, i);
        assert_true(read_one(s, i));
        if (i > 0)
            assert_true(read_one(s, 0)); /* which is used */
        assert_true(mt_host_store_look(s).bytes <= 2 << 20);
    }
    for (uint32_t i = 0; i < 2000; i++)
        there += read_one(s, i);
    expect_counts(s, there, 2000, 2000 - there);
    assert_true(there > 40 && there < 120);
    assert_true(read_one(s, 1999) && !read_one(s, 1000));
    mt_host_store_free(s);
}

/* Writes one part of so many bytes; whether it is there then, and how much of the host store is used. */
static void all_of_it_goes_when_it_is_emptied(void **state)
{
    mt_host_store *s = mt_host_store_new(2 << 20, SIZE);
    (void)state;
    mt_host_store_clear(s);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 20; i++)
            write_one(s, i);
        assert_true(read_one(s, 19));
        mt_host_store_clear(s);
        expect_counts(s, 0, 20 * (round + 1), 20 * (round + 1));
        assert_int_equal(mt_host_store_look(s).bytes, 0);
        assert_false(read_one(s, 19));
    }
    mt_host_store_free(s);
}

/* A thread that reads a record into a page, or writes it from there, stands still at its first access until it may go
   on: the page is closed, and the signal that this raises opens it. */
static struct still {
    int reached[2], may_go_on[2]; /* pipes, a byte for each time */
    uint8_t *page;
    size_t size;
    mt_host_store *store;
    bool writes;
} still;

static void on_fault(int signal)
{
    char byte = (char)signal;
    if (write(still.reached[1], &byte, 1) != 1 || read(still.may_go_on[0], &byte, 1) != 1)
        abort();
    mprotect(still.page, still.size, PROT_READ | PROT_WRITE);
}

static void *touch_record(void *arg)
{
    uint8_t key[MT_TIER_KEY];
    const mt_tier_part part = {still.page, still.size};
    bool *ok = arg;
    make_key(key, 7);
    if (still.writes)
        mt_host_store_write(still.store, key, 1, &part, 1);
    else
        *ok = mt_host_store_read(still.store, key, 1, &part, 1);
    return NULL;
}

static void what_is_read_or_written_meanwhile_goes_too(void **state)
{
    const struct sigaction action = {.sa_handler = on_fault};
    struct sigaction before_segv, before_bus;
    uint8_t key[MT_TIER_KEY];
    (void)state;
    make_key(key, 7);
    still.size = (size_t)sysconf(_SC_PAGESIZE);
    still.page = mmap(NULL, still.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(still.page != MAP_FAILED);
    assert_int_equal(pipe(still.reached) + pipe(still.may_go_on), 0);
    assert_int_equal(sigaction(SIGSEGV, &action, &before_segv) + sigaction(SIGBUS, &action, &before_bus), 0);
    for (int writes = 0; writes < 2; writes++) {
        pthread_t thread;
        bool ok = false;
        char byte = 0;
        mt_host_store *s = still.store = mt_host_store_new(2 << 20, SIZE);
        still.writes = writes;
        if (!writes)
            mt_host_store_write(s, key, 1, &(mt_tier_part){still.page, still.size}, 1);
        assert_int_equal(mprotect(still.page, still.size, PROT_NONE), 0);
        assert_int_equal(pthread_create(&thread, NULL, touch_record, &ok), 0);
        assert_int_equal(read(still.reached[0], &byte, 1), 1);
        mt_host_store_clear(s);
        assert_false(mt_host_store_has(s, key));
        assert_int_equal(write(still.may_go_on[1], &byte, 1), 1);
        pthread_join(thread, NULL);
        assert_true(ok || writes); /* what has begun is read whole */
        assert_false(mt_host_store_has(s, key));
        expect_counts(s, 0, 1, 1);
        assert_int_equal(mt_host_store_look(s).bytes, 0);
        mt_host_store_free(s);
    }
    sigaction(SIGSEGV, &before_segv, NULL);
    sigaction(SIGBUS, &before_bus, NULL);
    munmap(still.page, still.size);
    for (int end = 0; end < 2; end++) {
        close(still.reached[end]);
        close(still.may_go_on[end]);
    }
}

static bool keeps(mt_host_store *s, uint32_t number, size_t size, uint64_t used)
{
    uint8_t key[MT_TIER_KEY], *data = mt_alloc(size + 1);
    make_key(key, number);
    mt_host_store_write(s, key, 1, &(mt_tier_part){data, size}, 1);
    mt_free(data);
    assert_int_equal(mt_host_store_look(s).bytes, used);
    return mt_host_store_has(s, key);
}

/* Pieces of 4096 bytes: all of them are used before a record goes, by one record too, and one that is too large for the
   host store costs none of the others. */
static void all_of_it_is_used(void **state)
{
    mt_host_store *s = mt_host_store_new(1 << 20, 4096);
    const uint64_t limit = mt_host_store_look(s).limit, pieces = limit / 4096;
    (void)state;
    assert_true(limit + 2 * 256 * (uint64_t)MT_TIER_KEY <= 1 << 20); /* with the keys of 512 records */
    assert_false(keeps(s, 0, 0, 0));
    assert_true(keeps(s, 0, 4096, 4096));
    assert_true(keeps(s, 1, 4097, 3 * 4096));
    for (uint32_t i = 2; i < pieces - 1; i++)
        assert_true(keeps(s, i, 1, (i + 2) * 4096));
    expect_counts(s, pieces - 1, pieces - 1, 0);
    assert_false(keeps(s, 1000, limit + 1, limit));
    expect_counts(s, pieces - 1, pieces - 1, 0);
    assert_true(keeps(s, 1001, limit, limit));
    expect_counts(s, 1, pieces, pieces - 1);
    mt_host_store_free(s);
}

/* There are at most twice as many records as have the usual size. */
static void small_ones_go_by_number(void **state)
{
    mt_host_store *s = mt_host_store_new(2 << 20, SIZE);
    const uint32_t most = 2 * ((2 << 20) / SIZE);
    (void)state;
    for (uint32_t i = 0; i < 2 * most; i++)
        assert_true(keeps(s, i, 1, 4096 * (i < most ? i + 1 : most)));
    expect_counts(s, most, 2 * most, most);
    mt_host_store_free(s);
}

/* What a byte takes: an eighth of what is usual, at most 256 KiB, and more where there would be too many pieces. The
   index of a large host store stays small. */
static void pieces_fit_the_host_store(void **state)
{
    const struct {
        uint64_t bytes;
        size_t usual, piece;
    } rows[] = {
        {16 << 20, 8 * 4096 + 1, 8192}, {(uint64_t)1 << 30, 8 << 20, 256 << 10}, {(uint64_t)8 << 30, 4096, 8192}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mt_host_store *s = mt_host_store_new(rows[i].bytes, rows[i].usual);
        assert_non_null(s);
        assert_true(keeps(s, 1, 1, rows[i].piece));
        assert_true(mt_host_store_look(s).limit > rows[i].bytes - rows[i].bytes / 64);
        mt_host_store_free(s);
    }
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
    mt_host_store *s = mt_host_store_new(2 << 20, SIZE);
    static notes n;
    uint8_t key[MT_TIER_KEY];
    (void)state;
    mt_host_store_watch(s, note_gone, &n);
    make_key(key, 0);
    assert_false(mt_host_store_is_new(s, key));
    assert_false(mt_host_store_mark(s, key));
    for (uint32_t i = 0; i < MARKED; i++) {
        make_key(key, i);
        write_one(s, i);
        assert_true(mt_host_store_is_new(s, key));
        if (i % 2 == 0)
            assert_true(mt_host_store_mark(s, key));
        assert_int_equal(mt_host_store_is_new(s, key), i % 2);
    }
    for (uint32_t i = 0; i < MARKED; i++)
        assert_int_equal(n.gone[i], i % 2 == 0 && !read_one(s, i));
    write_one(s, 0); /* it is another one */
    make_key(key, 0);
    assert_true(n.gone[0] && mt_host_store_is_new(s, key));
    mt_host_store_free(s);
}

static void too_little_is_none(void **state)
{
    (void)state;
    assert_null(mt_host_store_new(0, SIZE));
    assert_null(mt_host_store_new(SIZE, SIZE));
    assert_null(mt_host_store_new(1 << 20, 0));
    mt_host_store_free(NULL);
}

static void *work(void *arg)
{
    mt_host_store *s = arg;
    for (uint32_t i = 0; i < 3000; i++) {
        write_one(s, i % 170);
        read_one(s, (i * 7) % 170);
    }
    return NULL;
}

static void several_at_once(void **state)
{
    mt_host_store *s = mt_host_store_new(2 << 20, SIZE);
    uint64_t there = 0;
    pthread_t other;
    (void)state;
    assert_int_equal(pthread_create(&other, NULL, work, s), 0);
    work(s);
    pthread_join(other, NULL);
    for (uint32_t i = 0; i < 170; i++)
        there += read_one(s, i);
    expect_counts(s, there, mt_host_store_look(s).written,
                  mt_host_store_look(s).written - there); /* each is there but once */
    mt_host_store_free(s);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_written_is_read),
                                          cmocka_unit_test(the_least_lately_used_go),
                                          cmocka_unit_test(all_of_it_goes_when_it_is_emptied),
                                          cmocka_unit_test(what_is_read_or_written_meanwhile_goes_too),
                                          cmocka_unit_test(all_of_it_is_used),
                                          cmocka_unit_test(small_ones_go_by_number),
                                          cmocka_unit_test(pieces_fit_the_host_store),
                                          cmocka_unit_test(who_watches_is_told),
                                          cmocka_unit_test(too_little_is_none),
                                          cmocka_unit_test(several_at_once)};
UNIT_MAIN(tests)
