#version 450
#extension GL_GOOGLE_include_directive : require
/* y = W x by R6, of x as it is or, where W is bf16 and `rounded`, of x rounded to bf16. A group has 8 columns; 16
   threads are the lanes of a column. */
#include "weight.glsl"
layout(local_size_x = 128) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y, x;
    Words codes;
    Floats bias;
    uint kind, row_words, rounded, flags; /* 2: bias */
};

shared float lane[128];

void main()
{
    uint t = gl_LocalInvocationID.x, l = t % 16, column = gl_WorkGroupID.x * 8 + t / 16, row = gl_WorkGroupID.y;
    float sum = 0.0;
    if (column < y.cols)
        for (uint i = l; i < x.cols; i += 16) {
            float a = x.data.at[row * x.stride + i], w;
            uint word = codes.at[column * row_words + (kind == KIND_FLOATS ? i : i / 2)];
            w = kind == KIND_FLOATS  ? as_float(word)
                : kind == KIND_F16   ? half_(word >> i % 2 * 16 & 0xffffu)
                                     : as_float(i % 2 != 0 ? word & 0xffff0000u : word << 16);
            sum = rounded != 0 ? fma_bf16(w, bf16_rounded(a), sum) : fma_(w, a, sum);
        }
    lane[t] = sum;
    [[dont_unroll]] for (uint width = 8; width > 0; width /= 2) {
        barrier();
        if (l < width)
            lane[t] = add_(lane[t], lane[t + width]);
    }
    if (l == 0 && column < y.cols)
        y.data.at[row * y.stride + column] = (flags & 2) != 0 ? add_(lane[t], bias.at[column]) : lane[t];
}
