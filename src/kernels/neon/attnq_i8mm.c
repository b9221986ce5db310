/* Attention (R8 of docs/numerics.md) over keys and values in 8 or 4 bits with SMMLA and USMMLA. A matrix instruction
   takes eight channels of two queries and two keys; or eight positions of two channels of V, and the upper and lower
   bytes of a row's weights, which are 16-bit integers. Sums are exact, so tiles and order do not matter. Positions that
   a row does not see have weight zero, whatever is stored there. */
#include "kernels/attn.h"

#include <math.h>

#include "kernels/kvq.h"
#include "kernels/levels.h"
#include "kernels/neon/softmax.h"

enum {
    EIGHT = 8, /* positions whose keys, or values, are stored together */
    TILE = 8,  /* rows processed at once */
    PAIRS = TILE / 2,
    DEEP = 4,     /* rows whose sums over V are computed at once */
    TURN = 4,     /* eights of a page */
    PIECE = 256,  /* bytes that are prefetched at once */
    NARROW = 256, /* the widest head whose dot products are below 2^22 */
    EIGHTS = MT_SEGMENT / EIGHT,
    PAGES = MT_SEGMENT / MT_LANES
};

/* What is prefetched of the next segment meanwhile: the integers of its keys, then of its values, a piece of each page
   by turns, as memory is faster then than page after page. */
typedef struct ahead {
    const uint8_t *block[2][PAGES];
    size_t pages, bytes;        /* bytes of a block; 0: nothing is prefetched */
    size_t value, page, offset; /* the next piece */
} ahead;

typedef struct work {
    int8_t *q;                            /* [head_stride / 8][pair][2][8] */
    float *p;                             /* [TILE][MT_SEGMENT]: products, then weights */
    float *vd;                            /* [MT_SEGMENT] */
    uint8_t *u;                           /* [EIGHTS][TILE][upper | lower][8]: weights as integers */
    const uint8_t *k[EIGHTS], *v[EIGHTS]; /* integers of eight positions; of V those of the first 32 channels */
    const uint8_t *kd[EIGHTS];            /* scales */
    ahead ahead;
    size_t v_step; /* bytes to the next 32 channels */
    float qd[TILE];
} work;

static void carve(work *w, uint8_t *scratch)
{
    w->p = (float *)(void *)scratch;
    w->vd = w->p + TILE * MT_SEGMENT;
    w->u = (uint8_t *)(w->vd + MT_SEGMENT);
    w->q = (int8_t *)(w->u + EIGHTS * TILE * 16);
}

size_t mt_attn_q_scratch_bytes_i8mm(size_t rows, size_t head_stride)
{
    (void)rows;
    return (TILE + 1) * MT_SEGMENT * sizeof(float) + EIGHTS * TILE * 16 + TILE * head_stride;
}

/* Scales of eight positions */
MT_INLINE void load_scales(float32x4_t d[2], const uint8_t *at)
{
    const uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(at));
    d[0] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(h), 16));
    d[1] = vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(h), 16));
}

/* Sets where the eights of `all` are read, and loads the scales of V. */
static void find(work *w, const mt_attn *a, size_t seg, mt_attn_range all)
{
    const size_t tokens = a->page_tokens, key = a->head_stride * a->bits, value = 32 * a->bits;
    const size_t begin = seg * MT_SEGMENT + all.begin, end = seg * MT_SEGMENT + all.end;
    for (size_t page = begin / tokens; page * tokens < end; page++) {
        const uint8_t *at = a->base + a->pages[page] * a->page_stride, *kd = at + a->k_offset, *vd = at + a->v_offset;
        const uint8_t *k = kd + tokens * sizeof(mt_bf16), *v = vd + tokens * sizeof(mt_bf16);
        for (size_t slot = 0; slot < tokens; slot += EIGHT, k += key, v += value) {
            const size_t t = page * tokens + slot - seg * MT_SEGMENT, e = t / EIGHT;
            float32x4_t d[2];
            if (t < all.begin || t >= all.end)
                continue;
            w->k[e] = k;
            w->v[e] = v;
            w->kd[e] = kd + slot * sizeof(mt_bf16);
            load_scales(d, vd + slot * sizeof(mt_bf16));
            vst1q_f32(w->vd + t, d[0]);
            vst1q_f32(w->vd + t + 4, d[1]);
        }
    }
    w->v_step = 4 * a->bits * tokens;
}

