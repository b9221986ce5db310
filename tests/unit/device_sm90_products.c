/* Products of a CPU that computes as tensor cores of sm_90: each is what the rules in plain C make of its row and
   column, step by step. */
#include "unit.h"

#include <math.h>

#include "device/device.h"
#include "device/native.h"
#include "device/rules.h"
#include "device/sm90.h"
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"

enum { N = 19, M = 70, MOST_K = 2304, GROUP = 64, BLOCK = 128 };

static uint8_t bytes[N * MOST_K * 2];
static float scales[N * MOST_K / GROUP], biases[N * MOST_K / GROUP], x[M * MOST_K];

static uint64_t next(uint64_t *seed)
{
    uint64_t v = *seed += 0x9e3779b97f4a7c15u;
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

static mt_mat draw(mt_format format, size_t k)
{
    const unsigned bits = format == MT_FORMAT_BF16 ? 16 : format == MT_FORMAT_FP8 ? 8 : 4;
    const size_t group = format == MT_FORMAT_FP8 ? BLOCK : GROUP, groups = (k + group - 1) / group;
    uint64_t seed = k + bits;
    for (size_t i = 0; i < N * k * bits / 8; i++)
        bytes[i] = (uint8_t)next(&seed);
    for (size_t i = 0; i < N * k && format == MT_FORMAT_BF16; i++) {
        const float w = (float)((int)(next(&seed) % 512) - 256) / 300;
        const mt_bf16 half = mt_bf16_from_f32(w);
        memcpy(bytes + 2 * i, &half, sizeof(half));
    }
    for (size_t i = 0; i < N * k && format == MT_FORMAT_FP8; i++)
        bytes[i] &= 0xbf; /* no NaN */
    for (size_t i = 0; i < N * groups; i++) {
        scales[i] = ldexpf(1 + (float)(next(&seed) % 128) / 128, -7);
        biases[i] = -7 * scales[i];
    }
    for (size_t i = 0; i < M * k; i++)
        x[i] = ldexpf((float)((int)(next(&seed) % 65536) - 32768), -15 - (int)(i / 64 % 5) * 4);
    mt_mat mat = {.format = format, .bits = (uint8_t)bits, .n = N, .k = k, .w = bytes, .stride = k * bits / 8};
    if (format != MT_FORMAT_BF16) {
        mat.scale_type = MT_SCALE_F32;
        mat.group = (uint16_t)group;
        mat.scales = (const uint8_t *)scales;
        mat.scale_stride = groups * sizeof(float);
        mat.scale_rows = format == MT_FORMAT_FP8 ? BLOCK : 0;
        mat.biases = format == MT_FORMAT_AFFINE ? (const uint8_t *)biases : NULL;
    }
    return mat;
}

/* A sum over k in steps of 16, from 0; of FP8 from 0 at each block, whose scale counts at its end. */
static float by_steps(const mt_mat *mat, size_t n, const float *row)
{
    float sum = 0, total = 0;
    for (size_t k = 0; k < mat->k; k += MT_SM90_K) {
        uint16_t a[MT_SM90_K] = {0}, b[MT_SM90_K] = {0};
        for (size_t i = k; i < mat->k && i < k + MT_SM90_K; i++) {
            b[i - k] = mt_bf16_from_f32(row[i]);
            if (mat->format == MT_FORMAT_BF16)
                memcpy(&a[i - k], mat->w + n * mat->stride + 2 * i, 2);
            else
                a[i - k] = mt_bf16_from_f32(mt_f32_from_fp8(mat->w[n * mat->stride + i]));
        }
        sum = mt_sm90_dot_bf16(sum, a, b);
        if (mat->format == MT_FORMAT_FP8 && ((k + MT_SM90_K) % BLOCK == 0 || k + MT_SM90_K >= mat->k)) {
            total = fmaf(scales[k / BLOCK], sum, total);
            sum = 0;
        }
    }
    return mat->format == MT_FORMAT_FP8 ? total : sum;
}

static float by_native(const mt_mat *mat, size_t n, const float *row)
{
    static mt_f16 weights[MOST_K];
    static uint64_t packed[MOST_K];
    const int power = mt_native_power(mat);
    mt_native_weights(weights, mat, n, power);
    mt_native_pack(packed, row, mat->k);
    return mt_native_dot(weights, packed, mat->k, power);
}

static void check(mt_format format, size_t k, size_t m, mt_numerics numerics)
{
    const mt_device_params params = {.name = "cpu", .numerics = numerics, .host = {.threads = 2, .cpu_mask = ~0u}};
    mt_error err = {0};
    mt_device *dev = mt_device_open(&params, &err);
    const mt_mat mat = draw(format, k);

    assert_non_null(dev);
    const mt_way way = mt_rules_way(mt_device_fingerprint(dev));
    assert_int_equal(way.level, MT_SM90);
    assert_int_equal(way.native, numerics == MT_NUMERICS_SM90);
    mt_set *set = mt_set_new(dev);
    mt_weight *w = mt_weight_new(set, &mat, NULL, false);
    mt_tensor *from = mt_tensor_new(set, m, k), *y = mt_tensor_new(set, m, N);
    mt_reading *reading = mt_reading_new(set, m * N * sizeof(float));
    assert_true(mt_device_plan(dev, m, &err));
    mt_tensor_write(dev, from, 0, m, x);
    mt_op_matmul(dev, &y, (const mt_weight *const *)&w, 1, from, m);
    mt_read_rows(dev, reading, y, 0, m);
    for (size_t i = 0; i < m; i++)
        for (size_t n = 0; n < N; n += i ? 5 : 1) {
            const float got = mt_reading_row(dev, reading, i)[n];
            const float want = (format == MT_FORMAT_AFFINE ? by_native : by_steps)(&mat, n, x + i * k);
            if (mt_f32_bits(got) != mt_f32_bits(want))
                fail_msg("format %d, k %zu, row %zu, column %zu: %a instead of %a", (int)format, k, i, n, (double)got,
                         (double)want);
        }
    mt_set_free(set);
    mt_device_close(dev);
}

static void products_of_codes_are_those_of_native(void **state)
{
    (void)state;
    check(MT_FORMAT_AFFINE, 64, 1, MT_NUMERICS_SM90);
    check(MT_FORMAT_AFFINE, 320, M, MT_NUMERICS_SM90);
    check(MT_FORMAT_AFFINE, MOST_K, 3, MT_NUMERICS_SM90);
}

static void products_in_bf16_are_sums_of_steps(void **state)
{
    (void)state;
    check(MT_FORMAT_BF16, 8, 1, MT_NUMERICS_SM90);
    check(MT_FORMAT_BF16, 200, M, MT_NUMERICS_SM90_PORTABLE);
    check(MT_FORMAT_BF16, MOST_K, 3, MT_NUMERICS_SM90);
}

static void products_in_fp8_have_a_sum_for_each_block(void **state)
{
    (void)state;
    check(MT_FORMAT_FP8, 128, 1, MT_NUMERICS_SM90);
    check(MT_FORMAT_FP8, 336, M, MT_NUMERICS_SM90_PORTABLE);
}

static void a_gpu_is_not_asked_to_compute_so(void **state)
{
    const mt_device_params params = {.name = "cuda", .numerics = MT_NUMERICS_SM90};
    mt_error err = {0};
    (void)state;
    assert_null(mt_device_open(&params, &err));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(products_of_codes_are_those_of_native),
    cmocka_unit_test(products_in_bf16_are_sums_of_steps),
    cmocka_unit_test(products_in_fp8_have_a_sum_for_each_block),
    cmocka_unit_test(a_gpu_is_not_asked_to_compute_so),
};

UNIT_MAIN(tests)
