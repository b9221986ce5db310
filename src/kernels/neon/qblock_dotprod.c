/* Products of one row with weights of GGUF's block types (qblock.h): nibbles that are integers or are looked up, and
   split codes of 5 and 6 bits; scales are f16, or share one. Four columns at a time, a quarter of the range apart, so
   that each is one stream of reads. Their scales are widened to [group][column] first, and their biases added up.

   Codes of SIGNED weights are multiplied as they are: what they are too large by, times the sum of x, is subtracted
   where sums of products begin. A block's sums begin with four numbers: one for each column's first lane, and in groups
   of 16 one for the third lane, where the second group's products begin. */
#include "kernels/neon/qblock.h"

#include "kernels/neon/qload.h"
#include "kernels/neon/qscale.h"

enum { AHEAD = 16384 /* bytes by which weights are prefetched beyond the next four columns */ };

typedef struct columns {
    const uint8_t *w[4], *high[4], *scales[4], *biases[4];
} columns;

/* ---- scales ---- */

/* Scales are written to out as [group][4]. */
MT_INLINE void put(float *out, size_t g, float32x4_t v)
{
    vst1q_f32(out + 4 * g, v);
}

MT_INLINE void put_sixteen(float *s, size_t g, int8x16_t v, float32x4_t d)
{
    const int16x8_t low = vmovl_s8(vget_low_s8(v)), high = vmovl_high_s8(v);
    put(s, g, vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), d));
    put(s, g + 1, vmulq_f32(vcvtq_f32_s32(vmovl_high_s16(low)), d));
    put(s, g + 2, vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), d));
    put(s, g + 3, vmulq_f32(vcvtq_f32_s32(vmovl_high_s16(high)), d));
}

/* Halves of four columns at p[c] + at */
MT_INLINE float32x4_t four_halves(const uint8_t *const p[4], size_t at)
{
    uint16x4_t h = vdup_n_u16(0);
    h = vld1_lane_u16((const uint16_t *)(const void *)(p[0] + at), h, 0);
    h = vld1_lane_u16((const uint16_t *)(const void *)(p[1] + at), h, 1);
    h = vld1_lane_u16((const uint16_t *)(const void *)(p[2] + at), h, 2);
    h = vld1_lane_u16((const uint16_t *)(const void *)(p[3] + at), h, 3);
    return vcvt_f32_f16(vreinterpret_f16_u16(h));
}

MT_INLINE void widen_8(float *s, const uint8_t *const p[4], size_t groups)
{
    for (size_t g = 0, at = 0; g < groups; g += 8, at += 10) {
        const float32x4_t d = four_halves(p, at);
        int8x16_t v[4];
        MT_UNROLL
        for (int c = 0; c < 4; c++)
            v[c] = vcombine_s8(vld1_s8((const int8_t *)p[c] + at + 2), vdup_n_s8(0));
        const int8x16_t even = vzip1q_s8(v[0], v[2]), odd = vzip1q_s8(v[1], v[3]);
        put_sixteen(s, g, vzip1q_s8(even, odd), d);
        put_sixteen(s, g + 4, vzip2q_s8(even, odd), d);
    }
}

MT_INLINE void widen_16(float *s, const uint8_t *const p[4], size_t groups)
{
    for (size_t g = 0, at = 0; g < groups; g += 16, at += 18) {
        const float32x4_t d = four_halves(p, at);
        int8x16_t v[4];
        MT_UNROLL
        for (int c = 0; c < 4; c++)
            v[c] = vld1q_s8((const int8_t *)p[c] + at + 2);
        const int8x16_t even = vzip1q_s8(v[0], v[2]), odd = vzip1q_s8(v[1], v[3]);
        const int8x16_t even2 = vzip2q_s8(v[0], v[2]), odd2 = vzip2q_s8(v[1], v[3]);
        put_sixteen(s, g, vzip1q_s8(even, odd), d);
        put_sixteen(s, g + 4, vzip2q_s8(even, odd), d);
        put_sixteen(s, g + 8, vzip1q_s8(even2, odd2), d);
        put_sixteen(s, g + 12, vzip2q_s8(even2, odd2), d);
    }
}

