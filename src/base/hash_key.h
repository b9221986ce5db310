/* Hashes with a secret key, for tables whose entries are chosen by others: who does not know the key cannot choose
   entries that meet, so that a table takes the time that it takes with random ones. The key is drawn anew for each
   process; nothing that outlives it or that others see may depend on such a hash. */
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
