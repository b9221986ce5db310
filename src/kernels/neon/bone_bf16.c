/* Products of one row with weights of 8-bit floats: these become bf16 in registers, four columns at a time, and each
   chain is the same as that of packed panels in bmatmul_bf16.c, which computes the columns where a weight is NaN or a
   scale extreme. */
#include "kernels/neon/bone.h"

#include "kernels/neon/bpack.h"

enum { PAIRS = 2, COLUMNS = 2 * PAIRS, BLOCK = 128, AHEAD = 4096 /* bytes beyond the next four columns */ };

typedef struct columns {
    const uint8_t *w[COLUMNS], *scales[COLUMNS], *ahead;
    const uint8_t *x;
} columns;

/* acc += x . w over 16 k of a pair */
MT_INLINE float32x4_t add_steps(float32x4_t acc, const uint8_t *x, mt_pair_steps s)
{
    MT_UNROLL
    for (size_t i = 0; i < 4; i++)
        acc = vbfmmlaq_f32(acc, mt_load_bf16(x + 16 * i), vreinterpretq_bf16_u8(s.v[i]));
    return acc;
}

/* acc += x . w over 16 k of every pair, not yet scaled */
MT_INLINE void sixteen(float32x4_t acc[PAIRS], const columns *at, size_t k, uint8x16_t *top)
{
    MT_UNROLL
    for (size_t p = 0; p < PAIRS; p++) {
        const uint8x16_t a = vld1q_u8(at->w[2 * p] + k), b = vld1q_u8(at->w[2 * p + 1] + k);
        acc[p] = add_steps(acc[p], at->x + 4 * k, mt_fp8_steps(a, b, top));
    }
}

MT_INLINE void fetch(const columns *at, size_t k)
{
    MT_UNROLL
    for (size_t l = 0; l < COLUMNS / 4; l++)
        __builtin_prefetch(at->ahead + k * COLUMNS + 64 * l, 0, 2);
}

/* Row 0 of the results of two pairs */
MT_INLINE float32x4_t first_row(float32x4_t a, float32x4_t b)
{
    return vcombine_f32(vget_low_f32(a), vget_low_f32(b));
}

/* The scales of block `block`, from each column's own. */
MT_INLINE float32x4_t block_scales(const columns *at, const mt_mat *w, size_t block)
{
    float32x4_t s = vdupq_n_f32(mt_scale_f32(at->scales[0], w->scale_type, block));
    if (w->scale_rows > 1)
        return s;
    s = vsetq_lane_f32(mt_scale_f32(at->scales[1], w->scale_type, block), s, 1);
    s = vsetq_lane_f32(mt_scale_f32(at->scales[2], w->scale_type, block), s, 2);
    return vsetq_lane_f32(mt_scale_f32(at->scales[3], w->scale_type, block), s, 3);
}

/* k is a multiple of 16; false where a weight is NaN */
static bool fp8(float *y, const columns *at, const mt_mat *w)
{
    float32x4_t sum = vdupq_n_f32(0.0f);
    uint8x16_t top = vdupq_n_u8(0);
    for (size_t k = 0; k < w->k; k += BLOCK) {
        float32x4_t acc[PAIRS];
        const float32x4_t scale = block_scales(at, w, k / BLOCK);
        MT_UNROLL
        for (size_t p = 0; p < PAIRS; p++)
            acc[p] = vdupq_n_f32(0.0f);
        for (size_t i = k; i < k + BLOCK && i < w->k; i += 16) {
            fetch(at, i);
            sixteen(acc, at, i, &top);
        }
        sum = vfmaq_f32(sum, first_row(acc[0], acc[1]), scale);
    }
    vst1q_f32(y, sum);
    return vmaxvq_u8(top) != 0x7f;
}

/* 2^(scale - 127) as what is added to the bits of a bf16: four of one row, four of the other. */
MT_INLINE uint16x8_t exponents(const uint8_t *a, const uint8_t *b)
{
    const uint16x8_t first = vshll_n_u8(vld1_dup_u8(a), 7), second = vshll_n_u8(vld1_dup_u8(b), 7);
    return vsubq_u16(vcombine_u16(vget_low_u16(first), vget_low_u16(second)), vdupq_n_u16(127 << 7));
}

