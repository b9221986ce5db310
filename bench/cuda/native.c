/* Products in the arithmetic `native` (docs/numerics.md) on this machine's first GPU: whether they have the rule's
   bits, whether a row's bits depend on the rows beside it, and how long they take.

   usage: bench_native IMAGE: IMAGE has the kernels of native.cu. Ends with 1 where bits are wrong, with 77 where there
   is no GPU of compute capability 9.0.

   Shapes are the four products of a layer of an 8B model. Weights are MLX affine in 4 bits and groups of 64; packing is
   not measured. A line has the median of several runs of a graph whose launches take copies of the weights in turn, so
   that L2 does not have them from the launch before. GB/s counts the weights that are read, and for decoding those that
   are written, too. Shares are those of a device-to-device copy and of tensor cores that multiply what lies in shared
   memory, both measured first. */
#include "native.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/pool.h"
#include "device/cuda/driver.h"
#include "device/sm90.h"
#include "kernels/convert.h"

enum {
    SKIPPED = 77,
    SAMPLES = 512, /* outputs that are compared with the rule, for each shape and number of rows */
    RUNS = 9,
    FEW_LAUNCHES = 20, /* of a run */
    PROMPT_LAUNCHES = 2,
    COPIES_BYTES = 200000000, /* of weights, at least */
    CU_CLUSTER_DIMENSION = 4, /* a launch attribute */
    PEAK_ROUNDS = 4096,
    ROUGH_ROW = 5 /* of 8: its segments differ by 2^101 in size */
};

typedef struct shape {
    const char *name;
    size_t n, k;
} shape;

static const shape shapes[] = {
    {"q, k, v", 6144, 4096},
    {"o", 4096, 4096},
    {"gate, up", 24576, 4096},
    {"down", 4096, 12288},
};

static const size_t row_counts[] = {1, 8, 16, 32, 64, 512, 2048, 8192};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), COUNTS = sizeof(row_counts) / sizeof(row_counts[0]) };

typedef struct few_kernel {
    const char *name;
    size_t rows, tiles;
    unsigned shared;
} few_kernel;

