/* What a sequence says, as the prefix tree tells one from another: the token at each position and, where that stands
   for a picture, the whole digest of the picture. Nothing of it depends on the process or on what was seen before. */
#ifndef MT_CACHE_TEXT_H
#define MT_CACHE_TEXT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "device/device.h"

/* A token, and whether it stands for a part of a picture or is just itself. */
typedef uint32_t mt_key;

#define MT_KEY_MEDIUM (1u << 31)
static_assert(MT_LIMIT_VOCAB <= MT_KEY_MEDIUM, "every token fits a key");

static inline uint32_t mt_key_token(mt_key key)
{
    return key & ~MT_KEY_MEDIUM;
}

/* Positions [first, first + count) stand for the picture with this digest, for rows of it that follow from what stands
   before them. */
typedef struct mt_figure {
    uint32_t first, count;
    uint8_t digest[32];
} mt_figure;

typedef struct mt_text {
    mt_key *key;
    uint64_t *hash;          /* of each whole page, with all before it */
    const mt_figure *figure; /* ascending, apart from each other; borrowed */
    size_t figures;
} mt_text;

/* A page's worth of a text, or less. */
typedef struct mt_passage {
    const mt_key *key;
    size_t first;            /* the position that it begins at, as the figures count */
    const mt_figure *figure; /* those that reach beyond it */
    size_t figures;
} mt_passage;

mt_passage mt_text_page(const mt_text *text, size_t page);

/* Sets the hash of a whole page; that of the page before is known. */
void mt_text_hash(mt_text *text, size_t page);

/* A digest of the passage's first `count` positions, and of what `before` is the digest of. */
void mt_passage_digest(const mt_passage *p, size_t count, const uint8_t before[32], uint8_t out[32]);

/* How many of the first `most` positions are the same. */
size_t mt_passage_common(const mt_passage *a, const mt_passage *b, size_t most);

#endif
