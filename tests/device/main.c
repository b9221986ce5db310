/* usage: checkdevice [--device NAME] [--against NAME] [--threads N] [--trials N] [--seed N] [--quick] [--all] [--fault]
   [--list] [--only N[-M]] [OPERATION ...]. --quick: few trials, nothing large; --all: go on where one has failed;
   --fault: have a GPU fail, and open it anew; --list: the checks there are, with a number; --only: that one alone, or
   those from one to another. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"
#include "base/alloc.h"
#include "check.h"
#include "kernels/convert.h"

typedef struct harness {
    mt_device *defined, *tested;
    bool all;    /* go on where one has failed */
    bool quick;  /* few trials, nothing large */
    bool itself; /* the device is compared with itself, to see which kernels it launches: results are not checked */
    bool latents, choices, plain;
    bool sm90; /* the definition adds as tensor cores of sm_90, so that nothing may differ */
    mt_numerics numerics;
    const char *against; /* what it is held to: "cpu", but for who only wants to see what is launched */
    size_t trials;       /* 0: as many as a check has */
    size_t passed, failed;
    uint64_t seed;
    size_t only, last; /* numbers of the first and last check wanted; only 0: all */
    char **wanted;
    int wanted_count;
} harness;

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

size_t below(run *r, size_t n)
{
    r->rng = mix(r->rng);
    return (size_t)(r->rng >> 16) % n;
}

size_t pick(run *r, const size_t *from, size_t n)
{
    return from[below(r, n)];
}

size_t in_turn(const run *r, const size_t *from, size_t n)
{
    return from[r->seed % 256 % n];
}

float real(run *r, float low, float high)
{
    return low + (high - low) * (float)below(r, 1 << 20) / (float)(1 << 20);
}

void fill(const run *r, unsigned thing, uint64_t number, float *x, size_t n)
{
    uint64_t state = mix(r->seed ^ mix(number * 1000 + thing));
    for (size_t i = 0; i < n; i++) {
        state = mix(state);
        x[i] = state % 19 == 0 ? 0.0f : ((float)(state >> 40) / (float)(1 << 23) - 1.0f) * 2.0f;
    }
}

mt_tensor *unit_rows(run *r, unsigned thing, size_t cols)
{
    mt_tensor *t = mt_tensor_new(r->set, r->units, cols);
    float *x = mt_alloc_array(cols, sizeof(*x));
    for (size_t i = 0; i < r->units; i++) {
        fill(r, thing, 1 + r->unit[i], x, cols);
        mt_tensor_write(r->dev, t, i, 1, x);
    }
    mt_free(x);
    return t;
}

void write_positions(run *r, mt_tensor *t, size_t at, unsigned thing, uint32_t unit, size_t from, size_t rows,
                     size_t cols)
{
    float *x = mt_alloc_array(cols, sizeof(*x));
    for (size_t i = 0; i < rows; i++) {
        fill(r, thing, 1 + unit * 1000 + from + i, x, cols);
        mt_tensor_write(r->dev, t, at + i, 1, x);
    }
    mt_free(x);
}

mt_tensor *row_of(run *r, unsigned thing, size_t cols)
{
    mt_tensor *t = mt_tensor_new(r->set, 1, cols);
    float *x = mt_alloc_array(cols, sizeof(*x));
    fill(r, thing, 0, x, cols);
    mt_tensor_write(r->dev, t, 0, 1, x);
    mt_free(x);
    return t;
}

/* Bytes that are no NaN in E4M3: one would hide everything else in a row. */
static void without_nan(const uint8_t *codes, size_t n)
{
    uint8_t *p = (uint8_t *)(uintptr_t)codes;
    for (size_t i = 0; i < n; i++)
        if ((p[i] & 0x7f) == 0x7f)
            p[i] ^= 0x40;
}

