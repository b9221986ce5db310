/* Integer products (R4 of docs/numerics.md): panels of columns, unpacked a chunk of k at a time, are multiplied with
   tiles of rows in registers. */
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"
#include "kernels/x86/qone.h"

/* rows whose sums are kept between chunks; registers of columns */
enum { ROWS = 128, HALVES = 2 };

/* The two sums of R4 for ROWS x MT_Q_COLUMNS results */
typedef struct sums {
    float *a, *b;
} sums;

size_t MT_LEVEL(q_scratch_bytes)(size_t k)
{
    const size_t cells = MT_Q_GROUPS * MT_Q_COLUMNS;
    (void)k;
    return MT_Q_PLANES * MT_Q_PLANE + mt_round_up(VL * MT_Q_LDB, 64) +
           (2 * cells + 2 * ROWS * MT_Q_COLUMNS) * sizeof(float);
}

/* Calls F(unit, link, lifted) with those of the chunk as constants. */
#define BY_KIND(c, F)                             \
    if (!(c)->lift && (c)->link == 2)             \
        F(MT_BLOCK, 2, false);                    \
    else if (!(c)->lift && (c)->unit == MT_BLOCK) \
        F(MT_BLOCK, 1, false);                    \
    else if ((c)->unit == MT_BLOCK)               \
        F(MT_BLOCK, 1, true);                     \
    else                                          \
        F(MT_BLOCK / 2, 1, (c)->lift > 0);

#if defined(MT_VNNI)

/* Adds the products of one unit to dot[r][h]. */
MT_INLINE void dots(vi dot[MT_Q_ROWS][HALVES], const mt_qchunk *c, const uint8_t *w, const int8_t *x, size_t nr,
                    size_t unit)
{
    (void)c;
    MT_UNROLL
    for (size_t s = 0; s < unit / 4; s++) {
        const vi low = vi_load(w + s * MT_Q_STEP), high = vi_load(w + s * MT_Q_STEP + 4 * VL);
        MT_UNROLL
        for (size_t r = 0; r < nr; r++) {
            const vi four = vi_four(x + 4 * (s * nr + r));
            dot[r][0] = vi_dot4(dot[r][0], low, four);
            dot[r][1] = vi_dot4(dot[r][1], high, four);
        }
    }
}

#else

/* In assembly, as compilers copy the accumulators in each step. */
MT_INLINE vi add_pairs(vi acc, vi pairs)
{
    __asm__("vpaddw %1, %0, %0" : "+v"(acc) : "v"(pairs));
    return acc;
}

/* pairs[r][h] = sums of the products of pairs over c->flush steps, which fit 16 bits */
MT_INLINE void pairs_of(vi pairs[MT_Q_ROWS][HALVES], size_t steps, const uint8_t *w, const int8_t *x, size_t nr)
{
    MT_UNROLL
    for (size_t i = 0; i < nr * HALVES; i++)
        pairs[i / HALVES][i % HALVES] = vi_set1(0);
    for (size_t s = 0; s < steps; s++, w += MT_Q_STEP, x += 4 * nr) {
        const vi low = vi_load(w), high = vi_load(w + 4 * VL);
        MT_UNROLL
        for (size_t r = 0; r < nr; r++) {
            const vi four = vi_four(x + 4 * r);
            pairs[r][0] = add_pairs(pairs[r][0], vb_maddubs(low, four));
            pairs[r][1] = add_pairs(pairs[r][1], vb_maddubs(high, four));
        }
    }
}

/* The 32-bit sums stay in memory, as the registers are full of pairs. */
MT_INLINE void dots(vi dot[MT_Q_ROWS][HALVES], const mt_qchunk *c, const uint8_t *w, const int8_t *x, size_t nr,
                    size_t unit)
{
    for (size_t plane = 0; plane < c->planes; plane++) {
        for (size_t s = 0; s < unit / 4; s += c->flush) {
            vi pairs[MT_Q_ROWS][HALVES];
            __asm__ volatile("" : : "r"(dot) : "memory");
            pairs_of(pairs, c->flush, w + plane * MT_Q_PLANE + s * MT_Q_STEP, x + s * 4 * nr, nr);
            MT_UNROLL
            for (size_t i = 0; i < nr * HALVES; i++) {
                vi sum = vh_madd(pairs[i / HALVES][i % HALVES], vh_set1(plane == 0 ? 1 : 16));
                dot[i / HALVES][i % HALVES] = vi_add(dot[i / HALVES][i % HALVES], sum);
            }
        }
    }
}

