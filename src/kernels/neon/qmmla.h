/* Tiles of the SMMLA products: 2 rows of W times 2 rows of x, 8 elements of k at a time; a 2 x 2 result is [w0x0 w0x1
   w1x0 w1x1]. For *_i8mm.c only. */
#ifndef MT_KERNELS_NEON_QMMLA_H
#define MT_KERNELS_NEON_QMMLA_H

#include "kernels/block.h"
#include "kernels/neon/qload.h"

enum {
    TILE = 3,   /* pairs of rows */
    SINGLE = 4, /* most pairs that are one tile */
    PANEL = 4   /* pairs of columns */
};

/* Two rows of W: 32 elements of k in four steps of 8, in the order of the packed rows. */
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

/* A block of two rows, by number; codes in the stream at p0 and p1, other bits of the rows from h0 and h1 on. */
MT_INLINE steps load_steps(const uint8_t *p0, const uint8_t *p1, const uint8_t *h0, const uint8_t *h1, size_t block,
                           mt_code code, const mt_coder *c)
{
    if (code == MT_CODE_8) {
        int8x16_t a0 = vreinterpretq_s8_u8(vld1q_u8(p0)), a1 = vreinterpretq_s8_u8(vld1q_u8(p0 + 16));
        int8x16_t b0 = vreinterpretq_s8_u8(vld1q_u8(p1)), b1 = vreinterpretq_s8_u8(vld1q_u8(p1 + 16));
        return (steps){{vuzp1q_s8(a0, b0), vuzp2q_s8(a0, b0), vuzp1q_s8(a1, b1), vuzp2q_s8(a1, b1)}};
    }
    if (code == MT_CODE_4 || code == MT_CODE_TABLE) {
        int8x16_t a = vreinterpretq_s8_u8(vld1q_u8(p0)), b = vreinterpretq_s8_u8(vld1q_u8(p1));
        mt_paired low = mt_paired_nibbles(vreinterpretq_u8_s8(low_halves(a, b)), code, c);
        mt_paired high = mt_paired_nibbles(vreinterpretq_u8_s8(high_halves(a, b)), code, c);
        return (steps){{low.even, low.odd, high.even, high.odd}};
    }
    return interleave(mt_paired_block(p0, h0, block, code, c), mt_paired_block(p1, h1, block, code, c));
}

/* Keeps loads near their use, where no register is free. */
#define MT_FENCE() __asm__ volatile("" ::: "memory")

/* 8-bit weights are unsigned */
MT_INLINE int32x4_t multiply_add(int32x4_t d, int8x16_t w, int8x16_t x, bool eight)
{
    return eight ? vusmmlaq_s32(d, vreinterpretq_u8_s8(w), x) : vmmlaq_s32(d, w, x);
}

/* What a tile of rows and some pairs of columns share. turns: for each unit of k (block.h) [pair][4] mul, [pair][4]
   add. */
typedef struct operands {
    const int8_t *x, *w;
    const float *turns, *ws;   /* ws: [group][pair][4] */
    size_t groups, each, unit; /* each: units of a group */
} operands;

static const float mt_dot_start[8] = {MT_DOT_START, MT_DOT_START, MT_DOT_START, MT_DOT_START,
                                      MT_DOT_START, MT_DOT_START, MT_DOT_START, MT_DOT_START};

MT_INLINE int32x4_t start(void)
{
    return vreinterpretq_s32_f32(vld1q_f32(mt_dot_start));
}

/* The turned sums (block.h) of pair of rows number i of `pairs`. */
MT_INLINE float32x4_t turned(int32x4_t sum, const float *turn, int i, int pairs)
{
    return vfmaq_f32(vld1q_f32(turn + 4 * (pairs + i)), vld1q_f32(turn + 4 * i), vreinterpretq_f32_s32(sum));
}

typedef struct tile_sums {
    int32x4_t v[TILE][PANEL];
} tile_sums;

/* The turned sums of one unit; `rows` pairs of the `pairs` in the tile. */
MT_INLINE void multiply_unit(tile_sums *d, const int8_t *x, const int8_t *w, const float *turn, size_t unit, int rows,
                             int pairs, bool eight)
{
    for (size_t k = 0; k < unit; k += 16) {
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
                    d->v[i][j] = multiply_add(d->v[i][j], u, v[i], eight);
            }
            MT_FENCE();
        }
    }
    MT_UNROLL
    for (int j = 0; j < PANEL; j++) {
        MT_UNROLL
        for (int i = 0; i < rows; i++)
            d->v[i][j] = vreinterpretq_s32_f32(turned(d->v[i][j], turn, i, pairs));
        MT_FENCE();
    }
}

