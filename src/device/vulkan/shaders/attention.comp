#version 450
#extension GL_GOOGLE_include_directive : require
/* Attention by R8 over pages of bf16 or fp32. A group has one query head of one row. */
#include "functions.glsl"
layout(local_size_x = 64) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y, q;
    Words step;
    Floats sinks;
    uint64_t pages, page_bytes;
    uint step_words_table, page_tokens, head_dim, head_stride, block, keys, values, group, window, chunk, flags;
    float scale, softcap;
};

#define SEGMENT 256
#define FLAG_BF16 1
#define FLAG_CAUSAL 2
#define FLAG_SINKS 4

shared float query[1024];
shared float total[1024];
shared float p[SEGMENT];
shared float lane[64];
shared float shared_m, shared_l;

/* Byte `at` of page `page`. */
Words page_words(uint64_t pages, uint64_t page_bytes, uint page, uint at)
{
    return Words(pages + page_bytes * page + at);
}

float element(Words w, uint at)
{
    if ((flags & FLAG_BF16) != 0) {
        uint word = w.at[at / 2];
        return as_float(at % 2 != 0 ? word & 0xffff0000u : word << 16);
    }
    return as_float(w.at[at]);
}

float product(float a, float b, float c)
{
    return (flags & FLAG_BF16) != 0 ? fma_bf16(a, b, c) : fma_(a, b, c);
}

/* Adds a segment's m, l and, at index d, o to what there is; every thread calls it. */
void merge(inout float m, inout float l, float part_m, float part_l, out float before, out float behind)
{
    float most = max_(m, part_m);
    float factor[2] = {m, part_m};
    [[dont_unroll]] for (int i = 0; i < 2; i++)
        factor[i] = exp_(sub_(factor[i], most));
    before = factor[0];
    behind = factor[1];
    m = most;
    l = fma_(l, before, mul_(part_l, behind));
}

void main()
{
    uint t = gl_LocalInvocationID.x, head = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
    uint info = row * (step_words_table & 255u), end = step.at[info + 3], from = step.at[info + 1];
    uint seen = step.at[info + 2], tables = step.at[info + (step_words_table >> 8)];
    uint hi = seen != 0xffffffffu && (flags & FLAG_CAUSAL) == 0 ? seen : end;
    uint by_window = window != 0 && end > window ? end - window : 0;
    uint by_chunk = chunk != 0 ? (end - 1) / chunk * chunk : 0;
    uint lo = max(max(by_window, by_chunk), from);
    for (uint d = t; d < head_stride; d += 64) {
        float x = d < head_dim ? q.data.at[row * q.stride + head * head_dim + d] : 0.0;
        query[d] = (flags & FLAG_BF16) != 0 ? bf16_rounded(x) : x;
        total[d] = 0.0;
    }
    barrier();
    float m = as_float(0xff800000u), l = 0.0, before, behind;
    uint key = (keys + head / group) * block, value = (values + head / group) * block;
    for (uint segment = lo / SEGMENT; segment * SEGMENT < hi; segment++) {
        uint first = segment * SEGMENT, begin = max(lo, first), stop = min(hi, first + SEGMENT);
        float most = as_float(0xff800000u);
        if (begin >= stop)
            continue;
        [[dont_unroll]] for (uint i = t; i < SEGMENT; i += 64) {
            uint position = first + i;
            p[i] = 0.0;
            if (position < begin || position >= stop)
                continue;
            Words k = page_words(pages, page_bytes, step.at[tables + position / page_tokens], key);
            uint at = position % page_tokens * head_stride;
            float sum[16];
            [[dont_unroll]] for (uint j = 0; j < 16; j++) {
                float own = 0.0;
                for (uint d = j; d < head_stride; d += 16)
                    own = product(query[d], element(k, at + d), own);
                sum[j] = own;
            }
            float s = mul_(fold(sum), scale);
            s = softcap != 0.0 ? softcap_(s, softcap) : s;
            p[i] = s;
            most = max_(most, s);
        }
        lane[t] = most;
        barrier();
        if (t == 0) {
            for (uint i = 1; i < 64; i++)
                most = max_(most, lane[i]);
            shared_m = most;
        }
        barrier();
        most = shared_m;
        [[dont_unroll]] for (uint i = t; i < SEGMENT; i += 64) {
            uint position = first + i;
            if (position < begin || position >= stop)
                continue;
            float x = exp_(sub_(p[i], most));
            p[i] = (flags & FLAG_BF16) != 0 ? bf16_rounded(x) : x;
        }
        barrier();
        if (t < 16) {
            float sum = 0.0;
            [[dont_unroll]] for (uint i = t; i < SEGMENT; i += 16)
                sum = add_(sum, p[i]);
            lane[t] = sum;
        }
        barrier();
        if (t == 0) {
            [[dont_unroll]] for (uint width = 8; width > 0; width /= 2)
                [[dont_unroll]] for (uint j = 0; j < width; j++)
                    lane[j] = add_(lane[j], lane[j + width]);
            shared_l = lane[0];
        }
        barrier();
        merge(m, l, most, shared_l, before, behind);
        for (uint d = t; d < head_stride; d += 64) {
            float sum[16];
            [[dont_unroll]] for (uint j = 0; j < 16; j++) {
                float own = 0.0;
                for (uint i = (begin - first) / 16 * 16 + j; i < stop - first; i += 16) {
                    uint position = first + i;
                    if (position < begin)
                        continue;
                    Words v = page_words(pages, page_bytes, step.at[tables + position / page_tokens], value);
                    own = product(p[i], element(v, position % page_tokens * head_stride + d), own);
                }
                sum[j] = own;
            }
            total[d] = fma_(total[d], before, mul_(add_(fold(sum), 0.0), behind));
        }
        barrier();
    }
    if ((flags & FLAG_SINKS) != 0) {
        merge(m, l, sinks.at[head], 1.0, before, behind);
        for (uint d = t; d < head_dim; d += 64)
            total[d] = fma_(total[d], before, mul_(0.0, behind));
    }
    float factor = div_(1.0, l);
    for (uint d = t; d < head_dim; d += 64)
        y.data.at[row * y.stride + head * head_dim + d] = mul_(factor, total[d]);
}
