/* R8 over keys and values in 8 or 4 bits with SMMLA and USMMLA. A product of matrices takes eight channels of two
   queries and two keys; or eight positions of two channels of V and the upper and the lower bytes of a row's weights,
   which are integers of 16 bits. Sums are exact, so that no tile and no order matters. Positions that a row does not
   see have weights of zero, whatever lies there. */
#include "kernels/attn.h"

#include <math.h>

#include "kernels/kvq.h"
#include "kernels/levels.h"
#include "kernels/neon/softmax.h"

enum {
    EIGHT = 8, /* positions whose keys, or values, lie together */
    TILE = 8,  /* rows taken at once */
    PAIRS = TILE / 2,
    DEEP = 4, /* rows whose sums over V are taken at once */
    FEW = 8,  /* rows up to which fetching ahead pays */
    TURN = 4, /* eights of a page */
    EIGHTS = MT_SEGMENT / EIGHT
};

typedef struct work {
    int8_t *q;                            /* [head_stride / 8][pair][2][8] */
    float *p;                             /* [TILE][MT_SEGMENT]: products, then weights */
    float *vd;                            /* [MT_SEGMENT] */
    uint8_t *u;                           /* [EIGHTS][TILE][upper | lower][8]: weights as integers */
    const uint8_t *k[EIGHTS], *v[EIGHTS]; /* integers of eight positions; of V those of the first 32 channels */
    const uint8_t *kd[EIGHTS];            /* scales */
    const uint8_t *next[EIGHTS];          /* K of the next segment */
    size_t v_step;                        /* bytes to the next 32 channels */
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

/* Where to read the eights of `all`, and the scales of V. */
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

/* `bytes` from `at` on into the second-level cache */
MT_INLINE void fetch(const uint8_t *at, size_t bytes)
{
    MT_UNROLL
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(at + i, 0, 2);
}

/* Keys of the next segment, to be fetched; where there are none, that is q, which is at hand. Its scales are fetched
   now. */
static void find_next(work *w, const mt_attn *a, size_t seg)
{
    const size_t tokens = a->page_tokens, key = a->head_stride * a->bits, first = (seg + 1) * MT_SEGMENT;
    size_t end = 0;
    for (size_t r = 0; r < a->rows; r++)
        end = a->hi[r] > end ? a->hi[r] : end;
    for (size_t e = 0; e < EIGHTS; e++)
        w->next[e] = a->q;
    for (size_t page = first / tokens, e = 0; e < EIGHTS && page * tokens < end; page++) {
        const uint8_t *at = a->base + a->pages[page] * a->page_stride, *k = at + a->k_offset;
        fetch(k, tokens * sizeof(mt_bf16));
        fetch(at + a->v_offset, tokens * sizeof(mt_bf16));
        for (size_t slot = 0; slot < tokens; slot += EIGHT)
            w->next[e++] = k + tokens * sizeof(mt_bf16) + slot / EIGHT * key;
    }
}

/* Queries r0 .. r0 + n - 1; an odd last one is paired with itself. */
static void pack(work *w, const mt_attn *a, size_t r0, size_t n)
{
    const size_t stride = a->head_stride, bytes = mt_kvq_query_bytes(stride), pairs = (n + 1) / 2;
    for (size_t r = 0; r < 2 * pairs; r++) {
        const uint8_t *q = (const uint8_t *)a->q + (r0 + (r < n ? r : n - 1)) * bytes;
        for (size_t i = 0; i < stride; i += 8)
            memcpy(w->q + i * 2 * pairs + r * 8, q + i, 8);
        memcpy(&w->qd[r], q + stride, sizeof w->qd[r]);
    }
}

/* ---- products ---- */

MT_INLINE int8x16_t load(const void *p)
{
    return vreinterpretq_s8_u8(vld1q_u8(p));
}

/* acc[R][4] += q . k for eight channels of eight positions */
MT_INLINE void step(int32x4_t acc[][4], const int8_t *q, const int8x16_t k[4], size_t R)
{
    MT_UNROLL
    for (size_t r = 0; r < R; r++) {
        const int8x16_t x = vld1q_s8(q + 16 * r);
        MT_UNROLL
        for (size_t c = 0; c < 4; c++)
            acc[r][c] = vmmlaq_s32(acc[r][c], x, k[c]);
    }
}

/* acc[R][4] += q . k for 32 channels of eight positions */
MT_INLINE void dots(int32x4_t acc[][4], const int8_t *q, const uint8_t *k, unsigned bits, size_t R)
{
    MT_UNROLL
    for (size_t j = 0; j < bits / 2; j++) {
        int8x16_t line[4], low[4];
        MT_UNROLL
        for (size_t c = 0; c < 4; c++)
            line[c] = load(k + 64 * j + 16 * c);
        if (bits == 4) {
            MT_UNROLL
            for (size_t c = 0; c < 4; c++) {
                low[c] = vshlq_n_s8(line[c], 4);
                line[c] = vandq_s8(line[c], vdupq_n_s8((int8_t)-16));
            }
            step(acc, q + 16 * R * j, low, R);
        }
        step(acc, q + 16 * R * (bits == 4 ? j + 2 : j), line, R);
    }
}

MT_INLINE float32x4_t row_dots(int32x4_t a, int32x4_t b, size_t odd)
{
    const int64x2_t x = vreinterpretq_s64_s32(a), y = vreinterpretq_s64_s32(b);
    return vcvtq_f32_s32(vreinterpretq_s32_s64(odd ? vzip2q_s64(x, y) : vzip1q_s64(x, y)));
}

/* p[N][8] = q . k of eight positions, times the scales of K; meanwhile their values may be fetched */
MT_INLINE void products(float *p, const work *w, size_t e, size_t stride, unsigned bits, size_t N)
{
    const size_t R = (N + 1) / 2;
    const uint8_t *k = w->k[e], *v = w->v[e];
    const int8_t *q = w->q;
    int32x4_t acc[PAIRS][4];
    float32x4_t d[2];
    MT_UNROLL
    for (size_t i = 0; i < 4 * R; i++)
        acc[i / 4][i % 4] = vdupq_n_s32(0);
    for (size_t i = 0; i < stride; i += 32, k += 32 * bits, q += 64 * R, v += w->v_step) {
        if (N <= FEW)
            fetch(v, 32 * bits);
        dots(acc, q, k, bits, R);
    }
    load_scales(d, w->kd[e]);
    MT_UNROLL
    for (size_t i = 0; i < 2 * N; i++) {
        const size_t r = i / 2, h = i % 2;
        vst1q_f32(p + r * MT_SEGMENT + 4 * h,
                  vmulq_f32(row_dots(acc[r / 2][2 * h], acc[r / 2][2 * h + 1], r % 2), d[h]));
    }
}

/* Memory gives more when some pages are read in turns than when one follows the other. */
MT_INLINE void all_products(const work *w, size_t stride, mt_attn_range all, unsigned bits, size_t N)
{
    for (size_t first = 0; first < TURN; first++)
        for (size_t e = first; e < all.end / EIGHT; e += TURN)
            if (e >= all.begin / EIGHT)
                products(w->p + e * EIGHT, w, e, stride, bits, N);
}

/* A function for each number of rows: together they would share registers badly. */
#define PRODUCTS(bits, N)                                                                                        \
    __attribute__((noinline)) static void products_##bits##_##N(const work *w, size_t stride, mt_attn_range all) \
    {                                                                                                            \
        all_products(w, stride, all, bits, N);                                                                   \
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

typedef void products_fn(const work *, size_t, mt_attn_range);
static products_fn *const products_of[2][TILE / 2 + 1] = {
    {products_8_1, products_8_2, products_8_4, products_8_6, products_8_8},
    {products_4_1, products_4_2, products_4_4, products_4_6, products_4_8}};

/* ---- a row's weights ---- */

static bool whole(size_t t, mt_attn_range seen)
{
    return t >= seen.begin && t + MT_LANES <= seen.end;
}

/* What the weights of a row have in common. */
typedef struct row {
    mt_lanes4 sum; /* of p */
    float32x4_t top;
} row;

/* Products of 4 n positions from t become p times the scales of V, n being 4 or 8. Those not seen may be anything. */
MT_INLINE void block_weights(row *x, float *p, const float *vd, float scale, float m, size_t t, mt_attn_range seen,
                             bool part, size_t n)
{
    float32x4_t s[8], e[8];
    MT_UNROLL
    for (size_t i = 0; i < n; i++)
        s[i] = vsubq_f32(vmulq_n_f32(vld1q_f32(p + t + 4 * i), scale), vdupq_n_f32(m));
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

/* The same for n positions, a multiple of 32, all of them seen. A function of its own keeps its constants in
   registers. */
__attribute__((noinline)) static void seen_weights(row *x, float *p, const float *vd, float scale, float m, size_t n)
{
    row y = *x;
    for (size_t t = 0; t < n; t += 32)
        block_weights(&y, p, vd, scale, m, t, (mt_attn_range){0, n}, false, 8);
    *x = y;
}

/* Products of a row become weights, over the blocks that it sees of; *top is the largest. */
static mt_attn_part softmax_row(float *p, const float *vd, const mt_attn *a, float qd, mt_attn_range seen, float *top)
{
    const mt_attn_range b = mt_attn_blocks(seen);
    float scale = qd * a->scale;
    float32x4_t most = vdupq_n_f32(-INFINITY);
    row x = {.sum = mt_lanes4_zero(), .top = vdupq_n_f32(0.0f)};
    if (a->softcap != 0.0f ||
        !(scale > 0.0f && scale <= FLT_MAX)) { /* else the largest product has the largest score */
        mt_scale_and_cap(p, scale, a->softcap, b);
        scale = 1.0f;
    }
    for (size_t t = b.begin; t < b.end; t += MT_LANES)
        most = mt_block_top(most, p, t, seen, !whole(t, seen));
    const float m = vmaxvq_f32(most) * scale;
    for (size_t t = b.begin, n; t < b.end; t += n) {
        n = t < seen.begin || t + 2 * MT_LANES > seen.end ? MT_LANES : (seen.end - t) / 32 * 32;
        if (n == MT_LANES)
            block_weights(&x, p, vd, scale, m, t, seen, true, 4);
        else
            seen_weights(&x, p + t, vd + t, scale, m, n);
    }
    *top = vmaxvq_f32(x.top);
    return (mt_attn_part){.m = m, .l = mt_lanes4_fold(x.sum)};
}

/* Weights of eight positions as integers: upper, then lower bytes. FCVTNU makes 0 of NaN. */
MT_INLINE uint8x16_t integers(const float *p, float factor)
{
    static const uint8_t upper_then_lower[16] = {1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10, 12, 14};
    const uint32x4_t a = vcvtnq_u32_f32(vmulq_n_f32(vld1q_f32(p), factor));
    const uint32x4_t b = vcvtnq_u32_f32(vmulq_n_f32(vld1q_f32(p + 4), factor));
    const uint16x8_t both = vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
    return vqtbl1q_u8(vreinterpretq_u8_u16(both), vld1q_u8(upper_then_lower));
}

/* The weights of a row as integers; returns what 1 of them is. */
static float round_row(uint8_t *u, const float *p, float top, mt_attn_range seen, mt_attn_range all)
{
    const mt_attn_range b = mt_attn_blocks(seen);
    float factor = MT_KVQ_WEIGHT_MAX / top;
    factor = factor <= FLT_MAX ? factor : 0.0f;
    for (size_t t = all.begin; t < all.end; t += EIGHT, u += TILE * 16)
        vst1q_u8(u, t >= b.begin && t < b.end ? integers(p + t, factor) : vdupq_n_u8(0));
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

/* o[R][...] of 4 C channels: 2 C of those that lie `at` bytes from the beginning, and 2 C from 16 channels later.
   Meanwhile as much of the next segment's keys is fetched. */
MT_INLINE void weigh(float *o, size_t stride, const float *unit, const work *w, const uint8_t *u, mt_attn_range all,
                     size_t at, size_t ahead, unsigned bits, size_t R, size_t C)
{
    int32x4_t acc[DEEP][16];
    MT_UNROLL
    for (size_t i = 0; i < 2 * C * R; i++)
        acc[i / (2 * C)][i % (2 * C)] = vdupq_n_s32(0);
    const size_t begin = all.begin / EIGHT, end = all.end / EIGHT, eights = end - begin;
    for (size_t n = 0, e = begin; n < eights; n++, e = e + TURN < end ? e + TURN : begin + (e - begin) % TURN + 1) {
        const uint8_t *v = w->v[e] + at, *x = u + (e - begin) * TILE * 16;
        int8x16_t low[8], high[8];
        fetch(w->next[e] + ahead, 4 * C * bits);
        MT_UNROLL
        for (size_t c = 0; c < C; c++) {
            high[c] = load(v + 16 * c);
            low[c] = bits == 4 ? vshlq_n_s8(high[c], 4) : high[c];
            high[c] = bits == 4 ? vandq_s8(high[c], vdupq_n_s8((int8_t)-16)) : load(v + 128 + 16 * c);
        }
        add(acc, x, low, 0, R, C);
        add(acc, x, high, C, R, C);
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

MT_INLINE void weigh_rows(float *o, size_t stride, const float *unit, const work *w, const uint8_t *u,
                          mt_attn_range all, unsigned bits, size_t R)
{
    const size_t C = R == 1 ? 8 : R <= 3 ? 4 : 2;
    for (size_t i = 0; i < stride; i += 32)
        for (size_t c = 0; c < 16; c += 2 * C)
            weigh(o + i + c, stride, unit, w, u, all, i / 32 * w->v_step + 8 * c, (i + 2 * c) * bits, bits, R, C);
}

/* A function for each number of rows: together they would share registers badly. */
#define WEIGH(bits, R)                                                                                           \
    __attribute__((noinline)) static void weigh_##bits##_##R(float *o, size_t stride, const float *unit,         \
                                                             const work *w, const uint8_t *u, mt_attn_range all) \
    {                                                                                                            \
        weigh_rows(o, stride, unit, w, u, all, bits, R);                                                         \
    }
WEIGH(8, 1)
WEIGH(8, 2)
WEIGH(8, 3)
WEIGH(8, 4)
WEIGH(4, 1)
WEIGH(4, 2)
WEIGH(4, 3)
WEIGH(4, 4)

static void all_weighed(float *o, size_t stride, const float *unit, const work *w, mt_attn_range all, unsigned bits,
                        size_t n)
{
    typedef void weigh_fn(float *, size_t, const float *, const work *, const uint8_t *, mt_attn_range);
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
    const mt_attn_range all = mt_attn_blocks(mt_attn_seen_by(a, seg, r0, r0 + n));
    float unit[TILE];
    pack(w, a, r0, n);
    products_of[a->bits == 4][n == 1 ? 0 : (n + 1) / 2](w, stride, all);
    for (size_t r = 0; r < n; r++) {
        const mt_attn_range seen = mt_attn_seen(a, seg, r0 + r);
        float *p = w->p + r * MT_SEGMENT, top;
        part[r0 + r] = softmax_row(p, w->vd, a, w->qd[r], seen, &top);
        unit[r] = round_row(w->u + 16 * r, p, top, seen, all);
    }
    all_weighed(o + r0 * stride, stride, unit, w, all, a->bits, n);
}

void mt_attn_q_i8mm(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    work w;
    carve(&w, scratch);
    find(&w, a, seg, mt_attn_blocks(mt_attn_seen_by(a, seg, 0, a->rows)));
    find_next(&w, a, seg);
    for (size_t r = 0; r < a->rows; r += TILE)
        attend_tile(&w, o, part, a, seg, r, a->rows - r < TILE ? a->rows - r : TILE);
}
