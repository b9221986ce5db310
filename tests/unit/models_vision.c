/* Towers: what a picture's features are depends on the picture alone. Every family, both precisions. */
#include "unit.h"

#include <math.h>

#include "base/alloc.h"
#include "engine/opened.h"
#include "models/vision.h"
#include "models/vision_layout.h"

#define FIXTURES "tests/oracle/sighted/"

static const char *const folders[] = {FIXTURES "qwen3vl-bf16",
                                      FIXTURES "qwen25vl-mlx-4bit",
                                      FIXTURES "qwen2vl-bf16",
                                      FIXTURES "gemma3vl-mlx-8bit-tower",
                                      FIXTURES "mistral3-ministral-bf16",
                                      FIXTURES "mistral3-mlx-4bit",
                                      FIXTURES "gemma4vl-bf16",
                                      FIXTURES "gemma4vl-mlx-8bit-tower",
                                      FIXTURES "gemma4unifiedvl-bf16",
                                      FIXTURES "internvl-moe-bf16",
                                      FIXTURES "internvl-mlx-4bit",
                                      FIXTURES "minicpmv46-bf16"};

#define ROWS 2048 /* of features */

typedef struct tower {
    mt_opened o;
    mt_vision *vision;
    mt_tower tower;
    float levels[3][256];
    mt_set *set;
    mt_tensor *features;
    mt_reading *reading;
    uint32_t rows[ROWS]; /* of features, in no order */
} tower;

static void open_tower(tower *t, const char *folder, size_t threads, mt_precision precision, size_t rows)
{
    const mt_device_params device = {
        .name = unit_device(), .host = {.threads = threads, .cpu_mask = ~0u}, .precision = precision};
    const mt_vision_params params = {.patches = 2048, .rows = rows};
    mt_error err = {0};
    assert_true(mt_opened_open(&t->o, folder, &device, &(mt_open_wish){0}, &err));
    t->vision = mt_vision_new(t->o.dev, t->o.spec.vision, t->o.weights.vision, &params, &err);
    assert_non_null(t->vision);
    t->tower = mt_vision_tower(t->vision);
    assert_true(mt_device_plan(t->o.dev, rows, &err));
    t->set = mt_set_new(t->o.dev);
    t->features = mt_tensor_new(t->set, ROWS, mt_vision_width(t->o.spec.vision));
    t->reading = mt_reading_new(t->set, mt_vision_width(t->o.spec.vision) * sizeof(float));
    for (size_t i = 0; i < ROWS; i++)
        t->rows[i] = (uint32_t)(i * 1021 % ROWS);
    for (size_t i = 0; i < 3 * 256; i++)
        t->levels[i / 256][i % 256] = ((float)(i % 256) - 127.5f) / 64;
}

static void close_tower(tower *t)
{
    mt_vision_free(t->vision);
    mt_set_free(t->set);
    mt_opened_close(&t->o);
}

