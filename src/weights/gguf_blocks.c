/* Block types of GGUF (gguf_blocks.h): the table of types, and what is in a block of each. All numbers are little
   endian; d and dmin are f16; blocks of 256 are called super-blocks, and their groups have scales of 4 to 8 bits. */
#include "weights/gguf_blocks.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "kernels/unpack.h"

static uint16_t half_at(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

/* Nibbles of n bytes: the low ones first, then the high ones. */
static void nibbles(uint8_t *code, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        code[i] = p[i] & 15;
        code[n + i] = p[i] >> 4;
    }
}

/* Bit 4 of 32 codes, which lies in 32 bits. */
static void fifth_bits(uint8_t *code, const uint8_t *p)
{
    for (size_t i = 0; i < 32; i++)
        code[i] = (uint8_t)(code[i] | (p[i / 8] >> i % 8 & 1) << 4);
}

static void single(mt_gguf_block *o, const uint8_t *d, const uint8_t *dmin)
{
    o->d = half_at(d);
    o->dmin = dmin ? half_at(dmin) : 0;
    o->scale[0] = o->least[0] = 1;
}

static void open_q4_0(mt_gguf_block *o, const uint8_t *p)
{
    single(o, p, NULL);
    nibbles(o->code, p + 2, 16);
}

static void open_q4_1(mt_gguf_block *o, const uint8_t *p)
{
    single(o, p, p + 2);
    nibbles(o->code, p + 4, 16);
}

static void open_q5_0(mt_gguf_block *o, const uint8_t *p)
{
    single(o, p, NULL);
    nibbles(o->code, p + 6, 16);
    fifth_bits(o->code, p + 2);
}

static void open_q5_1(mt_gguf_block *o, const uint8_t *p)
{
    single(o, p, p + 2);
    nibbles(o->code, p + 8, 16);
    fifth_bits(o->code, p + 4);
}

static void open_q8_0(mt_gguf_block *o, const uint8_t *p)
{
    single(o, p, NULL);
    for (size_t i = 0; i < 32; i++)
        o->code[i] = p[2 + i] ^ 0x80;
}

