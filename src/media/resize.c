/* Two passes, rows first and then columns, each a sum of weighted neighbours. What Pillow and torch do differs in the
   weights' precision and in what stands between the passes: 8 bits, or float where torch computes in float. */
#include "media/resize.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { LANES = 16 }; /* what a pass computes side by side: rows in the first, bytes of a row in the second */

/* Where each pixel of a row or column takes its colour from. */
typedef struct taps {
    uint32_t *first, *count; /* neighbours of pixel i: first[i] to first[i] + count[i] */
    uint32_t most;           /* of count */
    double *exact;           /* weights of pixel i from i * most */
    float *floats;           /* the same as torch has them, */
    int32_t *fixed;          /* or as integers, */
    unsigned precision;      /* times 1 << precision */
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

static const struct {
    double (*weight)(double);
    double support;
} filters[] = {
    [MT_RESAMPLE_BILINEAR] = {bilinear, 1},
    [MT_RESAMPLE_BICUBIC] = {bicubic, 2},
};

static void weigh(taps *t, uint32_t i, uint32_t in, double scale, mt_resample resample)
{
    double widened = scale < 1 ? 1 : scale, reach = filters[resample].support * widened;
    double center = (i + 0.5) * scale, sum = 0, *w = t->exact + (size_t)i * t->most;
    int64_t first = (int64_t)(center - reach + 0.5), last = (int64_t)(center + reach + 0.5);

    if (first < 0)
        first = 0;
    if (last > in)
        last = in;
    t->first[i] = (uint32_t)first;
    t->count[i] = (uint32_t)(last - first);
    for (uint32_t k = 0; k < t->count[i]; k++)
        sum += w[k] = filters[resample].weight(((double)(k + first) - center + 0.5) * (1 / widened));
    for (uint32_t k = 0; k < t->count[i] && sum != 0; k++)
        w[k] /= sum;
}

/* Torch lets the largest weight just fit 16 bits; Pillow lets sums just fit 32. */
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

static void taps_init(taps *t, uint32_t in, uint32_t out, mt_resample resample, mt_resize_like like)
{
    double scale = (double)in / out;
    size_t count;

    *t = (taps){.most = (uint32_t)ceil(filters[resample].support * fmax(scale, 1)) * 2 + 1};
    count = (size_t)out * t->most;
    t->first = mt_alloc_array(out, sizeof(*t->first));
    t->count = mt_alloc_array(out, sizeof(*t->count));
    t->exact = mt_alloc_array(count, sizeof(*t->exact));
    t->floats = mt_alloc_array(count, sizeof(*t->floats));
    t->fixed = mt_alloc_array(count, sizeof(*t->fixed));
    for (uint32_t i = 0; i < out; i++)
        weigh(t, i, in, scale, resample);
    t->precision = precision_of(t->exact, count, like);
    for (size_t i = 0; i < count; i++) {
        double scaled = t->exact[i] * (double)(1 << t->precision);

        t->floats[i] = (float)t->exact[i];
        t->fixed[i] = (int32_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
    }
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

#define PASS(name) fixed_##name
#define SAMPLE uint8_t
#define SUM int32_t
#define WEIGHTS fixed
#define START(t) (1 << (t)->precision >> 1)
#define TO_SAMPLE(sum, t) level(sum, (t)->precision)
#define TO_LEVEL(sum, t) level(sum, (t)->precision)
#include "media/resize_tmpl.h"

#define PASS(name) float_##name
#define SAMPLE float
#define SUM float
#define WEIGHTS floats
#define START(t) 0
#define TO_SAMPLE(sum, t) (sum)
#define TO_LEVEL(sum, t) nearest_level(sum)
#include "media/resize_tmpl.h"

/* The pixel that each of out takes: Pillow walks in steps and torch multiplies in float, which tells at the borders. */
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

/* Torchvision has bilinear of whole numbers only where torch has AVX2; elsewhere, and by its definition, it is
   computed in float and rounded once. */
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
    taps_init(&across, in->width, width, resample, like);
    taps_init(&down, in->height, height, resample, like);
    if (resample == MT_RESAMPLE_BILINEAR && like == MT_RESIZE_TORCH)
        float_resize(out, in, &across, &down);
    else
        fixed_resize(out, in, &across, &down);
    taps_free(&across);
    taps_free(&down);
}
