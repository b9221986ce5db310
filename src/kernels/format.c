/* The table of formats (format.h). */
#include "kernels/format.h"

/* E2M1, doubled */
static const mt_code_integers e2m1 = {{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}, 12, 24};
static const mt_code_integers iq4 = {
    {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, 127, 240};

const mt_format_traits mt_formats[] = {
    [MT_FORMAT_F32] = {.name = "f32", .products = MT_PRODUCTS_F32},
    [MT_FORMAT_F16] = {.name = "f16", .products = MT_PRODUCTS_F32},
    [MT_FORMAT_BF16] = {.name = "bf16", .products = MT_PRODUCTS_BF16},
    [MT_FORMAT_FP8] = {.name = "fp8", .products = MT_PRODUCTS_BF16},
    [MT_FORMAT_AFFINE] = {.name = "affine", .products = MT_PRODUCTS_INTEGER, .biased = true},
    [MT_FORMAT_MXFP4] = {.name = "mxfp4",
                         .products = MT_PRODUCTS_INTEGER,
                         .scale_type = MT_SCALE_E8M0,
                         .halved = true,
                         .integers = &e2m1},
    [MT_FORMAT_NVFP4] = {.name = "nvfp4",
                         .products = MT_PRODUCTS_INTEGER,
                         .scale_type = MT_SCALE_E4M3,
                         .halved = true,
                         .global = true,
                         .integers = &e2m1},
    [MT_FORMAT_MXFP8] = {.name = "mxfp8", .products = MT_PRODUCTS_BF16, .scale_type = MT_SCALE_E8M0},
    [MT_FORMAT_SIGNED] = {.name = "signed", .products = MT_PRODUCTS_INTEGER},
    [MT_FORMAT_IQ4] = {.name = "iq4", .products = MT_PRODUCTS_INTEGER, .integers = &iq4},
};