MT_INLINE void widen_f16(float *s, const uint8_t *const p[4], size_t groups)
{
    size_t g = 0;
    for (; g + 4 <= groups; g += 4) {
        uint16x8_t v[4];
        MT_UNROLL
        for (int c = 0; c < 4; c++)
            v[c] = vcombine_u16(vreinterpret_u16_u8(vld1_u8(p[c] + 2 * g)), vdup_n_u16(0));
        const uint16x8_t even = vzip1q_u16(v[0], v[2]), odd = vzip1q_u16(v[1], v[3]);
        const float16x8_t low = vreinterpretq_f16_u16(vzip1q_u16(even, odd));
        const float16x8_t high = vreinterpretq_f16_u16(vzip2q_u16(even, odd));
        put(s, g, vcvt_f32_f16(vget_low_f16(low)));
        put(s, g + 1, vcvt_high_f32_f16(low));
        put(s, g + 2, vcvt_f32_f16(vget_low_f16(high)));
        put(s, g + 3, vcvt_high_f32_f16(high));
    }
    for (; g < groups; g++)
        put(s, g, four_halves(p, 2 * g));
}

static void widen(float *s, const uint8_t *const p[4], size_t groups, mt_scale_type type)
{
    if (type == MT_SCALE_8_OF_F16)
        widen_8(s, p, groups);
    else if (type == MT_SCALE_16_OF_F16)
        widen_16(s, p, groups);
    else
        widen_f16(s, p, groups);
}

/* ---- products ---- */

/* The products of 32 nibbles with x, added to what `start` has: the codes as they are, or looked up. In assembly, as
   compilers copy `start` for every column instead of loading it. */
MT_INLINE int32x4_t dot_nibbles(const uint8_t *w, const int32_t *start, int8x16_t even, int8x16_t odd, mt_code code,
                                const mt_coder *coder)
{
    int32x4_t s;
    uint8x16_t a, b;
    __asm__("ldr %q[s], [%[start]]\n ldr %q[a], [%[w]]\n ushr %[b].16b, %[a].16b, #4\n and %[a].16b, %[a].16b, %[m].16b"
            : [s] "=&w"(s), [a] "=&w"(a), [b] "=&w"(b)
            : [start] "r"(start), [w] "r"(w), [m] "w"(coder->mask), "m"(*(const uint8_t(*)[16])w),
              "m"(*(const int32_t(*)[4])start));
    if (code == MT_CODE_TABLE) {
        a = vqtbl1q_u8(coder->bytes[0], a);
        b = vqtbl1q_u8(coder->bytes[0], b);
    }
    return vdotq_s32(vdotq_s32(s, vreinterpretq_s8_u8(a), even), vreinterpretq_s8_u8(b), odd);
}

/* The same for split codes, whose other bits are `shift` bits above the lowest of each nibble at high. */
#define DOT_SPLIT(shift)                                                                                         \
    __asm__("ldr %q[s], [%[start]]\n ldr %q[h], [%[high]]\n ldr %q[a], [%[w]]\n ldr %q[b], [%[w]]\n" shift       \
            "sli %[a].16b, %[h].16b, #4\n and %[h].16b, %[h].16b, %[upper].16b\n"                                \
            "and %[a].16b, %[a].16b, %[m].16b\n sri %[h].16b, %[b].16b, #4\n"                                    \
            "sdot %[s].4s, %[a].16b, %[even].16b\n sdot %[s].4s, %[h].16b, %[odd].16b"                           \
            : [s] "=&w"(s), [a] "=&w"(a), [b] "=&w"(b), [h] "=&w"(h)                                             \
            : [start] "r"(start), [w] "r"(w), [high] "r"(high), [m] "w"(coder->mask), [upper] "w"(upper),        \
              [even] "w"(even), [odd] "w"(odd), "m"(*(const uint8_t(*)[16])w), "m"(*(const uint8_t(*)[16])high), \
              "m"(*(const int32_t(*)[4])start))
MT_INLINE int32x4_t dot_split(const uint8_t *w, const uint8_t *high, const int32_t *start, int8x16_t even,
                              int8x16_t odd, size_t shift, const mt_coder *coder)
{
    const uint8x16_t upper = vbicq_u8(coder->mask, vdupq_n_u8(15));
    int32x4_t s;
    uint8x16_t a, b, h;
    switch (shift) {
    case 0: DOT_SPLIT(""); break;
    case 1: DOT_SPLIT("ushr %[h].16b, %[h].16b, #1\n"); break;
    case 2: DOT_SPLIT("ushr %[h].16b, %[h].16b, #2\n"); break;
    default: DOT_SPLIT("ushr %[h].16b, %[h].16b, #3\n"); break;
    }
    return s;
}

/* Sums of block b of the four columns, pairs of lanes added: columns 0 and 1, 2 and 3 */
typedef struct pairs {
    int32x4_t low, high;
} pairs;

