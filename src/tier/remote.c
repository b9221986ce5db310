/* The remote store (remote.h). A value in Redis is a record as on disk: header, parts and, with a secret, the
   HMAC-SHA256 of both. Its key is "motet:" and the record's key in hexadecimal. Keys depend on weights, settings and
   arithmetic, so only servers that agree in these share values.

   1. What the remote store has is found out by asking (mt_remote_store_ask) and remembered in a table whose entries
      overwrite each other; a forgotten key is asked for again.
   2. There is one connection for reading and asking, used by one thread at a time, and one for the writing thread, with
      a queue of bounded bytes. What does not fit into the queue is dropped.
   3. After a failure nothing is tried for BACK_OFF_NS, a time that doubles with each further failure up to
      BACK_OFF_MOST. After the store has refused a record, nothing is written for PAUSE_NS: what waits is dropped.
   4. A name of a host is resolved by the writing thread alone, since that cannot be bounded in time, and anew after
      each failure. Until it is, nothing is tried.
   5. A record counts only when checksums and signature are right. One that is not right is deleted, so that a good one
      can replace it. */
#include "tier/remote.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "tier/wire.h"

#define MS UINT64_C(1000000) /* nanoseconds of a millisecond */
/* limits on the time of each operation */
#define ASK_NS (500 * MS)
#define READ_NS (2000 * MS)
#define WRITE_NS (5000 * MS)
/* pause after a failure, doubled up to the most */
#define BACK_OFF_NS (100 * MS)
#define BACK_OFF_MOST (30000 * MS)
#define PAUSE_NS (1000 * MS)  /* pause after the remote store refused a record */
#define FINISH_NS (2000 * MS) /* longest that closing waits for the queue */
#define LOG_NS (60000 * MS)   /* at most one warning in this time */
#define SLOTS (1u << 18)      /* entries of the table of known keys, 16 bytes each */
#define PREFIX "motet:"
/* bytes of a signature; bytes of a key's name; records that are sent together */
enum { TAG = 32, NAME = sizeof(PREFIX) - 1 + 2 * MT_TIER_KEY, SENT_TOGETHER = 8 };

/* A record in the queue. */
typedef struct item {
    struct item *next;
    uint8_t key[MT_TIER_KEY];
    size_t size;
    uint8_t data[]; /* header, parts, signature */
} item;

struct mt_remote_store {
    mt_wire_address given_address;
    bool named; /* its host is a name */
    uint8_t *secret;
    size_t secret_len;
    uint64_t queue_most, rate;

    pthread_mutex_t reading; /* one thread reads or asks at a time; locked before `lock` */
    mt_wire *reader;

    pthread_mutex_t lock;     /* protects the fields below; never held while the network is waited for */
    pthread_cond_t given;     /* the queue is not empty, or the end has come */
    mt_wire_address address;  /* with the number of the host; the host is empty until that is known */
    uint64_t (*known)[2];     /* [SLOTS]: the first 16 bytes of keys that the remote store has */
    item *first, **last;      /* the queue */
    uint64_t back_off, again; /* length of the last pause, and mt_clock_ns when it ends */
    /* mt_clock_ns: until when nothing is sent after a refusal; of the last warning, and of that of a broken record */
    uint64_t refused_until, told, told_broken;
    mt_remote_store_stats stats;
    bool ending;

    pthread_t thread;
    mt_wire *writer; /* used by the writing thread alone */
};

/* ---- what is known ---- */

static uint64_t *slot_of(mt_remote_store *r, const uint8_t key[MT_TIER_KEY])
{
    uint64_t hash;
    memcpy(&hash, key + 16, sizeof(hash));
    return r->known[hash & (SLOTS - 1)];
}

static bool is_known(mt_remote_store *r, const uint8_t key[MT_TIER_KEY])
{
    return memcmp(slot_of(r, key), key, 16) == 0;
}

static void learn(mt_remote_store *r, const uint8_t key[MT_TIER_KEY], bool there)
{
    pthread_mutex_lock(&r->lock);
    if (there)
        memcpy(slot_of(r, key), key, 16);
    else if (is_known(r, key))
        memset(slot_of(r, key), 0, 16);
    pthread_mutex_unlock(&r->lock);
}

static bool is_up(mt_remote_store *r)
{
    return r->address.host[0] && mt_clock_ns() >= r->again;
}

