/* Files of records: what was written comes back, and nothing else does, wherever the file was cut or a bit was
   flipped. */
#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tier/segment.h"

enum { RECORDS = 4, HEADER = 128 };

typedef struct sample {
    uint8_t key[MT_TIER_KEY], a[200], b[37];
    uint64_t at;
} sample;

static sample samples[RECORDS];
static int place = -1;

static mt_tier_part *parts_of(sample *s, mt_tier_part part[2])
{
    part[0] = (mt_tier_part){s->a, sizeof(s->a)};
    part[1] = (mt_tier_part){s->b, sizeof(s->b)};
    return part;
}

/* Numbers that differ from record to record. */
static void fill(sample *s, unsigned seed)
{
    uint8_t *at = (uint8_t *)s;
    for (size_t i = 0; i < sizeof(*s); i++)
        at[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static void write_samples(void)
{
    mt_segment s;
    mt_error err = {0};
    mt_tier_part part[2];
    unlinkat(place, "x", 0);
    assert_true(mt_segment_create(&s, place, "x", 7, &err));
    for (unsigned i = 0; i < RECORDS; i++) {
        fill(&samples[i], i);
        assert_true(mt_segment_append(&s, samples[i].key, i, parts_of(&samples[i], part), 2, &samples[i].at, &err));
    }
    mt_segment_close(&s);
}

/* How many of the records a file has that a scan finds and that can be read; none that is other than it was. */
static size_t sound(void)
{
    mt_segment s;
    mt_error err = {0};
    mt_record r;
    size_t found = 0;
    if (!mt_segment_open(&s, place, "x", &err)) {
        assert_int_equal(err.code, MT_E_INVALID);
        return 0;
    }
    assert_int_equal(s.number, 7);
    for (uint64_t at = 0; mt_segment_next(&s, &at, &r);) {
        sample back;
        mt_tier_part part[2];
        assert_true(r.kind < RECORDS && r.at == samples[r.kind].at);
        if (mt_segment_read(&s, r.at, samples[r.kind].key, r.kind, parts_of(&back, part), 2) != MT_SEGMENT_READ)
            continue;
        assert_memory_equal(back.a, samples[r.kind].a, sizeof(back.a));
        assert_memory_equal(back.b, samples[r.kind].b, sizeof(back.b));
        found++;
    }
    mt_segment_close(&s);
    return found;
}

static void what_was_written_comes_back(void **state)
{
    mt_segment s;
    mt_error err = {0};
    sample back;
    mt_tier_part part[2], one = {back.a, sizeof(back.a)};
    (void)state;
    write_samples();
    assert_int_equal(sound(), RECORDS);
    assert_false(mt_segment_create(&s, place, "x", 8, &err)); /* a file that is there is never begun anew */
    assert_true(mt_segment_open(&s, place, "x", &err));
    parts_of(&back, part);
    assert_int_equal(mt_segment_read(&s, samples[1].at, samples[0].key, 1, part, 2), MT_SEGMENT_OTHER);
    assert_int_equal(mt_segment_read(&s, samples[1].at, samples[1].key, 2, part, 2), MT_SEGMENT_OTHER);
    assert_int_equal(mt_segment_read(&s, samples[1].at, samples[1].key, 1, &one, 1), MT_SEGMENT_OTHER);
    part[1].size--;
    assert_int_equal(mt_segment_read(&s, samples[1].at, samples[1].key, 1, part, 2), MT_SEGMENT_OTHER);
    assert_int_equal(mt_segment_read(&s, samples[1].at + HEADER, samples[1].key, 1, part, 2), MT_SEGMENT_BROKEN);
    mt_segment_close(&s);
}

static void a_torn_file_has_what_was_whole(void **state)
{
    (void)state;
    write_samples();
    struct stat info;
    assert_int_equal(fstatat(place, "x", &info, 0), 0);
    for (off_t size = info.st_size - 1; size >= 0; size -= size > 1400 ? 1 : 13) {
        const int fd = openat(place, "x", O_WRONLY);
        size_t whole = 0;
        assert_int_equal(ftruncate(fd, size), 0);
        close(fd);
        for (size_t i = 0; i < RECORDS; i++)
            whole += samples[i].at + mt_segment_room(sizeof(samples[i].a) + sizeof(samples[i].b)) <= (uint64_t)size;
        assert_int_equal(sound(), whole);
    }
    mt_segment s;
    mt_error err = {0};
    write_samples();
    const int fd = openat(place, "x", O_WRONLY);
    assert_int_equal(ftruncate(fd, (off_t)mt_segment_begin() - 1), 0);
    close(fd);
    assert_false(mt_segment_open(&s, place, "x", &err));
    assert_int_equal(err.code, MT_E_INVALID);
}

/* A record's bytes may be those of another one of the same file. */
static void a_record_within_a_record_is_not_found(void **state)
{
    mt_segment s;
    mt_error err = {0};
    mt_record r;
    uint64_t at;
    uint8_t whole[512];
    size_t count = 0;
    (void)state;
    write_samples();
    unlinkat(place, "x", 0);
    assert_true(mt_segment_create(&s, place, "x", 7, &err));
    assert_true(mt_segment_append(&s, samples[0].key, 0, &(mt_tier_part){samples[0].a, 40}, 1, &at, &err));
    const size_t size = (size_t)mt_segment_room(40);
    assert_true(size <= sizeof(whole));
    assert_int_equal(pread(s.fd, whole, size, (off_t)at), size);
    assert_true(mt_segment_append(&s, samples[1].key, 1, &(mt_tier_part){whole, size}, 1, &at, &err));
    for (at = 0; mt_segment_next(&s, &at, &r); count++)
        assert_int_equal(r.kind, count);
    assert_int_equal(count, 2);
    mt_segment_close(&s);
}

static void a_flipped_bit_costs_its_record(void **state)
{
    (void)state;
    write_samples();
    const uint64_t second = samples[1].at, size = sizeof(samples[1].a) + sizeof(samples[1].b);
    const int fd = openat(place, "x", O_RDWR);
    for (uint64_t at = second; at < second + HEADER + size; at++)
        for (int bit = 0; bit < 8; bit += 1 + 2 * (at > second + HEADER)) {
            uint8_t was, flipped;
            assert_int_equal(pread(fd, &was, 1, (off_t)at), 1);
            flipped = (uint8_t)(was ^ 1 << bit);
            assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
            assert_int_equal(sound(), RECORDS - 1);
            assert_int_equal(pwrite(fd, &was, 1, (off_t)at), 1);
        }
    for (off_t at = 0; at < 64; at++) { /* of the file's own header */
        uint8_t was, flipped;
        assert_int_equal(pread(fd, &was, 1, at), 1);
        flipped = was ^ 16;
        assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
        assert_int_equal(sound(), 0);
        assert_int_equal(pwrite(fd, &was, 1, at), 1);
    }
    assert_int_equal(sound(), RECORDS);
    close(fd);
}

/* The same bytes in another file: what a deleted one has left on the disk is not taken for its records. */
static void records_belong_to_their_file(void **state)
{
    static uint8_t bytes[8192];
    (void)state;
    write_samples();
    int fd = openat(place, "x", O_RDWR);
    const ssize_t size = read(fd, bytes, sizeof(bytes));
    close(fd);
    write_samples();
    fd = openat(place, "x", O_RDWR);
    assert_int_equal(pwrite(fd, bytes + HEADER, (size_t)size - HEADER, HEADER), size - HEADER);
    close(fd);
    assert_int_equal(sound(), 0);
}

static int begin(void **state)
{
    if (make_folder(state))
        return -1;
    place = open(folder, O_RDONLY | O_DIRECTORY);
    return place < 0;
}

static int end(void **state)
{
    close(place);
    return remove_folder(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
static const struct CMUnitTest tests[] = {TEST(what_was_written_comes_back), TEST(a_torn_file_has_what_was_whole),
                                          TEST(a_record_within_a_record_is_not_found),
                                          TEST(a_flipped_bit_costs_its_record), TEST(records_belong_to_their_file)};
UNIT_MAIN(tests)
