/* Two locks: `lock` is held for moments only and is the only one that the io thread takes; `file` is held while sqlite
   works. A thread that needs both takes `file` first.

   An entry stays in the queue until it is written, so that a reader who looks for it knows that it has to wait. The
   queue is bounded; beyond that answers are not kept, so that mt_store_put never waits for the disk.

   What callers have is a view: the store as one owner sees it, without rows of others. The bounds are for all owners
   together; beyond them, the owner with the most loses answers, so that no owner can push out those of others.

   Texts have a table of their own. sqlite reads and writes rows whole, also to compare their keys where rows are the
   index: beside texts of megabytes, finding any answer, or noting that it was used, took as long as copying them. */
#include "api/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/json_tree.h"
#include "base/log.h"

/* VERSION: of the tables below, kept as user_version in the file; BUSY_MS: how long another process that writes to the
   file is waited for, such as a server that is ending */
enum { VERSION = 3, BUSY_MS = 1000 };

enum { PUT, GET, TOUCH, REMOVE, OLDEST, HELD, ADOPT, STATEMENTS };

static const char *const sql[STATEMENTS] = {
    [PUT] = "INSERT INTO whole_answer VALUES (?1, ?2, ?3)",
    [GET] = "SELECT text FROM whole_answer WHERE id = ?1 AND owner = ?2",
    [TOUCH] = "UPDATE answer SET used = 1 + (SELECT max(used) FROM answer) WHERE id = ?1",
    [REMOVE] = "DELETE FROM answer WHERE id = ?1 AND owner = ?2 RETURNING bytes, owner",
    [OLDEST] = ("DELETE FROM answer WHERE id = (SELECT id FROM answer WHERE owner = ?1 ORDER BY used LIMIT 1) "
                "RETURNING bytes, owner"),
    [HELD] = "SELECT count(*), sum(bytes), owner FROM answer GROUP BY owner",
    [ADOPT] = "UPDATE answer SET owner = ?1 WHERE owner = ''"};

/* An answer that waits to be written. */
typedef struct entry {
    struct entry *next;
    char *id, *owner, *text;
    size_t len;
} entry;

/* How much an owner keeps. */
typedef struct holder {
    struct holder *next;
    char *owner;
    mt_store_size held;
    size_t views; /* 0: the owner has no key any more */
} holder;

/* State that all views of a store share. */
typedef struct core {
    pthread_mutex_t file; /* of db and statements */
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    mt_store_size limits, held; /* held is changed under both locks */
    holder *holders;            /* under lock; never freed before the end */
    size_t views;               /* under lock: of all owners but "" */

    pthread_mutex_t lock;         /* of the fields below */
    pthread_cond_t come, written; /* an entry was added; an entry was written */
    entry *first, **last;         /* the queue */
    size_t waiting, waiting_bytes;
    uint64_t failed;
    bool stopping; /* the writer shall end when the queue is empty */
    bool started;  /* there is a writer */
    pthread_t writer;
} core;

struct mt_store {
    core *core;
    char *owner; /* "": clients without a key */
    bool whole;  /* the view that mt_store_open made: closing it closes the core */
};

static bool refuse(core *s, const char *path, mt_error *err)
{
    const int why = s->db ? sqlite3_system_errno(s->db) : 0;

    return mt_fail(err, MT_E_IO, "the store \"%s\" cannot be used: %s%s%s", path ? path : "in memory",
                   s->db ? sqlite3_errmsg(s->db) : "out of memory", why ? ": " : "", why ? strerror(why) : "");
}

/* Whether the file can be written, or made. SQLite would open it to read alone instead, and lose each answer later; its
   error is then the one of that second try. */
static bool can_write(const char *path, mt_error *err)
{
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

    if (file < 0)
        return mt_fail(err, MT_E_IO, "the store \"%s\" cannot be used: %s", path, strerror(errno));
    close(file);
    return true;
}

static bool is_known(const char *path, int64_t version, mt_error *err)
{
    return version <= VERSION ||
           mt_fail(err, MT_E_UNSUPPORTED, "the store \"%s\" is of version %lld, not %d: name another file", path,
                   (long long)version, VERSION);
}

/* Reads the head of the file by itself: SQLite would make files beside it. */
bool mt_store_check(const char *path, mt_error *err)
{
    enum { HEAD = 100, VERSION_AT = 60 }; /* of SQLite's format: bytes of the head; user_version in it */
    static const char mark[] = "SQLite format 3";
    unsigned char head[HEAD];
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t len = file >= 0 ? pread(file, head, HEAD, 0) : -1;
    const int why = errno;
    uint32_t version = 0;

    if (file >= 0)
        close(file);
    if (len <= 0)
        return len == 0 || why == ENOENT ||
               mt_fail(err, MT_E_IO, "the store \"%s\" cannot be used: %s", path, strerror(why));
    if (len < HEAD || memcmp(head, mark, sizeof(mark)) != 0)
        return mt_fail(err, MT_E_IO, "the store \"%s\" cannot be used: file is not a database", path);
    for (size_t i = 0; i < sizeof(version); i++)
        version = version << 8 | head[VERSION_AT + i];
    return is_known(path, (int64_t)version, err);
}

