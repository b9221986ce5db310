/* One row against AFFINE weights of 4 bits: the loop that sets the pace of decoding. Four columns at a time, four
   groups a turn, written out: the processor fills its four vector pipes only where an instruction is far from those it
   waits for, and compilers keep them close.

   A quad is 32 weights of each of the four columns. Its nibbles come apart while the products of the quad before it are
   added, three columns late; the sums of a group become results in the gaps of the quads that follow. So a turn ends
   with work for the next one, or for the code after the loop; the first turn multiplies what it finds by zero.

   v0-3 and v4-7 dot products of even and odd groups, v8-9 scales and v10-11 biases of four groups, v14 and v15 ws * xs
   of even and odd groups, v16-19 low and v20-23 high nibbles of the columns, v24-27 aside, v28-29 x, v30 xs, v31 15;
   v12 and v13 are left for a and b. */
#include "kernels/neon/qnibble.h"

#include "kernels/neon/qload.h"

enum { TURN = 4 /* groups */, AHEAD = 16384 /* bytes by which weights are fetched beyond the next four columns */ };

/* 16 bytes of a column */
#define SPLIT(w, lo, hi, q)                     \
    "ldr q" #lo ", [%[" #w "], #16 * " #q "]\n" \
    "ushr v" #hi ".16b, v" #lo ".16b, #4\n"     \
    "and v" #lo ".16b, v" #lo ".16b, v31.16b\n"
/* Weights are fetched into the second level long before their turn, and from there, in one of four quads a line of
   column c, into the first: what waits for a load that missed would fill the queues of the pipes */
#define FAR(q) "prfm pldl2keep, [%[ahead], #64 * " #q "]\n"
#define NEAR(w, c, q) ".if " #q " %% 4 == " #c "\n prfm pldl1keep, [%[" #w "], #128 + 16 * " #q "]\n .endif\n"
#define DOT(acc, lo, hi)                         \
    "sdot v" #acc ".4s, v" #lo ".16b, v28.16b\n" \
    "sdot v" #acc ".4s, v" #hi ".16b, v29.16b\n"
#define ZERO(a, b, c, d) "movi v" #a ".4s, #0\n movi v" #b ".4s, #0\n movi v" #c ".4s, #0\n movi v" #d ".4s, #0\n"

/* Quad q of a turn; p1-3 are the sums of columns 1-3 in the quad before, a0 that of column 0 in this one */
/* clang-format off */
#define QUAD(q, p1, p2, p3, zero, a0, gap0, gap1, gap2, gap3)       \
    SPLIT(w0, 16, 20, q) NEAR(w0, 0, q) gap0 DOT(p1, 17, 21)        \
    SPLIT(w1, 17, 21, q) NEAR(w1, 1, q) gap1 DOT(p2, 18, 22)        \
    SPLIT(w2, 18, 22, q) NEAR(w2, 2, q) gap2 DOT(p3, 19, 23)        \
    "ldp q28, q29, [%[x], #32 * " #q "]\n" zero                     \
    SPLIT(w3, 19, 23, q) NEAR(w3, 3, q) FAR(q) gap3 DOT(a0, 16, 20)
/* clang-format on */
#define FIRST_EVEN(q, gap0, gap1, gap2, gap3) QUAD(q, 5, 6, 7, ZERO(0, 1, 2, 3), 0, gap0, gap1, gap2, gap3)
#define NEXT_EVEN(q, gap0, gap1, gap2, gap3) QUAD(q, 1, 2, 3, "", 0, gap0, gap1, gap2, gap3)
#define FIRST_ODD(q, gap0, gap1, gap2, gap3) QUAD(q, 1, 2, 3, ZERO(4, 5, 6, 7), 4, gap0, gap1, gap2, gap3)
#define NEXT_ODD(q, gap0, gap1, gap2, gap3) QUAD(q, 5, 6, 7, "", 4, gap0, gap1, gap2, gap3)

