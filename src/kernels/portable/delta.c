/* GatedDeltaNet and Mamba2 in portable C: the convolution and the recurrence. */
#include <string.h>

#include "kernels/levels.h"
#include "kernels/portable/scalar.h"

enum { COLUMNS = MT_DELTA_COLUMNS };

void mt_conv_portable(float *y, const float *const *x, const float *w, size_t ldw, size_t taps, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        float a = w[c] * x[0][c];
        for (size_t j = 1; j < taps; j++)
            a = fmaf(w[j * ldw + c], x[j][c], a);
        y[c] = a;
    }
}

/* One token, see mt_delta in kernels.h. */
static void step(float *to, const float *from, const mt_delta *d, size_t t)
{
    const float *q = d->q + t * d->stride, *k = d->k + t * d->stride, *v = d->v + t * d->stride;
    const float decay = d->decay[t * d->gate_stride], beta = d->beta[t * d->gate_stride];
    float m[COLUMNS] = {0}, o[COLUMNS] = {0};
    for (size_t i = 0; i < d->dk && !d->plain; i++)
        for (size_t c = 0; c < COLUMNS; c++)
            m[c] = fmaf(from[i * COLUMNS + c], k[i], m[c]);
    for (size_t c = 0; c < COLUMNS; c++)
        m[c] = c < d->n ? beta * (d->plain ? v[c] : fmaf(-decay, m[c], v[c])) : 0.0f;
    for (size_t i = 0; i < d->dk; i++)
        for (size_t c = 0; c < COLUMNS; c++) {
            const float s = c < d->n ? fmaf(k[i], m[c], decay * from[i * COLUMNS + c]) : 0.0f;
            to[i * COLUMNS + c] = s;
            o[c] = fmaf(s, q[i], o[c]);
        }
    memcpy(d->o + t * d->o_stride, o, d->n * sizeof(*o));
}

void mt_delta_portable(float *to, const float *from, const mt_delta *d)
{
    if (!from)
        from = memset(to, 0, d->dk * COLUMNS * sizeof(*to));
    for (size_t t = 0; t < d->tokens; t++, from = to)
        step(to, from, d, t);
}