/* Two bits of each element: 128 of them share 32 bytes. */
static void pairs_of_bits(uint8_t *code, const uint8_t *p)
{
    for (size_t i = 0; i < 256; i++)
        code[i] = p[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

static void open_q2_k(mt_gguf_block *o, const uint8_t *p)
{
    o->d = half_at(p + 80);
    o->dmin = half_at(p + 82);
    for (size_t i = 0; i < 16; i++) {
        o->scale[i] = p[i] & 15;
        o->least[i] = (int8_t)(p[i] >> 4);
    }
    pairs_of_bits(o->code, p + 16);
}

/* Scales of 6 bits: four in the nibbles of 8 bytes, two in 4 more. */
static void open_q3_k(mt_gguf_block *o, const uint8_t *p)
{
    const uint8_t *s = p + 96;
    o->d = half_at(p + 108);
    for (size_t i = 0; i < 16; i++)
        o->scale[i] = (int8_t)(((s[i % 8] >> i / 8 * 4 & 15) | (s[8 + i % 4] >> i / 4 * 2 & 3) << 4) - 32);
    pairs_of_bits(o->code, p + 32);
    for (size_t i = 0; i < 256; i++)
        o->code[i] = (uint8_t)(o->code[i] | (p[i % 32] >> i / 32 & 1) << 2);
}

/* Eight scales and eight minima of 6 bits in 12 bytes. */
static void scales_of_six(mt_gguf_block *o, const uint8_t *s)
{
    for (size_t i = 0; i < 4; i++) {
        o->scale[i] = s[i] & 63;
        o->least[i] = s[i + 4] & 63;
        o->scale[i + 4] = (int8_t)((s[i + 8] & 15) | s[i] >> 6 << 4);
        o->least[i + 4] = (int8_t)(s[i + 8] >> 4 | s[i + 4] >> 6 << 4);
    }
}

static void open_q4_k(mt_gguf_block *o, const uint8_t *p)
{
    o->d = half_at(p);
    o->dmin = half_at(p + 2);
    scales_of_six(o, p + 4);
    for (size_t i = 0; i < 4; i++)
        nibbles(o->code + 64 * i, p + 16 + 32 * i, 32);
}

static void open_q5_k(mt_gguf_block *o, const uint8_t *p)
{
    o->d = half_at(p);
    o->dmin = half_at(p + 2);
    scales_of_six(o, p + 4);
    for (size_t i = 0; i < 4; i++)
        nibbles(o->code + 64 * i, p + 48 + 32 * i, 32);
    for (size_t i = 0; i < 256; i++)
        o->code[i] = (uint8_t)(o->code[i] | (p[16 + i % 32] >> i / 32 & 1) << 4);
}

static void open_q6_k(mt_gguf_block *o, const uint8_t *p)
{
    o->d = half_at(p + 208);
    memcpy(o->scale, p + 192, 16);
    for (size_t i = 0; i < 2; i++)
        nibbles(o->code + 128 * i, p + 64 * i, 64);
    for (size_t i = 0; i < 256; i++)
        o->code[i] = (uint8_t)(o->code[i] | (p[128 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3) << 4);
}

static void open_iq4_xs(mt_gguf_block *o, const uint8_t *p)
{
    const uint16_t high = half_at(p + 2);
    o->d = half_at(p);
    for (size_t i = 0; i < 8; i++) {
        o->scale[i] = (int8_t)(((p[4 + i / 2] >> i % 2 * 4 & 15) | (high >> 2 * i & 3) << 4) - 32);
        nibbles(o->code + 32 * i, p + 8 + 16 * i, 16);
    }
}

static void open_mxfp4(mt_gguf_block *o, const uint8_t *p)
{
    o->byte[0] = p[0];
    nibbles(o->code, p + 1, 16);
}

/* The sign of a scale does not count, and the code of NaN is 0. */
static void open_nvfp4(mt_gguf_block *o, const uint8_t *p)
{
    for (size_t i = 0; i < 4; i++) {
        o->byte[i] = p[i] == 0x7f ? 0 : p[i] & 0x7f;
        nibbles(o->code + 16 * i, p + 4 + 8 * i, 8);
    }
}

static const char codebook[] = "whose weights are entries of a codebook; take one of the types Q2_K to Q8_0, IQ4_NL, "
                               "IQ4_XS or MXFP4 of the same model";
static const char ternary[] = "whose weights have three values; take one of the types Q2_K to Q8_0 of the same model";
static const char laid_out[] = "which is laid out for one kind of processor; take Q4_0 or IQ4_NL of the same model";
static const char no_weights[] = "which is no type of weights";

static const struct {
    const char *name;
    uint16_t elements, bytes;
    const char *refused;
    mt_gguf_layout layout;
} types[] = {
    [MT_GGML_F32] = {.name = "F32", .elements = 1, .bytes = 4},
    [MT_GGML_F16] = {.name = "F16", .elements = 1, .bytes = 2},
    [MT_GGML_BF16] = {.name = "BF16", .elements = 1, .bytes = 2},
#define LAYOUT(...) .layout = {__VA_ARGS__}
    [MT_GGML_Q4_0] = {"Q4_0", 32, 18, LAYOUT(MT_FORMAT_SIGNED, 4, 32, .open = open_q4_0)},
    [MT_GGML_Q4_1] = {"Q4_1", 32, 20, LAYOUT(MT_FORMAT_AFFINE, 4, 32, .open = open_q4_1)},
    [MT_GGML_Q5_0] = {"Q5_0", 32, 22, LAYOUT(MT_FORMAT_SIGNED, 5, 32, .open = open_q5_0)},
    [MT_GGML_Q5_1] = {"Q5_1", 32, 24, LAYOUT(MT_FORMAT_AFFINE, 5, 32, .open = open_q5_1)},
    [MT_GGML_Q8_0] = {"Q8_0", 32, 34, LAYOUT(MT_FORMAT_SIGNED, 8, 32, .open = open_q8_0)},
    [MT_GGML_Q2_K] = {"Q2_K", 256, 84, LAYOUT(MT_FORMAT_AFFINE, 2, 16, true, true, open_q2_k)},
    [MT_GGML_Q3_K] = {"Q3_K", 256, 110, LAYOUT(MT_FORMAT_SIGNED, 3, 16, true, .open = open_q3_k)},
    [MT_GGML_Q4_K] = {"Q4_K", 256, 144, LAYOUT(MT_FORMAT_AFFINE, 4, 32, true, true, open_q4_k)},
    [MT_GGML_Q5_K] = {"Q5_K", 256, 176, LAYOUT(MT_FORMAT_AFFINE, 5, 32, true, true, open_q5_k)},
    [MT_GGML_Q6_K] = {"Q6_K", 256, 210, LAYOUT(MT_FORMAT_SIGNED, 6, 16, true, .open = open_q6_k)},
    [MT_GGML_IQ4_NL] = {"IQ4_NL", 32, 18, LAYOUT(MT_FORMAT_IQ4, 4, 32, .open = open_q4_0)},
    [MT_GGML_IQ4_XS] = {"IQ4_XS", 256, 136, LAYOUT(MT_FORMAT_IQ4, 4, 32, true, .open = open_iq4_xs)},
    [MT_GGML_MXFP4] = {"MXFP4", 32, 17, LAYOUT(MT_FORMAT_MXFP4, 4, 32, .open = open_mxfp4)},
    [MT_GGML_NVFP4] = {"NVFP4", 64, 36, LAYOUT(MT_FORMAT_NVFP4, 4, 16, .open = open_nvfp4)},
#undef LAYOUT
#define REFUSED(called, of, size, why)                                \
    {                                                                 \
        .name = called, .elements = of, .bytes = size, .refused = why \
    }
    [9] = REFUSED("Q8_1", 32, 40, no_weights),
    [15] = REFUSED("Q8_K", 256, 292, no_weights),
    [16] = REFUSED("IQ2_XXS", 256, 66, codebook),
    [17] = REFUSED("IQ2_XS", 256, 74, codebook),
    [18] = REFUSED("IQ3_XXS", 256, 98, codebook),
    [19] = REFUSED("IQ1_S", 256, 50, codebook),
    [21] = REFUSED("IQ3_S", 256, 110, codebook),
    [22] = REFUSED("IQ2_S", 256, 82, codebook),
    [24] = REFUSED("I8", 1, 1, no_weights),
    [25] = REFUSED("I16", 1, 2, no_weights),
    [26] = REFUSED("I32", 1, 4, no_weights),
    [27] = REFUSED("I64", 1, 8, no_weights),
    [28] = REFUSED("F64", 1, 8, no_weights),
    [29] = REFUSED("IQ1_M", 256, 56, codebook),
    [31] = REFUSED("Q4_0_4_4", 32, 18, laid_out),
    [32] = REFUSED("Q4_0_4_8", 32, 18, laid_out),
    [33] = REFUSED("Q4_0_8_8", 32, 18, laid_out),
    [34] = REFUSED("TQ1_0", 256, 54, ternary),
    [35] = REFUSED("TQ2_0", 256, 66, ternary),
    [36] = REFUSED("IQ4_NL_4_4", 32, 18, laid_out),
    [37] = REFUSED("IQ4_NL_4_8", 32, 18, laid_out),
    [38] = REFUSED("IQ4_NL_8_8", 32, 18, laid_out),
    [41] = REFUSED("Q1_0", 128, 18, ternary),
    [42] = REFUSED("Q2_0", 64, 18, ternary),
#undef REFUSED
};

size_t mt_gguf_block_elements(uint32_t type)
{
    return type < MT_COUNT(types) ? types[type].elements : 0;
}

size_t mt_gguf_block_bytes(uint32_t type)
{
    return type < MT_COUNT(types) ? types[type].bytes : 0;
}

const char *mt_gguf_type_name(uint32_t type)
{
    return type < MT_COUNT(types) && types[type].name ? types[type].name : "?";
}

const char *mt_gguf_type_refused(uint32_t type)
{
    if (type >= MT_COUNT(types) || !types[type].name)
        return "which is a newer type than this version of motet knows; take one of the types Q2_K to Q8_0";
    return types[type].refused;
}

const mt_gguf_layout *mt_gguf_layout_of(uint32_t type)
{
    return type < MT_COUNT(types) && types[type].layout.open ? &types[type].layout : NULL;
}

/* The value of a code without its scale. */
static float number(const mt_gguf_layout *l, uint8_t code)
{
    const mt_mat w = {.format = l->format, .bits = l->bits};
    return (float)mt_code_integer(&w, code);
}

/* Half of 2^(byte - 127), also where that is 255; half of an E4M3 number. */
static float scale_of(const mt_gguf_layout *l, const mt_gguf_block *o, size_t g)
{
    const mt_scale_type type = mt_formats[l->format].scale_type;
    if (type == MT_SCALE_E8M0)
        return o->byte[0] == 255 ? 0x1p127f : 0.5f * mt_f32_from_e8m0(o->byte[0]);
    if (type == MT_SCALE_E4M3)
        return 0.5f * mt_f32_from_e4m3(o->byte[g]);
    return mt_f32_from_f16(o->d) * (float)o->scale[g];
}

static void block_floats(const mt_gguf_layout *l, const mt_gguf_block *o, size_t elements, float *to)
{
    const float sign = l->minimum ? -1.0f : 1.0f;
    for (size_t i = 0; i < elements; i++) {
        const size_t g = i / l->group;
        const float s = scale_of(l, o, g), q = number(l, o->code[i]);
        to[i] =
            mt_formats[l->format].biased ? fmaf(s, q, sign * (mt_f32_from_f16(o->dmin) * (float)o->least[g])) : s * q;
    }
}

static void plain_floats(uint32_t type, const uint8_t *from, size_t elements, float *to)
{
    const mt_scale_type as = type == MT_GGML_F32 ? MT_SCALE_F32 : type == MT_GGML_F16 ? MT_SCALE_F16 : MT_SCALE_BF16;
    for (size_t i = 0; i < elements; i++)
        to[i] = mt_scale_f32(from, as, i);
}

/* Products are exact, as f16 times all the integers has 24 bits at most; so a sum is rounded once, here as there. */
void mt_gguf_block_floats(uint32_t type, const uint8_t *from, size_t elements, float *to)
{
    const mt_gguf_layout *l = mt_gguf_layout_of(type);
    const size_t each = mt_gguf_block_elements(type), bytes = mt_gguf_block_bytes(type);
    if (!l) {
        plain_floats(type, from, elements, to);
        return;
    }
    for (size_t i = 0; i < elements; i += each, from += bytes) {
        mt_gguf_block o;
        memset(&o, 0, sizeof(o));
        l->open(&o, from);
        block_floats(l, &o, each, to + i);
    }
}
