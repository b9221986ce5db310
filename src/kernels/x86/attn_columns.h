/* Attention (R8 of docs/numerics.md) of many rows, as in prompts: a row has an element of a register, so that maxima,
   sums and folds are made between registers, and only queries and results are transposed. Keys are widened to fp32 a
   block of MT_LANES positions at a time, values MT_LANES channels at a time, which stay in the first-level cache; each
   of their numbers is broadcast and multiplied with those of up to three registers of rows. */
#ifndef MT_KERNELS_X86_ATTN_COLUMNS_H
#define MT_KERNELS_X86_ATTN_COLUMNS_H

#include "kernels/attn.h"
#include "kernels/x86/attn_few.h"
#include "kernels/x86/attn_fold.h"
#include "kernels/x86/math.h"

#if defined(MT_LEVEL)

enum { COLUMNS_MOST = 3, COLUMNS_WIDE = VL / 2 }; /* registers of rows, and numbers multiplied with them at once */
enum { COLUMNS_BLOCKS = MT_SEGMENT / MT_LANES, COLUMNS_ACC = COLUMNS_MOST * COLUMNS_WIDE };

/* Positions and channels stand lane by lane (R6): those of a lane are neighbours. */
typedef struct mt_columns {
    float *q;     /* [MT_LANES][head_stride / MT_LANES][registers][VL] */
    float *o;     /* [head_stride][registers][VL] */
    float *p;     /* [MT_LANES][COLUMNS_BLOCKS][registers][VL] */
    float *block; /* keys [MT_LANES][head_stride], or values [MT_LANES][COLUMNS_BLOCKS][MT_LANES] */
    vi lo[COLUMNS_MOST], hi[COLUMNS_MOST]; /* which positions a row sees */
    mt_attn_range blocks;                  /* those of which some row sees a position */
    mt_attn_range common;                  /* those of which all rows see one */
    mt_attn_range whole;                   /* positions that every row sees */
} mt_columns;

static inline size_t mt_columns_scratch(size_t head_stride)
{
    const size_t keys = MT_LANES * head_stride, values = MT_SEGMENT * MT_LANES;
    return ((2 * head_stride + MT_SEGMENT) * COLUMNS_MOST * VL + (keys > values ? keys : values)) * sizeof(float);
}

static inline mt_columns mt_columns_carve(uint8_t *scratch, size_t head_stride)
{
    mt_columns w = {.q = (float *)(void *)scratch};
    w.o = w.q + head_stride * COLUMNS_MOST * VL;
    w.p = w.o + head_stride * COLUMNS_MOST * VL;
    w.block = w.p + MT_SEGMENT * COLUMNS_MOST * VL;
    return w;
}

/* What rows r .. r+n see; elements behind the last row see nothing. */
static inline void mt_columns_look(mt_columns *w, const mt_attn *a, size_t seg, size_t r, size_t n)
{
    int32_t lo[COLUMNS_MOST * VL] = {0}, hi[COLUMNS_MOST * VL] = {0};
    w->blocks = w->common = w->whole = mt_attn_blocks(mt_attn_seen_by(a, seg, r, r + n));
    for (size_t i = 0; i < n; i++) {
        const mt_attn_range seen = mt_attn_seen(a, seg, r + i);
        lo[i] = (int32_t)seen.begin;
        hi[i] = (int32_t)seen.end;
        w->common = mt_attn_both(w->common, mt_attn_blocks(seen));
        w->whole = mt_attn_both(w->whole, (mt_attn_range){(seen.begin + MT_LANES - 1) / MT_LANES, seen.end / MT_LANES});
    }
    if (w->common.begin >= w->common.end)
        w->common = (mt_attn_range){w->blocks.end, w->blocks.end};
    for (size_t c = 0; c < COLUMNS_MOST; c++) {
        w->lo[c] = vi_load(lo + c * VL);
        w->hi[c] = vi_load(hi + c * VL);
    }
}

/* acc[i][c] += sum over j in [j0, j1) of w[i * apart + j * step] * x[j][c]. With `only`, x[j] counts for the rows that
   see a position of block j. */
