/* Products in fp32 (R6 of docs/numerics.md) of rows of x with columns [n0, n1) of W. k is processed in chunks, so that
   the widened rows of W and the rows of x stay in the first-level cache; the 16 lanes of every product are kept in
   memory between chunks. */
#ifndef MT_KERNELS_X86_FPRODUCT_H
#define MT_KERNELS_X86_FPRODUCT_H

#include "kernels/portable/scalar.h"
#include "kernels/x86/tile.h"
#include "kernels/x86/widen.h"

#if defined(MT_LEVEL)

enum { MT_F_COLUMNS = 8, MT_F_CHUNK = 512, MT_F_ROWS = 48, MT_F_LDW = MT_F_CHUNK + MT_LANES };

typedef struct mt_fproduct {
    float *y;
    size_t ldy;
    const mt_mat *w;
    const float *x;
    size_t ldx;
    const uint32_t *index;
    bool padded; /* rows of x have zeros up to a multiple of MT_LANES */
    float *wide; /* [MT_F_COLUMNS][MT_F_LDW] */
    float *sums; /* [MT_F_ROWS][MT_F_COLUMNS][MT_LANES] */
} mt_fproduct;

static inline size_t mt_fproduct_scratch(void)
{
    return (MT_F_COLUMNS * MT_F_LDW + MT_F_ROWS * MT_F_COLUMNS * MT_LANES) * sizeof(float);
}

/* Widens columns j .. j+count, the last repeated to fill a tile. */
static inline void mt_fproduct_widen(const mt_fproduct *p, size_t j, size_t count, size_t k0, size_t k1)
{
    for (size_t r = 0; r < mt_round_up(count, TILE_W); r++) {
        float *row = p->wide + r * MT_F_LDW;
        mt_widen(row, p->w, j + (r < count ? r : count - 1), k0, k1);
        memset(row + k1 - k0, 0, (mt_round_up(k1, MT_LANES) - k1) * sizeof(*row));
    }
}

/* One chunk for rows i .. i+nc of x */
static inline void mt_fproduct_tile(const mt_fproduct *p, float *sums, size_t i, size_t nc, size_t count, size_t k0,
                                    size_t k1)
{
    const size_t n = p->padded ? mt_round_up(k1 - k0, MT_LANES) : (k1 - k0) / MT_LANES * MT_LANES, left = k1 - k0 - n;
    const float *x[TILE_X], *last[TILE_X];
    float tail[TILE_X][MT_LANES] = {{0}};
    for (size_t c = 0; c < nc; c++) {
        x[c] = p->x + (p->index ? p->index[i + c] : i + c) * p->ldx + k0;
        if (n < k1 - k0)
            last[c] = memcpy(tail[c], x[c] + n, left * sizeof(float));
    }
    for (size_t r = 0; r < count; r += TILE_W) {
        float *to = sums + r * MT_LANES;
        const float *w = p->wide + r * MT_F_LDW;
        mt_tile_add(to, MT_F_COLUMNS * MT_LANES, w, MT_F_LDW, x, n, nc);
        if (n < k1 - k0)
            mt_tile_add(to, MT_F_COLUMNS * MT_LANES, w + n, MT_F_LDW, last, MT_LANES, nc);
    }
}

static inline void mt_fproduct_fold(float *y, const float *sums, size_t count)
{
    for (size_t r = 0; r < count; r += TILE_W) {
        vf lanes[TILE_W][VREGS];
        float out[TILE_W];
        MT_UNROLL
        for (size_t l = 0; l < TILE_W * VREGS; l++)
            lanes[l / VREGS][l % VREGS] = vf_load(sums + r * MT_LANES + l * VL);
        _mm_storeu_ps(out, vlanes_fold_4(lanes));
        memcpy(y + r, out, (count - r < TILE_W ? count - r : TILE_W) * sizeof(*y));
    }
}

/* Rows [i0, i1) of x, at most MT_F_ROWS; columns j .. j+count, at most MT_F_COLUMNS */
static inline void mt_fproduct_block(const mt_fproduct *p, size_t i0, size_t i1, size_t j, size_t count)
{
    const size_t row = MT_F_COLUMNS * MT_LANES;
    memset(p->sums, 0, (i1 - i0) * row * sizeof(*p->sums));
    for (size_t k0 = 0; k0 < p->w->k; k0 += MT_F_CHUNK) {
        size_t k1 = p->w->k - k0 < MT_F_CHUNK ? p->w->k : k0 + MT_F_CHUNK;
        mt_fproduct_widen(p, j, count, k0, k1);
        for (size_t i = i0; i < i1; i += TILE_X)
            mt_fproduct_tile(p, p->sums + (i - i0) * row, i, i1 - i < TILE_X ? i1 - i : TILE_X, count, k0, k1);
    }
    for (size_t i = i0; i < i1; i++)
        mt_fproduct_fold(p->y + i * p->ldy + j, p->sums + (i - i0) * row, count);
}

static inline void mt_fproduct_run(mt_fproduct *p, size_t m, size_t n0, size_t n1, uint8_t *scratch)
{
    p->wide = (float *)(void *)scratch;
    p->sums = p->wide + MT_F_COLUMNS * MT_F_LDW;
    for (size_t i = 0; i < m; i += MT_F_ROWS)
        for (size_t j = n0; j < n1; j += MT_F_COLUMNS)
            mt_fproduct_block(p, i, m - i < MT_F_ROWS ? m : i + MT_F_ROWS, j,
                              n1 - j < MT_F_COLUMNS ? n1 - j : MT_F_COLUMNS);
}

#endif

#endif
