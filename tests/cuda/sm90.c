/* What tensor cores of this machine's first GPU add, against the rule of device/sm90.h, bit for bit: random sums and
   hostile ones. Where the GPU is none of sm_90 there is no verdict (77).

   usage: cuda_sm90 IMAGE [UNITS]: IMAGE has the kernels of sm90.cu. UNITS of 512 sums for each kind and format: 4096
   are 75 million sums, which take half a minute of a core. */
#include "device/sm90.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/pool.h"
#include "device/cuda/host/driver.h"

enum { K = MT_SM90_K, ROWS = 64, COLUMNS = 8, UNITS = 512, SKIPPED = 77 };

enum kind {
    EVEN,
    WIDE,
    CANCELLING,       /* products, in pairs */
    CANCELLING_C,     /* c is about minus the sum of the products */
    SUBNORMAL,        /* operands */
    POWERS,           /* of two */
    OUTLIERS,         /* one operand in 16 is much larger */
    FINITE,           /* any bits */
    SMALL,            /* results, down to subnormal ones */
    ZEROS,            /* of both signs */
    CANCELLING_TO_0,  /* exactly */
    NANS,             /* some operands */
    INFINITIES,       /* some operands */
    INFINITE_ZEROS,   /* infinities and zeros */
    OVERFLOW,         /* products */
    OVERFLOW_C,       /* c and products */
    OVERFLOW_CANCELS, /* products that would overflow cancel */
    SPECIAL_C,        /* the least, the most, infinities, NaN */
    KINDS
};

static const char *const kinds[KINDS] = {
    "even",
    "wide",
    "cancelling",
    "cancelling with c",
    "subnormal operands",
    "powers of two",
    "outliers",
    "any finite bits",
    "small results",
    "signed zeros",
    "cancelling to zero",
    "NaN",
    "infinities",
    "infinities and zeros",
    "overflow",
    "overflow with c",
    "overflow that cancels",
    "special c",
};

typedef struct unit {
    uint16_t a[ROWS][K], b[COLUMNS][K];
    float c[ROWS][COLUMNS];
} unit;

typedef struct sums {
    float warp[ROWS][COLUMNS], group[ROWS][COLUMNS];
} sums;

/* An operand format: bits of its fraction, the largest exponent field of a number, the bias of exponents. */
typedef struct format {
    const char *name, *kernel;
    int fraction, most, bias;
    float (*dot)(float c, const uint16_t *a, const uint16_t *b);
} format;

static const format formats[] = {
    {"fp16", "step_f16", 10, 30, 15, mt_sm90_dot_f16},
    {"bf16", "step_bf16", 7, 254, 127, mt_sm90_dot_bf16},
};

/* What a thread of the pool makes or compares. */
typedef struct work {
    const format *format;
    enum kind kind;
    unit *units;
    sums *sums;
    size_t *wrong; /* of each unit */
} work;

