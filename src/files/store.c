/* A file of the folder for each file of a client, and an index of them in memory. Invariants:

   1. A file begins with a head of HEAD bytes: a line with a checksum, then what is known of the file as JSON. It is
      written to a name that ends with ".part", and gets its own name, its id, when all of it is on disk. So a file with
      such a name is whole, and what ends with ".part" when the store is opened was never finished.
   2. The process has the folder to itself, by a lock that the kernel releases when the process ends.
   3. The index is made from the heads when the store is opened. A file that is not as its head says is left alone,
      with a warning, and is not in the index.
   4. `held` counts the bytes of files and of parts, before they are written; what is removed counts until it is. So the
      folder never has more than the limit.
   5. A file has one owner, and only for that owner is it there. An owner with an account may have three times what it
      leaves free, in bytes and in number: no account can fill the store alone. Nothing is removed to make room for
      others.
   6. The lock is never held while the disk is waited for.

   Rejected: a database beside the files, which would have to be kept in step with the folder through crashes. */
#include "files/store.h"

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
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "base/log.h"

#define PREFIX "file-"
#define PART ".part"
#define LOCK "lock"
#define MAGIC "motet file 1 "

/* HEAD: bytes of a file's head; DIGITS: of its checksum; RANDOM: letters of an id behind the prefix */
enum { HEAD = 4096, DIGITS = 8, RANDOM = 24, SWEEP_MS = 30000, SHARE = 3 };

#define SPARE (64u << 20)   /* bytes that uploads leave free on the disk */
#define CHECKED (64u << 20) /* bytes of an upload between two looks at what is free */
#define NS UINT64_C(1000000000)

/* What an owner has. In a list while that is anything. */
typedef struct holder {
    struct holder *next;
    size_t count;
    uint64_t bytes;
    char name[MT_FILES_OWNER];
} holder;

typedef struct entry {
    mt_files_about about;
    uint64_t at; /* when it was made: nanoseconds since 1970, no two of them alike */
    holder *owner;
} entry;

struct mt_files {
    int folder, lock_file;
    mt_files_limits limits;
    pthread_mutex_t lock; /* of the fields below */
    entry **at;           /* the oldest first */
    size_t count, cap;
    size_t parts;  /* that are being uploaded */
    uint64_t held; /* bytes of files and parts */
    uint64_t last; /* `at` of the newest */
    holder *holders;
    mt_files_stats stats; /* of it, the counters alone */
    bool closing, sweeps; /* sweeps: there is a thread */
    pthread_cond_t close;
    pthread_t sweeper;
};

struct mt_files_part {
    mt_files *files;
    holder *owner;
    EVP_MD_CTX *hash;
    int fd;
    uint64_t len;
    char id[MT_RANDOM_ID], path[MT_RANDOM_ID + sizeof(PART)];
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
}

/* The caller has the lock. */
static holder *holder_of(mt_files *f, const char *name)
{
    holder *h = f->holders;

    while (h && strcmp(h->name, name) != 0)
        h = h->next;
    if (!h) {
        h = mt_alloc(sizeof(*h));
        *h = (holder){.next = f->holders};
        snprintf(h->name, sizeof(h->name), "%s", name);
        f->holders = h;
    }
    return h;
}

/* Takes bytes of a file, or of one that is gone altogether, from what an owner has. The caller has the lock. */
static void let_go(mt_files *f, holder *h, uint64_t bytes, bool gone)
{
    holder **at = &f->holders;

    f->held -= bytes;
    h->bytes -= bytes;
    h->count -= gone;
    if (h->count > 0)
        return;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    mt_free(h);
}

/* Whether an owner may have so many bytes or files more. The caller has the lock. */
static bool may_have(const mt_files *f, const holder *h, uint64_t bytes, size_t files, mt_error *err)
{
    const size_t all = f->count + f->parts;
    const uint64_t left = f->held + bytes <= f->limits.bytes ? f->limits.bytes - f->held - bytes : 0;

    if (f->held + bytes > f->limits.bytes)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "the files that are kept here would have more than %" PRIu64
                       " bytes (--files-bytes): delete some, or let them expire",
                       f->limits.bytes);
    if (all + files > f->limits.files)
        return mt_fail(err, MT_E_TOO_LARGE, "%zu files are kept here already: delete some, or let them expire", all);
    if (!*h->name)
        return true;
    return (h->bytes + bytes <= SHARE * left && h->count + files <= SHARE * (f->limits.files - all - files)) ||
           mt_fail(err, MT_E_TOO_LARGE,
                   "this account would have more than its share of the files that are kept here: delete some, or let "
                   "them expire");
}

