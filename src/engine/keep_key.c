/* Keys of records in the tiers: digests of all that the bytes depend on, the same in every process. */
#include <string.h>

#include "base/alloc.h"
#include "engine/keep_inside.h"
#include "media/digest.h"

/* A page's key covers the key of the page before it, so it covers all text up to its end. */
static void page_key(const mt_keep *k, const mt_request *r, const mt_text *text, size_t page, const uint8_t *before,
                     size_t count, uint8_t out[32])
{
    const mt_page_text p = mt_text_page(text, page);
    uint8_t root[32];
    if (!before) {
        mt_digest(root, (mt_digest_part[]){{k->root, 32}, {r->salt, 32}}, 2);
        before = root;
    }
    mt_page_text_digest(&p, count, before, out);
}

void mt_keep_seal(const mt_keep *k, mt_sequence *s, size_t pages)
{
    mt_kept *kept = &s->kept;
    kept->digest = mt_grow(kept->digest, &kept->digest_cap, pages, sizeof(*kept->digest));
    for (; kept->digests < pages; kept->digests++) {
        const size_t i = kept->digests;
        page_key(k, s->request, &s->seq.text, i, i ? kept->digest[i - 1] : NULL, MT_PAGE_TOKENS, kept->digest[i]);
    }
}

/* The word "state" in the digest tells it from the key of a page. */
void mt_keep_state_key(const mt_keep *k, mt_sequence *s, size_t position, uint8_t out[MT_TIER_KEY])
{
    static const char kind[] = "state";
    const size_t pages = position / MT_PAGE_TOKENS, tail = position % MT_PAGE_TOKENS;
    uint8_t end[32];
    mt_keep_seal(k, s, pages);
    if (tail)
        page_key(k, s->request, &s->seq.text, pages, pages ? s->kept.digest[pages - 1] : NULL, tail, end);
    else
        memcpy(end, s->kept.digest[pages - 1], sizeof(end));
    mt_digest(out, (mt_digest_part[]){{kind, sizeof(kind)}, {end, sizeof(end)}}, 2);
}

void mt_keep_features_key(const mt_keep *k, const uint8_t digest[32], const uint8_t salt[32], size_t piece,
                          uint8_t out[MT_TIER_KEY])
{
    static const char kind[] = "features";
    const uint64_t numbers[] = {piece, k->feature_bytes, MT_KEEP_ROWS};
    mt_digest(
        out,
        (mt_digest_part[]){{kind, sizeof(kind)}, {k->root, 32}, {salt, 32}, {digest, 32}, {numbers, sizeof(numbers)}},
        5);
}

void mt_kept_free(mt_kept *kept)
{
    mt_free(kept->digest);
    *kept = (mt_kept){0};
}
