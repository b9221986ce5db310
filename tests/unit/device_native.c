/* The rule of the arithmetic `native`: how weights and rows are rounded, what a product is, and that nothing of it
   overflows or gets lost. */
#include "unit.h"

#include <math.h>

#include "base/compiler.h"
#include "device/native.h"
#include "kernels/convert.h"

enum { GROUP = 64, MOST = MT_NATIVE_MOST_K };

/* A matrix of one row in 4 bits, all groups with the same scale and bias. */
typedef struct one_row {
    mt_mat mat;
    uint8_t codes[MOST / 2];
    float scales[MOST / GROUP], biases[MOST / GROUP];
} one_row;

static one_row matrix;
static mt_f16 weights[MOST];
static uint8_t packed[MOST * 3];
static float x[MOST];

static uint64_t next(uint64_t *seed)
{
    uint64_t v = *seed += 0x9e3779b97f4a7c15u;
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

static void make(size_t k, float scale, float bias)
{
    uint64_t seed = k;
    matrix.mat = (mt_mat){.format = MT_FORMAT_AFFINE,
                          .scale_type = MT_SCALE_F32,
                          .bits = 4,
                          .group = GROUP,
                          .n = 1,
                          .k = k,
                          .w = matrix.codes,
                          .stride = k / 2,
                          .scales = (const uint8_t *)matrix.scales,
                          .biases = (const uint8_t *)matrix.biases,
                          .scale_stride = k / GROUP * sizeof(float)};
    for (size_t i = 0; i < k / 2; i++)
        matrix.codes[i] = (uint8_t)next(&seed);
    for (size_t i = 0; i < k / GROUP; i++) {
        matrix.scales[i] = scale;
        matrix.biases[i] = bias;
    }
    for (size_t i = 0; i < k; i++)
        x[i] = (float)((int)(next(&seed) % 65536) - 32768) * 0x1p-15f;
}

static float product(size_t k)
{
    const int power = mt_native_power(&matrix.mat);
    mt_native_weights(weights, &matrix.mat, 0, power);
    mt_native_pack(packed, x, k);
    return mt_native_dot(weights, packed, k, power);
}

static double true_product(size_t k)
{
    double sum = 0;
    for (size_t i = 0; i < k; i++) {
        const unsigned code = matrix.codes[i / 2] >> (i % 2 ? 4 : 0) & 15;
        sum += (code * (double)matrix.scales[i / GROUP] + (double)matrix.biases[i / GROUP]) * (double)x[i];
    }
    return sum;
}

static void which_weights_go_by_it(void **state)
{
    (void)state;
    make(128, 0.001f, 0);
    assert_true(mt_native_fits(&matrix.mat));
    assert_true(mt_native_narrow(&matrix.mat));
    matrix.mat.bits = 8;
    assert_true(mt_native_fits(&matrix.mat));
    assert_false(mt_native_narrow(&matrix.mat));
    matrix.mat.bits = 2;
    matrix.mat.group = 128;
    assert_true(mt_native_fits(&matrix.mat));
    matrix.mat.group = 32;
    assert_true(mt_native_fits(&matrix.mat));
    matrix.mat.group = 48;
    assert_false(mt_native_fits(&matrix.mat));
    matrix.mat.group = 64;
    matrix.mat.k = MT_NATIVE_MOST_K + 64;
    assert_false(mt_native_fits(&matrix.mat));
    matrix.mat.k = 128;
    matrix.mat.format = MT_FORMAT_MXFP4;
    assert_true(mt_native_fits(&matrix.mat));
    assert_false(mt_native_narrow(&matrix.mat));
    matrix.mat.format = MT_FORMAT_FP8;
    assert_false(mt_native_fits(&matrix.mat));
}

/* Codes are lifted to be unsigned, which the bias takes back: exactly, unless the scale is tiny. */
static void lifted_codes_are_what_they_stand_for(void **state)
{
    (void)state;
    make(64, 0x1.4p-7f, 0);
    matrix.mat.format = MT_FORMAT_SIGNED;
    matrix.mat.biases = NULL;
    const int power = mt_native_power(&matrix.mat);
    mt_native_weights(weights, &matrix.mat, 0, power);
    for (size_t i = 0; i < 64; i++) {
        const int code = matrix.codes[i / 2] >> (i % 2 ? 4 : 0) & 15;
        assert_float_equal(ldexpf(mt_f32_from_f16(weights[i]), power), (float)(code - 8) * 0x1.4p-7f, 0);
    }
}

static void a_matrix_has_the_least_power_that_does(void **state)
{
    (void)state;
    make(128, 65504 * 0x1p-24f, 0);
    assert_int_equal(mt_native_power(&matrix.mat), 0);
    matrix.scales[1] = -0x1p-8f;
    assert_int_equal(mt_native_power(&matrix.mat), 1);
    matrix.scales[0] = 0x1p-4f;
    assert_int_equal(mt_native_power(&matrix.mat), 5);
    matrix.biases[0] = 0x1p22f;
    assert_int_equal(mt_native_power(&matrix.mat), 7);
    matrix.biases[1] = NAN; /* shows in products, whatever the power */
    assert_int_equal(mt_native_power(&matrix.mat), 7);
}

/* Both halves of a byte of codes give the same weight: of a scale so small that a sixteenth of it would lose bits,
   these are cleared. */
static void small_scales_are_multiples(void **state)
{
    (void)state;
    make(64, ldexpf(1.5f + 0x1p-9f, -24 - 11), 0);
    const mt_native_pair pair = mt_native_pair_of(&matrix.mat, 0, 0, 0);
    assert_float_equal(ldexpf(mt_f32_from_f16(pair.scale), 20), nearbyintf(ldexpf(1.5f + 0x1p-9f, 9)), 0);
    make(64, ldexpf(1.5f + 0x1p-9f, -24 - 10), 0);
    assert_float_equal(mt_f32_from_f16(mt_native_pair_of(&matrix.mat, 0, 0, 0).scale), ldexpf(1.5f + 0x1p-9f, -10), 0);
}

static void products_are_near_the_truth(void **state)
{
    static const size_t depths[] = {64, 192, 256, 320, 2048, 2112, 4096, 9728, 16384};
    static const float scales[] = {0x1.a4p-12f, 0x1.48p-7f, 0x1.66p-1f, 12}; /* numbers of bf16 */

    (void)state;
    for (size_t i = 0; i < MT_COUNT(depths); i++)
        for (size_t j = 0; j < MT_COUNT(scales); j++) {
            make(depths[i], scales[j], -7 * scales[j]);
            const double size = (double)scales[j] * 4.6 * 0.58 * sqrt((double)depths[i]);
            assert_true(fabs((double)product(depths[i]) - true_product(depths[i])) < 0.001 * size);
        }
}

/* A number in fp16 is the nearest multiple of its last bit, the even one of two: subnormal numbers, and ties, too. */
static void numbers_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    for (int e = -40; e <= 6; e++)
        for (int i = 0; i < 4096; i++) {
            const float pair[2] = {127, ldexpf(1 + (float)i / 4096, e) * (i % 3 ? 1 : -1)}; /* 127: the unit is 2^-8 */
            mt_f16 half[2];
            assert_int_equal(mt_native_pack_segment(half, pair, 2), -8);
            const double wanted = ldexp((double)pair[1], 8), unit = ldexp(1, (e + 8 < -14 ? -14 : e + 8) - 10);
            assert_true((double)mt_f32_from_f16(half[1]) == nearbyint(wanted / unit) * unit);
        }
}

