/* Weights and products. A weight is copied to the device in a layout of its own when it is loaded: codes of all formats
   as nibbles or bytes, scales and biases as fp32, everything else as bf16, f16 or fp32. */
#include "device/vulkan/operations.h"

#include <string.h>

#include "base/alloc.h"
#include "device/limits.h"
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"
#include "kernels/unpack.h"

enum { PIECE = 4 << 20, ROWS = 4, CODE_COLUMNS = 8, FLOAT_COLUMNS = 8, THREADS = 64 };

static mt_vulkan_kind kind_of(const mt_mat *mat, mt_class class)
{
    if (mat->n > (size_t)MT_VULKAN_GROUPS * MT_MIN(CODE_COLUMNS, FLOAT_COLUMNS))
        return MT_VULKAN_ON_HOST;
    if (class == MT_CLASS_Q)
        return !mt_formats[mat->format].biased ? MT_VULKAN_BYTES
               : mat->bits <= 4                ? MT_VULKAN_NIBBLES
                                               : MT_VULKAN_UNSIGNED;
    switch (mat->format) {
    case MT_FORMAT_BF16: return MT_VULKAN_HALVES;
    case MT_FORMAT_F16: return MT_VULKAN_F16;
    case MT_FORMAT_MXFP8: return class == MT_CLASS_B ? MT_VULKAN_ON_HOST : MT_VULKAN_FLOATS;
    case MT_FORMAT_FP8: return class == MT_CLASS_B ? MT_VULKAN_ON_HOST : MT_VULKAN_FLOATS;
    default: return MT_VULKAN_FLOATS;
    }
}

typedef struct laying {
    const mt_weight *w;
    const mt_mat *mat;
    size_t first, words; /* of the rows that are laid out; of a row of what is laid out */
    uint32_t *to;
} laying;

static void lay_codes(const laying *l, size_t row, uint32_t *to)
{
    const uint32_t k = l->w->k;
    mt_unpacker u = mt_unpacker_of(l->mat, row);
    memset(to, 0, l->words * sizeof(*to));
    for (uint32_t i = 0; i < k; i++) {
        const uint32_t code = (uint32_t)mt_unpack_next(&u, l->mat);
        if (l->w->kind == MT_VULKAN_NIBBLES)
            to[i / 8] |= (code & 15) << (i % 4 * 8 + i % 8 / 4 * 4);
        else
            to[i / 4] |= (code & 255) << i % 4 * 8;
    }
}

static void lay_row(void *ctx, size_t item, size_t worker)
{
    (void)worker;
    const laying *l = ctx;
    const size_t row = l->first + item;
    uint32_t *to = l->to + item * l->words;
    switch (l->w->kind) {
    case MT_VULKAN_NIBBLES:
    case MT_VULKAN_BYTES:
    case MT_VULKAN_UNSIGNED: lay_codes(l, row, to); break;
    case MT_VULKAN_HALVES:
    case MT_VULKAN_F16:
        to[l->words - 1] = 0;
        memcpy(to, l->mat->w + row * l->mat->stride, l->w->k * sizeof(uint16_t));
        break;
    case MT_VULKAN_FLOATS:
    case MT_VULKAN_ON_HOST: mt_row_f32_portable((float *)(void *)to, l->mat, row); break;
    }
}

static void lay_scales(void *ctx, size_t item, size_t worker)
{
    (void)worker;
    const laying *l = ctx;
    float *to = (float *)(void *)(l->to + item * l->words);
    const uint8_t *scales = l->mat->scales + (l->first + item) * l->mat->scale_stride;
    for (size_t g = 0; g < l->words; g++)
        to[g] = mt_weight_scale(l->mat, scales, g);
}

static void lay_biases(void *ctx, size_t item, size_t worker)
{
    (void)worker;
    const laying *l = ctx;
    float *to = (float *)(void *)(l->to + item * l->words);
    const uint8_t *biases = l->mat->biases + (l->first + item) * l->mat->scale_stride;
    for (size_t g = 0; g < l->words; g++)
        to[g] = mt_scale_f32(biases, l->mat->scale_type, g);
}

