/* A store in a folder: bounded, shared by threads, there again after a restart, and of no consequence when it fails. */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "tier/disk.h"
#include "tier/limits.h"

enum { SIZE = 200 << 10, MANY = 1000 };

static mt_disk *open_disk(uint64_t bytes, size_t entries)
{
    mt_error err = {0};
    mt_disk *disk = mt_disk_open(&(mt_disk_params){.folder = folder, .bytes = bytes, .entries = entries}, &err);
    assert_string_equal(err.text, "");
    assert_non_null(disk);
    return disk;
}

static mt_disk *open_again(mt_disk *disk, uint64_t bytes)
{
    mt_disk_close(disk);
    disk = open_disk(bytes, MANY);
    assert_false(mt_disk_look(disk).scanned);
    mt_disk_scan(disk, NULL);
    assert_true(mt_disk_look(disk).scanned);
    return disk;
}

static void key_of(unsigned number, uint8_t key[MT_TIER_KEY])
{
    for (size_t i = 0; i < MT_TIER_KEY; i++)
        key[i] = (uint8_t)((number * 2654435761u + i * 40503u) >> 8 ^ number >> i % 4 * 8);
}

/* What is kept under a number says which it is, from end to end. */
static uint8_t *data_of(unsigned number, size_t size, uint8_t *data)
{
    uint8_t pattern[251 + 4096];
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = (uint8_t)(i % 251);
    for (size_t at = 0; at < size; at += 4096)
        for (size_t i = 0; i < 4096 && at + i < size; i++)
            data[at + i] = (uint8_t)(number + pattern[at % 251 + i] + at / 4096);
    return data;
}

static void keep(mt_disk *disk, unsigned number)
{
    uint8_t key[MT_TIER_KEY], *data = malloc(SIZE);
    key_of(number, key);
    mt_disk_write(disk, key, 1, &(mt_tier_part){data_of(number, SIZE, data), SIZE}, 1);
    free(data);
}

/* Whether it is there; then it is what was kept. */
static bool has(mt_disk *disk, unsigned number)
{
    uint8_t key[MT_TIER_KEY], *data = malloc(SIZE), *want = malloc(SIZE);
    key_of(number, key);
    const bool there = mt_disk_read(disk, key, 1, &(mt_tier_part){data, SIZE}, 1);
    if (there)
        assert_memory_equal(data, data_of(number, SIZE, want), SIZE);
    free(data);
    free(want);
    return there;
}

static uint64_t bytes_of_files(size_t *count)
{
    DIR *list = opendir(folder);
    struct stat info;
    uint64_t bytes = 0;
    *count = 0;
    for (struct dirent *each; (each = readdir(list));)
        if (strstr(each->d_name, ".motet") && !fstatat(dirfd(list), each->d_name, &info, 0)) {
            bytes += (uint64_t)info.st_size;
            ++*count;
        }
    closedir(list);
    return bytes;
}

static void it_is_there_after_a_restart(void **state)
{
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    (void)state;
    for (unsigned i = 0; i < 30; i++)
        keep(disk, i);
    keep(disk, 7); /* once is enough */
    assert_int_equal(mt_disk_look(disk).written, 30);
    assert_true(has(disk, 7));
    assert_false(has(disk, 30));
    disk = open_again(disk, MT_LIMIT_DISK_LEAST);
    assert_int_equal(mt_disk_look(disk).records, 30);
    for (unsigned i = 0; i < 30; i++)
        assert_true(has(disk, i));
    keep(disk, 30);
    disk = open_again(disk, MT_LIMIT_DISK_LEAST);
    assert_int_equal(mt_disk_look(disk).records, 31);
    assert_true(has(disk, 30) && has(disk, 0));
    mt_disk_close(disk);
}

