/* The connection to Redis (wire.h). hiredis formats commands and parses replies; waiting for sockets is done here,
   since hiredis would start its timeout anew for each piece of a reply, so that a reply sent byte by byte would never
   time out, and would read any length that a server claims. Only replies of the expected kinds are parsed: an array
   could claim two billion elements. */
#include "tier/wire.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hex.h"

const bool mt_wire_present = true;

enum { PORT = 6379, BESIDE = 64 << 10, SHOWN = 32 };
/* BESIDE: bytes of the next replies that may be in the buffer; SHOWN: bytes of a wrong reply that an error has */

struct mt_wire {
    redisContext *redis;
    redisReply *reply; /* the last reply, freed with the next */
};

/* ---- addresses ---- */

static bool copy(char *to, size_t size, const char *from, size_t len)
{
    if (len >= size)
        return false;
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

/* Decodes "%40" to "@" in a user name or password, in place. */
static bool decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++, to++) {
        const bool coded = *at == '%';
        if (coded && (mt_hex_digit(at[1]) < 0 || mt_hex_digit(at[2]) < 0))
            return false;
        *to = coded ? (char)(mt_hex_digit(at[1]) * 16 + mt_hex_digit(at[2])) : *at;
        at += coded ? 2 : 0; /* decoding never writes ahead of where it reads */
    }
    *to = '\0';
    return true;
}

static bool read_who(mt_wire_address *a, const char *at, size_t len)
{
    const char *colon = memchr(at, ':', len);
    const size_t user = colon ? (size_t)(colon - at) : 0, skip = colon ? user + 1 : 0;
    return copy(a->user, sizeof(a->user), at, user) && copy(a->password, sizeof(a->password), at + skip, len - skip) &&
           decode(a->user) && decode(a->password);
}

static bool read_number(int *out, const char *text, size_t len, int most)
{
    *out = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || *out > most / 10)
            return false;
        *out = *out * 10 + (text[i] - '0');
    }
    return len > 0 && *out <= most;
}

/* Reads host, port and database of a URL. */
static bool read_place(mt_wire_address *a, const char *at)
{
    const bool bracket = *at == '[';
    const size_t host = bracket ? strcspn(at, "]") : strcspn(at, ":/");
    if (!copy(a->host, sizeof(a->host), at + bracket, host - bracket) || a->host[0] == '\0' ||
        (bracket && at[host] != ']'))
        return false;
    at += host + bracket;
    if (*at == ':') {
        const size_t len = strcspn(++at, "/");
        if (!read_number(&a->port, at, len, 65535))
            return false;
        at += len;
    }
    return *at == '\0' || (*at == '/' && (at[1] == '\0' || read_number(&a->database, at + 1, strlen(at + 1), 1 << 20)));
}

bool mt_wire_address_read(mt_wire_address *a, const char *url, mt_error *err)
{
    static const char scheme[] = "redis://";
    *a = (mt_wire_address){.port = PORT};
    if (strncmp(url, "rediss://", 9) == 0)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "TLS is not spoken to a store: use redis:// to an stunnel on this machine instead of rediss://");
    const bool ours = strncmp(url, scheme, sizeof(scheme) - 1) == 0;
    const char *at = ours ? url + sizeof(scheme) - 1 : NULL, *sign = ours ? strrchr(at, '@') : NULL;
    if (ours && (!sign || read_who(a, at, (size_t)(sign - at))) && read_place(a, sign ? sign + 1 : at))
        return true;
    return mt_fail(err, MT_E_INVALID, "the address of a store is redis://[[user]:password@]host[:port][/database]");
}

bool mt_wire_resolve(mt_wire_address *to, const mt_wire_address *from, mt_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int why = getaddrinfo(from->host, NULL, &hints, &found);
    const struct addrinfo *best = found; /* the first of IPv4, else the first */
    while (best && best->ai_family != AF_INET)
        best = best->ai_next;
    best = best ? best : found;
    *to = *from;
    if (best)
        why = getnameinfo(best->ai_addr, best->ai_addrlen, to->host, sizeof(to->host), NULL, 0, NI_NUMERICHOST);
    if (found)
        freeaddrinfo(found);
    return !why || mt_fail(err, MT_E_IO, "the store cannot be found: %s", gai_strerror(why));
}

