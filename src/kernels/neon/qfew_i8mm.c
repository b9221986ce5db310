/* Two to eight rows against AFFINE weights of 4 bits with bf16 scales, in groups of 64 or 128. Four columns at a time,
   written out, because compilers keep an instruction close to those that it waits for. The columns' scales and biases
   are turned to [group][column] first and widened as they are used.

   v0-7 dot products [pair of rows][pair of columns], v8-15 a in the same shape, v16-23 b [row][column], v24-29 weights
   and scales, v30 x, v31 15. */
#include "kernels/neon/qmmla.h"

enum {
    SCALES = 8,  /* bf16 of a group: four scales, four biases */
    AHEAD = 4096 /* bytes by which weights are fetched beyond the next four columns */
};

#define MUL(acc, w) "smmla v" #acc ".4s, v" #w ".16b, v30.16b\n"
#define PAIR(a, b, at, left, right) "ldr q30, [%[x], #16 * (" #at ")]\n" MUL(a, left) MUL(b, right)

/* Step s of 8 elements of k */
#define STEP_1(s, left, right, gap0, gap1) PAIR(0, 1, s, left, right) gap0 gap1
#define STEP_2(s, left, right, gap0, gap1) PAIR(0, 1, 2 * s, left, right) gap0 PAIR(2, 3, 2 * s + 1, left, right) gap1
#define STEP_3(s, left, right, gap0, gap1)                                 \
    PAIR(0, 1, 3 * s, left, right) gap0 PAIR(2, 3, 3 * s + 1, left, right) \
    gap1 PAIR(4, 5, 3 * s + 2, left, right)
#define STEP_4(s, left, right, gap0, gap1) \
    PAIR(0, 1, 4 * s, left, right)         \
    PAIR(2, 3, 4 * s + 1, left, right) gap0 PAIR(4, 5, 4 * s + 2, left, right) PAIR(6, 7, 4 * s + 3, left, right) gap1

#define LOW(to, from) "and v" #to ".16b, v" #from ".16b, v31.16b\n"
#define HIGH(v) "ushr v" #v ".16b, v" #v ".16b, #4\n"
#define HALVES(which, to, a, b) "zip" #which " v" #to ".2d, v" #a ".2d, v" #b ".2d\n"

/* 32 elements of k from byte 16 * q on; each step's weights come apart during the step before */
/* clang-format off */
#define QUAD(pairs, q, s0, s1, s2, s3)                                                                                 \
    "ldr q24, [%[w0], #16 * " #q "]\n ldr q25, [%[w1], #16 * " #q "]\n"                                                \
    "ldr q26, [%[w2], #16 * " #q "]\n ldr q27, [%[w3], #16 * " #q "]\n"                                                \
    HALVES(1, 28, 24, 25) HALVES(1, 29, 26, 27) HALVES(2, 24, 24, 25) HALVES(2, 26, 26, 27) LOW(25, 28) LOW(27, 29)    \
    STEP_##pairs(s0, 25, 27, HIGH(28), HIGH(29))                                                                       \
    STEP_##pairs(s1, 28, 29, LOW(25, 24), LOW(27, 26))                                                                 \
    STEP_##pairs(s2, 25, 27, HIGH(24), HIGH(26))                                                                       \
    STEP_##pairs(s3, 24, 26, "", "")
/* clang-format on */

#define CLEAR(a, b) "movi v" #a ".4s, #0\n movi v" #b ".4s, #0\n"
#define CLEAR_1 CLEAR(0, 1)
#define CLEAR_2 CLEAR_1 CLEAR(2, 3)
#define CLEAR_3 CLEAR_2 CLEAR(4, 5)
#define CLEAR_4 CLEAR_3 CLEAR(6, 7)

/* v27 and v28 scales [0 0 1 1] [2 2 3 3], v29 biases */
#define WIDEN                                                                  \
    "ldr q27, [%[s]]\n shll2 v29.4s, v27.8h, #16\n shll v28.4s, v27.4h, #16\n" \
    "zip1 v27.4s, v28.4s, v28.4s\n zip2 v28.4s, v28.4s, v28.4s\n"

/* a = fma(ws * xs, dot, a) */
#define FIX(i, d, e, a, b)                                                                           \
    "ldr q30, [%[xs], #16 * " #i "]\n scvtf v" #d ".4s, v" #d ".4s\n scvtf v" #e ".4s, v" #e ".4s\n" \
    "fmul v24.4s, v27.4s, v30.4s\n fmul v30.4s, v28.4s, v30.4s\n"                                    \
    "fmla v" #a ".4s, v24.4s, v" #d ".4s\n fmla v" #b ".4s, v30.4s, v" #e ".4s\n"
#define FIX_1 FIX(0, 0, 1, 8, 9)
#define FIX_2 FIX_1 FIX(1, 2, 3, 10, 11)
#define FIX_3 FIX_2 FIX(2, 4, 5, 12, 13)
#define FIX_4 FIX_3 FIX(3, 6, 7, 14, 15)

