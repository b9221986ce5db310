/* Tiles of the SMMLA matmul: 2 rows of W times 2 rows of x, 8 elements of k a time; a 2 x 2 result lies as
   [w0x0 w0x1 w1x0 w1x1]. For *_i8mm.c only. */
#ifndef MT_KERNELS_NEON_QMMLA_H
#define MT_KERNELS_NEON_QMMLA_H

#include "kernels/neon/qload.h"

enum {
    TILE = 3,   /* pairs of rows */
    SINGLE = 4, /* pairs that still make one tile */
    PANEL = 4   /* pairs of columns */
};

/* Two rows of W: 32 elements of k in four steps of 8, as the packed rows have them */
typedef struct steps {
    int8x16_t v[4];
} steps;

MT_INLINE int8x16_t low_halves(int8x16_t a, int8x16_t b)
{
    return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

MT_INLINE int8x16_t high_halves(int8x16_t a, int8x16_t b)
{
    return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

MT_INLINE steps interleave(mt_paired a, mt_paired b)
{
    return (steps){
        {low_halves(a.even, b.even), low_halves(a.odd, b.odd), high_halves(a.even, b.even), high_halves(a.odd, b.odd)}};
}

MT_INLINE steps load_steps(const uint8_t *p0, const uint8_t *p1, mt_code code, const mt_coder *c)
{
    if (code == MT_CODE_8) {
        int8x16_t a0 = vreinterpretq_s8_u8(vld1q_u8(p0)), a1 = vreinterpretq_s8_u8(vld1q_u8(p0 + 16));
        int8x16_t b0 = vreinterpretq_s8_u8(vld1q_u8(p1)), b1 = vreinterpretq_s8_u8(vld1q_u8(p1 + 16));
        return (steps){{vuzp1q_s8(a0, b0), vuzp2q_s8(a0, b0), vuzp1q_s8(a1, b1), vuzp2q_s8(a1, b1)}};
    }
    if (code == MT_CODE_4 || code == MT_CODE_E2M1) {
        int8x16_t a = vreinterpretq_s8_u8(vld1q_u8(p0)), b = vreinterpretq_s8_u8(vld1q_u8(p1));
        mt_paired low = mt_paired_nibbles(vreinterpretq_u8_s8(low_halves(a, b)), code, c);
        mt_paired high = mt_paired_nibbles(vreinterpretq_u8_s8(high_halves(a, b)), code, c);
        return (steps){{low.even, low.odd, high.even, high.odd}};
    }
    return interleave(mt_paired_load(p0, code, c), mt_paired_load(p1, code, c));
}

/* Keeps loads near their use where there is no register to spare. */
#define MT_FENCE() __asm__ volatile("" ::: "memory")

/* 8-bit weights are unsigned */
MT_INLINE int32x4_t multiply_add(int32x4_t d, int8x16_t w, int8x16_t x, bool eight)
{
    return eight ? vusmmlaq_s32(d, vreinterpretq_u8_s8(w), x) : vmmlaq_s32(d, w, x);
}

/* What a tile of rows and some pairs of columns share: groups of k */
typedef struct operands {
    const int8_t *x, *w;
    const float *xs, *ws; /* [group][pair][4] */
    size_t groups, group;
} operands;

/* a = fma(ws * xs, dot, a); columns: pairs of them in ws */
MT_INLINE float32x4_t fix(float32x4_t a, const float *ws, const float *xs, int32x4_t dot)
{
    return vfmaq_f32(a, vmulq_f32(vld1q_f32(ws), vld1q_f32(xs)), vcvtq_f32_s32(dot));
}

/* a[pair of rows][pair of columns] += W . x over o->groups; `rows` pairs out of `pairs` in the tile */
MT_INLINE void multiply(float32x4_t a[TILE][PANEL], const operands *o, int rows, int pairs, bool eight)
{
    const int8_t *x = o->x, *w = o->w;
    const float *xs = o->xs, *ws = o->ws;
    const size_t group = o->group;
    for (size_t g = o->groups; g > 0; g--) {
        int32x4_t d[TILE][PANEL];
        MT_UNROLL
        for (int i = 0; i < rows; i++)
            MT_UNROLL
        for (int j = 0; j < PANEL; j++)
            d[i][j] = mt_zero();
        for (size_t k = 0; k < group; k += 16) {
            MT_UNROLL
            for (int s = 0; s < 2; s++, x += pairs * 16, w += PANEL * 16) {
                int8x16_t v[TILE];
                MT_UNROLL
                for (int i = 0; i < rows; i++)
                    v[i] = vld1q_s8(x + 16 * i);
                MT_UNROLL
                for (int j = 0; j < PANEL; j++) {
                    int8x16_t u = vld1q_s8(w + 16 * j);
                    MT_UNROLL
                    for (int i = 0; i < rows; i++)
                        d[i][j] = multiply_add(d[i][j], u, v[i], eight);
                }
                MT_FENCE();
            }
        }
        MT_UNROLL
        for (int j = 0; j < PANEL; j++) {
            MT_UNROLL
            for (int i = 0; i < rows; i++)
                a[i][j] = fix(a[i][j], ws + 4 * j, xs + 4 * i, d[i][j]);
            MT_FENCE();
        }
        xs += pairs * 4;
        ws += PANEL * 4;
    }
}

/* The full tile, TILE pairs of rows against PANEL pairs of columns, written out: it needs all 32 registers, and
   compilers spill, copy zeros and reorder where nothing is to spare. v0-11 dot products, v12-23 results, v24-26 x,
   v27-30 w, v31 MT_DOT_START.

   A dot product starts from the bits of MT_DOT_START, whose unit in the last place is one: the sum, taken as a float
   and less MT_DOT_START, is the dot product as a float, exactly, since |dot| <= 255 * 127 * 128 < 2^22. One subtraction
   on any of four pipes takes the place of a conversion that keeps two of them busy, and a load that of setting zero. */
#define MT_DOT_START 0x1.8p23f
#define STEP(mul, x, w)                                                                            \
    "ldp q24, q25, [%[x], #" #x "]\n"                                                              \
    "ldr q26, [%[x], #" #x " + 32]\n"                                                              \
    "ldp q27, q28, [%[w], #" #w "]\n"                                                              \
    "ldp q29, q30, [%[w], #" #w " + 32]\n" STEP_PAIR(mul, 0, 4, 8, 27) STEP_PAIR(mul, 1, 5, 9, 28) \
        STEP_PAIR(mul, 2, 6, 10, 29) STEP_PAIR(mul, 3, 7, 11, 30)
#define STEP_PAIR(mul, a, b, c, w)                                                                              \
    mul " v" #a ".4s, v" #w ".16b, v24.16b\n" mul " v" #b ".4s, v" #w ".16b, v25.16b\n" mul " v" #c ".4s, v" #w \
        ".16b, v26.16b\n"
#define START(a, b, c) "ldr q" #a ", [%[start]]\n ldr q" #b ", [%[start]]\n ldr q" #c ", [%[start]]\n"
#define FLOAT(a, b, c) \
    "fsub v" #a ".4s, v" #a ".4s, v31.4s\n fsub v" #b ".4s, v" #b ".4s, v31.4s\n fsub v" #c ".4s, v" #c ".4s, v31.4s\n"
#define SCALE(w)                                                                              \
    "ldr q27, [%[ws], #" #w "]\n fmul v28.4s, v27.4s, v24.4s\n fmul v29.4s, v27.4s, v25.4s\n" \
    "fmul v30.4s, v27.4s, v26.4s\n"
#define ADD(ra, a, rb, b, rc, c)                                                                                   \
    "fmla v" #ra ".4s, v28.4s, v" #a ".4s\n fmla v" #rb ".4s, v29.4s, v" #b ".4s\n fmla v" #rc ".4s, v30.4s, v" #c \
    ".4s\n"
#define GROUP_END(w, a, b, c, ra, rb, rc) FLOAT(a, b, c) SCALE(w) ADD(ra, a, rb, b, rc, c) START(a, b, c)
#define RESULTS(op)                                                                         \
    op " q12, q13, [%[a]]\n" op " q14, q15, [%[a], #32]\n" op " q16, q17, [%[a], #64]\n" op \
       " q18, q19, [%[a], #96]\n" op " q20, q21, [%[a], #128]\n" op " q22, q23, [%[a], #160]\n"

/* clang-format off */
/* `unit` elements of k */
#define STEPS_16(mul) STEP(mul, 0, 0) STEP(mul, 48, 64)
#define STEPS_64(mul)                                                            \
    STEPS_16(mul) STEP(mul, 96, 128) STEP(mul, 144, 192) STEP(mul, 192, 256)     \
    STEP(mul, 240, 320) STEP(mul, 288, 384) STEP(mul, 336, 448)
#define FULL_TILE(mul, unit)                                                                                           \
    __asm__ volatile(                                                                                                  \
        RESULTS("ldp")                                                                                                 \
        "ldr q31, [%[start]]\n"                                                                                        \
        START(0, 4, 8) START(1, 5, 9) START(2, 6, 10) START(3, 7, 11)                                                  \
        "1:\n"                                                                                                         \
        "mov %[k], %[group]\n"                                                                                         \
        "2:\n"                                                                                                         \
        STEPS_##unit(mul)                                                                                              \
        "add %[x], %[x], #6 * " #unit "\n add %[w], %[w], #8 * " #unit "\n subs %[k], %[k], #" #unit "\n b.ne 2b\n"    \
        "ldp q24, q25, [%[xs]]\n ldr q26, [%[xs], #32]\n"                                                              \
        GROUP_END(0, 0, 4, 8, 12, 16, 20) GROUP_END(16, 1, 5, 9, 13, 17, 21)                                           \
        GROUP_END(32, 2, 6, 10, 14, 18, 22) GROUP_END(48, 3, 7, 11, 15, 19, 23)                                        \
        "add %[xs], %[xs], #48\n add %[ws], %[ws], #64\n subs %[groups], %[groups], #1\n b.ne 1b\n"                    \
        RESULTS("stp")                                                                                                 \
        : [x] "+r"(x), [w] "+r"(w), [xs] "+r"(xs), [ws] "+r"(ws), [groups] "+r"(groups), [k] "=&r"(k)                  \
        : [a] "r"(aside), [group] "r"(o->group), [start] "r"(start)                                                    \
        : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",      \
          "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",     \
          "v29", "v30", "v31")
/* clang-format on */

/* aside[TILE][PANEL][4] += W . x over o->groups > 0; x and xs move on to what follows the tile */
MT_INLINE void multiply_full(float *aside, operands *o, bool eight)
{
    static const float start[4] = {MT_DOT_START, MT_DOT_START, MT_DOT_START, MT_DOT_START};
    const int8_t *x = o->x, *w = o->w;
    const float *xs = o->xs, *ws = o->ws;
    size_t groups = o->groups, k;
    if (o->group % 64 == 0) {
        if (eight)
            FULL_TILE("usmmla", 64);
        else
            FULL_TILE("smmla", 64);
    } else {
        if (eight)
            FULL_TILE("usmmla", 16);
        else
            FULL_TILE("smmla", 16);
    }
    o->x = x;
    o->xs = xs;
}

/* The end of a tile against a panel: y = a + b with b = sum of wb[group][column] * sx[row][group], groups in order */
typedef struct ending {
    const float *aside; /* a, [pair of rows][PANEL][4] */
    const float *wb;    /* [group][2 * PANEL]; NULL without biases */
    const float *sx;    /* [row][stride] */
    size_t groups, stride;
} ending;

#define BIAS_GROUP(g, lane)                                                                          \
    {                                                                                                \
        float32x4_t left = vld1q_f32(wb + (g)*2 * PANEL), right = vld1q_f32(wb + (g)*2 * PANEL + 4); \
        MT_UNROLL                                                                                    \
        for (int i = 0; i < rows; i++) {                                                             \
            b[i][0] = vfmaq_laneq_f32(b[i][0], left, v[i], lane);                                    \
            b[i][1] = vfmaq_laneq_f32(b[i][1], right, v[i], lane);                                   \
        }                                                                                            \
        MT_FENCE();                                                                                  \
    }

MT_INLINE void multiply_biases(float32x4_t b[2 * TILE][2], const ending *e, int rows)
{
    float32x4_t v[2 * TILE];
    const float *wb = e->wb, *sx = e->sx;
    const size_t stride = e->stride;
    for (size_t more = e->groups; more > 0; more -= more < 4 ? more : 4, sx += 4, wb += 4 * 2 * PANEL) {
        MT_UNROLL
        for (int i = 0; i < rows; i++)
            v[i] = vld1q_f32(sx + (size_t)i * stride);
        BIAS_GROUP(0, 0)
        if (more > 1)
            BIAS_GROUP(1, 1)
        if (more > 2)
            BIAS_GROUP(2, 2)
        if (more > 3)
            BIAS_GROUP(3, 3)
    }
}

/* y[0..rows)[0 .. 2 * PANEL) */
MT_INLINE void finish(float *y, size_t ldy, const ending *e, int rows)
{
    float32x4_t b[2 * TILE][2];
    MT_UNROLL
    for (int i = 0; i < rows; i++)
        b[i][0] = b[i][1] = vdupq_n_f32(0.0f);
    if (e->wb)
        multiply_biases(b, e, rows);
    MT_UNROLL
    for (int i = 0; i < rows; i++) {
        const float *a = e->aside + i / 2 * PANEL * 4;
        MT_UNROLL
        for (int j = 0; j < 2; j++) {
            float32x4_t left = vld1q_f32(a + 8 * j), right = vld1q_f32(a + 8 * j + 4);
            float32x4_t v = i % 2 == 0 ? vuzp1q_f32(left, right) : vuzp2q_f32(left, right);
            vst1q_f32(y + (size_t)i * ldy + 4 * j, e->wb ? vaddq_f32(v, b[i][j]) : v);
        }
    }
}

/* Columns n0 + i, n0 + step + i, n0 + 2 step + i and n0 + 3 step + i for i < step, times one tile of m rows */
typedef struct mt_small {
    float *y;
    size_t ldy, n0, step, m, groups, sx_stride;
    const mt_mat *w;
    const int8_t *x;      /* [k / 8][pair][16] */
    const float *xs, *sx; /* [group][pair][4], [row][sx_stride] */
} mt_small;

/* Whether qsmall_i8mm.c can multiply so many rows with such a matrix. */
bool mt_q_small_handles_i8mm(const mt_mat *w, size_t m);
void mt_q_small_i8mm(const mt_small *p);

/* The same for qfew_i8mm.c, whose columns are n0 .. n0 + 4 step; scratch [groups][12] */
bool mt_q_few_handles_i8mm(const mt_mat *w, size_t m);
void mt_q_few_i8mm(const mt_small *p, float *scratch);

#endif
