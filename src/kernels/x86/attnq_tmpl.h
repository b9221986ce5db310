/* Attention (R8 of docs/numerics.md) over keys and values in 8 or 4 bits (kvq.h), structured like attn_tmpl.h: integers
   are widened to fp32, in which every sum below 2^24 is exact in any order. 16-bit weights are two rows of 8 bits,
   whose sums are combined. */
#include "kernels/kvq.h"

enum { HALF = SPAN / 2 }; /* rows processed at once */

typedef struct qwork {
    work w;         /* p holds products, then weights */
    float *u;       /* [HALF][2][MT_SEGMENT]: weights as integers, upper and lower bytes */
    float *o;       /* [HALF][2][head_stride] */
    float *kd, *vd; /* [MT_SEGMENT] */
} qwork;

static qwork carve_q(uint8_t *scratch, size_t stride)
{
    qwork s = {.w = carve(scratch, stride)};
    s.u = s.w.p + SPAN * MT_SEGMENT;
    s.o = s.u + SPAN * MT_SEGMENT;
    s.kd = s.o + SPAN * stride;
    s.vd = s.kd + MT_SEGMENT;
    return s;
}

size_t MT_LEVEL(attn_q_scratch_bytes)(size_t rows, size_t head_stride)
{
    const size_t more = SPAN * (MT_SEGMENT + head_stride) + 2 * MT_SEGMENT;
    return MT_LEVEL(attn_scratch_bytes)(rows, head_stride) + more * sizeof(float);
}

/* VL integers, eight of them together; with 4 bits from the upper or the lower halves of bytes. */
MT_INLINE vi load_integers(const uint8_t *at, size_t apart, unsigned bits, bool upper)
{
    __m128i bytes = vb_load_eights(at, apart);
    if (bits == 4)
        bytes = _mm_and_si128(upper ? bytes : _mm_slli_epi16(bytes, 4), _mm_set1_epi8((char)0xf0));
    return vi_from_s8(bytes);
}

/* The block that contains position t of the segment. */
static const uint8_t *block_at(const mt_attn *a, size_t offset, size_t seg, size_t t)
{
    return a->base + a->pages[(seg * MT_SEGMENT + t) / a->page_tokens] * a->page_stride + offset;
}

static void widen_keys(const qwork *s, const mt_attn *a, size_t seg, mt_attn_range all)
{
    const size_t stride = a->head_stride, tokens = a->page_tokens;
    for (size_t t = all.begin; t < all.end; t++) {
        const size_t slot = (seg * MT_SEGMENT + t) % tokens;
        const uint8_t *block = block_at(a, a->k_offset, seg, t);
        for (size_t i = 0; i < stride; i += VL) {
            const size_t c = a->bits == 8 ? i % 32 : i % 16;
            const uint8_t *at = block + mt_kvq_key_at(tokens, stride, a->bits, slot, i / 32, c);
            vf_store(s->w.k + t * stride + i, vi_to_f32(load_integers(at, 64, a->bits, i % 32 >= 16)));
        }
        s->kd[t] = mt_kvq_scale(block, slot);
    }
}

/* VL positions from t on */
static void widen_values_at(const qwork *s, const mt_attn *a, size_t seg, size_t t)
{
    const size_t stride = a->head_stride, tokens = a->page_tokens, slot = (seg * MT_SEGMENT + t) % tokens;
    const uint8_t *block = block_at(a, a->v_offset, seg, t);
    for (size_t i = 0; i < stride; i += VL) {
        vi m[VL];
        for (size_t j = 0; j < VL; j++) {
            const size_t c = a->bits == 8 ? (i + j) % 32 : (i + j) % 16;
            m[j] = load_integers(block + mt_kvq_value_at(tokens, a->bits, slot, i / 32, c), (size_t)32 * a->bits,
                                 a->bits, (i + j) % 32 >= 16);
        }
        vi_transpose(m);
        for (size_t j = 0; j < VL; j++)
            vf_store(s->w.v + ((t + j) % MT_LANES * BLOCKS + (t + j) / MT_LANES) * stride + i, vi_to_f32(m[j]));
    }
    for (size_t j = 0; j < VL; j++)
        s->vd[t + j] = mt_kvq_scale(block, slot + j);
}