/* Codes as GGUF's types have them, which need k % 256 == 0 where scales share an f16. */
static mt_mat of_blocks(run *r, mt_format format, size_t k)
{
    static const mt_mat shapes[] = {
        {.format = MT_FORMAT_SIGNED, .bits = 4, .group = 32, .scale_type = MT_SCALE_F16},
        {.format = MT_FORMAT_SIGNED, .bits = 5, .group = 32, .scale_type = MT_SCALE_F16, .split = true},
        {.format = MT_FORMAT_SIGNED, .bits = 8, .group = 32, .scale_type = MT_SCALE_F16},
        {.format = MT_FORMAT_SIGNED, .bits = 3, .group = 16, .scale_type = MT_SCALE_16_OF_F16},
        {.format = MT_FORMAT_SIGNED, .bits = 6, .group = 16, .scale_type = MT_SCALE_16_OF_F16, .split = true},
        {.format = MT_FORMAT_IQ4, .bits = 4, .group = 32, .scale_type = MT_SCALE_F16},
        {.format = MT_FORMAT_IQ4, .bits = 4, .group = 32, .scale_type = MT_SCALE_8_OF_F16},
        {.format = MT_FORMAT_AFFINE, .bits = 5, .group = 32, .scale_type = MT_SCALE_F16, .split = true},
        {.format = MT_FORMAT_AFFINE, .bits = 4, .group = 32, .scale_type = MT_SCALE_8_OF_F16},
        {.format = MT_FORMAT_AFFINE, .bits = 5, .group = 32, .scale_type = MT_SCALE_8_OF_F16, .split = true},
        {.format = MT_FORMAT_AFFINE, .bits = 2, .group = 16, .scale_type = MT_SCALE_16_OF_F16},
    };
    for (;;) {
        const mt_mat *shape = &shapes[below(r, MT_COUNT(shapes))];
        if (shape->format == format && (mt_scale_together(shape->scale_type) == 1 || k % 256 == 0))
            return *shape;
    }
}

mt_mat matrix(run *r, mt_format format, size_t n, size_t k)
{
    static const uint8_t affine[] = {2, 3, 4, 5, 6, 8};
    static const mt_mat shapes[] = {
        [MT_FORMAT_F32] = {.bits = 32},
        [MT_FORMAT_F16] = {.bits = 16},
        [MT_FORMAT_BF16] = {.bits = 16},
        [MT_FORMAT_FP8] = {.bits = 8, .group = 128, .scale_rows = 128, .scale_type = MT_SCALE_BF16},
        [MT_FORMAT_AFFINE] = {.bits = 4, .group = 32, .scale_type = MT_SCALE_F16},
        [MT_FORMAT_MXFP4] = {.bits = 4, .group = 32, .scale_type = MT_SCALE_E8M0},
        [MT_FORMAT_NVFP4] = {.bits = 4, .group = 16, .scale_type = MT_SCALE_E4M3},
        [MT_FORMAT_MXFP8] = {.bits = 8, .group = 32, .scale_type = MT_SCALE_E8M0},
        [MT_FORMAT_SIGNED] = {.bits = 0},
        [MT_FORMAT_IQ4] = {.bits = 0}};
    mt_mat shape = shapes[format], w;
    shape.format = format;
    shape.n = n;
    shape.k = k;
    if (format == MT_FORMAT_SIGNED || format == MT_FORMAT_IQ4 || (format == MT_FORMAT_AFFINE && below(r, 4) == 0)) {
        shape = of_blocks(r, format, k);
        shape.n = n;
        shape.k = k;
    } else if (format == MT_FORMAT_AFFINE) {
        shape.bits = affine[below(r, sizeof(affine))];
        shape.group = (uint16_t)(32u << below(r, k % 128 == 0 ? 3 : k % 64 == 0 ? 2 : 1));
        shape.scale_type = below(r, 2) ? MT_SCALE_BF16 : MT_SCALE_F16;
    }
    /* in fast precision a GPU rounds these to bf16 (docs/models.md), and is not held to the CPU's numbers */
    if (format == MT_FORMAT_FP8 && below(r, 2) && mt_device_precision(r->dev) == MT_PRECISION_REFERENCE)
        shape.scale_rows = 1;
    check_matrix(r->memory, &w, &shape, CHECK_NORMAL);
    if (format == MT_FORMAT_FP8 || format == MT_FORMAT_MXFP8)
        without_nan(w.w, n * w.stride);
    if (format == MT_FORMAT_NVFP4)
        without_nan(w.scales, n * w.scale_stride);
    return w;
}

