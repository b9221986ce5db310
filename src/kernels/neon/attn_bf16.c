/* R8 with BFMMLA. Products of q with K, and of p with V, are chains over fours of head elements and of positions. Few rows read K and V in
   place; more of them share both, packed into panels (btile.h) once. Rows go in tiles of up to TILE; the bits of a row are
   the same either way, whatever other rows there are: leading and trailing positions with p = +0 add zeros to a chain, and the last
   addition makes a zero positive. */
#include "kernels/attn.h"

#include <math.h>

#include "kernels/levels.h"
#include "kernels/neon/btile.h"
#include "kernels/neon/math.h"

enum {
    TILE_PAIRS = 6,
    TILE = 2 * TILE_PAIRS,
    COLS = 8,         /* positions, or elements of V, of a panel */
    FEW = 8,          /* rows up to which K and V are read in place */
    STEPS = MT_SEGMENT / 4
};

typedef struct work {
    uint8_t *k;    /* [MT_SEGMENT / COLS][stride / 4][COLS][4] bf16 */
    uint8_t *v;    /* [stride / COLS][STEPS][COLS][4] */
    uint8_t *q;    /* panel of a tile's rows over stride */
    uint8_t *p;    /* panel of a tile's rows over positions */
    uint8_t *tail; /* [MT_LANES][stride]: the last block of V, padded */
    float *s;      /* [TILE][MT_SEGMENT] */
    float *o;      /* [TILE][stride] */
} work;

static work carve(uint8_t *scratch, size_t stride)
{
    work w = {.k = scratch};
    w.v = w.k + MT_SEGMENT * stride * sizeof(mt_bf16);
    w.q = w.v + MT_SEGMENT * stride * sizeof(mt_bf16);
    w.p = w.q + TILE * stride * sizeof(mt_bf16);
    w.tail = w.p + TILE * MT_SEGMENT * sizeof(mt_bf16);
    w.s = (float *)(void *)(w.tail + MT_LANES * stride * sizeof(mt_bf16));
    w.o = w.s + TILE * MT_SEGMENT;
    return w;
}

size_t mt_attn_scratch_bytes_bf16(size_t rows, size_t head_stride)
{
    size_t fp32 = mt_attn_scratch_bytes_neon(rows, head_stride);
    size_t halves = (2 * MT_SEGMENT + TILE + MT_LANES) * head_stride + TILE * MT_SEGMENT;
    size_t bytes = halves * sizeof(mt_bf16) + TILE * (MT_SEGMENT + head_stride) * sizeof(float);
    return bytes > fp32 ? bytes : fp32;
}

/* Blocks of MT_LANES positions around what is seen. */
static mt_attn_range blocks(mt_attn_range seen)
{
    return (mt_attn_range){seen.begin / MT_LANES * MT_LANES, (seen.end + MT_LANES - 1) / MT_LANES * MT_LANES};
}

static void store(uint8_t *out, bfloat16x8_t x)
{
    vst1q_u8(out, vreinterpretq_u8_bf16(x));
}

/* ---- panels ---- */

/* Rows r0 .. r0 + n - 1 of q; an odd last row is paired with zeros. */
static void pack_q(uint8_t *panel, const mt_attn *a, size_t r0, size_t n)
{
    size_t bytes = a->head_stride * sizeof(mt_bf16), pairs = (n + 1) / 2;
    for (size_t p = 0; p < pairs; p++) {
        const uint8_t *x = (const uint8_t *)a->q + (r0 + 2 * p) * bytes;
        uint8_t *out = panel + 16 * p;
        for (size_t i = 0; i < bytes; i += 16, out += 32 * pairs) {
            uint8x16_t first = vld1q_u8(x + i), second = 2 * p + 1 < n ? vld1q_u8(x + bytes + i) : vdupq_n_u8(0);
            store(out, mt_pair_low(first, second));
            store(out + 16 * pairs, mt_pair_high(first, second));
        }
    }
}

