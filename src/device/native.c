/* The rule of the arithmetic `native` (native.h). */
#include "device/native.h"

#include <math.h>
#include <string.h>

#include "device/sm90.h"
#include "kernels/convert.h"
#include "kernels/unpack.h"

enum {
    MOST_POWER = 127, /* that fp32 has; of larger scales products are infinite */
    DROPPED = 52 - 10 /* bits of a double's fraction that fp16 does not have */
};

#define SUBNORMALS 0x1p28 /* doubles from there to 2^29 are multiples of 2^-24 */

bool mt_native_fits(const mt_mat *mat)
{
    return mt_has_codes(mat->format) && mat->k <= MT_NATIVE_MOST_K &&
           (mat->group == 16 || mat->group == 32 || (mat->group && mat->group % MT_NATIVE_SEGMENT == 0));
}

bool mt_native_narrow(const mt_mat *mat)
{
    return mat->bits <= 4 && mt_code_top(mat) < 16;
}

/* Rounded to nearest even; what is too large is an infinity, NaN stays. */
static inline mt_f16 f16_of(double v)
{
    const double size = fabs(v), subnormal = size + SUBNORMALS;
    uint64_t bits, low;
    memcpy(&bits, &size, sizeof(bits));
    memcpy(&low, &subnormal, sizeof(low));
    if (isnan(v))
        return 0x7fff;
    if (size < 0x1p-14)
        bits = low & 0x7ff; /* a multiple of 2^-24, as `subnormal` is one */
    else
        bits = ((bits + ((1ull << (DROPPED - 1)) - 1) + (bits >> DROPPED & 1)) >> DROPPED) - ((1023 - 15) << 10);
    return (mt_f16)((signbit(v) ? 0x8000u : 0) | (bits < 0x7c00 ? (uint32_t)bits : 0x7c00u));
}

static float scale_of(const mt_mat *mat, size_t row, size_t group)
{
    return mt_weight_scale(mat, mat->scales + row * mat->scale_stride, group);
}

static float bias_of(const mt_mat *mat, size_t row, size_t group)
{
    return mat->biases ? mt_scale_f32(mat->biases + row * mat->scale_stride, mat->scale_type, group) : 0;
}

int mt_native_power(const mt_mat *mat)
{
    float scale = 0, bias = 0; /* the largest finite ones */
    int power = 0;
    for (size_t n = 0; n < mat->n; n++)
        for (size_t g = 0; g < mat->k / mat->group; g++) {
            const float s = fabsf(scale_of(mat, n, g)), b = fabsf(bias_of(mat, n, g));
            scale = isfinite(s) && s > scale ? s : scale;
            bias = isfinite(b) && b > bias ? b : bias;
        }
    while (power < MOST_POWER && ldexpf(scale, MT_NATIVE_CODE_EXPONENT - power) > 65504)
        power++;
    while (power < MOST_POWER && ldexpf(bias, -power) > 0x1p15f)
        power++;
    return power;
}

mt_native_pair mt_native_pair_of(const mt_mat *mat, size_t row, size_t group, int power)
{
    double scale = ldexp(scale_of(mat, row, group), MT_NATIVE_CODE_EXPONENT - power);
    if (fabs(scale) < 0x1p-10)
        scale = ldexp(nearbyint(ldexp(scale, 20)), -20);
    const mt_f16 rounded = f16_of(scale);
    const double unit = ldexp((double)mt_f32_from_f16(rounded), -MT_NATIVE_CODE_EXPONENT);
    const int lift = mt_code_lift(mat);
    return (mt_native_pair){rounded, f16_of(lift ? -lift * unit : ldexp(bias_of(mat, row, group), -power))};
}

size_t mt_native_padded(size_t k)
{
    return (k + MT_NATIVE_CHUNK - 1) / MT_NATIVE_CHUNK * MT_NATIVE_CHUNK;
}

void mt_native_weights(mt_f16 *to, const mt_mat *mat, size_t row, int power)
{
    mt_unpacker u = mt_unpacker_of(mat, row);
    const int lift = mt_code_lift(mat);
    memset(to, 0, mt_native_padded(mat->k) * sizeof(*to));
    for (size_t g = 0; g < mat->k / mat->group; g++) {
        const mt_native_pair pair = mt_native_pair_of(mat, row, g, power);
        const double scale = ldexp((double)mt_f32_from_f16(pair.scale), -MT_NATIVE_CODE_EXPONENT);
        const double bias = (double)mt_f32_from_f16(pair.bias);
        for (size_t i = 0; i < mat->group; i++)
            *to++ = f16_of((mt_unpack_next(&u, mat) + lift) * scale + bias);
    }
}

/* The least exponent there is with which the largest number is below 2^15; else the largest there is. */
static int segment_exponent(const float *x, size_t n)
{
    float most = 0;
    int e = MT_NATIVE_EXPONENT_LEAST;
    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(x[i]));
    if (most == 0)
        return MT_NATIVE_EXPONENT_OF_ZEROS;
    for (int i = 1; i < MT_NATIVE_EXPONENTS && most >= ldexpf(1, MT_NATIVE_TOP + 1 + e); i++)
        e += MT_NATIVE_EXPONENT_STEP;
    return e;
}

int mt_native_pack_segment(mt_f16 *to, const float *x, size_t n)
{
    const int e = segment_exponent(x, n);
    for (size_t i = 0; i < n; i++)
        to[i] = f16_of(ldexp((double)x[i], -e));
    return e;
}

void mt_native_pack(void *to, const float *x, size_t k)
{
    mt_f16 *half = to;
    int *exponents = (int *)(void *)(half + mt_native_padded(k));
    memset(half, 0, mt_native_padded(k) * sizeof(*half));
    for (size_t first = 0; first < mt_native_padded(k); first += MT_NATIVE_SEGMENT) {
        const size_t left = first < k ? k - first : 0, n = left < MT_NATIVE_SEGMENT ? left : MT_NATIVE_SEGMENT;
        exponents[first / MT_NATIVE_SEGMENT] = mt_native_pack_segment(half + first, x + first, n);
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