/* The end of a group: three sums of pairs, then a = fma(ws * xs, dot, a) */
#define PAIRS(a, b) "addp v" #a ".4s, v" #a ".4s, v" #b ".4s\n"
#define EVEN_1 PAIRS(0, 1)
#define EVEN_2 PAIRS(2, 3)
#define EVEN_3 PAIRS(0, 2)
#define EVEN_4 "scvtf v0.4s, v0.4s\n"
#define EVEN_5 "fmla %[a].4s, v14.4s, v0.4s\n"
#define ODD_1 PAIRS(4, 5)
#define ODD_2 PAIRS(6, 7)
#define ODD_3 PAIRS(4, 6)
#define ODD_4 "scvtf v4.4s, v4.4s\n"
#define ODD_5 "fmla %[a].4s, v15.4s, v4.4s\n"

/* Four bf16 of each column, turned to [group][column] */
#define LOAD4(from)                                              \
    "ldr d24, [%[" #from "]]\n ldr d25, [%[" #from "], %[d1]]\n" \
    "ldr d26, [%[" #from "], %[d2]]\n ldr d27, [%[" #from "], %[d3]]\n"
#define ZIP "zip1 v24.8h, v24.8h, v26.8h\n zip1 v25.8h, v25.8h, v27.8h\n"
#define ZIP_TO(lo, hi) "zip1 v" #lo ".8h, v24.8h, v25.8h\n zip2 v" #hi ".8h, v24.8h, v25.8h\n"
#define SCALES_1 LOAD4(s) "ldr q30, [%[xs]], #16\n"
#define SCALES_2 ZIP_TO(8, 9)
#define BIASES_1 LOAD4(t)
#define BIASES_2 ZIP_TO(10, 11) "ldr q25, [%[sx]], #16\n"
#define WIDEN(to, from) "shll v" #to ".4s, v" #from ".4h, #16\n"
#define WIDEN_2(to, from) "shll2 v" #to ".4s, v" #from ".8h, #16\n"
#define TIMES_XS(v, g) "fmul v" #v ".4s, v" #v ".4s, v30.s[" #g "]\n"
#define ADD_BIAS(v, g) "fmla %[b].4s, v" #v ".4s, v25.s[" #g "]\n"

/* The gaps of groups of 64 were filled by a search that measured: steps that stand together, and columns without any
   between them, keep the pipes busier than steps spread evenly */
/* clang-format off */
#define TURN_32                                                                                                        \
    FIRST_EVEN(0, EVEN_3, EVEN_4 SCALES_1, EVEN_5, ODD_1 ODD_2 ZIP)                                                    \
    FIRST_ODD(1, ODD_3, ODD_4 SCALES_2, ODD_5 BIASES_1, EVEN_1 EVEN_2 WIDEN(14, 8))                                    \
    FIRST_EVEN(2, EVEN_3 TIMES_XS(14, 0), EVEN_4 WIDEN_2(15, 8) ZIP, EVEN_5, ODD_1 ODD_2 TIMES_XS(15, 1) BIASES_2)     \
    FIRST_ODD(3, ODD_3 WIDEN(14, 9) WIDEN(26, 10), ODD_4 TIMES_XS(14, 2) WIDEN_2(27, 10) ADD_BIAS(26, 0),              \
              ODD_5 ADD_BIAS(27, 1) WIDEN(26, 11) WIDEN_2(27, 11),                                                     \
              EVEN_1 EVEN_2 WIDEN_2(15, 9) TIMES_XS(15, 3) ADD_BIAS(26, 2) ADD_BIAS(27, 3))