bool mt_remote_store_is_there(mt_remote_store *r)
{
    pthread_mutex_lock(&r->lock);
    const bool there = is_up(r);
    pthread_mutex_unlock(&r->lock);
    return there;
}

bool mt_remote_store_has(mt_remote_store *r, const uint8_t key[MT_TIER_KEY])
{
    pthread_mutex_lock(&r->lock);
    const bool has = is_known(r, key) && is_up(r);
    pthread_mutex_unlock(&r->lock);
    return has;
}

bool mt_remote_store_lacks(mt_remote_store *r, const uint8_t key[MT_TIER_KEY])
{
    pthread_mutex_lock(&r->lock);
    const bool lacks = !is_known(r, key) && is_up(r) && mt_clock_ns() >= r->refused_until;
    pthread_mutex_unlock(&r->lock);
    return lacks;
}

/* ---- failures ---- */

/* Whether the last warning of a kind, at *told, was longer ago than LOG_NS; then this is the last. */
static bool is_due(mt_remote_store *r, uint64_t *told)
{
    const uint64_t now = mt_clock_ns();
    pthread_mutex_lock(&r->lock);
    const bool due = *told == 0 || now >= *told + LOG_NS;
    if (due)
        *told = now;
    pthread_mutex_unlock(&r->lock);
    return due;
}

static void tell(mt_remote_store *r, const char *text)
{
    if (is_due(r, &r->told))
        mt_log_warn("cache.remote", "%s; until it answers, what is computed elsewhere is computed here, too", text);
}

static void tell_broken(mt_remote_store *r, const char *text)
{
    if (is_due(r, &r->told_broken))
        mt_log_warn("cache.remote", "a record of the store is not what was written there: %s; it is deleted", text);
}

const char *mt_remote_store_failure_name(mt_remote_store_failure reason)
{
    static const char *const names[MT_REMOTE_STORE_FAILURES] = {[MT_REMOTE_STORE_GONE] = "gone",
                                                                [MT_REMOTE_STORE_LATE] = "late",
                                                                [MT_REMOTE_STORE_REFUSES] = "refuses",
                                                                [MT_REMOTE_STORE_OUT_OF_STEP] = "out_of_step"};
    return names[reason];
}

/* wire.h says what the codes are. */
static mt_remote_store_failure reason_of(const mt_error *err)
{
    switch (err->code) {
    case MT_E_BUSY: return MT_REMOTE_STORE_LATE;
    case MT_E_UNSUPPORTED: return MT_REMOTE_STORE_REFUSES;
    case MT_E_INVALID: return MT_REMOTE_STORE_OUT_OF_STEP;
    default: return MT_REMOTE_STORE_GONE;
    }
}

static void note_failure(mt_remote_store *r, mt_wire **wire, const mt_error *err)
{
    mt_wire_close(*wire);
    *wire = NULL;
    pthread_mutex_lock(&r->lock);
    r->back_off = r->back_off ? r->back_off * 2 : BACK_OFF_NS;
    r->back_off = r->back_off < BACK_OFF_MOST ? r->back_off : BACK_OFF_MOST;
    r->again = mt_clock_ns() + r->back_off;
    if (r->named) {
        r->address.host[0] = '\0';
        pthread_cond_signal(&r->given);
    }
    r->stats.failures[reason_of(err)]++;
    r->stats.up = false;
    pthread_mutex_unlock(&r->lock);
    tell(r, err->text);
}

static void note_success(mt_remote_store *r)
{
    pthread_mutex_lock(&r->lock);
    const bool told = r->told != 0 && !r->stats.up;
    r->back_off = 0;
    r->again = 0;
    r->stats.up = true;
    if (told)
        r->told = 0;
    pthread_mutex_unlock(&r->lock);
    if (told)
        mt_log_info("cache.remote", "the store answers");
}

static bool connect_to(mt_remote_store *r, mt_wire **wire, uint64_t until, mt_error *err)
{
    if (!*wire) {
        pthread_mutex_lock(&r->lock);
        const mt_wire_address address = r->address;
        pthread_mutex_unlock(&r->lock);
        if (!address.host[0]) /* the other thread has failed meanwhile */
            return mt_fail(err, MT_E_IO, "the store is looked for");
        *wire = mt_wire_open(&address, until, err);
    }
    return *wire != NULL;
}

