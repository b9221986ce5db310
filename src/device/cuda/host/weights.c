/* Copies weights to the device, arranged as the kernels read them (params.h). */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "device/cuda/cuda.h"
#include "kernels/levels.h"
#include "kernels/unpack.h"

static CUdeviceptr floats(mt_set *set, const float *x, size_t n)
{
    const CUdeviceptr at = x ? mt_cuda_memory(set, n * sizeof(*x)) : 0;
    if (at)
        mt_cuda_send(set->head.dev, at, x, n * sizeof(*x));
    return at;
}

/* ---- tiles ---- */

typedef void lay_fn(uint8_t *to, const mt_mat *mat, const mt_cuda_weight *d, size_t first);

typedef struct laying {
    lay_fn *lay;
    const mt_mat *mat;
    const mt_cuda_weight *d;
    uint8_t *to;
    size_t bytes, tile; /* bytes of a tile; index of the first */
    size_t width;       /* columns of a tile */
} laying;

static void lay_tile(void *ctx, size_t item, size_t worker)
{
    const laying *l = ctx;
    uint8_t *to = l->to + item * l->bytes;
    (void)worker;
    memset(to, 0, l->bytes);
    l->lay(to, l->mat, l->d, (l->tile + item) * l->width);
}

/* Sends tiles of so many columns one behind the other: the host's threads read the file and arrange some tiles in
   pinned memory while those before are being copied. */
static void send_tiles(mt_device *dev, CUdeviceptr to, const mt_mat *mat, const mt_cuda_weight *d, size_t width,
                       size_t bytes, lay_fn *lay)
{
    const size_t tiles = (mat->n + width - 1) / width, most = MT_CUDA_STAGING / 4 / bytes + 1;
    for (size_t tile = 0; to && tile < tiles && !dev->failed;) {
        const size_t some = tiles - tile < most ? tiles - tile : most;
        laying l = {.lay = lay,
                    .mat = mat,
                    .d = d,
                    .to = mt_cuda_stage(dev, some * bytes),
                    .bytes = bytes,
                    .tile = tile,
                    .width = width};
        mt_host_run(dev->head.host, lay_tile, &l, some);
        mt_cuda_flush(dev, to + tile * bytes, l.to, some * bytes);
        tile += some;
    }
}

/* ---- codes ---- */

static void put_code(uint8_t *tile, const mt_cuda_weight *d, size_t n, size_t k, int code)
{
    const size_t r = k % 32, lane = n % 8 * 4 + r % 16 / 4, ks = k % 128 / 32, high = r / 16;
    const size_t block = k / 128 * 2 + n / 8;
    if (d->kind == MT_CUDA_CODES4) {
        uint8_t *at = tile + block * 512 + lane * 16 + ks * 4 + r % 4;
        *at = (uint8_t)(*at | (unsigned)code << (high ? 4 : 0));
    } else {
        tile[block * 1024 + lane * 32 + (ks * 2 + high) * 4 + r % 4] = (uint8_t)code;
    }
}

static size_t code_bytes(const mt_cuda_weight *d) /* of a tile */
{
    return (size_t)d->steps * 2 * (d->kind == MT_CUDA_CODES4 ? 512 : 1024);
}

static void lay_codes(uint8_t *to, const mt_mat *mat, const mt_cuda_weight *d, size_t first)
{
    for (size_t n = 0; n < MT_CUDA_TILE && first + n < mat->n; n++) {
        mt_unpacker u = mt_unpacker_of(mat, first + n);
        for (size_t k = 0; k < mat->k; k++)
            put_code(to, d, n, k, mt_unpack_next(&u, mat));
    }
}

static size_t pair_bytes(const mt_cuda_weight *d)
{
    return d->pairs == MT_SCALE_F32 ? 2 * sizeof(float) : 2 * sizeof(uint16_t);
}

static void put_pair(uint8_t *to, const mt_mat *mat, const mt_cuda_weight *d, size_t n, size_t g)
{
    const uint8_t *scales = mat->scales + n * mat->scale_stride, *biases = mat->biases + n * mat->scale_stride;
    if (d->pairs != MT_SCALE_F32) {
        memcpy(to, scales + 2 * g, 2);
        memcpy(to + 2, biases + 2 * g, 2);
        return;
    }
    const float pair[2] = {mt_weight_scale(mat, scales, g), mat->biases ? mt_scale_f32(biases, mat->scale_type, g) : 0};
    memcpy(to, pair, sizeof(pair));
}

