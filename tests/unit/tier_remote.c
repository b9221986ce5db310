/* A store that lies, cuts its answers short, or never stops: what it says counts only where it is what was written, and
   nobody waits for the rest. The store is a thread that says what it is told to, whatever it is asked. */
#include "unit.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/clock.h"
#include "tier/remote.h"
#include "tier/wire.h"

enum { TAG = 32, PART = 100, LARGEST = 1 << 20 };
#define SECRET "a secret of the fleet"
#define SOON (mt_clock_ns() + UINT64_C(60000000000)) /* comes only where something hangs */

/* ---- the store ---- */

typedef struct store {
    int listens, port;
    uint8_t said[4096];
    size_t len;
    bool forever; /* what it has said it says again, until nobody listens */
    bool open;    /* and when it has said it, it does not hang up */
    bool shy;     /* it says nothing until it is asked to (speaks) */
    atomic_bool called, speaks;
    char heard[65536];
    size_t heard_len;
    pthread_t thread;
} store;

static void *answer(void *arg)
{
    store *s = arg;
    const int peer = accept(s->listens, NULL, NULL);
    atomic_store(&s->called, true);
    while (s->shy && !atomic_load(&s->speaks))
        usleep(100);
    bool told = send(peer, s->said, s->len, MSG_NOSIGNAL) == (ssize_t)s->len;
    while (told && s->forever)
        told = send(peer, s->said, s->len, MSG_NOSIGNAL) > 0;
    if (!s->open)
        shutdown(peer, SHUT_WR);
    for (ssize_t n; (n = read(peer, s->heard + s->heard_len, sizeof(s->heard) - 1 - s->heard_len)) > 0;)
        s->heard_len += (size_t)n;
    s->heard[s->heard_len] = '\0';
    close(peer);
    return NULL;
}

static void store_begin(store *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    s->listens = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(s->listens >= 0 && bind(s->listens, (struct sockaddr *)&at, sizeof(at)) == 0);
    assert_true(listen(s->listens, 4) == 0 && getsockname(s->listens, (struct sockaddr *)&at, &size) == 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, answer, s), 0);
}

static void store_end(store *s)
{
    pthread_join(s->thread, NULL);
    close(s->listens);
}

static void say(store *s, const void *data, size_t len)
{
    assert_true(s->len + len <= sizeof(s->said));
    memcpy(s->said + s->len, data, len);
    s->len += len;
}

static void say_text(store *s, const char *text)
{
    say(s, text, strlen(text));
}

/* ---- replies ---- */

static mt_wire *reach(store *s)
{
    mt_wire_address a = {.host = "127.0.0.1"};
    mt_error err = {0};
    store_begin(s);
    a.port = s->port;
    mt_wire *w = mt_wire_open(&a, SOON, &err);
    assert_non_null(w);
    return w;
}

static void leave(store *s, mt_wire *w)
{
    mt_wire_close(w);
    store_end(s);
}

static void replies_of_each_kind_are_understood(void **state)
{
    static const mt_wire_kind kinds[] = {MT_WIRE_NUMBER, MT_WIRE_STATUS, MT_WIRE_ERROR, MT_WIRE_BYTES, MT_WIRE_NONE};
    store s = {0};
    mt_wire_reply reply;
    mt_error err = {0};
    (void)state;
    say_text(&s, ":-12\r\n+OK\r\n-ERR no\r\n$5\r\nab\r\nc\r\n$-1\r\n");
    mt_wire *w = reach(&s);
    for (size_t i = 0; i < 5; i++) {
        assert_true(mt_wire_next(w, &reply, 5, SOON, &err));
        assert_int_equal(reply.kind, kinds[i]);
        assert_true(i != 0 || reply.number == -12);
        assert_true(i != 2 || strcmp(reply.data, "ERR no") == 0);
        assert_true(i != 3 || (reply.len == 5 && memcmp(reply.data, "ab\r\nc", 5) == 0));
    }
    assert_false(mt_wire_next(w, &reply, 5, SOON, &err));
    leave(&s, w);
}

/* What is said of the first reply of a store that says that. */
static void expect_refusal(store *s, const char *sentence)
{
    mt_wire_reply reply;
    mt_error err = {0};
    mt_wire *w = reach(s);
    assert_false(mt_wire_next(w, &reply, 100, s->open ? mt_clock_ns() + UINT64_C(20000000) : SOON, &err));
    if (!strstr(err.text, sentence))
        fail_msg("\"%s\" is not about \"%s\"", err.text, sentence);
    leave(s, w);
}

