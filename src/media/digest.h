/* SHA-256 digests, by which pictures and cached pages are identified. */
#ifndef MT_MEDIA_DIGEST_H
#define MT_MEDIA_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define MT_DIGEST_BYTES 32

typedef struct mt_digest_part {
    const void *data;
    size_t size;
} mt_digest_part;

/* The digest of the parts, each preceded by its size: so the same bytes divided differently have another digest. */
void mt_digest(uint8_t out[MT_DIGEST_BYTES], const mt_digest_part *parts, size_t count);

#endif
