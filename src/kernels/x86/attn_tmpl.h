/* Attention (R8 of docs/numerics.md); reductions by R6. Few rows read K and V where they are (attn_few.h). With
   AVX-512, more are columns of registers (attn_columns.h), for which AVX2 has too few. There, K and V of the visible
   positions are widened to fp32, SPAN rows at a time in tiles of TILE_X; V is stored lane by lane, position t at
   [t % 16][t / 16], so that products of one lane read memory in order. */
#include "kernels/attn.h"

#include "kernels/levels.h"
#include "kernels/x86/attn_columns.h"
#include "kernels/x86/attn_few.h"

enum { SPAN = 4 * TILE_X, BLOCKS = MT_SEGMENT / MT_LANES };
enum { WIDE = 4, NARROW = VREGS }; /* registers of a row of V processed at once */
enum { FEW_TIMES = 2 };            /* how often K and V are read in place, from the cache but the first time */

typedef struct work {
    float *k; /* [MT_SEGMENT][head_stride] */
    float *v; /* [MT_LANES][BLOCKS][head_stride] */
    float *q; /* [SPAN][head_stride] */
    float *p; /* [SPAN][MT_SEGMENT] */
} work;

static work carve(uint8_t *scratch, size_t stride)
{
    float *f = (float *)(void *)scratch;
    work s = {.k = f, .v = f + MT_SEGMENT * stride};
    s.q = s.v + MT_SEGMENT * stride;
    s.p = s.q + SPAN * stride;
    return s;
}

static size_t tile_scratch(size_t head_stride)
{
    return ((2 * MT_SEGMENT + SPAN) * head_stride + SPAN * MT_SEGMENT) * sizeof(float);
}

size_t MT_LEVEL(attn_scratch_bytes)(size_t rows, size_t head_stride)
{
    (void)rows;
    const size_t tile = tile_scratch(head_stride), columns = mt_columns_scratch(head_stride);
    return tile > columns ? tile : columns;
}

/* n % 16 == 0 */
MT_INLINE void widen(float *y, const uint8_t *x, size_t n, bool bf16)
{
    for (size_t i = 0; i < n; i += VL)
        vf_store(y + i, mt_kv_load(x + i * (bf16 ? 2 : 4), bf16));
}

/* Sets positions from u.end to the next multiple of MT_LANES to zero. */
MT_INLINE void gather_k(const work *w, const mt_attn *a, size_t seg, mt_attn_range u, bool bf16)
{
    const size_t stride = a->head_stride;
    for (size_t t = u.begin / MT_LANES * MT_LANES; t < u.end; t += MT_LANES) {
        size_t count = u.end - t < MT_LANES ? u.end - t : MT_LANES;
        widen(w->k + t * stride, mt_attn_at(a, a->k_offset, seg, t, bf16 ? 2 : 4), count * stride, bf16);
        memset(w->k + (t + count) * stride, 0, (MT_LANES - count) * stride * sizeof(float));
    }
}

MT_INLINE void gather_v(const work *w, const mt_attn *a, size_t seg, mt_attn_range u, bool bf16)
{
    const size_t stride = a->head_stride, element = bf16 ? 2 : 4;
    for (size_t t = u.begin / MT_LANES * MT_LANES; t < u.end; t += MT_LANES) {
        const uint8_t *from = mt_attn_at(a, a->v_offset, seg, t, element);
        for (size_t l = 0; l < MT_LANES; l++) {
            float *to = w->v + (l * BLOCKS + t / MT_LANES) * stride;
            if (t + l < u.end)
                widen(to, from + l * stride * element, stride, bf16);
            else
                memset(to, 0, stride * sizeof(*to));
        }
    }
}

/* Rows of a tile where n rows are divided evenly. */
static size_t even(size_t n)
{
    const size_t tiles = (n + TILE_X - 1) / TILE_X;
    return (n + tiles - 1) / tiles;
}

