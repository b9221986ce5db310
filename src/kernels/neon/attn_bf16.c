/* Attention (R8 of docs/numerics.md) with BFMMLA. Products of q with K, and of p with V, are chains over groups of four
   head elements or positions. Pages have the layout that BFMMLA reads, line by line, so nothing is rearranged here.
   Keys of eight positions: [element / 4][position pair][2][4]. Values of sixteen: [element / 8][position / 4][element
   pair][2][4]. Rows are processed in tiles of up to TILE. A row has the same bits in any tile: leading and trailing
   positions with p = +0 add zeros to a chain, and the last addition turns -0 into +0. */
#include "kernels/attn.h"

#include <math.h>

#include "kernels/levels.h"
#include "kernels/neon/btile.h"
#include "kernels/neon/softmax.h"

enum {
    TILE_PAIRS = 6,
    TILE = 2 * TILE_PAIRS,
    BLOCKS = MT_SEGMENT / MT_LANES,
    FEW = 2,    /* up to so many pairs of rows, memory is the bottleneck, not BFMMLA */
    SOME = 4,   /* above FEW and up to so many pairs of rows, prefetching pays */
    AHEAD = 2,  /* blocks by which K is prefetched */
    PLACES = 8, /* places that are read by turns (see products_in_turns) */
    TURN = 4,   /* cache lines that are read in one turn of a place */
    LEAD = 4,   /* cache lines of each place of the next segment's K that are prefetched before its first turn */
    RATE = 2,   /* turns of V that are prefetched while 32 products become weights */
    NARROW = 64 /* up to so many head elements, prefetching the next place only slows down */
};

typedef struct work {
    uint8_t *q;                                   /* packed rows of a tile, over the head */
    uint8_t *p;                                   /* packed rows of a tile, over positions */
    uint8_t *tail;                                /* the last block of V, with zeros behind what is visible */
    float *s;                                     /* [TILE][MT_SEGMENT] */
    float *o;                                     /* [TILE][head_stride] */
    const uint8_t *k[BLOCKS + AHEAD], *v[BLOCKS]; /* blocks of MT_LANES positions */
    const uint8_t *next[BLOCKS];                  /* K of the next segment */
} work;

static void carve(work *w, uint8_t *scratch, size_t stride)
{
    w->q = scratch;
    w->p = w->q + TILE * stride * sizeof(mt_bf16);
    w->tail = w->p + TILE * MT_SEGMENT * sizeof(mt_bf16);
    w->s = (float *)(void *)(w->tail + MT_LANES * stride * sizeof(mt_bf16));
    w->o = w->s + TILE * MT_SEGMENT;
}

size_t mt_attn_scratch_bytes_bf16(size_t rows, size_t head_stride)
{
    size_t fp32 = mt_attn_scratch_bytes_neon(rows, head_stride);
    size_t halves = (TILE + MT_LANES) * head_stride + TILE * MT_SEGMENT;
    size_t bytes = halves * sizeof(mt_bf16) + TILE * (MT_SEGMENT + head_stride) * sizeof(float);
    return bytes > fp32 ? bytes : fp32;
}

/* ---- pages ---- */

/* Elements i .. i + 3 of x[n], zero beyond the end. */
static uint16x4_t four(const float *x, size_t i, size_t n)
{
    float32x4_t v = i + 4 <= n ? vld1q_f32(x + i) : i < n ? mt_load_part(x + i, n - i, 0.0f) : vdupq_n_f32(0.0f);
    return vreinterpret_u16_bf16(vcvt_bf16_f32(v));
}

static void put_key(uint8_t *panel, size_t slot, const float *x, size_t n, size_t stride)
{
    for (size_t i = 0; i < stride; i += 4)
        vst1_u8(panel + 16 * i + 8 * slot, vreinterpret_u8_u16(four(x, i, n)));
}

static void put_value(uint8_t *panel, size_t slot, const float *x, size_t n, size_t stride)
{
    panel += slot / 4 * 64 + slot % 4 * 2;
    for (size_t i = 0; i < stride; i += 4) {
        uint16_t h[4];
        vst1_u16(h, four(x, i, n));
        for (size_t l = 0; l < 4; l++)
            memcpy(panel + i / 8 * 256 + i % 8 * 8 + 8 * l, &h[l], sizeof(*h));
    }
}

void mt_kv_put_bf16_bf16(uint8_t *block, size_t slot, size_t head_stride, const float *x, size_t n, bool value)
{
    size_t group = value ? MT_LANES : MT_LANES / 2;
    uint8_t *panel = block + slot / group * group * head_stride * sizeof(mt_bf16);
    (value ? put_value : put_key)(panel, slot % group, x, n, head_stride);
}

