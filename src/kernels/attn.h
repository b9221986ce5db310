/* Shared by all levels of attention (mt_attn in kernels.h): which positions of a segment a row sees, and where they are
   in memory. */
#ifndef MT_KERNELS_ATTN_H
#define MT_KERNELS_ATTN_H

#include "kernels/kernels.h"

/* Positions [begin, end) relative to the segment's first; empty where begin == end. */
typedef struct mt_attn_range {
    size_t begin, end;
} mt_attn_range;

static inline mt_attn_range mt_attn_seen(const mt_attn *a, size_t seg, size_t row)
{
    size_t first = seg * MT_SEGMENT, lo = a->lo[row], hi = a->hi[row];
    lo = lo > first ? lo - first : 0;
    hi = hi > first ? hi - first : 0;
    hi = hi < MT_SEGMENT ? hi : MT_SEGMENT;
    return lo < hi ? (mt_attn_range){lo, hi} : (mt_attn_range){0, 0};
}

/* The smallest range that contains what rows [r0, r1) see. */
static inline mt_attn_range mt_attn_seen_by(const mt_attn *a, size_t seg, size_t r0, size_t r1)
{
    mt_attn_range u = {MT_SEGMENT, 0};
    for (size_t r = r0; r < r1; r++) {
        mt_attn_range s = mt_attn_seen(a, seg, r);
        if (s.begin == s.end)
            continue;
        u.begin = s.begin < u.begin ? s.begin : u.begin;
        u.end = s.end > u.end ? s.end : u.end;
    }
    return u.begin < u.end ? u : (mt_attn_range){0, 0};
}

/* The blocks of MT_LANES positions in which the range has some. */
static inline mt_attn_range mt_attn_blocks(mt_attn_range seen)
{
    return (mt_attn_range){seen.begin / MT_LANES, (seen.end + MT_LANES - 1) / MT_LANES};
}

/* The intersection; begin may be above end. */
static inline mt_attn_range mt_attn_both(mt_attn_range a, mt_attn_range b)
{
    return (mt_attn_range){a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/* Address of position t of the segment; offset: k_offset or v_offset; element: bytes of an element. In plain arrays the
   following positions are head_stride elements apart up to the end of the page, so at least up to the next multiple of
   MT_LANES. Where a level orders a block in its own way, t is a multiple of MT_LANES, and MT_LANES positions begin
   there in that order. */
static inline const uint8_t *mt_attn_at(const mt_attn *a, size_t offset, size_t seg, size_t t, size_t element)
{
    size_t position = seg * MT_SEGMENT + t, page = a->pages[position / a->page_tokens];
    return a->base + page * a->page_stride + offset + position % a->page_tokens * a->head_stride * element;
}

#endif