/* Prefetches `bytes` from `at` on into the second-level cache. */
MT_INLINE void fetch(const uint8_t *at, size_t bytes)
{
    MT_UNROLL
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(at + i, 0, 2);
}

MT_INLINE void fetch_pieces(ahead *a, size_t count)
{
    for (; count > 0 && a->offset < a->bytes; count--) {
        fetch(a->block[a->value][a->page] + a->offset, PIECE);
        if (++a->page < a->pages)
            continue;
        a->page = 0;
        a->offset += PIECE;
        if (a->offset >= a->bytes && a->value == 0) {
            a->offset = 0;
            a->value = 1;
        }
    }
}

/* Sets what is prefetched of the next segment; prefetches its scales now. */
static void find_next(work *w, const mt_attn *a, size_t seg)
{
    const size_t tokens = a->page_tokens, scales = tokens * sizeof(mt_bf16), first = (seg + 1) * MT_SEGMENT / tokens;
    size_t end = 0;
    for (size_t r = 0; r < a->rows; r++)
        end = a->hi[r] > end ? a->hi[r] : end;
    w->ahead = (ahead){.bytes = 0};
    for (size_t page = first; page < first + MT_SEGMENT / tokens && page * tokens < end; page++) {
        const uint8_t *at = a->base + a->pages[page] * a->page_stride, *k = at + a->k_offset, *v = at + a->v_offset;
        for (size_t i = 0; i < scales; i += 64) {
            fetch(k + i, 64);
            fetch(v + i, 64);
        }
        w->ahead.block[0][w->ahead.pages] = k + scales;
        w->ahead.block[1][w->ahead.pages++] = v + scales;
    }
    if (w->ahead.pages)
        w->ahead.bytes = tokens * a->head_stride * a->bits / 8;
}

/* Packs queries r0 .. r0 + n - 1; an odd last one is paired with itself. */
static void pack(work *w, const mt_attn *a, size_t r0, size_t n)
{
    const size_t stride = a->head_stride, bytes = mt_kvq_query_bytes(stride), pairs = (n + 1) / 2;
    for (size_t r = 0; r < 2 * pairs; r++) {
        const uint8_t *q = (const uint8_t *)a->q + (r0 + (r < n ? r : n - 1)) * bytes;
        for (size_t i = 0; i < stride; i += 8)
            memcpy(w->q + i * 2 * pairs + r * 8, q + i, 8);
        memcpy(&w->qd[r], q + stride, sizeof(w->qd[r]));
    }
}

/* ---- products ---- */

MT_INLINE int8x16_t load(const void *p)
{
    return vreinterpretq_s8_u8(vld1q_u8(p));
}

/* acc[R][from ...] += q . k for eight channels of eight positions */
MT_INLINE void step(int32x4_t acc[][8], size_t from, const int8_t *q, const int8x16_t k[4], size_t R)
{
    MT_UNROLL
    for (size_t r = 0; r < R; r++) {
        const int8x16_t x = vld1q_s8(q + 16 * r);
        MT_UNROLL
        for (size_t c = 0; c < 4; c++)
            acc[r][from + c] = vmmlaq_s32(acc[r][from + c], x, k[c]);
    }
}

/* acc[R][from ...] += q . k for 8 or, of 4 bits, 16 channels of eight positions */
MT_INLINE void dots(int32x4_t acc[][8], size_t from, const int8_t *q, const uint8_t *k, unsigned bits, size_t R)
{
    int8x16_t line[4], low[4];
    MT_UNROLL
    for (size_t c = 0; c < 4; c++)
        line[c] = load(k + 16 * c);
    if (bits == 4) {
        MT_UNROLL
        for (size_t c = 0; c < 4; c++) {
            low[c] = vshlq_n_s8(line[c], 4);
            line[c] = vandq_s8(line[c], vdupq_n_s8((int8_t)-16));
        }
        step(acc, from, q, low, R);
        q += 32 * R;
    }
    step(acc, from, q, line, R);
}