/* ---- commands ---- */

static void name_of(const uint8_t key[MT_TIER_KEY], char name[NAME + 1])
{
    memcpy(name, PREFIX, sizeof(PREFIX) - 1);
    mt_hex_text(key, MT_TIER_KEY, name + sizeof(PREFIX) - 1);
}

static bool add(mt_wire *w, const char *command, const uint8_t key[MT_TIER_KEY], const void *value, size_t size,
                mt_error *err)
{
    char name[NAME + 1];
    name_of(key, name);
    return mt_wire_add(w, value ? 3 : 2, (const char *[]){command, name, value},
                       (const size_t[]){strlen(command), NAME, size}) ||
           mt_fail(err, MT_E_MEMORY, "there is no memory for a command");
}

/* Asks for at most one byte more than the record has: another program may have written a value of any length. */
static bool add_get(mt_wire *w, const uint8_t key[MT_TIER_KEY], size_t size, mt_error *err)
{
    char name[NAME + 1], end[24];
    name_of(key, name);
    const size_t len = (size_t)snprintf(end, sizeof(end), "%zu", size);
    return mt_wire_add(w, 4, (const char *[]){"GETRANGE", name, "0", end}, (const size_t[]){8, NAME, 1, len}) ||
           mt_fail(err, MT_E_MEMORY, "there is no memory for a command");
}

/* Reads the reply to a command, of the kind that the command has; false also where it is an error. */
static bool next(mt_wire *w, mt_wire_reply *reply, const char *command, mt_wire_kind kind, size_t most, uint64_t until,
                 mt_error *err)
{
    if (!mt_wire_expect(w, reply, command, kind, most, until, err))
        return false;
    return reply->kind != MT_WIRE_ERROR || mt_fail(err, MT_E_UNSUPPORTED, "the store refuses: %.120s", reply->data);
}

/* Sets there[i] to whether the remote store has key[i]. */
static bool exist(mt_wire *w, const uint8_t *const key[], size_t count, bool there[], uint64_t until, mt_error *err)
{
    mt_wire_reply reply;
    for (size_t i = 0; i < count; i++)
        if (!add(w, "EXISTS", key[i], NULL, 0, err))
            return false;
    if (!mt_wire_send(w, until, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!next(w, &reply, "EXISTS", MT_WIRE_NUMBER, 0, until, err))
            return false;
        if (reply.number != 0 && reply.number != 1)
            return mt_fail(err, MT_E_INVALID, "the store is out of step: EXISTS expects 0 or 1, and %" PRId64 " came",
                           reply.number);
        there[i] = reply.number == 1;
    }
    return true;
}

void mt_remote_store_ask(mt_remote_store *r, const uint8_t (*key)[MT_TIER_KEY], size_t count)
{
    const uint8_t **unknown = mt_alloc_array(count + 1, sizeof(*unknown));
    bool *there = mt_alloc_array(count + 1, sizeof(*there));
    const uint64_t until = mt_clock_ns() + ASK_NS;
    mt_error err = {0};
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (!mt_remote_store_has(r, key[i]))
            unknown[left++] = key[i];
    pthread_mutex_lock(&r->reading);
    if (left > 0 && mt_remote_store_is_there(r)) {
        if (connect_to(r, &r->reader, until, &err) && exist(r->reader, unknown, left, there, until, &err)) {
            for (size_t i = 0; i < left; i++)
                learn(r, unknown[i], there[i]);
            note_success(r);
        } else
            note_failure(r, &r->reader, &err);
    }
    pthread_mutex_unlock(&r->reading);
    mt_free(unknown);
    mt_free(there);
}

/* ---- signatures ---- */

static bool sign(const mt_remote_store *r, const uint8_t *data, size_t size, uint8_t tag[TAG])
{
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", (char[]){"SHA256"}, 0),
                           OSSL_PARAM_construct_end()};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
    size_t len = 0;
    const bool ok = ctx && EVP_MAC_init(ctx, r->secret, r->secret_len, params) && EVP_MAC_update(ctx, data, size) &&
                    EVP_MAC_final(ctx, tag, &len, TAG) && len == TAG;
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
    return ok;
}

static size_t size_of(const mt_remote_store *r, const mt_tier_part part[], size_t parts)
{
    size_t size = MT_RECORD_HEADER + (r->secret ? TAG : 0);
    for (size_t i = 0; i < parts; i++)
        size += part[i].size;
    return size;
}

