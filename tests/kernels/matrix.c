/* Random weight matrices. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "kernels/unpack.h"

static uint16_t random_half(check *c, mt_scale_type type, check_data kind)
{
    uint32_t bits = mt_f32_bits(check_float(c, kind));
    if (type == MT_SCALE_BF16)
        return (uint16_t)(bits >> 16);
    if (kind == CHECK_ZERO)
        return 0;
    if (kind == CHECK_NORMAL)
        return (uint16_t)((bits & 0x83ffu) | (uint16_t)((12 + check_below(c, 4)) << 10));
    uint16_t half = (uint16_t)bits; /* any f16 */
    return kind != CHECK_SPECIAL && (half & 0x7c00u) == 0x7c00u ? (uint16_t)(half & 0x83ffu) : half;
}

static uint8_t random_byte(check *c, mt_scale_type type, check_data kind)
{
    uint32_t bits = check_rand(c) >> 9;
    if (type == MT_SCALE_E4M3 || kind == CHECK_SPECIAL)
        return (uint8_t)bits;
    if (kind == CHECK_TINY || kind == CHECK_ZERO)
        return (uint8_t)(bits % 4);
    return (uint8_t)(kind == CHECK_HUGE ? 240 + bits % 15 : 107 + bits % 41);
}

/* Records of an f16 and signed bytes. */
static uint8_t *random_shared(check *c, mt_scale_type type, size_t count, check_data kind)
{
    const size_t size = mt_scale_size(type), bytes = mt_scale_bytes(type, count);
    uint8_t *p = check_alloc(c, bytes, 1);
    check_fill_bytes(c, p, bytes);
    for (size_t i = 0; i < bytes; i += size) {
        const uint16_t half = random_half(c, MT_SCALE_F16, kind);
        memcpy(p + i, &half, 2);
    }
    return p;
}

static uint8_t *random_scales(check *c, mt_scale_type type, size_t count, check_data kind)
{
    if (mt_scale_together(type) > 1)
        return random_shared(c, type, count, kind);
    size_t size = mt_scale_size(type);
    uint8_t *p = check_alloc(c, count * size, 1);
    for (size_t i = 0; i < count; i++) {
        if (size == 4) {
            float x = check_float(c, kind);
            memcpy(p + 4 * i, &x, 4);
        } else if (size == 2) {
            uint16_t half = random_half(c, type, kind);
            memcpy(p + 2 * i, &half, 2);
        } else {
            p[i] = random_byte(c, type, kind);
        }
    }
    return p;
}

void check_matrix(check *c, mt_mat *w, const mt_mat *shape, check_data kind)
{
    *w = *shape;
    if (w->global == 0)
        w->global = 1;
    w->stride = w->group ? mt_code_row(w->k, w->bits, w->split) : w->k * w->bits / 8;
    if (w->group == 0) {
        static const mt_scale_type plain[] = {
            [MT_FORMAT_F32] = MT_SCALE_F32, [MT_FORMAT_F16] = MT_SCALE_F16, [MT_FORMAT_BF16] = MT_SCALE_BF16};
        w->w = random_scales(c, plain[w->format], w->n * w->k, kind);
        return;
    }
    uint8_t *codes = check_alloc(c, w->n * w->stride, 1);
    check_fill_bytes(c, codes, w->n * w->stride);
    if (kind == CHECK_HUGE)
        memset(codes, 0xff, w->n * w->stride);
    w->w = codes;
    size_t rows = w->format == MT_FORMAT_FP8 ? (w->n + w->scale_rows - 1u) / w->scale_rows : w->n;
    size_t groups = (w->k + w->group - 1) / w->group;
    w->scale_stride = mt_scale_bytes(w->scale_type, groups);
    w->scales = random_scales(c, w->scale_type, rows * groups, kind);
    if (w->format == MT_FORMAT_AFFINE)
        w->biases = random_scales(c, w->scale_type, rows * groups, kind);
}

const char *check_matrix_name(const mt_mat *w)
{
    static const char *const formats[] = {"f32",   "f16",   "bf16",  "fp8",    "affine",
                                          "mxfp4", "nvfp4", "mxfp8", "signed", "iq4"};
    static const char *const scales[] = {"none", "f32", "f16", "bf16", "e8m0", "e4m3", "8-of-f16", "16-of-f16"};
    static char name[64];
    snprintf(name, sizeof(name), "%s %u-bit%s g%u %s%s", formats[w->format], w->bits, w->split ? " split" : "",
             w->group, scales[w->scale_type], w->scale_rows == 1 ? " a row" : "");
    return name;
}