/* ---- connections ---- */

/* Waits until the socket is ready; false when `until` has passed. */
static bool wait_for(const mt_wire *w, short events, uint64_t until, mt_error *err)
{
    for (uint64_t now; (now = mt_clock_ns()) < until;) {
        struct pollfd one = {.fd = w->redis->fd, .events = events};
        const int n = poll(&one, 1, (int)((until - now) / 1000000) + 1);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return mt_fail(err, MT_E_IO, "the store cannot be waited for");
    }
    return mt_fail(err, MT_E_BUSY, "the store does not answer in time");
}

static bool fail(const mt_wire *w, mt_error *err)
{
    return mt_fail(err, MT_E_IO, "the store: %.120s", w->redis->err ? w->redis->errstr : "nothing can be read");
}

bool mt_wire_add(mt_wire *w, size_t words, const char *word[], const size_t length[])
{
    return redisAppendCommandArgv(w->redis, (int)words, word, length) == REDIS_OK;
}

bool mt_wire_send(mt_wire *w, uint64_t until, mt_error *err)
{
    for (int done = 0; !done;) {
        if (redisBufferWrite(w->redis, &done) != REDIS_OK)
            return fail(w, err);
        if (!done && !wait_for(w, POLLOUT, until, err))
            return false;
    }
    return true;
}

/* Waits for at least one further byte and reads it. */
static bool read_more(mt_wire *w, uint64_t until, mt_error *err)
{
    if (!wait_for(w, POLLIN, until, err))
        return false;
    return redisBufferRead(w->redis) == REDIS_OK || fail(w, err);
}

static bool is_plain(char first)
{
    return first == '$' || first == ':' || first == '+' || first == '-';
}

/* Fails with what is in the buffer, as much of it as one can read in a line. */
static bool fail_with_bytes(const redisReader *r, const char *reason, mt_error *err)
{
    char shown[4 * SHOWN + 1];
    size_t len = 0;
    for (size_t i = r->pos; i < r->len && i < r->pos + SHOWN; i++) {
        const unsigned char c = (unsigned char)r->buf[i];
        const bool plain = c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
        len += (size_t)snprintf(shown + len, sizeof(shown) - len, plain ? "%c" : "\\x%02x", c);
    }
    shown[len] = '\0';
    return mt_fail(err, MT_E_INVALID, "the store is out of step: %s: \"%s\"", reason, shown);
}

/* What a reply that is out of step may have wanted to be. */
static const char *name_of_type(char first)
{
    switch (first) {
    case '*': return "an array";
    case '%': return "a map";
    case '~': return "a set";
    case '_': return "a null of RESP3";
    case '#': return "a boolean";
    case ',': return "a floating-point number";
    case '>': return "a push message";
    default: return "bytes of no type";
    }
}

static mt_wire_kind kind_of(const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_STRING: return MT_WIRE_BYTES;
    case REDIS_REPLY_INTEGER: return MT_WIRE_NUMBER;
    case REDIS_REPLY_STATUS: return MT_WIRE_STATUS;
    case REDIS_REPLY_ERROR: return MT_WIRE_ERROR;
    default: return MT_WIRE_NONE;
    }
}