static int user_version(sqlite3 *db)
{
    sqlite3_stmt *statement = NULL;
    int version = -1;

    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        version = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return version;
}

/* Changes the tables to those of a version, unless another process has done so by now. All of it happens, or
   nothing. */
static bool step(core *s, int version, const char *changes)
{
    char *all = sqlite3_mprintf("%s PRAGMA user_version = %d", changes, version);
    const bool ok = all && sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK &&
                    (user_version(s->db) >= version || sqlite3_exec(s->db, all, NULL, NULL, NULL) == SQLITE_OK) &&
                    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;

    sqlite3_free(all);
    return ok;
}

static bool set_up(core *s, const char *path, mt_error *err)
{
    /* With synchronous = NORMAL a power failure may lose the newest answers, but never breaks the file. */
    static const char settings[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";
    /* steps[i] leads from version i to the next */
    static const char *const steps[VERSION] = {
        "CREATE TABLE answer (id TEXT PRIMARY KEY, used INTEGER NOT NULL, text BLOB NOT NULL) WITHOUT ROWID;"
        "CREATE INDEX answer_used ON answer (used);",
        "ALTER TABLE answer ADD COLUMN owner TEXT NOT NULL DEFAULT '';",
        "ALTER TABLE answer RENAME TO old; DROP INDEX answer_used; DROP INDEX IF EXISTS answer_owner;"
        "CREATE TABLE answer (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, used INTEGER NOT NULL,"
        " bytes INTEGER NOT NULL, owner TEXT NOT NULL);"
        "CREATE TABLE answer_text (key INTEGER PRIMARY KEY, text BLOB NOT NULL);"
        "INSERT INTO answer SELECT NULL, id, used, length(text), owner FROM old;"
        "INSERT INTO answer_text SELECT key, text FROM old JOIN answer USING (id); DROP TABLE old;"
        "CREATE INDEX answer_used ON answer (used); CREATE INDEX answer_owner ON answer (owner, used);"
        "CREATE VIEW whole_answer AS SELECT id, owner, text FROM answer JOIN answer_text USING (key);"
        "CREATE TRIGGER put INSTEAD OF INSERT ON whole_answer BEGIN"
        " INSERT INTO answer VALUES (NULL, new.id, 1 + (SELECT ifnull(max(used), 0) FROM answer), length(new.text),"
        "  new.owner);"
        " INSERT INTO answer_text VALUES (last_insert_rowid(), new.text); END;"
        "CREATE TRIGGER removed AFTER DELETE ON answer BEGIN DELETE FROM answer_text WHERE key = old.key; END;"};
    int version;

    sqlite3_busy_timeout(s->db, BUSY_MS);
    version = user_version(s->db);
    if (version < 0)
        return refuse(s, path, err);
    if (!is_known(path, version, err))
        return false;
    if (sqlite3_exec(s->db, settings, NULL, NULL, NULL) != SQLITE_OK)
        return refuse(s, path, err);
    for (int i = version; i < VERSION; i++)
        if (!step(s, i + 1, steps[i]))
            return refuse(s, path, err);
    for (size_t i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v2(s->db, sql[i], -1, &s->statements[i], NULL) != SQLITE_OK)
            return refuse(s, path, err);
    return true;
}

/* Runs a statement without a result. False: it failed. */
static bool run(core *s, int which)
{
    const int result = sqlite3_step(s->statements[which]);

    sqlite3_reset(s->statements[which]);
    sqlite3_clear_bindings(s->statements[which]);
    return result == SQLITE_DONE;
}

/* The caller has `lock`. */
static holder *holder_of(core *s, const char *owner)
{
    holder *h = s->holders;

    while (h && strcmp(h->owner, owner) != 0)
        h = h->next;
    if (!h) {
        h = mt_alloc(sizeof(*h));
        *h = (holder){.next = s->holders, .owner = mt_strdup(owner)};
        s->holders = h;
    }
    return h;
}

/* Counts what is held, since asking sqlite would take longer than writing. */
static void add_held(core *s, const char *owner, int64_t entries, int64_t bytes)
{
    holder *h;

    pthread_mutex_lock(&s->lock);
    h = holder_of(s, owner);
    h->held.entries += entries;
    h->held.bytes += bytes;
    s->held.entries += entries;
    s->held.bytes += bytes;
    pthread_mutex_unlock(&s->lock);
}

/* Runs a statement that removes a row and returns its size and owner. False: there is none, or it failed. */
static bool remove_row(core *s, int which)
{
    sqlite3_stmt *statement = s->statements[which];
    const bool found = sqlite3_step(statement) == SQLITE_ROW;
    const int64_t bytes = found ? sqlite3_column_int64(statement, 0) : 0;
    char *owner = found ? mt_strdup((const char *)sqlite3_column_text(statement, 1)) : NULL;
    const bool removed = found && sqlite3_step(statement) == SQLITE_DONE;

    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    if (removed)
        add_held(s, owner, -1, -bytes);
    mt_free(owner);
    return removed;
}

static void bind(core *s, int which, const char *id, const char *owner)
{
    sqlite3_bind_text(s->statements[which], 1, id, -1, SQLITE_STATIC);
    if (owner)
        sqlite3_bind_text(s->statements[which], 2, owner, -1, SQLITE_STATIC);
}

/* Counts what a file has at the start. */
static void count(core *s)
{
    sqlite3_stmt *held = s->statements[HELD];

    while (sqlite3_step(held) == SQLITE_ROW)
        add_held(s, (const char *)sqlite3_column_text(held, 2), sqlite3_column_int64(held, 0),
                 sqlite3_column_int64(held, 1));
    sqlite3_reset(held);
}

/* The owner whose oldest answer is dropped next: one that has no view any more, else the one with the most (entries, or
   bytes). Answers of owner "" count as nobody's once there are other owners. */
static const holder *who_gives_way(core *s, bool entries)
{
    const holder *most = NULL;
    bool gone = false;

    pthread_mutex_lock(&s->lock);
    for (const holder *h = s->holders; h; h = h->next) {
        const bool is_gone = h->views == 0 && s->views > 0;
        const int64_t mine = entries ? h->held.entries : h->held.bytes;

        if (h->held.entries > 0 && (!most || is_gone > gone ||
                                    (is_gone == gone && mine > (entries ? most->held.entries : most->held.bytes)))) {
            most = h;
            gone = is_gone;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return most;
}

/* Drops answers until the rest is within bounds. The caller has `file`. */
static void make_room(core *s)
{
    while (s->held.entries > s->limits.entries || s->held.bytes > s->limits.bytes) {
        const holder *h = who_gives_way(s, s->held.entries > s->limits.entries);

        if (!h)
            return;
        bind(s, OLDEST, h->owner, NULL);
        if (!remove_row(s, OLDEST))
            return;
    }
}

static bool write_entry(core *s, const entry *e)
{
    bool ok;

    pthread_mutex_lock(&s->file);
    bind(s, REMOVE, e->id, e->owner); /* replaces one of the same id */
    remove_row(s, REMOVE);
    bind(s, PUT, e->id, e->owner);
    sqlite3_bind_blob64(s->statements[PUT], 3, e->text, e->len, SQLITE_STATIC);
    ok = run(s, PUT);
    if (ok)
        add_held(s, e->owner, 1, (int64_t)e->len);
    else
        mt_log_warn("store.failed", "%s was given, but is not kept: %s", e->id, sqlite3_errmsg(s->db));
    make_room(s);
    pthread_mutex_unlock(&s->file);
    return ok;
}

static void free_entry(entry *e)
{
    mt_free(e->id);
    mt_free(e->owner);
    mt_free(e->text);
    mt_free(e);
}

/* The writer's thread. */
static void *work(void *arg)
{
    core *s = arg;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        entry *e = s->first;
        bool ok;

        if (!e && s->stopping)
            break;
        if (!e) {
            pthread_cond_wait(&s->come, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        ok = write_entry(s, e);
        pthread_mutex_lock(&s->lock);
        s->failed += !ok;
        s->first = e->next;
        if (!s->first)
            s->last = &s->first;
        s->waiting--;
        s->waiting_bytes -= e->len;
        pthread_cond_broadcast(&s->written);
        free_entry(e);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void close_core(core *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->come);
    pthread_mutex_unlock(&s->lock);
    if (s->started)
        pthread_join(s->writer, NULL);
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(s->statements[i]);
    sqlite3_close(s->db);
    for (holder *h = s->holders, *next; h; h = next) {
        next = h->next;
        mt_free(h->owner);
        mt_free(h);
    }
    pthread_cond_destroy(&s->come);
    pthread_cond_destroy(&s->written);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->file);
    mt_free(s);
}

static core *open_core(const char *path, mt_store_size limits, mt_error *err)
{
    core *s = mt_alloc(sizeof(*s));
    bool ok;

    pthread_mutex_init(&s->file, NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->come, NULL);
    pthread_cond_init(&s->written, NULL);
    s->limits = limits;
    s->last = &s->first;
    ok = !path || can_write(path, err);
    if (ok)
        ok = sqlite3_open(path ? path : ":memory:", &s->db) == SQLITE_OK ? set_up(s, path, err) : refuse(s, path, err);
    if (ok) {
        count(s);
        s->started = pthread_create(&s->writer, NULL, work, s) == 0;
        ok = s->started || mt_fail(err, MT_E_IO, "a thread that writes the store cannot be started");
    }
    if (ok)
        return s;
    close_core(s);
    return NULL;
}

static mt_store *new_view(core *s, const char *owner, bool whole)
{
    mt_store *store = mt_alloc(sizeof(*store));

    *store = (mt_store){.core = s, .owner = mt_strdup(owner), .whole = whole};
    return store;
}

mt_store *mt_store_open(const char *path, mt_store_size limits, mt_error *err)
{
    core *s = open_core(path, limits, err);

    return s ? new_view(s, "", true) : NULL;
}

/* Views are made once for each owner and counted until the end. */
mt_store *mt_store_view(mt_store *store, const char *owner)
{
    core *s = store->core;

    pthread_mutex_lock(&s->lock);
    holder_of(s, owner)->views++;
    s->views++;
    pthread_mutex_unlock(&s->lock);
    return new_view(s, owner, false);
}

void mt_store_close(mt_store *store)
{
    if (!store)
        return;
    if (store->whole)
        close_core(store->core);
    mt_free(store->owner);
    mt_free(store);
}

void mt_store_put(mt_store *store, const char *id, char *text, size_t len)
{
    core *s = store->core;
    entry *e = mt_alloc(sizeof(*e));
    bool fits;

    *e = (entry){.id = mt_strdup(id), .owner = mt_strdup(store->owner), .text = text, .len = len};
    pthread_mutex_lock(&s->lock);
    fits = s->waiting < MT_LIMIT_STORE_QUEUE && s->waiting_bytes + len <= MT_LIMIT_STORE_BYTES;
    if (fits) {
        *s->last = e;
        s->last = &e->next;
        s->waiting++;
        s->waiting_bytes += len;
        pthread_cond_signal(&s->come);
    } else
        s->failed++;
    pthread_mutex_unlock(&s->lock);
    if (fits)
        return;
    mt_log_warn("store.behind", "%s was given, but is not kept: the disk is too slow for what is to be written", id);
    free_entry(e);
}

/* Whether the answer of that id (NULL: any) waits to be written. The caller has `lock`. */
static bool is_waiting(const core *s, const char *id)
{
    const entry *e = s->first;

    while (e && id && strcmp(e->id, id) != 0)
        e = e->next;
    return e != NULL;
}

static void wait_written(core *s, const char *id)
{
    pthread_mutex_lock(&s->lock);
    while (is_waiting(s, id))
        pthread_cond_wait(&s->written, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void mt_store_adopt(mt_store *store)
{
    core *s = store->core;

    wait_written(s, NULL);
    pthread_mutex_lock(&s->file);
    bind(s, ADOPT, store->owner, NULL);
    if (run(s, ADOPT)) {
        mt_store_size held;

        pthread_mutex_lock(&s->lock);
        held = holder_of(s, "")->held;
        pthread_mutex_unlock(&s->lock);
        add_held(s, "", -held.entries, -held.bytes);
        add_held(s, store->owner, held.entries, held.bytes);
    } else
        mt_log_warn("store.failed", "answers that were kept before are not found again: %s", sqlite3_errmsg(s->db));
    pthread_mutex_unlock(&s->file);
}

json_t *mt_store_get(mt_store *store, const char *id)
{
    core *s = store ? store->core : NULL;
    json_t *found = NULL;

    if (!s)
        return NULL;
    wait_written(s, id);
    pthread_mutex_lock(&s->file);
    bind(s, GET, id, store->owner);
    if (sqlite3_step(s->statements[GET]) == SQLITE_ROW)
        found = mt_json_tree_try(sqlite3_column_blob(s->statements[GET], 0),
                                 (size_t)sqlite3_column_bytes(s->statements[GET], 0));
    sqlite3_reset(s->statements[GET]);
    if (found) {
        bind(s, TOUCH, id, NULL);
        run(s, TOUCH);
    }
    pthread_mutex_unlock(&s->file);
    return found;
}

bool mt_store_remove(mt_store *store, const char *id)
{
    core *s = store->core;
    bool removed;

    wait_written(s, id);
    pthread_mutex_lock(&s->file);
    bind(s, REMOVE, id, store->owner);
    removed = remove_row(s, REMOVE);
    pthread_mutex_unlock(&s->file);
    return removed;
}

mt_store_stats mt_store_look(mt_store *store)
{
    core *s = store->core;
    mt_store_stats now;

    pthread_mutex_lock(&s->lock);
    now = (mt_store_stats){.held = s->held, .waiting = s->waiting, .failed = s->failed};
    pthread_mutex_unlock(&s->lock);
    return now;
}