/* a[pair of rows][pair of columns] += W . x over o->groups */
MT_INLINE void multiply(float32x4_t a[TILE][PANEL], const operands *o, int rows, int pairs, bool eight)
{
    const int8_t *x = o->x, *w = o->w;
    const float *turn = o->turns, *ws = o->ws;
    const size_t unit = o->unit, link = o->each > 1 ? 2 : 1;
    for (size_t g = o->groups; g > 0; g--, ws += PANEL * 4) {
        for (size_t left = o->each; left > 0; left -= link) {
            tile_sums d;
            MT_UNROLL
            for (int i = 0; i < rows; i++)
                MT_UNROLL
            for (int j = 0; j < PANEL; j++)
                d.v[i][j] = start();
            for (size_t u = link; u > 0; u--, turn += pairs * 8, x += unit * 2 * (size_t)pairs, w += unit * 2 * PANEL)
                multiply_unit(&d, x, w, turn, unit, rows, pairs, eight);
            MT_UNROLL
            for (int j = 0; j < PANEL; j++)
                MT_UNROLL
            for (int i = 0; i < rows; i++)
                a[i][j] = vfmaq_f32(a[i][j], vld1q_f32(ws + 4 * j), vreinterpretq_f32_s32(d.v[i][j]));
        }
    }
}

/* The full tile, TILE pairs of rows times PANEL pairs of columns, in assembly: it needs all 32 registers, and compilers
   spill, copy zeros and reorder. v0-11 sums, v12-23 results, v24-26 x, v27-30 w. In the middle of a link a turned sum
   replaces the sum before it, the first of them goes to v31. */
#define LOAD(x, w)                                                    \
    "ldp q24, q25, [%[x], #" #x "]\n ldr q26, [%[x], #" #x " + 32]\n" \
    "ldp q27, q28, [%[w], #" #w "]\n ldp q29, q30, [%[w], #" #w " + 32]\n"
#define STEP_PAIR(mul, a, b, c, w)                                                                              \
    mul " v" #a ".4s, v" #w ".16b, v24.16b\n" mul " v" #b ".4s, v" #w ".16b, v25.16b\n" mul " v" #c ".4s, v" #w \
        ".16b, v26.16b\n"
#define STEP(mul, x, w) \
    LOAD(x, w)          \
    STEP_PAIR(mul, 0, 4, 8, 27) STEP_PAIR(mul, 1, 5, 9, 28) STEP_PAIR(mul, 2, 6, 10, 29) STEP_PAIR(mul, 3, 7, 11, 30)
#define SECOND_STEP(mul, x, w) \
    LOAD(x, w)                 \
    STEP_PAIR(mul, 31, 0, 4, 27) STEP_PAIR(mul, 8, 1, 5, 28) STEP_PAIR(mul, 9, 2, 6, 29) STEP_PAIR(mul, 10, 3, 7, 30)
#define START                                                                                             \
    "ldp q0, q1, [%[start]]\n ldp q2, q3, [%[start]]\n ldp q4, q5, [%[start]]\n ldp q6, q7, [%[start]]\n" \
    "ldp q8, q9, [%[start]]\n ldp q10, q11, [%[start]]\n"
/* v24-26 mul of the unit at `at`, add 48 bytes after it */
#define MULS(at) "ldp q24, q25, [%[turn], #" #at "]\n ldr q26, [%[turn], #" #at " + 32]\n"
#define TILE_ON(to, a, b, c)                                                \
    "ldr q" #to ", [%[turn], #48]\n fmla v" #to ".4s, v24.4s, v" #a ".4s\n" \
    "ldr q" #a ", [%[turn], #64]\n fmla v" #a ".4s, v25.4s, v" #b ".4s\n"   \
    "ldr q" #b ", [%[turn], #80]\n fmla v" #b ".4s, v26.4s, v" #c ".4s\n"
#define TILE_END(at, w, a, b, c, ra, rb, rc)                                                                   \
    "ldp q28, q29, [%[turn], #" #at " + 48]\n ldr q30, [%[turn], #" #at " + 80]\n ldr q27, [%[ws], #" #w "]\n" \
    "fmla v28.4s, v24.4s, v" #a ".4s\n fmla v29.4s, v25.4s, v" #b ".4s\n fmla v30.4s, v26.4s, v" #c ".4s\n"    \
    "fmla v" #ra ".4s, v27.4s, v28.4s\n fmla v" #rb ".4s, v27.4s, v29.4s\n fmla v" #rc ".4s, v27.4s, v30.4s\n"
#define RESULTS(op)                                                                         \
    op " q12, q13, [%[a]]\n" op " q14, q15, [%[a], #32]\n" op " q16, q17, [%[a], #64]\n" op \
       " q18, q19, [%[a], #96]\n" op " q20, q21, [%[a], #128]\n" op " q22, q23, [%[a], #160]\n"

