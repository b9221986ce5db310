/* Integer products (R4 of docs/numerics.md) of two to eight rows with AFFINE weights of 4 bits with bf16 scales, in
   groups of 64 or 128. Four columns at a time, in assembly, because compilers put an instruction close to those whose
   results it needs. The columns' scales and biases are transposed to [group][column] first, and widened when used.

   The loop works ahead: bytes are loaded, and halves of columns combined, during the 32 elements of k before; nibbles
   are separated during the step of 8 before. Registers: v0-7 sums [pair of rows][pair of columns], from MT_DOT_START
   on; v8-15 results in the same shape; v16-17 and v18-19 first and last halves of the pairs of columns; v20-21 and
   v22-23 weights of even and odd steps; v24-27 bytes, and at the end of a link scales; v28-29 temporary, v30 x, v31 the
   constant 15. */
#include "kernels/neon/qmmla.h"

enum { SCALES = 8 }; /* bf16 of a group: four scales, four biases */

#define MUL(acc, w) "smmla v" #acc ".4s, v" #w ".16b, v30.16b\n"
#define PAIR(a, b, at, left, right) "ldr q30, [%[x], #16 * (" #at ")]\n" MUL(a, left) MUL(b, right)

/* Step s of 8 elements of k, and what is done aside */
/* clang-format off */
#define STEP_1(s, left, right, g0, g1, g2, g3)                                                                         \
    PAIR(0, 1, s, left, right) g0 g1 g2 g3
#define STEP_2(s, left, right, g0, g1, g2, g3)                                                                         \
    PAIR(0, 1, 2 * s, left, right) g0 g1 PAIR(2, 3, 2 * s + 1, left, right) g2 g3
#define STEP_3(s, left, right, g0, g1, g2, g3)                                                                         \
    PAIR(0, 1, 3 * s, left, right) g0 PAIR(2, 3, 3 * s + 1, left, right) g1                                            \
    PAIR(4, 5, 3 * s + 2, left, right) g2 g3
#define STEP_4(s, left, right, g0, g1, g2, g3)                                                                         \
    PAIR(0, 1, 4 * s, left, right) g0 PAIR(2, 3, 4 * s + 1, left, right) g1                                            \
    PAIR(4, 5, 4 * s + 2, left, right) g2 PAIR(6, 7, 4 * s + 3, left, right) g3
/* clang-format on */

#define LOW(to, from) "and v" #to ".16b, v" #from ".16b, v31.16b\n"
#define HIGH(to, from) "ushr v" #to ".16b, v" #from ".16b, #4\n"
#define FIRST(to, a, b) "zip1 v" #to ".2d, v" #a ".2d, v" #b ".2d\n"
#define LAST(to, a, b) "zip2 v" #to ".2d, v" #a ".2d, v" #b ".2d\n"
#define BYTES_0 "ldr q24, [%[w]]\n"
#define BYTES_1 "ldr q25, [%[w], %[d1]]\n"
#define BYTES_2 "ldr q26, [%[w], %[d2]]\n"
#define BYTES_3 "ldr q27, [%[w], %[d3]]\n add %[w], %[w], #16\n"

/* 32 elements of k; bytes are those of the next 32 */
/* clang-format off */
#define QUAD(pairs, s0, s1, s2, s3)                                                                                    \
    STEP_##pairs(s0, 20, 21, HIGH(22, 16), HIGH(23, 17), BYTES_0, BYTES_1)                                             \
    STEP_##pairs(s1, 22, 23, LOW(20, 18), LOW(21, 19), BYTES_2, BYTES_3)                                               \
    STEP_##pairs(s2, 20, 21, HIGH(22, 18), HIGH(23, 19), FIRST(16, 24, 25), FIRST(17, 26, 27))                         \
    STEP_##pairs(s3, 22, 23, LOW(20, 16), LOW(21, 17), LAST(18, 24, 25), LAST(19, 26, 27))
/* clang-format on */

#define CLEAR(a, b) "movi v" #a ".4s, #0\n movi v" #b ".4s, #0\n"
#define BEGIN(a, b) "ldr q" #a ", [%[start]]\n ldr q" #b ", [%[start]]\n"
#define BEGIN_1 BEGIN(0, 1)
#define BEGIN_2 BEGIN_1 BEGIN(2, 3)
#define BEGIN_3 BEGIN_2 BEGIN(4, 5)
#define BEGIN_4 BEGIN_3 BEGIN(6, 7)

/* v26 and v27 scales [0 0 1 1] [2 2 3 3] */
#define WIDEN                                      \
    "ldr d27, [%[s]]\n shll v27.4s, v27.4h, #16\n" \
    "zip1 v26.4s, v27.4s, v27.4s\n zip2 v27.4s, v27.4s, v27.4s\n"

/* A turn of the sums of a pair of rows, number i; then, at the end of a link, a = fma(ws, sum, a) */
#define TURN(i, pairs)                                                                     \
    "ldr q30, [%[turn], #16 * " #i "]\n ldr q28, [%[turn], #16 * (" #i " + " #pairs ")]\n" \
    "ldr q29, [%[turn], #16 * (" #i " + " #pairs ")]\n"