/* Copies the block of V at `from`, with zeros from position `end` of its MT_LANES on. */
static const uint8_t *cut(uint8_t *tail, const uint8_t *from, size_t end, size_t stride)
{
    for (size_t i = 0; i < MT_LANES * stride * sizeof(mt_bf16); i += 16) {
        size_t t = i / 64 % 4 * 4;
        uint64_t keep = t + 4 <= end ? ~(uint64_t)0 : t >= end ? 0 : ~(uint64_t)0 >> (64 - 16 * (end - t));
        vst1q_u8(tail + i, vandq_u8(vreinterpretq_u8_u64(vdupq_n_u64(keep)), vld1q_u8(from + i)));
    }
    return tail;
}

/* Sets where blocks are read and what is prefetched meanwhile; where there is nothing to prefetch, that is q, which is
   cached. */
static void find_blocks(work *w, const mt_attn *a, size_t seg, mt_attn_range seen)
{
    mt_attn_range all = mt_attn_whole_blocks(seen);
    size_t end = 0, next = (seg + 1) * MT_SEGMENT;
    for (size_t r = 0; r < a->rows; r++)
        end = a->hi[r] > end ? a->hi[r] : end;
    for (size_t b = 0; b < BLOCKS + AHEAD; b++)
        w->k[b] = a->q;
    for (size_t b = 0; b < BLOCKS; b++)
        w->next[b] =
            next + b * MT_LANES < end ? mt_attn_at(a, a->k_offset, seg + 1, b * MT_LANES, sizeof(mt_bf16)) : a->q;
    for (size_t t = all.begin; t < all.end; t += MT_LANES) {
        w->k[t / MT_LANES] = mt_attn_at(a, a->k_offset, seg, t, sizeof(mt_bf16));
        w->v[t / MT_LANES] = mt_attn_at(a, a->v_offset, seg, t, sizeof(mt_bf16));
    }
    if (seen.end % MT_LANES)
        w->v[seen.end / MT_LANES] = cut(w->tail, w->v[seen.end / MT_LANES], seen.end % MT_LANES, a->head_stride);
}

/* Rows r0 .. r0 + n - 1 of q; an odd last row is paired with zeros. */
static void pack_q(uint8_t *panel, const mt_attn *a, size_t r0, size_t n)
{
    size_t bytes = a->head_stride * sizeof(mt_bf16), pairs = (n + 1) / 2;
    for (size_t p = 0; p < pairs; p++) {
        const uint8_t *x = (const uint8_t *)a->q + (r0 + 2 * p) * bytes;
        uint8_t *out = panel + 16 * p;
        for (size_t i = 0; i < bytes; i += 16, out += 32 * pairs) {
            uint8x16_t first = vld1q_u8(x + i), second = 2 * p + 1 < n ? vld1q_u8(x + bytes + i) : vdupq_n_u8(0);
            vst1q_u8(out, vreinterpretq_u8_bf16(mt_pair_low(first, second)));
            vst1q_u8(out + 16 * pairs, vreinterpretq_u8_bf16(mt_pair_high(first, second)));
        }
    }
}

/* ---- products ---- */

MT_INLINE void zero(float32x4_t acc[][8], size_t R, size_t C)
{
    MT_UNROLL
    for (size_t r = 0; r < R; r++) {
        MT_UNROLL
        for (size_t c = 0; c < C; c++)
            acc[r][c] = vdupq_n_f32(0.0f);
    }
}

/* acc[R][C] += x . w, one step; w is one line of four pairs, or two, `apart` bytes from each other */
MT_INLINE void step(float32x4_t acc[][8], const uint8_t *x, const uint8_t *w, size_t apart, size_t R, size_t C)
{
    bfloat16x8_t a[TILE_PAIRS];
    MT_UNROLL
    for (size_t r = 0; r < R; r++)
        a[r] = mt_load_bf16(x + 16 * r);
    MT_UNROLL
    for (size_t c = 0; c < C; c++) {
        bfloat16x8_t b = mt_load_bf16(w + c % 4 * 16 + c / 4 * apart);
        MT_LOADS_STAY;
        MT_UNROLL
        for (size_t r = 0; r < R; r++)
            acc[r][c] = vbfmmlaq_f32(acc[r][c], a[r], b);
    }
}

