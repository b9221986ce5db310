/* Products of one row with weights of 4 bits in groups of 32 (qblock.h): AFFINE whose scales share an f16 in every
   256 elements (Q4_K), SIGNED with f16 scales (Q4_0), and IQ4 with either. Like qnibble_dotprod.c, whose words are
   used here: four columns at a time, in assembly. A turn of the loop has 8 quads where scales share an f16, else 4.
   Scales that share an f16 are made of bytes when they are needed: looked up into the upper byte of each element,
   converted as numbers with 24 binary places, multiplied with the f16. A quad's scales are made while the next quad
   is multiplied, and used in the one after that, so the f16 and the last bytes are replaced in the second quad.
   Biases of a turn are added in its second half. SIGNED codes are multiplied as they are: what they are too large
   by, times the sum of x, is subtracted where sums of products begin.  Registers: v0-3 and v4-7 sums of even and odd
   quads, v8-9 scales as they are stored, v10-11 bytes of biases, or v10 the integers of IQ4, v14 turned sums, v15
   scales of a group, v16-19 low and v20-23 high nibbles of the columns, v24-25 temporary, v26 and v27 the f16 of
   scales and biases, v28-29 x, v30 mul of four blocks, v31 the constant 15; v12 and v13 are left for a and b. */
#include "kernels/neon/qblock.h"

#include "kernels/neon/qload.h"

enum { AHEAD = 16384 /* bytes by which weights are prefetched beyond the next four columns */ };

/* 16 bytes of a column: plain integers, or such that are looked up */
#define PLAIN(w, lo, hi, q)                     \
    "ldr q" #lo ", [%[" #w "], #16 * " #q "]\n" \
    "ushr v" #hi ".16b, v" #lo ".16b, #4\n"     \
    "and v" #lo ".16b, v" #lo ".16b, v31.16b\n"
#define LOOK_UP(w, lo, hi, q)                     \
    PLAIN(w, lo, hi, q)                           \
    "tbl v" #lo ".16b, {v10.16b}, v" #lo ".16b\n" \
    "tbl v" #hi ".16b, {v10.16b}, v" #hi ".16b\n"
#define FAR(q) "prfm pldl2keep, [%[ahead], #64 * " #q "]\n"
#define NEAR(w, c, q) ".if " #q " %% 4 == " #c "\n prfm pldl1keep, [%[" #w "], #128 + 16 * " #q "]\n .endif\n"
#define DOT(acc, lo, hi)                         \
    "sdot v" #acc ".4s, v" #lo ".16b, v28.16b\n" \
    "sdot v" #acc ".4s, v" #hi ".16b, v29.16b\n"
#define START(a, b, c, d, q)                                                        \
    "ldr s" #a ", [%[start], #4 * " #q "]\n ldr s" #b ", [%[start], #4 * " #q "]\n" \
    "ldr s" #c ", [%[start], #4 * " #q "]\n ldr s" #d ", [%[start], #4 * " #q "]\n"

/* clang-format off */
#define QUAD(SPLIT, q, p1, p2, p3, begin, a0, gap0, gap1, gap2, gap3)                                                  \
    SPLIT(w0, 16, 20, q) NEAR(w0, 0, q) gap0 DOT(p1, 17, 21)                                                           \
    SPLIT(w1, 17, 21, q) NEAR(w1, 1, q) gap1 DOT(p2, 18, 22)                                                           \
    SPLIT(w2, 18, 22, q) NEAR(w2, 2, q) gap2 DOT(p3, 19, 23)                                                           \
    "ldp q28, q29, [%[x], #32 * " #q "]\n" begin                                                                       \
    SPLIT(w3, 19, 23, q) NEAR(w3, 3, q) FAR(q) gap3 DOT(a0, 16, 20)
#define EVEN(S, q, gap0, gap1, gap2, gap3) QUAD(S, q, 5, 6, 7, START(0, 1, 2, 3, q), 0, gap0, gap1, gap2, gap3)
#define ODD(S, q, gap0, gap1, gap2, gap3) QUAD(S, q, 1, 2, 3, START(4, 5, 6, 7, q), 4, gap0, gap1, gap2, gap3)