static void pack_k(uint8_t *panel, const uint8_t *k, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 16) {
        MT_UNROLL
        for (size_t p = 0; p < COLS / 2; p++) {
            uint8x16_t first = vld1q_u8(k + 2 * p * bytes + i), second = vld1q_u8(k + (2 * p + 1) * bytes + i);
            store(panel + 8 * i + 16 * p, mt_pair_low(first, second));
            store(panel + 8 * i + 16 * p + 64, mt_pair_high(first, second));
        }
    }
}

typedef struct quad {
    bfloat16x8_t v[4]; /* [4 pairs of elements][2][4 positions] */
} quad;

/* Eight elements of four positions */
MT_INLINE quad transpose(const uint8_t *v, size_t bytes)
{
    uint16x8_t a = vreinterpretq_u16_u8(vld1q_u8(v)), b = vreinterpretq_u16_u8(vld1q_u8(v + bytes));
    uint16x8_t c = vreinterpretq_u16_u8(vld1q_u8(v + 2 * bytes)), d = vreinterpretq_u16_u8(vld1q_u8(v + 3 * bytes));
    uint32x4_t ab0 = vreinterpretq_u32_u16(vzip1q_u16(a, b)), ab1 = vreinterpretq_u32_u16(vzip2q_u16(a, b));
    uint32x4_t cd0 = vreinterpretq_u32_u16(vzip1q_u16(c, d)), cd1 = vreinterpretq_u32_u16(vzip2q_u16(c, d));
    return (quad){{vreinterpretq_bf16_u32(vzip1q_u32(ab0, cd0)), vreinterpretq_bf16_u32(vzip2q_u32(ab0, cd0)),
                   vreinterpretq_bf16_u32(vzip1q_u32(ab1, cd1)), vreinterpretq_bf16_u32(vzip2q_u32(ab1, cd1))}};
}

/* MT_LANES positions from t into the panels of V */
static void pack_v(uint8_t *panels, const uint8_t *v, size_t bytes, size_t t)
{
    for (size_t i = 0; i < bytes; i += 16) {
        uint8_t *out = panels + i / 16 * STEPS * 64 + t / 4 * 64;
        for (size_t s = 0; s < MT_LANES / 4; s++, out += 64) {
            quad x = transpose(v + 4 * s * bytes + i, bytes);
            MT_UNROLL
            for (size_t p = 0; p < 4; p++)
                store(out + 16 * p, x.v[p]);
        }
    }
}

/* The block of V at t, with zeros from position `end` on. */
static const uint8_t *block_of_v(const work *w, const mt_attn *a, size_t seg, size_t t, size_t end)
{
    size_t bytes = a->head_stride * sizeof(mt_bf16);
    const uint8_t *v = mt_attn_at(a, a->v_offset, seg, t, sizeof(mt_bf16));
    if (t + MT_LANES <= end)
        return v;
    memcpy(w->tail, v, (end - t) * bytes);
    memset(w->tail + (end - t) * bytes, 0, (t + MT_LANES - end) * bytes);
    return w->tail;
}

/* ---- softmax of a row ---- */

/* exp of x <= 0 as bf16 and BFMMLA see it: below the smallest normal number it is zero. Elsewhere the bits of mt_exp4. */
MT_INLINE float32x4_t exp_negative(float32x4_t x)
{
    const float32x4_t magic = vdupq_n_f32(MT_ROUND_MAGIC + 127.0f);
    x = vmaxq_f32(x, vdupq_n_f32(-88.0f));
    float32x4_t z = vfmaq_f32(magic, x, vdupq_n_f32(MT_LOG2E)), n = vsubq_f32(z, magic);
    float32x4_t r = vfmsq_f32(vfmsq_f32(x, n, vdupq_n_f32(MT_LN2_HIGH)), n, vdupq_n_f32(MT_LN2_LOW));
    float32x4_t p = vfmaq_f32(vdupq_n_f32(MT_EXP_C3), vdupq_n_f32(MT_EXP_C4), r);
    p = vfmaq_f32(vdupq_n_f32(MT_EXP_C2), p, r);
    p = vfmaq_f32(vdupq_n_f32(MT_EXP_C1), p, r);
    p = vfmaq_f32(vdupq_n_f32(MT_EXP_C0), p, r);
    p = vaddq_f32(vfmaq_f32(r, vmulq_f32(r, r), p), vdupq_n_f32(1.0f));
    return vmulq_f32(p, vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(z), 23)));
}