MT_INLINE pairs block_of(const columns *at, const int8_t *x, const int32_t *start, size_t b, size_t of_piece,
                         mt_code code, const mt_coder *coder)
{
    const int8x16_t even = vld1q_s8(x + 32 * b), odd = vld1q_s8(x + 32 * b + 16);
    const size_t each = code == MT_CODE_SPLIT5 ? 4 : 2, bits = code == MT_CODE_SPLIT5 ? 1 : 2;
    int32x4_t acc[4];
    MT_UNROLL
    for (int c = 0; c < 4; c++)
        acc[c] = code == MT_CODE_SPLIT5 || code == MT_CODE_SPLIT6
                     ? dot_split(at->w[c] + 16 * b, at->high[c] + b / each * 16, start + 4 * b, even, odd,
                                 of_piece * bits, coder)
                     : dot_nibbles(at->w[c] + 16 * b, start + 4 * b, even, odd, code, coder);
    return (pairs){vpaddq_s32(acc[0], acc[1]), vpaddq_s32(acc[2], acc[3])};
}

/* The two sums of R4 */
typedef struct result {
    float32x4_t a, b;
} result;

/* What a row and four columns are multiplied with: of each block what its sums begin with, [block][4]; scales, and
   biases or NULL, [group][4] */
typedef struct numbers {
    const int32_t *start;
    const float *ws, *wb;
} numbers;

/* Adds `count` blocks from b on, at most four, in groups of 32. */
MT_INLINE void add_blocks(result *r, const columns *at, const mt_nibble_row *row, const numbers *n, size_t b,
                          size_t count, mt_code code, const mt_coder *coder, bool biased)
{
    MT_UNROLL
    for (size_t i = 0; i < count; i++) {
        const pairs p = block_of(at, row->x, n->start, b + i, i, code, coder);
        const float32x4_t sum = vreinterpretq_f32_s32(vpaddq_s32(p.low, p.high));
        const float32x4_t t = vfmaq_f32(vld1q_dup_f32(row->add + b + i), sum, vld1q_dup_f32(row->mul + b + i));
        r->a = vfmaq_f32(r->a, vld1q_f32(n->ws + 4 * (b + i)), t);
        if (biased)
            r->b = vfmaq_f32(r->b, vld1q_f32(n->wb + 4 * (b + i)), vld1q_dup_f32(row->sx + b + i));
    }
}

/* The same for two blocks in groups of 16 */
MT_INLINE void add_blocks_16(result *r, const columns *at, const mt_nibble_row *row, const numbers *n, size_t b,
                             mt_code code, const mt_coder *coder)
{
    MT_UNROLL
    for (size_t i = 0; i < 2; i++) {
        const size_t u = 2 * (b + i);
        const pairs p = block_of(at, row->x, n->start, b + i, i, code, coder);
        const float32x4_t mul = vld1q_dup_f32(row->mul + u), add = vld1q_dup_f32(row->add + u);
        const float32x4_t first = vreinterpretq_f32_s32(vuzp1q_s32(p.low, p.high));
        const float32x4_t second = vreinterpretq_f32_s32(vuzp2q_s32(p.low, p.high));
        r->a = vfmaq_f32(r->a, vld1q_f32(n->ws + 4 * u), vfmaq_f32(add, first, mul));
        r->a = vfmaq_f32(r->a, vld1q_f32(n->ws + 4 * u + 4), vfmaq_f32(add, second, mul));
    }
}

/* Weights are prefetched into the second-level cache long before use, and from there into the first. */
MT_INLINE void prefetch(const uint8_t *p, size_t lines)
{
    MT_UNROLL
    for (size_t i = 0; i < lines; i++)
        __builtin_prefetch(p + 64 * i, 0, 2);
}

MT_INLINE void prefetch_near(const columns *at, size_t b)
{
    MT_UNROLL
    for (int c = 0; c < 4; c++)
        __builtin_prefetch(at->w[c] + 16 * b + 128, 0, 3);
}

