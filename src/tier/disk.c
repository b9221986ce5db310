/* The disk tier (disk.h).

   1. Records are appended to one file, the newest; when it is full another is begun, and each process begins its own. A
      file that is not the newest is never written.
   2. The index is in memory and built from the files: it only says where a record may be. The record's own header and
      checksum decide when it is read.
   3. Where there is no room, or there are too many files, the oldest file is removed. Those of its records that were
      read most are moved, that is appended again: at most half of the file, so that each removal makes room. Each move
      takes one from the times that a record was read, of which USES_MOST count: what is not read any more goes in the
      end.
   4. A file that is being read stays open until the reader is done, even after it was removed.
   5. A write that fails ends writing, and so do FAILURES_MOST reads in a row that fail: a full, slow or failing disk
      costs cache hits and nothing else. It is tried again with a new file after PAUSE_NS, then after twice as long, and
      so on up to PAUSE_MOST_NS. Nothing is appended to a file behind a failed write.

   Rejected: a database. It would sync in an order that nothing here needs, and repair unfinished writes before it opens
   after the process was killed. */
#include "tier/disk.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "tier/limits.h"

#define NAME "%016" PRIx64 ".motet"
/* files that the limit is divided into; a record's uses are counted up to USES_MOST; failed reads in a row after which
   the disk counts as failed */
enum { NAME_LENGTH = 22, SEGMENTS_WANTED = 16, USES_MOST = 3, FAILURES_MOST = 16 };

#define PAUSE_NS (60 * UINT64_C(1000000000))
#define PAUSE_MOST_NS (60 * PAUSE_NS)

/* A file of records that is open. */
typedef struct file {
    mt_segment segment;
    size_t readers; /* threads that read it now */
    size_t entries; /* in the index */
    bool scanned;   /* its records are in the index, unless a newer file has the same key */
    bool gone;      /* removed from the folder */
} file;

/* Where a record is. Half of the key is enough to find it; the record has the whole key. */
typedef struct entry {
    uint64_t key[2];
    file *file; /* NULL: the entry is free */
    /* at: offset in the file; uses: how often it was read, at most USES_MOST */
    uint64_t at : 56, uses : 8;
} entry;

struct mt_disk {
    int folder, lock_file;
    uint64_t limit, segment_bytes;
    pthread_mutex_t writing; /* one thread at a time appends, makes room or scans a file; locked before `lock` */
    pthread_mutex_t lock;    /* protects the fields below; never held while the disk is waited for */
    file **files;            /* the oldest first; where `open`, the last is being written */
    size_t file_count, file_cap;
    bool open;
    uint64_t next_number;
    /* the index: open addressing, without gaps between an entry and its home */
    entry *table;
    size_t slots, known, most; /* slots: size of the table, a power of two; known: entries in use; most: their limit */
    size_t failures;           /* failed reads in a row */
    uint64_t pause, retry;     /* where it has failed: the present pause, and when it ends (mt_clock_ns) */
    mt_disk_stats stats;
    pthread_mutex_t watching; /* protects the watchers, and is held while they are called; `lock` is not held then */
    struct {
        mt_disk_listener *tell;
        void *ctx;
    } watcher[MT_DISK_WATCHERS];
    size_t watchers;
};

/* ---- listeners ---- */

void mt_disk_watch(mt_disk *d, mt_disk_listener *tell, void *ctx)
{
    pthread_mutex_lock(&d->watching);
    if (d->watchers < MT_DISK_WATCHERS) {
        d->watcher[d->watchers].tell = tell;
        d->watcher[d->watchers++].ctx = ctx;
    }
    pthread_mutex_unlock(&d->watching);
}

void mt_disk_unwatch(mt_disk *d, void *ctx)
{
    pthread_mutex_lock(&d->watching);
    for (size_t i = 0; i < d->watchers; i++)
        if (d->watcher[i].ctx == ctx)
            d->watcher[i--] = d->watcher[--d->watchers];
    pthread_mutex_unlock(&d->watching);
}

static void tell_gone(mt_disk *d, const uint8_t key[MT_TIER_KEY], uint32_t kind)
{
    pthread_mutex_lock(&d->watching);
    for (size_t i = 0; i < d->watchers; i++)
        d->watcher[i].tell(d->watcher[i].ctx, key, kind);
    pthread_mutex_unlock(&d->watching);
}

/* ---- the index: open addressing, no gaps on the way to an entry ---- */

