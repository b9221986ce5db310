/* Quotients, square roots and the functions of R7, with the bits of src/kernels/portable/scalar.h. */
#include "exact.glsl"

/* a / b */
float div_(float a, float b)
{
    uint x = as_bits(a), y = as_bits(b), sign = (x ^ y) & 0x80000000u;
    x &= 0x7fffffffu;
    y &= 0x7fffffffu;
    if (x > INFINITY_BITS || y > INFINITY_BITS || (x == 0 && y == 0) || (x == INFINITY_BITS && y == INFINITY_BITS))
        return as_float(NAN);
    if (x == INFINITY_BITS || y == 0)
        return as_float(sign | INFINITY_BITS);
    if (x == 0 || y == INFINITY_BITS)
        return as_float(sign);
    uint mx, my;
    int ex, ey;
    split(x, mx, ex);
    split(y, my, ey);
    /* the first bit, then 31 more, of mx / my, which is between 1/2 and 2 */
    uint quotient = 0, rest = mx;
    [[dont_unroll]] for (int i = 0; i < 32; i++) {
        bool has = rest >= my;
        quotient = quotient << 1 | uint(has);
        rest = (has ? rest - my : rest) << 1;
    }
    return as_float(round_to_float(sign, uint64_t(quotient) << 1 | uint64_t(rest != 0), ex - ey - 32));
}

float sqrt_(float a)
{
    uint x = as_bits(a);
    if ((x & 0x7fffffffu) == 0 || x == INFINITY_BITS)
        return a;
    if (x > INFINITY_BITS)
        return as_float(NAN);
    uint m;
    int e;
    split(x, m, e);
    e -= 150;
    int shift = (e & 1) != 0 ? 39 : 38; /* so that e - shift is even, and the root has 31 bits or more */
    uint64_t left = uint64_t(m) << shift, root = 0;
    [[dont_unroll]] for (int i = 31; i >= 0; i--) {
        uint64_t next = root | uint64_t(1) << i;
        if (next * next <= left)
            root = next;
    }
    return as_float(round_to_float(0, root << 1 | uint64_t(root * root != left), (e - shift) / 2 - 1));
}

/* NaN is carried; +0 is above -0. */
float max_(float a, float b)
{
    uint x = as_bits(a), y = as_bits(b);
    if (is_nan(x) || is_nan(y))
        return as_float(NAN);
    int sx = int(x) < 0 ? int(0x80000000u - x) - 1 : int(x), sy = int(y) < 0 ? int(0x80000000u - y) - 1 : int(y);
    return sx >= sy ? a : b;
}

/* Integers of either sign, in the order of the floats. */
bool less_(float a, float b)
{
    uint x = as_bits(a), y = as_bits(b);
    if (is_nan(x) || is_nan(y) || ((x | y) & 0x7fffffffu) == 0)
        return false;
    int sx = int(x) < 0 ? int(0x80000000u - x) : int(x), sy = int(y) < 0 ? int(0x80000000u - y) : int(y);
    return sx < sy;
}

float abs_(float a)
{
    return as_float(as_bits(a) & 0x7fffffffu);
}

float exp_(float x)
{
    x = less_(89.0, x) ? 89.0 : x;
    x = less_(x, -105.0) ? -105.0 : x;
    float z = fma_(x, as_float(0x3fb8aa3bu), 12582912.0);
    float n = sub_(z, 12582912.0);
    float r = fma_(n, as_float(0x3102e308u), fma_(n, as_float(0xbf317218u), x));
    const uint c[4] = {0x3c092c9eu, 0x3d2aa97du, 0x3e2aaa32u, 0x3f000000u};
    float p = as_float(0x3ab7f99eu);
    [[dont_unroll]] for (int i = 0; i < 4; i++)
        p = fma_(p, r, as_float(c[i]));
    p = add_(fma_(mul_(r, r), p, r), 1.0);
    int e = int(as_bits(z) - 0x4b400000u), low = e >> 1;
    return mul_(mul_(p, as_float(uint(low + 127) << 23)), as_float(uint(e - low + 127) << 23));
}

float sigmoid_(float x)
{
    float e = exp_(as_float(as_bits(x) | 0x80000000u));
    return div_(less_(x, 0.0) ? e : 1.0, add_(1.0, e));
}

float tanh_(float x)
{
    float a = abs_(x), y;
    if (less_(a, 0.625)) {
        float z = mul_(a, a);
        const uint c[4] = {0x3ca8fc67u, 0xbd5c1ad2u, 0x3e08837bu, 0xbeaaaa99u};
        float p = as_float(0xbbba8672u);
        [[dont_unroll]] for (int i = 0; i < 4; i++)
            p = fma_(p, z, as_float(c[i]));
        y = fma_(mul_(a, z), p, a);
    } else {
        y = sub_(1.0, div_(2.0, add_(exp_(add_(a, a)), 1.0)));
    }
    return as_float((as_bits(y) & 0x7fffffffu) | (as_bits(x) & 0x80000000u));
}

float silu_(float x)
{
    return mul_(x, sigmoid_(x));
}

float gelu_(float x)
{
    return mul_(x, sigmoid_(mul_(as_float(0x3fcc422au), fma_(mul_(as_float(0x3d372713u), mul_(x, x)), x, x))));
}

float softcap_(float x, float cap)
{
    return mul_(cap, tanh_(div_(x, cap)));
}

/* Rounded to bf16, nearest even. */
uint bf16_bits(float x)
{
    uint bits = as_bits(x);
    if (is_nan(bits))
        return bits >> 16 | 0x40u;
    return bits + 0x7fffu + (bits >> 16 & 1u) >> 16;
}

float bf16_rounded(float x)
{
    return as_float(bf16_bits(x) << 16);
}

/* A half as a float. */
float half_(uint h)
{
    uint sign = (h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 1023u;
    if (e == 31)
        return as_float(sign | INFINITY_BITS | m << 13);
    if (e == 0) {
        if (m == 0)
            return as_float(sign);
        int top = findMSB(m);
        return as_float(sign | uint(top - 24 + 127) << 23 | (m << (23 - top) & 0x7fffffu));
    }
    return as_float(sign | (e + 112) << 23 | m << 13);
}

/* fma where a and b were rounded to bf16, so that their product is exact unless it is tiny. */
float fma_bf16(float a, float b, float c)
{
    precise float product = a * b;
    if ((as_bits(product) & 0x7fffffffu) < BITS_OF_SMALL_SUM) {
        uint x = as_bits(a) & 0x7fffffffu, y = as_bits(b) & 0x7fffffffu, z = as_bits(c) & 0x7fffffffu;
        bool nothing = (x == 0 || y == 0) && z == 0;
        if (!nothing && (z < BITS_OF_SMALL_ADDEND || x < 0x800000u || y < 0x800000u))
            return fma_(a, b, c);
    }
    precise float sum = product + c;
    return sum;
}

/* R6: the sum of 16 lanes. */
float fold(float lane[16])
{
    [[dont_unroll]] for (uint width = 8; width > 0; width /= 2)
        [[dont_unroll]] for (uint i = 0; i < width; i++)
            lane[i] = add_(lane[i], lane[i + width]);
    return lane[0];
}