MT_INLINE void mt_columns_run(vf *acc, const float *w, size_t apart, size_t step, const float *x, size_t j0, size_t j1,
                              const mt_columns *only, size_t ni, size_t nc)
{
    for (size_t j = j0; j < j1; j++) {
        const float *at = w + j * step;
        vf y[COLUMNS_MOST];
        vmask see[COLUMNS_MOST];
        MT_UNROLL
        for (size_t c = 0; c < nc; c++) {
            y[c] = vf_load(x + (j * nc + c) * VL);
            if (only)
                see[c] = vi_overlap(only->lo[c], only->hi[c], j * MT_LANES, (j + 1) * MT_LANES);
        }
        MT_UNROLL
        for (size_t i = 0; i < ni; i++) {
            const vf b = vf_set1(at[i * apart]);
            MT_UNROLL
            for (size_t c = 0; c < nc; c++) {
                const vf sum = vf_fma(b, y[c], acc[i * nc + c]);
                acc[i * nc + c] = only ? vf_select(see[c], sum, acc[i * nc + c]) : sum;
            }
        }
    }
}

/* Products of ni positions from lane l0 of block b on. With each lane, `bytes` bytes are fetched at next and at v. */
MT_INLINE void mt_columns_dot(const mt_columns *w, size_t stride, size_t b, size_t l0, size_t ni, size_t nc,
                              const uint8_t *next, const uint8_t *v, size_t bytes)
{
    const size_t steps = stride / MT_LANES;
    vf acc[COLUMNS_ACC], stack[MT_FOLDS][COLUMNS_ACC];
    for (size_t n = 0; n < MT_LANES; n++) {
        const size_t l = mt_fold_order[n];
        mt_few_fetch(next + n * bytes, bytes, false);
        mt_few_fetch(v + n * bytes, bytes, false);
        MT_UNROLL
        for (size_t i = 0; i < ni * nc; i++)
            acc[i] = vf_set1(0.0f);
        mt_columns_run(acc, w->block + l0 * stride + l, stride, MT_LANES, w->q + l * steps * nc * VL, 0, steps, NULL,
                       ni, nc);
        mt_fold_lane(acc, stack[0], COLUMNS_ACC, n, ni * nc);
    }
    MT_UNROLL
    for (size_t i = 0; i < ni * nc; i++)
        vf_store(w->p + (((l0 + i / nc) * COLUMNS_BLOCKS + b) * nc + i % nc) * VL, acc[i]);
}

/* Raw products with all blocks. Positions from `end` on count as zeros. The keys of the next block, and the values of
   this one, are fetched meanwhile. */
MT_INLINE void mt_columns_products(const mt_columns *w, const mt_attn *a, size_t seg, size_t end, size_t ni, size_t nc,
                                   bool bf16)
{
    const size_t stride = a->head_stride, element = bf16 ? 2 : 4;
    for (size_t b = w->blocks.begin; b < w->blocks.end; b++) {
        const size_t t = b * MT_LANES, count = end - t < MT_LANES ? end - t : MT_LANES;
        const uint8_t *k = mt_attn_at(a, a->k_offset, seg, t, element);
        for (size_t i = 0; i < count * stride; i += VL)
            vf_store(w->block + i, mt_kv_load(k + i * element, bf16));
        memset(w->block + count * stride, 0, (MT_LANES - count) * stride * sizeof(float));
        const uint8_t *v = mt_attn_at(a, a->v_offset, seg, t, element),
                      *next = b + 1 < w->blocks.end ? mt_attn_at(a, a->k_offset, seg, t + MT_LANES, element) : v;
        for (size_t l = 0; l < MT_LANES; l += ni) {
            const size_t at = l * stride * element, step = ni * stride / MT_LANES * element;
            if (stride == 128) /* constants make for short addresses */
                mt_columns_dot(w, 128, b, l, ni, nc, next + at, v + at, ni * 128 / MT_LANES * element);
            else
                mt_columns_dot(w, stride, b, l, ni, nc, next + at, v + at, step);
        }
    }
}

/* Scales the products of column c. Returns the largest that each row sees; *plain: none is NaN, and nor will be what
   becomes of them. */
