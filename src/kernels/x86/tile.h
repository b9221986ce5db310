/* Products in fp32 (R6 of docs/numerics.md) of four rows of W with up to TILE_X rows of x, in registers. */
#ifndef MT_KERNELS_X86_TILE_H
#define MT_KERNELS_X86_TILE_H

#include "kernels/x86/simd.h"

#if defined(MT_LEVEL)

enum { TILE_W = 4, TILE_X = MT_TILE_ROWS };

/* One register of the 16 lanes: adds the products of w[r] and x[c] to acc[c][r]; n % 16 == 0; `at`: its first lane. */
MT_INLINE void mt_tile_run(vf acc[TILE_X][TILE_W], const float *w, size_t ldw, const float *const *x, size_t at,
                           size_t n, size_t nc)
{
    for (size_t i = at; i < n; i += MT_LANES) {
        vf a[TILE_W];
        MT_UNROLL
        for (size_t r = 0; r < TILE_W; r++)
            a[r] = vf_load(w + r * ldw + i);
        MT_UNROLL
        for (size_t c = 0; c < nc; c++) {
            vf b = vf_load(x[c] + i);
            MT_UNROLL
            for (size_t r = 0; r < TILE_W; r++)
                acc[c][r] = vf_fma(a[r], b, acc[c][r]);
        }
    }
}

/* In the two functions that end in _fixed, nc is a constant in each place that calls them, so that all loops over rows
   unroll and acc stays in registers. What they do is said at mt_tile_add and mt_tile_dot. */
MT_INLINE void mt_tile_add_fixed(float *sums, size_t lds, const float *w, size_t ldw, const float *const *x, size_t n,
                                 size_t nc)
{
    MT_UNROLL
    for (size_t h = 0; h < VREGS; h++) {
        vf acc[TILE_X][TILE_W];
        MT_UNROLL
        for (size_t i = 0; i < nc * TILE_W; i++)
            acc[i / TILE_W][i % TILE_W] = vf_load(sums + i / TILE_W * lds + i % TILE_W * MT_LANES + h * VL);
        mt_tile_run(acc, w, ldw, x, h * VL, n, nc);
        MT_UNROLL
        for (size_t i = 0; i < nc * TILE_W; i++)
            vf_store(sums + i / TILE_W * lds + i % TILE_W * MT_LANES + h * VL, acc[i / TILE_W][i % TILE_W]);
    }
}

MT_INLINE void mt_tile_dot_fixed(float (*out)[TILE_W], const float *w, size_t ldw, const float *const *x, size_t n,
                                 size_t nc)
{
    vf lanes[TILE_X][TILE_W][VREGS];
    MT_UNROLL
    for (size_t h = 0; h < VREGS; h++) {
        vf acc[TILE_X][TILE_W];
        MT_UNROLL
        for (size_t i = 0; i < nc * TILE_W; i++)
            acc[i / TILE_W][i % TILE_W] = vf_set1(0.0f);
        mt_tile_run(acc, w, ldw, x, h * VL, n, nc);
        MT_UNROLL
        for (size_t i = 0; i < nc * TILE_W; i++)
            lanes[i / TILE_W][i % TILE_W][h] = acc[i / TILE_W][i % TILE_W];
    }
    MT_UNROLL
    for (size_t c = 0; c < nc; c++)
        _mm_storeu_ps(out[c], vlanes_fold_4(lanes[c]));
}

/* Adds the products of four rows of W (ldw numbers apart) and nc rows of x, 1 to TILE_X, to sums, lane by lane: the 16
   lanes of row c of x and row r of W are at sums + c * lds + r * 16. n, the length of the rows, is a multiple of 16. */
static inline void mt_tile_add(float *sums, size_t lds, const float *w, size_t ldw, const float *const *x, size_t n,
                               size_t nc)
{
#define CASE(count) \
    case count: mt_tile_add_fixed(sums, lds, w, ldw, x, n, count); break;
    switch (nc) {
        MT_TILE_EACH(CASE)
    }
#undef CASE
}

/* out[c][r] = w[r] . x[c]: as mt_tile_add from sums of 0, and then the 16 lanes of each are folded to one number. */
static inline void mt_tile_dot(float (*out)[TILE_W], const float *w, size_t ldw, const float *const *x, size_t n,
                               size_t nc)
{
#define CASE(count) \
    case count: mt_tile_dot_fixed(out, w, ldw, x, n, count); break;
    switch (nc) {
        MT_TILE_EACH(CASE)
    }
#undef CASE
}

#endif

#endif
