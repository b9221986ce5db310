/* Products of one row with MXFP4 weights (qmx.h). Four columns at a time, a quarter of the range apart, so that each is
   one stream of reads; four groups in a turn of the loop, in assembly like qnibble_dotprod.c, since compilers leave a
   third of the pipes idle.

   A quad is a block of 32 weights of each of the four columns, and each of its four steps takes one column: while the
   nibbles of a column are separated, those of the column before are looked up, and those of the one before that are
   multiplied; the column of three steps later is loaded. The sums of a quad are folded in the next quad, and turned
   (block.h) and added in the one after that. So a turn of the loop ends with work for the next one, or for the code
   behind the loop; the first one works on zeros. What the last turn loads for a next one is in the rows that follow
   those of the first three columns.

   Registers: v0-3 and v4-7 sums of even and odd quads, v8-9 and v10-11 their x, v14 folded and v28 turned sums, v15
   scales of a group, v16-23 low and v24-27 high nibbles, v29 mul of four blocks, v30 the constant 15, v31 the values of
   nibbles; v12 is left for a. */
#include "kernels/neon/qmx.h"

#include "kernels/neon/qload.h"

enum { TURN = 4 /* groups */ };

/* l, h: the column whose nibbles come apart; l1, h1: that before it; l2, h2: that before this, with its sums s and x */
#define STEP(next, w, at, l, h, l1, h1, start1, l2, h2, s, even, odd) \
    "ldr q" #next ", [%[" #w "], #" #at "]\n"                         \
    "ushr v" #h ".16b, v" #l ".16b, #4\n"                             \
    "and v" #l ".16b, v" #l ".16b, v30.16b\n"                         \
    "ldr q" #start1 ", [%[start]]\n"                                  \
    "tbl v" #l1 ".16b, {v31.16b}, v" #l1 ".16b\n"                     \
    "tbl v" #h1 ".16b, {v31.16b}, v" #h1 ".16b\n"                     \
    "sdot v" #s ".4s, v" #l2 ".16b, v" #even ".16b\n"                 \
    "sdot v" #s ".4s, v" #h2 ".16b, v" #odd ".16b\n"
#define PAIRS(to, a, b) "addp v" #to ".4s, v" #a ".4s, v" #b ".4s\n"
#define NEXT_ADD "ldr q28, [%[turn]], #16\n"
#define NEXT_MUL "ldr q29, [%[turn]], #16\n"
#define NEXT_SCALE "ldr d15, [%[s]], #8\n shll v15.4s, v15.4h, #16\n"
#define TURN_SUM(b) "fmla v28.4s, v14.4s, v29.s[" #b "]\n"
#define ADD "fmla %[a].4s, v28.4s, v15.4s\n"

/* Quad number q of a turn, whose weights lie at `at` and those after it at `then`; `before` is that of two quads ago */
#define EVEN(q, at, then, before, more)                                                                             \
    PAIRS(14, 0, 2)                                                                                                 \
    NEXT_ADD "ldp q8, q9, [%[x], #32 * " #q "]\n" STEP(19, w3, at, 16, 24, 23, 27, 7, 22, 26, 6, 10, 11) NEXT_SCALE \
    TURN_SUM(before) STEP(20, w0, then, 17, 25, 16, 24, 0, 23, 27, 7, 10, 11) PAIRS(4, 4, 5)                        \
        STEP(21, w1, then, 18, 26, 17, 25, 1, 16, 24, 0, 8, 9)                                                      \
            more ADD STEP(22, w2, then, 19, 27, 18, 26, 2, 17, 25, 1, 8, 9) PAIRS(6, 6, 7)
#define ODD(q, at, then, before, more)                                                                              \
    PAIRS(14, 4, 6)                                                                                                 \
    NEXT_ADD "ldp q10, q11, [%[x], #32 * " #q "]\n" STEP(23, w3, at, 20, 24, 19, 27, 3, 18, 26, 2, 8, 9) NEXT_SCALE \
    TURN_SUM(before) STEP(16, w0, then, 21, 25, 20, 24, 4, 19, 27, 3, 8, 9) PAIRS(0, 0, 1)                          \
        STEP(17, w1, then, 22, 26, 21, 25, 5, 20, 24, 4, 10, 11)                                                    \
            more ADD STEP(18, w2, then, 23, 27, 22, 26, 6, 21, 25, 5, 10, 11) PAIRS(2, 2, 3)