static void lay_scales(uint8_t *to, const mt_mat *mat, const mt_cuda_weight *d, size_t first)
{
    for (size_t n = 0; n < MT_CUDA_TILE && first + n < mat->n; n++)
        for (size_t g = 0; g < d->groups; g++)
            put_pair(to + (g * MT_CUDA_TILE + n) * pair_bytes(d), mat, d, first + n, g);
}

static void make_codes(mt_set *set, const mt_mat *mat, mt_cuda_weight *d)
{
    const size_t tiles = mt_cuda_up(mat->n, 2 * MT_CUDA_TILE) / MT_CUDA_TILE; /* kernels take pairs of them */
    d->kind = mt_formats[mat->format].biased && mat->bits <= 4 ? MT_CUDA_CODES4 : MT_CUDA_CODES8;
    d->group = mat->group;
    d->groups = (uint32_t)(mat->k / mat->group);
    d->steps = (uint32_t)((mat->k + MT_CUDA_STEP - 1) / MT_CUDA_STEP);
    d->biased = mat->biases != NULL;
    d->pairs =
        (uint8_t)(mat->biases && (mat->scale_type == MT_SCALE_BF16 || mat->scale_type == MT_SCALE_F16) ? mat->scale_type
                                                                                                       : MT_SCALE_F32);
    d->w = mt_cuda_memory(set, tiles * code_bytes(d));
    d->scales = mt_cuda_memory(set, tiles * d->groups * MT_CUDA_TILE * pair_bytes(d));
    send_tiles(set->head.dev, d->w, mat, d, MT_CUDA_TILE, code_bytes(d), lay_codes);
    send_tiles(set->head.dev, d->scales, mat, d, MT_CUDA_TILE, d->groups * MT_CUDA_TILE * pair_bytes(d), lay_scales);
}

/* ---- codes for `native` ---- */

static uint32_t native_bits(const mt_cuda_weight *d)
{
    return d->kind == MT_CUDA_NATIVE4 ? 4 : 8;
}

/* A code at k of its step; n: its column of the tile. */
static void put_native(uint8_t *step, uint32_t bits, size_t n, size_t k, unsigned code)
{
    const size_t thread = n / 16 * 32 + n % 8 * 4 + k % 8 / 2, product = k / 16, high = k % 16 >= 8,
                 column = n % 16 / 8;
    const size_t word = product * 2 + column; /* of eight, where a code has a byte */
    if (bits == 4) {
        uint8_t *at = step + thread * 16 + product * 4 + column + k % 2 * 2;
        *at = (uint8_t)(*at | code << (high ? 4 : 0));
    } else {
        step[word / 4 * 2048 + thread * 16 + word % 4 * 4 + k % 2 * 2 + high] = (uint8_t)code;
    }
}

static void lay_native(uint8_t *to, const mt_mat *mat, const mt_cuda_weight *d, size_t first)
{
    const int power = ilogbf(d->unit), lift = mt_code_lift(mat);
    const uint32_t bits = native_bits(d), each = MT_CUDA_NATIVE_STEP / d->groups;
    for (size_t n = 0; n < MT_CUDA_NATIVE_TILE && first + n < mat->n; n++) {
        mt_unpacker u = mt_unpacker_of(mat, first + n);
        mt_native_pair pair = {0, 0};
        for (size_t k = 0; k < mat->k; k++) {
            const size_t within = k % MT_CUDA_NATIVE_STEP;
            uint8_t *step = to + k / MT_CUDA_NATIVE_STEP * MT_CUDA_NATIVE_BYTES(bits, d->groups);
            put_native(step, bits, n, within, (unsigned)(mt_unpack_next(&u, mat) + lift));
            if (k % mat->group == 0)
                pair = mt_native_pair_of(mat, first + n, k / mat->group, power);
            if (within % each == 0)
                memcpy(step + MT_CUDA_NATIVE_CODES(bits) + (within / each * MT_CUDA_NATIVE_TILE + n) * sizeof(pair),
                       &pair, sizeof(pair));
        }
    }
}