MT_INLINE float32x4_t row_dots(int32x4_t a, int32x4_t b, size_t odd, float32x4_t magic, bool narrow)
{
    const int64x2_t x = vreinterpretq_s64_s32(a), y = vreinterpretq_s64_s32(b);
    const int32x4_t dots = vreinterpretq_s32_s64(odd ? vzip2q_s64(x, y) : vzip1q_s64(x, y));
    return narrow ? vsubq_f32(vreinterpretq_f32_s32(dots), magic) : vcvtq_f32_s32(dots);
}

/* p[N][8 E] = q . k of E eights of positions, TURN apart, times the scales of K. Where dot products are small enough,
   sums start from the bits of a float whose last place is 1, so that a subtraction turns them into floats: conversions
   are slow. */
MT_INLINE void products(float *p, work *w, size_t e, size_t stride, unsigned bits, size_t N, size_t E)
{
    static const mt_constant zero = MT_EACH4(0.0f), magic = MT_EACH4(MT_ROUND_MAGIC);
    const size_t R = (N + 1) / 2, pieces = E * bits / 8;
    const bool narrow = stride <= NARROW;
    const uint8_t *k[2] = {w->k[e], w->k[e + (E - 1) * TURN]};
    const int8_t *q = w->q;
    int32x4_t acc[PAIRS][8];
    MT_UNROLL
    for (size_t i = 0; i < 4 * E * R; i++)
        acc[i / (4 * E)][i % (4 * E)] = vreinterpretq_s32_f32(mt_reload(narrow ? &magic : &zero));
    for (size_t i = 0; i < stride; i += 32, k[0] += 32 * bits, k[1] += 32 * bits, q += 64 * R) {
        fetch_pieces(&w->ahead, pieces > 0 ? pieces : i / 32 % 2);
        MT_UNROLL
        for (size_t j = 0; j < E * bits / 2; j++)
            dots(acc, j % E * 4, q + 16 * R * (j / E), k[j % E] + 64 * (j / E), bits, R);
    }
    MT_UNROLL
    for (size_t f = 0; f < E; f++) {
        float32x4_t d[2];
        load_scales(d, w->kd[e + f * TURN]);
        MT_UNROLL
        for (size_t i = 0; i < 2 * N; i++) {
            const size_t r = i / 2, h = i % 2, c = 4 * f + 2 * h;
            vst1q_f32(p + r * MT_SEGMENT + 8 * TURN * f + 4 * h,
                      vmulq_f32(row_dots(acc[r / 2][c], acc[r / 2][c + 1], r % 2, mt_reload(&magic), narrow), d[h]));
        }
    }
}

/* Reads several pages by turns: memory is faster then than page after page. */
MT_INLINE void all_products(work *w, size_t stride, mt_attn_range all, unsigned bits, size_t N)
{
    const size_t end = all.end / EIGHT;
    for (size_t first = 0; first < TURN; first++)
        for (size_t e = first; e < end; e += TURN) {
            if (e < all.begin / EIGHT)
                continue;
            if (N <= 4 && e + TURN < end) {
                products(w->p + e * EIGHT, w, e, stride, bits, N, 2);
                e += TURN;
            } else {
                products(w->p + e * EIGHT, w, e, stride, bits, N, 1);
            }
        }
}

/* One function for each number of rows, as together they would use registers badly. */
#define PRODUCTS(bits, N)                                                                                  \
    __attribute__((noinline)) static void products_##bits##_##N(work *w, size_t stride, mt_attn_range all) \
    {                                                                                                      \
        all_products(w, stride, all, bits, N);                                                             \
    }
PRODUCTS(8, 1)
PRODUCTS(8, 2)
PRODUCTS(8, 4)
PRODUCTS(8, 6)
PRODUCTS(8, 8)
PRODUCTS(4, 1)
PRODUCTS(4, 2)
PRODUCTS(4, 4)
PRODUCTS(4, 6)
PRODUCTS(4, 8)

