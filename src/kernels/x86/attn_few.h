/* Attention (R8 of docs/numerics.md) of at most TILE_X rows, as in answers: every key and value is used for one tile of
   rows, so they are widened in registers on their way from the pages, and nothing is copied. */
#ifndef MT_KERNELS_X86_ATTN_FEW_H
#define MT_KERNELS_X86_ATTN_FEW_H

#include "kernels/attn.h"
#include "kernels/x86/attn_fold.h"
#include "kernels/x86/math.h"
#include "kernels/x86/tile.h"

#if defined(MT_LEVEL)

enum { FEW_WIDE = 8, FEW_LESS = 4, FEW_LEAST = VREGS }; /* registers of a row of V processed at once */
enum { FEW_AHEAD = MT_LANES };                          /* positions between a key and the one fetched meanwhile */

/* VL elements of a page */
MT_INLINE vf mt_kv_load(const uint8_t *x, bool bf16)
{
    return bf16 ? vf_from_bits(vi_sll(vi_load_u16(x), 16)) : vf_load(x);
}

static inline void mt_few_fetch(const uint8_t *p, size_t bytes, bool near)
{
    for (size_t i = 0; i < bytes; i += 64) {
        if (near)
            _mm_prefetch((const char *)(p + i), _MM_HINT_T0);
        else
            _mm_prefetch((const char *)(p + i), _MM_HINT_T1);
    }
}

/* p[c][0..TILE_W) = products of nr queries with TILE_W keys */
MT_INLINE void mt_few_dot(float *p, const float *q, const uint8_t *k, size_t stride, size_t nr, bool bf16)
{
    const size_t element = bf16 ? 2 : 4;
    vf lanes[TILE_X][TILE_W][VREGS];
    MT_UNROLL
    for (size_t h = 0; h < VREGS; h++) {
        vf acc[TILE_X][TILE_W];
        MT_UNROLL
        for (size_t i = 0; i < nr * TILE_W; i++)
            acc[i / TILE_W][i % TILE_W] = vf_set1(0.0f);
        for (size_t i = h * VL; i < stride; i += MT_LANES) {
            vf x[TILE_W];
            MT_UNROLL
            for (size_t r = 0; r < TILE_W; r++)
                x[r] = mt_kv_load(k + (r * stride + i) * element, bf16);
            MT_UNROLL
            for (size_t c = 0; c < nr; c++) {
                const vf y = vf_load(q + c * stride + i);
                MT_UNROLL
                for (size_t r = 0; r < TILE_W; r++)
                    acc[c][r] = vf_fma(x[r], y, acc[c][r]);
            }
        }
        MT_UNROLL
        for (size_t i = 0; i < nr * TILE_W; i++)
            lanes[i / TILE_W][i % TILE_W][h] = acc[i / TILE_W][i % TILE_W];
    }
    MT_UNROLL
    for (size_t c = 0; c < nr; c++)
        _mm_storeu_ps(p + c * MT_SEGMENT, vlanes_fold_4(lanes[c]));
}

/* Raw products of nr rows with the positions of u; values are fetched into the second-level cache meanwhile. */
MT_INLINE void mt_few_products(float *p, const float *q, const mt_attn *a, size_t seg, mt_attn_range u, size_t nr,
                               bool bf16)
{
    const size_t stride = a->head_stride, element = bf16 ? 2 : 4, tile = TILE_W * stride * element;
    for (size_t t = u.begin / MT_LANES * MT_LANES; t < u.end; t += MT_LANES) {
        const size_t ahead = t + FEW_AHEAD < u.end ? t + FEW_AHEAD : t;
        const uint8_t *k = mt_attn_at(a, a->k_offset, seg, t, element),
                      *v = mt_attn_at(a, a->v_offset, seg, t, element),
                      *next = mt_attn_at(a, a->k_offset, seg, ahead, element);
        for (size_t i = 0; i < MT_LANES / TILE_W; i++) {
            mt_few_fetch(next + i * tile, tile, true);
            mt_few_fetch(v + i * tile, tile, false);
            mt_few_dot(p + t + i * TILE_W, q, k + i * tile, stride, nr, bf16);
        }
    }
}

/* o[r][0..nd) = sum over positions before `end` of p v by R6; block b of V is at v[b]. */
MT_INLINE void mt_few_weigh_tile(float *o, const float *p, const uint8_t *const *v, size_t offset, size_t stride,
                                 mt_attn_range blocks, size_t end, size_t nr, size_t nd, bool bf16)
{
    const size_t element = bf16 ? 2 : 4;
    vf acc[TILE_X * FEW_WIDE], stack[MT_FOLDS][TILE_X * FEW_WIDE];
    for (size_t n = 0; n < MT_LANES; n++) {
        const size_t l = mt_fold_order[n], last = (end + MT_LANES - 1 - l) / MT_LANES;
        MT_UNROLL
        for (size_t i = 0; i < nr * nd; i++)
            acc[i] = vf_set1(0.0f);
        for (size_t b = blocks.begin; b < blocks.end && b < last; b++) {
            const uint8_t *x = v[b] + (l * stride + offset) * element;
            vf weight[TILE_X];
            MT_UNROLL
            for (size_t r = 0; r < nr; r++)
                weight[r] = vf_set1(p[r * MT_SEGMENT + b * MT_LANES + l]);
            MT_UNROLL
            for (size_t d = 0; d < nd; d++) {
                const vf y = mt_kv_load(x + d * VL * element, bf16);
                MT_UNROLL
                for (size_t r = 0; r < nr; r++)
                    acc[r * nd + d] = vf_fma(weight[r], y, acc[r * nd + d]);
            }
        }
        mt_fold_lane(acc, &stack[0][0], TILE_X * FEW_WIDE, n, nr * nd);
    }
    MT_UNROLL
    for (size_t i = 0; i < nr * nd; i++)
        vf_store(o + i / nd * stride + offset + i % nd * VL, vf_add(acc[i], vf_set1(0.0f)));
}

MT_INLINE void mt_few_weigh_fixed(float *o, const float *p, const uint8_t *const *v, size_t stride,
                                  mt_attn_range blocks, size_t end, size_t nr, bool bf16)
{
    const size_t wide = nr * FEW_WIDE <= TILE_X * TILE_W ? FEW_WIDE : FEW_LESS;
    size_t d = 0;
    for (; d + wide * VL <= stride; d += wide * VL)
        mt_few_weigh_tile(o, p, v, d, stride, blocks, end, nr, wide, bf16);
    for (; d < stride; d += FEW_LEAST * VL)
        mt_few_weigh_tile(o, p, v, d, stride, blocks, end, nr, FEW_LEAST, bf16);
}

/* Rows from o on that see the same blocks */
MT_INLINE void mt_few_weigh(float *o, const float *p, const uint8_t *const *v, size_t stride, mt_attn_range blocks,
                            size_t end, size_t nr, bool bf16)
{
#define CASE(count) \
    case count: mt_few_weigh_fixed(o, p, v, stride, blocks, end, count, bf16); break;
    switch (nr) {
        MT_TILE_EACH(CASE)
    }
#undef CASE
}

#endif

#endif