/* Raw products of n rows with positions t .. t+TILE_W */
static void products_at(const work *w, size_t stride, size_t t, size_t n)
{
    for (size_t c = 0, step = even(n), nc; c < n; c += nc) {
        const float *q[TILE_X];
        float out[TILE_X][TILE_W];
        nc = n - c < step ? n - c : step;
        for (size_t i = 0; i < nc; i++)
            q[i] = w->q + (c + i) * stride;
        mt_tile_dot(out, w->k + t * stride, stride, q, stride, nc);
        for (size_t i = 0; i < nc; i++)
            memcpy(w->p + (c + i) * MT_SEGMENT + t, out[i], sizeof(out[i]));
    }
}

/* The same for the positions of u; prefetches V for gather_v meanwhile. */
static void products(const work *w, const mt_attn *a, size_t seg, mt_attn_range u, size_t n, bool fetch, size_t element)
{
    for (size_t t = u.begin / TILE_W * TILE_W; t < u.end; t += TILE_W) {
        if (fetch)
            mt_few_fetch(mt_attn_at(a, a->v_offset, seg, t, element), TILE_W * a->head_stride * element, false);
        products_at(w, a->head_stride, t, n);
    }
}

/* Replaces the products by s, for the blocks that the row sees; returns the largest visible one. */
static float scores(float *p, const mt_attn *a, mt_attn_range seen)
{
    const vf none = vf_set1(-INFINITY);
    const mt_attn_range b = mt_attn_blocks(seen);
    vf top = none;
    for (size_t t = b.begin * MT_LANES; t < b.end * MT_LANES; t += VL) {
        vf s = vf_mul(vf_load(p + t), vf_set1(a->scale));
        s = a->softcap != 0.0f ? vf_softcap(s, vf_set1(a->softcap)) : s;
        vf_store(p + t, s);
        top = vf_max1(top, vf_select(vi_within(t, seen.begin, seen.end), s, none));
    }
    return vf_max_of(top);
}

/* Turns products into p, zero where the row does not see. */
static mt_attn_part softmax_row(float *p, const mt_attn *a, mt_attn_range seen, bool round)
{
    const float m = scores(p, a, seen);
    const mt_attn_range b = mt_attn_blocks(seen);
    vlanes sum = vlanes_zero();
    for (size_t t = b.begin * MT_LANES; t < b.end * MT_LANES; t += MT_LANES) {
        MT_UNROLL
        for (size_t h = 0; h < VREGS; h++) {
            size_t at = t + h * VL;
            vf e = vf_exp(vf_sub(vf_load(p + at), vf_set1(m)));
            e = round ? vf_from_bits(vf_round_bf16(e)) : e;
            e = vf_select(vi_within(at, seen.begin, seen.end), e, vf_set1(0.0f));
            vf_store(p + at, e);
            sum.v[h] = vf_add(sum.v[h], e);
        }
    }
    return (mt_attn_part){.m = m, .l = vlanes_fold(sum)};
}

/* acc[r][d] = one lane's sum over blocks of p v; p and v point to the lane */
MT_INLINE void weigh_lane(vf acc[TILE_X][WIDE], const float *p, const float *v, size_t stride, mt_attn_range blocks,
                          size_t nr, size_t nd)
{
    MT_UNROLL
    for (size_t i = 0; i < nr * nd; i++)
        acc[i / nd][i % nd] = vf_set1(0.0f);
    for (size_t b = blocks.begin; b < blocks.end; b++) {
        vf x[WIDE];
        MT_UNROLL
        for (size_t d = 0; d < nd; d++)
            x[d] = vf_load(v + b * stride + d * VL);
        MT_UNROLL
        for (size_t r = 0; r < nr; r++) {
            vf weight = vf_set1(p[r * MT_SEGMENT + b * MT_LANES]);
            MT_UNROLL
            for (size_t d = 0; d < nd; d++)
                acc[r][d] = vf_fma(weight, x[d], acc[r][d]);
        }
    }
}

/* o[r][0..nd) = sum over positions of p v by R6. The last addition turns -0 into +0, whatever invisible positions
   added. */
