/* Keyed hashes, for hash tables whose keys come from files or clients: colliding keys cannot be prepared without
   knowing the secret, so that lookups take the time that they take for random keys. Each table draws a secret key of
   its own; nothing that is stored or sent may depend on such a hash. */
#ifndef MT_BASE_HASH_KEY_H
#define MT_BASE_HASH_KEY_H

#include <stddef.h>
#include <stdint.h>

typedef struct mt_hash_key {
    uint64_t at[2];
} mt_hash_key;

/* A random key. */
mt_hash_key mt_hash_key_draw(void);

/* SipHash-1-3 */
uint64_t mt_hash_bytes(mt_hash_key key, const char *bytes, size_t len);

/* The same for one number, in a few cycles. The upper half is the better one. */
static inline uint64_t mt_hash_number(mt_hash_key key, uint64_t x)
{
    x = (x ^ key.at[0]) * (key.at[1] | 1);
    x ^= x >> 32;
    return x * (key.at[0] | 1);
}

#endif