static void what_is_no_reply_is_refused(void **state)
{
    static const struct {
        const char *said, *sentence;
    } arrays[] = {{"*2000000000\r\n",
                   "out of step: a reply was expected, and an array came: \"*2000000000\\x0d\\x0a\""},
                  {"*1\r\n:1\r\n", "an array came"},
                  {"%1\r\n", "a map came"},
                  {"~1\r\n", "a set came"},
                  {"#t\r\n", "a boolean came"},
                  {"_\r\n", "a null of RESP3 came"},
                  {",1\r\n", "a floating-point number came"},
                  {">1\r\n", "a push message came"},
                  {"HTTP/1.1 400 Bad Request\r\n\r\n", "bytes of no type came: \"HTTP/1.1 400 Bad Request"},
                  {"\"\\\xff\r\n", "bytes of no type came: \"\\x22\\x5c\\xff\\x0d\\x0a\""}},
      broken[] = {{":\r\n", "out of step: "},
                  {":1x\r\n", "out of step: Bad integer value"},
                  {"$x\r\n", "out of step: Bad bulk string length"},
                  {"$-5\r\n", "out of step: Bulk string length out of range"},
                  {":99999999999999999999999\r\n", "out of step: "}};
    static const char *const cut[] = {"", "$10\r\nabc", ":1", "+OK\r", "$"};
    (void)state;
    for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++) {
        store s = {0};
        say_text(&s, arrays[i].said);
        expect_refusal(&s, arrays[i].sentence);
    }
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
        store s = {0};
        say_text(&s, broken[i].said);
        expect_refusal(&s, broken[i].sentence);
    }
    for (size_t i = 0; i < sizeof(cut) / sizeof(*cut); i++) {
        store s = {0};
        say_text(&s, cut[i]);
        expect_refusal(&s, "closed");
    }
}

static void one_that_never_stops_is_left(void **state)
{
    store s = {.forever = true};
    (void)state;
    say_text(&s, "$500000000\r\n");
    for (int i = 0; i < 100; i++)
        say_text(&s, "0123456789012345678901234567890123456789");
    expect_refusal(&s, "at most 100 bytes was expected, and ");
    store line = {.forever = true}; /* a status that has no end */
    say_text(&line, "+OKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOK");
    expect_refusal(&line, "at most 100 bytes was expected, and ");
}

static void one_that_stops_in_the_middle_is_left(void **state)
{
    store s = {.open = true};
    (void)state;
    say_text(&s, "$10\r\nabc");
    expect_refusal(&s, "in time");
}

static void who_may_not_come_in_is_told(void **state)
{
    store s = {0};
    mt_wire_address a = {.host = "127.0.0.1", .user = "me", .password = "word", .database = 3};
    mt_error err = {0};
    (void)state;
    say_text(&s, "+OK\r\n-ERR no such database\r\n");
    store_begin(&s);
    a.port = s.port;
    assert_null(mt_wire_open(&a, SOON, &err));
    assert_non_null(strstr(err.text, "no such database"));
    store_end(&s);
    assert_non_null(strstr(s.heard, "AUTH\r\n$2\r\nme\r\n$4\r\nword\r\n"));
    assert_non_null(strstr(s.heard, "SELECT\r\n$1\r\n3\r\n"));
    for (size_t i = 0; i < 2; i++) { /* a wrong password, alone and with a name */
        store strict = {0};
        say_text(&strict, "-ERR wrong\r\n");
        store_begin(&strict);
        a = (mt_wire_address){.host = "127.0.0.1", .port = strict.port, .password = "word"};
        snprintf(a.user, sizeof(a.user), "%s", i ? "me" : "");
        assert_null(mt_wire_open(&a, SOON, &err));
        assert_non_null(strstr(err.text, "refuses: ERR wrong"));
        store_end(&strict);
    }
}

