/* Which experts a row gets where several are equal: a rule that no comparison of devices shows, as all follow it. */
#include "unit.h"

#include "device/device.h"
#include "kernels/matrix.h"

enum { EXPERTS = 6, WIDTH = 32 };

typedef struct fixture {
    float weights[3 * EXPERTS][WIDTH * WIDTH];
    mt_mat mats[3 * EXPERTS];
} fixture;

static void make(fixture *f)
{
    uint32_t random = 1;
    for (size_t e = 0; e < 3 * EXPERTS; e++) {
        for (size_t i = 0; i < WIDTH * WIDTH; i++) {
            random = random * 1664525u + 1013904223u;
            f->weights[e][i] = (float)(random >> 16) / 65536.0f - 0.5f;
        }
        f->mats[e] = (mt_mat){.format = MT_FORMAT_F32,
                              .bits = 32,
                              .n = WIDTH,
                              .k = WIDTH,
                              .w = (const uint8_t *)f->weights[e],
                              .stride = WIDTH * sizeof(float)};
    }
}

/* What a row comes to with the best `top` experts of a router, weights that come to 1. */
static void route(const fixture *f, const float *router, size_t top, float *out)
{
    const mt_device_params params = {
        .name = unit_device(), .host = {.threads = 1, .cpu_mask = ~0u}, .precision = MT_PRECISION_REFERENCE};
    mt_error err = {0};
    mt_device *dev = mt_device_open(&params, &err);
    mt_set *set = mt_set_new(dev);
    mt_tensor *x = mt_tensor_new(set, 1, WIDTH), *y = mt_tensor_new(set, 1, WIDTH), *r = mt_tensor_new(set, 1, EXPERTS);
    mt_reading *reading = mt_reading_new(set, WIDTH * sizeof(float));
    const mt_experts_params params_of = {.count = EXPERTS,
                                         .top_k = top,
                                         .gate = f->mats,
                                         .up = f->mats + EXPERTS,
                                         .down = f->mats + (size_t)2 * EXPERTS,
                                         .routing = {.renormalise = true}};
    const mt_experts *all = mt_experts_new(set, &params_of);
    float row[WIDTH];
    for (size_t i = 0; i < WIDTH; i++)
        row[i] = (float)i / WIDTH - 0.3f;
    mt_tensor_write(dev, x, 0, 1, row);
    mt_tensor_write(dev, r, 0, 1, router);
    assert_true(mt_device_plan(dev, 4, &err));
    mt_op_moe(dev, y, x, r, 1, all);
    mt_read_rows(dev, reading, y, 0, 1);
    memcpy(out, mt_reading_row(dev, reading, 0), WIDTH * sizeof(float));
    mt_set_free(set);
    mt_device_close(dev);
}

static void the_lower_of_equal_experts_comes_first(void **state)
{
    static const float none[EXPERTS] = {0}, first[EXPERTS] = {200, 0, 0, 0, 0, 0};
    static const float two[EXPERTS] = {0, 0, 5, 0, 5, 5}, third[EXPERTS] = {0, 0, 200, 0, 0, 0};
    static const float pair[EXPERTS] = {0, 200, 0, 200, 0, 0}, three[EXPERTS] = {0, 5, 0, 5, 0, 5};
    static fixture f;
    float wanted[WIDTH], got[WIDTH];
    (void)state;
    make(&f);
    route(&f, first, 1, wanted);
    route(&f, none, 1, got);
    for (size_t i = 0; i < WIDTH; i++)
        assert_float_equal(got[i], wanted[i], 1e-6);
    route(&f, third, 1, wanted);
    route(&f, two, 1, got);
    for (size_t i = 0; i < WIDTH; i++)
        assert_float_equal(got[i], wanted[i], 1e-6);
    route(&f, pair, 2, wanted);
    route(&f, three, 2, got); /* the third is not among the two */
    for (size_t i = 0; i < WIDTH; i++)
        assert_float_equal(got[i], wanted[i], 1e-6);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_lower_of_equal_experts_comes_first),
};

UNIT_MAIN(tests)