static void half(const uint8_t key[MT_TIER_KEY], uint64_t out[2])
{
    memcpy(out, key, 2 * sizeof(*out));
}

static size_t home(const mt_disk *d, const uint64_t key[2])
{
    return (size_t)(key[0] ^ key[1]) & (d->slots - 1);
}

/* The entry of a key, or the free entry where it would be added. */
static entry *find(const mt_disk *d, const uint8_t key[MT_TIER_KEY])
{
    uint64_t k[2];
    half(key, k);
    size_t i = home(d, k);
    while (d->table[i].file && (d->table[i].key[0] != k[0] || d->table[i].key[1] != k[1]))
        i = (i + 1) & (d->slots - 1);
    return &d->table[i];
}

/* Closes a removed file that has no reader, and frees it where the index has no entry of it. */
static void free_unused(file *f)
{
    if (!f->gone || f->readers > 0)
        return;
    mt_segment_close(&f->segment);
    if (f->entries == 0)
        mt_free(f);
}

static void put(mt_disk *d, const uint8_t key[MT_TIER_KEY], file *f, uint64_t at, unsigned uses)
{
    entry *e = find(d, key);
    d->known += !e->file;
    f->entries++;
    if (e->file) {
        e->file->entries--;
        free_unused(e->file);
    }
    *e = (entry){.file = f, .at = at & (UINT64_MAX >> 8), .uses = uses & 255};
    half(key, e->key);
}

/* Removes an entry; moves entries behind the gap up where that brings them nearer to their home. */
static void drop(mt_disk *d, entry *e)
{
    size_t gap = (size_t)(e - d->table);
    e->file->entries--;
    free_unused(e->file);
    for (size_t i = (gap + 1) & (d->slots - 1); d->table[i].file; i = (i + 1) & (d->slots - 1)) {
        const size_t from_home = (i - home(d, d->table[i].key)) & (d->slots - 1);
        if (from_home >= ((i - gap) & (d->slots - 1))) {
            d->table[gap] = d->table[i];
            gap = i;
        }
    }
    d->table[gap] = (entry){0};
    d->known--;
}

/* ---- files ---- */

static void name_of(uint64_t number, char name[NAME_LENGTH + 1])
{
    snprintf(name, NAME_LENGTH + 1, NAME, number);
}

static file *add_file(mt_disk *d, const mt_segment *segment)
{
    file *f = mt_alloc(sizeof(*f));
    f->segment = *segment;
    d->files = mt_grow(d->files, &d->file_cap, d->file_count + 1, sizeof(file *));
    d->files[d->file_count++] = f;
    d->stats.bytes += segment->end;
    return f;
}

static void fail(mt_disk *d, const char *why)
{
    pthread_mutex_lock(&d->lock);
    const bool first = !d->stats.failed;
    d->pause = first ? PAUSE_NS : MT_MIN(2 * d->pause, PAUSE_MOST_NS);
    d->retry = mt_clock_ns() + d->pause;
    d->stats.failed = true;
    pthread_mutex_unlock(&d->lock);
    if (first)
        mt_log_warn("cache.disk", "nothing more is kept on disk until that works again: %s", why);
}

/* After a failed write; call with `writing` locked. */
static void fail_writing(mt_disk *d, const char *why)
{
    pthread_mutex_lock(&d->lock);
    d->open = false;
    pthread_mutex_unlock(&d->lock);
    fail(d, why);
}

/* Whether a write is to be tried: none has failed, or the pause is over. */
static bool takes(mt_disk *d)
{
    pthread_mutex_lock(&d->lock);
    const bool yes = !d->stats.failed || mt_clock_ns() >= d->retry;
    pthread_mutex_unlock(&d->lock);
    return yes;
}

/* After a successful write. */
static void recover(mt_disk *d)
{
    pthread_mutex_lock(&d->lock);
    const bool again = d->stats.failed;
    d->stats.failed = false;
    d->failures = again ? 0 : d->failures;
    d->stats.written++;
    pthread_mutex_unlock(&d->lock);
    if (again)
        mt_log_info("cache.disk", "the disk takes what is computed again");
}

/* Begins a file to write to; call with `writing` locked. */
static bool begin_file(mt_disk *d)
{
    char name[NAME_LENGTH + 1];
    mt_segment segment;
    mt_error err = {0};
    name_of(d->next_number, name);
    if (!mt_segment_create(&segment, d->folder, name, d->next_number, &err)) {
        fail_writing(d, err.text);
        return false;
    }
    pthread_mutex_lock(&d->lock);
    d->next_number++;
    d->open = true;
    add_file(d, &segment)->scanned = true;
    pthread_mutex_unlock(&d->lock);
    return true;
}