#define PAIRS(a, b) "addp v" #a ".4s, v" #a ".4s, v" #b ".4s\n"
#define EVEN_1 PAIRS(0, 1)
#define EVEN_2 PAIRS(2, 3)
#define EVEN_3 PAIRS(0, 2) "ldr q14, [%[turn]], #16\n"
#define EVEN_4(b) "fmla v14.4s, v0.4s, v30.s[" #b "]\n"
#define ODD_1 PAIRS(4, 5)
#define ODD_2 PAIRS(6, 7)
#define ODD_3 PAIRS(4, 6) "ldr q14, [%[turn]], #16\n"
#define ODD_4(b) "fmla v14.4s, v4.4s, v30.s[" #b "]\n"
#define ADD "fmla %[a].4s, v14.4s, v15.4s\n"
#define NEXT_MUL "ldr q30, [%[turn]], #16\n"

/* Eight bytes of each column, half transposed: v24 columns 0 and 2, v25 columns 1 and 3; then [group][column] */
#define BYTES(from, free)                                                                                              \
    "ldr d24, [%[" #from "]]\n ldr d25, [%[" #from "], x9]\n zip1 v24.16b, v24.16b, v25.16b\n"                         \
    "ldr d25, [%[" #from "], %[d1]]\n ldr d" #free ", [%[" #from "], x10]\n"                                           \
    "zip1 v25.16b, v25.16b, v" #free ".16b\n"
#define ZIP_TO(lo, hi) "zip1 v" #lo ".16b, v24.16b, v25.16b\n zip2 v" #hi ".16b, v24.16b, v25.16b\n"
/* The f16 of each column, widened */
#define HALVES(from, to)                                                                                               \
    "ldr h24, [" #from "]\n ldr h25, [" #from ", x9]\n zip1 v24.4h, v24.4h, v25.4h\n"                                  \
    "ldr h25, [" #from ", %[d1]]\n ldr h" #to ", [" #from ", x10]\n zip1 v25.4h, v25.4h, v" #to ".4h\n"                \
    "zip1 v24.4h, v24.4h, v25.4h\n fcvtl v" #to ".4s, v24.4h\n"
#define MAKE(to, bytes, g, half)                                                                                       \
    "ldr q" #to ", [%[upper], #16 * " #g "]\n tbl v" #to ".16b, {v" #bytes ".16b}, v" #to ".16b\n"                     \
    "scvtf v" #to ".4s, v" #to ".4s, #24\n fmul v" #to ".4s, v" #to ".4s, v" #half ".4s\n"
#define SCALE(bytes, g) MAKE(15, bytes, g, 26)
#define BIAS(bytes, g) MAKE(24, bytes, g, 27) "fmla %[b].4s, v24.4s, v25.s[" #g "]\n"
#define NEXT_SX "ldr q25, [%[sx]], #16\n"

#define TURN_AFFINE                                                                                                    \
    EVEN(PLAIN, 0, EVEN_3, EVEN_4(2), ADD BYTES(s, 8), ODD_1 ODD_2 SCALE(9, 3))                                        \
    ODD(PLAIN, 1, ODD_3 ZIP_TO(8, 9), ODD_4(3) HALVES(x11, 26), ADD NEXT_MUL, EVEN_1 EVEN_2 SCALE(8, 0))               \
    EVEN(PLAIN, 2, EVEN_3, EVEN_4(0), ADD, ODD_1 ODD_2 SCALE(8, 1))                                                    \
    ODD(PLAIN, 3, ODD_3, ODD_4(1) HALVES(x12, 27), ADD BYTES(t, 10), EVEN_1 EVEN_2 SCALE(8, 2))                        \
    EVEN(PLAIN, 4, EVEN_3 ZIP_TO(10, 11) NEXT_SX, EVEN_4(2), ADD BIAS(10, 0), ODD_1 ODD_2 SCALE(8, 3))                 \
    ODD(PLAIN, 5, ODD_3 BIAS(10, 1), ODD_4(3), ADD NEXT_MUL BIAS(10, 2), EVEN_1 EVEN_2 SCALE(9, 0))                    \
    EVEN(PLAIN, 6, EVEN_3 BIAS(10, 3) NEXT_SX, EVEN_4(0), ADD BIAS(11, 0), ODD_1 ODD_2 SCALE(9, 1))                    \
    ODD(PLAIN, 7, ODD_3 BIAS(11, 1), ODD_4(1) BIAS(11, 2), ADD BIAS(11, 3), EVEN_1 EVEN_2 SCALE(9, 2))
