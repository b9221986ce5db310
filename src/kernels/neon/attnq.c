/* Quantises keys, values and queries to 8 or 4 bits (kvq.h) on NEON. */
#include "kernels/kvq.h"

#include <math.h>

#include "kernels/levels.h"
#include "kernels/neon/lanes.h"

/* Signs of the four channels from i on, as bits to be flipped. */
static uint32x4_t signs(size_t i)
{
    static const uint32_t one[4] = {1, 2, 4, 8};
    const uint32_t four = mt_kvq_signs(i);
    return vshlq_n_u32(vtstq_u32(vdupq_n_u32(four), vld1q_u32(one)), 31);
}

/* y = x * factor, with signs flipped where `flip`; n is a multiple of 32. */
static void sign(float *y, const float *x, size_t n, size_t turned, float factor, bool flip)
{
    for (size_t i = 0; i < n; i += 4) {
        uint32x4_t v = vreinterpretq_u32_f32(vmulq_n_f32(vld1q_f32(x + i), factor));
        vst1q_f32(y + i, vreinterpretq_f32_u32(flip ? veorq_u32(v, signs(i % turned)) : v));
    }
}

/* Combines pairs that are h apart; h is a multiple of 4. */
static void butterflies(float *x, size_t n, size_t h)
{
    for (size_t i = 0; i < n; i += 2 * h)
        for (size_t j = i; j < i + h; j += 4) {
            const float32x4_t a = vld1q_f32(x + j), b = vld1q_f32(x + j + h);
            vst1q_f32(x + j, vaddq_f32(a, b));
            vst1q_f32(x + j + h, vsubq_f32(a, b));
        }
}

/* Combines pairs that are two apart, then neighbours. */
static void last_butterflies(float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        const float32x4_t a = vld1q_f32(x + i), b = vextq_f32(a, a, 2);
        const float32x4_t c = vcombine_f32(vget_low_f32(vaddq_f32(a, b)), vget_high_f32(vsubq_f32(b, a)));
        const float32x4_t d = vrev64q_f32(c);
        vst1q_f32(x + i, vtrn1q_f32(vaddq_f32(c, d), vrev64q_f32(vsubq_f32(d, c))));
    }
}

static void turn(float *x, size_t n, size_t turned)
{
    for (size_t h = turned / 2; h >= 4; h /= 2)
        butterflies(x, n, h);
    last_butterflies(x, n);
}

void mt_kv_turn_neon(float *x, size_t head_stride, bool back)
{
    const size_t n = mt_kvq_turned(head_stride);
    sign(x, x, head_stride, n, back ? 1.0f / (float)n : 1.0f, !back);
    turn(x, head_stride, n);
    if (back)
        sign(x, x, head_stride, n, 1.0f, true);
}

/* y = x[0..n) and zeros, rotated; returns the largest magnitude (FMAX carries NaN). */
static float turned(float *y, const float *x, size_t n, size_t head_stride, float factor)
{
    const size_t together = mt_kvq_turned(head_stride);
    float32x4_t most[4] = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
    memcpy(y, x, n * sizeof(*y));
    memset(y + n, 0, (head_stride - n) * sizeof(*y));
    sign(y, y, head_stride, together, factor, true);
    turn(y, head_stride, together);
    for (size_t i = 0; i < head_stride; i += 16)
        MT_UNROLL
    for (size_t j = 0; j < 4; j++)
        most[j] = vmaxq_f32(most[j], vabsq_f32(vld1q_f32(y + i + 4 * j)));
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(most[0], most[1]), vmaxq_f32(most[2], most[3])));
}

/* Sixteen integers of magnitude at most `most`. FCVTNS turns NaN into 0. */
static int8x16_t integers(const float *x, float factor, int32_t most)
{
    int16x4_t h[4];
    MT_UNROLL
    for (size_t i = 0; i < 4; i++) {
        const int32x4_t q = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), factor));
        h[i] = vmovn_s32(vmaxq_s32(vminq_s32(q, vdupq_n_s32(most)), vdupq_n_s32(-most)));
    }
    return vcombine_s8(vmovn_s16(vcombine_s16(h[0], h[1])), vmovn_s16(vcombine_s16(h[2], h[3])));
}

static float finite_or_zero(float x)
{
    return fabsf(x) <= FLT_MAX ? x : 0.0f;
}

void mt_kv_query_neon(uint8_t *q, const float *x, size_t n, size_t head_stride)
{
    float y[MT_KVQ_STRIDE];
    const float amax = turned(y, x, n, head_stride, 1.0f / (float)mt_kvq_turned(head_stride));
    const float d = amax / 127.0f, factor = finite_or_zero(127.0f / amax);
    for (size_t i = 0; i < head_stride; i += 16)
        vst1q_u8(q + i, vreinterpretq_u8_s8(integers(y + i, factor, 127)));
    memcpy(q + head_stride, &d, sizeof(d));
}

/* Writes sixteen bytes of a group, from its byte c on. */
static void put(uint8_t *block, size_t tokens, size_t slot, size_t stride, unsigned bits, size_t group, size_t c,
                uint8x16_t x, bool value)
{
    uint8_t *at = block + (value ? mt_kvq_value_at(tokens, bits, slot, group, c)
                                 : mt_kvq_key_at(tokens, stride, bits, slot, group, c));
    uint8_t bytes[16];
    if (!value) {
        vst1_u8(at, vget_low_u8(x));
        vst1_u8(at + 64, vget_high_u8(x));
        return;
    }
    vst1q_u8(bytes, x);
    for (size_t i = 0; i < 16; i++)
        at[8 * i] = bytes[i];
}

void mt_kv_put_q_neon(uint8_t *block, size_t tokens, size_t slot, size_t head_stride, unsigned bits, const float *x,
                      size_t n, bool value)
{
    const int32_t most = bits == 8 ? 127 : 7;
    const float unit = bits == 8 ? 1.0f : 16.0f;
    float y[MT_KVQ_STRIDE], scale = turned(y, x, n, head_stride, 1.0f) / ((float)most * unit);
    mt_bf16 d;
    mt_to_bf16_neon(&d, &scale, 1);
    const float factor = finite_or_zero(1.0f / unit / mt_f32_from_bf16(d));
    memcpy(block + slot * sizeof(d), &d, sizeof(d));
    for (size_t g = 0; g < head_stride / 32; g++) {
        const uint8x16_t a = vreinterpretq_u8_s8(integers(y + 32 * g, factor, most));
        const uint8x16_t b = vreinterpretq_u8_s8(integers(y + 32 * g + 16, factor, most));
        if (bits == 4) {
            put(block, tokens, slot, head_stride, bits, g, 0, vsliq_n_u8(a, b, 4), value);
            continue;
        }
        put(block, tokens, slot, head_stride, bits, g, 0, a, value);
        put(block, tokens, slot, head_stride, bits, g, 16, b, value);
    }
}
