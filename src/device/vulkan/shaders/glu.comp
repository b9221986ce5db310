#version 450
#extension GL_GOOGLE_include_directive : require
/* y = act(gate) * up: 0 SiLU, 1 GELU by tanh, 2 none */
#include "functions.glsl"
layout(local_size_x = 64) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y, gate, up;
    uint kind;
};

void main()
{
    uint c = gl_GlobalInvocationID.x, i = gl_GlobalInvocationID.y;
    if (c >= y.cols)
        return;
    float g = gate.data.at[i * gate.stride + c], u = up.data.at[i * up.stride + c];
    y.data.at[i * y.stride + c] = mul_(kind == 0 ? silu_(g) : kind == 1 ? gelu_(g) : g, u);
}