#endif

/* a = fma(scale of W, sum, a) at the end of each link (block.h). `unit`, `link` and `lifted` are those of the chunk, as
   constants: so sums stay in registers. */
MT_INLINE void scale_fixed(float *a, const mt_qchunk *c, const mt_qtile *t, size_t nr, size_t unit, size_t link,
                           bool lifted)
{
    const uint8_t *w = c->w;
    const float *scales = c->scales;
    for (size_t u = c->g0 * c->each, left = c->each; u < c->g1 * c->each; u += link) {
        vi dot[MT_Q_ROWS][HALVES];
        MT_UNROLL
        for (size_t r = 0; r < nr; r++)
            dot[r][0] = dot[r][1] = vi_set1(MT_DOT_BITS - (lifted ? c->lift * t->sum[u * nr + r] : 0));
        dots(dot, c, w, t->q + u * unit * nr, nr, unit);
        w += unit / 4 * MT_Q_STEP;
        if (link == 2) {
            MT_UNROLL
            for (size_t i = 0; i < nr * HALVES; i++)
                dot[i / HALVES][i % HALVES] = vf_bits(mt_qturned(dot[i / HALVES][i % HALVES], t, u * nr + i / HALVES));
            dots(dot, c, w, t->q + (u + 1) * unit * nr, nr, unit);
            w += unit / 4 * MT_Q_STEP;
        }
        MT_UNROLL
        for (size_t i = 0; i < nr * HALVES; i++) {
            const vf sum = mt_qturned(dot[i / HALVES][i % HALVES], t, (u + link - 1) * nr + i / HALVES);
            vf_store(a + i * VL, vf_fma(vf_load(scales + i % HALVES * VL), sum, vf_load(a + i * VL)));
        }
        if ((left -= link) == 0) {
            scales += MT_Q_COLUMNS;
            left = c->each;
        }
    }
}

/* b = fma(bias of W, sum of the group of x, b) */
MT_INLINE void bias_fixed(float *b, const mt_qchunk *c, const mt_qtile *t, size_t nr)
{
    vf sum[MT_Q_ROWS][HALVES];
    MT_UNROLL
    for (size_t i = 0; i < nr * HALVES; i++)
        sum[i / HALVES][i % HALVES] = vf_load(b + i * VL);
    for (size_t g = c->g0; g < c->g1; g++) {
        const float *biases = c->biases + (g - c->g0) * MT_Q_COLUMNS;
        const vf low = vf_load(biases), high = vf_load(biases + VL);
        MT_UNROLL
        for (size_t r = 0; r < nr; r++) {
            const vf x = vf_set1(t->bias[g * nr + r]);
            sum[r][0] = vf_fma(low, x, sum[r][0]);
            sum[r][1] = vf_fma(high, x, sum[r][1]);
        }
    }
    MT_UNROLL
    for (size_t i = 0; i < nr * HALVES; i++)
        vf_store(b + i * VL, sum[i / HALVES][i % HALVES]);
}

MT_INLINE void tile_fixed(float *a, float *b, const mt_qchunk *c, const mt_qtile *t, size_t nr)
{
#define KIND(unit, link, lifted) scale_fixed(a, c, t, nr, unit, link, lifted)
    BY_KIND(c, KIND)
#undef KIND
    if (c->biases)
        bias_fixed(b, c, t, nr);
}

static void tile(float *a, float *b, const mt_qchunk *c, const mt_qtile *t)
{
#define CASE(count) \
    case count: tile_fixed(a, b, c, t, count); break;
    switch (t->nr) {
        MT_Q_EACH(CASE)
    }
#undef CASE
}

#if defined(__AVX512VNNI__)

enum { FEW = 4 }; /* rows for which codes of 4 bits go from memory to the sums by registers alone */