static uint64_t next(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static float f32_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static double value_of(const format *f, uint16_t h)
{
    const int field = h >> f->fraction & (f->most + 1);
    const int significand = (h & ((1 << f->fraction) - 1)) + (field ? 1 << f->fraction : 0);
    return ldexp(h >> 15 ? -significand : significand, (field ? field : 1) - f->bias - f->fraction);
}

/* The exponent field of an operand; r is random. */
static int field_of(const format *f, enum kind kind, uint64_t r)
{
    const bool wide = f->bias == 127; /* bf16 reaches as far as fp32: sums overflow */
    switch (kind) {
    case WIDE: return 1 + (int)(r % (wide ? 188 : 29));
    case SUBNORMAL: return (r & 7) < 6 ? 0 : (int)(r >> 3 & 15);
    case POWERS: return f->bias - 6 + (int)(r % 13);
    case OUTLIERS: return f->bias - (int)(r >> 4 & 3) + ((r & 15) == 0 ? wide ? 20 : 12 : 0);
    case FINITE: return (int)(r % (uint64_t)(f->most + 1));
    case SMALL: return wide ? f->bias - 75 + (int)(r % 24) : (int)(r % 4);
    case ZEROS: return (r & 31) == 0 ? 1 : 0;
    case NANS:
    case INFINITIES: return (r & 63) == 0 ? f->most + 1 : f->bias - (int)(r >> 6 & 3);
    case INFINITE_ZEROS: return (r & 31) == 0 ? f->most + 1 : (r & 31) < 3 ? 0 : f->bias;
    case OVERFLOW:
    case OVERFLOW_CANCELS: return wide ? 182 + (int)(r % 14) : f->most - (int)(r & 1);
    case OVERFLOW_C: return wide ? 170 + (int)(r % 20) : f->most - (int)(r & 3);
    default: return f->bias - (int)(r & 3);
    }
}

static uint16_t operand(const format *f, enum kind kind, uint64_t r)
{
    const int field = field_of(f, kind, r >> 24);
    uint32_t fraction = (uint32_t)r & ((1u << f->fraction) - 1);
    const uint32_t sign = (uint32_t)(r >> 20 & 1) << 15;
    if (kind == POWERS || (kind == INFINITIES && field > f->most) || (kind == INFINITE_ZEROS && field != f->bias) ||
        (kind == ZEROS && field == 0))
        fraction = 0;
    if (kind == CANCELLING_TO_0)
        fraction = (uint32_t)(r >> 30 & 1) << (f->fraction - 1);
    if (kind == NANS && field > f->most)
        fraction |= 1;
    return (uint16_t)(sign | (uint32_t)field << f->fraction | fraction);
}

static float special_c(uint64_t r)
{
    static const uint32_t bits[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x7f7fffff,
                                    0xff7fffff, 0x00000001, 0x80000001, 0x80000000, 0x00000000, 0x00800000};
    return f32_of(bits[r % (sizeof(bits) / sizeof(bits[0]))]);
}

/* c of a kind, with the products it meets. */
static float summand(const format *f, enum kind kind, uint64_t r, const uint16_t *a, const uint16_t *b)
{
    const uint64_t z = r >> 32;
    uint32_t field = 123 + (uint32_t)(z & 7);
    double sum = 0;
    if (kind == SPECIAL_C)
        return special_c(z);
    if (kind == CANCELLING_C || kind == CANCELLING_TO_0) {
        for (size_t i = 0; i < K; i++)
            sum -= value_of(f, a[i]) * value_of(f, b[i]);
        return f32_of(bits_of((float)sum) + (kind == CANCELLING_C ? (uint32_t)(z % 5) - 2 : 0));
    }
    if (kind == ZEROS || (z >> 28 & 7) == 0)
        return f32_of((uint32_t)r & 0x80000000u);
    if (kind == WIDE || kind == FINITE)
        field = 1 + (uint32_t)(z % 254);
    if (kind == SUBNORMAL || kind == SMALL)
        field = (uint32_t)(z % 6);
    if (kind == OVERFLOW || kind == OVERFLOW_C || kind == OVERFLOW_CANCELS)
        field = 240 + (uint32_t)(z % 15);
    if ((kind == NANS || kind == INFINITIES || kind == INFINITE_ZEROS) && (z & 31) == 0)
        return f32_of(((uint32_t)r & 0x80000000u) | 0x7f800000u | (kind == NANS));
    return f32_of(((uint32_t)r & 0x807fffffu) | field << 23);
}

static void make_unit(void *ctx, size_t item, size_t worker)
{
    const work *w = ctx;
    unit *u = &w->units[item];
    const bool pairs = w->kind == CANCELLING || w->kind == CANCELLING_TO_0 || w->kind == OVERFLOW_CANCELS;
    uint64_t seed = (uint64_t)w->kind << 56 ^ (uint64_t)(w->format == formats) << 48 ^ (uint64_t)item << 20;
    (void)worker;
    for (size_t i = 0; i < ROWS * K; i++) {
        u->a[i / K][i % K] = operand(w->format, w->kind, next(&seed));
        if (pairs && i % 2)
            u->a[i / K][i % K] = u->a[i / K][i % K - 1] ^ 0x8000;
    }
    for (size_t i = 0; i < COLUMNS * K; i++) {
        u->b[i / K][i % K] = operand(w->format, w->kind, next(&seed));
        if (pairs && i % 2)
            u->b[i / K][i % K] =
                (uint16_t)(u->b[i / K][i % K - 1] + (w->kind != CANCELLING_TO_0 && next(&seed) % 3 == 0));
    }
    for (size_t r = 0; r < ROWS; r++)
        for (size_t j = 0; j < COLUMNS; j++)
            u->c[r][j] = summand(w->format, w->kind, next(&seed), u->a[r], u->b[j]);
}

static void compare_unit(void *ctx, size_t item, size_t worker)
{
    const work *w = ctx;
    const unit *u = &w->units[item];
    const sums *s = &w->sums[item];
    size_t wrong = 0;
    (void)worker;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t j = 0; j < COLUMNS; j++) {
            const uint32_t want = bits_of(w->format->dot(u->c[r][j], u->a[r], u->b[j]));
            const uint32_t warp = bits_of(s->warp[r][j]), group = bits_of(s->group[r][j]);
            if (warp == want && group == want)
                continue;
            if (wrong++ == 0 && item == 0)
                printf("%s, %s, c %08x: mma.sync %08x, wgmma %08x, the rule %08x\n", w->format->name, kinds[w->kind],
                       bits_of(u->c[r][j]), warp, group, want);
        }
    w->wrong[item] = wrong;
}