/* Prefetches `lines` cache lines from `at` on into the second-level cache. */
MT_INLINE void fetch(const uint8_t *at, size_t lines)
{
    MT_UNROLL
    for (size_t l = 0; l < lines; l++)
        __builtin_prefetch(at + 64 * l, 0, 2);
}

/* s[2 R][2 C] = q . k over the head, for 2 C positions; prefetches as much of two other blocks meanwhile. */
MT_INLINE void products(float *s, const uint8_t *q, const uint8_t *k, const uint8_t *ahead, const uint8_t *ahead2,
                        size_t stride, size_t R, size_t C)
{
    float32x4_t acc[TILE_PAIRS][8];
    zero(acc, R, C);
    MT_UNROLL_TWICE
    for (size_t i = 0; i < 16 * stride; i += 64, q += 16 * R) {
        if (R <= SOME) {
            fetch(ahead + C / 4 * i, C / 4);
            fetch(ahead2 + C / 4 * i, C / 4);
        }
        step(acc, q, k + i, 16 * stride, R, C);
    }
    MT_BTILE_STORE(s, (size_t)MT_SEGMENT, acc, R, C)
}

/* o[2 R][2 C] = p . v over `count` blocks, for the 2 C head elements from d on. Meanwhile prefetches a part of w->next,
   and the lines of the next block, which are far from those of this one. */
MT_INLINE void weigh(const work *w, const uint8_t *const *v, size_t count, size_t d, size_t stride, size_t R, size_t C)
{
    float32x4_t acc[TILE_PAIRS][8];
    size_t line = d / (2 * C) * BLOCKS * C, lines = stride / 2;
    const uint8_t *p = w->p;
    zero(acc, R, C);
    for (size_t b = 0; b < count; b++, line += C, p += MT_LANES / 4 * 16 * R) {
        const uint8_t *at = v[b] + d * 32, *then = v[b + 1 < count ? b + 1 : b] + d * 32;
        MT_UNROLL
        for (size_t l = 0; l < C; l++)
            __builtin_prefetch(then + 64 * l, 0, 3);
        MT_UNROLL
        for (size_t t = 0; t < MT_LANES / 4; t++) {
            if (R > FEW && R <= SOME)
                fetch(w->next[line / lines] + (line % lines + t * C / 4) * 64, C / 4);
            step(acc, p + t * 16 * R, at + t * 64, 256, R, C);
        }
    }
    MT_BTILE_STORE(w->o + d, stride, acc, R, C)
}

/* Loads acc[R][4] as the turn before left them. */
MT_INLINE void resume(float32x4_t acc[][8], const float *sums, size_t R)
{
    MT_UNROLL
    for (size_t i = 0; i < 4 * R; i++)
        acc[i / 4][i % 4] = vld1q_f32(sums + 4 * i);
}

/* One turn: q . k over TURN groups of four head elements, for the eight positions of a place; sums[R][4] until the last
   turn, which gives s[2 R][8]. */
MT_INLINE void products_of_turn(float *s, float *sums, const uint8_t *q, const uint8_t *k, size_t R, bool first,
                                bool last)
{
    float32x4_t acc[FEW][8];
    if (first)
        zero(acc, R, 4);
    else
        resume(acc, sums, R);
    MT_UNROLL
    for (size_t i = 0; i < TURN; i++)
        step(acc, q + 16 * R * i, k + 64 * i, 0, R, 4);
    if (last) {
        MT_BTILE_STORE(s, (size_t)MT_SEGMENT, acc, R, 4)
        return;
    }
    MT_UNROLL
    for (size_t i = 0; i < 4 * R; i++)
        vst1q_f32(sums + 4 * i, acc[i / 4][i % 4]);
}

/* Products of a few rows, where memory is the bottleneck: it is a third faster when eight pages are read by turns than
   one after the other, and prefetching does not make up for that. A place is eight positions of every second block,
   which belongs to another page. Meanwhile the lines of the next place are prefetched. Sums are kept in the panel p,
   which is written only later; the first lines of the next segment's K are prefetched at the end of V. */
MT_INLINE void products_in_turns(const work *w, size_t stride, mt_attn_range all, size_t R)
{
    float *sums = (float *)(void *)w->p; /* [place][R][4][4] */
    for (size_t first = 0; first < 2 * MT_LANES; first += 8) {
        const uint8_t *k[PLACES], *q = w->q;
        float *s[PLACES];
        size_t count = 0, turns = stride / 4 / TURN;
        for (size_t t = first; t < all.end; t += 2 * MT_LANES) {
            if (t < all.begin)
                continue;
            k[count] = w->k[t / MT_LANES] + t % MT_LANES * stride * sizeof(mt_bf16);
            s[count++] = w->s + t;
        }
        for (size_t i = 0; i < turns; i++, q += 16 * R * TURN)
            for (size_t n = 0; n < count; n++, k[n - 1] += 64 * TURN) {
                for (size_t l = 0; stride > NARROW && l < TURN; l++)
                    __builtin_prefetch(k[n + 1 < count ? n + 1 : 0] + 64 * l, 0, 3);
                products_of_turn(s[n], sums + n * 16 * R, q, k[n], R, i == 0, i + 1 == turns);
            }
    }
}

