/* R3: rows of activations to int8. */
#include "kernels/levels.h"
#include "kernels/x86/codes.h"
#include "kernels/x86/qrows.h"

enum { MAX_BLOCK = 512, MIN_BLOCK = 32 };

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
    memcpy(&amax, &bits, sizeof amax);
    return amax;
}

/* q = rint(x * factor) in paired order; returns their sum. n % 16 == 0 */
static int32_t quantise(int8_t *q, const float *x, size_t n, float factor)
{
    vi sum = vi_set1(0);
    for (size_t i = 0; i < n; i += VL) {
        vi v = vf_rint(vf_mul(vf_load(x + i), vf_set1(factor)));
        sum = vi_add(sum, v);
        vi_store_s8(q + i, v);
    }
    const __m128i order = _mm_loadu_si128((const void *)mt_paired_bytes);
    for (size_t i = 0; i < n; i += 16) {
        void *at = q + i;
        _mm_storeu_si128(at, _mm_shuffle_epi8(_mm_loadu_si128(at), order));
    }
    return vi_sum_of(sum);
}

/* n elements from column k on, one block of R3 and so at least one group, for row r of the tile */
static void pack_block(const mt_qtile *t, size_t r, const float *x, size_t k, size_t n, size_t group)
{
    const float amax = max_abs(x, n), factor = 127.0f / amax, scale = amax / 127.0f;
    const bool usable = isfinite(amax) && isfinite(factor);
    int8_t q[MAX_BLOCK] = {0};
    for (size_t i = 0; i < n; i += group) {
        size_t cell = (k + i) / group * t->nr + r;
        int32_t sum = usable ? quantise(q + i, x + i, group, factor) : 0;
        t->scale[cell] = scale;
        t->bias[cell] = scale * (float)sum;
        t->sum[cell] = sum;
    }
    for (size_t i = 0; i < n; i += 4)
        memcpy(t->q + ((k + i) / 4 * t->nr + r) * 4, q + i, 4);
}

void MT_LEVEL(q_pack)(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    const size_t step = rows->group < MIN_BLOCK ? MIN_BLOCK : rows->group;
    for (size_t i = i0; i < i1; i++) {
        const mt_qtile t = mt_qtile_at(rows, i / MT_Q_ROWS * MT_Q_ROWS);
        const float *row = x + (index ? index[i] : i) * ldx;
        for (size_t k = 0; k < rows->k; k += step)
            pack_block(&t, i % MT_Q_ROWS, row + k, k, rows->k - k < step ? rows->k - k : step, rows->group);
    }
}
