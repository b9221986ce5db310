#version 450
#extension GL_GOOGLE_include_directive : require
/* x = scale * row tokens[i] of w */
#include "weight.glsl"
layout(local_size_x = 64) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y;
    Words codes;
    Floats scales, biases;
    Words step;
    uint row_words, kind, group, groups, biased, step_words;
    float scale;
};

void main()
{
    uint c = gl_GlobalInvocationID.x, i = gl_GlobalInvocationID.y;
    if (c >= y.cols)
        return;
    uint token = step.at[i * step_words], first = token * row_words;
    float v;
    if (kind == KIND_FLOATS) {
        v = as_float(codes.at[first + c]);
    } else if (kind == KIND_HALVES || kind == KIND_F16) {
        uint h = codes.at[first + c / 2] >> c % 2 * 16 & 0xffffu;
        v = kind == KIND_F16 ? half_(h) : as_float(h << 16);
    } else {
        float q = float(code_at(codes, first, kind, c)), s = scales.at[token * groups + c / group];
        v = biased != 0 ? fma_(s, q, biases.at[token * groups + c / group]) : mul_(s, q);
    }
    y.data.at[i * y.stride + c] = scale != 1.0 ? mul_(scale, v) : v;
}
