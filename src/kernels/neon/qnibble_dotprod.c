/* Products of one row with AFFINE weights of 4 bits (qnibble.h): the loop that decides the speed of decoding. Four
   columns at a time, four groups in a turn of the loop, in assembly: the processor fills its four vector pipes only
   where an instruction is far from those whose results it needs, and compilers put them close together.

   A quad is a block of 32 weights of each of the four columns. Its nibbles are separated while the products of the quad
   before are added, three columns late; its sums are turned (block.h) in the gaps of the two quads that follow. So a
   turn of the loop ends with work for the next one, or for the code behind the loop; the first one works on zeros. In
   groups of 64 and 128 an even and an odd quad make a link.

   Registers: v0-3 and v4-7 sums of even and odd quads, v8-9 scales and v10-11 biases of four groups, v14 turned sums,
   v15 scales of a group, v16-19 low and v20-23 high nibbles of the columns, v24-27 temporary, v28-29 x, v30 mul of four
   blocks, v31 the constant 15; v12 and v13 are left for a and b. */
#include "kernels/neon/qnibble.h"

#include "kernels/block.h"
#include "kernels/neon/qload.h"

enum {
    TURN = 4 /* groups */,
    AHEAD = 16384 /* bytes by which weights are prefetched beyond the next four columns */
};

/* 16 bytes of a column */
#define SPLIT(w, lo, hi, q)                     \
    "ldr q" #lo ", [%[" #w "], #16 * " #q "]\n" \
    "ushr v" #hi ".16b, v" #lo ".16b, #4\n"     \
    "and v" #lo ".16b, v" #lo ".16b, v31.16b\n"
/* Weights are prefetched into the second-level cache long before use, and from there, one line of column c in each of
   four quads, into the first: instructions that wait for a missed load would fill the issue queues. */
#define FAR(q) "prfm pldl2keep, [%[ahead], #64 * " #q "]\n"
#define NEAR(w, c, q) ".if " #q " %% 4 == " #c "\n prfm pldl1keep, [%[" #w "], #128 + 16 * " #q "]\n .endif\n"
#define DOT(acc, lo, hi)                         \
    "sdot v" #acc ".4s, v" #lo ".16b, v28.16b\n" \
    "sdot v" #acc ".4s, v" #hi ".16b, v29.16b\n"
#define ZERO(a, b, c, d) "movi v" #a ".4s, #0\n movi v" #b ".4s, #0\n movi v" #c ".4s, #0\n movi v" #d ".4s, #0\n"

/* Quad q of a turn; p1-3 are the sums of columns 1-3 in the quad before, a0 that of column 0 in this one */
/* clang-format off */
#define QUAD(q, p1, p2, p3, zero, a0, gap0, gap1, gap2, gap3)                                                          \
    SPLIT(w0, 16, 20, q) NEAR(w0, 0, q) gap0 DOT(p1, 17, 21)                                                           \
    SPLIT(w1, 17, 21, q) NEAR(w1, 1, q) gap1 DOT(p2, 18, 22)                                                           \
    SPLIT(w2, 18, 22, q) NEAR(w2, 2, q) gap2 DOT(p3, 19, 23)                                                           \
    "ldp q28, q29, [%[x], #32 * " #q "]\n" zero                                                                        \
    SPLIT(w3, 19, 23, q) NEAR(w3, 3, q) FAR(q) gap3 DOT(a0, 16, 20)
/* clang-format on */
#define EVEN(q, gap0, gap1, gap2, gap3) QUAD(q, 5, 6, 7, ZERO(0, 1, 2, 3), 0, gap0, gap1, gap2, gap3)
#define ODD(q, gap0, gap1, gap2, gap3) QUAD(q, 1, 2, 3, ZERO(4, 5, 6, 7), 4, gap0, gap1, gap2, gap3)

/* The end of a block, number b of four: three sums of pairs, then the turn; at the end of a link a = fma(ws, sum, a).
   Sums go on from MT_DOT_START, or in the second block of a link from those of the first. */
