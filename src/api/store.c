#include "api/store.h"

#include <pthread.h>
#include <string.h>

#include <sqlite3.h>

#include "base/alloc.h"
#include "base/log.h"

enum { VERSION = 1 }; /* of the table below, in the file's user_version */

enum { PUT, GET, TOUCH, REMOVE, OLDEST, HELD, STATEMENTS };

static const char *const sql[STATEMENTS] = {
    [PUT] =
        "INSERT OR REPLACE INTO answer (id, used, text) VALUES (?1, 1 + (SELECT ifnull(max(used), 0) FROM answer), ?2)",
    [GET] = "SELECT text FROM answer WHERE id = ?1",
    [TOUCH] = "UPDATE answer SET used = 1 + (SELECT max(used) FROM answer) WHERE id = ?1",
    [REMOVE] = "DELETE FROM answer WHERE id = ?1",
    [OLDEST] = "DELETE FROM answer WHERE id = (SELECT id FROM answer ORDER BY used LIMIT 1)",
    [HELD] = "SELECT count(*), ifnull(sum(length(text)), 0) FROM answer"};

struct mt_store {
    pthread_mutex_t lock; /* of all that follows */
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    mt_store_limits limits, held;
};

static bool refuse(mt_store *s, const char *path, mt_error *err)
{
    return mt_fail(err, MT_E_IO, "the store \"%s\" cannot be used: %s", path ? path : "in memory",
                   s->db ? sqlite3_errmsg(s->db) : "out of memory");
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

static bool set_up(mt_store *s, const char *path, mt_error *err)
{
    /* Commits reach the disk at checkpoints: what a failing machine loses is the newest answers, never the file. */
    static const char schema[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                                 "CREATE TABLE IF NOT EXISTS answer (id TEXT PRIMARY KEY, used INTEGER NOT NULL,"
                                 " text BLOB NOT NULL) WITHOUT ROWID;"
                                 "CREATE INDEX IF NOT EXISTS answer_used ON answer (used);"
                                 "PRAGMA user_version = 1";
    const int version = user_version(s->db);

    if (version != 0 && version != VERSION)
        return version < 0
                   ? refuse(s, path, err)
                   : mt_fail(err, MT_E_UNSUPPORTED, "the store \"%s\" is of version %d, not %d: name another file",
                             path, version, VERSION);
    if (sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        return refuse(s, path, err);
    for (size_t i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v2(s->db, sql[i], -1, &s->statements[i], NULL) != SQLITE_OK)
            return refuse(s, path, err);
    return true;
}

/* Runs a statement that gives nothing back. Rows that were changed; -1: it failed. */
static int run(mt_store *s, int which)
{
    const int result = sqlite3_step(s->statements[which]);

    sqlite3_reset(s->statements[which]);
    sqlite3_clear_bindings(s->statements[which]);
    return result == SQLITE_DONE || result == SQLITE_ROW ? sqlite3_changes(s->db) : -1;
}

static void bind_id(mt_store *s, int which, const char *id)
{
    sqlite3_bind_text(s->statements[which], 1, id, -1, SQLITE_STATIC);
}

static void count(mt_store *s)
{
    sqlite3_stmt *held = s->statements[HELD];

    if (sqlite3_step(held) == SQLITE_ROW)
        s->held = (mt_store_limits){.entries = sqlite3_column_int64(held, 0), .bytes = sqlite3_column_int64(held, 1)};
    sqlite3_reset(held);
}

mt_store *mt_store_open(const char *path, mt_store_limits limits, mt_error *err)
{
    mt_store *s = mt_alloc(sizeof(*s));
    bool ok;

    pthread_mutex_init(&s->lock, NULL);
    s->limits = limits;
    ok = sqlite3_open(path ? path : ":memory:", &s->db) == SQLITE_OK ? set_up(s, path, err) : refuse(s, path, err);
    if (!ok) {
        mt_store_close(s);
        return NULL;
    }
    count(s);
    return s;
}

void mt_store_close(mt_store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(s->statements[i]);
    sqlite3_close(s->db);
    pthread_mutex_destroy(&s->lock);
    mt_free(s);
}

/* The oldest go until the rest is within bounds. */
static void make_room(mt_store *s)
{
    count(s);
    while ((s->held.entries > s->limits.entries || s->held.bytes > s->limits.bytes) && run(s, OLDEST) > 0)
        count(s);
}

void mt_store_put(mt_store *s, const char *id, const char *text, size_t len)
{
    pthread_mutex_lock(&s->lock);
    bind_id(s, PUT, id);
    sqlite3_bind_blob64(s->statements[PUT], 2, text, len, SQLITE_STATIC);
    if (run(s, PUT) < 0)
        mt_log_warn("store.failed", "%s was not kept: %s", id, sqlite3_errmsg(s->db));
    make_room(s);
    pthread_mutex_unlock(&s->lock);
}

json_t *mt_store_get(mt_store *s, const char *id)
{
    json_t *found = NULL;

    if (!s)
        return NULL;
    pthread_mutex_lock(&s->lock);
    bind_id(s, GET, id);
    if (sqlite3_step(s->statements[GET]) == SQLITE_ROW)
        found = json_loadb(sqlite3_column_blob(s->statements[GET], 0),
                           (size_t)sqlite3_column_bytes(s->statements[GET], 0), JSON_ALLOW_NUL, NULL);
    sqlite3_reset(s->statements[GET]);
    if (found) {
        bind_id(s, TOUCH, id);
        run(s, TOUCH);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

bool mt_store_remove(mt_store *s, const char *id)
{
    bool removed;

    pthread_mutex_lock(&s->lock);
    bind_id(s, REMOVE, id);
    removed = run(s, REMOVE) > 0;
    count(s);
    pthread_mutex_unlock(&s->lock);
    return removed;
}

mt_store_limits mt_store_held(mt_store *s)
{
    mt_store_limits held;

    pthread_mutex_lock(&s->lock);
    held = s->held;
    pthread_mutex_unlock(&s->lock);
    return held;
}
