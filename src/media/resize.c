/* Resizes pictures (resize.h) in two passes, first along rows, then along columns; each pixel is a weighted sum of
   neighbours. Pillow and torch differ in the precision of weights and in the values between the passes: 8 bits, or
   float where torch computes in float. */
#include "media/resize.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define PI 3.14159265358979323846

enum { LANES = 16 }; /* what a pass computes at once: rows in the first, bytes of a row in the second */

/* The neighbours of each pixel of a row or column, and their weights. */
typedef struct taps {
    uint32_t in, out;        /* length of the row or column before and after */
    uint32_t *first, *count; /* pixel i sums up neighbours first[i] to first[i] + count[i] - 1 */
    uint32_t most;           /* largest count */
    double *exact;           /* weights of pixel i, from i * most on, as Pillow computes them */
    float *floats;           /* the same as torch computes them in float */
    int32_t *fixed;          /* `exact` as integers */
    unsigned precision;      /* multiplied by 1 << precision */
} taps;

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double bicubic(double x)
{
    const double a = -0.5;

    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x)
{
    return x == 0 ? 1 : sin(PI * x) / (PI * x);
}

static double lanczos(double x)
{
    return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static const struct {
    double (*weight)(double);
    double support;
} filters[] = {
    [MT_RESAMPLE_LANCZOS] = {lanczos, 3},
    [MT_RESAMPLE_BILINEAR] = {bilinear, 1},
    [MT_RESAMPLE_BICUBIC] = {bicubic, 2},
};

/* The precision: torch makes the largest weight just fit 16 bits, Pillow makes sums just fit 32. */
static unsigned precision_of(const double *weights, size_t count, mt_resize_like like)
{
    double most = 0;
    unsigned precision = 0;

    if (like == MT_RESIZE_PIL)
        return 22;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, weights[i]);
    while (precision < 22 && (int)(0.5 + most * (double)(2 << precision)) < 1 << 15)
        precision++;
    return precision;
}

static void taps_init(taps *t, uint32_t in, uint32_t out, mt_resample resample)
{
    double scale = fmax((double)in / out, 1);

    *t = (taps){.in = in, .out = out, .most = (uint32_t)ceil(filters[resample].support * scale) * 2 + 1};
    t->first = mt_alloc_array(out, sizeof(*t->first));
    t->count = mt_alloc_array(out, sizeof(*t->count));
    t->exact = mt_alloc_array((size_t)out * t->most, sizeof(*t->exact));
    t->floats = mt_alloc_array((size_t)out * t->most, sizeof(*t->floats));
    t->fixed = mt_alloc_array((size_t)out * t->most, sizeof(*t->fixed));
}

static void taps_free(taps *t)
{
    mt_free(t->first);
    mt_free(t->count);
    mt_free(t->exact);
    mt_free(t->floats);
    mt_free(t->fixed);
}

static uint8_t level(int32_t sum, unsigned precision)
{
    int32_t value = sum >> precision;

    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static uint8_t nearest_level(float sum)
{
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : lrintf(sum));
}

/* torch's builds fuse multiply-add where the processor has it; elsewhere a library call for each would be too slow. */
#if defined(FP_FAST_FMAF)
#define ADD_PRODUCT(sum, a, b) fmaf(a, b, sum)
#else
#define ADD_PRODUCT(sum, a, b) ((sum) + (a) * (b))
#endif

#define PASS(name) fixed_##name
#define REAL double
#define REALS exact
#define SAMPLE uint8_t
#define SUM int32_t
#define WEIGHTS fixed
#define START(t) (1 << (t)->precision >> 1)
#define PLUS(sum, weight, sample) ((sum) + (weight) * (sample))
#define TO_SAMPLE(sum, t) level(sum, (t)->precision)
#define TO_LEVEL(sum, t) level(sum, (t)->precision)
#include "media/resize_tmpl.h"