/* Lays out all rows, some at a time. NULL where the device has no memory left. */
static mt_memory *lay_out(mt_set *set, const mt_weight *w, const mt_mat *mat, size_t words,
                          void (*lay)(void *ctx, size_t item, size_t worker))
{
    mt_device *dev = ((mt_set_head *)(void *)set)->dev;
    mt_memory *memory = mt_plain_memory(set, w->n * words * sizeof(uint32_t));
    const size_t row = words * sizeof(uint32_t), some = row < PIECE ? PIECE / row : 1;
    laying l = {.w = w, .mat = mat, .words = words};
    if (!memory)
        return NULL;
    l.to = mt_alloc(some * row);
    for (; l.first < w->n; l.first += some) {
        const size_t rows = w->n - l.first < some ? w->n - l.first : some;
        mt_host_run(dev->head.host, lay, &l, rows);
        mt_vulkan_memory_write(dev, memory, l.first * row, l.to, rows * row);
    }
    mt_free(l.to);
    return memory;
}

mt_weight *mt_vulkan_weight_new(mt_set *set, const mt_mat *mat, const float *bias, bool exact)
{
    mt_device *dev = ((mt_set_head *)(void *)set)->dev;
    mt_weight *w = mt_plain_alloc(set, sizeof(*w));
    w->class = mt_rules_class(dev->head.precision, MT_NUMERICS_PORTABLE, mat, exact);
    w->kind = kind_of(mat, w->class);
    w->n = (uint32_t)mat->n;
    w->k = (uint32_t)mat->k;
    if (w->kind == MT_VULKAN_ON_HOST)
        return w;
    const bool codes = w->kind <= MT_VULKAN_UNSIGNED;
    w->wide = mat->bits == 8;
    w->group = codes ? mat->group : 0;
    w->groups = codes ? w->k / w->group : 0;
    w->row_words = w->kind == MT_VULKAN_NIBBLES  ? (w->k + 7) / 8
                   : codes                       ? (w->k + 3) / 4
                   : w->kind == MT_VULKAN_FLOATS ? w->k
                                                 : (w->k + 1) / 2;
    w->codes = lay_out(set, w, mat, w->row_words, lay_row);
    if (codes)
        w->scales = lay_out(set, w, mat, w->groups, lay_scales);
    if (codes && mat->biases)
        w->biases = lay_out(set, w, mat, w->groups, lay_biases);
    if (bias) {
        w->bias = mt_plain_memory(set, mat->n * sizeof(*bias));
        if (w->bias)
            mt_vulkan_memory_write(dev, w->bias, 0, bias, mat->n * sizeof(*bias));
    }
    if (codes && w->k > dev->most_k)
        dev->most_k = w->k;
    return w;
}

/* Where packed rows lie: codes, then turns, then sums. */
typedef struct packed {
    VkDeviceAddress q, turns, sums;
} packed;

static size_t packed_bytes(size_t k)
{
    return k + 2 * sizeof(float) * k / 16 + sizeof(float) * k / 16;
}

bool mt_vulkan_device_plan(mt_device *dev, size_t rows, mt_error *err)
{
    const size_t bytes = rows * packed_bytes(dev->most_k);
    dev->rows = rows;
    if (mt_vulkan_step_plan(dev, MT_VULKAN_STEP_WORDS) && dev->packed && dev->packed->bytes >= bytes)
        return true;
    if (dev->packed)
        mt_vulkan_memory_free(dev, dev->packed);
    dev->packed = bytes ? mt_vulkan_memory_new(dev, bytes) : NULL;
    return (dev->step && (!bytes || dev->packed)) ||
           mt_fail(err, MT_E_MEMORY, "%s has no memory for steps of %zu rows; lower --batch-tokens", dev->name, rows);
}

/* Packs rows for a weight of codes. */
static packed pack(mt_device *dev, const mt_weight *w, const mt_tensor *x, size_t m)
{
    const VkDeviceAddress at = mt_vulkan_address(dev->packed);
    const size_t units = w->k / (w->group < 32 ? w->group : 32);
    const packed p = {.q = at, .turns = at + m * w->k, .sums = at + m * (w->k + units * 2 * sizeof(float))};
    const struct {
        mt_vulkan_rows x;
        packed p;
        uint32_t k, group, wide, m;
    } a = {.x = mt_vulkan_rows_of(x), .p = p, .k = w->k, .group = w->group, .wide = w->wide, .m = (uint32_t)m};
    MT_VULKAN_RUN(dev, pack, a, mt_vulkan_groups(mt_vulkan_groups(w->k, w->group < 32 ? 32 : w->group), THREADS), m);
    return p;
}