static void make_native(mt_set *set, const mt_mat *mat, mt_cuda_weight *d)
{
    const size_t tiles = mt_cuda_up(mat->n, 2 * MT_CUDA_NATIVE_TILE) / MT_CUDA_NATIVE_TILE; /* kernels take pairs */
    const size_t padded = mt_native_padded(mat->k), decoded = tiles * MT_CUDA_NATIVE_TILE * padded * sizeof(mt_f16);
    d->kind = mt_native_narrow(mat) ? MT_CUDA_NATIVE4 : MT_CUDA_NATIVE8;
    d->groups = mat->group < MT_CUDA_NATIVE_STEP ? MT_CUDA_NATIVE_STEP / mat->group : 1;
    d->steps = (uint32_t)(padded / MT_CUDA_NATIVE_STEP);
    d->unit = ldexpf(1, mt_native_power(mat));
    const size_t bytes = (size_t)d->steps * MT_CUDA_NATIVE_BYTES(native_bits(d), d->groups);
    d->w = mt_cuda_memory(set, tiles * bytes);
    send_tiles(set->head.dev, d->w, mat, d, MT_CUDA_NATIVE_TILE, bytes, lay_native);
    set->needs.decoded = decoded > set->needs.decoded ? decoded : set->needs.decoded;
}

/* ---- halves and bytes ---- */

/* Writes a row of bf16 among the 16 of a tile, in steps of 64. */
static void put_halves(uint8_t *tile, const uint8_t *row, size_t n, size_t k)
{
    for (size_t i = 0; i < k; i += 8)
        memcpy(tile + i / 64 * 2048 + n * 128 + (i % 64 / 8 ^ n % 8) * 16, row + 2 * i, 2 * (k - i < 8 ? k - i : 8));
}

static uint8_t byte_or_zero(const uint8_t *row, size_t i, size_t k)
{
    return i < k ? row[i] : 0;
}

/* Four at a time, as products/fp8.cuh wants them. */
static void put_bytes(uint8_t *tile, const uint8_t *row, size_t n, size_t k)
{
    for (size_t i = 0; i < k; i += i % 8 == 6 ? 10 : 2) {
        const uint32_t a = byte_or_zero(row, i, k) | (uint32_t)byte_or_zero(row, i + 1, k) << 16;
        const uint32_t b = byte_or_zero(row, i + 8, k) | (uint32_t)byte_or_zero(row, i + 9, k) << 16;
        const uint32_t word = (a & 0x00800080u) << 8 | (a & 0x007f007fu) << 4 | (b & 0x00780078u) << 8 |
                              (b & 0x00070007u) | (b >> 7 & 1) << 19 | (b >> 23 & 1) << 3;
        memcpy(tile + i / 64 * 1024 + n / 8 * 512 + (n % 8 * 4 + i % 8 / 2) * 16 + i % 64 / 16 * 4, &word, 4);
    }
}

static bool has_nan(const mt_mat *mat)
{
    for (size_t n = 0; n < mat->n; n++)
        for (size_t k = 0; k < mat->k; k++)
            if ((mat->w[n * mat->stride + k] & 0x7f) == 0x7f)
                return true;
    return false;
}

/* Kernels for FP8 do not handle NaN: a weight with NaN keeps the file's layout, for a kernel that does. */
static bool has_halves(const mt_mat *mat, mt_class class)
{
    return class == MT_CLASS_B && (mat->format == MT_FORMAT_BF16 || (mat->format == MT_FORMAT_FP8 && !has_nan(mat)));
}

static void send_block_scales(mt_set *set, const mt_mat *mat, mt_cuda_weight *d)
{
    mt_device *dev = set->head.dev;
    const size_t scales = mat->group ? (mat->k + mat->group - 1) / mat->group : 0, bytes = scales * sizeof(float);
    const size_t rows = mat->format == MT_FORMAT_FP8 ? (mat->n + 127) / 128 : mat->n;
    d->scale_row = (uint32_t)scales;
    if (scales == 0)
        return;
    d->scales = mt_cuda_memory(set, rows * bytes);
    for (size_t r = 0; d->scales && r < rows; r++) {
        uint8_t *staged = mt_cuda_stage(dev, bytes);
        for (size_t g = 0; g < scales; g++)
            ((float *)(void *)staged)[g] = mt_scale_f32(mat->scales + r * mat->scale_stride, mat->scale_type, g);
        mt_cuda_flush(dev, d->scales + r * bytes, staged, bytes);
    }
}