MT_INLINE uint32x4_t visible(size_t t, mt_attn_range seen)
{
    static const uint32_t iota[4] = {0, 1, 2, 3};
    uint32x4_t at = vaddq_u32(vdupq_n_u32((uint32_t)t), vld1q_u32(iota));
    return vandq_u32(vcgeq_u32(at, vdupq_n_u32((uint32_t)seen.begin)), vcltq_u32(at, vdupq_n_u32((uint32_t)seen.end)));
}

/* Scales (and caps) the products of a row; unseen ones become -inf. Returns their maximum. */
static float scores(float *s, const mt_attn *a, mt_attn_range seen)
{
    const float32x4_t none = vdupq_n_f32(-INFINITY);
    mt_attn_range b = blocks(seen);
    float32x4_t top[4] = {none, none, none, none};
    for (size_t t = b.begin; t < b.end; t += MT_LANES) {
        bool part = t < seen.begin || t + MT_LANES > seen.end;
        MT_UNROLL
        for (size_t i = 0; i < 4; i++) {
            float32x4_t x = vmulq_n_f32(vld1q_f32(s + t + 4 * i), a->scale);
            if (a->softcap != 0.0f)
                x = mt_softcap4(x, a->softcap);
            if (part)
                x = vbslq_f32(visible(t + 4 * i, seen), x, none);
            vst1q_f32(s + t + 4 * i, x);
            top[i] = vmaxq_f32(top[i], x);
        }
    }
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(top[0], top[1]), vmaxq_f32(top[2], top[3])));
}

/* p of a row over the blocks of `all`, `step` bytes from one four of positions to the next; returns their sum. -inf becomes +0 even
   where m is -inf too. */
static float weights(uint8_t *p, size_t step, const float *s, float m, mt_attn_range seen, mt_attn_range all)
{
    mt_attn_range b = blocks(seen);
    mt_lanes4 sum = mt_lanes4_zero();
    float32x4_t shift = vdupq_n_f32(m);
    for (size_t t = all.begin; t < b.begin; t += 4, p += step)
        vst1_u8(p, vdup_n_u8(0));
    for (size_t t = b.begin; t < b.end; t += MT_LANES) {
        bool part = t < seen.begin || t + MT_LANES > seen.end;
        MT_UNROLL
        for (size_t i = 0; i < 4; i++, p += step) {
            float32x4_t e = exp_negative(vsubq_f32(vld1q_f32(s + t + 4 * i), shift));
            bfloat16x4_t h = vcvt_bf16_f32(e);
            if (part)
                h = vreinterpret_bf16_u16(vand_u16(vreinterpret_u16_bf16(h), vmovn_u32(visible(t + 4 * i, seen))));
            vst1_u8(p, vreinterpret_u8_bf16(h));
            sum.v[i] = vaddq_f32(sum.v[i], vcvt_f32_bf16(h));
        }
    }
    for (size_t t = b.end; t < all.end; t += 4, p += step)
        vst1_u8(p, vdup_n_u8(0));
    return mt_lanes4_fold(sum);
}

/* Products in w->s become the panel w->p over the blocks of `all`. */
static void softmax_tile(const work *w, mt_attn_part *part, const mt_attn *a, size_t seg, size_t r0, size_t n, mt_attn_range all)
{
    size_t pairs = (n + 1) / 2;
    for (size_t r = 0; r < 2 * pairs; r++) {
        uint8_t *p = w->p + r / 2 * 16 + r % 2 * 8;
        float *s = w->s + r * MT_SEGMENT;
        mt_attn_range seen = r < n ? mt_attn_seen(a, seg, r0 + r) : (mt_attn_range){0, 0};
        if (seen.begin == seen.end)
            seen = (mt_attn_range){all.end, all.end};
        float m = scores(s, a, seen), l = weights(p, 16 * pairs, s, m, seen, all);
        if (r < n)
            part[r0 + r] = (mt_attn_part){.m = m, .l = l};
    }
}