/* b = fma(wb, sx, b) */
#define BIAS(row, v, lane) "fmla v" #row ".4s, v29.4s, v" #v ".s[" #lane "]\n"
#define BIAS_2 "ldr q26, [%[sx]]\n" BIAS(16, 26, 0) BIAS(17, 26, 1) BIAS(18, 26, 2) BIAS(19, 26, 3)
#define BIAS_3 "ldr d25, [%[sx], #16]\n" BIAS_2 BIAS(20, 25, 0) BIAS(21, 25, 1)
#define BIAS_4 "ldr q25, [%[sx], #16]\n" BIAS_2 BIAS(20, 25, 0) BIAS(21, 25, 1) BIAS(22, 25, 2) BIAS(23, 25, 3)

/* clang-format off */
#define GROUPS(pairs)                                                                                                  \
    __asm__ volatile(                                                                                                  \
        CLEAR(8, 9) CLEAR(10, 11) CLEAR(12, 13) CLEAR(14, 15) CLEAR(16, 17) CLEAR(18, 19) CLEAR(20, 21) CLEAR(22, 23)  \
        "movi v31.16b, #15\n"                                                                                          \
        "1:\n"                                                                                                         \
        CLEAR_##pairs                                                                                                  \
        "mov %[k], %[group]\n"                                                                                         \
        "2:\n"                                                                                                         \
        QUAD(pairs, 0, 0, 1, 2, 3) QUAD(pairs, 1, 4, 5, 6, 7)                                                          \
        "prfm pldl2keep, [%[ahead]]\n prfm pldl2keep, [%[ahead], #64]\n add %[ahead], %[ahead], #128\n"                \
        "add %[w0], %[w0], #32\n add %[w1], %[w1], #32\n add %[w2], %[w2], #32\n add %[w3], %[w3], #32\n"              \
        "add %[x], %[x], #128 * " #pairs "\n subs %[k], %[k], #64\n b.ne 2b\n"                                         \
        WIDEN                                                                                                          \
        FIX_##pairs BIAS_##pairs                                                                                       \
        "add %[s], %[s], #16\n add %[xs], %[xs], #16 * " #pairs "\n add %[sx], %[sx], #8 * " #pairs "\n"               \
        "subs %[groups], %[groups], #1\n b.ne 1b\n"                                                                    \
        "stp q8, q9, [%[ab]]\n stp q10, q11, [%[ab], #32]\n stp q12, q13, [%[ab], #64]\n stp q14, q15, [%[ab], #96]\n" \
        "stp q16, q17, [%[ab], #128]\n stp q18, q19, [%[ab], #160]\n stp q20, q21, [%[ab], #192]\n"                    \
        "stp q22, q23, [%[ab], #224]\n"                                                                                \
        : [w0] "+&r"(w0), [w1] "+&r"(w1), [w2] "+&r"(w2), [w3] "+&r"(w3), [x] "+&r"(x), [xs] "+&r"(xs),                \
          [sx] "+&r"(sx),                                                                                              \
          [s] "+&r"(s), [groups] "+&r"(groups), [ahead] "+&r"(ahead), [k] "=&r"(k)                                     \
        : [ab] "r"(ab), [group] "r"((size_t)w->group)                                                                  \
        : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",      \
          "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",     \
          "v29", "v30", "v31")
/* clang-format on */

/* One or two pairs leave registers for the loop to run ahead: bytes are loaded two quads before their products, halves
   meet one quad before and nibbles come apart two steps before. v0-3 dot products, v4-7 a, v8-11 b, v12-15 bytes,
   v16-17 and v18-19 weights of even and odd steps, v20-23 first and last halves of pairs of columns, v24-30 aside. */
#define BYTES                                                             \
    "ldr q12, [%[w]]\n ldr q13, [%[w], %[d1]]\n ldr q14, [%[w], %[d2]]\n" \
    "ldr q15, [%[w], %[d3]]\n add %[w], %[w], #16\n"
#define FIRST_HALVES HALVES(1, 20, 12, 13) HALVES(1, 21, 14, 15)
#define LAST_HALVES HALVES(2, 22, 12, 13) HALVES(2, 23, 14, 15)
#define HIGH_OF(to, from) "ushr v" #to ".16b, v" #from ".16b, #4\n"

#define QUAD_AHEAD(pairs, s0, s1, s2, s3)                                               \
    STEP_##pairs(s0, 16, 17, "", LOW(16, 22) LOW(17, 23))                               \
        STEP_##pairs(s1, 18, 19, "", HIGH_OF(18, 22) HIGH_OF(19, 23) LAST_HALVES BYTES) \
            STEP_##pairs(s2, 16, 17, "", LOW(16, 20) LOW(17, 21))                       \
                STEP_##pairs(s3, 18, 19, "", HIGH_OF(18, 20) HIGH_OF(19, 21) FIRST_HALVES)

#define FIX_AHEAD_1 FIX(0, 0, 1, 4, 5)
#define FIX_AHEAD_2 FIX_AHEAD_1 FIX(1, 2, 3, 6, 7)
#define BIAS_AHEAD_1 "ldr d26, [%[sx]]\n" BIAS(8, 26, 0) BIAS(9, 26, 1)
#define BIAS_AHEAD_2 "ldr q26, [%[sx]]\n" BIAS(8, 26, 0) BIAS(9, 26, 1) BIAS(10, 26, 2) BIAS(11, 26, 3)

/* In the last turn, which has nothing to load for, w goes back to the column's start */
/* clang-format off */
#define GROUPS_AHEAD(pairs)                                                                                            \
    __asm__ volatile(                                                                                                  \
        CLEAR(4, 5) CLEAR(6, 7) CLEAR(8, 9) CLEAR(10, 11)                                                              \
        "movi v31.16b, #15\n"                                                                                          \
        BYTES FIRST_HALVES LAST_HALVES LOW(16, 20) LOW(17, 21) HIGH_OF(18, 20) HIGH_OF(19, 21) BYTES FIRST_HALVES      \
        "1:\n"                                                                                                         \
        CLEAR_##pairs                                                                                                  \
        "mov %[k], %[group]\n"                                                                                         \
        "2:\n"                                                                                                         \
        "subs %[turns], %[turns], #1\n csel %[w], %[start], %[w], eq\n"                                               \
        QUAD_AHEAD(pairs, 0, 1, 2, 3) QUAD_AHEAD(pairs, 4, 5, 6, 7)                                                    \
        "prfm pldl2keep, [%[ahead]]\n prfm pldl2keep, [%[ahead], #64]\n add %[ahead], %[ahead], #128\n"                \
        "add %[x], %[x], #128 * " #pairs "\n subs %[k], %[k], #64\n b.ne 2b\n"                                         \
        WIDEN                                                                                                          \
        FIX_AHEAD_##pairs BIAS_AHEAD_##pairs                                                                           \
        "add %[s], %[s], #16\n add %[xs], %[xs], #16 * " #pairs "\n add %[sx], %[sx], #8 * " #pairs "\n"               \
        "cbnz %[turns], 1b\n"                                                                                          \
        "stp q4, q5, [%[ab]]\n stp q6, q7, [%[ab], #32]\n stp q8, q9, [%[ab], #128]\n stp q10, q11, [%[ab], #160]\n"   \
        : [w] "+&r"(w0), [x] "+&r"(x), [xs] "+&r"(xs), [sx] "+&r"(sx), [s] "+&r"(s), [turns] "+&r"(turns),             \
          [ahead] "+&r"(ahead), [k] "=&r"(k)                                                                           \
        : [ab] "r"(ab), [group] "r"((size_t)w->group), [start] "r"(w0), [d1] "r"(w->stride), [d2] "r"(2 * w->stride),  \
          [d3] "r"(3 * w->stride)                                                                                      \
        : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",      \
          "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v26", "v27", "v28", "v29",     \
          "v30", "v31")
/* clang-format on */

/* ab = a [pair of rows][pair of columns][4], b [row][4] of columns j .. j + 3; scales and sx [group][..] */
static void four_columns(float ab[2][2 * SINGLE][4], const mt_small *p, size_t j, const uint16_t *s, const float *sx)
{
    const mt_mat *w = p->w;
    const uint8_t *w0 = w->w + j * w->stride, *w1 = w0 + w->stride, *w2 = w1 + w->stride, *w3 = w2 + w->stride;
    const uint8_t *ahead = w3 + w->stride + AHEAD;
    const int8_t *x = p->x;
    const float *xs = p->xs;
    size_t groups = p->groups, turns = w->k / 64, k;
    switch ((p->m + 1) / 2) {
    case 1: GROUPS_AHEAD(1); break;
    case 2: GROUPS_AHEAD(2); break;
    case 3: GROUPS(3); break;
    default: GROUPS(4); break;
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
            memcpy(out + c, s + c * stride + 2 * g, sizeof *out);
            memcpy(out + 4 + c, t + c * stride + 2 * g, sizeof *out);
        }
}

bool mt_q_few_handles_i8mm(const mt_mat *w, size_t m)
{
    return m <= 2 * SINGLE && w->format == MT_FORMAT_AFFINE && w->bits == 4 && w->scale_type == MT_SCALE_BF16 &&
           (w->group == 64 || w->group == 128) && w->k >= w->group;
}

void mt_q_few_i8mm(const mt_small *p, float *scratch)
{
    uint16_t *scales = (uint16_t *)(void *)scratch;
    float *sx = scratch + SCALES / 2 * p->groups, ab[2][2 * SINGLE][4];
    turn_sums(sx, p);
    for (size_t j = p->n0; j < p->n0 + 4 * p->step; j += 4) {
        turn_scales(scales, p, j);
        four_columns(ab, p, j, scales, sx);
        for (size_t i = 0; i < p->m; i++) {
            const float32x4_t left = vld1q_f32(ab[0][i / 2 * 2]), right = vld1q_f32(ab[0][i / 2 * 2 + 1]);
            const float32x4_t a = i % 2 == 0 ? vuzp1q_f32(left, right) : vuzp2q_f32(left, right);
            vst1q_f32(p->y + i * p->ldy + j, vaddq_f32(a, vld1q_f32(ab[1][i])));
        }
    }
}
