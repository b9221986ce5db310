/* Attention (R8 of docs/numerics.md) over keys and values in 8 or 4 bits (kvq.h): integers are widened to 16 bits on
   their way from the pages, and multiplied in pairs. All sums are exact, so their order is free. */
#include "kernels/kvq.h"

enum { Q_ROWS = VL / 4 }; /* rows processed at once */
enum { Q_PART = VL / 4 }; /* positions, or channels, of a register, each with four sums of pairs */
enum { Q_OCTETS = MT_SEGMENT / 8, Q_AHEAD = 2 };

typedef struct qwork {
    float *p;       /* [Q_ROWS][MT_SEGMENT]: products, then weights */
    float *kd, *vd; /* [MT_SEGMENT] */
    int16_t *q;     /* [Q_ROWS][head_stride] */
    int16_t *u;     /* [Q_ROWS][MT_SEGMENT]: weights as integers, less 2^15 */
} qwork;

static qwork carve_q(uint8_t *scratch)
{
    qwork w = {.p = (float *)(void *)scratch};
    w.kd = w.p + Q_ROWS * MT_SEGMENT;
    w.vd = w.kd + MT_SEGMENT;
    w.u = (int16_t *)(void *)(w.vd + MT_SEGMENT);
    w.q = w.u + Q_ROWS * MT_SEGMENT;
    return w;
}

size_t MT_LEVEL(attn_q_scratch_bytes)(size_t rows, size_t head_stride)
{
    (void)rows;
    return (Q_ROWS + 2) * MT_SEGMENT * sizeof(float) + Q_ROWS * (MT_SEGMENT + head_stride) * sizeof(int16_t);
}

/* The block that contains position t of the segment. */
static const uint8_t *block_at(const mt_attn *a, size_t offset, size_t seg, size_t t)
{
    return a->base + a->pages[(seg * MT_SEGMENT + t) / a->page_tokens] * a->page_stride + offset;
}

/* The scales of VL positions */
MT_INLINE void take_scales(float *d, const uint8_t *block, size_t slot)
{
    vf_store(d, vf_from_bits(vi_sll(vi_load_u16(block + slot * sizeof(mt_bf16)), 16)));
}

/* The numbers of four registers, register i having numbers i * Q_PART .. (i + 1) * Q_PART, each in four parts. */
MT_INLINE vi whole_sums(const vi m[4])
{
    return vi_in_turn(vi_sum_blocks(m[0], m[1], m[2], m[3]));
}

/* Products of nr queries with the keys of the blocks b */
MT_INLINE void products_q(const qwork *w, const mt_attn *a, size_t seg, mt_attn_range b, size_t nr, unsigned bits)
{
    const size_t stride = a->head_stride, tokens = a->page_tokens, octet = stride * bits, end = b.end * MT_LANES;
    for (size_t t = b.begin * MT_LANES; t < end; t += VL) {
        const size_t slot = (seg * MT_SEGMENT + t) % tokens,
                     ahead = t + Q_AHEAD * MT_LANES < end ? t + Q_AHEAD * MT_LANES : t;
        const uint8_t *block = block_at(a, a->k_offset, seg, t), *values = block_at(a, a->v_offset, seg, t);
        const uint8_t *next = block_at(a, a->k_offset, seg, ahead);
        vi acc[Q_ROWS][4];
        take_scales(w->kd + t, block, slot);
        take_scales(w->vd + t, values, slot);
        mt_few_fetch(values + tokens * sizeof(mt_bf16) + slot / 8 * octet, VL / 8 * octet, false);
        mt_few_fetch(next + mt_kvq_key_at(tokens, stride, bits, (seg * MT_SEGMENT + ahead) % tokens, 0, 0),
                     VL / 8 * octet, true);
        MT_UNROLL
        for (size_t i = 0; i < nr * 4; i++)
            acc[i / 4][i % 4] = vi_set1(0);
        for (size_t i = 0; i < stride; i += 8) {
            const size_t c = bits == 8 ? i % 32 : i % 16;
            const uint8_t *at = block + mt_kvq_key_at(tokens, stride, bits, slot, i / 32, c);
            vi k[4];
            MT_UNROLL
            for (size_t j = 0; j < 4; j++)
                k[j] = vh_load_s8(at + j * Q_PART / 8 * octet + j * Q_PART % 8 * 8, bits == 4, i % 32 >= 16);
            MT_UNROLL
            for (size_t r = 0; r < nr; r++) {
                const vi q = vb_table(w->q + r * stride + i);
                MT_UNROLL
                for (size_t j = 0; j < 4; j++)
                    acc[r][j] = vi_add(acc[r][j], vh_madd(k[j], q));
            }
        }
        MT_UNROLL
        for (size_t r = 0; r < nr; r++)
            vf_store(w->p + r * MT_SEGMENT + t, vi_to_f32(whole_sums(acc[r])));
    }
}

/* Turns the products of a row into weights where it sees; *top: the largest. */
static mt_attn_part weights_row(float *p, const qwork *w, const mt_attn *a, float scale, mt_attn_range seen, float *top)
{
    const vf none = vf_set1(-INFINITY), zero = vf_set1(0.0f);
    const mt_attn_range b = mt_attn_blocks(seen);
    vf most = none, largest = zero;
    for (size_t t = b.begin * MT_LANES; t < b.end * MT_LANES; t += VL) {
        vf x = vf_mul(vf_mul(vf_load(p + t), vf_load(w->kd + t)), vf_set1(scale));
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
            const vf x = vf_select(see, vf_mul(e, vf_load(w->vd + at)), zero);
            e = vf_select(see, e, zero);
            sum.v[h] = vf_add(sum.v[h], e);
            largest = vf_max1(largest, x);
            vf_store(p + at, x);
        }
    *top = vf_max_of(largest);
    return (mt_attn_part){.m = m, .l = vlanes_fold(sum)};
}

