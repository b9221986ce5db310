/* Attention (R8 of docs/numerics.md) over keys and values in 8 or 4 bits in portable C, and how these are written and
   read (kvq.h). */
#include "kernels/attn.h"
#include "kernels/kvq.h"
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"

void mt_kv_turn_portable(float *x, size_t head_stride, bool back)
{
    const size_t n = mt_kvq_turned(head_stride);
    for (size_t i = 0; i < head_stride; i++)
        x[i] = back ? x[i] * (1.0f / (float)n) : mt_kvq_signs(i % n) & 1 ? -x[i] : x[i];
    for (size_t h = n / 2; h > 0; h /= 2)
        for (size_t i = 0; i < head_stride; i += 2 * h)
            for (size_t j = i; j < i + h; j++) {
                const float a = x[j], b = x[j + h];
                x[j] = a + b;
                x[j + h] = a - b;
            }
    for (size_t i = 0; back && i < head_stride; i++)
        x[i] = mt_kvq_signs(i % n) & 1 ? -x[i] : x[i];
}

/* y = x[0..n) and zeros, rotated; returns the largest magnitude. */
static float turned(float *y, const float *x, size_t n, size_t head_stride, float factor)
{
    float most = 0.0f;
    for (size_t i = 0; i < head_stride; i++)
        y[i] = i < n ? x[i] * factor : 0.0f;
    mt_kv_turn_portable(y, head_stride, false);
    for (size_t i = 0; i < head_stride; i++)
        most = mt_max1(most, fabsf(y[i]));
    return most;
}

/* Zero where x is NaN; the scale shows NaN. */
static int integer(float x, float most)
{
    x = x > most ? most : x;
    x = x < -most ? -most : x;
    return x == x ? (int)rintf(x) : 0;
}

static float finite_or_zero(float x)
{
    return fabsf(x) <= FLT_MAX ? x : 0.0f;
}

void mt_kv_query_portable(uint8_t *q, const float *x, size_t n, size_t head_stride)
{
    float y[MT_KVQ_STRIDE];
    const float amax = turned(y, x, n, head_stride, 1.0f / (float)mt_kvq_turned(head_stride));
    const float d = amax / 127.0f, factor = finite_or_zero(127.0f / amax);
    for (size_t i = 0; i < head_stride; i++)
        q[i] = (uint8_t)integer(y[i] * factor, 127.0f);
    memcpy(q + head_stride, &d, sizeof(d));
}

void mt_kv_put_q_portable(uint8_t *block, size_t tokens, size_t slot, size_t head_stride, unsigned bits, const float *x,
                          size_t n, bool value)
{
    const float most = bits == 8 ? 127.0f : 7.0f, unit = bits == 8 ? 1.0f : 16.0f;
    float y[MT_KVQ_STRIDE];
    const mt_bf16 d = mt_bf16_from_f32(turned(y, x, n, head_stride, 1.0f) / (most * unit));
    const float factor = finite_or_zero(1.0f / unit / mt_f32_from_bf16(d));
    memcpy(block + slot * sizeof(d), &d, sizeof(d));
    for (size_t g = 0; g < head_stride / 32; g++)
        for (size_t c = 0; c < 4 * bits; c++) {
            const float *from = y + 32 * g + c;
            uint8_t *to = block + (value ? mt_kvq_value_at(tokens, bits, slot, g, c)
                                         : mt_kvq_key_at(tokens, head_stride, bits, slot, g, c));
            *to = (uint8_t)integer(from[0] * factor, most);
            if (bits == 4)
                *to = (uint8_t)((*to & 15u) | (unsigned)integer(from[16] * factor, most) << 4);
        }
}

void mt_kv_get_q_portable(float *y, const uint8_t *block, size_t tokens, size_t slot, size_t head_stride, unsigned bits,
                          bool value)
{
    const float d = mt_kvq_scale(block, slot);
    int8_t q[MT_KVQ_STRIDE];
    mt_kvq_integers(q, block, tokens, head_stride, bits, slot, value);
    for (size_t i = 0; i < head_stride; i++)
        y[i] = d * (float)q[i];
    mt_kv_turn_portable(y, head_stride, true);
}

