#version 450
#extension GL_GOOGLE_include_directive : require
/* y = x, rows of the same size */
#include "exact.glsl"
layout(local_size_x = 128) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y, x;
    Words index; /* row of x by row of y; 0: the same */
    uint by_index;
};

void main()
{
    uint c = gl_GlobalInvocationID.x, i = gl_GlobalInvocationID.y;
    if (c >= y.cols)
        return;
    uint from = by_index != 0 ? index.at[i] : i;
    y.data.at[i * y.stride + c] = x.data.at[from * x.stride + c];
}