void plan(run *r, size_t rows)
{
    mt_error err;
    if (!mt_device_plan(r->dev, rows, &err))
        abort();
}

bool adds_freely(const run *r, mt_format f)
{
    return (f == MT_FORMAT_BF16 || f == MT_FORMAT_FP8 || f == MT_FORMAT_MXFP8) &&
           mt_device_precision(r->dev) == MT_PRECISION_FAST;
}

mt_format draw_format(run *r, size_t k)
{
    static const mt_format plain[] = {MT_FORMAT_F32, MT_FORMAT_F16, MT_FORMAT_BF16};
    static const mt_format all[] = {MT_FORMAT_AFFINE, MT_FORMAT_AFFINE, MT_FORMAT_BF16,  MT_FORMAT_F32,
                                    MT_FORMAT_F16,    MT_FORMAT_MXFP4,  MT_FORMAT_NVFP4, MT_FORMAT_FP8,
                                    MT_FORMAT_MXFP8,  MT_FORMAT_SIGNED, MT_FORMAT_IQ4};
    const mt_format f = k % 32 ? plain[below(r, MT_COUNT(plain))] : all[below(r, MT_COUNT(all))];
    if (adds_freely(r, f))
        r->rule = NEAR;
    return f;
}

void give_floats(run *r, const float *x, size_t n)
{
    if (r->filled + n > MOST_FLOATS)
        abort();
    memcpy(r->out + r->filled, x, n * sizeof(*x));
    r->filled += n;
}

void give(run *r, const mt_tensor *t, size_t rows, size_t cols)
{
    mt_reading *reading = mt_reading_new(r->set, r->units * rows * cols * sizeof(float));
    mt_read_rows(r->dev, reading, t, 0, r->units * rows);
    for (size_t i = 0; i < r->units * rows; i++)
        give_floats(r, mt_reading_row(r->dev, reading, i), cols);
}

void say(run *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->shape, sizeof(r->shape), format, args);
    va_end(args);
}

void begin_rows(run *r, mt_batch *batch)
{
    static uint32_t tokens[MOST_UNITS], no_page;
    static mt_position positions[MOST_UNITS];
    static mt_span spans[MOST_UNITS];
    for (size_t i = 0; i < r->units; i++) {
        const uint32_t at = r->unit[i] * 131 % 9973;
        tokens[i] = r->unit[i];
        positions[i] = (mt_position){{at, at / 3, at / 7}};
        spans[i] = (mt_span){.row = (uint32_t)i, .rows = 1, .pages = {&no_page}};
    }
    *batch = (mt_batch){.rows = r->units, .tokens = tokens, .positions = positions, .spans = r->units, .span = spans};
}

/* ---- trials ---- */

/* out: MOST_FLOATS of zeros. finish clears what the check has filled: to clear all would take longer than many
   checks. */
static void start(const harness *h, run *r, mt_device *dev, uint64_t seed, check *memory, float *out)
{
    mt_device_enter(dev);
    *r = (run){.dev = dev, .set = mt_set_new(dev), .seed = seed, .rng = seed, .quick = h->quick, .memory = memory};
    r->out = out;
    memory->rng = seed;
}

static void finish(run *r)
{
    mt_device_enter(r->dev);
    mt_set_free(r->set);
    memset(r->out, 0, r->filled * sizeof(*r->out));
}