static void lay_halves(uint8_t *to, const mt_mat *mat, const mt_cuda_weight *d, size_t first)
{
    for (size_t n = 0; n < MT_CUDA_TILE && first + n < mat->n; n++)
        (d->kind == MT_CUDA_HALVES ? put_halves : put_bytes)(to, mat->w + (first + n) * mat->stride, n, mat->k);
}

static void make_halves(mt_set *set, const mt_mat *mat, mt_cuda_weight *d)
{
    const size_t tiles = mt_cuda_up(mat->n, 2 * MT_CUDA_TILE) / MT_CUDA_TILE;
    const bool wide = mat->format == MT_FORMAT_BF16;
    d->kind = wide ? MT_CUDA_HALVES : MT_CUDA_BYTES;
    d->steps = (uint32_t)((mat->k + 63) / 64);
    const size_t bytes = (size_t)d->steps * (wide ? 2048 : 1024);
    d->w = mt_cuda_memory(set, tiles * bytes);
    send_tiles(set->head.dev, d->w, mat, d, MT_CUDA_TILE, bytes, lay_halves);
    send_block_scales(set, mat, d);
}

/* ---- plain rows ---- */

static void make_plain(mt_set *set, const mt_mat *mat, mt_cuda_weight *d)
{
    mt_device *dev = set->head.dev;
    const size_t row = mat->k * mat->bits / 8;
    assert(row > 0);
    d->kind = MT_CUDA_PLAIN;
    d->row_bytes = (uint32_t)mt_cuda_up(row, 16);
    d->w = mt_cuda_memory(set, mat->n * d->row_bytes);
    for (size_t n = 0; d->w && n < mat->n; n++)
        mt_cuda_send(dev, d->w + n * d->row_bytes, mat->w + n * mat->stride, row);
    send_block_scales(set, mat, d);
}

/* ---- FP8 with a scale for each row ---- */

typedef struct widening {
    const mt_mat *from;
    uint8_t *to;
    bool exact;
} widening;

static void widen_row(void *ctx, size_t item, size_t worker)
{
    const widening *w = ctx;
    const size_t k = w->from->k;
    float *row = mt_alloc_array(k, sizeof(*row));
    (void)worker;
    mt_row_f32_portable(row, w->from, item);
    if (w->exact)
        memcpy(w->to + item * k * sizeof(*row), row, k * sizeof(*row));
    else
        mt_to_bf16_portable((mt_bf16 *)(void *)w->to + item * k, row, k);
    mt_free(row);
}

/* The values as bf16, or f32 in reference precision; the caller frees w. The kernels for FP8 have scales of 128 rows
   alone. */
static mt_mat widened(const mt_device *dev, const mt_mat *mat, mt_class class)
{
    const bool exact = class == MT_CLASS_F;
    const size_t size = exact ? sizeof(float) : sizeof(mt_bf16);
    widening w = {.from = mat, .to = mt_alloc_array(mat->n * mat->k, size), .exact = exact};
    mt_host_run(dev->head.host, widen_row, &w, mat->n);
    return (mt_mat){.format = exact ? MT_FORMAT_F32 : MT_FORMAT_BF16,
                    .bits = (uint8_t)(8 * size),
                    .n = mat->n,
                    .k = mat->k,
                    .w = w.to,
                    .stride = mat->k * size,
                    .global = 1};
}