/* clang-format off */
#define ZERO(v) "movi v" #v ".2d, #0\n"
#define BEGIN                                                                                                          \
    "ldr q16, [%[w0]]\n ldr q17, [%[w1]]\n ldr q18, [%[w2]]\n movi v30.16b, #15\n"                                     \
    ZERO(0) ZERO(1) ZERO(2) ZERO(3) ZERO(4) ZERO(5) ZERO(6) ZERO(7) ZERO(14) ZERO(15) ZERO(22) ZERO(23) ZERO(24)       \
    ZERO(25) ZERO(26) ZERO(27) ZERO(28) ZERO(29)
#define END                                                                                                            \
    "ldr q7, [%[start]]\n tbl v23.16b, {v31.16b}, v23.16b\n tbl v27.16b, {v31.16b}, v27.16b\n"                         \
    PAIRS(14, 0, 2) NEXT_ADD                                                                                           \
    "sdot v6.4s, v22.16b, v10.16b\n sdot v6.4s, v26.16b, v11.16b\n"                                                    \
    "sdot v7.4s, v23.16b, v10.16b\n sdot v7.4s, v27.16b, v11.16b\n"                                                    \
    NEXT_SCALE TURN_SUM(2) ADD PAIRS(4, 4, 5) PAIRS(6, 6, 7) PAIRS(14, 4, 6) NEXT_ADD NEXT_SCALE TURN_SUM(3) ADD
#define LOOP                                                                                                           \
    "1:\n" EVEN(0, 0, 16, 2, "") ODD(1, 16, 32, 3, NEXT_MUL) EVEN(2, 32, 48, 0, "") ODD(3, 48, 64, 1, "")              \
    "add %[w0], %[w0], #64\n add %[w1], %[w1], #64\n add %[w2], %[w2], #64\n add %[w3], %[w3], #64\n"                  \
    "add %[x], %[x], #128\n subs %[turns], %[turns], #1\n b.ne 1b\n"
/* clang-format on */

/* `turns` > 0 turns of four columns. scales: eight zeros, then [group][4] bf16; stream: as mt_nibble_stream writes it,
   halved */
MT_INLINE float32x4_t turns_of(const mt_nibble_row *row, const uint8_t *const p[4], const uint16_t *scales,
                               const float *stream, size_t turns)
{
    static const int32_t start[4] = {MT_DOT_BITS, 0, 0, 0};
    const uint8_t *w0 = p[0], *w1 = p[1], *w2 = p[2], *w3 = p[3];
    const int8_t *x = row->x;
    const float *turn = stream;
    const uint16_t *s = scales;
    float32x4_t a = vdupq_n_f32(0.0f);
    register uint8x16_t numbers __asm__("v31") = mt_coder_of(MT_CODE_TABLE, row->w).bytes[0];
    __asm__ volatile(BEGIN LOOP END
                     : [a] "+w"(a), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [x] "+r"(x),
                       [turn] "+r"(turn), [s] "+r"(s), [turns] "+r"(turns)
                     : [start] "r"(start), "w"(numbers)
                     : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v14",
                       "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
                       "v29", "v30");
    return a;
}

/* The last groups, fewer than TURN */
MT_INLINE float32x4_t rest(float32x4_t a, const mt_nibble_row *row, const uint8_t *const p[4], const uint16_t *scales,
                           size_t g)
{
    const mt_coder coder = mt_coder_of(MT_CODE_TABLE, row->w);
    for (; g < row->groups; g++) {
        const int8x16_t even = vld1q_s8(row->x + g * MT_BLOCK), odd = vld1q_s8(row->x + g * MT_BLOCK + 16);
        int32x4_t acc[4];
        MT_UNROLL
        for (size_t c = 0; c < 4; c++) {
            const mt_paired w = mt_paired_load(p[c] + g * MT_BLOCK / 2, MT_CODE_TABLE, &coder);
            acc[c] = vdotq_s32(vdotq_s32(mt_zero(), w.even, even), w.odd, odd);
        }
        const int32x4_t dot = vpaddq_s32(vpaddq_s32(acc[0], acc[1]), vpaddq_s32(acc[2], acc[3]));
        const float32x4_t sum = vreinterpretq_f32_s32(vaddq_s32(vdupq_n_s32(MT_DOT_BITS), dot));
        const float32x4_t ws = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(scales + 8 + 4 * g), 16));
        a = vfmaq_f32(a, vmulq_n_f32(ws, 0.5f), vfmaq_n_f32(vdupq_n_f32(row->add[g]), sum, row->mul[g]));
    }
    return a;
}