typedef void products_fn(work *, size_t, mt_attn_range);
static products_fn *const products_of[2][TILE / 2 + 1] = {
    {products_8_1, products_8_2, products_8_4, products_8_6, products_8_8},
    {products_4_1, products_4_2, products_4_4, products_4_6, products_4_8}};

/* ---- a row's weights ---- */

static bool whole(size_t t, mt_attn_range seen)
{
    return t >= seen.begin && t + MT_LANES <= seen.end;
}

/* What the weights of a row share. */
typedef struct row {
    mt_lanes4 sum; /* of p */
    float32x4_t top;
} row;

/* Factor of the products, and what is subtracted then; in memory, as mt_reload wants. */
typedef struct shift {
    mt_constant scale, m;
} shift;

/* Turns the products of 4 n positions from t on into p times the scales of V; n is 4 or 8. Invisible ones may be
   anything. */
MT_INLINE void block_weights(row *x, float *p, const float *vd, const shift *by, size_t t, mt_attn_range seen,
                             bool part, size_t n)
{
    float32x4_t s[8], e[8];
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        s[i] = vsubq_f32(vmulq_f32(vld1q_f32(p + t + 4 * i), mt_reload(&by->scale)), mt_reload(&by->m));
    mt_exp_negative(e, s, MT_KVQ_EXP_MIN, n);
    MT_UNROLL
    for (size_t i = 0; i < n; i++) {
        float32x4_t w = vmulq_f32(e[i], vld1q_f32(vd + t + 4 * i));
        if (part) {
            const uint32x4_t see = mt_visible(t + 4 * i, seen);
            e[i] = vbslq_f32(see, e[i], vdupq_n_f32(0.0f));
            w = vbslq_f32(see, w, vdupq_n_f32(0.0f));
        }
        x->sum.v[i % 4] = vaddq_f32(x->sum.v[i % 4], e[i]);
        x->top = vmaxq_f32(x->top, w);
        vst1q_f32(p + t + 4 * i, w);
    }
}

/* The same for n positions, a multiple of 32, all visible. A separate function, so that its constants stay in
   registers. */
__attribute__((noinline)) static void seen_weights(row *x, float *p, const float *vd, const shift *by, size_t n,
                                                   ahead *next, size_t pieces)
{
    row y = *x;
    for (size_t t = 0; t < n; t += 32) {
        fetch_pieces(next, pieces);
        block_weights(&y, p, vd, by, t, (mt_attn_range){0, n}, false, 8);
    }
    *x = y;
}

/* Turns the products of a row into weights, over the blocks that it sees; *top: the largest weight. */
static mt_attn_part softmax_row(float *p, work *w, const mt_attn *a, float qd, mt_attn_range seen, float *top)
{
    const mt_attn_range b = mt_attn_whole_blocks(seen);
    float scale = qd * a->scale;
    float32x4_t most = vdupq_n_f32(-INFINITY);
    row x = {.sum = mt_lanes4_zero(), .top = vdupq_n_f32(0.0f)};
    if (a->softcap != 0.0f ||
        !(scale > 0.0f && scale <= FLT_MAX)) { /* otherwise the largest product has the largest score */
        mt_scale_and_cap(p, scale, a->softcap, b);
        scale = 1.0f;
    }
    for (size_t t = b.begin; t < b.end; t += MT_LANES)
        most = mt_block_top(most, p, t, seen, !whole(t, seen));
    const float m = vmaxvq_f32(most) * scale;
    const shift by = {.scale = MT_EACH4(scale), .m = MT_EACH4(m)};
    for (size_t t = b.begin, n; t < b.end; t += n) {
        n = t < seen.begin || t + 2 * MT_LANES > seen.end ? MT_LANES : (seen.end - t) / 32 * 32;
        if (n == MT_LANES)
            block_weights(&x, p, w->vd, &by, t, seen, true, 4);
        else
            seen_weights(&x, p + t, w->vd + t, &by, n, &w->ahead, a->bits / 2);
    }
    *top = vmaxvq_f32(x.top);
    return (mt_attn_part){.m = m, .l = mt_lanes4_fold(x.sum)};
}

/* Weights of eight positions as integers: upper, then lower bytes. They are below 2^22, so adding a number of which
   they are the last places rounds them; NaN gives anything, and the scale shows it. */
