/* See hash_key.h. */
#include "base/hash_key.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

mt_hash_key mt_hash_key_draw(void)
{
    mt_hash_key key;

    if (getentropy(key.at, sizeof(key.at)) != 0) { /* harder to guess than nothing */
        key.at[0] = (uint64_t)time(NULL) << 32 | (uint32_t)getpid();
        key.at[1] = (uint64_t)(uintptr_t)&key;
    }
    return key;
}

static uint64_t rotated(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void turn(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotated(v[1], 13) ^ v[0];
    v[0] = rotated(v[0], 32);
    v[2] += v[3];
    v[3] = rotated(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotated(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotated(v[1], 17) ^ v[2];
    v[2] = rotated(v[2], 32);
}

static void take(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    turn(v);
    v[0] ^= word;
}

uint64_t mt_hash_bytes(mt_hash_key key, const char *bytes, size_t len)
{
    uint64_t v[4] = {key.at[0] ^ 0x736f6d6570736575u, key.at[1] ^ 0x646f72616e646f6du, key.at[0] ^ 0x6c7967656e657261u,
                     key.at[1] ^ 0x7465646279746573u};
    uint64_t word;
    const uint64_t last = (uint64_t)len << 56;

    for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        take(v, word);
    }
    word = 0;
    if (len > 0)
        memcpy(&word, bytes, len);
    take(v, word | last);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        turn(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