static void go(const device_check *c, run *r)
{
    c->fn(r);
    mt_device_wait(r->dev);
    r->each = r->filled / r->units;
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static bool near(float a, float b, float most)
{
    return same(a, b) || fabsf(a - b) <= most;
}

static bool agree(const run *a, const float *x, const float *y, rule by, size_t *where)
{
    float most = 0;
    for (size_t i = 0; i < a->each; i++)
        most = fmaxf(most, fabsf(x[i]));
    most /= by == NEAR ? 512 : 128;
    for (*where = 0; *where < a->each; (*where)++)
        if (by == BITS ? !same(x[*where], y[*where]) : !near(x[*where], y[*where], most))
            return false;
    return true;
}

static bool report(const device_check *c, const run *r, const char *against, size_t unit, size_t at, float want,
                   float got)
{
    printf("%s: %s, %zu units: unit %zu differs from %s at %zu: %a instead of %a (%s--seed %llu)\n", c->name, r->shape,
           r->units, unit, against, at, (double)got, (double)want, r->quick ? "--quick " : "",
           (unsigned long long)r->seed);
    return false;
}

/* Some of the units in another order. */
static void shuffle(run *some, const run *all)
{
    uint64_t state = mix(all->seed + 1);
    uint32_t order[MOST_UNITS];
    for (uint32_t i = 0; i < all->units; i++) {
        const size_t at = (size_t)((state = mix(state)) % (i + 1));
        order[i] = order[at];
        order[at] = i;
    }
    some->units = 1 + (size_t)(mix(state) % all->units);
    for (size_t i = 0; i < some->units; i++)
        some->unit[i] = all->unit[order[i]];
}

static bool try(harness *h, const device_check *c, uint64_t seed)
{
    static float outs[3][MOST_FLOATS];
    check memory = {0};
    run defined, tested, some;
    const size_t most = c->units ? c->units : USUAL_UNITS;
    size_t at = 0;
    bool ok = true;
    start(h, &defined, h->defined, seed, &memory, outs[0]);
    defined.units = 1 + (size_t)(mix(seed + 7) % most);
    for (uint32_t i = 0; i < defined.units; i++)
        defined.unit[i] = i;
    if (!h->itself)
        go(c, &defined);
    start(h, &tested, h->tested, seed, &memory, outs[1]);
    tested.units = defined.units;
    memcpy(tested.unit, defined.unit, sizeof(tested.unit));
    go(c, &tested);
    for (size_t i = 0; ok && !h->itself && i < tested.units; i++)
        if (!agree(&tested, defined.out + i * tested.each, tested.out + i * tested.each, h->sm90 ? BITS : tested.rule,
                   &at))
            ok = report(c, &tested, "the definition", i, at, defined.out[i * tested.each + at],
                        tested.out[i * tested.each + at]);
    start(h, &some, h->tested, seed, &memory, outs[2]);
    shuffle(&some, &tested);
    go(c, &some);
    for (size_t i = 0; ok && i < some.units; i++) {
        const float *want = tested.out + some.unit[i] * tested.each, *got = some.out + i * some.each;
        if (!agree(&some, want, got, BITS, &at))
            ok = report(c, &some, "itself among others", some.unit[i], at, want[at], got[at]);
    }
    finish(&defined);
    finish(&tested);
    finish(&some);
    check_release(&memory);
    return ok;
}

static bool wants(const harness *h, const char *name, size_t number)
{
    if (h->only && (number < h->only || number > h->last))
        return false;
    for (int i = 0; i < h->wanted_count; i++)
        if (strstr(name, h->wanted[i]))
            return true;
    return h->wanted_count == 0;
}

/* number: of the first. Returns that of the first behind them. */
static size_t run_checks(harness *h, const device_check *checks, size_t number)
{
    for (const device_check *c = checks; c->name; c++, number++) {
        bool ok = true;
        if (!wants(h, c->name, number) || (c->latent && !h->latents) || (c->choice && !h->choices) ||
            (c->plain && !h->plain))
            continue;
        const size_t trials = h->trials ? h->trials : !h->quick ? USUAL_TRIALS : c->quick ? c->quick : QUICK_TRIALS;
        for (size_t t = 0; (ok || h->all) && t < trials; t++)
            ok = try(h, c, h->seed ? h->seed : mix(t * 7919 + strlen(c->name)) << 8 | t % 256) && ok;
        h->passed += ok;
        h->failed += !ok;
    }
    return number;
}

static const device_check *const groups[] = {row_checks,       product_checks, attention_checks,
                                             recurrent_checks, object_checks,  together_checks};

/* An operation that no check names is not checked. */
static bool all_named(void)
{
    static const char *const names[] = {
#define NAME(result, name, parameters, arguments) #name,
        MT_DEVICE_OPERATIONS(NAME)
#undef NAME
    };
    bool ok = true;
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        const size_t len = strlen(names[i]);
        bool found = false;
        for (size_t g = 0; g < MT_COUNT(groups); g++)
            for (const device_check *c = groups[g]; c->name; c++)
                for (const char *p = c->name; (p = strstr(p, names[i])); p += len)
                    found = found || ((p == c->name || p[-1] == ' ') && (p[len] == ' ' || p[len] == '\0'));
        if (!found)
            printf("mt_%s has no check: write one in tests/device\n", names[i]);
        ok = ok && found;
    }
    return ok;
}