static void where_nobody_listens_there_is_no_store(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    mt_error err = {0};
    const int taken = socket(AF_INET, SOCK_STREAM, 0); /* so that nobody else gets the port */
    (void)state;
    assert_true(taken >= 0 && bind(taken, (struct sockaddr *)&at, sizeof(at)) == 0);
    assert_int_equal(getsockname(taken, (struct sockaddr *)&at, &size), 0);
    const mt_wire_address a = {.host = "127.0.0.1", .port = ntohs(at.sin_port)};
    assert_null(mt_wire_open(&a, SOON, &err));
    assert_non_null(strstr(err.text, "cannot be reached"));
    close(taken);
    assert_null(mt_remote_store_open(&(mt_remote_store_params){.url = "http://127.0.0.1"}, &err));
    assert_non_null(strstr(err.text, "redis://"));
}

static void addresses_are_read_or_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "redis://",
                                      "http://a",
                                      "rediss://a",
                                      "redis://a:",
                                      "redis://a:65536",
                                      "redis://a:1x",
                                      "redis://a:4294973675",
                                      "redis://a/x",
                                      "redis://a/9999999999",
                                      "redis://[::1",
                                      "redis://%zz@a",
                                      "redis://:%4@a",
                                      "redis://a:1/2/3"};
    mt_wire_address a;
    mt_error err = {0};
    char longer[600];
    (void)state;
    assert_true(mt_wire_address_read(&a, "redis://me:a%3Ab%40c@[::1]:77/9", &err));
    assert_string_equal(a.user, "me");
    assert_string_equal(a.password, "a:b@c");
    assert_string_equal(a.host, "::1");
    assert_true(a.port == 77 && a.database == 9);
    assert_true(mt_wire_address_read(&a, "redis://word@host/", &err));
    assert_string_equal(a.password, "word");
    assert_true(a.user[0] == '\0' && a.port == 6379 && a.database == 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(mt_wire_address_read(&a, bad[i], &err));
    for (size_t i = 0; i < 3; i++) { /* a host, a user, a password that are too long */
        memset(longer, 'x', sizeof(longer));
        memcpy(longer, "redis://", 8);
        snprintf(longer + 500, sizeof(longer) - 500, "%s", i == 0 ? "" : i == 1 ? ":p@a" : "@a");
        assert_false(mt_wire_address_read(&a, longer, &err));
    }
}

/* ---- records ---- */

typedef struct sample {
    uint8_t key[MT_TIER_KEY], a[PART], b[7], value[MT_RECORD_HEADER + PART + 7 + TAG];
    size_t len;
} sample;

static void make(sample *x, uint8_t seed, bool sealed)
{
    memset(x, seed, sizeof(*x));
    const mt_tier_part part[] = {{x->a, sizeof(x->a)}, {x->b, sizeof(x->b)}};
    mt_record_write(x->value, x->key, 5, part, 2, 0);
    memcpy(x->value + MT_RECORD_HEADER, x->a, sizeof(x->a));
    memcpy(x->value + MT_RECORD_HEADER + sizeof(x->a), x->b, sizeof(x->b));
    x->len = sizeof(x->value) - TAG;
    if (sealed)
        HMAC(EVP_sha256(), SECRET, sizeof(SECRET) - 1, x->value, x->len, x->value + x->len, NULL);
    x->len += sealed ? TAG : 0;
}

static void say_value(store *s, const void *data, size_t len)
{
    char head[32];
    snprintf(head, sizeof(head), "$%zu\r\n", len);
    say_text(s, head);
    say(s, data, len);
    say_text(s, "\r\n");
}

static uint64_t failed(const mt_remote_store_stats *stats)
{
    uint64_t count = 0;
    for (size_t i = 0; i < MT_REMOTE_STORE_FAILURES; i++)
        count += stats->failures[i];
    return count;
}

static uint64_t failed_at(mt_remote_store *d)
{
    const mt_remote_store_stats stats = mt_remote_store_look(d);
    return failed(&stats);
}

/* Whether a server that wants x takes it from the store, which then has it deleted or not. */
static bool taken(store *s, const sample *x, bool sealed, mt_remote_store_stats *stats)
{
    char url[64];
    uint8_t a[PART] = {0}, b[7] = {0};
    mt_error err = {0};
    mt_tier_part part[] = {{a, sizeof(a)}, {b, sizeof(b)}};
    mt_remote_store_want want = {.key = x->key, .kind = 5, .part = part, .parts = 2};
    store_begin(s);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", s->port);
    const mt_remote_store_params params = {
        .url = url, .secret = sealed ? SECRET : NULL, .secret_len = sizeof(SECRET) - 1, .queue = LARGEST};
    mt_remote_store *d = mt_remote_store_open(&params, &err);
    assert_non_null(d);
    mt_remote_store_read(d, &want, 1);
    *stats = mt_remote_store_look(d);
    mt_remote_store_close(d);
    store_end(s);
    assert_true(!want.ok || (memcmp(a, x->a, sizeof(a)) == 0 && memcmp(b, x->b, sizeof(b)) == 0));
    assert_true(stats->read == want.ok && stats->missed + failed(stats) >= !want.ok);
    return want.ok;
}