/* Removes the newest file where it has no record: a full disk would fill the folder with such. Call with `writing`
   locked. */
static void drop_unused(mt_disk *d)
{
    char name[NAME_LENGTH + 1];
    file *f = d->files[d->file_count - 1];
    if (f->segment.end > mt_segment_begin())
        return;
    name_of(f->segment.number, name);
    unlinkat(d->folder, name, 0);
    pthread_mutex_lock(&d->lock);
    d->stats.bytes -= f->segment.end;
    d->file_count--;
    f->gone = true;
    free_unused(f);
    pthread_mutex_unlock(&d->lock);
}

/* Appends a record to the newest file; call with `writing` locked. */
static bool append(mt_disk *d, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[], size_t parts,
                   unsigned uses)
{
    uint64_t at = 0;
    mt_error err = {0};
    if (!d->open)
        return false;
    file *f = d->files[d->file_count - 1];
    mt_segment segment = f->segment; /* a copy: readers use the other one meanwhile */
    if (!mt_segment_append(&segment, key, kind, part, parts, &at, &err)) {
        fail_writing(d, err.text);
        drop_unused(d);
        return false;
    }
    pthread_mutex_lock(&d->lock);
    d->stats.bytes += segment.end - f->segment.end;
    f->segment.end = segment.end;
    put(d, key, f, at, uses);
    pthread_mutex_unlock(&d->lock);
    return true;
}

/* Copies a record of the oldest file to the newest; call with `writing` locked. */
static bool move(mt_disk *d, file *from, const mt_record *r, unsigned uses)
{
    mt_tier_part part[MT_TIER_PARTS];
    uint64_t size = 0;
    for (size_t i = 0; i < r->parts; i++)
        size += r->size[i];
    uint8_t *data = mt_alloc((size_t)size + 1);
    for (size_t i = 0, at = 0; i < r->parts; at += r->size[i++])
        part[i] = (mt_tier_part){.data = data + at, .size = (size_t)r->size[i]};
    const bool ok = mt_segment_read(&from->segment, r->at, r->key, r->kind, part, r->parts) == MT_SEGMENT_READ &&
                    append(d, r->key, r->kind, part, r->parts, uses);
    mt_free(data);
    pthread_mutex_lock(&d->lock);
    d->stats.moved += ok;
    pthread_mutex_unlock(&d->lock);
    return ok;
}

/* How often a record of file f was read; -1 where the index has no entry of it, or one in another file. */
static int uses_of(mt_disk *d, const file *f, const mt_record *r)
{
    pthread_mutex_lock(&d->lock);
    const entry *e = find(d, r->key);
    const int uses = e->file == f && e->at == r->at ? (int)e->uses : -1;
    pthread_mutex_unlock(&d->lock);
    return uses;
}

/* The least number of uses such that all records with so many uses are at most half of the file; USES_MOST where those
   are more, too: then the first of them are moved. */
static int least_uses(mt_disk *d, const file *f)
{
    uint64_t bytes[USES_MOST + 1] = {0};
    mt_record r;
    for (uint64_t at = 0; mt_segment_next(&f->segment, &at, &r);) {
        const int uses = uses_of(d, f, &r);
        for (int i = 1; i <= uses; i++)
            bytes[i] += r.bytes;
    }
    int least = 1;
    while (least < USES_MOST && bytes[least] > f->segment.end / 2)
        least++;
    return least;
}

/* Moves the records of f that were read most, and removes all its records from the index; call with `writing`
   locked. */
static void empty(mt_disk *d, file *f, bool moves)
{
    const int least = moves ? least_uses(d, f) : USES_MOST + 1;
    uint64_t moved = 0;
    mt_record r;
    for (uint64_t at = 0; mt_segment_next(&f->segment, &at, &r);) {
        const int uses = uses_of(d, f, &r);
        if (uses >= least && moved + r.bytes <= f->segment.end / 2 && move(d, f, &r, (unsigned)uses - 1))
            moved += r.bytes;
        pthread_mutex_lock(&d->lock);
        entry *e = find(d, r.key);
        const bool known = e->file == f;
        if (known)
            drop(d, e);
        pthread_mutex_unlock(&d->lock);
        if (known)
            tell_gone(d, r.key, r.kind);
    }
}