#define ON(i, pairs, d, e)                                                \
    TURN(i, pairs)                                                        \
    "fmla v28.4s, v30.4s, v" #d ".4s\n fmla v29.4s, v30.4s, v" #e ".4s\n" \
    "mov v" #d ".16b, v28.16b\n mov v" #e ".16b, v29.16b\n"
#define END(i, pairs, d, e, a, b)                                         \
    TURN(i, pairs)                                                        \
    "fmla v28.4s, v30.4s, v" #d ".4s\n fmla v29.4s, v30.4s, v" #e ".4s\n" \
    "fmla v" #a ".4s, v26.4s, v28.4s\n fmla v" #b ".4s, v27.4s, v29.4s\n"
#define ON_1(pairs) ON(0, pairs, 0, 1)
#define ON_2(pairs) ON_1(pairs) ON(1, pairs, 2, 3)
#define ON_3(pairs) ON_2(pairs) ON(2, pairs, 4, 5)
#define ON_4(pairs) ON_3(pairs) ON(3, pairs, 6, 7)
#define END_1(pairs) END(0, pairs, 0, 1, 8, 9)
#define END_2(pairs) END_1(pairs) END(1, pairs, 2, 3, 10, 11)
#define END_3(pairs) END_2(pairs) END(2, pairs, 4, 5, 12, 13)
#define END_4(pairs) END_3(pairs) END(3, pairs, 6, 7, 14, 15)

/* The next four columns are fetched into the first level of the cache and what comes 4 KB later into the second. In
   the last turn, which has nothing to load for, w goes back to the columns' start. */
/* clang-format off */
#define GROUPS(pairs)                                                                                                  \
    __asm__ volatile(                                                                                                  \
        CLEAR(8, 9) CLEAR(10, 11) CLEAR(12, 13) CLEAR(14, 15)                                                          \
        "movi v31.16b, #15\n"                                                                                          \
        BYTES_0 BYTES_1 BYTES_2 BYTES_3                                                                                \
        FIRST(16, 24, 25) FIRST(17, 26, 27) LAST(18, 24, 25) LAST(19, 26, 27) LOW(20, 16) LOW(21, 17)                  \
        "1:\n"                                                                                                         \
        "mov %[k], %[group]\n"                                                                                         \
        "2:\n"                                                                                                         \
        BEGIN_##pairs                                                                                                  \
        QUAD(pairs, 0, 1, 2, 3)                                                                                        \
        ON_##pairs(pairs)                                                                                              \
        "subs %[turns], %[turns], #1\n csel %[w], %[first], %[w], eq\n"                                                \
        "add %[turn], %[turn], #32 * " #pairs "\n"                                                                     \
        QUAD(pairs, 4, 5, 6, 7)                                                                                        \
        "prfm pldl1keep, [%[near]]\n prfm pldl1keep, [%[near], #64]\n"                                                 \
        "prfm pldl2keep, [%[near], #4096]\n prfm pldl2keep, [%[near], #4160]\n add %[near], %[near], #128\n"           \
        WIDEN END_##pairs(pairs)                                                                                       \
        "add %[x], %[x], #128 * " #pairs "\n add %[turn], %[turn], #32 * " #pairs "\n"                                 \
        "subs %[k], %[k], #64\n b.ne 2b\n"                                                                             \
        "add %[s], %[s], #16\n cbnz %[turns], 1b\n"                                                                    \
        "stp q8, q9, [%[a]]\n stp q10, q11, [%[a], #32]\n stp q12, q13, [%[a], #64]\n stp q14, q15, [%[a], #96]\n"     \
        : [w] "+&r"(at), [x] "+&r"(x), [turn] "+&r"(turn), [s] "+&r"(s), [turns] "+&r"(turns), [near] "+&r"(near),     \
          [k] "=&r"(k)                                                                                                 \
        : [a] "r"(a), [group] "r"((size_t)w->group), [first] "r"(at), [d1] "r"(w->stride), [d2] "r"(2 * w->stride),    \
          [d3] "r"(3 * w->stride), [start] "r"(mt_dot_start)                                                           \
        : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",      \
          "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",     \
          "v29", "v30", "v31")
/* clang-format on */

/* a [pair of rows][pair of columns][4] of columns j .. j + 3; scales [group][SCALES] */
static void multiply_columns(float a[2 * SINGLE][4], const mt_small *p, size_t j, const uint16_t *s)
{
    const mt_mat *w = p->w;
    const uint8_t *at = w->w + j * w->stride, *near = at + 4 * w->stride;
    const int8_t *x = p->x;
    const float *turn = p->turns;
    size_t turns = w->k / 64, k;
    switch ((p->m + 1) / 2) {
    case 1: GROUPS(1); break;
    case 2: GROUPS(2); break;
    case 3: GROUPS(3); break;
    default: GROUPS(4); break;
    }
}

/* b [row] of four columns = the sum of bias * sx over groups, in order; sx [group][rows] */
MT_INLINE void multiply_sums(float32x4_t b[2 * SINGLE], const uint16_t *s, const float *sx, size_t groups, size_t rows)
{
    MT_UNROLL
    for (size_t i = 0; i < rows; i++)
        b[i] = vdupq_n_f32(0.0f);
    for (size_t g = 0; g < groups; g++, s += SCALES, sx += rows) {
        const float32x4_t bias = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(s + 4), 16));
        MT_UNROLL
        for (size_t i = 0; i < rows; i += 2) {
            const float32x2_t v = vld1_f32(sx + i);
            b[i] = vfmaq_lane_f32(b[i], bias, v, 0);
            b[i + 1] = vfmaq_lane_f32(b[i + 1], bias, v, 1);
        }
    }
}