/* What a GPU can do: for who reads of its speed, and so that what measures it is run. */
static void check_peaks(harness *h)
{
    mt_device_enter(h->tested);
    const mt_peaks p = mt_device_peaks(h->tested);
    const bool ok = p.bandwidth > 0 && p.int8 > 0 && p.bf16 > 0 && p.fp32 > 0 && mt_device_well(h->tested, NULL);
    printf("copies %.2f TB/s; int8 %.0f TOP/s, bf16 %.0f and fp32 %.0f TFLOP/s\n", p.bandwidth * 1e-12, p.int8 * 1e-12,
           p.bf16 * 1e-12, p.fp32 * 1e-12);
    h->passed += ok;
    h->failed += !ok;
}

/* Whether the device keeps latents, or keys that choose `top` positions, for which there are operations that it
   otherwise refuses. */
static bool keeps_latents(mt_device *dev, size_t top)
{
    const mt_kv_shape shape = {.layers = 1,
                               .heads = 1,
                               .query_heads = 1,
                               .head_dim = top ? 16 : 24,
                               .latent = 16,
                               .top = top,
                               .page_tokens = MT_PAGE_TOKENS};
    mt_error err;
    mt_device_enter(dev);
    mt_set *set = mt_set_new(dev);
    const bool kept = mt_kv_new(set, &shape, &err);
    mt_set_free(set);
    if (!kept)
        printf("%s\n", err.text);
    return kept;
}

/* The same of plain states, Mamba2's. */
static bool keeps_plain_states(mt_device *dev)
{
    const mt_state_shape shape = {
        .layers = 1, .key_heads = 1, .value_heads = 1, .key_dim = 8, .value_dim = 8, .taps = 2, .plain = true};
    mt_error err;
    mt_device_enter(dev);
    mt_set *set = mt_set_new(dev);
    const bool kept = mt_state_reserve(set, mt_state_new(set, &shape, 1), 1, &err);
    mt_set_free(set);
    if (!kept)
        printf("%s\n", err.text);
    return kept;
}

/* What is computed by the CPU, for the backend lacks it. */
static void list_lacking(const mt_device *dev)
{
    const char *name;
    for (size_t i = 0; (name = mt_device_lacks(dev, i)); i++)
        printf("%s%s", i == 0 ? "not native: " : " ", name);
    if (mt_device_lacks(dev, 0))
        printf("\n");
}