#define PAIRS(a, b) "addp v" #a ".4s, v" #a ".4s, v" #b ".4s\n"
#define EVEN_1 PAIRS(0, 1)
#define EVEN_2 PAIRS(2, 3)
#define EVEN_3 PAIRS(0, 2) "ldr q14, [%[start]]\n add v0.4s, v0.4s, v14.4s\n ldr q14, [%[turn]], #16\n"
#define EVEN_4(b) "fmla v14.4s, v0.4s, v30.s[" #b "]\n"
#define ODD_1 PAIRS(4, 5)
#define ODD_2 PAIRS(6, 7)
#define ODD_3 PAIRS(4, 6) "ldr q14, [%[start]]\n add v4.4s, v4.4s, v14.4s\n ldr q14, [%[turn]], #16\n"
#define ODD_4(b) "fmla v14.4s, v4.4s, v30.s[" #b "]\n"
#define SECOND_3 PAIRS(4, 6) "add v4.4s, v4.4s, v14.4s\n ldr q14, [%[turn]], #16\n"
#define ADD "fmla %[a].4s, v14.4s, v15.4s\n"

/* Four bf16 of each column, turned to [group][column] */
#define LOAD4(from)                                              \
    "ldr d24, [%[" #from "]]\n ldr d25, [%[" #from "], %[d1]]\n" \
    "ldr d26, [%[" #from "], %[d2]]\n ldr d27, [%[" #from "], %[d3]]\n"
#define ZIP "zip1 v24.8h, v24.8h, v26.8h\n zip1 v25.8h, v25.8h, v27.8h\n"
#define ZIP_TO(lo, hi) "zip1 v" #lo ".8h, v24.8h, v25.8h\n zip2 v" #hi ".8h, v24.8h, v25.8h\n"
#define SCALES_1 LOAD4(s)
#define NEXT_MUL "ldr q30, [%[turn]], #16\n"
#define SCALES_2 ZIP_TO(8, 9)
#define BIASES_1 LOAD4(t)
#define BIASES_2 ZIP_TO(10, 11) "ldr q25, [%[sx]], #16\n"
#define WIDEN(to, from) "shll v" #to ".4s, v" #from ".4h, #16\n"
#define WIDEN_2(to, from) "shll2 v" #to ".4s, v" #from ".8h, #16\n"
#define ADD_BIAS(v, g) "fmla %[b].4s, v" #v ".4s, v25.s[" #g "]\n"

/* The order of the steps was found by measuring: what waits long, above all the last product of a link, comes late in
   the quad. */
/* clang-format off */
#define TURN_32                                                                                                        \
    EVEN(0, EVEN_3, EVEN_4(2) SCALES_1, ADD, ODD_1 ODD_2 ZIP WIDEN_2(15, 9))                                           \
    ODD(1, ODD_3, ODD_4(3) SCALES_2, ADD NEXT_MUL BIASES_1, EVEN_1 EVEN_2 WIDEN(15, 8))                                \
    EVEN(2, EVEN_3, EVEN_4(0) ZIP, ADD, ODD_1 ODD_2 WIDEN_2(15, 8) BIASES_2)                                           \
    ODD(3, ODD_3 WIDEN(26, 10) WIDEN_2(27, 10), ODD_4(1) ADD_BIAS(26, 0) ADD_BIAS(27, 1),                              \
        ADD WIDEN(26, 11) WIDEN_2(27, 11), EVEN_1 EVEN_2 WIDEN(15, 9) ADD_BIAS(26, 2) ADD_BIAS(27, 3))
#define TURN_64                                                                                                        \
    EVEN(0, EVEN_3, EVEN_4(2) ODD_1 SCALES_1, "", ODD_2 ZIP)                                                           \
    ODD(1, SECOND_3, EVEN_1 SCALES_2, ODD_4(3), ADD NEXT_MUL EVEN_2 WIDEN(15, 8))                                      \
    EVEN(2, EVEN_3, EVEN_4(0) ODD_1 BIASES_1, "", ODD_2)                                                               \
    ODD(3, SECOND_3, EVEN_1 ZIP, ODD_4(1), ADD EVEN_2 WIDEN_2(15, 8))                                                  \
    EVEN(4, EVEN_3 BIASES_2, EVEN_4(2) ODD_1, "", ODD_2 WIDEN(26, 10) WIDEN_2(27, 10))                                 \
    ODD(5, SECOND_3 ADD_BIAS(26, 0), EVEN_1 ADD_BIAS(27, 1), ODD_4(3), ADD NEXT_MUL EVEN_2 WIDEN(15, 9))               \
    EVEN(6, EVEN_3, EVEN_4(0) ODD_1, "", ODD_2 WIDEN(26, 11) WIDEN_2(27, 11))                                          \
    ODD(7, SECOND_3 ADD_BIAS(26, 2), EVEN_1 ADD_BIAS(27, 3), ODD_4(1), ADD EVEN_2 WIDEN_2(15, 9))