MT_INLINE void weigh_tile(float *o, const float *p, const float *v, size_t stride, mt_attn_range blocks, size_t nr,
                          size_t nd)
{
    vf lanes[MT_LANES / 2][TILE_X][WIDE], acc[TILE_X][WIDE];
    for (size_t l = 0; l < MT_LANES / 2; l++) {
        const size_t other = l + MT_LANES / 2;
        weigh_lane(acc, p + l, v + l * BLOCKS * stride, stride, blocks, nr, nd);
        MT_UNROLL
        for (size_t i = 0; i < nr * nd; i++)
            lanes[l][i / nd][i % nd] = acc[i / nd][i % nd];
        weigh_lane(acc, p + other, v + other * BLOCKS * stride, stride, blocks, nr, nd);
        MT_UNROLL
        for (size_t i = 0; i < nr * nd; i++)
            lanes[l][i / nd][i % nd] = vf_add(lanes[l][i / nd][i % nd], acc[i / nd][i % nd]);
    }
    for (size_t r = 0; r < nr; r++) {
        for (size_t d = 0; d < nd; d++) {
            vf s[4];
            MT_UNROLL
            for (size_t l = 0; l < 4; l++)
                s[l] = vf_add(lanes[l][r][d], lanes[l + 4][r][d]);
            vf sum = vf_add(vf_add(s[0], s[2]), vf_add(s[1], s[3]));
            vf_store(o + r * stride + d * VL, vf_add(sum, vf_set1(0.0f)));
        }
    }
}

MT_INLINE void weigh_fixed(float *o, const float *p, const float *v, size_t stride, mt_attn_range blocks, size_t nr)
{
    size_t d = 0;
    for (; d + WIDE * VL <= stride; d += WIDE * VL)
        weigh_tile(o + d, p, v + d, stride, blocks, nr, WIDE);
    for (; d < stride; d += NARROW * VL)
        weigh_tile(o + d, p, v + d, stride, blocks, nr, NARROW);
}

static void weigh(float *o, const float *p, const float *v, size_t stride, mt_attn_range blocks, size_t nr)
{
#define CASE(count) \
    case count: weigh_fixed(o, p, v, stride, blocks, count); break;
    switch (nr) {
        MT_TILE_EACH(CASE)
    }
#undef CASE
}

/* Rows from o on that see the same blocks */
static void weigh_run(float *o, const float *p, const float *v, size_t stride, mt_attn_range blocks, size_t n)
{
    for (size_t c = 0, step = even(n); c < n; c += step)
        weigh(o + c * stride, p + c * MT_SEGMENT, v, stride, blocks, n - c < step ? n - c : step);
}

/* Rows r .. r+n */
MT_INLINE void span(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, const work *w, size_t r, size_t n,
                    bool bf16)
{
    const size_t stride = a->head_stride, element = bf16 ? 2 : 4;
    mt_attn_range blocks[SPAN];
    widen(w->q, (const uint8_t *)a->q + r * stride * element, n * stride, bf16);
    products(w, a, seg, mt_attn_seen_by(a, seg, r, r + n), n, r == 0, element);
    if (r == 0)
        gather_v(w, a, seg, mt_attn_seen_by(a, seg, 0, a->rows), bf16);
    for (size_t c = 0; c < n; c++) {
        mt_attn_range seen = mt_attn_seen(a, seg, r + c);
        part[r + c] = softmax_row(w->p + c * MT_SEGMENT, a, seen, bf16);
        blocks[c] = mt_attn_blocks(seen);
    }
    for (size_t c = 0, end; c < n; c = end) {
        for (end = c + 1; end < n && blocks[end].begin == blocks[c].begin && blocks[end].end == blocks[c].end;)
            end++;
        weigh_run(o + (r + c) * stride, w->p + c * MT_SEGMENT, w->v, stride, blocks[c], end - c);
    }
}

static void products_few(const work *w, const mt_attn *a, size_t seg, mt_attn_range u, size_t n, bool bf16)
{
#define CASE(count) \
    case count: mt_few_products(w->p, w->q, a, seg, u, count, bf16); break;
    switch (n) {
        MT_TILE_EACH(CASE)
    }
#undef CASE
}