#define REST_32 EVEN_3 EVEN_4 EVEN_5
#define TURN_64                                                                                                        \
    FIRST_EVEN(0, EVEN_4, SCALES_1, EVEN_5, "")                                                                        \
    NEXT_EVEN(1, "", ZIP, ODD_2 ODD_1, "")                                                                             \
    FIRST_ODD(2, "", SCALES_2 BIASES_1, ODD_3 ODD_4 ODD_5, WIDEN(14, 8))                                               \
    NEXT_ODD(3, "", "", ZIP EVEN_1, EVEN_2)                                                                            \
    FIRST_EVEN(4, BIASES_2 EVEN_3 EVEN_4, "", WIDEN_2(27, 10) TIMES_XS(14, 0) EVEN_5 WIDEN_2(15, 8), "")               \
    NEXT_EVEN(5, WIDEN(14, 9) WIDEN(26, 10) ODD_2 ADD_BIAS(26, 0), ADD_BIAS(27, 1), ODD_1, ODD_3 TIMES_XS(15, 1))      \
    FIRST_ODD(6, "", EVEN_1, ODD_4 WIDEN(26, 11) ODD_5, WIDEN_2(15, 9) EVEN_2)                                         \
    NEXT_ODD(7, EVEN_3 ADD_BIAS(26, 2), "", "", WIDEN_2(27, 11) ADD_BIAS(27, 3) TIMES_XS(15, 3) TIMES_XS(14, 2))
#define REST_64 EVEN_4 EVEN_5
#define TURN_128                                                                                                       \
    FIRST_EVEN(0, "", SCALES_1, "", ODD_1)                                                                             \
    NEXT_EVEN(1, ODD_2, ZIP, ODD_3, SCALES_2)                                                                          \
    NEXT_EVEN(2, ODD_4, "", ODD_5, WIDEN(14, 8))                                                                       \
    NEXT_EVEN(3, "", TIMES_XS(14, 0), "", "")                                                                          \
    FIRST_ODD(4, "", BIASES_1, "", EVEN_1)                                                                             \
    NEXT_ODD(5, EVEN_2, ZIP, EVEN_3, BIASES_2)                                                                         \
    NEXT_ODD(6, EVEN_4, "", EVEN_5, WIDEN_2(15, 8))                                                                    \
    NEXT_ODD(7, "", TIMES_XS(15, 1), "", WIDEN(26, 10))                                                                \
    FIRST_EVEN(8, "", ADD_BIAS(26, 0), "", ODD_1)                                                                      \
    NEXT_EVEN(9, ODD_2, WIDEN_2(27, 10), ODD_3, "")                                                                    \
    NEXT_EVEN(10, ODD_4, ADD_BIAS(27, 1), ODD_5, WIDEN(14, 9))                                                         \
    NEXT_EVEN(11, "", TIMES_XS(14, 2), "", WIDEN(26, 11))                                                              \
    FIRST_ODD(12, "", ADD_BIAS(26, 2), "", EVEN_1)                                                                     \
    NEXT_ODD(13, EVEN_2, WIDEN_2(27, 11), EVEN_3, "")                                                                  \
    NEXT_ODD(14, EVEN_4, ADD_BIAS(27, 3), EVEN_5, WIDEN_2(15, 9))                                                      \
    NEXT_ODD(15, "", TIMES_XS(15, 3), "", "")
#define REST_128

/* Adds `turns` > 0 turns to a and b; d1, d2 and d3 are the distances of the columns' scales from those of the first */
#define TURNS(group)                                                                                                   \
    __asm__ volatile(                                                                                                  \
        "movi v14.4s, #0\n movi v15.4s, #0\n movi v31.16b, #15\n"                                                      \
        "1:\n" TURN_##group                                                                                            \
        "add %[w0], %[w0], #2 * " #group "\n add %[w1], %[w1], #2 * " #group "\n add %[w2], %[w2], #2 * " #group "\n"  \
        "add %[w3], %[w3], #2 * " #group "\n add %[x], %[x], #4 * " #group "\n add %[s], %[s], #8\n"                   \
        "add %[t], %[t], #8\n add %[ahead], %[ahead], #8 * " #group "\n subs %[turns], %[turns], #1\n b.ne 1b\n"       \
        DOT(5, 17, 21) DOT(6, 18, 22) DOT(7, 19, 23) REST_##group                                                      \
        ODD_1 ODD_2 ODD_3 ODD_4 ODD_5                                                                                  \
        : [a] "+w"(a), [b] "+w"(b), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [x] "+r"(x),           \
          [xs] "+r"(xs), [sx] "+r"(sx), [s] "+r"(s), [t] "+r"(t), [ahead] "+r"(ahead), [turns] "+r"(turns)             \
        : [d1] "r"(d), [d2] "r"(2 * d), [d3] "r"(3 * d)                                                                \
        : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v14", "v15",      \
          "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",     \
          "v31")
/* clang-format on */

/* One bf16 of each of four columns */
MT_INLINE float32x4_t one_of_each(const uint8_t *p, size_t stride)
{
    uint16_t v[4];
    MT_UNROLL
    for (size_t c = 0; c < 4; c++)
        memcpy(&v[c], p + c * stride, sizeof *v);
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(v), 16));
}