/* Removes the oldest file; call with `writing` locked. */
static void drop_oldest(mt_disk *d, bool moves)
{
    char name[NAME_LENGTH + 1];
    file *f = d->files[0];
    name_of(f->segment.number, name);
    empty(d, f, moves);
    unlinkat(d->folder, name, 0);
    pthread_mutex_lock(&d->lock);
    d->stats.bytes -= f->segment.end;
    d->stats.dropped++;
    memmove(d->files, d->files + 1, --d->file_count * sizeof(file *));
    f->gone = true;
    free_unused(f);
    pthread_mutex_unlock(&d->lock);
}

static bool is_crowded(mt_disk *d)
{
    pthread_mutex_lock(&d->lock);
    const bool crowded = d->known >= d->most;
    pthread_mutex_unlock(&d->lock);
    return crowded;
}

/* Writes a file's data to the medium; on macOS, where fsync leaves it in the drive's memory. */
static int write_through(int fd)
{
#ifdef __APPLE__
    return fcntl(fd, F_FULLFSYNC) == -1 ? -1 : 0;
#else
    return fdatasync(fd);
#endif
}

/* Makes room for `bytes` to be appended and for half a file that may have to be moved; call with `writing` locked. */
static bool make_room(mt_disk *d, uint64_t bytes)
{
    const bool crowded = is_crowded(d);
    file *newest = d->open ? d->files[d->file_count - 1] : NULL;
    if (!newest || crowded || newest->segment.end + bytes > d->segment_bytes) {
        if (newest && write_through(newest->segment.fd)) { /* so that a power failure loses at most one file */
            fail_writing(d, strerror(errno));
            return false;
        }
        if (!begin_file(d))
            return false;
    }
    while (d->file_count > 1 && (mt_disk_look(d).bytes + bytes + d->segment_bytes / 2 > d->limit || is_crowded(d) ||
                                 d->file_count > MT_LIMIT_DISK_FILES))
        drop_oldest(d, !crowded);
    return d->open;
}

/* Removes the oldest file where its number is below `end`. */
static bool clear_one(mt_disk *d, uint64_t end)
{
    bool old;

    pthread_mutex_lock(&d->writing);
    old = d->file_count > 0 && d->files[0]->segment.number < end;
    if (old)
        drop_oldest(d, false);
    pthread_mutex_unlock(&d->writing);
    return old;
}

/* Between two files the lock is free: threads that write wait for one file to be removed, not for all. */
void mt_disk_clear(mt_disk *d)
{
    uint64_t end;

    pthread_mutex_lock(&d->writing);
    pthread_mutex_lock(&d->lock);
    d->open = false; /* what is written from here on goes to a new file, which stays */
    end = d->next_number;
    pthread_mutex_unlock(&d->lock);
    pthread_mutex_unlock(&d->writing);
    while (clear_one(d, end)) {}
}

void mt_disk_write(mt_disk *d, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[], size_t parts)
{
    uint64_t size = 0;
    for (size_t i = 0; i < parts; i++)
        size += part[i].size;
    if (mt_segment_room(size) > d->segment_bytes / 2)
        return;
    pthread_mutex_lock(&d->writing);
    if (takes(d) && !mt_disk_has(d, key) && make_room(d, mt_segment_room(size)) && append(d, key, kind, part, parts, 0))
        recover(d);
    pthread_mutex_unlock(&d->writing);
}

bool mt_disk_has(mt_disk *d, const uint8_t key[MT_TIER_KEY])
{
    pthread_mutex_lock(&d->lock);
    const entry *e = find(d, key);
    const bool there = e->file && !e->file->gone;
    pthread_mutex_unlock(&d->lock);
    return there;
}

/* Counts what came of reading a record, and removes a broken one from the index; call with the lock held. */
static void note(mt_disk *d, const uint8_t key[MT_TIER_KEY], file *f, uint64_t at, mt_segment_result result)
{
    entry *e = find(d, key);
    const bool same = e->file == f && e->at == at;
    d->failures = result == MT_SEGMENT_FAILED ? d->failures + 1 : 0;
    if (same && result == MT_SEGMENT_READ && e->uses < USES_MOST)
        e->uses++;
    if (same && (result == MT_SEGMENT_BROKEN || result == MT_SEGMENT_FAILED))
        drop(d, e);
    d->stats.broken += result == MT_SEGMENT_BROKEN || result == MT_SEGMENT_FAILED;
    d->stats.read += result == MT_SEGMENT_READ;
    d->stats.missed += result != MT_SEGMENT_READ;
    f->readers--;
    free_unused(f);
}

