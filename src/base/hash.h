/* A hash for tables and names: FNV-1a. Clients that choose the bytes can make two hashes equal, so a hash must not
   decide what a client may see. */
#ifndef MT_BASE_HASH_H
#define MT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t mt_hash(const char *bytes, size_t len)
{
    uint64_t sum = 14695981039346656037u;

    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211u;
    return sum;
}

#endif