/* clang-format off */
#define STEPS_16(mul) STEP(mul, 0, 0) STEP(mul, 48, 64)
#define STEPS_32(mul) STEPS_16(mul) STEP(mul, 96, 128) STEP(mul, 144, 192)
#define SECOND_STEPS(mul)                                                                                              \
    SECOND_STEP(mul, 192, 256) SECOND_STEP(mul, 240, 320) SECOND_STEP(mul, 288, 384) SECOND_STEP(mul, 336, 448)
#define ONE_END                                                                                                        \
    MULS(0) TILE_END(0, 0, 0, 4, 8, 12, 16, 20) TILE_END(0, 16, 1, 5, 9, 13, 17, 21)                                   \
    TILE_END(0, 32, 2, 6, 10, 14, 18, 22) TILE_END(0, 48, 3, 7, 11, 15, 19, 23)
#define LINK_16(mul) STEPS_16(mul) ONE_END
#define LINK_32(mul) STEPS_32(mul) ONE_END
#define LINK_64(mul)                                                                                                   \
    STEPS_32(mul) MULS(0) TILE_ON(31, 0, 4, 8) TILE_ON(8, 1, 5, 9)                                                     \
    TILE_ON(9, 2, 6, 10) TILE_ON(10, 3, 7, 11) SECOND_STEPS(mul)                                                       \
    MULS(96) TILE_END(96, 0, 31, 0, 4, 12, 16, 20) TILE_END(96, 16, 8, 1, 5, 13, 17, 21)                               \
    TILE_END(96, 32, 9, 2, 6, 14, 18, 22) TILE_END(96, 48, 10, 3, 7, 15, 19, 23)
/* `length` elements of a link, whose turns take `bytes`. */
#define FULL_TILE(mul, length, bytes)                                                                                  \
    __asm__ volatile(                                                                                                  \
        RESULTS("ldp")                                                                                                 \
        "1:\n"                                                                                                         \
        "mov %[u], %[links]\n"                                                                                         \
        "2:\n"                                                                                                         \
        START LINK_##length(mul)                                                                                       \
        "add %[x], %[x], #6 * " #length "\n add %[w], %[w], #8 * " #length "\n add %[turn], %[turn], #" #bytes "\n"    \
        "subs %[u], %[u], #1\n b.ne 2b\n"                                                                              \
        "add %[ws], %[ws], #64\n subs %[groups], %[groups], #1\n b.ne 1b\n"                                            \
        RESULTS("stp")                                                                                                 \
        : [x] "+r"(x), [w] "+r"(w), [turn] "+r"(turn), [ws] "+r"(ws), [groups] "+r"(groups), [u] "=&r"(u)              \
        : [a] "r"(aside), [links] "r"(links), [start] "r"(mt_dot_start)                                                \
        : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",      \
          "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",     \
          "v29", "v30", "v31")
/* clang-format on */

/* aside[TILE][PANEL][4] += W . x over o->groups > 0; x and turns advance to what follows the tile. */
MT_INLINE void multiply_full(float *aside, operands *o, bool eight)
{
    const int8_t *x = o->x, *w = o->w;
    const float *turn = o->turns, *ws = o->ws;
    size_t groups = o->groups, links = o->each > 1 ? o->each / 2 : 1, u;
    if (o->unit == 16) {
        FULL_TILE("smmla", 16, 96);
    } else if (o->each == 1) {
        if (eight)
            FULL_TILE("usmmla", 32, 96);
        else
            FULL_TILE("smmla", 32, 96);
    } else {
        if (eight)
            FULL_TILE("usmmla", 64, 192);
        else
            FULL_TILE("smmla", 64, 192);
    }
    o->x = x;
    o->turns = turn;
}

/* The end of a tile and panel: y = a + b, b = sum of wb[group][column] * sx[row][group], groups in order. */
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

/* Columns n0 + i, n0 + step + i, n0 + 2 step + i and n0 + 3 step + i for i < step, times one tile of m rows. */
typedef struct mt_small {
    float *y;
    size_t ldy, n0, step, m, groups, sx_stride;
    const mt_mat *w;
    const int8_t *x;         /* [k / 8][pair][16] */
    const float *turns, *sx; /* as in operands; [row][sx_stride] */
} mt_small;

/* Whether qsmall_i8mm.c can multiply so many rows with this matrix. */
bool mt_q_small_handles_i8mm(const mt_mat *w, size_t m);
void mt_q_small_i8mm(const mt_small *p);

/* The same for qfew_i8mm.c, whose columns are n0 .. n0 + 4 step; scratch [groups][12]. */
bool mt_q_few_handles_i8mm(const mt_mat *w, size_t m);
void mt_q_few_i8mm(const mt_small *p, float *scratch);

#endif