/* Arranges a weight for the kernels; its memory is freed with the set. */
static void weight_init(mt_set *set, mt_weight *w, const mt_mat *mat, const float *bias, mt_class class)
{
    if (mat->format == MT_FORMAT_FP8 && mat->scale_rows == 1) {
        const mt_mat wide = widened(set->head.dev, mat, class);
        weight_init(set, w, &wide, bias, class);
        mt_free((void *)(uintptr_t)wide.w);
        w->mat.w = NULL;
        return;
    }
    w->mat = *mat;
    w->class = class;
    w->d = (mt_cuda_weight){.n = (uint32_t)mat->n, .k = (uint32_t)mat->k, .format = (uint8_t)mat->format};
    (class == MT_CLASS_N         ? make_native
     : mt_has_codes(mat->format) ? make_codes
     : has_halves(mat, class)    ? make_halves
                                 : make_plain)(set, mat, &w->d);
    w->d.bias = floats(set, bias, mat->n);
    if (mat->k > set->needs.k)
        set->needs.k = mat->k;
    if (set->head.dev->head.progress)
        mt_progress_add(set->head.dev->head.progress, mat->n * mat->stride);
}

mt_weight *mt_cuda_weight_new(mt_set *set, const mt_mat *mat, const float *bias, bool exact)
{
    mt_weight *w = mt_cuda_host(set, sizeof(*w));
    const mt_device_head *dev = &set->head.dev->head;
    weight_init(set, w, mat, bias, mt_rules_class(dev->precision, dev->numerics, mat, exact));
    return w;
}

const mt_mat *mt_cuda_weight_mat(const mt_device *dev, const mt_weight *w)
{
    (void)dev;
    return &w->mat;
}

mt_arithmetic mt_cuda_weight_arithmetic(const mt_device *dev, const mt_weight *w)
{
    (void)dev;
    static const mt_arithmetic of[] = {[MT_CLASS_N] = MT_ARITHMETIC_BF16, /* which has the speed of fp16 */
                                       [MT_CLASS_Q] = MT_ARITHMETIC_INT8,
                                       [MT_CLASS_B] = MT_ARITHMETIC_BF16,
                                       [MT_CLASS_F] = MT_ARITHMETIC_FP32};
    return of[w->class];
}

/* ---- experts ---- */

mt_experts *mt_cuda_experts_new(mt_set *set, const mt_experts_params *p)
{
    mt_experts *e = mt_cuda_host(set, sizeof(*e));
    const mt_device_head *dev = &set->head.dev->head;
    const mt_mat *mats[3] = {p->gate, p->up, p->down};
    const float *biases[3] = {p->gate_bias, p->up_bias, p->down_bias};
    if (p->routing.on_input)
        mt_cuda_refuse(set->head.dev, "weights of experts that multiply what these read; use --device cpu");
    *e = (mt_experts){.count = p->count,
                      .top_k = p->top_k,
                      .hidden = p->gate[0].k,
                      .inner = p->gate[0].n,
                      .routing = p->routing,
                      .glu = p->glu,
                      .correction = floats(set, p->correction, p->count),
                      .scale = floats(set, p->scale, p->count)};
    for (size_t i = 0; i < 3; i++) {
        e->part[i] = mt_cuda_host(set, p->count * sizeof(*e->part[i]));
        e->device[i] = mt_cuda_memory(set, p->count * sizeof(mt_cuda_weight));
        for (size_t j = 0; j < p->count; j++) {
            weight_init(set, &e->part[i][j], &mats[i][j], biases[i] ? biases[i] + j * mats[i][j].n : NULL,
                        mt_rules_class(dev->precision, dev->numerics, &mats[i][j], false));
            mt_cuda_send(set->head.dev, e->device[i] + j * sizeof(mt_cuda_weight), &e->part[i][j].d,
                         sizeof(mt_cuda_weight));
        }
    }
    mt_cuda_needs *n = &set->needs;
    n->top_k = e->top_k > n->top_k ? e->top_k : n->top_k;
    n->experts = e->count > n->experts ? e->count : n->experts;
    n->hidden = e->hidden > n->hidden ? e->hidden : n->hidden;
    n->inner = e->inner > n->inner ? e->inner : n->inner;
    return e;
}

size_t mt_cuda_experts_count(const mt_device *dev, const mt_experts *e)
{
    (void)dev;
    return e->count;
}

size_t mt_cuda_experts_top_k(const mt_device *dev, const mt_experts *e)
{
    (void)dev;
    return e->top_k;
}

const mt_weight *mt_cuda_experts_weight(const mt_device *dev, const mt_experts *e, size_t which, size_t part)
{
    (void)dev;
    return &e->part[part][which];
}
