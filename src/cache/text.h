/* The text of a sequence as the prefix tree compares it: the token of each position and, where it stands for a picture,
   the digest of the picture. It is the same in every process. */
#ifndef MT_CACHE_TEXT_H
#define MT_CACHE_TEXT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "device/batch.h"
#include "weights/limits.h"

/* A token, with the flag MT_KEY_MEDIUM where it stands for a part of a picture. */
typedef uint32_t mt_key;

#define MT_KEY_MEDIUM (1u << 31)
static_assert(MT_LIMIT_VOCAB <= MT_KEY_MEDIUM, "every token fits a key");

static inline uint32_t mt_key_token(mt_key key)
{
    return key & ~MT_KEY_MEDIUM;
}

/* Positions [first, first + count) stand for the picture with this digest. Which rows of its features they stand for
   follows from the positions before them. */
typedef struct mt_figure {
    uint32_t first, count;
    uint8_t digest[32];
} mt_figure;

typedef struct mt_text {
    mt_key *key;
    uint64_t *hash;          /* one a whole page, of the page and all before it */
    const mt_figure *figure; /* ascending, not overlapping; borrowed */
    size_t figures;
} mt_text;

/* A page of a text, or the beginning of one. */
typedef struct mt_page_text {
    const mt_key *key;
    size_t first;            /* position of its first key, in the count that the figures use */
    const mt_figure *figure; /* the figures that end behind `first` */
    size_t figures;
} mt_page_text;

mt_page_text mt_text_page(const mt_text *text, size_t page);

/* Sets the hash of a whole page; that of the page before must be set. */
void mt_text_hash(mt_text *text, size_t page);

/* out: digest of the page text's first `count` positions and of `before`, the digest of all text before it. */
void mt_page_text_digest(const mt_page_text *p, size_t count, const uint8_t before[32], uint8_t out[32]);

/* How many of the first `most` positions are the same in both. */
size_t mt_page_text_common(const mt_page_text *a, const mt_page_text *b, size_t most);

#endif
