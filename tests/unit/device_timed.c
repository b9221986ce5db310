/* A device that is timed computes the same, and its times and counts are what they say. */
#include "unit.h"

#include "base/alloc.h"
#include "device/timed.h"
#include "kernels/matrix.h"

enum { WIDTH = 256, COLUMNS = 1024, ROWS = 8, THREADS = 3, CALLS = 16 };

typedef struct fixture {
    mt_device *dev;
    mt_set *set;
    mt_tensor *x, *y;
    mt_weight *w;
    mt_reading *reading;
    float weights[COLUMNS * WIDTH];
} fixture;

static fixture *make(void)
{
    const mt_device_params params = {.name = unit_device(), .host = {.threads = THREADS, .cpu_mask = ~0u}};
    fixture *f = mt_alloc(sizeof(*f));
    mt_error err = {0};
    float row[WIDTH];
    for (size_t i = 0; i < COLUMNS * WIDTH; i++)
        f->weights[i] = (float)(i % 31) / 31 - 0.5f;
    for (size_t i = 0; i < WIDTH; i++)
        row[i] = (float)i / WIDTH;
    const mt_mat mat = {.format = MT_FORMAT_F32,
                        .bits = 32,
                        .n = COLUMNS,
                        .k = WIDTH,
                        .w = (const uint8_t *)f->weights,
                        .stride = WIDTH * sizeof(float)};
    f->dev = mt_device_open(&params, &err);
    f->set = mt_set_new(f->dev);
    f->x = mt_tensor_new(f->set, ROWS, WIDTH);
    f->y = mt_tensor_new(f->set, ROWS, COLUMNS);
    f->w = mt_weight_new(f->set, &mat, NULL, false);
    f->reading = mt_reading_new(f->set, ROWS * COLUMNS * sizeof(float));
    for (size_t i = 0; i < ROWS; i++)
        mt_tensor_write(f->dev, f->x, i, 1, row);
    assert_true(mt_device_plan(f->dev, ROWS, &err));
    return f;
}

static void multiply(fixture *f, float *out)
{
    mt_op_matmul(f->dev, (mt_tensor *const[]){f->y}, (const mt_weight *const[]){f->w}, 1, f->x, ROWS);
    mt_read_rows(f->dev, f->reading, f->y, 0, 1);
    memcpy(out, mt_reading_row(f->dev, f->reading, 0), COLUMNS * sizeof(float));
}

static void destroy(fixture *f)
{
    mt_set_free(f->set);
    mt_device_close(f->dev);
    mt_free(f);
}

static void what_is_timed_computes_the_same_and_is_counted(void **state)
{
    static float plain[COLUMNS], timed[COLUMNS];
    mt_timing at[CALLS];
    mt_timings list = {.at = at, .capacity = CALLS};
    (void)state;
    fixture *f = make();
    multiply(f, plain);
    mt_timed *t = mt_timed_begin(f->dev, &list);
    multiply(f, timed);
    mt_timed_end(t);
    assert_memory_equal(plain, timed, sizeof(plain));
    assert_int_equal(list.count, 2); /* the product and the reading */
    assert_string_equal(at[0].name, "op_matmul");
    assert_true(at[0].work.ops == 2.0 * ROWS * COLUMNS * WIDTH);
    assert_true(at[0].work.bytes == 4.0 * (COLUMNS * WIDTH + ROWS * WIDTH + ROWS * COLUMNS));
    assert_int_equal(at[0].work.arithmetic, MT_ARITHMETIC_FP32);
    assert_true(at[0].begin < at[0].end && at[0].end <= at[1].begin);
    assert_string_equal(at[1].name, "read_rows");
    assert_true(at[1].work.ops == 0);
    multiply(f, timed);
    assert_int_equal(list.count, 2); /* nobody times any more */
    destroy(f);
}

static void every_moment_of_a_thread_is_accounted_for(void **state)
{
    static float out[COLUMNS];
    mt_timing at[CALLS];
    mt_timings list = {.at = at, .capacity = CALLS};
    (void)state;
    fixture *f = make();
    mt_timed *t = mt_timed_begin(f->dev, &list);
    multiply(f, out);
    mt_timed_end(t);
    const mt_host_work *h = &at[0].host;
    assert_true(h->wall > 0 && h->busy > 0 && h->wall <= at[0].end - at[0].begin);
    assert_true(h->busy + h->late + h->idle + h->claims == THREADS * h->wall);
    destroy(f);
}

static void calls_beyond_the_list_are_counted(void **state)
{
    static float out[COLUMNS];
    mt_timing at[1];
    mt_timings list = {.at = at, .capacity = 1};
    (void)state;
    fixture *f = make();
    mt_timed *t = mt_timed_begin(f->dev, &list);
    multiply(f, out);
    mt_timed_end(t);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.dropped, 1);
    destroy(f);
}

static void scales_count_among_the_bytes_of_a_matrix(void **state)
{
    const uint8_t none = 0;
    mt_mat mat = {.format = MT_FORMAT_AFFINE,
                  .scale_type = MT_SCALE_BF16,
                  .bits = 4,
                  .group = 64,
                  .n = 100,
                  .k = 128,
                  .biases = &none};
    (void)state;
    assert_true(mt_work_mat_bytes(&mat) == 100 * (64 + 2 * 2 * 2));
    mat = (mt_mat){.format = MT_FORMAT_FP8,
                   .scale_type = MT_SCALE_F32,
                   .bits = 8,
                   .group = 128,
                   .scale_rows = 128,
                   .n = 129,
                   .k = 256};
    assert_true(mt_work_mat_bytes(&mat) == 129 * 256 + 2 * 2 * 4);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_timed_computes_the_same_and_is_counted),
    cmocka_unit_test(every_moment_of_a_thread_is_accounted_for),
    cmocka_unit_test(calls_beyond_the_list_are_counted),
    cmocka_unit_test(scales_count_among_the_bytes_of_a_matrix),
};

UNIT_MAIN(tests)