MT_INLINE float32x4_t multiply(const columns *at, const mt_nibble_row *row, const numbers *n, mt_code code, bool biased)
{
    const mt_coder coder = mt_coder_of(code, row->w);
    const size_t blocks = row->w->k / MT_BLOCK;
    result r = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
    size_t b = 0;
    const uint8_t *ahead = at->w[3] + row->w->stride + AHEAD;
    if (code == MT_CODE_SPLIT6) {
        for (; b < blocks; b += 2, ahead += 192) {
            prefetch(ahead, 3);
            if (b % 4 == 0)
                prefetch_near(at, b);
            add_blocks_16(&r, at, row, n, b, code, &coder);
        }
        return r.a;
    }
    const size_t lines = code == MT_CODE_SPLIT5 ? 5 : 4;
    for (; b + 4 <= blocks; b += 4, ahead += 64 * lines) {
        prefetch(ahead, lines);
        prefetch_near(at, b);
        add_blocks(&r, at, row, n, b, 4, code, &coder, biased);
    }
    switch (blocks - b) {
    case 3: add_blocks(&r, at, row, n, b, 3, code, &coder, biased); break;
    case 2: add_blocks(&r, at, row, n, b, 2, code, &coder, biased); break;
    case 1: add_blocks(&r, at, row, n, b, 1, code, &coder, biased); break;
    default: break;
    }
    return biased ? vaddq_f32(r.a, r.b) : r.a;
}

static float32x4_t multiply_codes(const columns *at, const mt_nibble_row *row, const numbers *n, mt_code code)
{
    const bool biased = n->wb != NULL;
    switch (code) {
    case MT_CODE_4: return biased ? multiply(at, row, n, MT_CODE_4, true) : multiply(at, row, n, MT_CODE_4, false);
    case MT_CODE_SPLIT5:
        return biased ? multiply(at, row, n, MT_CODE_SPLIT5, true) : multiply(at, row, n, MT_CODE_SPLIT5, false);
    case MT_CODE_SPLIT6: return multiply(at, row, n, MT_CODE_SPLIT6, false);
    default: return multiply(at, row, n, MT_CODE_TABLE, false);
    }
}

/* Which of this file's codes a matrix has. Nibbles of SIGNED weights are multiplied as they are. */
static mt_code code_of(const mt_mat *w)
{
    return w->format == MT_FORMAT_SIGNED && w->bits == 4 ? MT_CODE_4 : mt_code_of(w);
}

bool mt_q_block_handles_dotprod(const mt_mat *w)
{
    const mt_code code = code_of(w);
    const mt_scale_type type = w->scale_type;
    if (w->group == 16)
        return code == MT_CODE_SPLIT6 && type == MT_SCALE_16_OF_F16;
    return w->group == 32 && (code == MT_CODE_4 || code == MT_CODE_TABLE || code == MT_CODE_SPLIT5) &&
           (type == MT_SCALE_F16 || type == MT_SCALE_8_OF_F16);
}

/* What the sums of each block begin with; `less` of each code is too much. */
static void write_starts(int32_t *out, const int32_t *sum, size_t blocks, size_t group, int less)
{
    for (size_t b = 0; b < blocks; b++, out += 4) {
        const size_t u = group == 16 ? 2 * b : b;
        out[0] = MT_DOT_BITS - less * sum[u];
        out[1] = out[3] = 0;
        out[2] = group == 16 ? MT_DOT_BITS - less * sum[u + 1] : 0;
    }
}

void mt_q_block_dotprod(float *y, size_t n0, size_t step, const mt_nibble_row *row, const int32_t *sum,
                        uint8_t *scratch)
{
    const mt_mat *w = row->w;
    const mt_code code = code_of(w);
    const size_t blocks = w->k / MT_BLOCK;
    int32_t *start = (int32_t *)(void *)scratch;
    float *ws = (float *)(void *)(start + 4 * blocks), *wb = ws + 4 * row->groups;
    write_starts(start, sum, blocks, w->group, code == MT_CODE_TABLE ? 0 : mt_code_lift(w));
    for (size_t j = n0; j < n0 + step; j++) {
        columns at;
        for (size_t c = 0; c < 4; c++) {
            const size_t r = n0 + 4 * (j - n0) + c;
            at.w[c] = w->w + r * w->stride;
            at.high[c] = at.w[c] + w->k / 2;
            at.scales[c] = w->scales + r * w->scale_stride;
            at.biases[c] = w->biases ? w->biases + r * w->scale_stride : NULL;
        }
        widen(ws, at.scales, row->groups, w->scale_type);
        if (w->biases)
            widen(wb, at.biases, row->groups, w->scale_type);
        const numbers n = {.start = start, .ws = ws, .wb = w->biases ? wb : NULL};
        const float32x4_t a = multiply_codes(&at, row, &n, code);
        vst1q_f32(y + n0 + 4 * (j - n0), a);
    }
}
