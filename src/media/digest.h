/* SHA-256, by which pictures are told apart. */
#ifndef MT_MEDIA_DIGEST_H
#define MT_MEDIA_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define MT_DIGEST_BYTES 32

typedef struct mt_digest_part {
    const void *data;
    size_t size;
} mt_digest_part;

/* The digest of the parts, each preceded by its size: the same bytes cut elsewhere give another digest. */
void mt_digest(uint8_t out[MT_DIGEST_BYTES], const mt_digest_part *parts, size_t count);

#endif