/* ---- reading ---- */

/* Takes a value apart into the parts of `want`; false with a sentence where it is not the record that is wanted. */
static bool read_value(const mt_remote_store *r, const mt_remote_store_want *want, const uint8_t *data, size_t size,
                       mt_error *err)
{
    const size_t wanted = size_of(r, want->part, want->parts);
    mt_record record;
    uint8_t tag[TAG];
    if (size != wanted) /* of a longer one only the next byte was asked for */
        return mt_fail(err, MT_E_INVALID, "%zu bytes were expected, and %s%zu came", wanted,
                       size > wanted ? "at least " : "", size);
    const size_t own = size - (r->secret ? TAG : 0);
    if (r->secret && (!sign(r, data, own, tag) || CRYPTO_memcmp(tag, data + own, TAG) != 0))
        return mt_fail(err, MT_E_INVALID, "it is not signed with the secret of --cache-remote-key");
    if (!mt_record_read(&record, data, 0, own - MT_RECORD_HEADER) ||
        !mt_record_matches(&record, want->key, want->kind, want->part, want->parts))
        return mt_fail(err, MT_E_INVALID, "its header is damaged, or that of another record");
    const uint8_t *at = data + MT_RECORD_HEADER;
    for (size_t i = 0; i < want->parts; at += want->part[i++].size)
        memcpy(want->part[i].data, at, want->part[i].size);
    return mt_record_is_whole(&record, want->part, want->parts) ||
           mt_fail(err, MT_E_INVALID, "its checksums are wrong");
}

static void note_read(mt_remote_store *r, const mt_remote_store_want *want, const mt_wire_reply *reply,
                      const mt_error *why)
{
    const bool broken = reply->len > 0 && !want->ok; /* length 0: it was deleted meanwhile */
    pthread_mutex_lock(&r->lock);
    r->stats.read += want->ok;
    r->stats.missed += !want->ok;
    r->stats.broken += broken;
    r->stats.received += reply->len;
    pthread_mutex_unlock(&r->lock);
    if (broken)
        tell_broken(r, why->text);
    if (!want->ok)
        learn(r, want->key, false);
}