#define TURN_128                                                                                                       \
    EVEN(0, EVEN_3, EVEN_4(2) ODD_1 SCALES_1, "", ODD_2 ZIP)                                                           \
    ODD(1, SECOND_3, EVEN_1 SCALES_2, ODD_4(3), ADD EVEN_2 NEXT_MUL WIDEN(15, 8))                                      \
    EVEN(2, EVEN_3, EVEN_4(0) ODD_1 BIASES_1, "", ODD_2)                                                               \
    ODD(3, SECOND_3, EVEN_1 ZIP, ODD_4(1), ADD EVEN_2)                                                                 \
    EVEN(4, EVEN_3, EVEN_4(2) ODD_1 BIASES_2, "", ODD_2)                                                               \
    ODD(5, SECOND_3, EVEN_1 WIDEN(26, 10), ODD_4(3), ADD EVEN_2 NEXT_MUL WIDEN_2(15, 8))                               \
    EVEN(6, EVEN_3, EVEN_4(0) ODD_1 ADD_BIAS(26, 0), "", ODD_2)                                                        \
    ODD(7, SECOND_3, EVEN_1 WIDEN_2(27, 10), ODD_4(1), ADD EVEN_2)                                                     \
    EVEN(8, EVEN_3, EVEN_4(2) ODD_1 ADD_BIAS(27, 1), "", ODD_2)                                                        \
    ODD(9, SECOND_3, EVEN_1 WIDEN(26, 11), ODD_4(3), ADD EVEN_2 NEXT_MUL WIDEN(15, 9))                                 \
    EVEN(10, EVEN_3, EVEN_4(0) ODD_1 ADD_BIAS(26, 2), "", ODD_2)                                                       \
    ODD(11, SECOND_3, EVEN_1 WIDEN_2(27, 11), ODD_4(1), ADD EVEN_2)                                                    \
    EVEN(12, EVEN_3, EVEN_4(2) ODD_1 ADD_BIAS(27, 3), "", ODD_2)                                                       \
    ODD(13, SECOND_3, EVEN_1, ODD_4(3), ADD EVEN_2 NEXT_MUL WIDEN_2(15, 9))                                            \
    EVEN(14, EVEN_3, EVEN_4(0) ODD_1, "", ODD_2)                                                                       \
    ODD(15, SECOND_3, EVEN_1, ODD_4(1), ADD EVEN_2)
/* What is left after the loop */
#define REST_32 EVEN_3 EVEN_4(2) ADD WIDEN_2(15, 9) ODD_1 ODD_2 ODD_3 ODD_4(3) ADD
#define REST_64 EVEN_3 EVEN_4(2) ODD_1 ODD_2 SECOND_3 ODD_4(3) ADD
#define REST_128 REST_64

/* Adds `turns` > 0 turns of the loop to a and b; d1, d2 and d3: distances of the columns' scales from those of the
   first. */