MT_INLINE uint8x16_t integers(const float *p, float32x4_t factor, float32x4_t magic, uint8x16_t upper_then_lower)
{
    const float32x4_t a = vaddq_f32(vmulq_f32(vld1q_f32(p), factor), magic);
    const float32x4_t b = vaddq_f32(vmulq_f32(vld1q_f32(p + 4), factor), magic);
    const uint16x8_t both = vuzp1q_u16(vreinterpretq_u16_f32(a), vreinterpretq_u16_f32(b));
    return vqtbl1q_u8(vreinterpretq_u8_u16(both), upper_then_lower);
}

/* The weights of a row as integers; returns the value of 1. */
static float round_row(uint8_t *u, const float *p, float top, mt_attn_range seen, mt_attn_range all)
{
    static const uint8_t upper_then_lower[16] = {1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10, 12, 14};
    static const mt_constant magic = MT_EACH4(MT_ROUND_MAGIC);
    const mt_attn_range b = mt_attn_whole_blocks(seen);
    float x = MT_KVQ_WEIGHT_MAX / top;
    x = x <= FLT_MAX ? x : 0.0f;
    const mt_constant factor = MT_EACH4(x);
    const float32x4_t times = mt_reload(&factor), plus = mt_reload(&magic);
    const uint8x16_t order = vld1q_u8(upper_then_lower);
    for (size_t t = all.begin; t < all.end; t += EIGHT, u += TILE * 16)
        vst1q_u8(u, t >= b.begin && t < b.end ? integers(p + t, times, plus, order) : vdupq_n_u8(0));
    return top / MT_KVQ_WEIGHT_MAX;
}

/* ---- sums over V ---- */

/* acc[R][from ...] += weights . values for 2 C channels of eight positions */
MT_INLINE void add(int32x4_t acc[][16], const uint8_t *u, const int8x16_t *v, size_t from, size_t R, size_t C)
{
    MT_UNROLL
    for (size_t r = 0; r < R; r++) {
        const uint8x16_t x = vld1q_u8(u + 16 * r);
        MT_UNROLL
        for (size_t c = 0; c < C; c++)
            acc[r][from + c] = vusmmlaq_s32(acc[r][from + c], x, v[c]);
    }
}

/* acc[R][2 C] += weights . values for 4 C channels of eight positions */
MT_INLINE void add_eight(int32x4_t acc[][16], const uint8_t *u, const uint8_t *v, unsigned bits, size_t R, size_t C)
{
    int8x16_t low[8], high[8];
    MT_UNROLL
    for (size_t c = 0; c < C; c++) {
        high[c] = load(v + 16 * c);
        low[c] = bits == 4 ? vshlq_n_s8(high[c], 4) : high[c];
        high[c] = bits == 4 ? vandq_s8(high[c], vdupq_n_s8((int8_t)-16)) : load(v + 128 + 16 * c);
    }
    add(acc, u, low, 0, R, C);
    add(acc, u, high, C, R, C);
}

/* o[R][...] of 4 C channels: 2 C of those `at` bytes from the beginning, and 2 C from 16 channels later. Sixteen
   positions at a time, which are in one page. */
MT_INLINE void weigh(float *o, size_t stride, const float *unit, work *w, const uint8_t *u, mt_attn_range all,
                     size_t at, unsigned bits, size_t R, size_t C)
{
    int32x4_t acc[DEEP][16];
    MT_UNROLL
    for (size_t i = 0; i < 2 * C * R; i++)
        acc[i / (2 * C)][i % (2 * C)] = vdupq_n_s32(0);
    const size_t begin = all.begin / EIGHT, end = all.end / EIGHT, pieces = C * bits / 32;
    for (size_t n = 0, e = begin; n < end - begin;
         n += 2, e = e + TURN < end ? e + TURN : begin + (e - begin) % TURN + 2) {
        const uint8_t *v = w->v[e] + at, *x = u + (e - begin) * TILE * 16;
        fetch_pieces(&w->ahead, pieces > 0 ? pieces : n % (64 / (C * bits)) == 0);
        add_eight(acc, x, v, bits, R, C);
        add_eight(acc, x + TILE * 16, v + 32 * bits, bits, R, C);
    }
    MT_UNROLL
    for (size_t i = 0; i < C * R; i++) {
        const size_t r = i / C, c = 2 * (i % C), channel = c < C ? 2 * c : 16 + 2 * (c - C);
        const int64x2_t x = vreinterpretq_s64_s32(acc[r][c]), y = vreinterpretq_s64_s32(acc[r][c + 1]);
        const int32x4_t upper = vreinterpretq_s32_s64(vzip1q_s64(x, y));
        const int32x4_t sum = vaddq_s32(vshlq_n_s32(upper, 8), vreinterpretq_s32_s64(vzip2q_s64(x, y)));
        vst1q_f32(o + r * stride + channel, vmulq_n_f32(vcvtq_f32_s32(sum), unit[r]));
    }
}

