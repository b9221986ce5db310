/* Attention (R8 of docs/numerics.md) in portable C: K and V of the visible positions are widened to fp32, then row by
   row; reductions by R6. Blocks of bf16 pages are plain [position][head_stride]. */
#include "kernels/attn.h"
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"

typedef struct work {
    float *k, *v; /* [MT_SEGMENT][head_stride] */
    float *lane;  /* [MT_LANES][head_stride] */
    float *q;     /* [head_stride] */
    float *p;     /* [MT_SEGMENT] */
} work;

static work carve(uint8_t *scratch, size_t stride)
{
    float *f = (float *)(void *)scratch;
    work s = {.k = f, .v = f + MT_SEGMENT * stride};
    s.lane = s.v + MT_SEGMENT * stride;
    s.q = s.lane + MT_LANES * stride;
    s.p = s.q + stride;
    return s;
}

size_t mt_attn_scratch_bytes_portable(size_t rows, size_t head_stride)
{
    (void)rows;
    return ((2 * MT_SEGMENT + MT_LANES + 1) * head_stride + MT_SEGMENT) * sizeof(float);
}

void mt_kv_put_bf16_portable(uint8_t *block, size_t slot, size_t head_stride, const float *x, size_t n, bool value)
{
    (void)value;
    uint8_t *at = block + slot * head_stride * sizeof(mt_bf16);
    for (size_t i = 0; i < head_stride; i++, at += sizeof(mt_bf16)) {
        mt_bf16 h = i < n ? mt_bf16_from_f32(x[i]) : 0;
        memcpy(at, &h, sizeof(h));
    }
}

static void widen(float *y, const void *x, size_t n, bool bf16)
{
    if (!bf16) {
        memcpy(y, x, n * sizeof(*y));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        mt_bf16 h;
        memcpy(&h, (const uint8_t *)x + i * sizeof(h), sizeof(h));
        y[i] = mt_f32_from_bf16(h);
    }
}

/* Sets positions from u.end to the next multiple of MT_LANES to zero. */
static void gather(float *y, const mt_attn *a, size_t offset, size_t seg, mt_attn_range u, bool bf16)
{
    size_t stride = a->head_stride, element = bf16 ? sizeof(mt_bf16) : sizeof(float);
    for (size_t t = u.begin / MT_LANES * MT_LANES; t < u.end; t++)
        widen(y + t * stride, mt_attn_at(a, offset, seg, t, element), stride, bf16);
    for (size_t t = u.end; t < mt_round_up(u.end, MT_LANES); t++)
        memset(y + t * stride, 0, stride * sizeof(*y));
}

/* p[0..MT_SEGMENT) of one row; returns the row's m. */
static float softmax_row(const work *w, const mt_attn *a, mt_attn_range seen, bool round)
{
    float m = -INFINITY;
    for (size_t t = seen.begin; t < seen.end; t++) {
        float s = mt_dot1(w->q, w->k + t * a->head_stride, a->head_stride) * a->scale;
        w->p[t] = a->softcap != 0.0f ? mt_softcap1(s, a->softcap) : s;
        m = mt_max1(m, w->p[t]);
    }
    for (size_t t = 0; t < MT_SEGMENT; t++) {
        float p = t >= seen.begin && t < seen.end ? mt_exp1(w->p[t] - m) : 0.0f;
        w->p[t] = round ? mt_bf16_rounded(p) : p;
    }
    return m;
}

/* o[d] = sum over positions of p v by R6. The last addition turns -0 into +0, whatever invisible positions added. */
static void weigh(float *o, const work *w, size_t stride, mt_attn_range seen)
{
    memset(w->lane, 0, MT_LANES * stride * sizeof(*w->lane));
    for (size_t t = seen.begin / MT_LANES * MT_LANES; t < mt_round_up(seen.end, MT_LANES); t++) {
        float *lane = w->lane + t % MT_LANES * stride;
        for (size_t d = 0; d < stride; d++)
            lane[d] = fmaf(w->p[t], w->v[t * stride + d], lane[d]);
    }
    for (size_t width = MT_LANES / 2; width > 0; width /= 2)
        for (size_t i = 0; i < width * stride; i++)
            w->lane[i] += w->lane[i + width * stride];
    for (size_t d = 0; d < stride; d++)
        o[d] = w->lane[d] + 0.0f;
}

static void attend(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch, bool bf16)
{
    size_t stride = a->head_stride, element = bf16 ? sizeof(mt_bf16) : sizeof(float);
    work w = carve(scratch, stride);
    mt_attn_range all = mt_attn_seen_by(a, seg, 0, a->rows);
    gather(w.k, a, a->k_offset, seg, all, bf16);
    gather(w.v, a, a->v_offset, seg, all, bf16);
    for (size_t r = 0; r < a->rows; r++) {
        mt_attn_range seen = mt_attn_seen(a, seg, r);
        widen(w.q, (const uint8_t *)a->q + r * stride * element, stride, bf16);
        part[r].m = softmax_row(&w, a, seen, bf16);
        part[r].l = mt_sum_portable(w.p, MT_SEGMENT);
        weigh(o + r * stride, &w, stride, seen);
    }
}

void mt_attn_bf16_portable(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    attend(o, part, a, seg, scratch, true);
}

void mt_attn_f32_portable(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    attend(o, part, a, seg, scratch, false);
}

void mt_attn_plain_portable(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    attend(o, part, a, seg, scratch, true);
}

void mt_attn_merge_portable(float *acc_o, mt_attn_part *acc, const float *o, const mt_attn_part *part, size_t n)
{
    if (part->l == 0.0f && part->m == -INFINITY)
        return;
    float m = mt_max1(acc->m, part->m), old = mt_exp1(acc->m - m), new = mt_exp1(part->m - m);
    acc->m = m;
    acc->l = fmaf(acc->l, old, part->l * new);
    for (size_t i = 0; i < n; i++)
        acc_o[i] = fmaf(acc_o[i], old, o[i] * new);
}