static bool check_device(harness *h, const char *name, size_t threads, mt_precision precision)
{
    mt_error err = {0};
    const bool native = h->numerics == MT_NUMERICS_NATIVE; /* the definition is slow */
    const mt_numerics sm90 = native ? MT_NUMERICS_SM90 : MT_NUMERICS_SM90_PORTABLE;
    const mt_device_params definition = {.name = h->against,
                                         .precision = precision,
                                         .numerics = h->sm90 ? sm90 : h->numerics,
                                         .host = {.threads = native || h->sm90 ? threads : 1}};
    const mt_device_params tested = {.name = name,
                                     .precision = precision,
                                     .numerics = h->sm90 && strcmp(name, "cpu") == 0 ? sm90 : h->numerics,
                                     .host = {.threads = threads, .cpu_mask = ~0u}};
    h->defined = mt_device_open(&definition, &err);
    h->tested = h->defined ? mt_device_open(&tested, &err) : NULL;
    if (!h->tested) {
        printf("checkdevice: %s\n", err.text);
        mt_device_close(h->defined);
        return false;
    }
    printf("%s, %s%s\n", mt_device_name(h->tested), precision == MT_PRECISION_FAST ? "fast" : "reference",
           native ? ", native" : "");
    if (h->sm90)
        printf("held to: %s\n", mt_device_name(h->defined));
    list_lacking(h->tested);
    h->latents = keeps_latents(h->tested, 0);
    h->choices = keeps_latents(h->tested, 8);
    h->plain = keeps_plain_states(h->tested);
    h->itself = strcmp(name, h->against) == 0 && mt_device_apart(h->tested);
    size_t number = 1;
    for (size_t g = 0; g < MT_COUNT(groups); g++)
        number = run_checks(h, groups[g], number);
    if (h->wanted_count == 0 && !h->only && precision == MT_PRECISION_FAST && mt_device_apart(h->tested))
        check_peaks(h);
    mt_device_close(h->tested);
    mt_device_close(h->defined);
    return true;
}

static int list_checks(void)
{
    size_t number = 1;
    for (size_t g = 0; g < MT_COUNT(groups); g++)
        for (const device_check *c = groups[g]; c->name; c++, number++)
            printf("%zu %s\n", number, c->name);
    return 0;
}

static void read_range(harness *h, const char *text)
{
    char *end = NULL;
    h->only = strtoul(text, &end, 10);
    h->last = *end == '-' ? strtoul(end + 1, NULL, 10) : h->only;
}

int main(int argc, char **argv)
{
    harness h = {.against = "cpu"};
    const char *name = "cpu";
    size_t threads = 3;
    bool fault = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const bool value = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0)
            h.quick = true;
        else if (strcmp(argv[i], "--all") == 0)
            h.all = true;
        else if (strcmp(argv[i], "--fault") == 0)
            fault = true;
        else if (strcmp(argv[i], "--list") == 0)
            return list_checks();
        else if (value && strcmp(argv[i], "--only") == 0)
            read_range(&h, argv[++i]);
        else if (value && strcmp(argv[i], "--device") == 0)
            name = argv[++i];
        else if (strcmp(argv[i], "--native") == 0)
            h.numerics = MT_NUMERICS_NATIVE;
        else if (strcmp(argv[i], "--sm90") == 0)
            h.sm90 = true;
        else if (value && strcmp(argv[i], "--against") == 0)
            h.against = argv[++i];
        else if (value && strcmp(argv[i], "--threads") == 0)
            threads = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--trials") == 0)
            h.trials = strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--seed") == 0) {
            h.seed = strtoull(argv[++i], NULL, 10);
            h.trials = 1;
        } else {
            fprintf(
                stderr,
                "usage: checkdevice [--device NAME] [--against NAME] [--native] [--sm90] [--threads N] [--trials N] "
                "[--seed N] [--quick] [--all] [--fault] [--list] [--only N[-M]] [OPERATION ...]\n");
            return 2;
        }
    }
    if (strcmp(name, bare_backend.name) == 0 || strcmp(name, mixed_backend.name) == 0)
        mt_backend_add(strcmp(name, bare_backend.name) == 0 ? &bare_backend : &mixed_backend);
    if (fault)
        return check_fault(name) ? 0 : 1;
    h.quick = h.quick || getenv("MOTET_TEST_QUICK");
    if (getenv("MOTET_TEST_FULL"))
        h.trials *= 4;
    else if (getenv("MOTET_TEST_QUICK"))
        h.trials = (h.trials + 3) / 4;
    h.wanted = argv + i;
    h.wanted_count = argc - i;
    const bool named = all_named();
    /* reference precision has no arithmetic of its own */
    const bool opened = check_device(&h, name, threads, MT_PRECISION_FAST) &&
                        (h.numerics == MT_NUMERICS_NATIVE || check_device(&h, name, threads, MT_PRECISION_REFERENCE));
    h.failed += (size_t)!named + (size_t)!opened;
    printf("checkdevice: %zu passed, %zu failed\n", h.passed, h.failed);
    return h.failed ? 1 : 0;
}
