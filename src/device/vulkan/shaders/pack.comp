#version 450
#extension GL_GOOGLE_include_directive : require
/* Quantises rows by R3: a thread takes a group, and at least 32 elements, of a row. */
#include "functions.glsl"
layout(local_size_x = 64) in;
layout(push_constant, std430) uniform Arguments
{
    Rows x;
    Words q;
    Floats turns, sums;
    uint k, group, wide, m;
};

#define DOT_START 12582912.0

float scale_22(float x)
{
    return as_float(as_bits(x) & ~3u);
}

void main()
{
    uint span = max(group, 32), row = gl_GlobalInvocationID.y, at = gl_GlobalInvocationID.x * span;
    if (at >= k)
        return;
    uint unit = min(group, 32), link = group % 64 == 0 ? 2 : 1, each = group / unit, units = k / unit;
    uint end_at = min(at + span, k), from = row * x.stride;
    float xs = 0.0, sx = 0.0;
    for (uint block = at; block < end_at; block += 32) {
        uint n = min(32, k - block);
        float before = xs, amax = 0.0;
        bool second = block / 32 % link != 0;
        float value[32];
        for (uint i = 0; i < n; i++) {
            value[i] = x.data.at[from + block + i];
            float v = abs_(value[i]);
            if (less_(amax, v) || is_nan(as_bits(v)))
                amax = v;
        }
        /* mt_block_of */
        float least = second ? scale_22(mul_(before, as_float(wide != 0 ? 0x3eaaaaabu : 0x3d888889u))) : 0.0;
        bool bounded = false;
        xs = scale_22(mul_(amax, as_float(0x3c010204u)));
        float factor = div_(127.0, amax);
        if (!(less_(least, xs) || as_bits(least) == as_bits(xs))) {
            xs = is_nan(as_bits(xs)) ? xs : least;
            factor = div_(1.0, least);
            bounded = true;
        }
        if ((as_bits(factor) & INFINITY_BITS) == INFINITY_BITS || (as_bits(amax) & INFINITY_BITS) == INFINITY_BITS)
            factor = 0.0;
        bool any = less_(0.0, factor);
        float lane[16];
        for (uint l = 0; l < 16; l++)
            lane[l] = 0.0;
        int squares = 0, code[32];
        [[dont_unroll]] for (uint i = 0; i < n; i++) {
            precise float rounded = mul_(value[i], factor) + DOT_START;
            code[i] = any ? int(as_bits(rounded) - 0x4b400000u) : 0;
            lane[i % 16] = fma_(value[i], float(code[i]), lane[i % 16]);
            squares += code[i] * code[i];
        }
        for (uint i = 0; i < n; i += 4)
            q.at[(row * k + block + i) / 4] = uint(code[i] & 255) | uint(code[i + 1] & 255) << 8 |
                                             uint(code[i + 2] & 255) << 16 | uint(code[i + 3] & 255) << 24;
        if (!bounded && squares > 0)
            xs = scale_22(div_(fold(lane), float(squares)));
        for (uint i = 0; i < n; i += unit) {
            uint u = (block + i) / unit, here = row * units + u;
            /* an infinite scale gives NaN, as S * xs - S * xs does */
            turns.at[2 * here] = as_bits(xs) == INFINITY_BITS ? as_float(NAN) : xs;
            turns.at[2 * here + 1] = 0.0;
            if (u % link != 0) {
                float on = less_(0.0, xs) ? div_(before, xs) : 0.0;
                turns.at[2 * here - 2] = on;
                turns.at[2 * here - 1] = fma_(-DOT_START, on, DOT_START);
            }
            int sum = 0;
            for (uint j = i; j < i + unit; j++)
                sum += code[j];
            sx = fma_(xs, float(sum), u % each != 0 ? sx : 0.0);
            if ((u + 1) % each == 0)
                sums.at[row * (units / each) + u / each] = sx;
        }
    }
}