/* What was emptied has no file and no record, also after a restart, and takes new ones. */
static void it_is_emptied(void **state)
{
    size_t files;
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    (void)state;
    mt_disk_clear(disk); /* nothing is no fault */
    for (unsigned i = 0; i < 60; i++)
        keep(disk, i);
    assert_true(has(disk, 7));
    mt_disk_clear(disk);
    assert_int_equal(mt_disk_look(disk).records, 0);
    assert_int_equal(mt_disk_look(disk).bytes, 0);
    assert_int_equal(bytes_of_files(&files), 0);
    assert_int_equal(files, 0);
    assert_false(has(disk, 7) || has(disk, 59));
    keep(disk, 7);
    assert_true(has(disk, 7));
    disk = open_again(disk, MT_LIMIT_DISK_LEAST);
    assert_int_equal(mt_disk_look(disk).records, 1);
    assert_true(has(disk, 7) && !has(disk, 8));
    mt_disk_clear(disk); /* files of an earlier process, too */
    assert_int_equal(mt_disk_look(disk).records, 0);
    mt_disk_close(disk);
}

static void files_stay_within_their_bound(void **state)
{
    size_t files;
    (void)state;
    if (unit_races())
        UNIT_SKIP("there is one thread");
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    for (unsigned i = 0; i < 900; i++) { /* 176 MiB */
        keep(disk, i);
        assert_true(has(disk, i));
        if (i >= 20) /* a few that somebody wants again and again stay, wherever they were written */
            for (unsigned k = 0; k < 4; k++)
                assert_true(has(disk, k));
        assert_true(mt_disk_look(disk).bytes <= MT_LIMIT_DISK_LEAST);
    }
    assert_true(bytes_of_files(&files) <= MT_LIMIT_DISK_LEAST && files <= 18);
    assert_true(has(disk, 899) && !has(disk, 100));
    assert_true(mt_disk_look(disk).moved >= 4 && mt_disk_look(disk).dropped > 20);
    disk = open_again(disk, MT_LIMIT_DISK_LEAST);
    assert_true(has(disk, 899) && has(disk, 3) && !has(disk, 100));
    for (unsigned i = 1000; i < 1400; i++) /* files of the last time make way, too */
        keep(disk, i);
    assert_true(bytes_of_files(&files) <= MT_LIMIT_DISK_LEAST);
    assert_false(has(disk, 890)); /* which nobody has read since */
    mt_disk_close(disk);
}

static bool is_there(mt_disk *disk, unsigned number)
{
    uint8_t key[MT_TIER_KEY];
    key_of(number, key);
    return mt_disk_has(disk, key);
}

/* Keeps others until the oldest file has been removed once more for each file that there can be: a record that is moved
   is in the newest file then, and has come to be in the oldest again. */
static void go_round(mt_disk *disk, unsigned *next)
{
    for (const uint64_t first = mt_disk_look(disk).dropped; mt_disk_look(disk).dropped < first + 15;)
        keep(disk, (*next)++);
}

/* A record is moved as often as it was read, but three times at most: what is not wanted any more goes in the end. */
static void a_record_is_moved_as_often_as_it_was_read(void **state)
{
    static const unsigned reads[] = {0, 1, 2, 9};
    unsigned next = 100;
    (void)state;
    if (unit_races())
        UNIT_SKIP("there is one thread");
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    for (unsigned i = 0; i < 4; i++)
        keep(disk, i);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < reads[i]; k++)
            assert_true(has(disk, i));
    for (unsigned round = 1; round <= 4; round++) {
        go_round(disk, &next);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(is_there(disk, i), reads[i] >= round && round <= 3);
    }
    assert_int_equal(mt_disk_look(disk).moved, 1 + 2 + 3);
    mt_disk_close(disk);
}

/* Where more than half of a file was read, only those of its records are moved that were read more often. */
static void the_most_read_half_is_moved(void **state)
{
    unsigned next = 100;
    (void)state;
    if (unit_races())
        UNIT_SKIP("there is one thread");
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    for (unsigned i = 0; i < 20; i++) /* a file of twenty */
        keep(disk, i);
    for (unsigned i = 0; i < 16; i++)
        assert_true(has(disk, i) && (i < 12 || has(disk, i)));
    go_round(disk, &next);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(is_there(disk, i), i >= 12 && i < 16);
    assert_int_equal(mt_disk_look(disk).moved, 4);
    mt_disk_close(disk);
}

