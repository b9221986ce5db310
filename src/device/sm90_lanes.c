/* Tensor-core steps of sm_90 for several columns at once (sm90_lanes.h). */
#include "device/sm90_lanes.h"

#include <math.h>

#include "kernels/convert.h"

enum { LANES = MT_SM90_LANES, K = MT_SM90_K };

#define EXPONENT 0x7f800000u
#define KEPT 0x1p25f /* units of the last bit that addends keep, in the top */
#define TOP_LEAST 0x1p-90f
#define TOP_MOST 0x1p100f
#define F16_LEAST 0x1p-14f   /* what subnormals have */
#define BF16_LEAST 0x1p-126f /* likewise */

bool mt_sm90_widen(float *value, float *power, const uint16_t *from, size_t n, mt_sm90_type type)
{
    const float least = type == MT_SM90_F16 ? F16_LEAST : BF16_LEAST;
    unsigned special = 0;
    for (size_t i = 0; i < n; i++) {
        value[i] = type == MT_SM90_F16 ? mt_f32_from_f16(from[i]) : mt_f32_from_bf16(from[i]);
        const uint32_t field = mt_f32_bits(value[i]) & EXPONENT;
        const float own = mt_f32_from_bits(field);
        power[i] = value[i] == 0 ? 0 : own > least ? own : least;
        special |= field == EXPONENT;
    }
    return !special;
}

/* The operand again, from its value. */
static uint16_t narrow(float value, mt_sm90_type type)
{
    const uint32_t bits = mt_f32_bits(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (type == MT_SM90_BF16)
        return (uint16_t)(bits >> 16);
    if (size >= EXPONENT)
        return (uint16_t)(sign | (size > EXPONENT ? 0x7fffu : 0x7c00u));
    if (fabsf(value) < F16_LEAST)
        return (uint16_t)(sign | (uint32_t)(fabsf(value) * 0x1p24f));
    return (uint16_t)(sign | ((size >> 13) - (112u << 10)));
}

static void step_one_by_one(float *c, const float *value, size_t ld, const float *x, mt_sm90_type type)
{
    uint16_t a[K], b[K];
    for (size_t i = 0; i < K; i++)
        b[i] = narrow(x[i], type);
    for (size_t l = 0; l < LANES; l++) {
        for (size_t i = 0; i < K; i++)
            a[i] = narrow(value[i * ld + l], type);
        c[l] = (type == MT_SM90_F16 ? mt_sm90_dot_f16 : mt_sm90_dot_bf16)(c[l], a, b);
    }
}

/* The tops of all sums; false: one of them is too large or too small for what follows. */
static inline bool find_tops(float *restrict top, const float *c, const float *power, size_t ld, const float *x_power)
{
    unsigned outside = 0;
    for (size_t l = 0; l < LANES; l++)
        top[l] = mt_f32_from_bits(mt_f32_bits(c[l]) & EXPONENT);
    for (size_t i = 0; i < K; i++)
        for (size_t l = 0; l < LANES; l++) {
            const float p = power[i * ld + l] * x_power[i];
            top[l] = top[l] >= p ? top[l] : p;
        }
    for (size_t l = 0; l < LANES; l++)
        outside |= !(top[l] >= TOP_LEAST && top[l] <= TOP_MOST);
    return !outside;
}

void mt_sm90_step(float c[MT_SM90_LANES], const float *value, const float *power, size_t ld, const float *x,
                  const float *x_power, mt_sm90_type type, bool finite)
{
    float top[LANES], scale[LANES];
    int32_t sum[LANES] = {0}; /* 16 products below 2^27 each */
    if (!finite || !find_tops(top, c, power, ld, x_power)) {
        step_one_by_one(c, value, ld, x, type);
        return;
    }
    for (size_t l = 0; l < LANES; l++)
        scale[l] = KEPT / top[l];
    for (size_t i = 0; i < K; i++)
        for (size_t l = 0; l < LANES; l++)
            sum[l] += (int32_t)(value[i * ld + l] * x[i] * scale[l]);
    for (size_t l = 0; l < LANES; l++) {
        const double exact =
            ((double)sum[l] + (double)(int32_t)(c[l] * scale[l])) * (double)top[l] * (1 / (double)KEPT);
        const float near = (float)exact;
        c[l] = mt_f32_from_bits(mt_f32_bits(near) - (fabs((double)near) > fabs(exact)));
    }
}
