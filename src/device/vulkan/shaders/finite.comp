#version 450
#extension GL_GOOGLE_include_directive : require
/* ok = 1 where every number of a row is finite, else 0 */
#include "exact.glsl"
layout(local_size_x = 64) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y, x;
};

shared uint bad;

void main()
{
    uint row = gl_WorkGroupID.x, found = 0;
    if (gl_LocalInvocationID.x == 0)
        bad = 0;
    barrier();
    for (uint c = gl_LocalInvocationID.x; c < x.cols; c += 64)
        found |= uint((as_bits(x.data.at[row * x.stride + c]) & INFINITY_BITS) == INFINITY_BITS);
    if (found != 0)
        atomicOr(bad, 1u);
    barrier();
    if (gl_LocalInvocationID.x == 0)
        y.data.at[row * y.stride] = bad != 0 ? 0.0 : 1.0;
}