/* Reads records by one exchange, and deletes those that are broken. */
static bool read_all(mt_remote_store *r, mt_remote_store_want *want, size_t count, mt_error *err)
{
    const uint64_t until = mt_clock_ns() + READ_NS;
    mt_wire_reply reply;
    bool broken[MT_REMOTE_STORE_BATCH] = {0};
    size_t deleted = 0;
    if (!connect_to(r, &r->reader, until, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!add_get(r->reader, want[i].key, size_of(r, want[i].part, want[i].parts), err))
            return false;
    if (!mt_wire_send(r->reader, until, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        mt_error why = {0};
        if (!next(r->reader, &reply, "GETRANGE", MT_WIRE_BYTES, size_of(r, want[i].part, want[i].parts), until, err))
            return false;
        want[i].ok = read_value(r, &want[i], (const uint8_t *)reply.data, reply.len, &why);
        broken[i] = !want[i].ok;
        note_read(r, &want[i], &reply, &why);
    }
    for (size_t i = 0; i < count; i++) {
        if (broken[i] && !add(r->reader, "DEL", want[i].key, NULL, 0, err))
            return false;
        deleted += broken[i];
    }
    if (deleted > 0 && !mt_wire_send(r->reader, until, err))
        return false;
    for (; deleted > 0; deleted--)
        if (!mt_wire_expect(r->reader, &reply, "DEL", MT_WIRE_NUMBER, 0, until, err))
            return false;
    return true;
}

void mt_remote_store_read(mt_remote_store *r, mt_remote_store_want *want, size_t count)
{
    mt_error err = {0};
    for (size_t i = 0; i < count; i++)
        want[i].ok = false;
    pthread_mutex_lock(&r->reading);
    if (count > 0 && count <= MT_REMOTE_STORE_BATCH && mt_remote_store_is_there(r)) {
        if (read_all(r, want, count, &err))
            note_success(r);
        else
            note_failure(r, &r->reader, &err);
    }
    pthread_mutex_unlock(&r->reading);
}

/* ---- writing ---- */

void mt_remote_store_write(mt_remote_store *r, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                           size_t parts)
{
    const size_t size = size_of(r, part, parts);
    if (!mt_remote_store_lacks(r, key))
        return;
    pthread_mutex_lock(&r->lock);
    const bool fits = r->stats.queued + size <= r->queue_most;
    r->stats.queued += fits ? size : 0;
    r->stats.dropped += !fits;
    pthread_mutex_unlock(&r->lock);
    if (!fits)
        return;
    item *x = mt_alloc(sizeof(*x) + size);
    memcpy(x->key, key, MT_TIER_KEY);
    x->size = size;
    mt_record_write(x->data, key, kind, part, parts, 0);
    uint8_t *to = x->data + MT_RECORD_HEADER;
    for (size_t i = 0; i < parts; to += part[i++].size)
        memcpy(to, part[i].data, part[i].size);
    const bool ok = !r->secret || sign(r, x->data, size - TAG, to);
    pthread_mutex_lock(&r->lock);
    if (ok) {
        *r->last = x;
        r->last = &x->next;
        pthread_cond_signal(&r->given);
    } else {
        r->stats.queued -= size;
        r->stats.dropped++;
        mt_free(x);
    }
    pthread_mutex_unlock(&r->lock);
}

/* Takes the next few records from the queue; call with the lock held. */
static size_t next_items(mt_remote_store *r, item *some[SENT_TOGETHER])
{
    size_t count = 0;
    for (; count < SENT_TOGETHER && r->first; count++) {
        some[count] = r->first;
        r->first = r->first->next;
    }
    if (!r->first)
        r->last = &r->first;
    return count;
}

static void note_written(mt_remote_store *r, const item *x, const mt_wire_reply *reply)
{
    const bool ok = reply->kind == MT_WIRE_STATUS;
    pthread_mutex_lock(&r->lock);
    r->stats.written += ok;
    r->stats.sent += ok ? x->size : 0;
    r->stats.refused += !ok;
    if (!ok)
        r->refused_until = mt_clock_ns() + PAUSE_NS;
    pthread_mutex_unlock(&r->lock);
    if (ok)
        learn(r, x->key, true);
    else {
        mt_error err = {0};
        (void)!mt_fail(&err, MT_E_UNSUPPORTED, "the store refuses: %.120s", reply->data);
        tell(r, err.text);
    }
}

/* Sends some records; what another server has sent meanwhile is not sent again. */
static bool send_some(mt_remote_store *r, item *const some[], size_t count, mt_error *err)
{
    const uint64_t until = mt_clock_ns() + WRITE_NS;
    const uint8_t *key[SENT_TOGETHER];
    bool there[SENT_TOGETHER];
    mt_wire_reply reply;
    for (size_t i = 0; i < count; i++)
        key[i] = some[i]->key;
    if (!connect_to(r, &r->writer, until, err) || !exist(r->writer, key, count, there, until, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!there[i] && !add(r->writer, "SET", key[i], some[i]->data, some[i]->size, err))
            return false;
    if (!mt_wire_send(r->writer, until, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (there[i])
            learn(r, key[i], true);
        else if (!mt_wire_expect(r->writer, &reply, "SET", MT_WIRE_STATUS, 0, until, err))
            return false;
        else
            note_written(r, some[i], &reply);
    }
    return true;
}

static void sleep_ns(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / (1000 * MS)), .tv_nsec = (long)(ns % (1000 * MS))};
    nanosleep(&time, NULL);
}

/* Sleeps so that no more bytes a second are sent than allowed. */
static void keep_rate(const mt_remote_store *r, uint64_t bytes, uint64_t began)
{
    const uint64_t took = mt_clock_ns() - began;
    const uint64_t due = r->rate ? (uint64_t)((double)bytes / (double)r->rate * 1e9) : 0;
    if (due > took)
        sleep_ns(due - took);
}

/* Resolves the name of the host, when the pause after a failure is over; call with the lock held, which is released
   meanwhile. */
static void resolve(mt_remote_store *r)
{
    const uint64_t now = mt_clock_ns();
    mt_wire_address found;
    mt_error err = {0};
    if (now < r->again) {
        const struct timespec until = mt_clock_deadline((int)((r->again - now) / MS) + 1);
        pthread_cond_timedwait(&r->given, &r->lock, &until);
        return;
    }
    pthread_mutex_unlock(&r->lock);
    const bool ok = mt_wire_resolve(&found, &r->given_address, &err);
    if (!ok)
        note_failure(r, &r->writer, &err);
    pthread_mutex_lock(&r->lock);
    if (ok)
        r->address = found;
}

/* The writing thread: sends what is in the queue until the end. */
static void *write_all(void *arg)
{
    mt_remote_store *r = arg;
    item *some[SENT_TOGETHER];
    pthread_mutex_lock(&r->lock);
    for (;;) {
        if (!r->address.host[0] && !r->ending) {
            resolve(r);
            continue;
        }
        const size_t count = next_items(r, some);
        if (count == 0 && r->ending)
            break;
        if (count == 0) {
            pthread_cond_wait(&r->given, &r->lock);
            continue;
        }
        const bool goes = is_up(r) && mt_clock_ns() >= r->refused_until;
        pthread_mutex_unlock(&r->lock);
        const uint64_t began = mt_clock_ns();
        uint64_t bytes = 0;
        mt_error err = {0};
        const bool ok = goes && send_some(r, some, count, &err);
        if (ok)
            note_success(r);
        else if (goes)
            note_failure(r, &r->writer, &err);
        for (size_t i = 0; i < count; i++) {
            bytes += some[i]->size;
            mt_free(some[i]);
        }
        if (ok)
            keep_rate(r, bytes, began);
        pthread_mutex_lock(&r->lock);
        r->stats.queued -= bytes;
        r->stats.dropped += ok ? 0 : count;
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- beginning and end ---- */

mt_remote_store *mt_remote_store_open(const mt_remote_store_params *params, mt_error *err)
{
    mt_remote_store *r = mt_alloc(sizeof(*r));
    uint8_t number[sizeof(struct in6_addr)];
    if (!mt_wire_address_read(&r->given_address, params->url, err)) {
        mt_free(r);
        return NULL;
    }
    r->named = inet_pton(AF_INET, r->given_address.host, number) != 1 &&
               inet_pton(AF_INET6, r->given_address.host, number) != 1;
    r->address = r->named ? (mt_wire_address){0} : r->given_address;
    r->queue_most = params->queue;
    r->rate = params->rate;
    r->last = &r->first;
    r->known = mt_alloc_array(SLOTS, sizeof(*r->known));
    if (params->secret) {
        r->secret = mt_alloc(params->secret_len + 1);
        memcpy(r->secret, params->secret, params->secret_len);
        r->secret_len = params->secret_len;
    }
    pthread_mutex_init(&r->reading, NULL);
    pthread_mutex_init(&r->lock, NULL);
    mt_clock_cond_init(&r->given);
    if (pthread_create(&r->thread, NULL, write_all, r) == 0)
        return r;
    r->ending = true;
    mt_fail(err, MT_E_IO, "a thread for the shared store cannot be started; raise the limit (ulimit -u)");
    pthread_mutex_destroy(&r->reading);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->given);
    mt_free(r->known);
    mt_free(r->secret);
    mt_free(r);
    return NULL;
}

/* Waits until the queue is empty, at most FINISH_NS; drops what is left. */
static void drain(mt_remote_store *r)
{
    const uint64_t until = mt_clock_ns() + FINISH_NS;
    while (mt_remote_store_look(r).queued > 0 && mt_clock_ns() < until)
        sleep_ns(MS);
    pthread_mutex_lock(&r->lock);
    while (r->first) {
        item *x = r->first;
        r->first = x->next;
        r->stats.queued -= x->size;
        mt_free(x);
    }
    r->last = &r->first;
    r->ending = true;
    pthread_cond_signal(&r->given);
    pthread_mutex_unlock(&r->lock);
}

void mt_remote_store_close(mt_remote_store *r)
{
    if (!r)
        return;
    drain(r);
    pthread_join(r->thread, NULL);
    mt_wire_close(r->reader);
    mt_wire_close(r->writer);
    pthread_mutex_destroy(&r->reading);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->given);
    mt_free(r->known);
    if (r->secret)
        OPENSSL_cleanse(r->secret, r->secret_len);
    mt_free(r->secret);
    mt_free(r);
}

mt_remote_store_stats mt_remote_store_look(mt_remote_store *r)
{
    pthread_mutex_lock(&r->lock);
    const mt_remote_store_stats stats = r->stats;
    pthread_mutex_unlock(&r->lock);
    return stats;
}
