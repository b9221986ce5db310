/* What one tensor-core step of sm_90 adds (sm90.h). */
#include "device/sm90.h"

#include <stdbool.h>
#include <string.h>

enum {
    KEPT = 25, /* bits below the top that addends keep */
    F32_FRACTION = 23,
    F32_LEAST = -126, /* exponent of subnormals */
    F32_MOST = 127
};

#define F32_INFINITY 0x7f800000u
#define F32_NAN 0x7fffffffu /* the only NaN a step returns */
#define F32_SIGN 0x80000000u

/* A binary format with a sign, `exponent` bits of exponent and `fraction` bits below. */
typedef struct format {
    int exponent, fraction;
} format;

/* significand * 2^(exponent - fraction); subnormals have the format's least exponent. */
typedef struct number {
    uint32_t significand;
    int exponent;
    bool negative, infinite, nan;
} number;

/* Products, with c as the last. */
typedef struct addends {
    uint64_t significand[MT_SM90_K + 1]; /* 0: does not count */
    int exponent[MT_SM90_K + 1];         /* that of the significand's lowest bit */
    bool negative[MT_SM90_K + 1];
    int top;
    bool any, nan, infinite[2]; /* infinite: +, - */
} addends;

static const format f16_format = {5, 10}, bf16_format = {8, 7}, f32_format = {8, F32_FRACTION};

static inline number number_of(uint32_t bits, format f)
{
    const uint32_t most = (1u << f.exponent) - 1, field = bits >> f.fraction & most;
    const uint32_t fraction = bits & ((1u << f.fraction) - 1);
    const bool special = field == most;
    return (number){
        .significand = fraction | (uint32_t)(field > 0) << f.fraction,
        .exponent = (field > 0 ? (int)field : 1) - (int)(most / 2),
        .negative = bits >> (f.exponent + f.fraction) & 1,
        .infinite = special && fraction == 0,
        .nan = special && fraction != 0,
    };
}

static float f32_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* The value of the sum once an addend is not finite: infinities of both signs have no sum. */
static float special_sum(const addends *in)
{
    if (in->nan || (in->infinite[0] && in->infinite[1]))
        return f32_of(F32_NAN);
    return f32_of(in->infinite[1] ? F32_SIGN | F32_INFINITY : F32_INFINITY);
}

/* A sum of 2^128 or more. */
static float overflowed_sum(bool negative)
{
    return f32_of((negative ? F32_SIGN : 0) | F32_INFINITY);
}

static inline void add_number(addends *in, size_t i, uint64_t significand, int exponent, int fraction, bool negative)
{
    in->significand[i] = significand;
    in->exponent[i] = exponent - fraction;
    in->negative[i] = negative;
    if (significand && (!in->any || exponent > in->top)) {
        in->any = true;
        in->top = exponent;
    }
}

static inline void add_product(addends *in, size_t i, number a, number b, format f)
{
    const bool negative = a.negative != b.negative, infinite = a.infinite || b.infinite;
    in->nan |= a.nan || b.nan || (infinite && (a.significand == 0 || b.significand == 0));
    in->infinite[negative] |= infinite;
    add_number(in, i, (uint64_t)a.significand * b.significand, a.exponent + b.exponent, 2 * f.fraction, negative);
}

/* magnitude * 2^exponent, cut towards zero. There is no -0: a sum that is zero or is cut to zero is +0. */
static float cut_to_f32(bool negative, uint64_t magnitude, int exponent)
{
    int top = exponent;
    if (magnitude == 0)
        return 0;
    for (uint64_t rest = magnitude; rest > 1; rest >>= 1)
        top++;
    if (top > F32_MOST)
        return overflowed_sum(negative);
    const int lowest = (top < F32_LEAST ? F32_LEAST : top) - F32_FRACTION, shift = lowest - exponent;
    const uint64_t cut = shift >= 64 ? 0 : shift > 0 ? magnitude >> shift : magnitude << -shift;
    const uint32_t field = top < F32_LEAST ? 0 : (uint32_t)(top - F32_LEAST); /* the leading bit adds the 1 */
    return f32_of((negative && cut ? F32_SIGN : 0) | ((field << F32_FRACTION) + (uint32_t)cut));
}

static float sum_of(const addends *in)
{
    const int unit = in->top - KEPT;
    int64_t sum = 0; /* of 2^unit; an addend is below 2^27 */
    if (in->nan || in->infinite[0] || in->infinite[1])
        return special_sum(in);
    for (size_t i = 0; i <= MT_SM90_K; i++) {
        const int shift = in->exponent[i] - unit;
        const uint64_t cut = shift >= 0    ? in->significand[i] << (shift & 31)
                             : shift > -64 ? in->significand[i] >> -shift
                                           : 0;
        sum += in->negative[i] ? -(int64_t)cut : (int64_t)cut;
    }
    return cut_to_f32(sum < 0, (uint64_t)(sum < 0 ? -sum : sum), unit);
}

static inline float dot(float c, const uint16_t *a, const uint16_t *b, format f)
{
    addends in = {.any = false};
    uint32_t bits;
    memcpy(&bits, &c, sizeof(bits));
    const number last = number_of(bits, f32_format);
    for (size_t i = 0; i < MT_SM90_K; i++)
        add_product(&in, i, number_of(a[i], f), number_of(b[i], f), f);
    in.nan |= last.nan;
    in.infinite[last.negative] |= last.infinite;
    add_number(&in, MT_SM90_K, last.significand, last.exponent, F32_FRACTION, last.negative);
    return sum_of(&in);
}

float mt_sm90_dot_f16(float c, const mt_f16 a[MT_SM90_K], const mt_f16 b[MT_SM90_K])
{
    return dot(c, a, b, f16_format);
}

float mt_sm90_dot_bf16(float c, const mt_bf16 a[MT_SM90_K], const mt_bf16 b[MT_SM90_K])
{
    return dot(c, a, b, bf16_format);
}