/* ---- the head of a file ---- */

static void write_head(char head[HEAD], const mt_files_about *a, uint64_t at, const char *owner)
{
    mt_buf json = {.limit = HEAD - sizeof(MAGIC) - DIGITS - 2};

    mt_json_write(&json,
                  "{'id':%s,'at':%" PRIu64 ",'expires':%" PRId64 ",'bytes':%" PRIu64
                  ",'sha256':%s,'owner':%s,'purpose':%s,'type':%s,'name':%s}",
                  a->id, at, a->expires, a->bytes, a->sha256, owner, a->purpose, a->type, a->name);
    assert(!json.full); /* names have no control characters, so that none of their bytes becomes more than two */
    memset(head, '\n', HEAD);
    snprintf(head, HEAD, MAGIC "%08" PRIx32 "\n%s\n", mt_crc32c(0, json.data, json.len), json.data);
    head[strlen(head)] = '\n';
    mt_buf_free(&json);
}

/* Copies a text of the head. False: there is none, or it is too long. */
static bool copy(char *out, size_t size, const json_t *object, const char *key)
{
    const char *text = mt_json_word(json_object_get(object, key));

    return text && (size_t)snprintf(out, size, "%s", text) < size;
}

static bool read_json(const json_t *object, entry *e, char owner[MT_FILES_OWNER])
{
    mt_files_about *a = &e->about;
    const json_int_t at = json_integer_value(json_object_get(object, "at")),
                     bytes = json_integer_value(json_object_get(object, "bytes"));

    e->at = (uint64_t)at;
    a->created = (int64_t)((uint64_t)at / NS);
    a->bytes = (uint64_t)bytes;
    a->expires = json_integer_value(json_object_get(object, "expires"));
    return at > 0 && bytes >= 0 && a->expires >= 0 && copy(a->id, sizeof(a->id), object, "id") &&
           copy(a->sha256, sizeof(a->sha256), object, "sha256") && copy(owner, MT_FILES_OWNER, object, "owner") &&
           copy(a->purpose, sizeof(a->purpose), object, "purpose") && copy(a->type, sizeof(a->type), object, "type") &&
           copy(a->name, sizeof(a->name), object, "name");
}

static bool read_head(const char head[HEAD], entry *e, char owner[MT_FILES_OWNER])
{
    const size_t begin = sizeof(MAGIC) - 1 + DIGITS + 1;
    const char *json = head + begin, *end = memchr(json, '\n', HEAD - begin);
    char sum[DIGITS + 1];
    json_t *object;
    bool ok;

    if (memcmp(head, MAGIC, sizeof(MAGIC) - 1) != 0 || !end)
        return false;
    snprintf(sum, sizeof(sum), "%08" PRIx32, mt_crc32c(0, json, (size_t)(end - json)));
    if (memcmp(sum, head + sizeof(MAGIC) - 1, DIGITS) != 0)
        return false;
    object = mt_json_tree_try(json, (size_t)(end - json));
    ok = object && read_json(object, e, owner);
    json_decref(object);
    return ok;
}

/* ---- the folder ---- */

/* Whether a name is that of a file of ours, or of a part. */
static bool is_ours(const char *name, bool *part)
{
    const size_t len = sizeof(PREFIX) - 1 + RANDOM;

    *part = strlen(name) > len;
    return strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0 &&
           strspn(name + sizeof(PREFIX) - 1, "0123456789abcdefghijklmnopqrstuv") == RANDOM &&
           (!name[len] || strcmp(name + len, PART) == 0);
}