/* Weights of a row as integers, 0 beside its blocks; less 2^15. */
static void round_weights(int16_t *u, const float *p, float top, mt_attn_range blocks, mt_attn_range all)
{
    const float factor = MT_KVQ_WEIGHT_MAX / top;
    const vf by = vf_set1(factor <= FLT_MAX ? factor : 0.0f);
    for (size_t t = all.begin * MT_LANES; t < all.end * MT_LANES; t++)
        u[t] = INT16_MIN;
    for (size_t t = blocks.begin * MT_LANES; t < blocks.end * MT_LANES; t += VL) {
        const vf x = vf_mul(vf_load(p + t), by);
        const vi q = vf_rint(vf_select(vf_is_nan(x), vf_set1(0.0f), x));
        vi_store_u16(u + t, vi_xor(q, vi_set1(0x8000)));
    }
}

/* o[r] = unit[r] * (sum over the blocks b of u v), in wrapping sums whose result fits: u is 2^15 too small, for which
   the sum of v makes up. */
MT_INLINE void weigh_q(float *o, const float *unit, const qwork *w, const mt_attn *a, size_t seg, mt_attn_range b,
                       size_t nr, unsigned bits)
{
    const size_t stride = a->head_stride, tokens = a->page_tokens, o0 = b.begin * 2, o1 = b.end * 2;
    const uint8_t *v[Q_OCTETS];
    for (size_t i = o0; i < o1; i++)
        v[i] = block_at(a, a->v_offset, seg, i * 8) +
               mt_kvq_value_at(tokens, bits, (seg * MT_SEGMENT + i * 8) % tokens, 0, 0);
    for (size_t d = 0; d < stride; d += 4 * Q_PART) {
        const size_t c = bits == 8 ? d % 32 : d % 16, offset = d / 32 * 4 * bits * tokens + c * 8;
        vi acc[Q_ROWS][4], all[4];
        MT_UNROLL
        for (size_t j = 0; j < 4; j++)
            all[j] = vi_set1(0);
        MT_UNROLL
        for (size_t i = 0; i < nr * 4; i++)
            acc[i / 4][i % 4] = vi_set1(0);
        for (size_t i = o0; i < o1; i++) {
            vi x[4];
            MT_UNROLL
            for (size_t j = 0; j < 4; j++) {
                x[j] = vh_load_s8(v[i] + offset + j * Q_PART * 8, bits == 4, d % 32 >= 16);
                all[j] = vi_add(all[j], vh_madd(x[j], vh_set1(1)));
            }
            MT_UNROLL
            for (size_t r = 0; r < nr; r++) {
                const vi u = vb_table(w->u + r * MT_SEGMENT + i * 8);
                MT_UNROLL
                for (size_t j = 0; j < 4; j++)
                    acc[r][j] = vi_add(acc[r][j], vh_madd(x[j], u));
            }
        }
        MT_UNROLL
        for (size_t r = 0; r < nr; r++) {
            MT_UNROLL
            for (size_t j = 0; j < 4; j++)
                acc[r][j] = vi_add(acc[r][j], vi_sll(all[j], 15));
            vf_store(o + r * stride + d, vf_mul(vf_set1(unit[r]), vi_to_f32(whole_sums(acc[r]))));
        }
    }
}

/* Rows r .. r+n */
MT_INLINE void rows_q(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, const qwork *w, size_t r, size_t n,
                      unsigned bits)
{
    const size_t stride = a->head_stride;
    const mt_attn_range all = mt_attn_blocks(mt_attn_seen_by(a, seg, r, r + n));
    float qd[Q_ROWS], unit[Q_ROWS];
    for (size_t c = 0; c < n; c++) {
        const uint8_t *q = (const uint8_t *)a->q + (r + c) * mt_kvq_query_bytes(stride);
        for (size_t i = 0; i < stride; i++)
            w->q[c * stride + i] = (int8_t)q[i];
        memcpy(&qd[c], q + stride, sizeof(qd[c]));
    }
    products_q(w, a, seg, all, n, bits);
    for (size_t c = 0; c < n; c++) {
        const mt_attn_range seen = mt_attn_seen(a, seg, r + c);
        float *p = w->p + c * MT_SEGMENT, top;
        part[r + c] = weights_row(p, w, a, qd[c] * a->scale, seen, &top);
        round_weights(w->u + c * MT_SEGMENT, p, top, mt_attn_blocks(seen), all);
        unit[c] = top / MT_KVQ_WEIGHT_MAX;
    }
    weigh_q(o + r * stride, unit, w, a, seg, all, n, bits);
}

MT_INLINE void attend_q(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, const qwork *w, unsigned bits)
{
    size_t r = 0;
    for (; r + Q_ROWS <= a->rows; r += Q_ROWS)
        rows_q(o, part, a, seg, w, r, Q_ROWS, bits);
    for (; r + 2 <= a->rows; r += 2)
        rows_q(o, part, a, seg, w, r, 2, bits);
    for (; r < a->rows; r++)
        rows_q(o, part, a, seg, w, r, 1, bits);
}

void MT_LEVEL(attn_q)(float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch)
{
    const qwork w = carve_q(scratch);
    if (a->bits == 8)
        attend_q(o, part, a, seg, &w, 8);
    else
        attend_q(o, part, a, seg, &w, 4);
}