/* Where more than half of a file is read all the time, half of it is moved: each removal makes room. */
static void half_a_file_is_moved_at_most(void **state)
{
    unsigned next = 100;
    (void)state;
    if (unit_races())
        UNIT_SKIP("there is one thread");
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    for (unsigned i = 0; i < 20; i++)
        keep(disk, i);
    for (unsigned i = 0; i < 20 * 3; i++)
        assert_true(has(disk, i / 3));
    go_round(disk, &next);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(is_there(disk, i), i < 10);
    assert_int_equal(mt_disk_look(disk).moved, 10);
    mt_disk_close(disk);
}

static void the_index_has_a_bound(void **state)
{
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, 50);
    uint8_t key[MT_TIER_KEY], small[16] = {0};
    (void)state;
    for (unsigned i = 0; i < 400; i++) {
        key_of(i, key);
        mt_disk_write(disk, key, 2, &(mt_tier_part){small, sizeof(small)}, 1);
        assert_true(mt_disk_look(disk).records <= 50);
        assert_true(mt_disk_has(disk, key));
    }
    mt_disk_close(disk);
}

static void one_process_has_it(void **state)
{
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    mt_error err = {0};
    const mt_disk_params params = {.folder = folder, .bytes = MT_LIMIT_DISK_LEAST, .entries = MANY};
    (void)state;
    assert_null(mt_disk_open(&params, &err));
    assert_int_equal(err.code, MT_E_BUSY);
    mt_disk_close(disk);
    mt_disk_close(mt_disk_open(&params, &err));
}

static void what_is_not_ours_goes_or_stays(void **state)
{
    size_t files;
    (void)state;
    put("0000000000000001.motet", "no segment");
    put("0000000000000002.motet", "");
    put("ffffffffffffffff.motet", "x"); /* there is no number behind it */
    put("notes.txt", "mine");
    put("1.motet", "mine");
    mt_disk *disk = open_again(open_disk(MT_LIMIT_DISK_LEAST, MANY), MT_LIMIT_DISK_LEAST);
    keep(disk, 1);
    assert_true(has(disk, 1));
    bytes_of_files(&files);
    assert_int_equal(files, 3);
    mt_disk_close(disk);
}

static void damage(const char *name, off_t at)
{
    char path[128];
    uint8_t byte;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void what_is_broken_is_missed_and_forgotten(void **state)
{
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        keep(disk, i);
    damage("0000000000000000.motet", 128 + 128 + 5000); /* of the first */
    assert_false(has(disk, 0));
    assert_int_equal(mt_disk_look(disk).broken, 1);
    assert_int_equal(mt_disk_look(disk).records, 2);
    assert_true(has(disk, 1) && has(disk, 2));
    keep(disk, 0); /* and may be kept again */
    assert_true(has(disk, 0));
    damage("0000000000000000.motet", 128); /* the header of the first */
    disk = open_again(disk, MT_LIMIT_DISK_LEAST);
    assert_int_equal(mt_disk_look(disk).lost, mt_segment_room(SIZE));
    mt_disk_close(disk);
}

/* A disk on which nothing more can be written: what is there is read, and nobody notices more than misses. */
static void a_full_disk_ends_writing(void **state)
{
    const struct rlimit none = {.rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY};
    struct rlimit was;
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    (void)state;
    keep(disk, 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &was);
    setrlimit(RLIMIT_FSIZE, &none);
    for (unsigned i = 1; i < 20; i++)
        keep(disk, i);
    setrlimit(RLIMIT_FSIZE, &was);
    assert_true(mt_disk_look(disk).failed);
    assert_true(has(disk, 0) && has(disk, 4) && !has(disk, 5) && !has(disk, 19));
    keep(disk, 5); /* not before the pause is over */
    assert_false(has(disk, 5));
    disk = open_again(disk, MT_LIMIT_DISK_LEAST); /* what was torn is not taken for a record */
    assert_true(has(disk, 4) && !has(disk, 5));
    assert_true(mt_disk_look(disk).lost > 0 && mt_disk_look(disk).lost < mt_segment_room(SIZE));
    keep(disk, 5);
    assert_true(has(disk, 5));
    mt_disk_close(disk);
}

/* Whether number i is kept at a time of the clock's. */
static bool keeps_at(mt_disk *disk, uint64_t ns, unsigned i)
{
    mt_clock_set(ns);
    keep(disk, i);
    return has(disk, i);
}

/* Room comes back: pauses double while there is none, and the first write that succeeds ends them. */
static void a_disk_with_room_again_is_written_again(void **state)
{
    const uint64_t second = UINT64_C(1000000000), begin = mt_clock_ns();
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
    struct rlimit was;
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &was);
    assert_true(keeps_at(disk, begin, 0));
    setrlimit(RLIMIT_FSIZE, &none);
    assert_false(keeps_at(disk, begin, 1));
    assert_true(mt_disk_look(disk).failed && has(disk, 0));
    setrlimit(RLIMIT_FSIZE, &was);
    assert_false(keeps_at(disk, begin + 60 * second - 1, 2));
    setrlimit(RLIMIT_FSIZE, &none);
    assert_false(keeps_at(disk, begin + 60 * second, 3)); /* tried, and twice as long from here */
    setrlimit(RLIMIT_FSIZE, &was);
    assert_false(keeps_at(disk, begin + 180 * second - 1, 4));
    assert_true(mt_disk_look(disk).failed);
    assert_true(keeps_at(disk, begin + 180 * second, 5));
    assert_false(mt_disk_look(disk).failed);
    assert_true(keeps_at(disk, begin + 180 * second, 6));
    mt_clock_set(0);
    disk = open_again(disk, MT_LIMIT_DISK_LEAST);
    assert_true(has(disk, 0) && has(disk, 5) && has(disk, 6) && !has(disk, 1) && mt_disk_look(disk).unusable == 0);
    mt_disk_close(disk);
}

