/* Reads and writes numbers in little-endian order, as records and files of this folder have them. */
#ifndef MT_TIER_BYTES_H
#define MT_TIER_BYTES_H

#include <stdint.h>

static inline void mt_put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static inline void mt_put64(uint8_t *at, uint64_t value)
{
    mt_put32(at, (uint32_t)value);
    mt_put32(at + 4, (uint32_t)(value >> 32));
}

static inline uint32_t mt_get32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t mt_get64(const uint8_t *at)
{
    return mt_get32(at) | (uint64_t)mt_get32(at + 4) << 32;
}

#endif