static const few_kernel few_kernels[] = {
#define FEW_KERNEL(rows, tiles, stages) \
    {"mtk_native_matmul_w4_rows" #rows "_tiles" #tiles, rows, tiles, NATIVE_FEW_SHARED(rows, tiles, stages)},
    NATIVE_FEW_KERNELS(FEW_KERNEL)
#undef FEW_KERNEL
};

/* ---- data ---- */

/* What a shape has: weights as MLX stores them, and rows. */
typedef struct data {
    const shape *shape;
    uint32_t *codes;         /* [n][k / 8], the lowest bits first */
    mt_f16 *scales, *biases; /* [n][k / 64] */
    float *x;                /* [rows][k] */
} data;

static uint64_t mix(uint64_t x)
{
    x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* An output's weights: scales of 2^-11 to 2^-8, biases that make them about symmetric. */
static void make_weights(void *ctx, size_t n, size_t worker)
{
    const data *d = ctx;
    const size_t words = d->shape->k / 8, groups = d->shape->k / NATIVE_CHUNK;
    (void)worker;
    for (size_t i = 0; i < words; i++)
        d->codes[n * words + i] = (uint32_t)mix((uint64_t)n << 32 | i);
    for (size_t i = 0; i < groups; i++) {
        const uint64_t r = mix((uint64_t)1 << 63 | (uint64_t)n << 32 | i);
        const uint32_t exponent = 4 + (uint32_t)(r >> 40) % 3;
        d->scales[n * groups + i] = (mt_f16)(exponent << 10 | (r & 0x3ff));
        d->biases[n * groups + i] = (mt_f16)(0x8000 | (exponent + 3) << 10 | (r >> 10 & 0x3ff));
    }
}

/* What a segment's activations are multiplied by. */
static float segment_size(size_t row, size_t segment)
{
    static const float rough[] = {0, 0x1p-70f, 0x1p-40f, 1, 0x1p20f, 0x1p31f};
    const uint64_t r = mix((uint64_t)1 << 62 | (uint64_t)row << 32 | segment);
    if (row % 8 == ROUGH_ROW)
        return rough[r % (sizeof(rough) / sizeof(rough[0]))];
    return r % 7 == 0 ? 0x1p-9f : 1;
}

/* About normal; one of 512 is 37 times as large. */
static void make_row(void *ctx, size_t row, size_t worker)
{
    const data *d = ctx;
    float size = 0;
    (void)worker;
    for (size_t i = 0; i < d->shape->k; i++) {
        const uint64_t r = mix((uint64_t)3 << 61 | (uint64_t)row << 32 | i);
        const int even = (int)(r & 0xffff) + (int)(r >> 16 & 0xffff) + (int)(r >> 32 & 0xffff) - 0x17fff;
        if (i % NATIVE_SEGMENT == 0)
            size = segment_size(row, i / NATIVE_SEGMENT);
        d->x[row * d->shape->k + i] = (float)even * 0x1p-15f * size * ((r >> 48) % 512 == 0 ? 37 : 1);
    }
}

/* ---- the rule ---- */

/* Rounded to nearest even; what is too large is an infinity. */
static mt_f16 f16_of(double v)
{
    const double size = fabs(v);
    const int exponent = size < 0x1p-14 ? -14 : ilogb(size);
    const double bits = size > 0x1p17 ? 0x7c00 : (exponent + 14) * 1024 + nearbyint(ldexp(size, 10 - exponent));
    return (mt_f16)((signbit(v) ? 0x8000u : 0) | (bits < 0x7c00 ? (uint32_t)bits : 0x7c00u));
}

static double weight(const data *d, size_t n, size_t k)
{
    const size_t group = (n * d->shape->k + k) / NATIVE_CHUNK;
    const uint32_t code = d->codes[(n * d->shape->k + k) / 8] >> k % 8 * 4 & 15;
    return code * (double)mt_f32_from_f16(d->scales[group]) + (double)mt_f32_from_f16(d->biases[group]);
}

static int segment_exponent(const float *x)
{
    float most = 0;
    uint32_t bits;
    for (size_t i = 0; i < NATIVE_SEGMENT; i++)
        most = fmaxf(most, fabsf(x[i]));
    memcpy(&bits, &most, sizeof(bits));
    const int e = (int)(bits >> 23) - 127 - NATIVE_EXPONENT_TOP;
    return e < NATIVE_EXPONENT_LEAST ? NATIVE_EXPONENT_LEAST : e > NATIVE_EXPONENT_MOST ? NATIVE_EXPONENT_MOST : e;
}

/* Output n of a row x: what the kernels must have, to the last bit. */
static float product_rule(const data *d, const float *x, size_t n)
{
    float total = 0, part = 0;
    int e = 0;
    for (size_t k = 0; k < d->shape->k; k += MT_SM90_K) {
        mt_f16 w[MT_SM90_K], a[MT_SM90_K];
        if (k % NATIVE_SEGMENT == 0) {
            const int last = e;
            e = segment_exponent(x + k);
            part = k % NATIVE_GROUP ? part * ldexpf(1, last - e) : 0;
        }
        for (size_t i = 0; i < MT_SM90_K; i++) {
            w[i] = f16_of(weight(d, n, k + i));
            a[i] = f16_of(ldexp((double)x[k + i], -e));
        }
        part = mt_sm90_dot_f16(part, w, a);
        if ((k + MT_SM90_K) % NATIVE_GROUP == 0)
            total = fmaf(ldexpf(1, e), part, total);
    }
    return total;
}

/* ---- the GPU ---- */

typedef struct card {
    mt_cuda_driver cu;
    CUresult (*elapsed)(float *ms, CUevent from, CUevent to);
    CUcontext context;
    CUmodule module;
    CUstream stream;
    CUevent begun, ended;
    int multiprocessors;
    double bytes_per_us, flop_per_us; /* the ceilings */
} card;

/* A kernel with its parameters, of which the first is the weights to read. */
typedef struct job {
    const char *kernel;
    unsigned grid[2], threads, shared, cluster;
    bool early; /* starts while the launch before it ends */
    CUdeviceptr *weights;
    size_t copies;
    void *parameters[8];
} job;

_Noreturn static void fail(const char *what)
{
    printf("native: %s\n", what);
    exit(1);
}

static void need(const card *c, CUresult result, const char *what)
{
    if (result == 0)
        return;
    printf("native: %s: %s\n", what, mt_cuda_driver_text(&c->cu, result));
    exit(1);
}

/* 0, or how to end. */
static int open_card(card *c, const char *path)
{
    mt_error err;
    mt_file image = {0};
    CUdevice device;
    int major = 0, minor = 0;
    if (mt_cuda_driver_open(&c->cu, &err) && c->cu.device_get(&device, 0) == 0) {
        c->cu.device_attribute(&major, MT_CU_ATTRIBUTE_MAJOR, device);
        c->cu.device_attribute(&minor, MT_CU_ATTRIBUTE_MINOR, device);
    }
    if (major != 9 || minor != 0) {
        printf("native: skipped: there is no GPU of compute capability 9.0\n");
        return SKIPPED;
    }
    if (!mt_file_map(&image, path, &err))
        fail(err.text);
    /* Not in the driver's table, since the device does not use it. */
    *(void **)&c->elapsed = dlsym(c->cu.library, "cuEventElapsedTime");
    if (!c->elapsed)
        fail("the driver has no cuEventElapsedTime");
    c->cu.device_attribute(&c->multiprocessors, MT_CU_ATTRIBUTE_MULTIPROCESSORS, device);
    need(c, c->cu.context_new(&c->context, 0, device), "no context");
    need(c, c->cu.module_load(&c->module, image.data), "the kernels were not taken");
    need(c, c->cu.stream_new(&c->stream, MT_CU_STREAM_NON_BLOCKING), "no stream");
    need(c, c->cu.event_new(&c->begun, 0), "no event");
    need(c, c->cu.event_new(&c->ended, 0), "no event");
    mt_file_unmap(&image);
    return 0;
}

static CUdeviceptr alloc(const card *c, size_t bytes)
{
    CUdeviceptr at = 0;
    need(c, c->cu.alloc(&at, bytes), "no memory on the GPU");
    return at;
}

static CUdeviceptr upload(const card *c, const void *from, size_t bytes)
{
    const CUdeviceptr at = alloc(c, bytes);
    need(c, c->cu.to_device(at, from, bytes, c->stream), "copy to the GPU");
    return at;
}

static void launch(const card *c, const job *j)
{
    CUfunction f;
    CUlaunchAttribute attributes[2] = {{0}};
    CUlaunchConfig config = {
        .grid = {j->grid[0], j->grid[1], 1},
        .block = {j->threads, 1, 1},
        .shared = j->shared,
        .stream = c->stream,
        .attributes = attributes,
    };
    if (j->cluster) {
        attributes[config.attribute_count].id = CU_CLUSTER_DIMENSION;
        attributes[config.attribute_count].value.all[0] = j->cluster | (uint64_t)1 << 32; /* x, y */
        attributes[config.attribute_count++].value.all[1] = 1;                            /* z */
    }
    if (j->early) {
        attributes[config.attribute_count].id = MT_CU_LAUNCH_PROGRAMMATIC;
        attributes[config.attribute_count++].value.allowed = 1;
    }
    need(c, c->cu.module_function(&f, c->module, j->kernel), j->kernel);
    need(c, c->cu.function_set(f, MT_CU_FUNC_SHARED_BYTES, (int)j->shared), j->kernel);
    need(c, c->cu.launch(&config, f, (void **)j->parameters, NULL), j->kernel);
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Microseconds of one launch. */
static double time_of(const card *c, job *j, size_t launches)
{
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr weights;
    float ms[RUNS];
    void *const parameter = j->parameters[0];
    need(c, c->cu.capture_begin(c->stream, MT_CU_CAPTURE_RELAXED), "capture");
    for (size_t i = 0; i < launches; i++) {
        if (j->copies) {
            weights = j->weights[i % j->copies];
            j->parameters[0] = &weights;
        }
        launch(c, j);
    }
    j->parameters[0] = parameter;
    need(c, c->cu.capture_end(c->stream, &graph), "capture");
    need(c, c->cu.graph_instantiate(&exec, graph, 0), "graph");
    for (size_t i = 0; i < RUNS; i++) {
        need(c, c->cu.event_record(c->begun, c->stream), "event");
        need(c, c->cu.graph_launch(exec, c->stream), "graph");
        need(c, c->cu.event_record(c->ended, c->stream), "event");
        need(c, c->cu.stream_wait(c->stream), j->kernel);
        need(c, c->elapsed(&ms[i], c->begun, c->ended), "event");
    }
    c->cu.graph_exec_free(exec);
    c->cu.graph_free(graph);
    qsort(ms, RUNS, sizeof(ms[0]), compare_floats);
    return (double)ms[RUNS / 2] * 1000 / (double)launches;
}

static void measure_ceilings(card *c)
{
    const size_t bytes = (size_t)1 << 30;
    uint32_t rounds = PEAK_ROUNDS;
    CUdeviceptr from = alloc(c, bytes), to = alloc(c, bytes);
    job peak = {.kernel = "mtk_native_peak_f16",
                .grid = {(unsigned)c->multiprocessors, 1},
                .threads = NATIVE_PEAK_THREADS,
                .parameters = {&to, &rounds}};
    const double products =
        (double)c->multiprocessors * (NATIVE_PEAK_THREADS / 128) * PEAK_ROUNDS * NATIVE_PEAK_PRODUCTS;
    float ms[RUNS];
    c->flop_per_us = products * 2 * 64 * 128 * MT_SM90_K / time_of(c, &peak, 2);
    for (size_t i = 0; i < RUNS; i++) {
        need(c, c->cu.event_record(c->begun, c->stream), "event");
        need(c, c->cu.copy(to, from, bytes, c->stream), "copy");
        need(c, c->cu.event_record(c->ended, c->stream), "event");
        need(c, c->cu.stream_wait(c->stream), "copy");
        need(c, c->elapsed(&ms[i], c->begun, c->ended), "event");
    }
    qsort(ms, RUNS, sizeof(ms[0]), compare_floats);
    c->bytes_per_us = 2 * (double)bytes / ((double)ms[RUNS / 2] * 1000);
    c->cu.free(from);
    c->cu.free(to);
    printf("ceilings: %.0f GB/s, %.0f TFLOP/s\n", c->bytes_per_us / 1e3, c->flop_per_us / 1e6);
}

/* ---- products ---- */

/* A shape on the GPU. */
typedef struct loaded {
    const data *data;
    CUdeviceptr w[64], w_f16, x, x_f16, powers, y;
    size_t copies, packed_bytes;
    float *first_row; /* of the first number of rows */
} loaded;

static size_t round_up(size_t x, size_t unit)
{
    return (x + unit - 1) / unit * unit;
}

static void load(const card *c, loaded *l, const data *d, size_t rows)
{
    const size_t n = d->shape->n, k = d->shape->k, padded = round_up(rows, NATIVE_PROMPT_ROWS);
    CUdeviceptr codes = upload(c, d->codes, n * k / 2), scales = upload(c, d->scales, n * k / NATIVE_CHUNK * 2);
    CUdeviceptr biases = upload(c, d->biases, n * k / NATIVE_CHUNK * 2);
    uint32_t k32 = (uint32_t)k;
    *l = (loaded){.data = d, .packed_bytes = n / NATIVE_TILE_OUTPUTS * (k / NATIVE_CHUNK) * NATIVE_TILE_BYTES};
    l->copies = COPIES_BYTES / l->packed_bytes + 1;
    for (size_t i = 0; i < l->copies; i++)
        l->w[i] = alloc(c, l->packed_bytes);
    l->w_f16 = alloc(c, n * k * 2);
    l->x = upload(c, d->x, rows * k * sizeof(float));
    l->x_f16 = alloc(c, padded * k * 2);
    l->powers = alloc(c, padded * (k / NATIVE_SEGMENT) * 2 * sizeof(float));
    l->y = alloc(c, rows * n * sizeof(float));
    l->first_row = mt_alloc_array(n, sizeof(float));
    const job pack = {.kernel = "mtk_native_pack_weights",
                      .grid = {(unsigned)(k / NATIVE_CHUNK), (unsigned)(n / NATIVE_TILE_OUTPUTS)},
                      .threads = 128,
                      .parameters = {&l->w[0], &codes, &scales, &biases, &k32}};
    launch(c, &pack);
    for (size_t i = 1; i < l->copies; i++)
        need(c, c->cu.copy(l->w[i], l->w[0], l->packed_bytes, c->stream), "copy");
    need(c, c->cu.stream_wait(c->stream), "packing weights");
    c->cu.free(codes);
    c->cu.free(scales);
    c->cu.free(biases);
}

static void unload(const card *c, loaded *l)
{
    const CUdeviceptr all[] = {l->w_f16, l->x, l->x_f16, l->powers, l->y};
    for (size_t i = 0; i < l->copies; i++)
        c->cu.free(l->w[i]);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        c->cu.free(all[i]);
    mt_free(l->first_row);
}

/* Rows in tiles of `block`, zeros up to a multiple of `padding`. */
static void pack_rows(const card *c, loaded *l, size_t rows, size_t block, size_t padding)
{
    uint32_t k = (uint32_t)l->data->shape->k, rows32 = (uint32_t)rows, block32 = (uint32_t)block;
    const job pack = {.kernel = "mtk_native_pack_rows",
                      .grid = {k / NATIVE_SEGMENT, (unsigned)round_up(rows, padding)},
                      .threads = 32,
                      .parameters = {&l->x_f16, &l->powers, &l->x, &k, &rows32, &block32}};
    launch(c, &pack);
}

/* The fewest rows that are enough; 64 outputs a block where all blocks run at once, else 128. */
static const few_kernel *choose_few(const card *c, const shape *s, size_t rows)
{
    const size_t blocks = s->n / NATIVE_TILE_OUTPUTS * (s->k / NATIVE_GROUP);
    const size_t tiles = blocks <= (size_t)c->multiprocessors * NATIVE_FEW_BLOCKS ? 1 : 2;
    for (size_t i = 0; i < sizeof(few_kernels) / sizeof(few_kernels[0]); i++)
        if (few_kernels[i].rows >= rows && few_kernels[i].tiles == tiles)
            return &few_kernels[i];
    fail("there is no kernel for so many rows");
}

/* Outputs that differ from the rule. */
typedef struct comparison {
    const data *data;
    size_t row[SAMPLES], output[SAMPLES];
    float got[SAMPLES];
    bool wrong[SAMPLES];
} comparison;

static void compare_sample(void *ctx, size_t i, size_t worker)
{
    comparison *m = ctx;
    const float want = product_rule(m->data, m->data->x + m->row[i] * m->data->shape->k, m->output[i]);
    (void)worker;
    m->wrong[i] = memcmp(&want, &m->got[i], sizeof(want)) != 0;
    if (m->wrong[i])
        printf("%s, row %zu, output %zu: %a, by the rule %a\n", m->data->shape->name, m->row[i], m->output[i],
               (double)m->got[i], (double)want);
}

/* Samples that differ from the rule, with those of the first row that differ from what it was. */
static size_t check(const card *c, mt_pool *pool, loaded *l, size_t rows)
{
    const size_t n = l->data->shape->n;
    comparison m = {.data = l->data};
    float *first_row = mt_alloc_array(n, sizeof(float));
    size_t wrong = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        m.row[i] = i % 8 == 7 ? rows - 1 : mix(i) % rows;
        m.output[i] = mix(rows << 32 | i) % n;
        need(c, c->cu.to_host(&m.got[i], l->y + (m.row[i] * n + m.output[i]) * 4, 4, c->stream), "copy to the host");
    }
    need(c, c->cu.to_host(first_row, l->y, n * sizeof(float), c->stream), "copy to the host");
    need(c, c->cu.stream_wait(c->stream), "a product");
    mt_pool_run(pool, compare_sample, &m, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++)
        wrong += m.wrong[i];
    if (rows == row_counts[0])
        memcpy(l->first_row, first_row, n * sizeof(float));
    else if (memcmp(l->first_row, first_row, n * sizeof(float)) != 0) {
        printf("%s, %zu rows: row 0 is not what it is alone\n", l->data->shape->name, rows);
        wrong++;
    }
    mt_free(first_row);
    return wrong;
}

static void print_line(const card *c, const char *what, const shape *s, size_t rows, double us, double bytes)
{
    const double flop = 2 * (double)s->n * (double)s->k * (double)rows;
    printf("%-8s %5zu %-19s %8.2f us %6.0f GB/s %3.0f %%", s->name, rows, what, us, bytes / us / 1e3,
           100 * bytes / us / c->bytes_per_us);
    if (rows > 0)
        printf(" %5.0f TFLOP/s %3.0f %%", flop / us / 1e6, 100 * flop / us / c->flop_per_us);
    printf("\n");
}

static size_t run_few(const card *c, mt_pool *pool, loaded *l, size_t rows, double *us)
{
    const shape *s = l->data->shape;
    const few_kernel *kernel = choose_few(c, s, rows);
    const unsigned cluster = (unsigned)(s->k / NATIVE_GROUP);
    uint32_t n = (uint32_t)s->n, k = (uint32_t)s->k, rows32 = (uint32_t)rows;
    job j = {.kernel = kernel->name,
             .grid = {(unsigned)(s->n / (NATIVE_TILE_OUTPUTS * kernel->tiles)) * cluster, 1},
             .threads = (unsigned)NATIVE_FEW_THREADS(kernel->tiles),
             .shared = kernel->shared,
             .cluster = cluster,
             .early = true,
             .weights = l->w,
             .copies = l->copies,
             .parameters = {&l->w[0], &l->x_f16, &l->powers, &l->y, &n, &k, &rows32}};
    pack_rows(c, l, rows, kernel->rows, kernel->rows);
    need(c, c->cu.set_bytes(l->y, 0xff, rows * s->n * sizeof(float), c->stream), "set");
    launch(c, &j);
    size_t wrong = check(c, pool, l, rows);
    *us = time_of(c, &j, FEW_LAUNCHES);
    wrong += check(c, pool, l, rows); /* launches that overlap have the same bits */
    print_line(c, strstr(kernel->name, "rows"), s, rows, *us, (double)l->packed_bytes);
    return wrong;
}

static double run_decode(const card *c, loaded *l)
{
    const shape *s = l->data->shape;
    uint32_t k = (uint32_t)s->k;
    job j = {.kernel = "mtk_native_decode_weights",
             .grid = {(unsigned)(s->k / NATIVE_CHUNK), (unsigned)(s->n / NATIVE_TILE_OUTPUTS)},
             .threads = 128,
             .weights = l->w,
             .copies = l->copies,
             .parameters = {&l->w[0], &l->w_f16, &k}};
    const double us = time_of(c, &j, FEW_LAUNCHES);
    print_line(c, "decode", s, 0, us, (double)l->packed_bytes + (double)s->n * (double)s->k * 2);
    return us;
}

static size_t run_prompt(const card *c, mt_pool *pool, loaded *l, size_t rows, double *us)
{
    const shape *s = l->data->shape;
    const size_t tiles = s->n / NATIVE_PROMPT_OUTPUTS * (round_up(rows, NATIVE_PROMPT_ROWS) / NATIVE_PROMPT_ROWS);
    const size_t blocks = tiles < (size_t)c->multiprocessors ? tiles : (size_t)c->multiprocessors;
    uint32_t n = (uint32_t)s->n, k = (uint32_t)s->k, rows32 = (uint32_t)rows;
    job j = {.kernel = "mtk_native_matmul_f16_prompt",
             .grid = {(unsigned)blocks, 1},
             .threads = NATIVE_PROMPT_THREADS,
             .shared = NATIVE_PROMPT_SHARED,
             .parameters = {&l->w_f16, &l->x_f16, &l->powers, &l->y, &n, &k, &rows32}};
    pack_rows(c, l, rows, 64, NATIVE_PROMPT_ROWS);
    need(c, c->cu.set_bytes(l->y, 0xff, rows * s->n * sizeof(float), c->stream), "set");
    launch(c, &j);
    const size_t wrong = check(c, pool, l, rows);
    *us = time_of(c, &j, PROMPT_LAUNCHES);
    print_line(c, "prompt", s, rows, *us, (double)s->n * (double)s->k * 2);
    return wrong;
}

/* All numbers of rows of a shape; adds the times to those of the other shapes. */
static size_t run_shape(const card *c, mt_pool *pool, const shape *s, double sums[COUNTS], double *decode)
{
    const size_t most = row_counts[COUNTS - 1], groups = s->n * s->k / NATIVE_CHUNK;
    data d = {
        .shape = s,
        .codes = mt_alloc_array(s->n * s->k / 8, sizeof(uint32_t)),
        .scales = mt_alloc_array(groups, sizeof(mt_f16)),
        .biases = mt_alloc_array(groups, sizeof(mt_f16)),
        .x = mt_alloc_array(most * s->k, sizeof(float)),
    };
    loaded l;
    size_t wrong = 0;
    double us = 0;
    mt_pool_run(pool, make_weights, &d, s->n);
    mt_pool_run(pool, make_row, &d, most);
    load(c, &l, &d, most);
    *decode += run_decode(c, &l);
    for (size_t i = 0; i < COUNTS; i++) {
        wrong += row_counts[i] <= NATIVE_FEW_ROWS ? run_few(c, pool, &l, row_counts[i], &us)
                                                  : run_prompt(c, pool, &l, row_counts[i], &us);
        sums[i] += us;
    }
    unload(c, &l);
    mt_free(d.codes);
    mt_free(d.scales);
    mt_free(d.biases);
    mt_free(d.x);
    return wrong;
}

int main(int argc, char **argv)
{
    mt_error err;
    card c = {0};
    double sums[COUNTS] = {0}, decode = 0;
    size_t wrong = 0;
    if (argc < 2)
        fail("say where the kernels are");
    const int status = open_card(&c, argv[1]);
    if (status)
        return status;
    mt_pool *pool = mt_pool_new(0, &err);
    if (!pool)
        fail(err.text);
    measure_ceilings(&c);
    for (size_t i = 0; i < SHAPES; i++)
        wrong += run_shape(&c, pool, &shapes[i], sums, &decode);
    printf("all four, decode %27.2f us\n", decode);
    for (size_t i = 0; i < COUNTS; i++)
        printf("all four, %5zu rows %24.2f us\n", row_counts[i], sums[i]);
    printf("native: %s\n", wrong ? "there are wrong bits" : "all bits are those of the rule");
    mt_pool_free(pool);
    return wrong > 0;
}