static void multiply_codes(mt_device *dev, mt_tensor *y, const mt_weight *w, packed p, size_t m)
{
    const struct {
        mt_vulkan_rows y;
        VkDeviceAddress codes, q, turns, sums, scales, biases, bias;
        uint32_t k, group, kind, row_words, m, flags;
    } a = {.y = mt_vulkan_rows_of(y),
           .codes = mt_vulkan_address(w->codes),
           .q = p.q,
           .turns = p.turns,
           .sums = p.sums,
           .scales = mt_vulkan_address(w->scales),
           .biases = mt_vulkan_address(w->biases),
           .bias = mt_vulkan_address(w->bias),
           .k = w->k,
           .group = w->group,
           .kind = w->kind,
           .row_words = w->row_words,
           .m = (uint32_t)m,
           .flags = (w->biases ? 1u : 0) | (w->bias ? 2u : 0)};
    MT_VULKAN_RUN(dev, matmul_codes, a, mt_vulkan_groups(w->n, CODE_COLUMNS), mt_vulkan_groups(m, ROWS));
}

static void multiply_floats(mt_device *dev, mt_tensor *y, const mt_weight *w, const mt_tensor *x, size_t m)
{
    const struct {
        mt_vulkan_rows y, x;
        VkDeviceAddress codes, bias;
        uint32_t kind, row_words, rounded, flags;
    } a = {.y = mt_vulkan_rows_of(y),
           .x = mt_vulkan_rows_of(x),
           .codes = mt_vulkan_address(w->codes),
           .bias = mt_vulkan_address(w->bias),
           .kind = w->kind,
           .row_words = w->row_words,
           .rounded = w->class == MT_CLASS_B,
           .flags = w->bias ? 2 : 0};
    MT_VULKAN_RUN(dev, matmul_floats, a, mt_vulkan_groups(w->n, FLOAT_COLUMNS), m);
}

static bool same_rows(const mt_weight *a, const mt_weight *b)
{
    return a && a->group == b->group && a->wide == b->wide;
}

void mt_vulkan_op_matmul(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count,
                         const mt_tensor *x, size_t m)
{
    const mt_weight *packed_for = NULL;
    packed p = {0};
    for (size_t i = 0; i < count; i++) {
        if (w[i]->kind == MT_VULKAN_ON_HOST) {
            mt_fallback_host(dev)->op_matmul(dev, &y[i], &w[i], 1, x, m);
        } else if (w[i]->kind > MT_VULKAN_UNSIGNED) {
            multiply_floats(dev, y[i], w[i], x, m);
        } else {
            if (!same_rows(packed_for, w[i]))
                p = pack(dev, w[i], x, m);
            packed_for = w[i];
            multiply_codes(dev, y[i], w[i], p, m);
        }
    }
}

void mt_vulkan_op_embed(mt_device *dev, mt_tensor *x, const mt_weight *w, float scale)
{
    const struct {
        mt_vulkan_rows y;
        VkDeviceAddress codes, scales, biases, step;
        uint32_t row_words, kind, group, groups, biased, step_words;
        float scale;
        uint32_t none;
    } a = {.y = mt_vulkan_rows_of(x),
           .codes = mt_vulkan_address(w->codes),
           .scales = mt_vulkan_address(w->scales),
           .biases = mt_vulkan_address(w->biases),
           .step = mt_vulkan_address(dev->step),
           .row_words = w->row_words,
           .kind = w->kind,
           .group = w->group,
           .groups = w->groups,
           .biased = w->biases != NULL,
           .step_words = MT_VULKAN_ROW_WORDS,
           .scale = scale};
    if (w->kind == MT_VULKAN_ON_HOST || dev->follows)
        mt_fallback_host(dev)->op_embed(dev, x, w, scale);
    else
        MT_VULKAN_RUN(dev, embed, a, mt_vulkan_groups(a.y.cols, THREADS), dev->batch_rows);
}
