/* row_f32: every format, every k around the vector sizes. */
#include <math.h>

#include "check.h"
#include "kernels/convert.h"

void check_row(check *c);

static const mt_mat plain[] = {
    {.format = MT_FORMAT_F32, .bits = 32},
    {.format = MT_FORMAT_F16, .bits = 16},
    {.format = MT_FORMAT_BF16, .bits = 16},
};

static const mt_mat floats[] = {
    {.format = MT_FORMAT_FP8, .bits = 8, .group = 128, .scale_rows = 128, .scale_type = MT_SCALE_F32},
    {.format = MT_FORMAT_FP8, .bits = 8, .group = 128, .scale_rows = 128, .scale_type = MT_SCALE_BF16},
    {.format = MT_FORMAT_FP8, .bits = 8, .group = 128, .scale_rows = 1, .scale_type = MT_SCALE_F32},
    {.format = MT_FORMAT_MXFP8, .bits = 8, .group = 32, .scale_type = MT_SCALE_E8M0},
    {.format = MT_FORMAT_MXFP4, .bits = 4, .group = 32, .scale_type = MT_SCALE_E8M0},
    {.format = MT_FORMAT_NVFP4, .bits = 4, .group = 16, .scale_type = MT_SCALE_E4M3},
    {.format = MT_FORMAT_NVFP4, .bits = 4, .group = 16, .scale_type = MT_SCALE_E4M3, .global = 0.3f},
    {.format = MT_FORMAT_SIGNED, .bits = 3, .group = 16, .scale_type = MT_SCALE_16_OF_F16},
    {.format = MT_FORMAT_SIGNED, .bits = 4, .group = 32, .scale_type = MT_SCALE_F16},
    {.format = MT_FORMAT_SIGNED, .bits = 5, .group = 32, .scale_type = MT_SCALE_F16, .split = true},
    {.format = MT_FORMAT_SIGNED, .bits = 6, .group = 16, .scale_type = MT_SCALE_16_OF_F16, .split = true},
    {.format = MT_FORMAT_SIGNED, .bits = 8, .group = 32, .scale_type = MT_SCALE_F16},
    {.format = MT_FORMAT_IQ4, .bits = 4, .group = 32, .scale_type = MT_SCALE_F16},
    {.format = MT_FORMAT_IQ4, .bits = 4, .group = 32, .scale_type = MT_SCALE_8_OF_F16},
    {.format = MT_FORMAT_AFFINE, .bits = 2, .group = 16, .scale_type = MT_SCALE_16_OF_F16},
    {.format = MT_FORMAT_AFFINE, .bits = 4, .group = 32, .scale_type = MT_SCALE_8_OF_F16},
    {.format = MT_FORMAT_AFFINE, .bits = 5, .group = 32, .scale_type = MT_SCALE_8_OF_F16, .split = true},
};

static void one(check *c, mt_mat shape, check_data kind)
{
    mt_mat w;
    shape.n = shape.format == MT_FORMAT_FP8 ? 130 : 3;
    check_matrix(c, &w, &shape, kind);
    float *want = check_alloc(c, w.k * sizeof(*want), 4), *got = check_alloc(c, w.k * sizeof(*got), 4);
    for (size_t r = 0; r < w.n; r += w.n < 10 ? 1 : 43) {
        c->ref->row_f32(want, &w, r);
        c->k->row_f32(got, &w, r);
        check_f32(c, want, got, 1, w.k, w.k, "%s k=%zu row=%zu data=%s", check_matrix_name(&w), w.k, r,
                  check_data_name(kind));
    }
    check_release(c);
}

static void affine(check *c, check_data kind)
{
    static const uint8_t bits[] = {2, 3, 4, 5, 6, 8};
    static const mt_scale_type types[] = {MT_SCALE_F32, MT_SCALE_F16, MT_SCALE_BF16};
    for (size_t b = 0; b < sizeof(bits); b++)
        for (size_t t = 0; t < 3; t++)
            for (uint16_t group = 32; group <= 128; group = (uint16_t)(group * 2))
                for (size_t groups = 1; groups <= 5; groups++)
                    one(c,
                        (mt_mat){.format = MT_FORMAT_AFFINE,
                                 .bits = bits[b],
                                 .group = group,
                                 .scale_type = types[t],
                                 .k = groups * group},
                        kind);
}

/* The definition itself, on known values. */
static void known(check *c)
{
    static const uint8_t codes[16] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe,
                                      0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
    static const uint8_t e8m0[1] = {128};
    static const float want[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    mt_mat w = {.format = MT_FORMAT_MXFP4,
                .scale_type = MT_SCALE_E8M0,
                .bits = 4,
                .group = 32,
                .n = 1,
                .k = 32,
                .w = codes,
                .stride = 16,
                .scales = e8m0,
                .scale_stride = 1};
    float y[32];
    c->k->row_f32(y, &w, 0);
    bool ok = true;
    for (size_t i = 0; i < 32; i++)
        ok = ok && y[i] == want[i % 16];
    check_that(c, ok, "mxfp4 codes");
    static const uint16_t f16[5] = {0x0001, 0x03ff, 0x0400, 0x7bff, 0xfc00};
    static const float f16_want[5] = {0x1p-24f, 0x1.ff8p-15f, 0x1p-14f, 65504.0f, -INFINITY};
    w = (mt_mat){.format = MT_FORMAT_F16, .bits = 16, .n = 1, .k = 5, .w = (const uint8_t *)f16, .stride = 10};
    c->k->row_f32(y, &w, 0);
    check_f32(c, f16_want, y, 1, 5, 5, "f16 values");
    static const uint8_t e4m3[5] = {0x01, 0x08, 0xb8, 0x7e, 0xff};
    static const float e4m3_want[5] = {0x1p-9f, 0x1p-6f, -1.0f, 448.0f, NAN}, one_scale[1] = {1.0f};
    w = (mt_mat){.format = MT_FORMAT_FP8,
                 .scale_type = MT_SCALE_F32,
                 .bits = 8,
                 .group = 128,
                 .scale_rows = 128,
                 .n = 1,
                 .k = 5,
                 .w = e4m3,
                 .stride = 5,
                 .scales = (const uint8_t *)one_scale,
                 .scale_stride = 4};
    c->k->row_f32(y, &w, 0);
    check_f32(c, e4m3_want, y, 1, 5, 5, "fp8 values");
}

void check_row(check *c)
{
    if (!check_begin(c, CHECK_NEW(c, row_f32), "row_f32"))
        return;
    known(c);
    for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++) {
        for (size_t k = 1; k <= 70; k++)
            for (size_t f = 0; f < 3; f++) {
                mt_mat shape = plain[f];
                shape.k = k;
                one(c, shape, kind);
            }
        for (size_t f = 0; f < sizeof(floats) / sizeof(floats[0]); f++)
            for (size_t groups = 1; groups <= 5; groups++) {
                mt_mat shape = floats[f];
                shape.k = groups * shape.group * mt_scale_together(shape.scale_type);
                one(c, shape, kind);
            }
        affine(c, kind);
    }
    check_end(c);
}