/* 16 k of a pair, scaled; zeros stay zeros */
MT_INLINE mt_pair_steps scaled_steps(const uint8_t *a, const uint8_t *b, uint16x8_t exponent, uint16x8_t magnitude)
{
    uint8x16_t top = vdupq_n_u8(0); /* as in panels, what would be NaN counts as 480 */
    mt_pair_steps s = mt_fp8_steps(vld1q_u8(a), vld1q_u8(b), &top);
    MT_UNROLL
    for (size_t i = 0; i < 4; i++) {
        const uint16x8_t h = vreinterpretq_u16_u8(s.v[i]), nonzero = vtstq_u16(h, magnitude);
        s.v[i] = vreinterpretq_u8_u16(vaddq_u16(h, vandq_u16(exponent, nonzero)));
    }
    return s;
}

static void mxfp8(float *y, const columns *at, const mt_mat *w)
{
    float32x4_t acc[PAIRS];
    uint16x8_t magnitude = vdupq_n_u16(0x7fff);
    __asm__("" : "+w"(magnitude)); /* otherwise the compiler prefers two instructions to this register */
    MT_UNROLL
    for (size_t p = 0; p < PAIRS; p++)
        acc[p] = vdupq_n_f32(0.0f);
    for (size_t k = 0; k < w->k; k += 32) {
        fetch(at, k);
        fetch(at, k + 16);
        MT_UNROLL
        for (size_t p = 0; p < PAIRS; p++) {
            const uint8_t *a = at->w[2 * p] + k, *b = at->w[2 * p + 1] + k;
            const uint16x8_t e = exponents(at->scales[2 * p] + k / 32, at->scales[2 * p + 1] + k / 32);
            acc[p] = add_steps(acc[p], at->x + 4 * k, scaled_steps(a, b, e, magnitude));
            acc[p] = add_steps(acc[p], at->x + 4 * k + 64, scaled_steps(a + 16, b + 16, e, magnitude));
        }
    }
    vst1q_f32(y, first_row(acc[0], acc[1]));
}

/* Whether adding to exponents is exact for the scales of all columns, see mt_mxfp8_steps. */
static bool modest(const columns *at, size_t groups)
{
    uint8x16_t lows = vdupq_n_u8(127), highs = lows;
    for (size_t c = 0; c < COLUMNS; c++) {
        size_t g = 0;
        for (; g + 16 <= groups; g += 16) {
            const uint8x16_t v = vld1q_u8(at->scales[c] + g);
            lows = vminq_u8(lows, v);
            highs = vmaxq_u8(highs, v);
        }
        for (; g < groups; g++) {
            const uint8x16_t v = vld1q_dup_u8(at->scales[c] + g);
            lows = vminq_u8(lows, v);
            highs = vmaxq_u8(highs, v);
        }
    }
    const uint8_t low = vminvq_u8(lows), high = vmaxvq_u8(highs);
    return low >= 10 && high <= 246;
}

/* False where these columns should be computed from panels. */
static bool four_columns(float *y, const mt_mat *w, size_t j, const uint8_t *x)
{
    columns at = {.x = x, .ahead = w->w + (j + COLUMNS) * w->stride + AHEAD};
    for (size_t c = 0; c < COLUMNS; c++) {
        at.w[c] = w->w + (j + c) * w->stride;
        at.scales[c] = w->scales + (w->format == MT_FORMAT_FP8 ? (j + c) / w->scale_rows : j + c) * w->scale_stride;
    }
    if (w->format == MT_FORMAT_FP8)
        return (w->scale_rows == 1 || j / BLOCK == (j + COLUMNS - 1) / BLOCK) && fp8(y, &at, w);
    if (!modest(&at, w->k / 32))
        return false;
    mxfp8(y, &at, w);
    return true;
}

size_t mt_b_one_bf16(float *y, const mt_mat *w, size_t n0, size_t n1, const uint8_t *x)
{
    if (w->k % 16 != 0 || (w->format != MT_FORMAT_FP8 && w->format != MT_FORMAT_MXFP8))
        return n0;
    while (n0 + COLUMNS <= n1 && four_columns(y + n0, w, n0, x))
        n0 += COLUMNS;
    return n0;
}