#define TURNS(group)                                                                                                   \
    __asm__ volatile(                                                                                                  \
        "movi v0.4s, #0\n movi v1.4s, #0\n movi v2.4s, #0\n movi v3.4s, #0\n movi v4.4s, #0\n movi v5.4s, #0\n"        \
        "movi v6.4s, #0\n movi v7.4s, #0\n movi v9.4s, #0\n movi v15.4s, #0\n movi v17.4s, #0\n movi v18.4s, #0\n"     \
        "movi v19.4s, #0\n movi v21.4s, #0\n movi v22.4s, #0\n movi v23.4s, #0\n movi v30.4s, #0\n movi v31.16b, #15\n"\
        "1:\n" TURN_##group                                                                                            \
        "add %[w0], %[w0], #2 * " #group "\n add %[w1], %[w1], #2 * " #group "\n add %[w2], %[w2], #2 * " #group "\n"  \
        "add %[w3], %[w3], #2 * " #group "\n add %[x], %[x], #4 * " #group "\n add %[s], %[s], #8\n"                   \
        "add %[t], %[t], #8\n add %[ahead], %[ahead], #8 * " #group "\n subs %[turns], %[turns], #1\n b.ne 1b\n"       \
        DOT(5, 17, 21) DOT(6, 18, 22) DOT(7, 19, 23) REST_##group                                                      \
        : [a] "+w"(a), [b] "+w"(b), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [x] "+r"(x),           \
          [turn] "+r"(turn), [sx] "+r"(sx), [s] "+r"(s), [t] "+r"(t), [ahead] "+r"(ahead), [turns] "+r"(turns)         \
        : [d1] "r"(d), [d2] "r"(2 * d), [d3] "r"(3 * d), [start] "r"(start)                                            \
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
        memcpy(&v[c], p + c * stride, sizeof(*v));
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(v), 16));
}

/* The sums of the block at k, turned; they go on from `sum` */
MT_INLINE float32x4_t one_block(float32x4_t sum, const mt_nibble_row *row, size_t j, size_t k)
{
    const mt_mat *w = row->w;
    const int8x16_t even = vld1q_s8(row->x + k), odd = vld1q_s8(row->x + k + 16);
    int32x4_t acc[4];
    MT_UNROLL
    for (size_t c = 0; c < 4; c++) {
        const uint8x16_t v = vld1q_u8(w->w + (j + c) * w->stride + k / 2);
        acc[c] = vdotq_s32(vdupq_n_s32(0), vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15))), even);
        acc[c] = vdotq_s32(acc[c], vreinterpretq_s8_u8(vshrq_n_u8(v, 4)), odd);
    }
    const int32x4_t dot = vpaddq_s32(vpaddq_s32(acc[0], acc[1]), vpaddq_s32(acc[2], acc[3]));
    const float32x4_t all = vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(sum), dot));
    return vfmaq_n_f32(vdupq_n_f32(row->add[k / MT_BLOCK]), all, row->mul[k / MT_BLOCK]);
}

/* The last groups of columns j .. j + 3, fewer than TURN */
MT_INLINE void rest(float32x4_t *a, float32x4_t *b, const mt_nibble_row *row, size_t j, size_t g, size_t group)
{
    const mt_mat *w = row->w;
    const uint8_t *s = w->scales + j * w->scale_stride, *t = w->biases + j * w->scale_stride;
    const size_t link = mt_link(group) * MT_BLOCK;
    for (; g < row->groups; g++) {
        const float32x4_t scale = one_of_each(s + 2 * g, w->scale_stride);
        for (size_t k = g * group; k < (g + 1) * group; k += link) {
            float32x4_t sum = one_block(vdupq_n_f32(MT_DOT_START), row, j, k);
            if (link > MT_BLOCK)
                sum = one_block(sum, row, j, k + MT_BLOCK);
            *a = vfmaq_f32(*a, scale, sum);
        }
        *b = vfmaq_n_f32(*b, one_of_each(t + 2 * g, w->scale_stride), row->sx[g]);
    }
}

/* Columns j .. j + 3; prefetches from `ahead` meanwhile. */
static float32x4_t four_columns(const mt_nibble_row *row, size_t j, const uint8_t *ahead, size_t group)
{
    const mt_mat *w = row->w;
    const uint8_t *w0 = w->w + j * w->stride, *w1 = w0 + w->stride, *w2 = w1 + w->stride, *w3 = w2 + w->stride;
    const uint8_t *s = w->scales + j * w->scale_stride, *t = w->biases + j * w->scale_stride;
    const size_t d = w->scale_stride;
    const int8_t *x = row->x;
    const float *turn = row->stream, *sx = row->sx;
    static const int32_t start[4] = {MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS};
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
