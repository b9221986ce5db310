/* A store that several servers share and that lies: it is asked which of three records it has and then for all of
   them, and says what it should, changed in any way: bits, lengths, its end, sums that are right of what is not. The
   input is two bytes of what is to be and a list of orders, five bytes each: what to do, where (two bytes), and two to
   do it with; with the first bit of the first byte it is the answer itself. With a secret, what is taken was signed. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "store.h"
#include "tier/remote.h"
#include "tier/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS = 3, PART = 40, TAG = 32, OWN_SUM = 124, SUM = 16, MOST = 1 << 13 };

static const char secret[] = "what only we know";

typedef struct answer {
    uint8_t said[MOST];
    size_t len;
} answer;

static void key_of(uint8_t key[MT_TIER_KEY], size_t number)
{
    memset(key, (int)number + 1, MT_TIER_KEY);
}

static void bytes_of(uint8_t part[PART], size_t number)
{
    for (size_t i = 0; i < PART; i++)
        part[i] = (uint8_t)(i * 7 + number * 31);
}

static void add(answer *a, const void *data, size_t len)
{
    assert(a->len + len <= sizeof(a->said));
    memcpy(a->said + a->len, data, len);
    a->len += len;
}

/* What one that has all of them says. */
static void say_truth(answer *a, bool sealed)
{
    a->len = 0;
    for (size_t i = 0; i < RECORDS; i++)
        add(a, ":1\r\n", 4);
    for (size_t i = 0; i < RECORDS; i++) {
        uint8_t key[MT_TIER_KEY], part[PART], value[MT_RECORD_HEADER + PART + TAG];
        const size_t own = MT_RECORD_HEADER + PART;
        char head[16];

        key_of(key, i);
        bytes_of(part, i);
        mt_record_write(value, key, (uint32_t)i, &(mt_tier_part){part, PART}, 1, 0);
        memcpy(value + MT_RECORD_HEADER, part, PART);
        HMAC(EVP_sha256(), secret, sizeof(secret) - 1, value, own, value + own, NULL);
        add(a, head, (size_t)snprintf(head, sizeof(head), "$%zu\r\n", own + (sealed ? TAG : 0)));
        add(a, value, own + (sealed ? TAG : 0));
        add(a, "\r\n", 2);
    }
    for (size_t i = 0; i < RECORDS; i++)
        add(a, ":1\r\n", 4); /* that it has deleted it */
}

/* The sums of the record before a place, as if it were one. */
static void make_right(answer *a, size_t at, bool parts)
{
    for (at += 4; at >= 4; at--) {
        uint8_t *record = a->said + at - 4;

        if (at - 4 + MT_RECORD_HEADER + PART > a->len || memcmp(record, "MTRC", 4) != 0)
            continue;
        const uint32_t sum = mt_crc32c(0, record + MT_RECORD_HEADER, PART);
        if (parts)
            memcpy(record + SUM, &sum, sizeof(sum));
        const uint32_t own = mt_crc32c(0, record, OWN_SUM);
        memcpy(record + OWN_SUM, &own, sizeof(own));
        return;
    }
}

static void spoil(answer *a, const uint8_t *data, size_t orders)
{
    for (size_t i = 0; i < orders; i++, data += 5) {
        const size_t at = ((size_t)data[1] | (size_t)data[2] << 8) % (a->len + 1), len = data[3];

        switch (data[0] % 7) {
        case 0: a->len = at; break;
        case 1:
            if (at < a->len)
                a->said[at] = data[4];
            break;
        case 2: /* more */
            if (a->len + len <= MOST) {
                memmove(a->said + at + len, a->said + at, a->len - at);
                memset(a->said + at, data[4], len);
                a->len += len;
            }
            break;
        case 3: /* less */
            if (at + len <= a->len) {
                memmove(a->said + at, a->said + at + len, a->len - at - len);
                a->len -= len;
            }
            break;
        case 4:
            if (at < a->len)
                a->said[at] ^= (uint8_t)(1u << data[4] % 8);
            break;
        default: make_right(a, at, data[0] % 7 == 5); break;
        }
    }
}

static void *speak(void *arg)
{
    const answer *a = arg;
    const int peer = store_say(a->said, a->len);
    char heard[4096];

    while (read(peer, heard, sizeof(heard)) > 0)
        ;
    store_hang_up(peer);
    return NULL;
}

static void ask_for_all(mt_remote_store *d, bool sealed)
{
    uint8_t key[RECORDS][MT_TIER_KEY], got[RECORDS][PART], written[PART];
    mt_tier_part part[RECORDS];
    mt_remote_store_want want[RECORDS];

    for (size_t i = 0; i < RECORDS; i++) {
        key_of(key[i], i);
        part[i] = (mt_tier_part){got[i], PART};
        want[i] = (mt_remote_store_want){.key = key[i], .kind = (uint32_t)i, .part = &part[i], .parts = 1};
    }
    mt_remote_store_ask(d, (const uint8_t(*)[MT_TIER_KEY])key, RECORDS);
    mt_remote_store_read(d, want, RECORDS);
    for (size_t i = 0; i < RECORDS; i++) {
        bytes_of(written, i);
        assert(!want[i].ok || !sealed || memcmp(got[i], written, PART) == 0);
    }
    const mt_remote_store_stats s = mt_remote_store_look(d);
    uint64_t failures = 0;
    for (size_t i = 0; i < MT_REMOTE_STORE_FAILURES; i++)
        failures += s.failures[i];
    assert(s.read + s.missed <= RECORDS && s.broken <= s.missed && failures <= 1 && s.received <= 2 * MOST);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static answer a;
    char url[64];
    mt_error err = {0};
    pthread_t thread;

    if (!mt_wire_present || size < 2 || size > MOST)
        return 0;
    const bool sealed = data[1] & 1;
    mt_log_setup(MT_LOG_ERROR, MT_LOG_TEXT);
    say_truth(&a, sealed);
    if (data[0] & 1) {
        a.len = 0;
        add(&a, data + 2, size - 2);
    } else
        spoil(&a, data + 2, (size - 2) / 5 < 64 ? (size - 2) / 5 : 64);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", store_open());
    const mt_remote_store_params params = {
        .url = url, .secret = sealed ? secret : NULL, .secret_len = sizeof(secret) - 1, .queue = 1 << 20};
    mt_remote_store *d = mt_remote_store_open(&params, &err);
    assert(d && pthread_create(&thread, NULL, speak, &a) == 0);
    ask_for_all(d, sealed);
    mt_remote_store_close(d);
    pthread_join(thread, NULL);
    return 0;
}