/* A segment's size is a power of two: products scale with it exactly, from one end of the range to the other, and
   segments of all sizes side by side neither overflow nor push each other aside. */
static void powers_of_two_change_no_digit(void **state)
{
    (void)state;
    make(2304, 0.003f, -0.02f);
    const float usual = product(2304);
    for (int e = -47; e <= 38; e++) {
        make(2304, 0.003f, -0.02f);
        for (size_t i = 0; i < 2304; i++)
            x[i] = ldexpf(x[i], e);
        assert_float_equal(product(2304), ldexpf(usual, e), 0);
    }
    make(2304, 0.003f, -0.02f);
    for (size_t i = 0; i < 2304; i++)
        x[i] = ldexpf(x[i], (int)(i / 64) % 3 == 0 ? 37 : (int)(i / 64) % 3 == 1 ? -70 : -126);
    const double want = true_product(2304);
    assert_true(fabs((double)product(2304) - want) < 0.001 * fabs(want) + 0x1p37 * 0.002);
}

static void zeros_behind_change_nothing(void **state)
{
    float first[64];
    uint8_t codes[32];

    (void)state;
    make(64, 0.003f, -0.02f);
    memcpy(first, x, sizeof(first));
    memcpy(codes, matrix.codes, sizeof(codes));
    const float alone = product(64);
    make(512, 0.003f, -0.02f);
    memset(x, 0, sizeof(x));
    memcpy(x, first, sizeof(first));
    memcpy(matrix.codes, codes, sizeof(codes));
    assert_float_equal(product(512), alone, 0);
}

static void what_is_not_finite_shows(void **state)
{
    (void)state;
    make(512, 0.003f, -0.02f);
    x[300] = NAN;
    assert_true(isnan(product(512)) != 0);
    make(512, 0.003f, -0.02f);
    x[300] = INFINITY;
    assert_true(!isfinite(product(512)));
    make(512, 0.003f, -0.02f);
    x[300] = 0x1p41f; /* beyond what fp16 has in the largest unit */
    assert_true(!isfinite(product(512)));
    make(512, 0.003f, -0.02f);
    matrix.scales[3] = NAN;
    assert_true(isnan(product(512)) != 0);
}

/* Kernels are held to this code on a card; this holds the code to what it was then. */
static void bits_are_what_they_were(void **state)
{
    static const size_t depths[] = {64, 1024, 4096, 12288};
    uint32_t hash = 2166136261u;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(depths); i++) {
        make(depths[i], 0.0137f, -0.095f);
        for (size_t j = 0; j < depths[i]; j++)
            x[j] = ldexpf(x[j], (int)(j / 64 * 5 % 23) - 11);
        const float y = product(depths[i]);
        uint32_t bits;
        memcpy(&bits, &y, sizeof(bits));
        hash = (hash ^ bits) * 16777619u;
    }
    assert_int_equal(hash, 0x8de83613);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(which_weights_go_by_it),      cmocka_unit_test(a_matrix_has_the_least_power_that_does),
    cmocka_unit_test(small_scales_are_multiples),  cmocka_unit_test(lifted_codes_are_what_they_stand_for),
    cmocka_unit_test(products_are_near_the_truth), cmocka_unit_test(powers_of_two_change_no_digit),
    cmocka_unit_test(zeros_behind_change_nothing), cmocka_unit_test(what_is_not_finite_shows),
    cmocka_unit_test(bits_are_what_they_were),     cmocka_unit_test(numbers_are_rounded_to_the_nearest),
};
UNIT_MAIN(tests)
