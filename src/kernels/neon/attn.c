/* Attention (R8 of docs/numerics.md) on NEON without BFMMLA: K and V of the visible positions are widened to fp32,
   three rows at a time; reductions by R6. */
#include "kernels/attn.h"

#include <math.h>

#include "kernels/levels.h"
#include "kernels/neon/ftile.h"
#include "kernels/neon/math.h"

typedef struct work {
    float *k, *v; /* [MT_SEGMENT][head_stride] */
    float *q;     /* [MT_FTILE_X][head_stride] */
    float *p;     /* [MT_FTILE_X][MT_SEGMENT] */
} work;

static work carve(uint8_t *scratch, size_t stride)
{
    float *f = (float *)(void *)scratch;
    work s = {.k = f, .v = f + MT_SEGMENT * stride};
    s.q = s.v + MT_SEGMENT * stride;
    s.p = s.q + MT_FTILE_X * stride;
    return s;
}

size_t mt_attn_scratch_bytes_neon(size_t rows, size_t head_stride)
{
    (void)rows;
    return ((2 * MT_SEGMENT + MT_FTILE_X) * head_stride + MT_FTILE_X * MT_SEGMENT) * sizeof(float);
}

/* n % 16 == 0 */
static void widen(float *y, const uint8_t *x, size_t n, bool bf16)
{
    if (!bf16) {
        memcpy(y, x, n * sizeof(*y));
        return;
    }
    for (size_t i = 0; i < n; i += 8) {
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(x + i * sizeof(mt_bf16)));
        vst1q_f32(y + i, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(h), 16)));
        vst1q_f32(y + i + 4, vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(h), 16)));
    }
}

/* Sets positions from u.end to the next multiple of MT_LANES to zero. */
static void gather(float *y, const mt_attn *a, size_t offset, size_t seg, mt_attn_range u, bool bf16)
{
    size_t stride = a->head_stride, element = bf16 ? sizeof(mt_bf16) : sizeof(float);
    for (size_t t = u.begin / MT_LANES * MT_LANES; t < u.end; t += MT_LANES) {
        size_t count = u.end - t < MT_LANES ? u.end - t : MT_LANES;
        widen(y + t * stride, mt_attn_at(a, offset, seg, t, element), count * stride, bf16);
        memset(y + (t + count) * stride, 0, (MT_LANES - count) * stride * sizeof(*y));
    }
}

static size_t up(size_t n)
{
    return (n + MT_LANES - 1) / MT_LANES * MT_LANES;
}

/* Products of nc rows with the blocks of u. */
static void products(const work *w, size_t stride, mt_attn_range u, size_t nc)
{
    const float *q[MT_FTILE_X];
    mt_ftile out;
    for (size_t c = 0; c < nc; c++)
        q[c] = w->q + c * stride;
    for (size_t t = u.begin / MT_LANES * MT_LANES; t < up(u.end); t += MT_FTILE_W) {
        const float *k[MT_FTILE_W] = {w->k + t * stride, w->k + (t + 1) * stride};
        mt_ftile_dot(&out, k, q, stride, MT_FTILE_W, nc);
        for (size_t c = 0; c < nc; c++)
            memcpy(w->p + c * MT_SEGMENT + t, out.v[c], sizeof(out.v[c]));
    }
}

static uint32x4_t visible(size_t t, mt_attn_range seen)
{
    static const uint32_t iota[4] = {0, 1, 2, 3};
    uint32x4_t at = vaddq_u32(vdupq_n_u32((uint32_t)t), vld1q_u32(iota));
    return vandq_u32(vcgeq_u32(at, vdupq_n_u32((uint32_t)seen.begin)), vcltq_u32(at, vdupq_n_u32((uint32_t)seen.end)));
}

static float32x4_t rounded(float32x4_t x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x), odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t up = vandq_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd), vdupq_n_u32(0xffff0000u));
    return vbslq_f32(vceqq_f32(x, x), vreinterpretq_f32_u32(up), x);
}

