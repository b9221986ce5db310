/* Random numbers without state (synth.h): number i of a stream depends only on (seed, stream, i), so tensors can be
   made in any order and in pieces. A normal number is a table look-up: 16 random bits choose one of 65536 quantiles. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "synth/synth.h"

#define E2M1_SPREAD 2.93 /* standard deviation of its sixteen values */

enum { QUANTILES = 65536 };

struct mt_synth_filler {
    uint64_t seed;
    float mean, spread; /* of what is in `normal` */
    float quantile[QUANTILES];
    uint16_t normal[QUANTILES]; /* the quantiles, scaled, as bf16 */
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u; /* splitmix64 */
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t word(uint64_t stream, uint64_t index)
{
    return mix(stream + (index + 1) * 0x9e3779b97f4a7c15u);
}

static uint64_t stream_of(const mt_synth_filler *f, const mt_synth_tensor *t)
{
    return mix(f->seed ^ mix(t->stream));
}

static uint16_t to_bf16(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* The value below which the normal distribution has probability p. */
static double normal_quantile(double p)
{
    double low = -6, high = 6;

    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;
        if (erfc(-middle * 0.70710678118654752) / 2 < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

mt_synth_filler *mt_synth_filler_new(uint64_t seed)
{
    mt_synth_filler *f = mt_alloc(sizeof(*f));

    f->seed = seed;
    for (size_t i = 0; i < QUANTILES / 2; i++) {
        f->quantile[i] = (float)normal_quantile(((double)i + 0.5) / QUANTILES);
        f->quantile[QUANTILES - 1 - i] = -f->quantile[i];
    }
    return f;
}

void mt_synth_filler_free(mt_synth_filler *filler)
{
    mt_free(filler);
}

static void scale_table(mt_synth_filler *f, float mean, float spread)
{
    if (f->mean == mean && f->spread == spread)
        return;
    f->mean = mean;
    f->spread = spread;
    for (size_t i = 0; i < QUANTILES; i++)
        f->normal[i] = to_bf16(mean + spread * f->quantile[i]);
}

/* 16 random bits: number i of a stream. */
static size_t bits16(uint64_t stream, uint64_t i)
{
    return (size_t)(word(stream, i / 4) >> 16 * (i % 4) & 0xffff);
}

static void fill_normal(mt_synth_filler *f, const mt_synth_tensor *t, uint64_t begin, size_t count, uint16_t *out)
{
    uint64_t stream = stream_of(f, t), random;
    size_t whole = count / 4 * 4;

    scale_table(f, t->mean, t->spread);
    for (size_t i = 0; i < whole; i += 4) {
        random = word(stream, (begin + i) / 4);
        out[i] = f->normal[random & 0xffff];
        out[i + 1] = f->normal[random >> 16 & 0xffff];
        out[i + 2] = f->normal[random >> 32 & 0xffff];
        out[i + 3] = f->normal[random >> 48];
    }
    for (size_t i = whole; i < count; i++)
        out[i] = f->normal[bits16(stream, begin + i)];
}

static void fill_normal_f32(mt_synth_filler *f, const mt_synth_tensor *t, uint64_t begin, size_t count, float *out)
{
    uint64_t stream = stream_of(f, t);

    for (size_t i = 0; i < count; i++)
        out[i] = t->mean + t->spread * f->quantile[bits16(stream, begin + i)];
}

static void fill_codes(const mt_synth_filler *f, const mt_synth_tensor *t, uint64_t begin, size_t count, uint32_t *out)
{
    uint64_t stream = stream_of(f, t), random;
    size_t whole = count / 2 * 2;

    for (size_t i = 0; i < whole; i += 2) {
        random = word(stream, (begin + i) / 2);
        memcpy(out + i, &random, sizeof(random));
    }
    if (whole < count)
        out[whole] = (uint32_t)word(stream, (begin + whole) / 2);
}

static void fill_bytes(const mt_synth_filler *f, const mt_synth_tensor *t, uint64_t begin, size_t count, uint8_t *out)
{
    const uint64_t stream = stream_of(f, t);

    for (size_t i = 0; i < count; i += 4) {
        const uint64_t random = word(stream, (begin + i) / 4);
        memcpy(out + i, &random, count - i < 4 ? count - i : 4);
    }
}

/* 0x7f and 0xff are NaN: their neighbours take their place. */
static void fill_e4m3(const mt_synth_filler *f, const mt_synth_tensor *t, uint64_t begin, size_t count, uint8_t *out)
{
    fill_bytes(f, t, begin, count, out);
    for (size_t i = 0; i < count; i++)
        if ((out[i] & 0x7f) == 0x7f)
            out[i] ^= 1;
}

/* Scales between 3/4 and 5/4 of the usual one, or the biases that centre their codes. */
static void fill_steps(const mt_synth_filler *f, const mt_synth_tensor *t, uint64_t begin, size_t count, uint16_t *out)
{
    uint64_t stream = stream_of(f, t);

    for (size_t i = 0; i < count; i++) {
        float share = (float)bits16(stream, begin + i) / QUANTILES;
        uint16_t step = to_bf16(t->spread * (0.75f + 0.5f * share));
        out[i] = t->kind == MT_SYNTH_SCALES ? step : to_bf16(-t->mean * from_bf16(step));
    }
}

static void fill_ones(const mt_synth_tensor *t, uint64_t begin, size_t count, uint16_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (begin + i) / t->dims[1] == (begin + i) % t->dims[1] ? to_bf16(1) : 0;
}

void mt_synth_fill(mt_synth_filler *filler, const mt_synth_tensor *tensor, uint64_t begin, size_t count, void *out)
{
    switch (tensor->kind) {
    case MT_SYNTH_CODES:
        if (tensor->element_size == 1)
            fill_bytes(filler, tensor, begin, count, out);
        else
            fill_codes(filler, tensor, begin, count, out);
        break;
    case MT_SYNTH_E4M3: fill_e4m3(filler, tensor, begin, count, out); break;
    case MT_SYNTH_EXPONENTS: memset(out, 127 + (int)lround(log2((double)tensor->spread / E2M1_SPREAD)), count); break;
    case MT_SYNTH_SCALES:
    case MT_SYNTH_BIASES: fill_steps(filler, tensor, begin, count, out); break;
    case MT_SYNTH_ONES: fill_ones(tensor, begin, count, out); break;
    case MT_SYNTH_NORMAL:
        if (tensor->element_size == 4)
            fill_normal_f32(filler, tensor, begin, count, out);
        else
            fill_normal(filler, tensor, begin, count, out);
        break;
    }
}