static void write_o(float *o, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i += 4)
        vst1q_f32(o + i, vaddq_f32(vld1q_f32(from + i), vdupq_n_f32(0.0f)));
}

/* ---- many rows: packed ---- */

static void run_tile(float *y, size_t ldy, const uint8_t *x, const uint8_t *w, size_t steps, size_t pairs)
{
    switch (pairs) {
    case 1: mt_btile(y, ldy, x, w, steps, false, 1, COLS / 2); break;
    case 2: mt_btile(y, ldy, x, w, steps, false, 2, COLS / 2); break;
    case 3: mt_btile(y, ldy, x, w, steps, false, 3, COLS / 2); break;
    case 4: mt_btile(y, ldy, x, w, steps, false, 4, COLS / 2); break;
    case 5: mt_btile(y, ldy, x, w, steps, false, 5, COLS / 2); break;
    default: mt_btile(y, ldy, x, w, steps, false, 6, COLS / 2); break;
    }
}

static void attend_tile(const work *w, float *o, mt_attn_part *part, const mt_attn *a, size_t seg, size_t r0, size_t n)
{
    size_t stride = a->head_stride, pairs = (n + 1) / 2;
    mt_attn_range all = blocks(mt_attn_seen_by(a, seg, r0, r0 + n));
    pack_q(w->q, a, r0, n);
    for (size_t t = all.begin; t < all.end; t += COLS)
        run_tile(w->s + t, MT_SEGMENT, w->q, w->k + t * stride * sizeof(mt_bf16), stride / 4, pairs);
    softmax_tile(w, part, a, seg, r0, n, all);
    for (size_t d = 0; d < stride; d += COLS)
        run_tile(w->o + d, stride, w->p, w->v + (d * STEPS + all.begin / 4 * COLS) * 8, (all.end - all.begin) / 4, pairs);
    write_o(o + r0 * stride, w->o, n * stride);
}

static void attend_many(const work *w, float *o, mt_attn_part *part, const mt_attn *a, size_t seg)
{
    size_t bytes = a->head_stride * sizeof(mt_bf16), pairs = (a->rows + 1) / 2;
    mt_attn_range seen = mt_attn_seen_by(a, seg, 0, a->rows), all = blocks(seen);
    for (size_t t = all.begin; t < all.end; t += MT_LANES) {
        const uint8_t *k = mt_attn_at(a, a->k_offset, seg, t, sizeof(mt_bf16));
        pack_k(w->k + t * bytes, k, bytes);
        pack_k(w->k + (t + COLS) * bytes, k + COLS * bytes, bytes);
        pack_v(w->v, block_of_v(w, a, seg, t, seen.end), bytes, t);
    }
    size_t tiles = (pairs + TILE_PAIRS - 1) / TILE_PAIRS;
    for (size_t i = 0; i < tiles; i++) {
        size_t r0 = 2 * (pairs * i / tiles), r1 = 2 * (pairs * (i + 1) / tiles);
        attend_tile(w, o, part, a, seg, r0, (r1 < a->rows ? r1 : a->rows) - r0);
    }
}

/* ---- few rows: in place ---- */

/* s[2 R][COLS] = q . COLS positions from k */
MT_INLINE void products_in_place(float *s, const uint8_t *q, const uint8_t *k, size_t bytes, size_t R)
{
    const uint8_t *row[COLS];
    float32x4_t acc[FEW / 2][MT_IN_PLACE];
    MT_UNROLL
    for (size_t c = 0; c < COLS; c++)
        row[c] = k + c * bytes;
    MT_UNROLL
    for (size_t r = 0; r < R; r++) {
        MT_UNROLL
        for (size_t c = 0; c < MT_IN_PLACE; c++)
            acc[r][c] = vdupq_n_f32(0.0f);
    }
    for (size_t i = 0; i < bytes; i += 16, q += 32 * R)
        mt_btile_eight(acc, q, row, i, R);
    MT_BTILE_STORE(s, (size_t)MT_SEGMENT, acc, R, MT_IN_PLACE)
}