MT_INLINE void all_products(const work *w, size_t stride, mt_attn_range all, size_t R, size_t C)
{
    size_t bytes = 2 * C * stride * sizeof(mt_bf16);
    if (R <= FEW) {
        products_in_turns(w, stride, all, R);
        return;
    }
    for (size_t t = all.begin; t < all.end; t += MT_LANES) {
        const uint8_t *k = w->k[t / MT_LANES], *ahead = w->k[t / MT_LANES + AHEAD], *v = w->v[t / MT_LANES];
        for (size_t i = 0; i < MT_LANES / (2 * C); i++)
            products(w->s + t + 2 * C * i, w->q, k + i * bytes, ahead + i * bytes, v + i * bytes, stride, R, C);
    }
}

MT_INLINE void all_weighed(const work *w, size_t stride, mt_attn_range all, size_t R, size_t C)
{
    for (size_t d = 0; d < stride; d += 2 * C) {
        for (size_t b = 0; R <= FEW && d + 2 * C == stride && b < BLOCKS; b += 2)
            fetch(w->next[b], LEAD);
        weigh(w, w->v + all.begin / MT_LANES, (all.end - all.begin) / MT_LANES, d, stride, R, C);
    }
}

/* ---- softmax of a row ---- */

/* What is prefetched of V meanwhile; its places are all its blocks. */
typedef struct ahead {
    const uint8_t *const *block;
    size_t blocks;
    size_t turn, turns; /* turns that are prefetched, and in all */
} ahead;

static ahead turns_of_v(const work *w, size_t stride, mt_attn_range all, size_t pairs)
{
    size_t blocks = (all.end - all.begin) / MT_LANES, lines = MT_LANES * stride * sizeof(mt_bf16) / 64;
    return (ahead){
        .block = w->v + all.begin / MT_LANES, .blocks = blocks, .turns = pairs <= FEW ? blocks * lines / TURN : 0};
}

MT_INLINE void fetch_turns(ahead *v, size_t count)
{
    for (; count > 0 && v->turn < v->turns; count--, v->turn++)
        fetch(v->block[v->turn % v->blocks] + v->turn / v->blocks * 64 * TURN, TURN);
}

/* Computes p of n groups of four positions from t on; n is 4 or 8. */
MT_INLINE mt_lanes4 block_weights(mt_lanes4 sum, uint8_t *p, size_t apart, const float *s, float scale, float m,
                                  size_t t, mt_attn_range seen, bool part, size_t n)
{
    float32x4_t x[8], e[8];
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        x[i] = vsubq_f32(vmulq_n_f32(vld1q_f32(s + t + 4 * i), scale), vdupq_n_f32(m));
    mt_exp_negative(e, x, -88.0f, n);
    MT_UNROLL
    for (size_t i = 0; i < n; i++) {
        bfloat16x4_t h = vcvt_bf16_f32(e[i]);
        if (part)
            h = vreinterpret_bf16_u16(vand_u16(vreinterpret_u16_bf16(h), vmovn_u32(mt_visible(t + 4 * i, seen))));
        vst1_u8(p + i * apart, vreinterpret_u8_bf16(h));
        sum.v[i % 4] = vaddq_f32(sum.v[i % 4], vcvt_f32_bf16(h));
    }
    return sum;
}

/* Computes p of n positions, a multiple of 32, all visible. A separate function, so that its constants stay in
   registers. */
__attribute__((noinline)) static void seen_weights(mt_lanes4 *sum, uint8_t *p, size_t apart, const float *s,
                                                   float scale, float m, size_t n, ahead *v)
{
    mt_lanes4 total = *sum;
    for (size_t t = 0; t < n; t += 32, p += 8 * apart) {
        fetch_turns(v, RATE);
        total = block_weights(total, p, apart, s, scale, m, t, (mt_attn_range){0, n}, false, 8);
    }
    *sum = total;
}

/* Turns the products s of a row into p over the blocks of `all`; `apart`: bytes from one four of positions to the
   next. */