/* The exponents of four groups of four columns, [group][column], as bf16; 2^-127 is one without an exponent */
MT_INLINE void widen(uint16_t *out, uint8x16_t e)
{
    vst1q_u16(out, vmaxq_u16(vshll_n_u8(vget_low_u8(e), 7), vdupq_n_u16(0x40)));
    vst1q_u16(out + 8, vmaxq_u16(vshll_high_n_u8(e, 7), vdupq_n_u16(0x40)));
}

MT_INLINE void write_sixteen(uint16_t *out, const uint8_t *const s[4], size_t g)
{
    const uint8x16_t a = vld1q_u8(s[0] + g), b = vld1q_u8(s[1] + g), c = vld1q_u8(s[2] + g), d = vld1q_u8(s[3] + g);
    const uint8x16_t ac = vzip1q_u8(a, c), bd = vzip1q_u8(b, d), ac2 = vzip2q_u8(a, c), bd2 = vzip2q_u8(b, d);
    widen(out + 4 * g, vzip1q_u8(ac, bd));
    widen(out + 4 * g + 16, vzip2q_u8(ac, bd));
    widen(out + 4 * g + 32, vzip1q_u8(ac2, bd2));
    widen(out + 4 * g + 48, vzip2q_u8(ac2, bd2));
}

/* Exponents of four columns, transposed and widened; the last sixteen groups may overlap those before them. */
MT_INLINE void write_scales(uint16_t *out, const uint8_t *const s[4], size_t groups)
{
    for (size_t g = 0; groups >= 16 && g < groups; g += 16)
        write_sixteen(out, s, g + 16 <= groups ? g : groups - 16);
    for (size_t g = 0; groups < 16 && g < groups; g++)
        for (size_t c = 0; c < 4; c++)
            out[4 * g + c] = s[c][g] ? (uint16_t)(s[c][g] << 7) : 0x40;
}

/* Codes stand for twice the weights: instead of halving each scale, the loop uses turns that give half the sums. The
   result is the same to the last bit: a scale of activations has its last two bits cleared, so half of a sum keeps all
   its bits, however small it is; and a sum that is too large is so already by its `add` (block.h). */
static void write_halves(float *out, const mt_nibble_row *row)
{
    for (size_t i = 0; i < mt_nibble_floats(row->groups); i += 4)
        vst1q_f32(out + i, vmulq_n_f32(vld1q_f32(row->stream + i), 0.5f));
}

void mt_q_mx_dotprod(float *y, size_t n0, size_t step, const mt_nibble_row *row, uint8_t *scratch)
{
    const mt_mat *w = row->w;
    float *stream = (float *)(void *)scratch;
    uint16_t *scales = (uint16_t *)(void *)(stream + mt_nibble_floats(row->groups));
    const size_t turns = row->groups / TURN;
    write_halves(stream, row);
    memset(scales, 0, 8 * sizeof(*scales));
    for (size_t j = n0; j < n0 + step; j++) {
        const uint8_t *p[4], *s[4];
        for (size_t c = 0; c < 4; c++) {
            p[c] = w->w + (j + c * step) * w->stride;
            s[c] = w->scales + (j + c * step) * w->scale_stride;
        }
        write_scales(scales + 8, s, row->groups);
        float32x4_t a = turns ? turns_of(row, p, scales, stream, turns) : vdupq_n_f32(0.0f);
        a = rest(a, row, p, scales, turns * TURN);
        vst1q_lane_f32(y + j, a, 0);
        vst1q_lane_f32(y + j + step, a, 1);
        vst1q_lane_f32(y + j + 2 * step, a, 2);
        vst1q_lane_f32(y + j + 3 * step, a, 3);
    }
}
