/* A weight as the device keeps it (products.c). */
#include "functions.glsl"

#define KIND_NIBBLES 0 /* codes without a sign, 8 to a word: byte b has element b below and b + 4 above */
#define KIND_BYTES 1   /* with a sign */
#define KIND_UNSIGNED 2
#define KIND_HALVES 3 /* bf16 */
#define KIND_F16 4
#define KIND_FLOATS 5

/* Code i of a row that begins at a word. */
int code_at(Words codes, uint first, uint kind, uint i)
{
    if (kind == KIND_NIBBLES)
        return int(codes.at[first + i / 8] >> (i % 4 * 8 + i % 8 / 4 * 4) & 15u);
    uint code = codes.at[first + i / 4] >> i % 4 * 8 & 255u;
    return kind == KIND_BYTES ? int(code << 24) >> 24 : int(code);
}
