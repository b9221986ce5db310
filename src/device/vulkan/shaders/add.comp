#version 450
#extension GL_GOOGLE_include_directive : require
/* y += x, rows of cols elements */
#include "exact.glsl"
layout(local_size_x = 128) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y, x;
};

void main()
{
    uint c = gl_GlobalInvocationID.x, i = gl_GlobalInvocationID.y;
    if (c < y.cols)
        y.data.at[i * y.stride + c] = add_(y.data.at[i * y.stride + c], x.data.at[i * x.stride + c]);
}
