/* Measures how long the vision tower of the checkpoint takes for square pictures of noise. */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/bench.h"
#include "models/vision.h"

enum { RUNS = 5 };

static const mt_bench_column columns[] = {
    {"side", "side in pixels", 0},       {"patches", "patches", 0}, {"tokens", "tokens", 0},
    {"seconds", "seconds", 4},           {"rate", "GFLOP/s", 1},    {"share", "% of peak", 0},
    {"hash", "features", MT_BENCH_TEXT},
};

/* A picture of noise, already preprocessed. */
static mt_picture noise(const mt_vision_spec *s, size_t side, const float (*levels)[256])
{
    const uint32_t step = s->patch * s->merge, whole = (uint32_t)(side + step / 2) / step;
    const uint32_t grid = (whole ? whole : 1) * s->merge;
    mt_picture p = {.views = 1, .height = grid, .width = grid, .frames = 1, .levels = levels};
    p.patch_bytes = (size_t)3 * s->patch * s->patch;
    p.tokens = grid / s->merge * (grid / s->merge);
    uint8_t *bytes = mt_alloc(mt_picture_patches(&p) * p.patch_bytes);
    uint32_t x = 12345;
    for (size_t i = 0; i < mt_picture_patches(&p) * p.patch_bytes; i++) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(x >> 24);
    }
    p.patches = bytes;
    return p;
}

/* Runs the tower on one picture. Returns seconds; *ops gets the number of operations. */
static double run_tower(mt_vision *v, mt_device *dev, const mt_picture *picture, mt_tensor *features,
                        const uint32_t *rows, double *ops)
{
    const mt_tower tower = mt_vision_tower(v);
    tower.begin(tower.cursor, features, (const mt_picture *[]){picture}, (const uint32_t *[]){rows}, 1);
    *ops = 2 * mt_cursor_left(tower.cursor);
    const uint64_t begin = mt_clock_ns();
    while (mt_cursor_left(tower.cursor) > 0)
        mt_cursor_run(tower.cursor, INFINITY);
    mt_device_wait(dev);
    return (double)(mt_clock_ns() - begin) * 1e-9;
}

static void measure(mt_model_bench *b, mt_vision *v, mt_bench_section *section, size_t side, mt_chart_line *line)
{
    const mt_vision_spec *s = b->o.spec.vision;
    mt_device *dev = b->o.dev;
    float levels[3][256];
    char text[32];
    for (size_t i = 0; i < 3 * 256; i++)
        levels[i / 256][i % 256] = ((float)(i % 256) - 127.5f) / 127.5f;
    const mt_picture picture = noise(s, side, (const float(*)[256])levels);
    const size_t width = mt_vision_width(s);
    mt_set *set = mt_set_new(dev);
    mt_tensor *features = mt_tensor_new(set, picture.tokens, width);
    mt_reading *reading = mt_reading_new(set, picture.tokens * width * sizeof(float));
    uint32_t *rows = mt_alloc_array(picture.tokens, sizeof(*rows));
    for (uint32_t i = 0; i < picture.tokens; i++)
        rows[i] = i;
    double ops = 0, seconds = INFINITY, peak = b->opt->precision == MT_PRECISION_FAST ? b->peaks.bf16 : b->peaks.fp32;
    /* A GPU that was idle is slow at first, so the fastest of some runs counts */
    for (size_t i = 0; i < (mt_device_apart(dev) ? RUNS : 1); i++)
        seconds = fmin(seconds, run_tower(v, dev, &picture, features, rows, &ops));
    uint64_t hash = MT_BENCH_HASH;
    mt_read_rows(dev, reading, features, 0, picture.tokens);
    for (size_t i = 0; i < picture.tokens; i++)
        hash = mt_bench_hash(hash, mt_reading_row(dev, reading, i), width);
    snprintf(text, sizeof(text), "hash %016llx", (unsigned long long)hash);
    json_t *row = json_pack("{s:I, s:I, s:I, s:f, s:f, s:s}", "side", (json_int_t)side, "patches",
                            (json_int_t)mt_picture_patches(&picture), "tokens", (json_int_t)picture.tokens, "seconds",
                            seconds, "rate", ops / seconds * 1e-9, "hash", text);
    if (peak > 0)
        json_object_set_new(row, "share", json_real(100 * ops / seconds / peak));
    mt_report_row(section, row);
    mt_chart_point(line, (double)side, seconds);
    mt_free((void *)(uintptr_t)picture.patches);
    mt_free(rows);
    mt_set_free(set);
}

bool mt_bench_tower(mt_model_bench *b, mt_error *err)
{
    const mt_vision_spec *s = b->o.spec.vision;
    mt_vision_params params = {.rows = b->rows};
    for (size_t i = 0; i < b->sides.count; i++) {
        const size_t high = (size_t)b->sides.at[i] / s->patch + s->merge;
        params.patches = high * high > params.patches ? high * high : params.patches;
    }
    mt_vision *v = mt_vision_new(b->o.dev, s, b->o.weights.vision, &params, err);
    const bool ok = v && mt_device_plan(b->o.dev, b->rows, err);
    if (ok) {
        mt_bench_section *section =
            mt_report_section(b->report, "tower", "Pictures through the tower", columns, MT_COUNT(columns));
        mt_chart *chart = mt_report_chart(b->report, "Pictures through the tower", "side in pixels", "seconds");
        mt_chart_line *line = mt_chart_add(chart, "one picture", b->sides.count);
        snprintf(
            section->note, sizeof(section->note),
            "Square pictures from pixels to what the text model reads; a picture that was seen before costs none of "
            "this.");
        for (size_t i = 0; i < b->sides.count; i++) {
            mt_log_passing("bench.tower", "a picture of %.0f pixels", b->sides.at[i]);
            measure(b, v, section, (size_t)b->sides.at[i], line);
        }
        mt_report_show(b->report, section);
    }
    mt_vision_free(v);
    return ok;
}