MT_INLINE void weigh_rows(float *o, size_t stride, const float *unit, work *w, const uint8_t *u, mt_attn_range all,
                          unsigned bits, size_t R)
{
    const size_t C = R == 1 ? 8 : R <= 3 ? 4 : 2;
    for (size_t i = 0; i < stride; i += 32)
        for (size_t c = 0; c < 16; c += 2 * C)
            weigh(o + i + c, stride, unit, w, u, all, i / 32 * w->v_step + 8 * c, bits, R, C);
}

/* One function for each number of rows, as together they would use registers badly. */
#define WEIGH(bits, R)                                                                                            \
    __attribute__((noinline)) static void weigh_##bits##_##R(float *o, size_t stride, const float *unit, work *w, \
                                                             const uint8_t *u, mt_attn_range all)                 \
    {                                                                                                             \
        weigh_rows(o, stride, unit, w, u, all, bits, R);                                                          \
    }
WEIGH(8, 1)
WEIGH(8, 2)
WEIGH(8, 3)
WEIGH(8, 4)
WEIGH(4, 1)
WEIGH(4, 2)
WEIGH(4, 3)
WEIGH(4, 4)

static void all_weighed(float *o, size_t stride, const float *unit, work *w, mt_attn_range all, unsigned bits, size_t n)
{
    typedef void weigh_fn(float *, size_t, const float *, work *, const uint8_t *, mt_attn_range);
    static weigh_fn *const fn[2][DEEP] = {{weigh_8_1, weigh_8_2, weigh_8_3, weigh_8_4},
                                          {weigh_4_1, weigh_4_2, weigh_4_3, weigh_4_4}};
    for (size_t r = 0, some; r < n; r += some) {
        some = n - r < DEEP ? n - r : DEEP;
        fn[bits == 4][some - 1](o + r * stride, stride, unit + r, w, w->u + 16 * r, all);
    }
}

static void attend_tile(work *w, float *o, mt_attn_part *part, const mt_attn *a, size_t seg, size_t r0, size_t n)
{
    const size_t stride = a->head_stride;
    const mt_attn_range all = mt_attn_whole_blocks(mt_attn_seen_by(a, seg, r0, r0 + n));
    float unit[TILE];
    pack(w, a, r0, n);
    products_of[a->bits == 4][n == 1 ? 0 : (n + 1) / 2](w, stride, all);
    for (size_t r = 0; r < n; r++) {
        const mt_attn_range seen = mt_attn_seen(a, seg, r0 + r);
        float *p = w->p + r * MT_SEGMENT, top;
        part[r0 + r] = softmax_row(p, w, a, w->qd[r], seen, &top);
        unit[r] = round_row(w->u + 16 * r, p, top, seen, all);
    }
    all_weighed(o + r0 * stride, stride, unit, w, all, a->bits, n);
}

void mt_attn_q_i8mm(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    work w;
    carve(&w, scratch);
    find(&w, a, seg, mt_attn_whole_blocks(mt_attn_seen_by(a, seg, 0, a->rows)));
    find_next(&w, a, seg);
    for (size_t r = 0; r < a->rows; r += TILE)
        attend_tile(&w, o, part, a, seg, r, a->rows - r < TILE ? a->rows - r : TILE);
}