/* The chunk's sums of nr rows for one register of columns, h .. h+VL of the panel; n % (8 * VL) == 0. */
MT_INLINE void few_fixed(float *a, float *b, const mt_qpanel *p, size_t h, size_t n, const mt_qchunk *c,
                         const mt_qtile *t, size_t nr, size_t unit, size_t link, bool lifted)
{
    const float *scales = c->scales + h;
    const float *biases = c->biases ? c->biases + h : NULL;
    size_t u = c->g0 * c->each, g = c->g0, left = c->each;
    const int8_t *x = t->q + u * unit * nr;
    vf sum[FEW], bias[FEW];
    MT_UNROLL
    for (size_t r = 0; r < nr; r++) {
        sum[r] = vf_load(a + r * MT_Q_COLUMNS + h);
        bias[r] = vf_load(b + r * MT_Q_COLUMNS + h);
    }
    for (size_t k = 0; k < n; k += 8 * VL) {
        vi m[VL], dot[FEW];
        mt_qpanel_load(m, p, h, k, VL);
        MT_UNROLL
        for (size_t s = 0; s < VL; s++, x += 8 * nr) {
            const size_t of_link = s % (unit / 8 * link), of_unit = s % (unit / 8);
            const vi even = mt_qpanel_four(p, m[s], false, lifted), odd = mt_qpanel_four(p, m[s], true, lifted);
            MT_UNROLL
            for (size_t r = 0; r < nr; r++) {
                if (of_link == 0)
                    dot[r] = vi_set1(MT_DOT_BITS - (lifted ? c->lift * t->sum[u * nr + r] : 0));
                dot[r] = vi_dot4(dot[r], even, vi_four(x + 4 * r));
                dot[r] = vi_dot4(dot[r], odd, vi_four(x + 4 * (nr + r)));
            }
            if (of_unit + 1 < unit / 8)
                continue;
            MT_UNROLL
            for (size_t r = 0; r < nr; r++) {
                const vf end = mt_qturned(dot[r], t, u * nr + r);
                dot[r] = vf_bits(end);
                if (of_link + 1 == unit / 8 * link)
                    sum[r] = vf_fma(vf_load(scales), end, sum[r]);
            }
            u++;
            if (--left > 0)
                continue;
            if (c->biases) {
                MT_UNROLL
                for (size_t r = 0; r < nr; r++)
                    bias[r] =
                        vf_fma(vf_load(biases + (g - c->g0) * MT_Q_COLUMNS), vf_set1(t->bias[g * nr + r]), bias[r]);
            }
            g++;
            left = c->each;
            scales += MT_Q_COLUMNS;
        }
    }
    MT_UNROLL
    for (size_t r = 0; r < nr; r++) {
        vf_store(a + r * MT_Q_COLUMNS + h, sum[r]);
        vf_store(b + r * MT_Q_COLUMNS + h, bias[r]);
    }
}

MT_INLINE void few_rows(float *a, float *b, const mt_qpanel *p, size_t h, size_t n, const mt_qchunk *c,
                        const mt_qtile *t, size_t nr)
{
#define KIND(unit, link, lifted) few_fixed(a, b, p, h, n, c, t, nr, unit, link, lifted)
    BY_KIND(c, KIND)
#undef KIND
}

/* Whether the chunk was multiplied so. */
static bool few(float *a, float *b, const mt_qpanel *p, size_t n, const mt_qchunk *c, const mt_qtile *t)
{
    if (t->nr == 1 && n % MT_Q_ONE == 0 && mt_qone(a, b, p, n, c, t))
        return true;
    if (t->nr > FEW || p->w->bits != 4 || n % (8 * VL) != 0)
        return false;
    for (size_t h = 0; h < MT_Q_COLUMNS; h += VL) {
        mt_qpanel_scales(p, h, c->g0, c->g1);
        switch (t->nr) {
        case 1: few_rows(a, b, p, h, n, c, t, 1); break;
        case 2: few_rows(a, b, p, h, n, c, t, 2); break;
        case 3: few_rows(a, b, p, h, n, c, t, 3); break;
        case 4: few_rows(a, b, p, h, n, c, t, 4); break;
        }
    }
    return true;
}

#else