#define PASS(name) float_##name
#define REAL float
#define REALS floats
#define SAMPLE float
#define SUM float
#define WEIGHTS floats
#define START(t) 0
#define PLUS(sum, weight, sample) ADD_PRODUCT(sum, weight, sample)
#define TO_SAMPLE(sum, t) (sum)
#define TO_LEVEL(sum, t) nearest_level(sum)
#include "media/resize_tmpl.h"

static void make_integers(taps *t, mt_resize_like like)
{
    size_t count = (size_t)t->out * t->most;

    t->precision = precision_of(t->exact, count, like);
    for (size_t i = 0; i < count; i++) {
        double scaled = t->exact[i] * (double)(1 << t->precision);

        t->fixed[i] = (int32_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
    }
}

/* The source pixel of each result: Pillow adds up steps and torch multiplies in float, which differs at the borders. */
static uint32_t *nearest_of(uint32_t in, uint32_t out, mt_resize_like like)
{
    uint32_t *from = mt_alloc_array(out, sizeof(*from));
    double step = (double)in / out, at = 0.5 * step;
    float scale = (float)in / (float)out;

    for (uint32_t i = 0; i < out; i++, at += step) {
        from[i] = (uint32_t)(like == MT_RESIZE_PIL ? at : (double)(((float)i + 0.5f) * scale));
        if (from[i] >= in)
            from[i] = in - 1;
    }
    return from;
}

static void resize_nearest(mt_image *out, const mt_image *in, mt_resize_like like)
{
    uint32_t *columns = nearest_of(in->width, out->width, like), *rows = nearest_of(in->height, out->height, like);

    for (uint32_t y = 0; y < out->height; y++)
        for (uint32_t x = 0; x < out->width; x++)
            memcpy(out->pixels + ((size_t)y * out->width + x) * 3,
                   in->pixels + ((size_t)rows[y] * in->width + columns[x]) * 3, 3);
    mt_free(columns);
    mt_free(rows);
}

static size_t taps_memory(uint32_t in, uint32_t out, mt_resample resample)
{
    const taps *t = NULL;
    const size_t most = (size_t)ceil(filters[resample].support * fmax((double)in / out, 1)) * 2 + 1;

    return out * (sizeof(*t->first) + sizeof(*t->count)) +
           out * most * (sizeof(*t->exact) + sizeof(*t->floats) + sizeof(*t->fixed));
}

static bool in_float(mt_resample resample, mt_resize_like like)
{
    return resample == MT_RESAMPLE_BILINEAR && like == MT_RESIZE_TORCH;
}

size_t mt_image_resize_memory(uint32_t in_width, uint32_t in_height, uint32_t width, uint32_t height,
                              mt_resample resample, mt_resize_like like)
{
    const size_t out = (size_t)width * height * 3, sample = in_float(resample, like) ? sizeof(float) : 1;

    if (resample == MT_RESAMPLE_NEAREST)
        return out + ((size_t)width + height) * sizeof(uint32_t);
    return out + taps_memory(in_width, width, resample) + taps_memory(in_height, height, resample) +
           ((size_t)width * 3 * in_height + LANES + (size_t)in_width * 3 * LANES) * sample;
}

/* torchvision computes integer bilinear only where torch has AVX2; otherwise, and by its definition, in float with one
   rounding. This uses the definition. */
void mt_image_resize(mt_image *out, const mt_image *in, uint32_t width, uint32_t height, mt_resample resample,
                     mt_resize_like like)
{
    taps across, down;

    assert(width > 0 && height > 0);
    mt_image_new(out, width, height);
    if (resample == MT_RESAMPLE_NEAREST) {
        resize_nearest(out, in, like);
        return;
    }
    taps_init(&across, in->width, width, resample);
    taps_init(&down, in->height, height, resample);
    if (in_float(resample, like)) {
        float_weigh(&across, resample);
        float_weigh(&down, resample);
        float_resize(out, in, &across, &down);
    } else {
        fixed_weigh(&across, resample);
        fixed_weigh(&down, resample);
        make_integers(&across, like);
        make_integers(&down, like);
        fixed_resize(out, in, &across, &down);
    }
    taps_free(&across);
    taps_free(&down);
}