bool mt_disk_read(mt_disk *d, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[], size_t parts)
{
    pthread_mutex_lock(&d->lock);
    entry *e = find(d, key);
    const bool lost = e->file && e->file->gone;
    if (lost) { /* the file was removed while the record's header could not be read */
        drop(d, e);
        e = find(d, key);
    }
    file *f = e->file;
    const uint64_t at = e->at;
    if (f)
        f->readers++;
    else
        d->stats.missed++;
    const mt_segment segment = f ? f->segment : (mt_segment){0}; /* a copy: the newest file grows while it is read */
    pthread_mutex_unlock(&d->lock);
    if (lost)
        tell_gone(d, key, kind);
    if (!f)
        return false;
    const mt_segment_result result = mt_segment_read(&segment, at, key, kind, part, parts);
    pthread_mutex_lock(&d->lock);
    note(d, key, f, at, result);
    const bool failing = d->failures >= FAILURES_MOST;
    pthread_mutex_unlock(&d->lock);
    if (result == MT_SEGMENT_BROKEN || result == MT_SEGMENT_FAILED)
        tell_gone(d, key, kind);
    if (failing)
        fail(d, "reading fails again and again");
    return result == MT_SEGMENT_READ;
}

/* ---- the start ---- */

/* Adds the records of a file to the index, unless a newer one has their key; call with `writing` locked. */
static void scan_file(mt_disk *d, file *f)
{
    mt_record r;
    uint64_t whole = mt_segment_begin();
    for (uint64_t at = 0; mt_segment_next(&f->segment, &at, &r);) {
        pthread_mutex_lock(&d->lock);
        if (d->known < d->most && !find(d, r.key)->file)
            put(d, r.key, f, r.at, 0);
        pthread_mutex_unlock(&d->lock);
        whole += r.bytes;
    }
    f->scanned = true;
    pthread_mutex_lock(&d->lock);
    d->stats.lost += f->segment.end > whole ? f->segment.end - whole : 0;
    pthread_mutex_unlock(&d->lock);
}

static file *newest_unknown(const mt_disk *d)
{
    for (size_t i = d->file_count; i-- > 0;)
        if (!d->files[i]->scanned)
            return d->files[i];
    return NULL;
}

void mt_disk_scan(mt_disk *d, const atomic_bool *stop)
{
    bool more = true;
    /* relaxed: it is enough to see it some time */
    while (more && !(stop && atomic_load_explicit(stop, memory_order_relaxed))) {
        pthread_mutex_lock(&d->writing);
        file *f = newest_unknown(d);
        if (f)
            scan_file(d, f);
        more = f;
        pthread_mutex_unlock(&d->writing);
    }
    pthread_mutex_lock(&d->lock);
    d->stats.scanned = !more;
    pthread_mutex_unlock(&d->lock);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = (*(file *const *)a)->segment.number, y = (*(file *const *)b)->segment.number;
    return (x > y) - (x < y);
}

static bool is_name(const char *name, uint64_t *number)
{
    char again[NAME_LENGTH + 1];
    if (sscanf(name, "%16" SCNx64, number) != 1)
        return false;
    name_of(*number, again);
    return strcmp(name, again) == 0;
}

/* Adds a file of an earlier process, and returns whether it is open. Deletes a file that has such a name and is no
   segment of this version. One that cannot be opened, or must not be (opens), is counted until it is the oldest, while
   its records are not known. */
