#version 450
#extension GL_GOOGLE_include_directive : require
/* y = W x by R4. A group has 8 columns and 4 rows: 8 threads share the links of a column. */
#include "weight.glsl"
layout(local_size_x = 64) in;
layout(push_constant, std430) uniform Arguments
{
    Rows y;
    Words codes, q;
    Floats turns, sums, scales, biases, bias;
    uint k, group, kind, row_words, m, flags; /* 1: biases, 2: bias */
};

#define DOT_START 12582912.0
#define COLUMNS 8
#define ROWS 4
#define LINKS 32 /* of a pass */

shared float part[ROWS][COLUMNS][LINKS];

int dot4(uint a, uint b, bool with_sign)
{
    int sum = 0;
    for (int i = 0; i < 32; i += 8) {
        int w = with_sign ? bitfieldExtract(int(a), i, 8) : int(bitfieldExtract(a, i, 8));
        sum += w * bitfieldExtract(int(b), i, 8);
    }
    return sum;
}

void main()
{
    uint unit = min(group, 32), link = group % 64 == 0 ? 2 : 1, each = group / unit, units = k / unit;
    uint groups = k / group, links = units / link, unit_words = unit / 4;
    uint t = gl_LocalInvocationID.x, column = gl_WorkGroupID.x * COLUMNS + t / 8, slice = t % 8;
    uint row0 = gl_WorkGroupID.y * ROWS, rows = min(ROWS, m - row0);
    /* then a thread of the first half adds the links of a row and column, and one of the second half its biases */
    uint own = t % 32, own_row = own / COLUMNS, own_column = gl_WorkGroupID.x * COLUMNS + own % COLUMNS;
    bool adds = own_row < rows && own_column < y.cols;
    float total = 0.0;
    for (uint pass = 0; pass < links; pass += LINKS) {
        uint end = min(pass + LINKS, links);
        for (uint l = pass + slice; l < end && column < y.cols; l += 8) {
            uint bits[ROWS];
            for (uint r = 0; r < ROWS; r++)
                bits[r] = 0x4b400000u;
            for (uint j = 0; j < link; j++) {
                uint u = l * link + j;
                for (uint w = 0; w < unit_words; w += 2) {
                    uint a, b;
                    if (kind == KIND_NIBBLES) {
                        uint both = codes.at[column * row_words + (u * unit_words + w) / 2];
                        a = both & 0x0f0f0f0fu;
                        b = both >> 4 & 0x0f0f0f0fu;
                    } else {
                        a = codes.at[column * row_words + u * unit_words + w];
                        b = codes.at[column * row_words + u * unit_words + w + 1];
                    }
                    for (uint r = 0; r < rows; r++) {
                        uint at = (row0 + r) * (k / 4) + u * unit_words + w;
                        bits[r] += uint(dot4(a, q.at[at], kind == KIND_BYTES) +
                                        dot4(b, q.at[at + 1], kind == KIND_BYTES));
                    }
                }
                [[dont_unroll]] for (uint r = 0; r < rows; r++) {
                    uint turn = 2 * ((row0 + r) * units + u);
                    if (j + 1 < link) {
                        bits[r] = fma_bits(as_bits(turns.at[turn]), bits[r], as_bits(turns.at[turn + 1]));
                    } else {
                        precise float dot_ = as_float(bits[r]) - DOT_START;
                        part[r][t / 8][l - pass] = mul_(turns.at[turn], dot_);
                    }
                }
            }
        }
        barrier();
        if (adds && t < 32)
            for (uint l = pass; l < end; l++)
                total = fma_(scales.at[own_column * groups + l * link / each], part[own_row][own % COLUMNS][l - pass], total);
        barrier();
    }
    if (adds && t >= 32 && (flags & 1) != 0) {
        for (uint g = 0; g < groups; g++)
            total = fma_(biases.at[own_column * groups + g], sums.at[(row0 + own_row) * groups + g], total);
        part[own_row][own % COLUMNS][0] = total;
    }
    barrier();
    if (adds && t < 32) {
        if ((flags & 1) != 0)
            total = add_(total, part[own_row][own % COLUMNS][0]);
        if ((flags & 2) != 0)
            total = add_(total, bias.at[own_column]);
        y.data.at[(row0 + own_row) * y.stride + own_column] = total;
    }
}
