#version 450
#extension GL_GOOGLE_include_directive : require
/* x = factor * x */
#include "exact.glsl"
layout(local_size_x = 128) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y;
    float factor;
};

void main()
{
    uint c = gl_GlobalInvocationID.x, i = gl_GlobalInvocationID.y;
    if (c >= y.cols)
        return;
    y.data.at[i * y.stride + c] = mul_(factor, y.data.at[i * y.stride + c]);
}