/* n rows from r on, at most TILE_X */
MT_INLINE void attend_few(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, const work *w, size_t r, size_t n,
                          bool bf16)
{
    const size_t stride = a->head_stride, element = bf16 ? 2 : 4;
    const mt_attn_range all = mt_attn_seen_by(a, seg, 0, a->rows);
    const uint8_t *v[BLOCKS];
    mt_attn_range blocks[TILE_X];
    widen(w->q, (const uint8_t *)a->q + r * stride * element, n * stride, bf16);
    products_few(w, a, seg, mt_attn_seen_by(a, seg, r, r + n), n, bf16);
    for (size_t t = all.begin / MT_LANES * MT_LANES; t < all.end; t += MT_LANES)
        v[t / MT_LANES] = mt_attn_at(a, a->v_offset, seg, t, element);
    for (size_t c = 0; c < n; c++) {
        const mt_attn_range seen = mt_attn_seen(a, seg, r + c);
        part[r + c] = softmax_row(w->p + c * MT_SEGMENT, a, seen, bf16);
        blocks[c] = mt_attn_blocks(seen);
    }
    for (size_t c = 0, end; c < n; c = end) {
        for (end = c + 1; end < n && blocks[end].begin == blocks[c].begin && blocks[end].end == blocks[c].end;)
            end++;
        mt_few_weigh(o + (r + c) * stride, w->p + c * MT_SEGMENT, v, stride, blocks[c], all.end, end - c, bf16);
    }
}

MT_INLINE void attend_columns(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch, bool bf16)
{
    const size_t stride = a->head_stride, most = COLUMNS_MOST * VL;
    const size_t end = mt_attn_seen_by(a, seg, 0, a->rows).end;
    mt_columns w = mt_columns_carve(scratch, stride);
    for (size_t r = 0, n; r < a->rows; r += n, o += n * stride, part += n) {
        const uint8_t *q = (const uint8_t *)a->q + r * stride * (bf16 ? 2 : 4);
        n = a->rows - r < most ? a->rows - r : most;
        mt_columns_look(&w, a, seg, r, n);
        if (n <= VL)
            mt_columns_attend(o, part, &w, a, seg, q, end, n, 1, bf16);
        else if (n <= 2 * VL)
            mt_columns_attend(o, part, &w, a, seg, q, end, n, 2, bf16);
        else
            mt_columns_attend(o, part, &w, a, seg, q, end, n, 3, bf16);
    }
}

MT_INLINE void attend(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch, bool bf16)
{
    const work w = carve(scratch, a->head_stride);
    if (a->rows <= FEW_TIMES * TILE_X) {
        for (size_t r = 0, step = even(a->rows); r < a->rows; r += step)
            attend_few(o, part, a, seg, &w, r, a->rows - r < step ? a->rows - r : step, bf16);
        return;
    }
    if (VL == MT_LANES) {
        attend_columns(o, part, a, seg, scratch, bf16);
        return;
    }
    gather_k(&w, a, seg, mt_attn_seen_by(a, seg, 0, a->rows), bf16);
    for (size_t r = 0; r < a->rows; r += SPAN)
        span(o, part, a, seg, &w, r, a->rows - r < SPAN ? a->rows - r : SPAN, bf16);
}

void MT_LEVEL(attn_bf16)(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    attend(o, part, a, seg, scratch, true);
}

void MT_LEVEL(attn_f32)(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    attend(o, part, a, seg, scratch, false);
}

/* Blocks are plain arrays on this processor in any case. */
void MT_LEVEL(attn_plain)(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    MT_LEVEL(attn_bf16)(o, part, a, seg, scratch);
}

void MT_LEVEL(attn_merge)(float *acc_o, mt_attn_part *acc, const float *o, const mt_attn_part *part, size_t n)
{
    if (part->l == 0.0f && part->m == -INFINITY)
        return;
    const float m = mt_max1(acc->m, part->m), old = mt_exp1(acc->m - m), new = mt_exp1(part->m - m);
    acc->m = m;
    acc->l = fmaf(acc->l, old, part->l * new);
    for (size_t i = 0; i < n; i += VL)
        vf_put(acc_o, i, n, vf_fma(vf_get(acc_o, i, n), vf_set1(old), vf_mul(vf_get(o, i, n), vf_set1(new))));
}