/* [row][group] to [group][row], an even number of rows */
static void turn_sums(float *out, const mt_small *p)
{
    const size_t rows = (p->m + 1) / 2 * 2;
    for (size_t i = 0; i < rows; i++)
        for (size_t g = 0; g < p->groups; g++)
            out[g * rows + i] = p->sx[i * p->sx_stride + g];
}

MT_INLINE uint16x8_t first_words(uint16x8_t a, uint16x8_t b)
{
    return vreinterpretq_u16_u64(vzip1q_u64(vreinterpretq_u64_u16(a), vreinterpretq_u64_u16(b)));
}

MT_INLINE uint16x8_t last_words(uint16x8_t a, uint16x8_t b)
{
    return vreinterpretq_u16_u64(vzip2q_u64(vreinterpretq_u64_u16(a), vreinterpretq_u64_u16(b)));
}

typedef struct halves {
    uint16x8_t low, high; /* groups 0 and 1, 2 and 3, of four columns each */
} halves;

/* Four groups of four columns, turned to [group][column] */
MT_INLINE halves turn_four(const uint8_t *from, size_t stride)
{
    uint16x8_t v[4];
    MT_UNROLL
    for (size_t c = 0; c < 4; c++)
        v[c] = vcombine_u16(vreinterpret_u16_u8(vld1_u8(from + c * stride)), vdup_n_u16(0));
    const uint16x8_t even = vzip1q_u16(v[0], v[2]), odd = vzip1q_u16(v[1], v[3]);
    return (halves){vzip1q_u16(even, odd), vzip2q_u16(even, odd)};
}

/* Scales and biases of columns j .. j + 3 to out[group][SCALES] */
static void turn_scales(uint16_t *out, const mt_small *p, size_t j)
{
    const size_t stride = p->w->scale_stride;
    const uint8_t *s = p->w->scales + j * stride, *t = p->w->biases + j * stride;
    size_t g = 0;
    for (; g + 4 <= p->groups; g += 4, out += 4 * SCALES) {
        const halves a = turn_four(s + 2 * g, stride), b = turn_four(t + 2 * g, stride);
        vst1q_u16(out, first_words(a.low, b.low));
        vst1q_u16(out + SCALES, last_words(a.low, b.low));
        vst1q_u16(out + 2 * SCALES, first_words(a.high, b.high));
        vst1q_u16(out + 3 * SCALES, last_words(a.high, b.high));
    }
    for (; g < p->groups; g++, out += SCALES)
        for (size_t c = 0; c < 4; c++) {
            memcpy(out + c, s + c * stride + 2 * g, sizeof(*out));
            memcpy(out + 4 + c, t + c * stride + 2 * g, sizeof(*out));
        }
}

bool mt_q_few_handles_i8mm(const mt_mat *w, size_t m)
{
    return m <= 2 * SINGLE && w->format == MT_FORMAT_AFFINE && w->bits == 4 && w->scale_type == MT_SCALE_BF16 &&
           (w->group == 64 || w->group == 128) && w->k >= w->group;
}

MT_INLINE void finish_columns(const mt_small *p, size_t j, const float a[2 * SINGLE][4], const uint16_t *s,
                              const float *sx, size_t rows)
{
    float32x4_t b[2 * SINGLE];
    multiply_sums(b, s, sx, p->groups, rows);
    MT_UNROLL
    for (size_t i = 0; i < rows; i++) {
        const float32x4_t left = vld1q_f32(a[i / 2 * 2]), right = vld1q_f32(a[i / 2 * 2 + 1]);
        if (i < p->m)
            vst1q_f32(p->y + i * p->ldy + j,
                      vaddq_f32(i % 2 == 0 ? vuzp1q_f32(left, right) : vuzp2q_f32(left, right), b[i]));
    }
}

void mt_q_few_i8mm(const mt_small *p, float *scratch)
{
    uint16_t *scales = (uint16_t *)(void *)scratch;
    float *sx = scratch + SCALES / 2 * p->groups, a[2 * SINGLE][4];
    turn_sums(sx, p);
    for (size_t j = p->n0; j < p->n0 + 4 * p->step; j += 4) {
        turn_scales(scales, p, j);
        multiply_columns(a, p, j, scales);
        switch ((p->m + 1) / 2) {
        case 1: finish_columns(p, j, a, scales, sx, 2); break;
        case 2: finish_columns(p, j, a, scales, sx, 4); break;
        case 3: finish_columns(p, j, a, scales, sx, 6); break;
        default: finish_columns(p, j, a, scales, sx, 8); break;
        }
    }
}