static bool taken_as(const sample *x, bool sealed, const void *value, size_t len)
{
    store s;
    mt_remote_store_stats stats;
    bool ok;
    int tries = 0;
    do { /* a machine may be so busy that two seconds go by */
        s = (store){0};
        say_value(&s, value, len);
        say_text(&s, ":1\r\n");
        ok = taken(&s, x, sealed, &stats);
    } while (failed(&stats) > 0 && ++tries < 10);
    assert_int_equal(stats.broken, !ok && len > 0);
    assert_int_equal(strstr(s.heard, "$3\r\nDEL\r\n") != NULL, !ok);
    assert_int_equal(failed(&stats), 0);
    return ok;
}

static void a_record_counts_when_all_of_it_is_right(void **state)
{
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        sample x, other;
        uint8_t value[sizeof(x.value) + 1] = {0};
        make(&x, 1, sealed);
        make(&other, 2, sealed);
        assert_true(taken_as(&x, sealed, x.value, x.len));
        assert_false(taken_as(&x, sealed, other.value, other.len));
        assert_false(taken_as(&x, sealed, "", 0));
        memcpy(value, x.value, x.len);
        assert_false(taken_as(&x, sealed, value, x.len - 1));
        assert_false(taken_as(&x, sealed, value, x.len + 1));
        for (size_t at = 0; at < x.len; at += at == 4 ? 4 : 23) { /* of magic, version, kind, ... parts, tag */
            value[at] ^= 1;
            assert_false(taken_as(&x, sealed, value, x.len));
            value[at] ^= 1;
        }
        assert_true(taken_as(&x, sealed, value, x.len));
    }
}

/* Who cannot sign can have the sums right, and no more. */
static void a_forged_record_does_not_count_where_there_is_a_secret(void **state)
{
    sample x, forged;
    (void)state;
    make(&x, 1, false);
    make(&forged, 1, true);
    memset(forged.a, 9, sizeof(forged.a));
    const mt_tier_part part[] = {{forged.a, sizeof(forged.a)}, {forged.b, sizeof(forged.b)}};
    mt_record_write(forged.value, forged.key, 5, part, 2, 0);
    memcpy(forged.value + MT_RECORD_HEADER, forged.a, sizeof(forged.a));
    assert_false(taken_as(&forged, true, forged.value, forged.len));
    assert_true(taken_as(&forged, false, forged.value, forged.len - TAG));
    assert_false(taken_as(&x, true, x.value, x.len)); /* and one without a signature is none */
}

static void a_store_that_says_anything_else_is_left(void **state)
{
    static const struct {
        const char *said;
        mt_remote_store_failure reason;
    } rows[] = {{"*3\r\n", MT_REMOTE_STORE_OUT_OF_STEP}, {"$99999\r\nabc", MT_REMOTE_STORE_GONE},
                {"-ERR\r\n", MT_REMOTE_STORE_REFUSES},   {"junk", MT_REMOTE_STORE_OUT_OF_STEP},
                {"$3\r\nabc", MT_REMOTE_STORE_GONE},     {"", MT_REMOTE_STORE_GONE},
                {":1\r\n", MT_REMOTE_STORE_OUT_OF_STEP}, {"+OK\r\n", MT_REMOTE_STORE_OUT_OF_STEP},
                {"$-1\r\n", MT_REMOTE_STORE_OUT_OF_STEP}};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        store s = {0};
        sample x;
        mt_remote_store_stats stats;
        make(&x, 1, false);
        say_text(&s, rows[i].said);
        assert_false(taken(&s, &x, false, &stats));
        assert_int_equal(failed(&stats), 1);
        assert_true(stats.failures[rows[i].reason] == 1 ||
                    stats.failures[MT_REMOTE_STORE_LATE] == 1); /* on a busy machine */
        assert_false(stats.up);
    }
}

static void read_one(void *arg)
{
    sample x;
    mt_remote_store_stats stats;
    make(&x, 1, true);
    (void)!taken(arg, &x, true, &stats);
}

