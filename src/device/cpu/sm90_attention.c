/* Attention over pages in bf16 (R8) as a GPU of sm_90 computes it (docs/numerics.md), where it has kernels for tensor
   cores: scores are sums of 16 elements of a head at a time, results of 16 positions. Which kernel it has follows from
   heads and caps. They differ in the order of elements (MT_CPU_SM90_TILES), in when scores are scaled, and in how p is
   summed up for l: by the threads that have it. */
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/sm90_lanes.h"
#include "kernels/attn.h"
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"

enum { LANES = MT_SM90_LANES, K = MT_SM90_K, WARPGROUP_ROWS = 64, QUARTER = MT_SEGMENT / 4, THREADS = 4 };

/* Working memory: keys as columns of scores, [segment / 16][head_stride][16]; values as columns of results,
   [segment][head_stride]; a query; p. Each as sm90_lanes.h wants it. */
typedef struct work {
    float *key[2], *value[2], *query[2], *p[2]; /* numbers, powers */
    bool finite[MT_SEGMENT / LANES];            /* keys */
    bool values_finite;
} work;

static bool is_one_of(size_t x, const size_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

mt_cpu_sm90_form mt_cpu_sm90_form_of(const mt_kv *kv, size_t group, const mt_attention *how)
{
    static const size_t padded[] = {64, 80, 96, 128, 256}, exact[] = {64, 128, 256};
    const size_t stride = kv->head_stride, dim = kv->shape.head_dim;
    if (kv->shape.type != MT_KV_BF16)
        return MT_CPU_SM90_NONE;
    if (kv->shape.latent)
        return dim == kv->shape.latent + 64 && (dim == 576 || dim == 320) ? MT_CPU_SM90_LATENTS : MT_CPU_SM90_NONE;
    if (how->scale > 0 && how->softcap == 0 && dim % 2 == 0 && is_one_of(stride, padded, MT_COUNT(padded)) &&
        group <= WARPGROUP_ROWS * (stride == 256  ? 1u
                                   : stride == 64 ? 3u
                                                  : 2u))
        return stride == 256 ? MT_CPU_SM90_WIDE : MT_CPU_SM90_HEADS;
    if (is_one_of(dim, exact, MT_COUNT(exact)) && group <= (dim == 256 ? 32u : 64u))
        return MT_CPU_SM90_TILES;
    return MT_CPU_SM90_NONE;
}

size_t mt_cpu_sm90_attend_scratch(size_t head_stride)
{
    return 2 * sizeof(float) * (2 * MT_SEGMENT * head_stride + head_stride + MT_SEGMENT);
}

static work carve(uint8_t *scratch, size_t stride)
{
    work w = {0};
    float *at = (float *)(void *)scratch;
    for (size_t i = 0; i < 2; i++) {
        w.key[i] = at;
        w.value[i] = w.key[i] + MT_SEGMENT * stride;
        w.query[i] = w.value[i] + MT_SEGMENT * stride;
        w.p[i] = w.query[i] + stride;
        at = w.p[i] + MT_SEGMENT;
    }
    return w;
}

/* Whether elements are permuted, and scores are scaled before their largest is found. */
static bool in_tiles(mt_cpu_sm90_form form)
{
    return form == MT_CPU_SM90_TILES || form == MT_CPU_SM90_LATENTS;
}

/* Which element of a head a product has as number i. Where a thread reads eight neighbours at once, it has four of them
   in one product of 16 and four in the next. */
static size_t element(mt_cpu_sm90_form form, size_t i)
{
    return in_tiles(form) ? i / 32 * 32 + i % 16 / 4 * 8 + i / 16 % 2 * 4 + i % 4 : i;
}

/* Positions of the segment that some row sees, and those up to multiples of 16, which count as zeros. */
static void gather(work *w, const mt_attn *a, size_t seg, mt_attn_range all, mt_cpu_sm90_form form)
{
    const size_t stride = a->head_stride;
    mt_bf16 half[MT_CPU_SM90_STRIDE];
    float number[MT_CPU_SM90_STRIDE], power[MT_CPU_SM90_STRIDE];
    w->values_finite = true;
    for (size_t t = all.begin / LANES * LANES; t < mt_round_up(all.end, LANES); t++) {
        const bool there = t >= all.begin && t < all.end;
        float *const value = w->value[0] + t * stride, *const value_power = w->value[1] + t * stride;
        const size_t block = t / LANES * stride * LANES + t % LANES;
        memset(half, 0, sizeof(half));
        if (there)
            memcpy(half, mt_attn_at(a, a->v_offset, seg, t, sizeof(*half)), stride * sizeof(*half));
        w->values_finite &= mt_sm90_widen(value, value_power, half, stride, MT_SM90_BF16);
        if (there)
            memcpy(half, mt_attn_at(a, a->k_offset, seg, t, sizeof(*half)), stride * sizeof(*half));
        const bool finite = mt_sm90_widen(number, power, half, stride, MT_SM90_BF16);
        w->finite[t / LANES] = finite && (t % LANES == 0 || w->finite[t / LANES]);
        for (size_t i = 0; i < stride; i++) {
            w->key[0][block + i * LANES] = number[element(form, i)];
            w->key[1][block + i * LANES] = power[element(form, i)];
        }
    }
}

/* Products of a query with the keys of a segment that it sees, sixteen at a time. */
static void score(float *s, work *w, const mt_attn *a, size_t row, mt_attn_range seen, mt_cpu_sm90_form form)
{
    const size_t stride = a->head_stride;
    const mt_bf16 *q = (const mt_bf16 *)a->q + row * stride;
    mt_bf16 half[MT_CPU_SM90_STRIDE];
    for (size_t i = 0; i < stride; i++)
        half[i] = q[element(form, i)];
    const bool finite = mt_sm90_widen(w->query[0], w->query[1], half, stride, MT_SM90_BF16);
    for (size_t t = seen.begin / LANES * LANES; t < seen.end; t += LANES) {
        memset(s + t, 0, LANES * sizeof(*s));
        for (size_t i = 0; i < stride; i += K)
            mt_sm90_step(s + t, w->key[0] + t * stride + i * LANES, w->key[1] + t * stride + i * LANES, LANES,
                         w->query[0] + i, w->query[1] + i, MT_SM90_BF16, finite && w->finite[t / LANES]);
    }
}

/* exp as bf16, where less than 2^-126 is 0. */
static float weight(float x)
{
    const float e = mt_exp1(x);
    return e < 0x1p-126f ? 0 : mt_bf16_rounded(e);
}

/* p of a row, zeros where it sees nothing; returns m. */
static float weigh(float *p, const float *s, const mt_attn *a, mt_attn_range seen, mt_cpu_sm90_form form)
{
    float m = -INFINITY, scaled[MT_SEGMENT];
    memset(p, 0, MT_SEGMENT * sizeof(*p));
    if (in_tiles(form)) {
        for (size_t t = seen.begin; t < seen.end; t++) {
            scaled[t] = s[t] * a->scale;
            scaled[t] = a->softcap != 0 ? mt_softcap1(scaled[t], a->softcap) : scaled[t];
            m = mt_max1(m, scaled[t]);
        }
        for (size_t t = seen.begin; t < seen.end; t++)
            p[t] = mt_bf16_rounded(mt_exp1(scaled[t] - m));
        return m;
    }
    for (size_t t = seen.begin; t < seen.end; t++)
        m = mt_max1(m, s[t]);
    m = m * a->scale;
    for (size_t t = seen.begin; t < seen.end; t++)
        p[t] = weight(fmaf(s[t], a->scale, -m));
    return m;
}

static float sum_of_four(const float *x)
{
    return (x[0] + x[1]) + (x[2] + x[3]);
}

/* Four threads have two neighbours of each eight positions, and sum them up ascending: HEADS even and odd ones by
   themselves; WIDE the same, of every other quarter by itself; TILES both together, each quarter by itself, and
   LATENTS each eighth. */
static float sum_up(const float *p, mt_cpu_sm90_form form)
{
    float sum[8][2][THREADS] = {0}; /* by eighth, quarter or pair of quarters; parity; thread */
    const size_t parts = form == MT_CPU_SM90_HEADS   ? 1
                         : form == MT_CPU_SM90_WIDE  ? 2
                         : form == MT_CPU_SM90_TILES ? 4
                                                     : 8;
    for (size_t t = 0; t < MT_SEGMENT; t++) {
        const size_t quarter = t / QUARTER, parity = in_tiles(form) ? 0 : t % 2;
        const size_t part = in_tiles(form) ? t / (MT_SEGMENT / parts) : quarter % parts;
        sum[part][parity][t % 8 / 2] += p[t];
    }
    float l = 0;
    for (size_t part = 0; part < parts; part++) {
        for (size_t i = 0; i < THREADS; i++)
            sum[part][0][i] += sum[part][1][i];
        l += sum_of_four(sum[part][0]);
    }
    return l;
}

/* o = p v; sixteen positions without weight change nothing. */
static void add_values(float *o, work *w, size_t stride, mt_attn_range seen)
{
    mt_bf16 half[MT_SEGMENT];
    mt_to_bf16_portable(half, w->p[0], MT_SEGMENT);
    const bool finite = mt_sm90_widen(w->p[0], w->p[1], half, MT_SEGMENT, MT_SM90_BF16) && w->values_finite;
    memset(o, 0, stride * sizeof(*o));
    for (size_t t = seen.begin / K * K; t < seen.end; t += K) {
        float most = 0;
        for (size_t i = 0; i < K; i++)
            most = w->p[1][t + i] > most ? w->p[1][t + i] : most;
        for (size_t d = 0; most > 0 && d < stride; d += LANES)
            mt_sm90_step(o + d, w->value[0] + t * stride + d, w->value[1] + t * stride + d, stride, w->p[0] + t,
                         w->p[1] + t, MT_SM90_BF16, finite);
    }
}

void mt_cpu_sm90_attend(mt_cpu_sm90_form form, float *o, mt_attn_part *part, const mt_attn *a, size_t seg,
                        uint8_t *scratch)
{
    const mt_attn_range all = mt_attn_seen_by(a, seg, 0, a->rows);
    work w = carve(scratch, a->head_stride);
    float s[MT_SEGMENT];
    gather(&w, a, seg, all, form);
    for (size_t r = 0; r < a->rows; r++) {
        const mt_attn_range seen = mt_attn_seen(a, seg, r);
        part[r] = (mt_attn_part){.m = -INFINITY};
        memset(o + r * a->head_stride, 0, a->head_stride * sizeof(*o));
        if (seen.begin == seen.end)
            continue;
        score(s, &w, a, r, seen, form);
        part[r].m = weigh(w.p[0], s, a, seen, form);
        part[r].l = sum_up(w.p[0], form);
        add_values(o + r * a->head_stride, &w, a->head_stride, seen);
    }
}