/* Gemma takes one size only. */
static mt_picture make_picture(tower *t, uint32_t height, uint32_t width, uint32_t views, uint32_t seed)
{
    const mt_vision_spec *s = t->o.spec.vision;
    mt_picture p = {.views = views, .frames = views > 1 ? s->frames : 1, .levels = (const float(*)[256])t->levels};
    p.height = s->merge_kind == MT_MERGE_MEAN ? s->table : height * s->merge;
    p.width = s->merge_kind == MT_MERGE_MEAN ? s->table : width * s->merge;
    p.tokens = views * (p.height / s->merge) * (p.width / s->merge);
    p.patch_bytes = (size_t)3 * p.frames * s->patch * s->patch;
    uint8_t *bytes = mt_alloc(mt_picture_patches(&p) * p.patch_bytes);
    for (size_t i = 0; i < mt_picture_patches(&p) * p.patch_bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
    p.patches = bytes;
    return p;
}

static float *new_features(const tower *t, const mt_picture *p)
{
    return mt_alloc_array(p->tokens * mt_vision_width(t->o.spec.vision), sizeof(float));
}

static void encode(tower *t, const mt_picture *const *pictures, float *const *features, size_t count, double budget)
{
    const size_t width = mt_vision_width(t->o.spec.vision);
    const uint32_t *to[8] = {t->rows};
    assert_true(t->tower.fits(t->tower.cursor, pictures, count));
    for (size_t i = 1; i < count; i++)
        to[i] = to[i - 1] + pictures[i - 1]->tokens;
    t->tower.begin(t->tower.cursor, t->features, pictures, to, count);
    double promised = mt_cursor_left(t->tower.cursor), spent = 0;
    while (mt_cursor_left(t->tower.cursor) > 0)
        spent += mt_cursor_run(t->tower.cursor, budget);
    assert_true(fabs(spent - promised) <= 1e-9 * promised);
    for (size_t i = 0; i < count; i++)
        for (size_t row = 0; row < pictures[i]->tokens; row++) {
            mt_read_rows(t->o.dev, t->reading, t->features, to[i][row], 1);
            memcpy(features[i] + row * width, mt_reading_row(t->o.dev, t->reading, 0), width * sizeof(float));
        }
}

static void assert_same(const tower *t, const mt_picture *p, const float *a, const float *b)
{
    assert_memory_equal(a, b, p->tokens * mt_vision_width(t->o.spec.vision) * sizeof(*a));
}

/* The features of one picture, alone and at once on one thread; the caller's to free. */
static float *alone(const char *folder, mt_precision precision, uint32_t seed)
{
    tower t;
    open_tower(&t, folder, 1, precision, 512);
    mt_picture p = make_picture(&t, 5, 7, 1, seed);
    float *features = new_features(&t, &p);
    encode(&t, (const mt_picture *[]){&p}, &features, 1, INFINITY);
    mt_free((void *)p.patches);
    close_tower(&t);
    return features;
}

static void check_slices(const char *folder, mt_precision precision, size_t threads, size_t rows, double budget)
{
    tower t;
    float *wanted = alone(folder, precision, 1);
    open_tower(&t, folder, threads, precision, rows);
    mt_picture p = make_picture(&t, 5, 7, 1, 1);
    float *features = new_features(&t, &p);
    encode(&t, (const mt_picture *[]){&p}, &features, 1, budget);
    assert_same(&t, &p, features, wanted);
    mt_free((void *)p.patches);
    mt_free(features);
    mt_free(wanted);
    close_tower(&t);
}

static void slices_and_threads_change_no_bit(void **state)
{
    (void)state;
    for (size_t f = 0; f < MT_COUNT(folders); f++) {
        check_slices(folders[f], MT_PRECISION_FAST, 2, 512, 1);
        check_slices(folders[f], MT_PRECISION_FAST, 7, 48, 3e5);
        check_slices(folders[f], MT_PRECISION_REFERENCE, 2, 64, 1e5);
    }
}

/* Between two others: one of another size, and one of several views. */
static void company_changes_no_bit(void **state)
{
    (void)state;
    for (size_t f = 0; f < MT_COUNT(folders); f++) {
        tower t;
        float *wanted = alone(folders[f], MT_PRECISION_FAST, 1);
        open_tower(&t, folders[f], 2, MT_PRECISION_FAST, 96);
        mt_picture first = make_picture(&t, 3, 9, 1, 2), p = make_picture(&t, 5, 7, 1, 1),
                   last = make_picture(&t, 2, 3, 3, 3);
        float *features[] = {new_features(&t, &first), new_features(&t, &p), new_features(&t, &last)};
        encode(&t, (const mt_picture *[]){&first, &p, &last}, features, 3, 7e5);
        assert_same(&t, &p, features[1], wanted);
        for (size_t i = 0; i < 3; i++)
            mt_free(features[i]);
        mt_free((void *)first.patches);
        mt_free((void *)p.patches);
        mt_free((void *)last.patches);
        mt_free(wanted);
        close_tower(&t);
    }
}

static void a_dropped_job_leaves_nothing_behind(void **state)
{
    (void)state;
    tower t;
    float *wanted = alone(folders[0], MT_PRECISION_FAST, 1);
    open_tower(&t, folders[0], 2, MT_PRECISION_FAST, 96);
    mt_picture other = make_picture(&t, 9, 4, 1, 5), p = make_picture(&t, 5, 7, 1, 1);
    float *features = new_features(&t, &p);
    t.tower.begin(t.tower.cursor, t.features, (const mt_picture *[]){&other}, (const uint32_t *[]){t.rows}, 1);
    mt_cursor_run(t.tower.cursor, mt_cursor_left(t.tower.cursor) / 2);
    mt_cursor_drop(t.tower.cursor);
    assert_true(mt_cursor_left(t.tower.cursor) == 0);
    encode(&t, (const mt_picture *[]){&p}, &features, 1, 5e5);
    assert_same(&t, &p, features, wanted);
    mt_free(features);
    mt_free((void *)other.patches);
    mt_free((void *)p.patches);
    mt_free(wanted);
    close_tower(&t);
}

static void too_much_does_not_fit(void **state)
{
    (void)state;
    tower t;
    open_tower(&t, folders[0], 1, MT_PRECISION_FAST, 64);
    const mt_picture large = {.views = 1, .height = 64, .width = 34}, many = {.views = 1025, .height = 2, .width = 2};
    assert_false(t.tower.fits(t.tower.cursor, (const mt_picture *[]){&large}, 1));
    assert_false(t.tower.fits(t.tower.cursor, (const mt_picture *[]){&many}, 1));
    close_tower(&t);
}

/* Queries and keys of InternViT are normed with an eps of their own. */
static void queries_have_an_eps_of_their_own(void **state)
{
    const char *const folder = FIXTURES "internvl-moe-bf16";
    tower t;
    (void)state;
    open_tower(&t, folder, 1, MT_PRECISION_FAST, 512);
    mt_vision_spec *spec = (mt_vision_spec *)(uintptr_t)t.o.spec.vision;
    assert_true(spec->row_eps == 1e-6f && spec->eps == 1e-4f);
    mt_picture p = make_picture(&t, 5, 7, 1, 3);
    float *features = new_features(&t, &p), *other = new_features(&t, &p);
    encode(&t, (const mt_picture *[]){&p}, &features, 1, INFINITY);
    spec->row_eps = 1;
    encode(&t, (const mt_picture *[]){&p}, &other, 1, INFINITY);
    assert_memory_not_equal(features, other, p.tokens * mt_vision_width(spec) * sizeof(*features));
    mt_free(features);
    mt_free(other);
    mt_free((void *)p.patches);
    close_tower(&t);
}

/* Patches of a token lie together, row by row, and so do tokens: four of each token here, three tokens a row. */
static void a_patch_knows_where_it_stands(void **state)
{
    static const uint8_t bytes[24] = {0};
    static const uint32_t to[6] = {0, 1, 2, 3, 4, 5};
    const mt_vision_spec spec = {.merge = 2, .table = 8, .frames = 1};
    const mt_picture p = {.views = 1, .height = 4, .width = 6, .tokens = 6, .patches = bytes, .patch_bytes = 1};
    mt_vision_layout l = {0};
    mt_batch batch;
    (void)state;
    mt_vision_layout_init(&l, &spec, 24, 4, 24);
    mt_vision_layout_begin(&l, (const mt_picture *[]){&p}, (const uint32_t *[]){to}, 1);
    mt_vision_layout_batch(&l, 0, 24, 0, &batch);
    for (uint32_t i = 0; i < 24; i++) {
        const uint32_t token = i / 4, inner = i % 4;
        assert_int_equal(l.positions[i].axis[1], token / 3 * 2 + inner / 2);
        assert_int_equal(l.positions[i].axis[2], token % 3 * 2 + inner % 2);
    }
    mt_vision_layout_table(&l, 0, 24);
    assert_int_equal(l.table_index[0], 0);
    assert_int_equal(l.table_index[4], 1);     /* the second patch of the first token, one to the right of five */
    assert_int_equal(l.table_index[8], 2 * 8); /* the third, one down of three */
    assert_int_equal(l.table_index[92], 7 * 8 + 7);
    mt_vision_layout_free(&l);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(slices_and_threads_change_no_bit),    cmocka_unit_test(company_changes_no_bit),
    cmocka_unit_test(a_dropped_job_leaves_nothing_behind), cmocka_unit_test(too_much_does_not_fit),
    cmocka_unit_test(a_patch_knows_where_it_stands),       cmocka_unit_test(queries_have_an_eps_of_their_own),
};
UNIT_MAIN(tests)