/* A disk that has room for a file's beginning and for no record is not filled with such files, however often it is
   tried; the file that has records stays. */
static void a_full_disk_is_not_filled_with_empty_files(void **state)
{
    const uint64_t hour = UINT64_C(3600000000000), begin = mt_clock_ns();
    const struct rlimit little = {.rlim_cur = SIZE / 2, .rlim_max = RLIM_INFINITY};
    struct rlimit was;
    size_t files;
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &was);
    assert_true(keeps_at(disk, begin, 0));
    const uint64_t bytes = mt_disk_look(disk).bytes;
    setrlimit(RLIMIT_FSIZE, &little);
    for (unsigned i = 1; i < 6; i++)
        assert_false(keeps_at(disk, begin + i * hour, i));
    setrlimit(RLIMIT_FSIZE, &was);
    assert_int_equal(bytes_of_files(&files), bytes);
    assert_int_equal(files, 1);
    assert_int_equal(mt_disk_look(disk).bytes, bytes);
    assert_true(has(disk, 0));
    assert_true(keeps_at(disk, begin + 6 * hour, 6));
    assert_true(has(disk, 0));
    mt_clock_set(0);
    mt_disk_close(disk);
}

/* The descriptor of the first file; a test may put another in its place. */
static int descriptor(void)
{
    char path[128];
    struct stat want, info;
    snprintf(path, sizeof(path), "%s/%016x.motet", folder, 0);
    assert_int_equal(stat(path, &want), 0);
    for (int fd = 3; fd < 1024; fd++)
        if (fstat(fd, &info) == 0 && info.st_dev == want.st_dev && info.st_ino == want.st_ino)
            return fd;
    fail_msg("the file is not open");
    return -1;
}

static void keep_small(mt_disk *disk, unsigned number)
{
    uint8_t key[MT_TIER_KEY], small[16] = {0};
    key_of(number, key);
    mt_disk_write(disk, key, 1, &(mt_tier_part){small, sizeof(small)}, 1);
}

/* How many of `count` records from `first` on can be read. */
static unsigned read_small(mt_disk *disk, unsigned first, unsigned count)
{
    uint8_t key[MT_TIER_KEY], small[16];
    unsigned read = 0;
    for (unsigned i = 0; i < count; i++) {
        key_of(first + i, key);
        read += mt_disk_read(disk, key, 1, &(mt_tier_part){small, sizeof(small)}, 1);
    }
    return read;
}

/* A disk that cannot be read sixteen times in a row is not written any more; one time that it can is enough to begin
   anew. */
