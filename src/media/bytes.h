/* Reads little- and big-endian numbers from bytes of a file. The caller has checked that the bytes exist. */
#ifndef MT_MEDIA_BYTES_H
#define MT_MEDIA_BYTES_H

#include <stdint.h>

static inline uint32_t mt_le16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t mt_le32(const uint8_t *p)
{
    return mt_le16(p) | mt_le16(p + 2) << 16;
}

static inline uint32_t mt_be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | (uint32_t)p[1];
}

static inline uint32_t mt_be32(const uint8_t *p)
{
    return mt_be16(p) << 16 | mt_be16(p + 2);
}

#endif
