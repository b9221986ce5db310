/* The rule of the arithmetic `native` (native.h). */
#include "device/native.h"

#include <math.h>
#include <string.h>

#include "device/sm90.h"
#include "kernels/convert.h"
#include "kernels/unpack.h"

enum { MOST_POWER = 127 }; /* that fp32 has; of larger scales products are infinite */

bool mt_native_fits(const mt_mat *mat)
{
    return mat->format == MT_FORMAT_AFFINE && mat->bits <= 4 && mat->group % 64 == 0 && mat->k <= MT_NATIVE_MOST_K;
}

/* Rounded to nearest even; what is too large is an infinity, NaN stays. */
static mt_f16 f16_of(double v)
{
    const double size = fabs(v);
    if (isnan(v))
        return 0x7fff;
    const int exponent = size < 0x1p-14 ? -14 : ilogb(size);
    const double bits = size > 0x1p17 ? 0x7c00 : (exponent + 14) * 1024 + nearbyint(ldexp(size, 10 - exponent));
    return (mt_f16)((signbit(v) ? 0x8000u : 0) | (bits < 0x7c00 ? (uint32_t)bits : 0x7c00u));
}

static float group_value(const mt_mat *mat, const uint8_t *values, size_t row, size_t group)
{
    return values ? mt_scale_f32(values + row * mat->scale_stride, mat->scale_type, group) : 0;
}

int mt_native_power(const mt_mat *mat)
{
    int power = 0;
    for (size_t n = 0; n < mat->n; n++)
        for (size_t g = 0; g < mat->k / mat->group; g++) {
            const float scale = fabsf(group_value(mat, mat->scales, n, g));
            const float bias = fabsf(group_value(mat, mat->biases, n, g));
            while (isfinite(scale) && power < MOST_POWER && ldexpf(scale, MT_NATIVE_CODE_EXPONENT - power) > 65504)
                power++;
            while (isfinite(bias) && power < MOST_POWER && ldexpf(bias, -power) > 0x1p15f)
                power++;
        }
    return power;
}

mt_native_pair mt_native_pair_of(const mt_mat *mat, size_t row, size_t group, int power)
{
    double scale = ldexp(group_value(mat, mat->scales, row, group), MT_NATIVE_CODE_EXPONENT - power);
    if (fabs(scale) < 0x1p-10)
        scale = ldexp(nearbyint(ldexp(scale, 20)), -20);
    return (mt_native_pair){f16_of(scale), f16_of(ldexp(group_value(mat, mat->biases, row, group), -power))};
}

size_t mt_native_padded(size_t k)
{
    return (k + MT_NATIVE_SEGMENT - 1) / MT_NATIVE_SEGMENT * MT_NATIVE_SEGMENT;
}

size_t mt_native_row_bytes(size_t k)
{
    return mt_native_padded(k) * sizeof(mt_f16) + mt_native_padded(k) / MT_NATIVE_SEGMENT * sizeof(int);
}

void mt_native_weights(mt_f16 *to, const mt_mat *mat, size_t row, int power)
{
    mt_unpacker u = {.p = mat->w + row * mat->stride};
    double scale = 0, bias = 0;
    memset(to, 0, mt_native_padded(mat->k) * sizeof(*to));
    for (size_t k = 0; k < mat->k; k++) {
        if (k % mat->group == 0) {
            const mt_native_pair pair = mt_native_pair_of(mat, row, k / mat->group, power);
            scale = ldexp((double)mt_f32_from_f16(pair.scale), -MT_NATIVE_CODE_EXPONENT);
            bias = (double)mt_f32_from_f16(pair.bias);
        }
        to[k] = f16_of(mt_unpack_next(&u, mat) * scale + bias);
    }
}

static int segment_exponent(const float *x, size_t n)
{
    float most = 0;
    uint32_t bits;
    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(x[i]));
    memcpy(&bits, &most, sizeof(bits));
    const int e = (int)(bits >> 23) - 127 - MT_NATIVE_TOP;
    return e < MT_NATIVE_EXPONENT_LEAST  ? MT_NATIVE_EXPONENT_LEAST
           : e > MT_NATIVE_EXPONENT_MOST ? MT_NATIVE_EXPONENT_MOST
                                         : e;
}

void mt_native_pack(void *to, const float *x, size_t k)
{
    mt_f16 *half = to;
    int *exponents = (int *)(void *)(half + mt_native_padded(k));
    memset(half, 0, mt_native_padded(k) * sizeof(*half));
    for (size_t first = 0; first < k; first += MT_NATIVE_SEGMENT) {
        const size_t n = k - first < MT_NATIVE_SEGMENT ? k - first : MT_NATIVE_SEGMENT;
        const int e = exponents[first / MT_NATIVE_SEGMENT] = segment_exponent(x + first, n);
        for (size_t i = 0; i < n; i++)
            half[first + i] = f16_of(ldexp((double)x[first + i], -e));
    }
}

float mt_native_dot(const mt_f16 *weights, const void *packed, size_t k, int power)
{
    const size_t padded = mt_native_padded(k);
    const mt_f16 *x = packed;
    const int *exponents = (const int *)(const void *)(x + padded);
    float total = 0, sum = 0;
    for (size_t first = 0; first < padded; first += MT_NATIVE_SEGMENT) {
        const int *e = exponents + first / MT_NATIVE_SEGMENT;
        const size_t end = first + MT_NATIVE_SEGMENT;
        sum = first % MT_NATIVE_GROUP ? sum * ldexpf(1, e[-1] - e[0]) : 0;
        for (size_t i = first; i < end; i += MT_SM90_K)
            sum = mt_sm90_dot_f16(sum, weights + i, x + i);
        if (end % MT_NATIVE_GROUP == 0 || end == padded)
            total = fmaf(ldexpf(1, *e), sum, total);
    }
    return total * ldexpf(1, power);
}