static void a_disk_that_cannot_be_read_is_given_up(void **state)
{
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    (void)state;
    for (unsigned i = 0; i < 40; i++)
        keep_small(disk, i);
    const int fd = descriptor(), good = dup(fd), bad = open("/dev/null", O_WRONLY);
    assert_true(dup2(bad, fd) == fd);
    assert_int_equal(read_small(disk, 0, 15), 0);
    assert_false(mt_disk_look(disk).failed);
    assert_true(dup2(good, fd) == fd);
    assert_int_equal(read_small(disk, 15, 1), 1);
    assert_true(dup2(bad, fd) == fd);
    assert_int_equal(read_small(disk, 16, 15), 0);
    assert_false(mt_disk_look(disk).failed);
    assert_int_equal(read_small(disk, 31, 1), 0);
    assert_true(mt_disk_look(disk).failed);
    assert_true(dup2(good, fd) == fd);
    close(good);
    close(bad);
    keep_small(disk, 50);
    assert_false(is_there(disk, 50));
    assert_int_equal(read_small(disk, 32, 8), 8); /* what is there is read */
    assert_int_equal(mt_disk_look(disk).broken, 31);
    assert_int_equal(mt_disk_look(disk).records, 9); /* and what could not be read is forgotten */
    mt_disk_close(disk);
}

/* Who is restarted often leaves many small files. */
static void files_are_not_more_than_can_be_open(void **state)
{
    uint8_t key[MT_TIER_KEY];
    char text[] = "small";
    size_t files;
    (void)state;
    for (unsigned i = 0; i < MT_LIMIT_DISK_FILES + 20; i++) {
        mt_disk *disk = open_again(open_disk(MT_LIMIT_DISK_LEAST, MANY), MT_LIMIT_DISK_LEAST);
        key_of(i, key);
        mt_disk_write(disk, key, 1, &(mt_tier_part){text, sizeof(text)}, 1);
        assert_true(mt_disk_has(disk, key));
        mt_disk_close(disk);
    }
    bytes_of_files(&files);
    assert_int_equal(files, MT_LIMIT_DISK_FILES);
}

/* Those above it, too. */
static void the_folder_is_made(void **state)
{
    char path[400];
    mt_error err = {0};
    (void)state;
    snprintf(path, sizeof(path), "%s/a/b/c", folder);
    const mt_disk_params params = {.folder = path, .bytes = MT_LIMIT_DISK_LEAST, .entries = 1};
    for (int again = 0; again < 2; again++) {
        mt_disk *disk = mt_disk_open(&params, &err);
        assert_string_equal(err.text, "");
        mt_disk_close(disk);
    }
}

