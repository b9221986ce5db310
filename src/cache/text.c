/* Compares and hashes texts with pictures (text.h).

   Rejected: one number a position that also stands for the picture. A part of the picture's digest could be forged by
   another picture, and a number given to each digest would mean something else in the next process. */
#include "cache/text.h"

#include <string.h>

#include "media/digest.h"

mt_page_text mt_text_page(const mt_text *text, size_t page)
{
    const size_t first = page * MT_PAGE_TOKENS;
    /* figures before `low` end at or before `first`; those from `high` on end behind it */
    size_t low = 0, high = text->figures;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (text->figure[middle].first + (size_t)text->figure[middle].count > first)
            high = middle;
        else
            low = middle + 1;
    }
    return (mt_page_text){.key = text->key + first,
                          .first = first,
                          .figure = low < text->figures ? &text->figure[low] : NULL,
                          .figures = text->figures - low};
}

/* Where in the page text figure i begins, 0 where it began before; at most `most`, also where there is no figure i. */
static size_t begins(const mt_page_text *p, size_t i, size_t most)
{
    const size_t at = i == p->figures ? SIZE_MAX : p->figure[i].first > p->first ? p->figure[i].first - p->first : 0;
    return at < most ? at : most;
}

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

void mt_text_hash(mt_text *text, size_t page)
{
    const mt_page_text p = mt_text_page(text, page);
    uint64_t hash = page ? text->hash[page - 1] : 0, digest;
    for (size_t i = 0; i < MT_PAGE_TOKENS; i++)
        hash = mix(hash, p.key[i]);
    for (size_t i = 0, at; (at = begins(&p, i, MT_PAGE_TOKENS)) < MT_PAGE_TOKENS; i++) {
        memcpy(&digest, p.figure[i].digest, sizeof(digest));
        hash = mix(mix(hash, at), digest);
    }
    text->hash[page] = hash;
}

void mt_page_text_digest(const mt_page_text *p, size_t count, const uint8_t before[32], uint8_t out[32])
{
    uint8_t last[32];
    mt_digest(last, (mt_digest_part[]){{before, 32}, {p->key, count * sizeof(*p->key)}}, 2);
    for (size_t i = 0; begins(p, i, count) < count; i++) {
        const uint64_t at = begins(p, i, count);
        uint8_t next[32];
        mt_digest(next, (mt_digest_part[]){{last, 32}, {&at, sizeof(at)}, {p->figure[i].digest, 32}}, 3);
        memcpy(last, next, sizeof(last));
    }
    memcpy(out, last, sizeof(last));
}

size_t mt_page_text_common(const mt_page_text *a, const mt_page_text *b, size_t most)
{
    size_t same = 0;
    while (same < most && a->key[same] == b->key[same])
        same++;
    /* equal keys say that pictures stand at the same positions; the digests say whether they are the same pictures */
    for (size_t i = 0;; i++) {
        const size_t in_a = begins(a, i, same), in_b = begins(b, i, same);
        if (in_a != in_b)
            return in_a < in_b ? in_a : in_b;
        if (in_a == same || memcmp(a->figure[i].digest, b->figure[i].digest, sizeof(a->figure[i].digest)) != 0)
            return in_a;
    }
}
