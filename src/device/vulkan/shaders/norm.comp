#version 450
#extension GL_GOOGLE_include_directive : require
/* y = x / rms(x) * (offset + w) of each row, or of each head of it. A group has one of them. */
#include "functions.glsl"
layout(local_size_x = 64) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y, x;
    Floats w;
    uint n; /* elements of a head */
    float eps, offset, count;
};

shared float lane[16];
shared float shared_factor;

void main()
{
    uint l = gl_LocalInvocationID.x, from = gl_WorkGroupID.y * x.stride + gl_WorkGroupID.x * n,
         to = gl_WorkGroupID.y * y.stride + gl_WorkGroupID.x * n;
    if (l < 16) {
        float sum = 0.0;
        for (uint i = l; i < n; i += 16) {
            float a = x.data.at[from + i];
            sum = fma_(a, a, sum);
        }
        lane[l] = sum;
    }
    barrier();
    if (l == 0) {
        [[dont_unroll]] for (uint width = 8; width > 0; width /= 2)
            [[dont_unroll]] for (uint i = 0; i < width; i++)
                lane[i] = add_(lane[i], lane[i + width]);
        shared_factor = div_(1.0, sqrt_(add_(div_(lane[0], count), eps)));
    }
    barrier();
    for (uint i = l; i < n; i += 64)
        y.data.at[to + i] = mul_(mul_(x.data.at[from + i], shared_factor), add_(offset, w.at[i]));
}