/* A GPU with the kernels loaded. */
typedef struct card {
    mt_cuda_driver cu;
    CUcontext context;
    CUmodule module;
    CUstream stream;
    CUdeviceptr units, sums;
} card;

static int end(const char *what, int status)
{
    printf("sm90: %s\n", what);
    return status;
}

/* 0, or how to end. */
static int open_card(card *c, const char *path, size_t count)
{
    mt_error err;
    mt_file image = {0};
    CUdevice device;
    int major = 0, minor = 0;
    if (!mt_cuda_driver_open(&c->cu, &err) || c->cu.device_get(&device, 0))
        return end("skipped: there is no GPU", SKIPPED);
    c->cu.device_attribute(&major, MT_CU_ATTRIBUTE_MAJOR, device);
    c->cu.device_attribute(&minor, MT_CU_ATTRIBUTE_MINOR, device);
    if (major != 9 || minor != 0)
        return end("skipped: the GPU is not one of compute capability 9.0", SKIPPED);
    if (!mt_file_map(&image, path, &err))
        return end(err.text, 1);
    if (c->cu.context_new(&c->context, 0, device) || c->cu.module_load(&c->module, image.data) ||
        c->cu.stream_new(&c->stream, 0) || c->cu.alloc(&c->units, count * sizeof(unit)) ||
        c->cu.alloc(&c->sums, count * sizeof(sums)))
        return end("the GPU did not take the kernels", 1);
    mt_file_unmap(&image);
    return 0;
}

static bool multiply(card *c, const work *w, size_t count)
{
    CUfunction kernel;
    CUlaunchConfig config = {.grid = {(unsigned)count, 1, 1}, .block = {128, 1, 1}, .stream = c->stream};
    void *parameters[] = {&c->units, &c->sums};
    return !c->cu.module_function(&kernel, c->module, w->format->kernel) &&
           !c->cu.to_device(c->units, w->units, count * sizeof(unit), c->stream) &&
           !c->cu.set_bytes(c->sums, 0x5a, count * sizeof(sums), c->stream) &&
           !c->cu.launch(&config, kernel, parameters, NULL) &&
           !c->cu.to_host(w->sums, c->sums, count * sizeof(sums), c->stream) && !c->cu.stream_wait(c->stream);
}

int main(int argc, char **argv)
{
    const size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : UNITS;
    mt_error err;
    card c = {0};
    size_t all = 0, kinds_wrong = 0;
    const int status = argc < 2 ? end("say where the kernels are", 1) : open_card(&c, argv[1], count);
    if (status)
        return status;
    mt_pool *pool = mt_pool_new(0, &err);
    work w = {NULL, 0, calloc(count, sizeof(unit)), calloc(count, sizeof(sums)), calloc(count, sizeof(size_t))};
    if (!pool || !w.units || !w.sums || !w.wrong)
        return end("there is not enough memory", 1);
    for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
        for (w.format = &formats[f], w.kind = 0; w.kind < KINDS; w.kind++) {
            size_t wrong = 0;
            mt_pool_run(pool, make_unit, &w, count);
            if (!multiply(&c, &w, count))
                return end("the GPU could not multiply", 1);
            mt_pool_run(pool, compare_unit, &w, count);
            for (size_t i = 0; i < count; i++)
                wrong += w.wrong[i];
            all += count * ROWS * COLUMNS;
            kinds_wrong += wrong > 0;
            if (wrong)
                printf("%s, %s: %zu of %zu sums differ\n", w.format->name, kinds[w.kind], wrong,
                       count * ROWS * COLUMNS);
        }
    printf("%zu sums\nsm90: %zu passed, %zu failed\n", all, 2 * KINDS - kinds_wrong, kinds_wrong);
    free(w.units);
    free(w.sums);
    free(w.wrong);
    mt_pool_free(pool);
    return kinds_wrong > 0;
}
