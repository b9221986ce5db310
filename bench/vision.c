/* How long a checkpoint's tower takes for square pictures, and which part of what the processor can do at most that is.

       bench_vision DIR [--rows N] [--budget N] [--threads N] [--precision fast|reference] [SIDE ...]

   Sides are pixels, 448 and 896 unless given. Multiplications count twice, as they do for the peak, which is measured
   first. --rows is the largest slice; --budget cuts the work in slices of that many million multiplications. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/kernels/check.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "engine/opened.h"
#include "models/vision.h"

#define MAX_SIDES 16

typedef struct arguments {
    const char *dir;
    size_t rows, threads, sides, side[MAX_SIDES];
    double budget;
    mt_precision precision;
} arguments;

static bool parse(arguments *a, int argc, char **argv)
{
    *a = (arguments){.rows = 512, .budget = INFINITY};
    for (int i = 1; i < argc; i++) {
        const bool value = i + 1 < argc;
        if (value && strcmp(argv[i], "--rows") == 0)
            a->rows = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--budget") == 0)
            a->budget = 1e6 * strtod(argv[++i], NULL);
        else if (value && strcmp(argv[i], "--threads") == 0)
            a->threads = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--precision") == 0)
            a->precision = strcmp(argv[++i], "reference") == 0 ? MT_PRECISION_REFERENCE : MT_PRECISION_FAST;
        else if (argv[i][0] == '-' || (a->dir && a->sides == MAX_SIDES))
            return false;
        else if (!a->dir)
            a->dir = argv[i];
        else
            a->side[a->sides++] = strtoul(argv[i], NULL, 10);
    }
    if (a->sides == 0) {
        a->side[a->sides++] = 448;
        a->side[a->sides++] = 896;
    }
    return a->dir;
}

/* Noise, whose every byte is its own value. */
static mt_picture noise(const mt_vision_spec *s, size_t side, const float (*levels)[256])
{
    const uint32_t step = s->patch * s->merge, grid = (uint32_t)(side + step / 2) / step * s->merge;
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

static uint64_t add_hash(uint64_t hash, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    return hash;
}

static void measure(mt_device *dev, mt_vision *v, const mt_vision_spec *s, const arguments *a, size_t side, double peak)
{
    float levels[3][256];
    for (size_t i = 0; i < 3 * 256; i++)
        levels[i / 256][i % 256] = ((float)(i % 256) - 127.5f) / 127.5f;
    mt_picture picture = noise(s, side, (const float(*)[256])levels);
    const size_t width = mt_vision_width(s);
    mt_set *set = mt_set_new(dev);
    mt_tensor *features = mt_tensor_new(set, picture.tokens, width);
    mt_reading *reading = mt_reading_new(set, picture.tokens * width * sizeof(float));
    uint32_t *rows = mt_alloc_array(picture.tokens, sizeof *rows);
    for (uint32_t i = 0; i < picture.tokens; i++)
        rows[i] = i;
    const mt_tower tower = mt_vision_tower(v);
    tower.begin(tower.cursor, features, (const mt_picture *[]){&picture}, (const uint32_t *[]){rows}, 1);
    const double ops = 2 * mt_cursor_left(tower.cursor);
    const uint64_t begin = mt_clock_ns();
    double longest = 0;
    while (mt_cursor_left(tower.cursor) > 0) {
        const uint64_t at = mt_clock_ns();
        mt_cursor_run(tower.cursor, a->budget);
        longest = fmax(longest, (double)(mt_clock_ns() - at) * 1e-9);
    }
    const double seconds = (double)(mt_clock_ns() - begin) * 1e-9;
    uint64_t hash = 0xcbf29ce484222325u;
    mt_read_rows(dev, reading, features, 0, picture.tokens);
    for (size_t i = 0; i < picture.tokens; i++)
        hash = add_hash(hash, mt_reading_row(dev, reading, i), width);
    printf(
        "%4zu x %-4zu %6zu patches %5u tokens  %7.2f s  longest %7.1f ms  %6.1f GFLOP/s  %3.0f %% of peak  %016llx\n",
        side, side, mt_picture_patches(&picture), picture.tokens, seconds, 1e3 * longest, ops / seconds * 1e-9,
        100 * ops / seconds / peak, (unsigned long long)hash);
    fflush(stdout);
    mt_free((void *)picture.patches);
    mt_free(rows);
    mt_set_free(set);
}

static bool run(mt_opened *o, const arguments *a, mt_error *err)
{
    const mt_vision_spec *s = o->spec.vision;
    if (!s)
        return mt_fail(err, MT_E_INVALID, "\"%s\" has no tower", a->dir);
    mt_vision_params params = {.rows = a->rows};
    for (size_t i = 0; i < a->sides; i++) {
        const mt_picture p = {.height = (uint32_t)(a->side[i] / s->patch + s->merge)};
        params.patches = (size_t)p.height * p.height > params.patches ? (size_t)p.height * p.height : params.patches;
    }
    mt_vision *v = mt_vision_new(o->dev, s, o->weights.vision, &params, err);
    bool ok = v && mt_device_plan(o->dev, a->rows, err);
    bench b = {.k = mt_host_kernels(mt_device_host(o->dev)), .threads = mt_host_threads(mt_device_host(o->dev))};
    if (ok) {
        printf("working memory for %zu patches: %.0f MiB\n", params.patches,
               (double)mt_device_bytes(o->dev) / (1 << 20));
        bench_peaks(&b);
    }
    for (size_t i = 0; ok && i < a->sides; i++)
        measure(o->dev, v, s, a, a->side[i], a->precision == MT_PRECISION_FAST ? b.bf16 : b.fp32);
    mt_vision_free(v);
    return ok;
}

int main(int argc, char **argv)
{
    arguments a;
    mt_error err = {0};
    mt_opened o;
    if (!parse(&a, argc, argv)) {
        fprintf(stderr, "usage: bench_vision DIR [--rows N] [--budget N] [--threads N] [--precision P] [SIDE ...]\n");
        return 2;
    }
    const mt_device_params device = {.host = {.threads = a.threads, .cpu_mask = ~0u}, .precision = a.precision};
    bool ok = mt_opened_open(&o, a.dir, &device, &err);
    if (ok) {
        ok = run(&o, &a, &err);
        mt_opened_close(&o);
    }
    if (!ok)
        fprintf(stderr, "bench_vision: %s\n", err.text);
    return ok ? 0 : 1;
}
