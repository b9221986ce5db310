/* Resizes pictures (resize.h) in two passes, first along rows, then along columns; each pixel is a weighted sum of
   neighbours, in integers, and of 8 bits between the passes, too. */
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
    double *exact;           /* weights of pixel i, from i * most on */
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

/* The precision: torchvision's largest weight just fits 16 bits, Pillow's sums just fit 32. */
static unsigned precision_of(const double *weights, size_t count, mt_resample resample)
{
    double most = 0;
    unsigned precision = 0;

    if (resample == MT_RESAMPLE_LANCZOS)
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
    t->fixed = mt_alloc_array((size_t)out * t->most, sizeof(*t->fixed));
}

static void taps_free(taps *t)
{
    mt_free(t->first);
    mt_free(t->count);
    mt_free(t->exact);
    mt_free(t->fixed);
}

static uint8_t level(int32_t sum, unsigned precision)
{
    int32_t value = sum >> precision;

    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Computes the weights. Every operation is in double, as in torch and Pillow. */
static void weigh(taps *t, mt_resample resample)
{
    double scale = (double)t->in / t->out, widened = fmax(scale, 1), shrink = 1 / widened;
    double reach = filters[resample].support * widened;

    for (uint32_t i = 0; i < t->out; i++) {
        double center = (i + 0.5) * scale, sum = 0, *w = t->exact + (size_t)i * t->most;
        int64_t first = (int64_t)(center - reach + 0.5), last = (int64_t)(center + reach + 0.5);

        first = first < 0 ? 0 : first;
        last = last > t->in ? t->in : last;
        t->first[i] = (uint32_t)first;
        t->count[i] = (uint32_t)(last - first);
        for (uint32_t k = 0; k < t->count[i]; k++)
            sum += w[k] = filters[resample].weight(((double)(k + first) - center + 0.5) * shrink);
        for (uint32_t k = 0; k < t->count[i] && sum != 0; k++)
            w[k] /= sum;
    }
}

static void make_integers(taps *t, mt_resample resample)
{
    size_t count = (size_t)t->out * t->most;

    t->precision = precision_of(t->exact, count, resample);
    for (size_t i = 0; i < count; i++) {
        double scaled = t->exact[i] * (double)(1 << t->precision);

        t->fixed[i] = (int32_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
    }
}

/* sums[lane] = the sum of samples, `step` apart, weighted as neighbours of `pixel`, for LANES of them at once, which
   compilers vectorise. */
static void sum_up(int32_t sums[LANES], const uint8_t *in, size_t step, const taps *t, size_t pixel)
{
    const int32_t *weights = t->fixed + pixel * t->most;
    const uint32_t count = t->count[pixel];
    int32_t kept[LANES];

    for (int lane = 0; lane < LANES; lane++)
        kept[lane] = 1 << t->precision >> 1;
    for (uint32_t k = 0; k < count; k++, in += step)
        for (int lane = 0; lane < LANES; lane++)
            kept[lane] += weights[k] * in[lane];
    memcpy(sums, kept, sizeof(kept));
}

/* Transposes LANES rows from y on: byte i of all rows becomes neighbours. Where there are fewer rows, repeats the
   last. */
static void turn(uint8_t *out, const mt_image *in, uint32_t y)
{
    enum { TILE = 64 };
    size_t line = (size_t)in->width * 3;

    for (size_t begin = 0; begin < line; begin += TILE) {
        size_t end = line - begin < TILE ? line : begin + TILE;

        for (uint32_t lane = 0; lane < LANES; lane++) {
            const uint8_t *from = in->pixels + (y + lane < in->height ? y + lane : in->height - 1) * line;

            for (size_t i = begin; i < end; i++)
                out[i * LANES + lane] = from[i];
        }
    }
}

/* First pass: resizes each row to `width` pixels. out has as many rows as in. */
static void resize_rows(uint8_t *out, const mt_image *in, const taps *t, uint32_t width)
{
    uint8_t *turned = mt_alloc((size_t)in->width * 3 * LANES);
    size_t line = (size_t)width * 3;
    int32_t sums[LANES];

    for (uint32_t y = 0; y < in->height; y += LANES) {
        uint32_t rows = in->height - y < LANES ? in->height - y : LANES;

        turn(turned, in, y);
        for (size_t i = 0; i < line; i++) {
            size_t x = i / 3, at = (size_t)t->first[x] * 3 + i % 3;

            sum_up(sums, turned + at * LANES, 3 * LANES, t, x);
            for (uint32_t row = 0; row < rows; row++)
                out[(y + row) * line + i] = level(sums[row], t->precision);
        }
    }
    mt_free(turned);
}

/* Second pass: resizes each column. `in` has out's width; LANES bytes behind its end may be read. */
static void resize_columns(mt_image *out, const uint8_t *in, const taps *t)
{
    size_t line = (size_t)out->width * 3;
    int32_t sums[LANES];

    for (uint32_t y = 0; y < out->height; y++) {
        uint8_t *row = out->pixels + y * line;

        for (size_t i = 0; i < line; i += LANES) {
            size_t count = line - i < LANES ? line - i : LANES;

            sum_up(sums, in + t->first[y] * line + i, line, t, y);
            for (size_t lane = 0; lane < count; lane++)
                row[i + lane] = level(sums[lane], t->precision);
        }
    }
}

/* The source pixel of each result; torch multiplies in float. */
static uint32_t *nearest_of(uint32_t in, uint32_t out)
{
    uint32_t *from = mt_alloc_array(out, sizeof(*from));
    float scale = (float)in / (float)out;

    for (uint32_t i = 0; i < out; i++) {
        from[i] = (uint32_t)(((float)i + 0.5f) * scale);
        if (from[i] >= in)
            from[i] = in - 1;
    }
    return from;
}

static void resize_nearest(mt_image *out, const mt_image *in)
{
    uint32_t *columns = nearest_of(in->width, out->width), *rows = nearest_of(in->height, out->height);

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

    return out * (sizeof(*t->first) + sizeof(*t->count)) + out * most * (sizeof(*t->exact) + sizeof(*t->fixed));
}

size_t mt_image_resize_memory(uint32_t in_width, uint32_t in_height, uint32_t width, uint32_t height,
                              mt_resample resample)
{
    const size_t out = (size_t)width * height * 3;

    if (resample == MT_RESAMPLE_NEAREST)
        return out + ((size_t)width + height) * sizeof(uint32_t);
    return out + taps_memory(in_width, width, resample) + taps_memory(in_height, height, resample) +
           (size_t)width * 3 * in_height + LANES + (size_t)in_width * 3 * LANES;
}

void mt_image_resize(mt_image *out, const mt_image *in, uint32_t width, uint32_t height, mt_resample resample)
{
    taps across, down;

    assert(width > 0 && height > 0);
    mt_image_new(out, width, height);
    if (resample == MT_RESAMPLE_NEAREST) {
        resize_nearest(out, in);
        return;
    }
    taps_init(&across, in->width, width, resample);
    taps_init(&down, in->height, height, resample);
    weigh(&across, resample);
    weigh(&down, resample);
    make_integers(&across, resample);
    make_integers(&down, resample);
    uint8_t *middle = mt_alloc((size_t)width * 3 * in->height + LANES);
    resize_rows(middle, in, &across, width);
    resize_columns(out, middle, &down);
    mt_free(middle);
    taps_free(&across);
    taps_free(&down);
}