static bool few(float *a, float *b, const mt_qpanel *p, size_t n, const mt_qchunk *c, const mt_qtile *t)
{
    (void)a, (void)b, (void)p, (void)n, (void)c, (void)t;
    return false;
}

#endif

/* y[0..count) = a + b */
static void finish(float *y, const float *a, const float *b, size_t count)
{
    for (size_t c = 0; c < count; c += VL) {
        vf v = vf_load(a + c);
        vf_put(y, c, count, b ? vf_add(v, vf_load(b + c)) : v);
    }
}

/* The largest weight times 127 times two times steps stays below 2^15. */
static size_t steps_to_flush(const mt_mat *w)
{
    const unsigned top = mt_q_wide(w) ? 15 : mt_code_top(w); /* planes of wide integers are nibbles */
    const size_t most = top > 31 ? 2 : top > 15 ? 4 : 8;
    const size_t steps = mt_unit(w->group) / 4;
    return most < steps ? most : steps;
}

/* Columns j .. of the panel, rows i0 .. at most ROWS */
static void block(float *y, size_t ldy, mt_qpanel *p, size_t j, size_t n1, const mt_rows *rows, size_t i0, sums s)
{
    const mt_mat *w = p->w;
    const size_t i1 = rows->m - i0 < ROWS ? rows->m : i0 + ROWS, count = n1 - j < MT_Q_COLUMNS ? n1 - j : MT_Q_COLUMNS;
    mt_qchunk c = {.w = p->planes, .scales = p->scales, .biases = w->biases ? p->biases : NULL};
    c.unit = mt_unit(w->group);
    c.each = w->group / c.unit;
    c.link = mt_link(w->group);
    c.planes = mt_q_wide(w) ? MT_Q_PLANES : 1;
    c.flush = steps_to_flush(w);
    c.lift = mt_code_lift(w);
    memset(s.a, 0, (i1 - i0) * MT_Q_COLUMNS * sizeof(*s.a));
    memset(s.b, 0, (i1 - i0) * MT_Q_COLUMNS * sizeof(*s.b));
    for (size_t k = 0; k < w->k; k += MT_Q_CHUNK) {
        const size_t n = w->k - k < MT_Q_CHUNK ? w->k - k : MT_Q_CHUNK;
        const mt_qtile first = mt_qtile_at(rows, i0);
        mt_qpanel_chunk(p, k);
        c.g0 = k / w->group;
        c.g1 = c.g0 + n / w->group;
        if (i1 - i0 == first.nr && few(s.a, s.b, p, n, &c, &first))
            continue;
        for (size_t h = 0; h < MT_Q_COLUMNS; h += VL)
            mt_qpanel_scales(p, h, c.g0, c.g1);
        mt_qpanel_unpack(p, n, w->k - k);
        for (size_t i = i0; i < i1; i += MT_Q_ROWS) {
            const mt_qtile t = mt_qtile_at(rows, i);
            tile(s.a + (i - i0) * MT_Q_COLUMNS, s.b + (i - i0) * MT_Q_COLUMNS, &c, &t);
        }
    }
    for (size_t i = i0; i < i1; i++)
        finish(y + i * ldy + j, s.a + (i - i0) * MT_Q_COLUMNS, w->biases ? s.b + (i - i0) * MT_Q_COLUMNS : NULL, count);
}

void MT_LEVEL(q_matmul)(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                        uint8_t *scratch)
{
    const size_t cells = MT_Q_GROUPS * MT_Q_COLUMNS;
    mt_qpanel p = {.w = w, .planes = scratch, .bytes = scratch + MT_Q_PLANES * MT_Q_PLANE};
    p.scales = (float *)(void *)(p.bytes + mt_round_up(VL * MT_Q_LDB, 64));
    p.biases = p.scales + cells;
    sums s = {.a = p.biases + cells};
    mt_qpanel_table(&p);
    s.b = s.a + ROWS * MT_Q_COLUMNS;
    for (size_t j = n0; j < n1; j += MT_Q_COLUMNS) {
        mt_qpanel_begin(&p, j, n1);
        if (rows->m <= MT_Q_ROWS)
            mt_qpanel_fetch(&p);
        for (size_t i = 0; i < rows->m; i += ROWS)
            block(y, ldy, &p, j, n1, rows, i, s);
    }
}