/* The line of the log has what was expected and what came. */
static void the_log_says_why(void **state)
{
    static const struct {
        const char *said, *sentence;
    } rows[] = {
        {":1\r\n", "out of step: GETRANGE expects bytes, and a number came"},
        {"+OK\r\n", "out of step: GETRANGE expects bytes, and a status came"},
        {"*1\r\n$1\r\nx\r\n", "out of step: a reply was expected, and an array came: \"*1\\x0d\\x0a$1"},
        {"$x\r\n", "out of step: Bad bulk string length"},
        {"-WRONGTYPE of a list\r\n", "the store refuses: WRONGTYPE of a list"},
        {"$3\r\nabc\r\n:1\r\n", "bytes were expected, and 3 came; it is deleted"},
        {"", "Server closed the connection"},
    };
    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        char text[4096];
        int tries = 0;
        do { /* a machine may be so busy that two seconds go by */
            store s = {0};
            say_text(&s, rows[i].said);
            assert_int_equal(unit_in_child(read_one, &s, text, sizeof(text)), 0);
        } while (strstr(text, "in time") && ++tries < 10);
        if (!strstr(text, "warn  cache.remote ") || !strstr(text, rows[i].sentence))
            fail_msg("\"%s\" does not say \"%s\"", text, rows[i].sentence);
    }
}

/* What became of a record that is to be written to a store that says that. */
static mt_remote_store_stats written_to(store *s, const sample *x, uint64_t queue)
{
    char url[64];
    mt_error err = {0};
    const mt_tier_part part[] = {{(void *)x->a, sizeof(x->a)}, {(void *)x->b, sizeof(x->b)}};
    store_begin(s);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", s->port);
    const mt_remote_store_params params = {
        .url = url, .secret = SECRET, .secret_len = sizeof(SECRET) - 1, .queue = queue, .rate = LARGEST};
    mt_remote_store *d = mt_remote_store_open(&params, &err);
    assert_non_null(d);
    mt_remote_store_write(d, x->key, 5, part, 2);
    while (mt_remote_store_look(d).queued > 0)
        usleep(1000);
    const mt_remote_store_stats stats = mt_remote_store_look(d);
    assert_int_equal(mt_remote_store_has(d, x->key), failed(&stats) + stats.refused + stats.dropped == 0);
    mt_remote_store_close(d);
    if (failed(&stats) + stats.written + stats.refused == 0) /* nobody has come: somebody must */
        shutdown(s->listens, SHUT_RDWR);
    store_end(s);
    return stats;
}

static void what_is_written_is_signed_and_counted(void **state)
{
    sample x;
    (void)state;
    make(&x, 1, true);
    store takes = {0}, has = {0}, full = {0}, gone = {0}, odd = {0}, many = {0}, small = {0};
    say_text(&takes, ":0\r\n+OK\r\n");
    mt_remote_store_stats stats = written_to(&takes, &x, LARGEST);
    assert_true(failed(&stats) > 0 || (stats.written == 1 && stats.sent == x.len)); /* or the machine was too busy */
    assert_true(failed(&stats) > 0 || memmem(takes.heard, takes.heard_len, x.value, x.len));
    say_text(&has, ":1\r\n"); /* another server was faster */
    stats = written_to(&has, &x, LARGEST);
    assert_true(failed(&stats) > 0 || (stats.written == 0 && stats.sent == 0 && stats.dropped == 0));
    say_text(&odd, ":0\r\n:1\r\n"); /* which is no reply to SET */
    stats = written_to(&odd, &x, LARGEST);
    assert_true(stats.written + stats.refused == 0);
    assert_int_equal(stats.failures[MT_REMOTE_STORE_OUT_OF_STEP] + stats.failures[MT_REMOTE_STORE_LATE], 1);
    say_text(&many, ":2\r\n"); /* nor to EXISTS */
    stats = written_to(&many, &x, LARGEST);
    assert_int_equal(stats.failures[MT_REMOTE_STORE_OUT_OF_STEP] + stats.failures[MT_REMOTE_STORE_LATE], 1);
    say_text(&full, ":0\r\n-OOM\r\n");
    stats = written_to(&full, &x, LARGEST);
    assert_true(stats.written == 0 && stats.refused + failed(&stats) == 1);
    say_text(&gone, ":0\r\n");
    stats = written_to(&gone, &x, LARGEST);
    assert_int_equal(stats.failures[MT_REMOTE_STORE_GONE] + stats.failures[MT_REMOTE_STORE_LATE], 1);
    assert_true(stats.written == 0 && failed(&stats) == 1 && stats.dropped == 1);
    stats = written_to(&small, &x, 10);
    assert_true(stats.dropped == 1 && stats.queued == 0);
}

