/* Quantises rows of activations to int8 (R3 of docs/numerics.md). */
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"
#include "kernels/x86/codes.h"
#include "kernels/x86/qrows.h"

size_t MT_LEVEL(q_rows_bytes)(size_t m, size_t k, size_t group)
{
    return m * mt_qrow_bytes(k, group);
}

/* NaN is above all: magnitudes are compared as integers. */
static float max_abs(const float *x, size_t n)
{
    vi m = vi_set1(0);
    for (size_t i = 0; i < n; i += VL)
        m = vi_max(m, vi_and(vf_bits(vf_load(x + i)), vi_set1(0x7fffffff)));
    int32_t bits = vi_max_of(m);
    float amax;
    memcpy(&amax, &bits, sizeof(amax));
    return amax;
}

/* q = rint(x * factor), zeros where the factor is 0; n % 16 == 0. Returns the block's scale. */
static float quantise(int8_t *q, const float *x, size_t n, float least)
{
    const mt_block b = mt_block_of(max_abs(x, n), least);
    vlanes xq = vlanes_zero(), qq = vlanes_zero();
    for (size_t i = 0; i < n && b.factor > 0.0f; i += MT_LANES) {
        MT_UNROLL
        for (size_t h = 0; h < VREGS; h++) {
            const vf here = vf_load(x + i + h * VL);
            const vi v = vf_rint(vf_mul(here, vf_set1(b.factor)));
            const vf y = vi_to_f32(v);
            vi_store_s8(q + i + h * VL, v);
            xq.v[h] = vf_fma(here, y, xq.v[h]);
            qq.v[h] = vf_fma(y, y, qq.v[h]);
        }
    }
    return mt_block_fit(b, vlanes_fold(xq), vlanes_fold(qq));
}

/* Brings n elements to paired order and returns their sum: bytes of which 128 was added are summed up. */
static int32_t pair_up(int8_t *q, size_t n)
{
    const __m128i order = _mm_loadu_si128((const void *)mt_paired_bytes), lift = _mm_set1_epi8((char)128);
    __m128i sum = _mm_setzero_si128();
    for (size_t i = 0; i < n; i += 16) {
        void *at = q + i;
        const __m128i v = _mm_shuffle_epi8(_mm_loadu_si128(at), order);
        _mm_storeu_si128(at, v);
        sum = _mm_add_epi32(sum, _mm_sad_epu8(_mm_xor_si128(v, lift), _mm_setzero_si128()));
    }
    return _mm_cvtsi128_si32(sum) + _mm_extract_epi32(sum, 2) - 128 * (int32_t)n;
}

static void put_turn(const mt_qtile *t, size_t cell, mt_turn turn)
{
    t->mul[cell] = turn.mul;
    t->add[cell] = turn.add;
}

/* The block of n elements from column k on, for row r of the tile; returns its scale */
static float pack_block(const mt_qtile *t, size_t r, const float *x, size_t k, size_t n, const mt_rows *rows,
                        float before)
{
    const size_t group = rows->group, unit = mt_unit(group);
    const bool second = k / MT_BLOCK % mt_link(group) != 0;
    int8_t q[MT_BLOCK] = {0};
    const float xs = quantise(q, x, n, second ? mt_block_least(before, rows->wide) : 0.0f);
    for (size_t i = 0; i < n; i += unit) {
        const size_t cell = (k + i) / unit * t->nr + r, at = (k + i) / group * t->nr + r;
        const int32_t sum = pair_up(q + i, unit);
        put_turn(t, cell, mt_turn_end(xs));
        if (second)
            put_turn(t, cell - t->nr, mt_turn_on(before, xs));
        t->sum[cell] = sum;
        t->bias[at] = fmaf(xs, (float)sum, (k + i) % group == 0 ? 0.0f : t->bias[at]);
    }
    for (size_t i = 0; i < n; i += 4)
        memcpy(t->q + ((k + i) / 4 * t->nr + r) * 4, q + i, 4);
    return xs;
}

void MT_LEVEL(q_pack)(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    for (size_t i = i0; i < i1; i++) {
        const mt_qtile t = mt_qtile_at(rows, i / MT_Q_ROWS * MT_Q_ROWS);
        const float *row = x + (index ? index[i] : i) * ldx;
        float before = 0.0f;
        for (size_t k = 0; k < rows->k; k += MT_BLOCK) {
            const size_t n = rows->k - k < MT_BLOCK ? rows->k - k : MT_BLOCK;
            before = pack_block(&t, i % MT_Q_ROWS, row + k, k, n, rows, before);
        }
    }
}
