/* Integer products of a few rows, one tile of up to SINGLE pairs, with weights read in place: AFFINE of 4 or 8 bits
   with bf16 scales. Four columns at a time, a quarter of the range apart, so that each is one stream of reads. */
#include "kernels/neon/qmmla.h"
#include "kernels/neon/qscale.h"

typedef struct columns {
    const uint8_t *w[4], *scales[4], *biases[4];
} columns;

/* The sums of the next block, turned */
MT_INLINE void next_block(int32x4_t d[SINGLE][2], columns *at, const int8_t **x, const float **turn, int pairs,
                          mt_code code, const mt_coder *coder)
{
    const size_t bytes = 4 * mt_code_bits(code);
    steps left = load_steps(at->w[0], at->w[1], NULL, NULL, 0, code, coder),
          right = load_steps(at->w[2], at->w[3], NULL, NULL, 0, code, coder);
    MT_UNROLL
    for (int s = 0; s < 4; s++) {
        at->w[s] += bytes;
        MT_UNROLL
        for (int i = 0; i < pairs; i++, *x += 16) {
            int8x16_t v = vld1q_s8(*x);
            d[i][0] = multiply_add(d[i][0], left.v[s], v, code == MT_CODE_8);
            d[i][1] = multiply_add(d[i][1], right.v[s], v, code == MT_CODE_8);
        }
    }
    MT_UNROLL
    for (int i = 0; i < pairs; i++) {
        d[i][0] = vreinterpretq_s32_f32(turned(d[i][0], *turn, i, pairs));
        d[i][1] = vreinterpretq_s32_f32(turned(d[i][1], *turn, i, pairs));
    }
    *turn += pairs * 8;
}

/* a += the next group; ws are its scales */
MT_INLINE void next_group(float32x4_t a[SINGLE][2], columns *at, const int8_t **x, float32x4_t ws, const float **turn,
                          size_t group, int pairs, mt_code code, const mt_coder *coder)
{
    const float32x4_t low = vzip1q_f32(ws, ws), high = vzip2q_f32(ws, ws);
    const size_t link = mt_link(group) * MT_BLOCK;
    for (size_t k = 0; k < group; k += link) {
        int32x4_t d[SINGLE][2];
        MT_UNROLL
        for (int i = 0; i < pairs; i++) {
            d[i][0] = start();
            d[i][1] = start();
        }
        next_block(d, at, x, turn, pairs, code, coder);
        if (link > MT_BLOCK)
            next_block(d, at, x, turn, pairs, code, coder);
        MT_UNROLL
        for (int i = 0; i < pairs; i++) {
            a[i][0] = vfmaq_f32(a[i][0], low, vreinterpretq_f32_s32(d[i][0]));
            a[i][1] = vfmaq_f32(a[i][1], high, vreinterpretq_f32_s32(d[i][1]));
        }
    }
}

MT_INLINE float32x4_t one_scale(const uint8_t *const row[4], size_t g)
{
    mt_scale_rows s = {.row = {row[0], row[1], row[2], row[3]}, .type = MT_SCALE_BF16};
    return mt_scale_one(&s, g);
}

MT_INLINE void multiply_groups(float32x4_t a[SINGLE][2], columns at, const mt_small *p, int pairs, mt_code code)
{
    const mt_coder coder = mt_coder_of(code, p->w);
    const int8_t *x = p->x;
    const float *turn = p->turns;
    size_t g = 0;
    for (; g + 4 <= p->groups; g += 4) {
        mt_f32x4x4 ws = mt_scale_block_bf16(at.scales, g);
        MT_UNROLL
        for (int u = 0; u < 4; u++)
            next_group(a, &at, &x, ws.v[u], &turn, p->w->group, pairs, code, &coder);
    }
    for (; g < p->groups; g++)
        next_group(a, &at, &x, one_scale(at.scales, g), &turn, p->w->group, pairs, code, &coder);
}