static bool read_file(const mt_files *f, const char *name, entry *e, char owner[MT_FILES_OWNER])
{
    const int fd = openat(f->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char head[HEAD];
    struct stat st;
    const bool ok = fd >= 0 && pread(fd, head, sizeof(head), 0) == HEAD && read_head(head, e, owner) &&
                    strcmp(e->about.id, name) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                    (uint64_t)st.st_size == HEAD + e->about.bytes;

    if (fd >= 0)
        close(fd);
    return ok;
}

static void append(mt_files *f, entry *e)
{
    f->at = mt_grow(f->at, &f->cap, f->count + 1, sizeof(*f->at));
    f->at[f->count++] = e;
}

/* Puts a file of the folder into the index. */
static void list_file(mt_files *f, const char *name)
{
    entry *e = mt_alloc(sizeof(*e));
    char owner[MT_FILES_OWNER];

    if (!read_file(f, name, e, owner)) {
        mt_log_warn("files.broken", "the file \"%s\" is not as it was written, and is left out: delete it", name);
        mt_free(e);
        return;
    }
    e->owner = holder_of(f, owner);
    e->owner->count++;
    e->owner->bytes += e->about.bytes;
    f->held += e->about.bytes;
    append(f, e);
}

static int by_age(const void *a, const void *b)
{
    const entry *const *x = a, *const *y = b;

    return (*x)->at < (*y)->at ? -1 : (*x)->at > (*y)->at;
}

static bool list_files(mt_files *f, mt_error *err)
{
    const int copy_of = dup(f->folder); /* closedir closes it */
    DIR *dir = copy_of >= 0 ? fdopendir(copy_of) : NULL;
    bool part;

    if (!dir) {
        if (copy_of >= 0)
            close(copy_of);
        return mt_fail(err, MT_E_IO, "the folder of files cannot be read: %s", strerror(errno));
    }
    for (const struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        if (!is_ours(d->d_name, &part))
            continue;
        if (part)
            unlinkat(f->folder, d->d_name, 0);
        else
            list_file(f, d->d_name);
    }
    closedir(dir);
    if (f->count > 0)
        qsort(f->at, f->count, sizeof(*f->at), by_age);
    f->last = f->count > 0 ? f->at[f->count - 1]->at : 0;
    return true;
}

static bool lock(int file, const char *folder, mt_error *err)
{
    return flock(file, LOCK_EX | LOCK_NB) == 0 ||
           mt_fail(err, MT_E_BUSY, "\"%.200s\" is in use by another process", folder);
}

bool mt_files_check(const char *folder, mt_error *err)
{
    const int in = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int file = in >= 0 ? openat(in, LOCK, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
    const bool ok = file < 0 || lock(file, folder, err);

    if (file >= 0)
        close(file);
    if (in >= 0)
        close(in);
    return ok;
}

static bool open_folder(mt_files *f, const char *folder, mt_error *err)
{
    if (!mt_file_make_folder(folder))
        return mt_fail(err, MT_E_IO, "\"%.200s\" cannot be made: %s", folder, strerror(errno));
    f->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->folder >= 0)
        f->lock_file = openat(f->folder, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->folder < 0 || f->lock_file < 0)
        return mt_fail(err, MT_E_IO, "\"%.200s\" cannot be used: %s", folder, strerror(errno));
    return lock(f->lock_file, folder, err);
}

/* The sweeper's thread. */
static void *sweep(void *arg)
{
    mt_files *f = arg;

    pthread_mutex_lock(&f->lock);
    while (!f->closing) {
        struct timespec until;

        pthread_mutex_unlock(&f->lock);
        mt_files_sweep(f, (int64_t)time(NULL));
        until = mt_clock_deadline(SWEEP_MS);
        pthread_mutex_lock(&f->lock);
        if (!f->closing)
            pthread_cond_timedwait(&f->close, &f->lock, &until);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

mt_files *mt_files_open(const char *folder, mt_files_limits limits, mt_error *err)
{
    mt_files *f = mt_alloc(sizeof(*f));

    f->folder = f->lock_file = -1;
    f->limits = limits;
    pthread_mutex_init(&f->lock, NULL);
    mt_clock_cond_init(&f->close);
    if (open_folder(f, folder, err) && list_files(f, err)) {
        f->sweeps = pthread_create(&f->sweeper, NULL, sweep, f) == 0;
        if (f->sweeps)
            return f;
        mt_fail(err, MT_E_IO, "a thread that removes files cannot be started");
    }
    mt_files_close(f);
    return NULL;
}

void mt_files_close(mt_files *f)
{
    if (!f)
        return;
    assert(f->parts == 0);
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    pthread_cond_signal(&f->close);
    pthread_mutex_unlock(&f->lock);
    if (f->sweeps)
        pthread_join(f->sweeper, NULL);
    for (size_t i = 0; i < f->count; i++) {
        let_go(f, f->at[i]->owner, f->at[i]->about.bytes, true);
        mt_free(f->at[i]);
    }
    mt_free(f->at);
    if (f->folder >= 0)
        close(f->folder);
    if (f->lock_file >= 0)
        close(f->lock_file);
    pthread_cond_destroy(&f->close);
    pthread_mutex_destroy(&f->lock);
    mt_free(f);
}

/* ---- taking a file ---- */

static bool fail_write(mt_error *err)
{
    const bool full = errno == ENOSPC || errno == EDQUOT;

    return mt_fail(err, full ? MT_E_TOO_LARGE : MT_E_IO, "the file cannot be written: %s", strerror(errno));
}

/* Whether the disk has so many bytes left. */
static bool has_space(const mt_files *f, uint64_t bytes, mt_error *err)
{
    struct statvfs disk;

    return fstatvfs(f->folder, &disk) != 0 || (uint64_t)disk.f_bavail * disk.f_frsize >= bytes + SPARE ||
           mt_fail(err, MT_E_TOO_LARGE, "the disk of the server has no room left for the file: make it smaller");
}

/* Counts a part that begins. */
static bool enter(mt_files_part *p, const char *owner, uint64_t size, mt_error *err)
{
    mt_files *f = p->files;
    bool ok;

    pthread_mutex_lock(&f->lock);
    p->owner = holder_of(f, owner);
    ok = may_have(f, p->owner, size, 1, err);
    p->owner->count++;
    f->parts++;
    f->stats.refused += !ok;
    pthread_mutex_unlock(&f->lock);
    return ok;
}

mt_files_part *mt_files_begin(mt_files *f, const char *owner, uint64_t size, mt_error *err)
{
    mt_files_part *p = mt_alloc(sizeof(*p));
    bool ok;

    *p = (mt_files_part){.files = f, .fd = -1, .hash = EVP_MD_CTX_new()};
    mt_files_sweep(f, (int64_t)time(NULL));
    mt_random_id(p->id, PREFIX);
    snprintf(p->path, sizeof(p->path), "%s" PART, p->id);
    ok = enter(p, owner, size, err);
    ok = ok && ((p->hash && EVP_DigestInit_ex(p->hash, EVP_sha256(), NULL) == 1) ||
                mt_fail(err, MT_E_INTERNAL, "OpenSSL has no SHA-256 here"));
    if (ok && has_space(f, size, err)) {
        p->fd = openat(f->folder, p->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (p->fd >= 0)
            return p;
        fail_write(err);
    }
    mt_files_drop(p);
    return NULL;
}

mt_files_part *mt_files_claim(mt_files *f, const char *owner, bool forced, mt_error *err)
{
    mt_files_part *p = mt_alloc(sizeof(*p));

    *p = (mt_files_part){.files = f, .fd = -1};
    if (enter(p, owner, 0, err) || forced)
        return p;
    mt_files_drop(p);
    return NULL;
}

/* Counts bytes of a part before they are written. */
static bool count_bytes(mt_files_part *p, uint64_t bytes, bool forced, mt_error *err)
{
    mt_files *f = p->files;
    bool ok;

    pthread_mutex_lock(&f->lock);
    ok = may_have(f, p->owner, bytes, 0, err) || forced;
    f->stats.refused += !ok;
    if (ok) {
        f->held += bytes;
        p->owner->bytes += bytes;
    }
    pthread_mutex_unlock(&f->lock);
    p->len += ok ? bytes : 0;
    return ok;
}

bool mt_files_claim_more(mt_files_part *p, uint64_t bytes, bool forced, mt_error *err)
{
    return count_bytes(p, bytes, forced, err);
}

void mt_files_claim_less(mt_files_part *p, uint64_t bytes)
{
    pthread_mutex_lock(&p->files->lock);
    let_go(p->files, p->owner, bytes, false);
    pthread_mutex_unlock(&p->files->lock);
    p->len -= bytes;
}

const char *mt_files_part_id(const mt_files_part *p)
{
    return p->id;
}

static bool write_all(int fd, const char *data, size_t len, uint64_t at, mt_error *err)
{
    while (len > 0) {
        const ssize_t n = pwrite(fd, data, len, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_write(err);
        data += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return true;
}

bool mt_files_add(mt_files_part *p, const void *data, size_t len, mt_error *err)
{
    if (len > MT_LIMIT_FILE_BYTES - p->len)
        return mt_fail(err, MT_E_TOO_LARGE, "the file has more than %lu bytes: divide it", MT_LIMIT_FILE_BYTES);
    if (!count_bytes(p, len, false, err))
        return false;
    EVP_DigestUpdate(p->hash, data, len);
    return ((p->len - len) / CHECKED == p->len / CHECKED || has_space(p->files, CHECKED, err)) &&
           write_all(p->fd, data, len, HEAD + p->len - len, err);
}

static void free_part(mt_files_part *p)
{
    if (p->fd >= 0)
        close(p->fd);
    EVP_MD_CTX_free(p->hash);
    mt_free(p);
}

/* Writes the head, has all of it on disk, and gives the file its name. */
static bool keep(mt_files_part *p, entry *e, mt_error *err)
{
    const int folder = p->files->folder;
    char head[HEAD];

    write_head(head, &e->about, e->at, p->owner->name);
    if (!write_all(p->fd, head, HEAD, 0, err))
        return false;
    if (fsync(p->fd) != 0 || renameat(folder, p->path, folder, p->id) != 0)
        return fail_write(err);
    (void)!fsync(folder); /* some file systems have none for folders */
    return true;
}

static void describe(mt_files_part *p, entry *e, const mt_files_about *given)
{
    mt_files *f = p->files;
    const uint64_t now = now_ns();
    unsigned char digest[32];

    e->about = *given;
    memcpy(e->about.id, p->id, sizeof(p->id));
    e->about.bytes = p->len;
    EVP_DigestFinal_ex(p->hash, digest, NULL);
    mt_hex_text(digest, sizeof(digest), e->about.sha256);
    e->owner = p->owner;
    pthread_mutex_lock(&f->lock);
    e->at = f->last = now > f->last ? now : f->last + 1;
    pthread_mutex_unlock(&f->lock);
    e->about.created = (int64_t)(e->at / NS);
    if (given->expires || f->limits.seconds)
        e->about.expires = e->about.created + (given->expires ? given->expires : f->limits.seconds);
}

bool mt_files_end(mt_files_part *p, mt_files_about *about, mt_error *err)
{
    mt_files *f = p->files;
    entry *e = mt_alloc(sizeof(*e));

    describe(p, e, about);
    if (!keep(p, e, err)) {
        mt_free(e);
        mt_files_drop(p);
        return false;
    }
    *about = e->about;
    pthread_mutex_lock(&f->lock);
    append(f, e);
    if (f->count > 1 && f->at[f->count - 2]->at > e->at) /* another has ended meanwhile */
        qsort(f->at, f->count, sizeof(*f->at), by_age);
    f->parts--;
    f->stats.taken++;
    pthread_mutex_unlock(&f->lock);
    free_part(p);
    return true;
}

void mt_files_drop(mt_files_part *p)
{
    if (!p)
        return;
    if (p->fd >= 0)
        unlinkat(p->files->folder, p->path, 0);
    pthread_mutex_lock(&p->files->lock);
    p->files->parts--;
    let_go(p->files, p->owner, p->len, true);
    pthread_mutex_unlock(&p->files->lock);
    free_part(p);
}

/* ---- looking at files ---- */

static bool has_expired(const entry *e, int64_t now)
{
    return e->about.expires && e->about.expires <= now;
}

/* Whether a file is there for an owner. */
static bool is_there(const entry *e, const char *owner)
{
    return strcmp(e->owner->name, owner) == 0 && !has_expired(e, (int64_t)time(NULL));
}

/* The place of a file in the index; count: it is not there. The caller has the lock. */
static size_t place_of(const mt_files *f, const char *owner, const char *id)
{
    size_t i = 0;

    while (i < f->count && (strcmp(f->at[i]->about.id, id) != 0 || !is_there(f->at[i], owner)))
        i++;
    return i;
}

bool mt_files_find(mt_files *f, const char *owner, const char *id, mt_files_about *about)
{
    size_t i;
    bool found;

    pthread_mutex_lock(&f->lock);
    i = place_of(f, owner, id);
    found = i < f->count;
    if (found)
        *about = f->at[i]->about;
    pthread_mutex_unlock(&f->lock);
    return found;
}

int mt_files_read(mt_files *f, const char *owner, const char *id, mt_files_about *about, mt_error *err)
{
    const bool found = mt_files_find(f, owner, id, about);
    const int fd = found ? openat(f->folder, about->id, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;

    if (fd >= 0 && lseek(fd, HEAD, SEEK_SET) == HEAD)
        return fd;
    if (fd >= 0)
        close(fd);
    if (found && errno != ENOENT)
        mt_fail(err, MT_E_IO, "the file \"%s\" cannot be read: %s", about->id, strerror(errno));
    else
        mt_fail(err, MT_E_NOT_FOUND, "there is no file \"%.60s\" here: upload it, or look at the list of files", id);
    return -1;
}

/* Takes an entry out of the index. The caller has the lock. */
static entry *take_out(mt_files *f, size_t i)
{
    entry *e = f->at[i];

    memmove(&f->at[i], &f->at[i + 1], (f->count - i - 1) * sizeof(*f->at));
    f->count--;
    return e;
}

/* Deletes a file that is in the index no more. */
static void discard(mt_files *f, entry *e)
{
    if (unlinkat(f->folder, e->about.id, 0) != 0 && errno != ENOENT)
        mt_log_warn("files.failed", "the file \"%s\" cannot be deleted: %s", e->about.id, strerror(errno));
    pthread_mutex_lock(&f->lock);
    let_go(f, e->owner, e->about.bytes, true);
    pthread_mutex_unlock(&f->lock);
    mt_free(e);
}

bool mt_files_remove(mt_files *f, const char *owner, const char *id)
{
    entry *e = NULL;
    size_t i;

    pthread_mutex_lock(&f->lock);
    i = place_of(f, owner, id);
    if (i < f->count)
        e = take_out(f, i);
    f->stats.removed += e != NULL;
    pthread_mutex_unlock(&f->lock);
    if (e)
        discard(f, e);
    return e != NULL;
}

/* Takes the first file out of the index that has expired; NULL: none has. */
static entry *take_expired(mt_files *f, int64_t now)
{
    entry *e = NULL;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->count && !e; i++)
        if (has_expired(f->at[i], now))
            e = take_out(f, i);
    f->stats.expired += e != NULL;
    pthread_mutex_unlock(&f->lock);
    return e;
}

void mt_files_sweep(mt_files *f, int64_t now)
{
    for (entry *e = take_expired(f, now); e; e = take_expired(f, now))
        discard(f, e);
}

/* Where a list begins or ends: the place of an id in the order of the list. The caller has the lock. */
static bool place_in(const mt_files *f, const char *owner, const mt_files_query *q, const char *id, size_t *place,
                     mt_error *err)
{
    const size_t i = place_of(f, owner, id);

    *place = q->oldest_first ? i : f->count - 1 - i;
    return i < f->count || mt_fail(err, MT_E_INVALID, "there is no file \"%.60s\" to list from", id);
}

static bool is_meant(const entry *e, const char *owner, const mt_files_query *q)
{
    return is_there(e, owner) && (!q->purpose || strcmp(e->about.purpose, q->purpose) == 0);
}

bool mt_files_list(mt_files *f, const char *owner, const mt_files_query *q, mt_files_page *page, mt_error *err)
{
    const bool back = q->before && !q->after;
    size_t from = 0, to, place;
    bool ok = true;

    *page = (mt_files_page){0};
    pthread_mutex_lock(&f->lock);
    to = f->count;
    if (q->after) {
        ok = place_in(f, owner, q, q->after, &place, err);
        from = place + 1;
    }
    if (ok && q->before) {
        ok = place_in(f, owner, q, q->before, &place, err);
        to = place;
    }
    page->at = mt_alloc_array(q->limit < f->count ? q->limit : f->count, sizeof(*page->at));
    for (size_t n = 0; ok && from + n < to && !page->more; n++) {
        const size_t i = back ? to - 1 - n : from + n;
        const entry *e = f->at[q->oldest_first ? i : f->count - 1 - i];

        if (!is_meant(e, owner, q))
            continue;
        page->more = page->count == q->limit;
        if (!page->more)
            page->at[page->count++] = e->about;
    }
    pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; back && i < page->count / 2; i++) {
        const mt_files_about a = page->at[i];

        page->at[i] = page->at[page->count - 1 - i];
        page->at[page->count - 1 - i] = a;
    }
    return ok;
}

mt_files_stats mt_files_look(mt_files *f)
{
    mt_files_stats stats;

    pthread_mutex_lock(&f->lock);
    stats = f->stats;
    stats.count = f->count + f->parts;
    stats.bytes = f->held;
    stats.limit = f->limits.bytes;
    pthread_mutex_unlock(&f->lock);
    return stats;
}