#define TURN_IQ4                                                                                                       \
    EVEN(LOOK_UP, 0, EVEN_3, EVEN_4(2), ADD BYTES(s, 8), ODD_1 ODD_2 SCALE(9, 3))                                      \
    ODD(LOOK_UP, 1, ODD_3 ZIP_TO(8, 9), ODD_4(3) HALVES(x11, 26), ADD NEXT_MUL, EVEN_1 EVEN_2 SCALE(8, 0))             \
    EVEN(LOOK_UP, 2, EVEN_3, EVEN_4(0), ADD, ODD_1 ODD_2 SCALE(8, 1))                                                  \
    ODD(LOOK_UP, 3, ODD_3, ODD_4(1), ADD, EVEN_1 EVEN_2 SCALE(8, 2))                                                   \
    EVEN(LOOK_UP, 4, EVEN_3, EVEN_4(2), ADD, ODD_1 ODD_2 SCALE(8, 3))                                                  \
    ODD(LOOK_UP, 5, ODD_3, ODD_4(3), ADD NEXT_MUL, EVEN_1 EVEN_2 SCALE(9, 0))                                          \
    EVEN(LOOK_UP, 6, EVEN_3, EVEN_4(0), ADD, ODD_1 ODD_2 SCALE(9, 1))                                                  \
    ODD(LOOK_UP, 7, ODD_3, ODD_4(1), ADD, EVEN_1 EVEN_2 SCALE(9, 2))
#define REST EVEN_3 EVEN_4(2) ADD SCALE(9, 3) ODD_1 ODD_2 ODD_3 ODD_4(3) ADD

/* Four f16 of each column */
#define FOUR                                                                                                           \
    "ldr d24, [%[s]]\n ldr d25, [%[s], x9]\n zip1 v24.8h, v24.8h, v25.8h\n"                                            \
    "ldr d25, [%[s], %[d1]]\n ldr d8, [%[s], x10]\n zip1 v25.8h, v25.8h, v8.8h\n"
#define FOUR_TO "zip1 v8.8h, v24.8h, v25.8h\n zip2 v9.8h, v24.8h, v25.8h\n"
#define WIDEN(from) "fcvtl v15.4s, v" #from ".4h\n"
#define WIDEN_2(from) "fcvtl2 v15.4s, v" #from ".8h\n"
#define TURN_F16(S)                                                                                                    \
    EVEN(S, 0, EVEN_3, EVEN_4(2) FOUR, ADD, ODD_1 ODD_2 WIDEN_2(9))                                                    \
    ODD(S, 1, ODD_3, ODD_4(3) FOUR_TO, ADD NEXT_MUL, EVEN_1 EVEN_2 WIDEN(8))                                           \
    EVEN(S, 2, EVEN_3, EVEN_4(0), ADD, ODD_1 ODD_2 WIDEN_2(8))                                                         \
    ODD(S, 3, ODD_3, ODD_4(1), ADD, EVEN_1 EVEN_2 WIDEN(9))
#define REST_F16 EVEN_3 EVEN_4(2) ADD WIDEN_2(9) ODD_1 ODD_2 ODD_3 ODD_4(3) ADD

/* `turns` > 0 turns of `quads` quads; scales of a turn take `bytes`. x9 and x10 are the distances of the third and
   fourth column's scales, x11 and x12 where the f16 are. */