static bool add_earlier_file(mt_disk *d, uint64_t number, bool opens)
{
    char name[NAME_LENGTH + 1];
    mt_segment segment;
    struct stat info;
    mt_error err = {0};
    name_of(number, name);
    const bool open = opens && mt_segment_open(&segment, d->folder, name, &err);
    if (open && segment.number == number) {
        add_file(d, &segment);
        return true;
    }
    if (open)
        mt_segment_close(&segment);
    else if (err.code != MT_E_INVALID && fstatat(d->folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        segment = (mt_segment){.fd = -1, .number = number, .end = (uint64_t)info.st_size};
        add_file(d, &segment)->scanned = true;
        return false;
    }
    unlinkat(d->folder, name, 0);
    d->stats.unusable++;
    return false;
}

/* How many files of earlier processes are opened: a part of the descriptors, of which connections need some, too. */
static size_t files_to_open(void)
{
    struct rlimit files;
    const bool few = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < MT_LIMIT_DISK_FILES;
    return few ? (size_t)files.rlim_cur / 4 : MT_LIMIT_DISK_FILES;
}

static int newest_first(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Adds the files of earlier processes. */
static void add_earlier_files(mt_disk *d, uint64_t *number, size_t count)
{
    const size_t most = files_to_open();
    size_t open = 0;
    if (count == 0)
        return;
    qsort(number, count, sizeof(*number), newest_first);
    d->next_number = number[0] + 1;
    for (size_t i = 0; i < count; i++)
        open += add_earlier_file(d, number[i], open < most);
    if (d->file_count > 0)
        qsort(d->files, d->file_count, sizeof(file *), by_number);
    if (open < d->file_count)
        mt_log_warn("cache.disk",
                    "%zu of %zu files are not opened: raise the limit of open files (ulimit -n), or check "
                    "whose they are",
                    d->file_count - open, d->file_count);
}

/* Finds the files of earlier processes. */
static bool list_files(mt_disk *d, mt_error *err)
{
    const int again = openat(d->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    uint64_t *numbers = NULL, number;
    size_t count = 0, cap = 0;
    if (!list) {
        if (again >= 0)
            close(again);
        return mt_fail(err, MT_E_IO, "the folder of the cache cannot be read: %s", strerror(errno));
    }
    for (struct dirent *each; (each = readdir(list));)
        if (is_name(each->d_name, &number) && number < UINT64_MAX) {
            numbers = mt_grow(numbers, &cap, count + 1, sizeof(number));
            numbers[count++] = number;
        }
    closedir(list);
    add_earlier_files(d, numbers, count);
    mt_free(numbers);
    return true;
}

static bool open_folder(mt_disk *d, const char *folder, mt_error *err)
{
    if (!mt_file_make_folder(folder))
        return mt_fail(err, MT_E_IO, "\"%.200s\" cannot be made: %s", folder, strerror(errno));
    d->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->folder >= 0)
        d->lock_file = openat(d->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (d->folder < 0 || d->lock_file < 0)
        return mt_fail(err, MT_E_IO, "\"%.200s\" cannot be used: %s", folder, strerror(errno));
    if (flock(d->lock_file, LOCK_EX | LOCK_NB))
        return mt_fail(err, MT_E_BUSY, "\"%.200s\" is in use by another process", folder);
    return true;
}

mt_disk *mt_disk_open(const mt_disk_params *params, mt_error *err)
{
    mt_disk *d = mt_alloc(sizeof(*d));
    d->folder = d->lock_file = -1;
    pthread_mutex_init(&d->writing, NULL);
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->watching, NULL);
    if (params->bytes < MT_LIMIT_DISK_LEAST)
        mt_fail(err, MT_E_INVALID, "a cache on disk takes %d MiB at least", (int)(MT_LIMIT_DISK_LEAST >> 20));
    else if (open_folder(d, params->folder, err) && list_files(d, err)) {
        d->limit = d->stats.limit = params->bytes;
        d->segment_bytes = params->bytes / SEGMENTS_WANTED;
        d->most = params->entries;
        for (d->slots = 64; d->slots < d->most + d->most / 4;)
            d->slots *= 2;
        d->table = mt_alloc_array(d->slots, sizeof(*d->table));
        return d;
    }
    mt_disk_close(d);
    return NULL;
}

void mt_disk_close(mt_disk *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->file_count; i++) {
        assert(d->files[i]->readers == 0);
        d->files[i]->gone = true;
        d->files[i]->entries++; /* keeps free_unused from freeing the file below */
    }
    for (size_t i = 0; i < d->slots; i++)
        while (d->table[i].file)
            drop(d, &d->table[i]);
    for (size_t i = 0; i < d->file_count; i++) {
        d->files[i]->entries--;
        free_unused(d->files[i]);
    }
    if (d->folder >= 0)
        close(d->folder);
    if (d->lock_file >= 0)
        close(d->lock_file); /* closing releases the lock */
    mt_free(d->files);
    mt_free(d->table);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->watching);
    pthread_mutex_destroy(&d->writing);
    mt_free(d);
}

mt_disk_stats mt_disk_look(mt_disk *d)
{
    pthread_mutex_lock(&d->lock);
    d->stats.records = d->known;
    const mt_disk_stats stats = d->stats;
    pthread_mutex_unlock(&d->lock);
    return stats;
}