/* Turns the products of a row into weights where it sees; *top: the largest. */
static mt_attn_part weights_row(float *p, const qwork *s, const mt_attn *a, float scale, mt_attn_range seen, float *top)
{
    const vf none = vf_set1(-INFINITY), zero = vf_set1(0.0f);
    const mt_attn_range b = mt_attn_blocks(seen);
    vf most = none, largest = zero;
    for (size_t t = b.begin * MT_LANES; t < b.end * MT_LANES; t += VL) {
        vf x = vf_mul(vf_mul(vf_load(p + t), vf_load(s->kd + t)), vf_set1(scale));
        x = a->softcap != 0.0f ? vf_softcap(x, vf_set1(a->softcap)) : x;
        vf_store(p + t, x);
        most = vf_max1(most, vf_select(vi_within(t, seen.begin, seen.end), x, none));
    }
    const float m = vf_max_of(most);
    vlanes sum = vlanes_zero();
    for (size_t t = b.begin * MT_LANES; t < b.end * MT_LANES; t += MT_LANES)
        for (size_t h = 0; h < VREGS; h++) {
            const size_t at = t + h * VL;
            const vmask see = vi_within(at, seen.begin, seen.end);
            vf e = vf_exp(vf_max1(vf_sub(vf_load(p + at), vf_set1(m)), vf_set1(MT_KVQ_EXP_MIN)));
            const vf x = vf_select(see, vf_mul(e, vf_load(s->vd + at)), zero);
            e = vf_select(see, e, zero);
            sum.v[h] = vf_add(sum.v[h], e);
            largest = vf_max1(largest, x);
            vf_store(p + at, x);
        }
    *top = vf_max_of(largest);
    return (mt_attn_part){.m = m, .l = vlanes_fold(sum)};
}

/* Weights of a row as integers. */
static void round_weights(float *u, const float *p, float top, mt_attn_range blocks)
{
    const float factor = MT_KVQ_WEIGHT_MAX / top;
    const vf by = vf_set1(factor <= FLT_MAX ? factor : 0.0f);
    for (size_t t = blocks.begin * MT_LANES; t < blocks.end * MT_LANES; t += VL) {
        const vf x = vf_mul(vf_load(p + t), by);
        const vi q = vf_rint(vf_select(vf_is_nan(x), vf_set1(0.0f), x));
        vf_store(u + t, vi_to_f32(vi_srl(q, 8)));
        vf_store(u + MT_SEGMENT + t, vi_to_f32(vi_and(q, vi_set1(255))));
    }
}

static void join(float *y, const float *o, float unit, size_t stride)
{
    for (size_t i = 0; i < stride; i += VL) {
        const vi upper = vf_rint(vf_load(o + i)), lower = vf_rint(vf_load(o + stride + i));
        vf_store(y + i, vf_mul(vf_set1(unit), vi_to_f32(vi_add(vi_sll(upper, 8), lower))));
    }
}

/* Rows r .. r+n */
static void span_q(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, const qwork *s, size_t r, size_t n)
{
    const size_t stride = a->head_stride;
    float qd[HALF];
    for (size_t c = 0; c < n; c++) {
        const uint8_t *q = (const uint8_t *)a->q + (r + c) * mt_kvq_query_bytes(stride);
        for (size_t i = 0; i < stride; i += VL)
            vf_store(s->w.q + c * stride + i, vi_to_f32(vi_load_s8(q + i)));
        memcpy(&qd[c], q + stride, sizeof(qd[c]));
    }
    products(&s->w, a, seg, mt_attn_seen_by(a, seg, r, r + n), n, false, 0);
    for (size_t c = 0; c < n; c++) {
        const mt_attn_range seen = mt_attn_seen(a, seg, r + c), blocks = mt_attn_blocks(seen);
        float *p = s->w.p + c * MT_SEGMENT, *u = s->u + c * 2 * MT_SEGMENT, top;
        part[r + c] = weights_row(p, s, a, qd[c] * a->scale, seen, &top);
        round_weights(u, p, top, blocks);
        weigh_run(s->o, u, s->w.v, stride, blocks, 2);
        join(o + (r + c) * stride, s->o, top / MT_KVQ_WEIGHT_MAX, stride);
    }
}

void MT_LEVEL(attn_q)(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    const qwork s = carve_q(scratch, a->head_stride);
    const mt_attn_range all = mt_attn_seen_by(a, seg, 0, a->rows), b = mt_attn_blocks(all);
    widen_keys(&s, a, seg, (mt_attn_range){b.begin * MT_LANES, b.end * MT_LANES});
    for (size_t t = b.begin * MT_LANES; t < b.end * MT_LANES; t += VL)
        widen_values_at(&s, a, seg, t);
    for (size_t r = 0; r < a->rows; r += HALF)
        span_q(o, part, a, seg, &s, r, a->rows - r < HALF ? a->rows - r : HALF);
}