/* b[row] on the four columns */
MT_INLINE void small_biases(float32x4_t b[2 * SINGLE], const columns *at, const mt_small *p, int pairs)
{
    size_t g = 0;
    for (; g + 4 <= p->groups; g += 4) {
        mt_f32x4x4 wb = mt_scale_block_bf16(at->biases, g);
        MT_UNROLL
        for (int i = 0; i < 2 * pairs; i++) {
            float32x4_t sx = vld1q_f32(p->sx + (size_t)i * p->sx_stride + g);
            b[i] = vfmaq_laneq_f32(b[i], wb.v[0], sx, 0);
            b[i] = vfmaq_laneq_f32(b[i], wb.v[1], sx, 1);
            b[i] = vfmaq_laneq_f32(b[i], wb.v[2], sx, 2);
            b[i] = vfmaq_laneq_f32(b[i], wb.v[3], sx, 3);
        }
    }
    for (; g < p->groups; g++) {
        float32x4_t wb = one_scale(at->biases, g);
        MT_UNROLL
        for (int i = 0; i < 2 * pairs; i++)
            b[i] = vfmaq_n_f32(b[i], wb, p->sx[(size_t)i * p->sx_stride + g]);
    }
}

MT_INLINE void small(const mt_small *p, int pairs, mt_code code)
{
    const size_t step = p->step;
    for (size_t j = p->n0; j < p->n0 + step; j++) {
        columns at;
        float32x4_t a[SINGLE][2], b[2 * SINGLE];
        MT_UNROLL
        for (size_t c = 0; c < 4; c++) {
            at.w[c] = p->w->w + (j + c * step) * p->w->stride;
            at.scales[c] = p->w->scales + (j + c * step) * p->w->scale_stride;
            at.biases[c] = p->w->biases + (j + c * step) * p->w->scale_stride;
        }
        MT_UNROLL
        for (int i = 0; i < pairs; i++)
            a[i][0] = a[i][1] = b[2 * i] = b[2 * i + 1] = vdupq_n_f32(0.0f);
        multiply_groups(a, at, p, pairs, code);
        small_biases(b, &at, p, pairs);
        MT_UNROLL
        for (int i = 0; i < 2 * pairs; i++) {
            float32x4_t v = i % 2 == 0 ? vuzp1q_f32(a[i / 2][0], a[i / 2][1]) : vuzp2q_f32(a[i / 2][0], a[i / 2][1]);
            float *y = p->y + (size_t)i * p->ldy + j;
            v = vaddq_f32(v, b[i]);
            if ((size_t)i < p->m) {
                vst1q_lane_f32(y, v, 0);
                vst1q_lane_f32(y + step, v, 1);
                vst1q_lane_f32(y + 2 * step, v, 2);
                vst1q_lane_f32(y + 3 * step, v, 3);
            }
        }
    }
}

#define SMALL_FUNCTION(name, pairs, code) \
    static void name(const mt_small *p)   \
    {                                     \
        small(p, pairs, code);            \
    }
SMALL_FUNCTION(small_1_4bit, 1, MT_CODE_4)
SMALL_FUNCTION(small_2_4bit, 2, MT_CODE_4)
SMALL_FUNCTION(small_3_4bit, 3, MT_CODE_4)
SMALL_FUNCTION(small_4_4bit, 4, MT_CODE_4)
SMALL_FUNCTION(small_1_8bit, 1, MT_CODE_8)
SMALL_FUNCTION(small_2_8bit, 2, MT_CODE_8)
SMALL_FUNCTION(small_3_8bit, 3, MT_CODE_8)
SMALL_FUNCTION(small_4_8bit, 4, MT_CODE_8)

bool mt_q_small_handles_i8mm(const mt_mat *w, size_t m)
{
    return m <= 2 * SINGLE && w->format == MT_FORMAT_AFFINE && (w->bits == 4 || w->bits == 8) &&
           w->scale_type == MT_SCALE_BF16;
}

void mt_q_small_i8mm(const mt_small *p)
{
    static void (*const functions[2][SINGLE])(const mt_small *) = {
        {small_1_4bit, small_2_4bit, small_3_4bit, small_4_4bit},
        {small_1_8bit, small_2_8bit, small_3_8bit, small_4_8bit}};
    functions[p->w->bits == 8][(p->m - 1) / 2](p);
}
