/* The recurrence of GatedDeltaNet and Mamba2. A state is read and written once a token: the pass that writes the
   state of token t also computes what token t + 1 needs from it. */
#include "kernels/levels.h"
#include "kernels/x86/math.h"

enum { COLUMNS = MT_DELTA_COLUMNS, REGS = COLUMNS / VL };

void MT_LEVEL(conv)(float *y, const float *const *x, const float *w, size_t ldw, size_t taps, size_t n)
{
    for (size_t c = 0; c < n; c += VL) {
        vf a = vf_mul(vf_get(w, c, n), vf_get(x[0], c, n));
        for (size_t j = 1; j < taps; j++)
            a = vf_fma(vf_get(w + j * ldw, c, n), vf_get(x[j], c, n), a);
        vf_put(y, c, n, a);
    }
}

/* m = the sum of S[i] k[i] */
static void read_state(vf m[REGS], const float *s, const float *k, size_t dk)
{
    MT_UNROLL
    for (size_t r = 0; r < REGS; r++)
        m[r] = vf_set1(0.0f);
    for (size_t i = 0; i < dk; i++, s += COLUMNS)
        MT_UNROLL
    for (size_t r = 0; r < REGS; r++)
        m[r] = vf_fma(vf_load(s + VL * r), vf_set1(k[i]), m[r]);
}

typedef struct step {
    float *to;
    const float *from, *q, *k, *next; /* next: k of the next token */
    size_t dk;
    float decay;
} step;

/* S = k d + decay S; o = the sum of S q; m = the sum of S next, where there is one */
MT_INLINE void write_state(const step *s, const vf d[REGS], vf o[REGS], vf m[REGS], bool has_next)
{
    MT_UNROLL
    for (size_t r = 0; r < REGS; r++)
        o[r] = m[r] = vf_set1(0.0f);
    const float *from = s->from;
    float *to = s->to;
    const vf decay = vf_set1(s->decay);
    for (size_t i = 0; i < s->dk; i++, from += COLUMNS, to += COLUMNS) {
        const vf k = vf_set1(s->k[i]), q = vf_set1(s->q[i]), next = has_next ? vf_set1(s->next[i]) : q;
        MT_UNROLL
        for (size_t r = 0; r < REGS; r++) {
            vf x = vf_fma(k, d[r], vf_mul(decay, vf_load(from + VL * r)));
            vf_store(to + VL * r, x);
            o[r] = vf_fma(x, q, o[r]);
            if (has_next)
                m[r] = vf_fma(x, next, m[r]);
        }
    }
}

/* What a token adds to the state, for each element of its key. */
MT_INLINE void find_change(vf change[REGS], const mt_delta *d, const vf m[REGS], size_t t, bool plain)
{
    const float *v = d->v + t * d->stride;
    const vf decay = vf_set1(-d->decay[t * d->gate_stride]), beta = vf_set1(d->beta[t * d->gate_stride]);
    MT_UNROLL
    for (size_t r = 0; r < REGS; r++)
        change[r] = vf_mul(beta, plain ? vf_load(v + VL * r) : vf_fma(decay, m[r], vf_load(v + VL * r)));
}

MT_INLINE void run(float *to, const float *from, const mt_delta *d, bool plain)
{
    vf m[REGS], o[REGS], change[REGS];
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
        for (size_t r = 0; r < REGS; r++)
            vf_store(d->o + t * d->o_stride + VL * r, o[r]);
    }
}

void MT_LEVEL(delta)(float *to, const float *from, const mt_delta *d)
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
