/* The arithmetic of docs/numerics.md from operations that all drivers have the same bits of: integers, and sums and
   products of floats that are declared to round to nearest even and are not fused. Where a result, or what it is made
   of, may be subnormal (which a driver may take for zero), and for fused multiply-adds, quotients and square roots,
   integers compute it. */
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : enable
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_control_flow_attributes : enable
#extension GL_EXT_spirv_intrinsics : require

/* RoundingModeRTE and SignedZeroInfNanPreserve for floats of 32 bits */
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4467], 4462, 32);
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4466], 4461, 32);

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats
{
    float at[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words
{
    uint at[];
};

/* Rows of a tensor: row i begins at element i * stride. */
struct Rows {
    Floats data;
    uint stride, cols;
};

#define NAN 0x7fc00000u
#define INFINITY_BITS 0x7f800000u

float as_float(uint bits)
{
    return uintBitsToFloat(bits);
}

uint as_bits(float x)
{
    return floatBitsToUint(x);
}

bool is_nan(uint x)
{
    return (x & 0x7fffffffu) > INFINITY_BITS;
}

/* Significand and exponent: the magnitude is significand * 2^(exponent - 150), the significand of 24 bits (0 for 0). */
void split(uint x, out uint significand, out int exponent)
{
    significand = x & 0x7fffffu;
    exponent = int(x >> 23 & 0xffu);
    if (exponent != 0) {
        significand |= 0x800000u;
    } else {
        exponent = 1;
        if (significand != 0) {
            int shift = 23 - findMSB(significand);
            significand <<= shift;
            exponent -= shift;
        }
    }
}

int msb64(uint64_t x)
{
    uint high = uint(x >> 32);
    return high != 0 ? 32 + findMSB(high) : findMSB(uint(x));
}

/* x * 2^exponent, rounded to nearest even; the lowest bit of x is set where something below it is left. x is not 0. */
uint round_to_float(uint sign, uint64_t x, int exponent)
{
    int top = msb64(x), e = exponent + top + 127;
    int shift = e >= 1 ? top - 23 : -149 - exponent;
    uint64_t q;
    if (shift <= 0) {
        q = x << -shift;
    } else if (shift > 63) {
        q = 0;
    } else {
        q = x >> shift;
        uint64_t rest = x & ((uint64_t(1) << shift) - 1), half_ = uint64_t(1) << (shift - 1);
        if (rest > half_ || (rest == half_ && (q & 1) != 0))
            q++;
    }
    if (e >= 255)
        return sign | INFINITY_BITS;
    uint bits = e >= 1 ? (uint(e - 1) << 23) + uint(q) : uint(q);
    return sign | bits;
}

/* The sum of a * b and c, rounded once. */
uint fma_bits(uint a, uint b, uint c)
{
    uint sign = (a ^ b) & 0x80000000u;
    uint ea = a >> 23 & 0xffu, eb = b >> 23 & 0xffu, ec = c >> 23 & 0xffu;
    if (ea == 255 || eb == 255 || ec == 255) {
        if (is_nan(a) || is_nan(b) || is_nan(c))
            return NAN;
        if (ea == 255 || eb == 255) {
            if ((a << 1) == 0 || (b << 1) == 0)
                return NAN;
            if (ec == 255 && (c & 0x80000000u) != sign)
                return NAN;
            return sign | INFINITY_BITS;
        }
        return c;
    }
    uint ma, mb, mc;
    int xa, xb, xc;
    split(a, ma, xa);
    split(b, mb, xb);
    split(c, mc, xc);
    if (ma == 0 || mb == 0) {
        if (mc != 0)
            return c;
        return sign == (c & 0x80000000u) ? sign : 0;
    }
    /* product * 2^(xa + xb - 314), addend * 2^(xc - 187), both below 2^62 and, but for 0, at least 2^60 */
    uint64_t product = (uint64_t(ma) * uint64_t(mb)) << 14, addend = uint64_t(mc) << 37;
    int ep = xa + xb - 314, ac = xc - 187, exponent;
    if (mc == 0)
        return round_to_float(sign, product, ep);
    int d = ep - ac;
    if (d >= 0) {
        exponent = ep;
        addend = d > 62 ? uint64_t(1) : (addend >> d) | uint64_t((addend & ((uint64_t(1) << d) - 1)) != 0);
    } else {
        exponent = ac;
        d = -d;
        product = d > 62 ? uint64_t(1) : (product >> d) | uint64_t((product & ((uint64_t(1) << d) - 1)) != 0);
    }
    uint csign = c & 0x80000000u;
    if (sign == csign)
        return round_to_float(sign, product + addend, exponent);
    if (product == addend)
        return 0;
    return product > addend ? round_to_float(sign, product - addend, exponent)
                            : round_to_float(csign, addend - product, exponent);
}

float fma_(float a, float b, float c)
{
    return as_float(fma_bits(as_bits(a), as_bits(b), as_bits(c)));
}

#define BITS_OF_SMALL_SUM 0x0d800000u     /* 2^-100 */
#define BITS_OF_SMALL_PRODUCT 0x03800000u /* 2^-120 */
#define BITS_OF_SMALL_ADDEND 0x1c800000u  /* 2^-70 */

/* a + b. A sum of that size has no subnormal part that counts. */
float add_(float a, float b)
{
    precise float sum = a + b;
    uint size = as_bits(sum) & 0x7fffffffu;
    return size >= BITS_OF_SMALL_SUM ? sum : as_float(fma_bits(as_bits(a), 0x3f800000u, as_bits(b)));
}

float mul_(float a, float b)
{
    precise float product = a * b;
    uint size = as_bits(product) & 0x7fffffffu;
    if (size >= BITS_OF_SMALL_PRODUCT)
        return product;
    uint sign = (as_bits(a) ^ as_bits(b)) & 0x80000000u;
    return as_float(fma_bits(as_bits(a), as_bits(b), sign));
}

float sub_(float a, float b)
{
    return add_(a, as_float(as_bits(b) ^ 0x80000000u));
}

float neg_(float a)
{
    return as_float(as_bits(a) ^ 0x80000000u);
}