MT_INLINE vf mt_columns_scores(const mt_columns *w, const mt_attn *a, size_t c, size_t nc, bool *plain)
{
    const vf none = vf_set1(-INFINITY), zero = vf_set1(0.0f), scale = vf_set1(a->scale);
    vf top = none, sure = none;
    vmask special = vf_is_nan(zero);
    for (size_t l = 0; l < MT_LANES; l++)
        for (size_t b = w->blocks.begin; b < w->blocks.end; b++) {
            float *p = w->p + ((l * COLUMNS_BLOCKS + b) * nc + c) * VL;
            vf x = vf_mul(vf_load(p), scale);
            x = a->softcap != 0.0f ? vf_softcap(x, vf_set1(a->softcap)) : x;
            vf_store(p, x);
            special = vm_or(special, vf_is_nan(x));
            if (b < w->whole.begin || b >= w->whole.end)
                x = vf_select(vi_overlap(w->lo[c], w->hi[c], b * MT_LANES + l, b * MT_LANES + l + 1), x, none);
            top = vf_max(top, x);
        }
    *plain = !vm_any(special) && !vm_any(vf_is_nan(vf_sub(top, top)));
    if (!vm_any(vm_or(special, vf_eq(top, zero))))
        return top;
    for (size_t l = 0; l < MT_LANES; l++) /* where NaN and the sign of zero count */
        for (size_t b = w->blocks.begin; b < w->blocks.end; b++) {
            const vf x = vf_load(w->p + ((l * COLUMNS_BLOCKS + b) * nc + c) * VL);
            const vmask see = vi_overlap(w->lo[c], w->hi[c], b * MT_LANES + l, b * MT_LANES + l + 1);
            sure = vf_max1(sure, vf_select(see, x, none));
        }
    return sure;
}

/* Turns the scores of column c into p, zero where a row does not see; the sums of p. */
MT_INLINE vf mt_columns_weights(const mt_columns *w, vf top, size_t c, size_t nc, bool plain, bool round)
{
    const vf zero = vf_set1(0.0f);
    vf sum = zero, stack[MT_FOLDS];
    for (size_t n = 0; n < MT_LANES; n++) {
        const size_t l = mt_fold_order[n];
        sum = zero;
        for (size_t b = w->blocks.begin; b < w->blocks.end; b++) {
            float *p = w->p + ((l * COLUMNS_BLOCKS + b) * nc + c) * VL;
            vf e = vf_exp(vf_sub(vf_load(p), top));
            if (round)
                e = vf_from_bits(plain ? vf_round_plain(e) : vf_round_bf16(e));
            if (b < w->whole.begin || b >= w->whole.end)
                e = vf_select(vi_overlap(w->lo[c], w->hi[c], b * MT_LANES + l, b * MT_LANES + l + 1), e, zero);
            vf_store(p, e);
            sum = vf_add(sum, e);
        }
        mt_fold_lane(&sum, stack, 1, n, 1);
    }
    return sum;
}

/* o[d .. d+ni) = sum over positions of p v by R6, for channels i .. i+ni of those in w->block. The last addition
   turns -0 into +0, whatever invisible positions added. Unless `strict`, rows also add zeros times values of blocks of
   which they see nothing, which is wrong where such a value is not finite: then false. */
MT_INLINE bool mt_columns_weigh_at(const mt_columns *w, size_t d, size_t i0, size_t ni, size_t nc, bool strict)
{
    const mt_attn_range alike = strict ? w->common : w->blocks;
    vf acc[COLUMNS_ACC], stack[MT_FOLDS][COLUMNS_ACC];
    for (size_t n = 0; n < MT_LANES; n++) {
        const size_t l = mt_fold_order[n];
        const float *v = w->block + l * COLUMNS_BLOCKS * MT_LANES + i0, *p = w->p + l * COLUMNS_BLOCKS * nc * VL;
        MT_UNROLL
        for (size_t i = 0; i < ni * nc; i++)
            acc[i] = vf_set1(0.0f);
        if (strict)
            mt_columns_run(acc, v, 1, MT_LANES, p, w->blocks.begin, alike.begin, w, ni, nc);
        mt_columns_run(acc, v, 1, MT_LANES, p, alike.begin, alike.end, NULL, ni, nc);
        if (strict)
            mt_columns_run(acc, v, 1, MT_LANES, p, alike.end, w->blocks.end, w, ni, nc);
        mt_fold_lane(acc, stack[0], COLUMNS_ACC, n, ni * nc);
    }
    vf off = vf_set1(0.0f);
    MT_UNROLL
    for (size_t i = 0; i < ni * nc; i++) {
        off = vf_add(off, vf_sub(acc[i], acc[i]));
        vf_store(w->o + ((d + i0) * nc + i) * VL, vf_add(acc[i], vf_set1(0.0f)));
    }
    return !vm_any(vf_is_nan(off));
}