bool mt_wire_next(mt_wire *w, mt_wire_reply *reply, size_t most, uint64_t until, mt_error *err)
{
    redisReader *r = w->redis->reader;
    void *found = NULL;
    if (w->reply)
        freeReplyObject(w->reply);
    w->reply = NULL;
    while (r->len == r->pos)
        if (!read_more(w, until, err))
            return false;
    if (!is_plain(r->buf[r->pos])) {
        char reason[64];
        snprintf(reason, sizeof(reason), "a reply was expected, and %s came", name_of_type(r->buf[r->pos]));
        return fail_with_bytes(r, reason, err);
    }
    while (redisReaderGetReply(r, &found) == REDIS_OK && !found) {
        if (r->len - r->pos > most + BESIDE)
            return mt_fail(err, MT_E_INVALID,
                           "the store is out of step: a reply of at most %zu bytes was expected, and %zu came", most,
                           r->len - r->pos);
        if (!read_more(w, until, err))
            return false;
    }
    if (!found)
        return mt_fail(err, MT_E_INVALID, "the store is out of step: %.120s",
                       r->err ? r->errstr : "what came is no reply");
    w->reply = found;
    *reply = (mt_wire_reply){.data = w->reply->str ? w->reply->str : "", .number = w->reply->integer};
    reply->len = w->reply->str ? (size_t)w->reply->len : 0;
    reply->kind = kind_of(w->reply);
    return true;
}

bool mt_wire_expect(mt_wire *w, mt_wire_reply *reply, const char *command, mt_wire_kind kind, size_t most,
                    uint64_t until, mt_error *err)
{
    static const char *const names[] = {[MT_WIRE_NONE] = "nothing (a null)",
                                        [MT_WIRE_BYTES] = "bytes",
                                        [MT_WIRE_NUMBER] = "a number",
                                        [MT_WIRE_STATUS] = "a status",
                                        [MT_WIRE_ERROR] = "an error"};
    if (!mt_wire_next(w, reply, most, until, err))
        return false;
    if (reply->kind == kind || reply->kind == MT_WIRE_ERROR)
        return true;
    return mt_fail(err, MT_E_INVALID, "the store is out of step: %s expects %s, and %s came", command, names[kind],
                   names[reply->kind]);
}

/* Sends a command whose reply is a status; false where the reply is another. */
static bool say(mt_wire *w, size_t words, const char *word[], uint64_t until, mt_error *err)
{
    mt_wire_reply reply;
    size_t length[4];
    for (size_t i = 0; i < words; i++)
        length[i] = strlen(word[i]);
    if (!mt_wire_add(w, words, word, length))
        return fail(w, err);
    if (!mt_wire_send(w, until, err) || !mt_wire_expect(w, &reply, word[0], MT_WIRE_STATUS, 0, until, err))
        return false;
    return reply.kind == MT_WIRE_STATUS || mt_fail(err, MT_E_UNSUPPORTED, "the store refuses: %.120s", reply.data);
}

/* Waits for the connection, authenticates and selects the database. */
static bool begin(mt_wire *w, const mt_wire_address *a, uint64_t until, mt_error *err)
{
    char number[16];
    int why = 0;
    socklen_t size = sizeof(why);
    if (!w->redis || w->redis->err)
        return mt_fail(err, MT_E_IO, "the store cannot be reached: %.120s",
                       w->redis ? w->redis->errstr : "there is no memory");
    if (!wait_for(w, POLLOUT, until, err))
        return false;
    if (getsockopt(w->redis->fd, SOL_SOCKET, SO_ERROR, &why, &size) || why)
        return mt_fail(err, MT_E_IO, "the store cannot be reached: %s", strerror(why));
    w->redis->flags |= REDIS_CONNECTED;
    snprintf(number, sizeof(number), "%d", a->database);
    if (a->user[0] && !say(w, 3, (const char *[]){"AUTH", a->user, a->password}, until, err))
        return false;
    if (!a->user[0] && a->password[0] && !say(w, 2, (const char *[]){"AUTH", a->password}, until, err))
        return false;
    return a->database == 0 || say(w, 2, (const char *[]){"SELECT", number}, until, err);
}

mt_wire *mt_wire_open(const mt_wire_address *a, uint64_t until, mt_error *err)
{
    mt_wire *w = mt_alloc(sizeof(*w));
    w->redis = redisConnectNonBlock(a->host, a->port);
    if (begin(w, a, until, err))
        return w;
    mt_wire_close(w);
    return NULL;
}

void mt_wire_close(mt_wire *w)
{
    if (!w)
        return;
    if (w->reply)
        freeReplyObject(w->reply);
    if (w->redis)
        redisFree(w->redis);
    mt_free(w);
}
