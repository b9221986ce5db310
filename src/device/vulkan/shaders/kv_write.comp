#version 450
#extension GL_GOOGLE_include_directive : require
/* Keys, or values, of the step to pages of bf16 or fp32: a thread writes two neighbours. */
#include "functions.glsl"
layout(local_size_x = 64) in;
layout(push_constant, std430) uniform Arguments
{
    Rows x;
    Words step;
    uint64_t pages, page_bytes;
    uint step_words, table, page_tokens, head_dim, head_stride, block, first, bf16, heads;
};

/* Byte `at` of page `page`. */
Words page_words(uint64_t pages, uint64_t page_bytes, uint page, uint at)
{
    return Words(pages + page_bytes * page + at);
}

void main()
{
    uint at = gl_GlobalInvocationID.x, row = gl_GlobalInvocationID.y, pairs = head_stride / 2;
    uint head = at / pairs, d = at % pairs * 2;
    if (head >= heads)
        return;
    uint position = step.at[row * step_words + 3] - 1, slot = position % page_tokens;
    uint page = step.at[step.at[row * step_words + table] + position / page_tokens];
    uint from = row * x.stride + head * head_dim;
    float a = d < head_dim ? x.data.at[from + d] : 0.0, b = d + 1 < head_dim ? x.data.at[from + d + 1] : 0.0;
    uint element = slot * head_stride + d;
    Words to = page_words(pages, page_bytes, page, (first + head) * block);
    if (bf16 != 0) {
        to.at[element / 2] = bf16_bits(a) & 0xffffu | bf16_bits(b) << 16;
    } else {
        to.at[element] = as_bits(a);
        to.at[element + 1] = as_bits(b);
    }
}