static mt_attn_part softmax_row(uint8_t *p, size_t apart, float *s, const mt_attn *a, mt_attn_range seen,
                                mt_attn_range all, ahead *v)
{
    mt_attn_range b = mt_attn_whole_blocks(seen);
    bool plain = a->softcap == 0.0f && a->scale > 0.0f; /* then the largest product has the largest score */
    float scale = plain ? a->scale : 1.0f;
    float32x4_t top = vdupq_n_f32(-INFINITY);
    mt_lanes4 sum = mt_lanes4_zero();
    if (!plain)
        mt_scale_and_cap(s, a->scale, a->softcap, b);
    for (size_t t = b.begin; t < b.end; t += MT_LANES)
        top = t < seen.begin || t + MT_LANES > seen.end ? mt_block_top(top, s, t, seen, true)
                                                        : mt_block_top(top, s, t, seen, false);
    float m = vmaxvq_f32(top) * scale;
    for (size_t t = all.begin; t < b.begin; t += 4, p += apart)
        vst1_u8(p, vdup_n_u8(0));
    for (size_t t = b.begin, n; t < b.end; t += n, p += n / 4 * apart) {
        n = t < seen.begin || t + 2 * MT_LANES > seen.end ? MT_LANES : (seen.end - t) / 32 * 32;
        if (n == MT_LANES)
            sum = block_weights(sum, p, apart, s, scale, m, t, seen, true, 4);
        else
            seen_weights(&sum, p, apart, s + t, scale, m, n, v);
    }
    for (size_t t = b.end; t < all.end; t += 4, p += apart)
        vst1_u8(p, vdup_n_u8(0));
    return (mt_attn_part){.m = m, .l = mt_lanes4_fold(sum)};
}

/* Turns the products in w->s into the panel w->p, over the blocks of `all`. */
static void softmax_tile(const work *w, mt_attn_part *part, const mt_attn *a, size_t seg, size_t r0, size_t n,
                         mt_attn_range all)
{
    size_t pairs = (n + 1) / 2;
    ahead v = turns_of_v(w, a->head_stride, all, pairs);
    for (size_t r = 0; r < 2 * pairs; r++) {
        uint8_t *p = w->p + r / 2 * 16 + r % 2 * 8;
        float *s = w->s + r * MT_SEGMENT;
        mt_attn_range seen = r < n ? mt_attn_seen(a, seg, r0 + r) : (mt_attn_range){0, 0};
        if (seen.begin == seen.end)
            seen = (mt_attn_range){all.end, all.end};
        mt_attn_part result = softmax_row(p, 16 * pairs, s, a, seen, all, &v);
        if (r < n)
            part[r0 + r] = result;
    }
}

static void attend_tile(const work *w, float *o, mt_attn_part *part, const mt_attn *a, size_t seg, size_t r0, size_t n)
{
    size_t stride = a->head_stride, pairs = (n + 1) / 2;
    mt_attn_range all = mt_attn_whole_blocks(mt_attn_seen_by(a, seg, r0, r0 + n));
    pack_q(w->q, a, r0, n);
#define EACH_SIZE(f)                         \
    switch (pairs) {                         \
    case 1: f(w, stride, all, 1, 4); break;  \
    case 2: f(w, stride, all, 2, 4); break;  \
    case 3: f(w, stride, all, 3, 8); break;  \
    case 4: f(w, stride, all, 4, 4); break;  \
    case 5: f(w, stride, all, 5, 4); break;  \
    default: f(w, stride, all, 6, 4); break; \
    }
    EACH_SIZE(all_products)
    softmax_tile(w, part, a, seg, r0, n, all);
    EACH_SIZE(all_weighed)
#undef EACH_SIZE
    for (size_t i = 0; i < n * stride; i += 4)
        vst1q_f32(o + r0 * stride + i, vaddq_f32(vld1q_f32(w->o + i), vdupq_n_f32(0.0f)));
}

void mt_attn_bf16_bf16(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    size_t pairs = (a->rows + 1) / 2, tiles = (pairs + TILE_PAIRS - 1) / TILE_PAIRS;
    work w;
    carve(&w, scratch, a->head_stride);
    find_blocks(&w, a, seg, mt_attn_seen_by(a, seg, 0, a->rows));
    for (size_t i = 0; i < tiles; i++) {
        size_t r0 = 2 * (pairs * i / tiles), r1 = 2 * (pairs * (i + 1) / tiles);
        attend_tile(&w, o, part, a, seg, r0, (r1 < a->rows ? r1 : a->rows) - r0);
    }
}