/* Out of line, as it is for faults alone. */
__attribute__((noinline)) static void mt_columns_weigh_strictly(const mt_columns *w, size_t d, size_t i0, size_t ni,
                                                                size_t nc)
{
    for (size_t i = 0; i < ni; i++) {
        if (nc == 1)
            (void)mt_columns_weigh_at(w, d, i0 + i, 1, 1, true);
        else if (nc == 2)
            (void)mt_columns_weigh_at(w, d, i0 + i, 1, 2, true);
        else
            (void)mt_columns_weigh_at(w, d, i0 + i, 1, 3, true);
    }
}

/* Positions from `end` on count as zeros. */
MT_INLINE void mt_columns_weigh(const mt_columns *w, const mt_attn *a, size_t seg, size_t end, size_t ni, size_t nc,
                                bool bf16)
{
    const size_t stride = a->head_stride, element = bf16 ? 2 : 4;
    for (size_t d = 0; d < stride; d += MT_LANES) {
        for (size_t b = w->blocks.begin; b < w->blocks.end; b++) {
            const uint8_t *v = mt_attn_at(a, a->v_offset, seg, b * MT_LANES, element) + d * element;
            for (size_t l = 0; l < MT_LANES; l++, v += stride * element)
                for (size_t i = 0; i < MT_LANES; i += VL)
                    vf_store(w->block + (l * COLUMNS_BLOCKS + b) * MT_LANES + i,
                             b * MT_LANES + l < end ? mt_kv_load(v + i * element, bf16) : vf_set1(0.0f));
        }
        for (size_t i = 0; i < MT_LANES; i += ni)
            if (!mt_columns_weigh_at(w, d, i, ni, nc, false))
                mt_columns_weigh_strictly(w, d, i, ni, nc);
    }
}

/* Queries of n rows become columns. */
MT_INLINE void mt_columns_take(const mt_columns *w, const uint8_t *q, size_t stride, size_t n, size_t nc, bool bf16)
{
    const size_t steps = stride / MT_LANES, element = bf16 ? 2 : 4;
    for (size_t c = 0; c < nc; c++)
        for (size_t d = 0; d < stride; d += VL) {
            vi m[VL];
            MT_UNROLL
            for (size_t j = 0; j < VL; j++)
                m[j] =
                    c * VL + j < n ? vf_bits(mt_kv_load(q + ((c * VL + j) * stride + d) * element, bf16)) : vi_set1(0);
            vi_transpose(m);
            MT_UNROLL
            for (size_t j = 0; j < VL; j++)
                vi_store(w->q + (((d + j) % MT_LANES * steps + d / MT_LANES) * nc + c) * VL, m[j]);
        }
}

/* Results become rows. */
MT_INLINE void mt_columns_give(float *o, const mt_columns *w, size_t stride, size_t n, size_t nc)
{
    for (size_t c = 0; c < nc; c++)
        for (size_t d = 0; d < stride; d += VL) {
            vi m[VL];
            MT_UNROLL
            for (size_t j = 0; j < VL; j++)
                m[j] = vi_load(w->o + ((d + j) * nc + c) * VL);
            vi_transpose(m);
            MT_UNROLL
            for (size_t j = 0; j < VL; j++)
                if (c * VL + j < n)
                    vi_store(o + (c * VL + j) * stride + d, m[j]);
        }
}

/* n rows from q on, in nc registers; positions from `end` on count as zeros. */
MT_INLINE void mt_columns_attend(float *o, mt_attn_part *part, const mt_columns *w, const mt_attn *a, size_t seg,
                                 const uint8_t *q, size_t end, size_t n, size_t nc, bool bf16)
{
    const size_t stride = a->head_stride, ni = nc == 1 ? 2 * COLUMNS_WIDE : COLUMNS_WIDE;
    mt_columns_take(w, q, stride, n, nc, bf16);
    mt_columns_products(w, a, seg, end, ni, nc, bf16);
    for (size_t c = 0; c < nc; c++) {
        float m[VL], l[VL];
        bool plain;
        const vf top = mt_columns_scores(w, a, c, nc, &plain);
        vf_store(m, top);
        vf_store(l, plain ? mt_columns_weights(w, top, c, nc, true, bf16)
                          : mt_columns_weights(w, top, c, nc, false, bf16));
        for (size_t i = 0; i < VL && c * VL + i < n; i++)
            part[c * VL + i] = (mt_attn_part){.m = m[i], .l = l[i]};
    }
    mt_columns_weigh(w, a, seg, end, ni, nc, bf16);
    mt_columns_give(o, w, stride, n, nc);
}

#endif

#endif