/* Turns products into p, zero where the row does not see. */
static mt_attn_part softmax_row(float *p, const mt_attn *a, mt_attn_range seen, bool round)
{
    const float32x4_t none = vdupq_n_f32(-INFINITY), zero = vdupq_n_f32(0.0f);
    size_t begin = seen.begin / MT_LANES * MT_LANES, end = up(seen.end);
    float32x4_t top = none;
    for (size_t t = begin; t < end; t += 4) {
        float32x4_t s = vmulq_n_f32(vld1q_f32(p + t), a->scale);
        s = a->softcap != 0.0f ? mt_softcap4(s, a->softcap) : s;
        vst1q_f32(p + t, s);
        top = vmaxq_f32(top, vbslq_f32(visible(t, seen), s, none));
    }
    float m = vmaxvq_f32(top);
    mt_lanes4 sum = mt_lanes4_zero();
    for (size_t t = begin; t < end; t += MT_LANES) {
        mt_lanes4 e = mt_lanes4_load(p + t);
        MT_UNROLL
        for (size_t i = 0; i < 4; i++)
            e.v[i] = vsubq_f32(e.v[i], vdupq_n_f32(m));
        e = mt_exp16(e);
        MT_UNROLL
        for (size_t i = 0; i < 4; i++)
            e.v[i] = vbslq_f32(visible(t + 4 * i, seen), round ? rounded(e.v[i]) : e.v[i], zero);
        mt_lanes4_store(p + t, e);
        sum = mt_lanes4_add(sum, e);
    }
    return (mt_attn_part){.m = m, .l = mt_lanes4_fold(sum)};
}

/* o[d] = sum over positions of p v by R6, four d at a time. The last addition turns -0 into +0, whatever invisible
   positions added. */
static void weigh(float *o, const float *p, const float *v, size_t stride, mt_attn_range seen)
{
    for (size_t d = 0; d < stride; d += 4) {
        float32x4_t lane[MT_LANES];
        MT_UNROLL
        for (size_t l = 0; l < MT_LANES; l++)
            lane[l] = vdupq_n_f32(0.0f);
        for (size_t t = seen.begin / MT_LANES * MT_LANES; t < seen.end; t += MT_LANES) {
            MT_UNROLL
            for (size_t l = 0; l < MT_LANES; l++)
                lane[l] = vfmaq_n_f32(lane[l], vld1q_f32(v + (t + l) * stride + d), p[t + l]);
        }
        MT_UNROLL
        for (size_t l = 0; l < 8; l++)
            lane[l] = vaddq_f32(lane[l], lane[l + 8]);
        MT_UNROLL
        for (size_t l = 0; l < 4; l++)
            lane[l] = vaddq_f32(lane[l], lane[l + 4]);
        float32x4_t even = vaddq_f32(lane[0], lane[2]), odd = vaddq_f32(lane[1], lane[3]);
        vst1q_f32(o + d, vaddq_f32(vaddq_f32(even, odd), vdupq_n_f32(0.0f)));
    }
}

static void attend(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch, bool bf16)
{
    size_t stride = a->head_stride, element = bf16 ? sizeof(mt_bf16) : sizeof(float);
    work w = carve(scratch, stride);
    mt_attn_range all = mt_attn_seen_by(a, seg, 0, a->rows);
    gather(w.k, a, a->k_offset, seg, all, bf16);
    gather(w.v, a, a->v_offset, seg, all, bf16);
    for (size_t r0 = 0; r0 < a->rows; r0 += MT_FTILE_X) {
        size_t nc = a->rows - r0 < MT_FTILE_X ? a->rows - r0 : MT_FTILE_X;
        widen(w.q, (const uint8_t *)a->q + r0 * stride * element, nc * stride, bf16);
        products(&w, stride, mt_attn_seen_by(a, seg, r0, r0 + nc), nc);
        for (size_t c = 0; c < nc; c++) {
            mt_attn_range seen = mt_attn_seen(a, seg, r0 + c);
            float *p = w.p + c * MT_SEGMENT;
            part[r0 + c] = softmax_row(p, a, seen, bf16);
            weigh(o + (r0 + c) * stride, p, w.v, stride, seen);
        }
    }
}

void mt_attn_bf16_neon(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    attend(o, part, a, seg, scratch, true);
}

void mt_attn_f32_neon(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    attend(o, part, a, seg, scratch, false);
}

void mt_attn_plain_neon(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    attend(o, part, a, seg, scratch, true);
}

void mt_attn_merge_neon(float *acc_o, mt_attn_part *acc, const float *o, const mt_attn_part *part, size_t n)
{
    if (part->l == 0.0f && part->m == -INFINITY)
        return;
    float32x4_t both = {acc->m, part->m, 0.0f, 0.0f};
    float m = vmaxv_f32(vget_low_f32(both));
    both = mt_exp4(vsubq_f32(both, vdupq_n_f32(m)));
    float old = vgetq_lane_f32(both, 0), new = vgetq_lane_f32(both, 1);
    acc->m = m;
    acc->l = fmaf(acc->l, old, part->l * new);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(acc_o + i, vfmaq_n_f32(vmulq_n_f32(vld1q_f32(o + i), new), vld1q_f32(acc_o + i), old));
    for (; i < n; i++)
        acc_o[i] = fmaf(acc_o[i], old, o[i] * new);
}