typedef struct work {
    int8_t *k, *v;  /* [MT_SEGMENT][head_stride] */
    float *kd, *vd; /* [MT_SEGMENT] */
    float *p;       /* [MT_SEGMENT] */
} work;

static work carve(uint8_t *scratch, size_t stride)
{
    work w = {.p = (float *)(void *)scratch};
    w.kd = w.p + MT_SEGMENT;
    w.vd = w.kd + MT_SEGMENT;
    w.k = (int8_t *)(w.vd + MT_SEGMENT);
    w.v = w.k + MT_SEGMENT * stride;
    return w;
}

size_t mt_attn_q_scratch_bytes_portable(size_t rows, size_t head_stride)
{
    (void)rows;
    return MT_SEGMENT * (3 * sizeof(float) + 2 * head_stride);
}

/* The integers and scales of the positions of `all`. */
static void gather(int8_t *q, float *d, const mt_attn *a, size_t offset, size_t seg, mt_attn_range all, bool value)
{
    const size_t stride = a->head_stride, tokens = a->page_tokens;
    for (size_t t = all.begin; t < all.end; t++) {
        const size_t position = seg * MT_SEGMENT + t;
        const uint8_t *block = a->base + a->pages[position / tokens] * a->page_stride + offset;
        mt_kvq_integers(q + t * stride, block, tokens, stride, a->bits, position % tokens, value);
        d[t] = mt_kvq_scale(block, position % tokens);
    }
}

static float product(const work *w, const mt_attn *a, const int8_t *q, float scale, size_t t)
{
    const int8_t *k = w->k + t * a->head_stride;
    int32_t dot = 0;
    for (size_t c = 0; c < a->head_stride; c++)
        dot += (int32_t)q[c] * k[c];
    const float s = (float)dot * w->kd[t] * scale;
    return a->softcap != 0.0f ? mt_softcap1(s, a->softcap) : s;
}

/* p of a row. */
static mt_attn_part softmax_row(const work *w, const mt_attn *a, size_t r, mt_attn_range seen)
{
    const uint8_t *q = (const uint8_t *)a->q + r * mt_kvq_query_bytes(a->head_stride);
    float m = -INFINITY, qd;
    memcpy(&qd, q + a->head_stride, sizeof(qd));
    for (size_t t = seen.begin; t < seen.end; t++) {
        w->p[t] = product(w, a, (const int8_t *)q, qd * a->scale, t);
        m = mt_max1(m, w->p[t]);
    }
    for (size_t t = 0; t < MT_SEGMENT; t++)
        w->p[t] = t >= seen.begin && t < seen.end ? mt_exp1(mt_max1(w->p[t] - m, MT_KVQ_EXP_MIN)) : 0.0f;
    return (mt_attn_part){.m = m, .l = mt_sum_portable(w->p, MT_SEGMENT)};
}

static void weigh(float *o, const work *w, size_t stride, mt_attn_range seen)
{
    float top = 0.0f;
    for (size_t t = seen.begin; t < seen.end; t++)
        top = mt_max1(top, w->p[t] * w->vd[t]);
    const float factor = finite_or_zero(MT_KVQ_WEIGHT_MAX / top), unit = top / MT_KVQ_WEIGHT_MAX;
    int32_t sum[MT_KVQ_STRIDE] = {0};
    for (size_t t = seen.begin; t < seen.end; t++) {
        const int32_t u = integer(w->p[t] * w->vd[t] * factor, MT_KVQ_WEIGHT_MAX);
        for (size_t c = 0; c < stride; c++)
            sum[c] += u * w->v[t * stride + c];
    }
    for (size_t c = 0; c < stride; c++)
        o[c] = unit * (float)sum[c];
}

void mt_attn_q_portable(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    const size_t stride = a->head_stride;
    const work w = carve(scratch, stride);
    const mt_attn_range all = mt_attn_seen_by(a, seg, 0, a->rows);
    gather(w.k, w.kd, a, a->k_offset, seg, all, false);
    gather(w.v, w.vd, a, a->v_offset, seg, all, true);
    for (size_t r = 0; r < a->rows; r++) {
        const mt_attn_range seen = mt_attn_seen(a, seg, r);
        part[r] = softmax_row(&w, a, r, seen);
        weigh(o + r * stride, &w, stride, seen);
    }
}
