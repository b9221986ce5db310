#version 450
#extension GL_GOOGLE_include_directive : require
/* The first elements of each head of y are rotated by the table, which has cosines, then sines: elements i and i + half, or neighbours. */
#include "functions.glsl"
layout(local_size_x = 64) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y, table;
    uint head_dim, half_, heads, pairs;
};

void main()
{
    uint at = gl_GlobalInvocationID.x, row = gl_GlobalInvocationID.y, head = at / half_, i = at % half_;
    if (head >= heads)
        return;
    uint first = row * y.stride + head * head_dim + (pairs != 0 ? 2 * i : i), second = first + (pairs != 0 ? 1 : half_);
    float c = table.data.at[row * table.stride + i], s = table.data.at[row * table.stride + half_ + i];
    float a = y.data.at[first], b = y.data.at[second];
    y.data.at[first] = fma_(a, c, neg_(mul_(b, s)));
    y.data.at[second] = fma_(b, c, mul_(a, s));
}