/* ---- pauses; the clock stands unless a test moves it ---- */

#define START UINT64_C(1000000000000000)
#define MS UINT64_C(1000000)

/* A port of this machine at which nobody listens yet. */
static int take_port(store *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    s->listens = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(s->listens >= 0 && bind(s->listens, (struct sockaddr *)&at, sizeof(at)) == 0);
    assert_int_equal(getsockname(s->listens, (struct sockaddr *)&at, &size), 0);
    return s->port = ntohs(at.sin_port);
}

static mt_remote_store *open_remote(int port)
{
    char url[64];
    mt_error err = {0};
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    mt_remote_store *d =
        mt_remote_store_open(&(mt_remote_store_params){.url = url, .queue = LARGEST, .rate = LARGEST}, &err);
    assert_non_null(d);
    return d;
}

/* Asks at `now`, which fails, and says whether the remote store is left alone for exactly `pause` from then on. */
static bool is_left_for(mt_remote_store *d, uint64_t now, uint64_t pause)
{
    static const uint8_t key[1][MT_TIER_KEY] = {{1}};
    const uint64_t before = failed_at(d);
    mt_clock_set(now);
    mt_remote_store_ask(d, key, 1);
    assert_int_equal(failed_at(d), before + 1);
    mt_clock_set(now + pause - 1);
    const bool left = !mt_remote_store_is_there(d) && !mt_remote_store_lacks(d, key[0]);
    mt_remote_store_ask(d, key, 1);
    assert_int_equal(failed_at(d), before + 1); /* which was not tried */
    mt_clock_set(now + pause);
    return left && mt_remote_store_is_there(d) && mt_remote_store_lacks(d, key[0]);
}

/* After a failure nothing is tried for a tenth of a second, after each further one for twice as long, up to half a
   minute; after a success it begins anew. */
static void pauses_double(void **state)
{
    static const uint64_t pauses[] = {100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    static const uint8_t known[1][MT_TIER_KEY] = {{2}};
    store s = {0};
    uint64_t now = START;
    (void)state;
    mt_clock_set(now);
    mt_remote_store *d = open_remote(take_port(&s));
    for (size_t i = 0; i < MT_COUNT(pauses); now += pauses[i++] * MS)
        assert_true(is_left_for(d, now, pauses[i] * MS));
    say_text(&s, ":1\r\n"); /* and hangs up */
    assert_int_equal(listen(s.listens, 4), 0);
    assert_int_equal(pthread_create(&s.thread, NULL, answer, &s), 0);
    mt_remote_store_ask(d, known, 1);
    assert_true(mt_remote_store_has(d, known[0]) && mt_remote_store_look(d).up);
    assert_true(is_left_for(d, now, 100 * MS));
    assert_false(mt_remote_store_look(d).up);
    mt_remote_store_close(d);
    store_end(&s);
    mt_clock_set(0);
}

static void write_some(mt_remote_store *d, uint8_t first, uint8_t count)
{
    for (uint8_t i = 0; i < count; i++) {
        sample x;
        make(&x, (uint8_t)(first + i), false);
        mt_remote_store_write(d, x.key, 5, (const mt_tier_part[]){{x.a, sizeof(x.a)}, {x.b, sizeof(x.b)}}, 2);
    }
}

/* A store that refuses a record gets no other for a second, not even those that wait in the queue; it is read and asked
   meanwhile. */
static void who_refuses_is_not_written_for_a_while(void **state)
{
    store s = {.shy = true};
    uint8_t other[MT_TIER_KEY] = {99};
    (void)state;
    mt_clock_set(START);
    say_text(&s, ":0\r\n-OOM\r\n");
    store_begin(&s);
    mt_remote_store *d = open_remote(s.port);
    write_some(d, 1, 1);
    while (!atomic_load(&s.called)) /* the first is on its way */
        usleep(100);
    write_some(d, 2, 8);
    atomic_store(&s.speaks, true);
    while (mt_remote_store_look(d).queued > 0)
        usleep(100);
    mt_remote_store_stats stats = mt_remote_store_look(d);
    assert_true(stats.refused == 1 && stats.dropped == 8 && stats.written == 0 && failed(&stats) == 0);
    mt_clock_set(START + 1000 * MS - 1);
    assert_true(mt_remote_store_is_there(d) && !mt_remote_store_lacks(d, other));
    write_some(d, 20, 1);
    stats = mt_remote_store_look(d);
    assert_true(stats.queued == 0 && stats.dropped == 8);
    mt_clock_set(START + 1000 * MS);
    assert_true(mt_remote_store_lacks(d, other));
    mt_remote_store_close(d);
    store_end(&s);
    mt_clock_set(0);
}

static void fail_often(void *arg)
{
    static const uint64_t seconds[] = {0, 59, 60, 119};
    static const uint8_t key[1][MT_TIER_KEY] = {{1}};
    mt_remote_store *d = open_remote(*(int *)arg);
    for (size_t i = 0; i < MT_COUNT(seconds); i++) {
        mt_clock_set(START + seconds[i] * 1000 * MS);
        mt_remote_store_ask(d, key, 1);
    }
    mt_remote_store_close(d);
}

/* A store that is away for long is a line of the log a minute. */
static void the_log_says_it_once_a_minute(void **state)
{
    char text[4096], *at = text;
    store s = {0};
    size_t lines = 0;
    (void)state;
    take_port(&s);
    assert_int_equal(unit_in_child(fail_often, &s.port, text, sizeof(text)), 0);
    for (; (at = strstr(at, "warn  cache.remote ")); at++)
        lines++;
    assert_int_equal(lines, 2);
    close(s.listens);
}

/* ---- names ---- */

static atomic_bool resolves; /* the system's resolver answers */

/* Before the C library's: "store.example" is this machine, once the resolver answers. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    const bool ours = strcmp(name, "store.example") == 0;
    memcpy(&next, &symbol, sizeof(next)); /* C has no other way from one kind of pointer to the other */
    while (ours && !atomic_load(&resolves))
        usleep(1000);
    return next(ours ? "127.0.0.1" : name, service, hints, found);
}