/* The last groups of columns j .. j + 3, fewer than TURN */
MT_INLINE void rest(float32x4_t *a, float32x4_t *b, const mt_nibble_row *row, size_t j, size_t g, size_t group)
{
    const mt_mat *w = row->w;
    const uint8_t *s = w->scales + j * w->scale_stride, *t = w->biases + j * w->scale_stride;
    const uint8x16_t mask = vdupq_n_u8(15);
    for (; g < row->groups; g++) {
        int32x4_t acc[4];
        MT_UNROLL
        for (size_t c = 0; c < 4; c++) {
            const uint8_t *from = w->w + (j + c) * w->stride + g * group / 2;
            const int8_t *x = row->x + g * group;
            acc[c] = vdupq_n_s32(0);
            for (size_t k = 0; k < group; k += 32, x += 32, from += 16) {
                const uint8x16_t v = vld1q_u8(from);
                acc[c] = vdotq_s32(acc[c], vreinterpretq_s8_u8(vandq_u8(v, mask)), vld1q_s8(x));
                acc[c] = vdotq_s32(acc[c], vreinterpretq_s8_u8(vshrq_n_u8(v, 4)), vld1q_s8(x + 16));
            }
        }
        const int32x4_t dot = vpaddq_s32(vpaddq_s32(acc[0], acc[1]), vpaddq_s32(acc[2], acc[3]));
        *a = vfmaq_f32(*a, vmulq_n_f32(one_of_each(s + 2 * g, w->scale_stride), row->xs[g]), vcvtq_f32_s32(dot));
        *b = vfmaq_n_f32(*b, one_of_each(t + 2 * g, w->scale_stride), row->sx[g]);
    }
}

/* Columns j .. j + 3; what lies at `ahead` is fetched meanwhile */
static float32x4_t four_columns(const mt_nibble_row *row, size_t j, const uint8_t *ahead, size_t group)
{
    const mt_mat *w = row->w;
    const uint8_t *w0 = w->w + j * w->stride, *w1 = w0 + w->stride, *w2 = w1 + w->stride, *w3 = w2 + w->stride;
    const uint8_t *s = w->scales + j * w->scale_stride, *t = w->biases + j * w->scale_stride;
    const size_t d = w->scale_stride;
    const int8_t *x = row->x;
    const float *xs = row->xs, *sx = row->sx;
    size_t turns = row->groups / TURN;
    float32x4_t a = vdupq_n_f32(0.0f), b = a;
    if (turns > 0) {
        switch (group) {
        case 32: TURNS(32); break;
        case 64: TURNS(64); break;
        default: TURNS(128); break;
        }
    }
    rest(&a, &b, row, j, row->groups / TURN * TURN, group);
    return vaddq_f32(a, b);
}

bool mt_q_nibbles_handles_dotprod(const mt_mat *w)
{
    return w->format == MT_FORMAT_AFFINE && w->bits == 4 && w->scale_type == MT_SCALE_BF16 &&
           (w->group == 32 || w->group == 64 || w->group == 128);
}

void mt_q_nibbles_dotprod(float *y, size_t n0, size_t n1, const mt_nibble_row *row)
{
    const mt_mat *w = row->w;
    for (size_t j = n0; j + 4 <= n1; j += 4)
        vst1q_f32(y + j, four_columns(row, j, w->w + (j + 4) * w->stride + AHEAD, w->group));
}