#define TURNS(TURN, REST, quads, bytes)                                                                                \
    __asm__ volatile(                                                                                                  \
        "movi v0.4s, #0\n movi v1.4s, #0\n movi v2.4s, #0\n movi v3.4s, #0\n movi v4.4s, #0\n movi v5.4s, #0\n"        \
        "movi v6.4s, #0\n movi v7.4s, #0\n movi v9.4s, #0\n movi v15.4s, #0\n movi v17.4s, #0\n movi v18.4s, #0\n"     \
        "movi v19.4s, #0\n movi v21.4s, #0\n movi v22.4s, #0\n movi v23.4s, #0\n movi v26.4s, #0\n movi v30.4s, #0\n"  \
        "movi v31.16b, #15\n ldr q10, [%[upper], #64]\n lsl x9, %[d1], #1\n add x10, x9, %[d1]\n"                      \
        "sub x11, %[s], #2\n sub x12, %[t], #2\n"                                                                      \
        "1:\n" TURN                                                                                                    \
        "add %[w0], %[w0], #16 * " #quads "\n add %[w1], %[w1], #16 * " #quads "\n"                                    \
        "add %[w2], %[w2], #16 * " #quads "\n add %[w3], %[w3], #16 * " #quads "\n"                                    \
        "add %[x], %[x], #32 * " #quads "\n add %[s], %[s], #" #bytes "\n add %[t], %[t], #" #bytes "\n"               \
        "add x11, x11, #" #bytes "\n add x12, x12, #" #bytes "\n add %[ahead], %[ahead], #64 * " #quads "\n"           \
        "add %[start], %[start], #4 * " #quads "\n subs %[turns], %[turns], #1\n b.ne 1b\n"                            \
        DOT(5, 17, 21) DOT(6, 18, 22) DOT(7, 19, 23) REST                                                              \
        : [a] "+w"(a), [b] "+w"(b), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [x] "+r"(x),           \
          [turn] "+r"(turn), [sx] "+r"(sx), [s] "+r"(s), [t] "+r"(t), [ahead] "+r"(ahead), [turns] "+r"(turns),        \
          [start] "+r"(start)                                                                                          \
        : [d1] "r"(d), [upper] "r"(upper)                                                                              \
        : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v14", "v15",      \
          "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",     \
          "v31", "x9", "x10", "x11", "x12")

/* Places of four bytes in a vector, each moved to the upper byte of an element; then the integers of IQ4 */
#define UPPER(g) 255, 255, 255, 4 * g, 255, 255, 255, 4 * g + 1, 255, 255, 255, 4 * g + 2, 255, 255, 255, 4 * g + 3
static const uint8_t upper[80] = {UPPER(0), UPPER(1), UPPER(2), UPPER(3), 129, 152, 173, 191, 207, 221, 234, 246,
                                  1, 13, 25, 38, 53, 69, 89, 113};
/* clang-format on */

/* Columns j .. j + 3; start: what each block's sums begin with; prefetches from `ahead` meanwhile. */
static float32x4_t four_columns(const mt_nibble_row *row, size_t j, const int32_t *start, const uint8_t *ahead)
{
    const mt_mat *w = row->w;
    const bool shared = w->scale_type == MT_SCALE_8_OF_F16;
    const size_t d = w->scale_stride, skip = shared ? 2 : 0;
    const uint8_t *w0 = w->w + j * w->stride, *w1 = w0 + w->stride, *w2 = w1 + w->stride, *w3 = w2 + w->stride;
    const uint8_t *s = w->scales + j * d + skip, *t = w->biases ? w->biases + j * d + skip : s;
    const int8_t *x = row->x;
    const float *turn = row->stream, *sx = row->sx;
    size_t turns = w->k / (shared ? 256 : 128);
    float32x4_t a = vdupq_n_f32(0.0f), b = a;
    if (w->format == MT_FORMAT_AFFINE)
        TURNS(TURN_AFFINE, REST, 8, 10);
    else if (w->format == MT_FORMAT_SIGNED)
        TURNS(TURN_F16(PLAIN), REST_F16, 4, 8);
    else if (shared)
        TURNS(TURN_IQ4, REST, 8, 10);
    else
        TURNS(TURN_F16(LOOK_UP), REST_F16, 4, 8);
    return w->biases ? vaddq_f32(a, b) : a;
}

bool mt_q_super_handles_dotprod(const mt_mat *w)
{
    if (w->bits != 4 || w->group != 32 || w->k == 0 || w->k % 128 != 0)
        return false;
    if (w->scale_type == MT_SCALE_8_OF_F16)
        return w->format == MT_FORMAT_AFFINE || w->format == MT_FORMAT_IQ4;
    return w->scale_type == MT_SCALE_F16 && (w->format == MT_FORMAT_SIGNED || w->format == MT_FORMAT_IQ4);
}

void mt_q_super_dotprod(float *y, size_t n0, size_t n1, const mt_nibble_row *row, const int32_t *sum, uint8_t *scratch)
{
    const mt_mat *w = row->w;
    const int less = w->format == MT_FORMAT_SIGNED ? mt_code_lift(w) : 0;
    int32_t *start = (int32_t *)(void *)scratch;
    for (size_t b = 0; b < w->k / MT_BLOCK; b++)
        start[b] = MT_DOT_BITS - less * sum[b];
    for (size_t j = n0; j + 4 <= n1; j += 4)
        vst1q_f32(y + j, four_columns(row, j, start, w->w + (j + 4) * w->stride + AHEAD));
}