static void nobody_waits_for_a_name(void **state)
{
    store s = {.open = true};
    const uint8_t key[1][MT_TIER_KEY] = {{1}};
    char url[64];
    mt_error err = {0};
    (void)state;
    say_text(&s, ":1\r\n");
    store_begin(&s);
    snprintf(url, sizeof(url), "redis://store.example:%d", s.port);
    mt_remote_store *d = mt_remote_store_open(&(mt_remote_store_params){.url = url, .queue = LARGEST}, &err);
    assert_non_null(d);
    mt_remote_store_ask(d, key, 1); /* which would not come back */
    assert_false(mt_remote_store_is_there(d) || mt_remote_store_has(d, key[0]) || mt_remote_store_lacks(d, key[0]));
    atomic_store(&resolves, true);
    while (!mt_remote_store_is_there(d))
        usleep(1000);
    mt_remote_store_ask(d, key, 1);
    assert_true(mt_remote_store_has(d, key[0]) || failed_at(d) > 0); /* or the machine was too busy */
    mt_remote_store_close(d);
    store_end(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(replies_of_each_kind_are_understood),
    cmocka_unit_test(what_is_no_reply_is_refused),
    cmocka_unit_test(one_that_never_stops_is_left),
    cmocka_unit_test(one_that_stops_in_the_middle_is_left),
    cmocka_unit_test(who_may_not_come_in_is_told),
    cmocka_unit_test(where_nobody_listens_there_is_no_store),
    cmocka_unit_test(addresses_are_read_or_refused),
    cmocka_unit_test(nobody_waits_for_a_name),
    cmocka_unit_test(a_record_counts_when_all_of_it_is_right),
    cmocka_unit_test(a_forged_record_does_not_count_where_there_is_a_secret),
    cmocka_unit_test(a_store_that_says_anything_else_is_left),
    cmocka_unit_test(the_log_says_why),
    cmocka_unit_test(what_is_written_is_signed_and_counted),
    cmocka_unit_test(pauses_double),
    cmocka_unit_test(who_refuses_is_not_written_for_a_while),
    cmocka_unit_test(the_log_says_it_once_a_minute),
};
UNIT_MAIN_IF(mt_wire_present, "hiredis", tests)