/* o[stride / COLS][R][4] (pairs of pairs) += p . MT_LANES positions from v */
MT_INLINE void weigh_in_place(float *o, const uint8_t *p, const uint8_t *v, size_t bytes, size_t R)
{
    for (size_t i = 0; i < bytes; i += 16, o += 16 * R) {
        float32x4_t acc[FEW / 2][4];
        MT_UNROLL
        for (size_t j = 0; j < 4 * R; j++)
            acc[j / 4][j % 4] = vld1q_f32(o + 4 * j);
        MT_UNROLL
        for (size_t s = 0; s < MT_LANES / 4; s++) {
            quad x = transpose(v + 4 * s * bytes + i, bytes);
            if (R > 2)
                MT_LOADS_STAY;
            MT_UNROLL
            for (size_t r = 0; r < R; r++) {
                bfloat16x8_t weight = mt_load_bf16(p + (s * R + r) * 16);
                MT_UNROLL
                for (size_t c = 0; c < 4; c++)
                    acc[r][c] = vbfmmlaq_f32(acc[r][c], weight, x.v[c]);
            }
        }
        MT_UNROLL
        for (size_t j = 0; j < 4 * R; j++)
            vst1q_f32(o + 4 * j, acc[j / 4][j % 4]);
    }
}

/* Row r of [stride / COLS][R][4][2][2] */
static void write_row(float *o, const float *from, size_t stride, size_t r, size_t R)
{
    for (size_t d = 0; d < stride; d += COLS, from += 16 * R)
        for (size_t c = 0; c < 4; c++) {
            float32x2_t x = vld1_f32(from + (r / 2 * 4 + c) * 4 + r % 2 * 2);
            vst1_f32(o + d + 2 * c, vadd_f32(x, vdup_n_f32(0.0f)));
        }
}

MT_INLINE void attend_in_place(const work *w, float *o, mt_attn_part *part, const mt_attn *a, size_t seg, size_t R)
{
    size_t stride = a->head_stride, bytes = stride * sizeof(mt_bf16);
    mt_attn_range seen = mt_attn_seen_by(a, seg, 0, a->rows), all = blocks(seen);
    pack_q(w->q, a, 0, a->rows);
    for (size_t t = all.begin; t < all.end; t += MT_LANES) {
        const uint8_t *k = mt_attn_at(a, a->k_offset, seg, t, sizeof(mt_bf16));
        products_in_place(w->s + t, w->q, k, bytes, R);
        products_in_place(w->s + t + COLS, w->q, k + COLS * bytes, bytes, R);
    }
    softmax_tile(w, part, a, seg, 0, a->rows, all);
    memset(w->o, 0, 2 * R * stride * sizeof *w->o);
    for (size_t t = all.begin; t < all.end; t += MT_LANES)
        weigh_in_place(w->o, w->p + (t - all.begin) / 4 * 16 * R, block_of_v(w, a, seg, t, seen.end), bytes, R);
    for (size_t r = 0; r < a->rows; r++)
        write_row(o + r * stride, w->o, stride, r, R);
}

void mt_attn_bf16_bf16(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    work w = carve(scratch, a->head_stride);
    switch (a->rows <= FEW ? (a->rows + 1) / 2 : 0) {
    case 1: attend_in_place(&w, o, part, a, seg, 1); break;
    case 2: attend_in_place(&w, o, part, a, seg, 2); break;
    case 3: attend_in_place(&w, o, part, a, seg, 3); break;
    case 4: attend_in_place(&w, o, part, a, seg, 4); break;
    default: attend_many(&w, o, part, a, seg); break;
    }
}