/* Files that there are no descriptors for stay, and count. The newest are read. */
static void files_that_cannot_be_opened_stay(void **state)
{
    enum { FILES = 60 };
    struct rlimit was, few;
    size_t files;
    (void)state;
    for (unsigned i = 0; i < FILES; i++) {
        mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
        keep(disk, i);
        mt_disk_close(disk);
    }
    const uint64_t bytes = bytes_of_files(&files);
    assert_int_equal(files, FILES);
    getrlimit(RLIMIT_NOFILE, &was);
    few = (struct rlimit){.rlim_cur = 40, .rlim_max = was.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    mt_disk *disk = open_again(open_disk(MT_LIMIT_DISK_LEAST, MANY), MT_LIMIT_DISK_LEAST);
    assert_int_equal(mt_disk_look(disk).bytes, bytes);
    assert_int_equal(mt_disk_look(disk).records, 10);
    assert_true(has(disk, FILES - 1) && has(disk, FILES - 10) && !has(disk, FILES - 11));
    setrlimit(RLIMIT_NOFILE, &was);
    assert_int_equal(bytes_of_files(&files), bytes);
    for (unsigned i = 0; i < 400; i++) { /* those that are not open make way like others */
        keep(disk, 1000 + i);
        assert_true(mt_disk_look(disk).bytes <= MT_LIMIT_DISK_LEAST);
    }
    assert_int_equal(bytes_of_files(&files), mt_disk_look(disk).bytes);
    mt_disk_close(disk);
}

static void a_folder_that_cannot_be_used_is_told(void **state)
{
    mt_error err = {0};
    char path[128];
    (void)state;
    put("a", "no folder");
    snprintf(path, sizeof(path), "%s/a/b", folder);
    assert_null(mt_disk_open(&(mt_disk_params){.folder = path, .bytes = MT_LIMIT_DISK_LEAST, .entries = 1}, &err));
    assert_int_equal(err.code, MT_E_IO);
    assert_non_null(strstr(err.text, strerror(ENOTDIR)));
    assert_null(mt_disk_open(&(mt_disk_params){.folder = folder, .bytes = 1, .entries = 1}, &err));
    assert_int_equal(err.code, MT_E_INVALID);
}

/* ---- together ---- */

enum { THREADS = 4, EACH = 150 };

typedef struct worker {
    mt_disk *disk;
    pthread_t thread;
    unsigned first;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    for (unsigned i = 0; i < EACH; i++) {
        keep(w->disk, w->first + i);
        has(w->disk, w->first + i / 2);
        has(w->disk, (w->first + i * 7) % (THREADS * EACH)); /* another's, which may be there or not */
    }
    return NULL;
}

static void *scan(void *arg)
{
    mt_disk_scan(arg, NULL);
    return NULL;
}

static void threads_share_it(void **state)
{
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    worker all[THREADS];
    pthread_t scanner;
    (void)state;
    for (unsigned i = 0; i < 200; i++)
        keep(disk, THREADS * EACH + i);
    mt_disk_close(disk);
    disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    pthread_create(&scanner, NULL, scan, disk);
    for (unsigned i = 0; i < THREADS; i++) {
        all[i] = (worker){.disk = disk, .first = i * EACH};
        pthread_create(&all[i].thread, NULL, work, &all[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(all[i].thread, NULL);
    pthread_join(scanner, NULL);
    const mt_disk_stats stats = mt_disk_look(disk);
    assert_true(stats.scanned && !stats.failed && stats.broken == 0 && stats.bytes <= MT_LIMIT_DISK_LEAST);
    mt_disk_close(disk);
}

/* ---- killed ---- */

static void write_for_ever(void)
{
    mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
    mt_disk_scan(disk, NULL);
    for (unsigned i = 0;; i++)
        keep(disk, (unsigned)getpid() % 100 * 100 + i % 500);
}

static void who_is_killed_leaves_no_wrong_record(void **state)
{
    const int rounds = unit_quick() ? 5 : 40;
    (void)state;
    if (unit_races())
        UNIT_SKIP("there is one thread");
    for (int i = 0; i < rounds; i++) {
        fflush(NULL);
        const pid_t pid = fork();
        if (pid == 0)
            write_for_ever();
        usleep((useconds_t)(1000 + i * 700));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        mt_disk *disk = open_disk(MT_LIMIT_DISK_LEAST, MANY);
        mt_disk_scan(disk, NULL);
        for (unsigned k = 0; k < 10500; k += 50)
            has(disk, k); /* which looks whether it is right */
        assert_int_equal(mt_disk_look(disk).broken, 0);
        mt_disk_close(disk);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
static const struct CMUnitTest tests[] = {TEST(it_is_there_after_a_restart),
                                          TEST(it_is_emptied),
                                          TEST(files_stay_within_their_bound),
                                          TEST(a_record_is_moved_as_often_as_it_was_read),
                                          TEST(the_most_read_half_is_moved),
                                          TEST(half_a_file_is_moved_at_most),
                                          TEST(a_full_disk_is_not_filled_with_empty_files),
                                          TEST(the_index_has_a_bound),
                                          TEST(a_disk_that_cannot_be_read_is_given_up),
                                          TEST(one_process_has_it),
                                          TEST(what_is_not_ours_goes_or_stays),
                                          TEST(what_is_broken_is_missed_and_forgotten),
                                          TEST(files_are_not_more_than_can_be_open),
                                          TEST(the_folder_is_made),
                                          TEST(files_that_cannot_be_opened_stay),
                                          TEST(a_full_disk_ends_writing),
                                          TEST(a_disk_with_room_again_is_written_again),
                                          TEST(a_folder_that_cannot_be_used_is_told),
                                          TEST(threads_share_it),
                                          TEST(who_is_killed_leaves_no_wrong_record)};
UNIT_MAIN(tests)
