/* The recurrence of GatedDeltaNet and Mamba2 on NEON. A state is read and written once a token: the pass that writes
   the state of token t also computes what token t + 1 needs from it. */
#include "kernels/levels.h"
#include "kernels/neon/math.h"

enum { COLUMNS = MT_DELTA_COLUMNS, REGS = COLUMNS / 4 };

static mt_lanes4 conv16(const float *const *x, const float *w, size_t ldw, size_t taps, size_t c)
{
    mt_lanes4 a = mt_lanes4_mul(mt_lanes4_load(w + c), mt_lanes4_load(x[0] + c));
    for (size_t j = 1; j < taps; j++)
        a = mt_lanes4_fma(a, mt_lanes4_load(w + j * ldw + c), mt_lanes4_load(x[j] + c));
    return a;
}

static mt_lanes4 conv_part(const float *const *x, const float *w, size_t ldw, size_t taps, size_t c, size_t n)
{
    mt_lanes4 a = mt_lanes4_mul(mt_lanes4_load_part(w + c, n), mt_lanes4_load_part(x[0] + c, n));
    for (size_t j = 1; j < taps; j++)
        a = mt_lanes4_fma(a, mt_lanes4_load_part(w + j * ldw + c, n), mt_lanes4_load_part(x[j] + c, n));
    return a;
}

void mt_conv_neon(float *y, const float *const *x, const float *w, size_t ldw, size_t taps, size_t n)
{
    size_t c = 0;
    for (; c + MT_LANES <= n; c += MT_LANES)
        mt_lanes4_store(y + c, conv16(x, w, ldw, taps, c));
    if (c < n)
        mt_lanes4_store_part(y + c, conv_part(x, w, ldw, taps, c, n - c), n - c);
}

/* m = the sum of S[i] k[i] */
static void read_state(float32x4_t m[REGS], const float *s, const float *k, size_t dk)
{
    MT_UNROLL
    for (int r = 0; r < REGS; r++)
        m[r] = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < dk; i++, s += COLUMNS)
        MT_UNROLL
    for (int r = 0; r < REGS; r++)
        m[r] = vfmaq_n_f32(m[r], vld1q_f32(s + 4 * r), k[i]);
}

typedef struct step {
    float *to;
    const float *from, *q, *k, *next; /* next: k of the next token */
    size_t dk;
    float decay;
} step;

/* S = k d + decay S; o = the sum of S q; m = the sum of S next, where there is one */
MT_INLINE void write_state(const step *s, const float32x4_t d[REGS], float32x4_t o[REGS], float32x4_t m[REGS],
                           bool has_next)
{
    MT_UNROLL
    for (int r = 0; r < REGS; r++)
        o[r] = m[r] = vdupq_n_f32(0.0f);
    const float *from = s->from;
    float *to = s->to;
    const float32x4_t decay = vdupq_n_f32(s->decay);
    for (size_t i = 0; i < s->dk; i++, from += COLUMNS, to += COLUMNS) {
        const float32x4_t k = vdupq_n_f32(s->k[i]), q = vdupq_n_f32(s->q[i]);
        const float32x4_t next = has_next ? vdupq_n_f32(s->next[i]) : q;
        MT_UNROLL
        for (int r = 0; r < REGS; r++) {
            float32x4_t x = vfmaq_f32(vmulq_f32(vld1q_f32(from + 4 * r), decay), d[r], k);
            vst1q_f32(to + 4 * r, x);
            o[r] = vfmaq_f32(o[r], x, q);
            if (has_next)
                m[r] = vfmaq_f32(m[r], x, next);
        }
    }
}

/* What a token adds to the state, for each element of its key. */
MT_INLINE void find_change(float32x4_t change[REGS], const mt_delta *d, const float32x4_t m[REGS], size_t t, bool plain)
{
    const float *v = d->v + t * d->stride, decay = d->decay[t * d->gate_stride], beta = d->beta[t * d->gate_stride];
    MT_UNROLL
    for (int r = 0; r < REGS; r++) {
        const float32x4_t x = vld1q_f32(v + 4 * r);
        change[r] = vmulq_n_f32(plain ? x : vfmaq_n_f32(x, m[r], -decay), beta);
    }
}

MT_INLINE void run(float *to, const float *from, const mt_delta *d, bool plain)
{
    float32x4_t m[REGS], o[REGS], change[REGS];
    read_state(m, from, d->k, plain ? 0 : d->dk);
    for (size_t t = 0; t < d->tokens; t++, from = to) {
        const step s = {.to = to,
                        .from = from,
                        .q = d->q + t * d->stride,
                        .k = d->k + t * d->stride,
                        .next = d->k + (t + 1) * d->stride,
                        .dk = d->dk,
                        .decay = d->decay[t * d->gate_stride]};
        find_change(change, d, m, t, plain);
        if (!plain && t + 1 < d->tokens)
            write_state(&s, change, o, m, true);
        else
            write_state(&s, change, o, m, false);
        MT_UNROLL
        for (int r = 0; r < REGS; r++)
            vst1q_f32(d->o + t * d->o_stride + 4 * r, o[r]);
    }
}

void mt_delta_neon(float *to, const float *from, const mt_delta *d)
{
    if (d->n < COLUMNS || d->tokens == 0) {
        mt_delta_portable(to, from, d);
        return;
    }
    if (!from)
        from = memset(to, 0, d->dk * COLUMNS * sizeof(*to));
    if (d->plain)
        run(to, from, d, true);
    else
        run(to, from, d, false);
}
