/* The CPU device: kernels under a pool of threads. Owns every tensor, page and scratch buffer; one thread drives it.

   Invariants:
   1. Work is cut by rows, columns, heads and segments, never over k, so no cut changes a bit (R1).
   2. After mt_device_plan nothing allocates.
   3. Padding of tensors beyond `cols` is zero and stays zero: operations write cols elements a row. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "device/cpu/cpu.h"

#define NUMERICS_VERSION 1u

static size_t max_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void free_block(void *block)
{
    mt_free(block);
}

void *mt_cpu_alloc(mt_device *dev, size_t bytes)
{
    void *p = mt_alloc_aligned(64, bytes ? bytes : 64);
    const int kept = mt_arena_defer(dev->arena, free_block, p);
    assert(kept); /* the arena has no limit */
    (void)kept;
    dev->bytes += bytes;
    return p;
}

mt_device *mt_device_open(const mt_device_params *params, mt_error *err)
{
    mt_device *dev = mt_alloc(sizeof *dev);
    dev->arena = mt_arena_new(0);
    dev->precision = params->precision;
    dev->pool = mt_pool_new(params->threads, err);
    if (!dev->pool) {
        mt_device_close(dev);
        return NULL;
    }
    mt_kernels_init(&dev->k, mt_cpu_detect() & params->cpu_mask);
    char features[96];
    snprintf(dev->name, sizeof dev->name, "cpu (%s), %zu thread%s", mt_cpu_names(dev->k.cpu, features, sizeof features),
             mt_pool_threads(dev->pool), mt_pool_threads(dev->pool) == 1 ? "" : "s");
    return dev;
}

void mt_device_close(mt_device *dev)
{
    if (!dev)
        return;
    mt_pool_free(dev->pool);
    mt_arena_free(dev->arena);
    mt_free(dev);
}

mt_precision mt_device_precision(const mt_device *dev)
{
    return dev->precision;
}

size_t mt_device_threads(const mt_device *dev)
{
    return mt_pool_threads(dev->pool);
}

const char *mt_device_name(const mt_device *dev)
{
    return dev->name;
}

uint64_t mt_device_bytes(const mt_device *dev)
{
    return dev->bytes;
}

uint32_t mt_device_fingerprint(const mt_device *dev)
{
    const uint32_t precision = dev->precision == MT_PRECISION_REFERENCE; /* decides the KV type too */
    return NUMERICS_VERSION << 16 | (mt_kernels_r5_level(&dev->k) & 0xff) << 8 | precision;
}

mt_tensor *mt_tensor_new(mt_device *dev, size_t rows, size_t cols)
{
    mt_tensor *t = mt_cpu_alloc(dev, sizeof *t);
    t->rows = rows;
    t->cols = cols;
    t->stride = mt_cpu_up(cols, MT_ROW_PAD);
    t->data = mt_cpu_alloc(dev, rows * t->stride * sizeof *t->data);
    return t;
}

mt_tensor *mt_tensor_part(mt_device *dev, mt_tensor *whole, size_t row, size_t rows, size_t col, size_t cols)
{
    mt_tensor *t = mt_cpu_alloc(dev, sizeof *t);
    assert(row + rows <= whole->rows && col + cols <= whole->cols);
    *t = (mt_tensor){
        .rows = rows, .cols = cols, .stride = whole->stride, .data = whole->data + row * whole->stride + col};
    return t;
}

void mt_tensor_write(mt_device *dev, mt_tensor *t, size_t row, const float *data)
{
    (void)dev;
    assert(row < t->rows);
    memcpy(t->data + row * t->stride, data, t->cols * sizeof *data);
}

const float *mt_tensor_read(mt_device *dev, const mt_tensor *t, size_t row)
{
    (void)dev;
    assert(row < t->rows);
    return t->data + row * t->stride;
}

static mt_class classify(const mt_device *dev, const mt_mat *mat, bool exact)
{
    if (exact || dev->precision == MT_PRECISION_REFERENCE)
        return MT_CLASS_F;
    switch (mat->format) {
    case MT_FORMAT_AFFINE:
    case MT_FORMAT_MXFP4:
    case MT_FORMAT_NVFP4: return MT_CLASS_Q;
    case MT_FORMAT_BF16:
    case MT_FORMAT_FP8:
    case MT_FORMAT_MXFP8: return MT_CLASS_B;
    case MT_FORMAT_F32:
    case MT_FORMAT_F16: break;
    }
    return MT_CLASS_F;
}

static void init_weight(mt_device *dev, mt_weight *w, const mt_mat *mat, const float *bias, bool exact)
{
    w->mat = *mat;
    w->bias = bias;
    w->class = classify(dev, mat, exact);
    if (mat->k > dev->max_k)
        dev->max_k = mat->k;
}

mt_weight *mt_weight_new(mt_device *dev, const mt_mat *mat, const float *bias, bool exact)
{
    mt_weight *w = mt_cpu_alloc(dev, sizeof *w);
    init_weight(dev, w, mat, bias, exact);
    return w;
}

static mt_weight *copy_weights(mt_device *dev, size_t count, const mt_mat *mats)
{
    mt_weight *w = mt_cpu_alloc(dev, count * sizeof *w);
    for (size_t i = 0; i < count; i++)
        init_weight(dev, &w[i], &mats[i], NULL, false);
    return w;
}

mt_experts *mt_experts_new(mt_device *dev, size_t count, size_t top_k, const mt_mat *gate, const mt_mat *up,
                           const mt_mat *down)
{
    mt_experts *e = mt_cpu_alloc(dev, sizeof *e);
    e->count = count;
    e->top_k = top_k;
    e->hidden = gate[0].k;
    e->inner = gate[0].n;
    e->gate = copy_weights(dev, count, gate);
    e->up = copy_weights(dev, count, up);
    e->down = copy_weights(dev, count, down);
    dev->moe_experts = max_of(dev->moe_experts, count);
    dev->moe_top_k = max_of(dev->moe_top_k, top_k);
    dev->moe_hidden = max_of(dev->moe_hidden, e->hidden);
    dev->moe_inner = max_of(dev->moe_inner, e->inner);
    return e;
}

static size_t kv_element(const mt_device *dev)
{
    return dev->precision == MT_PRECISION_REFERENCE ? sizeof(float) : sizeof(mt_bf16);
}

/* A segment is read from several pages in turns: were they a multiple of a cache's way apart, their lines would push
   each other out of it. */
size_t mt_kv_page_bytes(const mt_device *dev, const mt_kv_shape *shape)
{
    enum { WAY = 64 << 10, SKEW = 512 };
    const size_t bytes =
        shape->layers * 2 * shape->heads * shape->page_tokens * mt_cpu_up(shape->head_dim, MT_LANES) * kv_element(dev);
    return bytes % WAY == 0 ? bytes + SKEW : bytes;
}

mt_kv *mt_kv_new(mt_device *dev, const mt_kv_shape *shape, mt_error *err)
{
    _Static_assert(MT_KV_SEGMENT == MT_SEGMENT, "both are the segment of R8");
    assert(shape->query_heads % shape->heads == 0 && MT_SEGMENT % shape->page_tokens == 0);
    if (shape->query_heads / shape->heads > MT_CPU_ATTN_ROWS) {
        mt_fail(err, MT_E_UNSUPPORTED, "%zu query heads share a key/value head; at most %d may",
                shape->query_heads / shape->heads, MT_CPU_ATTN_ROWS);
        return NULL;
    }
    mt_kv *kv = mt_cpu_alloc(dev, sizeof *kv);
    kv->shape = *shape;
    kv->head_stride = mt_cpu_up(shape->head_dim, MT_LANES);
    kv->element = kv_element(dev);
    kv->block = shape->page_tokens * kv->head_stride * kv->element;
    kv->page_bytes = mt_kv_page_bytes(dev, shape);
    dev->max_head_stride = max_of(dev->max_head_stride, kv->head_stride);
    dev->max_query = max_of(dev->max_query, shape->query_heads * kv->head_stride);
    return kv;
}

typedef struct mapping {
    void *data;
    size_t bytes;
} mapping;

static void unmap(void *object)
{
    const mapping *m = object;
    munmap(m->data, m->bytes);
}

void *mt_cpu_map(mt_device *dev, size_t count, size_t bytes_each)
{
    if (count >= MT_NO_PAGE || count > (SIZE_MAX >> 16) / bytes_each)
        return NULL;
    const size_t bytes = count * bytes_each;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
#if defined(MADV_HUGEPAGE)
    (void)madvise(data, bytes, MADV_HUGEPAGE); /* a wish: nothing depends on it */
#endif
    mapping *m = mt_cpu_alloc(dev, sizeof *m);
    *m = (mapping){.data = data, .bytes = bytes};
    dev->bytes += bytes;
    const int kept = mt_arena_defer(dev->arena, unmap, m);
    assert(kept); /* the arena has no limit */
    (void)kept;
    return data;
}

void mt_cpu_poison(void *data, size_t bytes)
{
    memset(data, 0xff, bytes);
}

bool mt_cpu_poisoned(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    return bytes == 0 || (p[0] == 0xff && memcmp(p, p + 1, bytes - 1) == 0);
}

void mt_kv_poison(mt_device *dev, mt_kv *kv, uint32_t page)
{
    (void)dev;
    mt_cpu_poison(kv->data + page * kv->page_bytes, kv->page_bytes);
}

bool mt_kv_poisoned(mt_device *dev, const mt_kv *kv, uint32_t page)
{
    (void)dev;
    return mt_cpu_poisoned(kv->data + page * kv->page_bytes, kv->page_bytes);
}

bool mt_kv_reserve(mt_device *dev, mt_kv *kv, size_t pages, mt_error *err)
{
    assert(!kv->data && pages > 0);
    kv->data = mt_cpu_map(dev, pages, kv->page_bytes);
    kv->pages = pages;
    return kv->data ||
           mt_fail(err, MT_E_MEMORY, "%zu cache pages of %zu bytes do not fit in memory; lower --memory or --context",
                   pages, kv->page_bytes);
}

void mt_device_run(mt_device *dev, void (*fn)(void *ctx, size_t item, size_t worker), void *ctx, size_t items)
{
    mt_cpu_run(dev, fn, ctx, items, SIZE_MAX);
}

const mt_kernels *mt_device_kernels(const mt_device *dev)
{
    return &dev->k;
}

/* Every group size a format may have; a plan made for the hungriest serves all. */
static size_t block_bytes(const mt_device *dev)
{
    static const size_t groups[] = {16, 32, 64, 128};
    size_t bytes = dev->k.b_rows_bytes(MT_CPU_ROW_BLOCK, dev->max_k);
    for (size_t i = 0; i < MT_COUNT(groups); i++)
        bytes = max_of(bytes, dev->k.q_rows_bytes(MT_CPU_ROW_BLOCK, mt_cpu_up(dev->max_k, 128), groups[i]));
    return mt_cpu_up(bytes, 64);
}

bool mt_device_plan(mt_device *dev, size_t rows, mt_error *err)
{
    if (rows == 0 || rows > MT_LIMIT_BATCH_ROWS)
        return mt_fail(err, MT_E_TOO_LARGE, "a step of %zu rows; between 1 and %d are allowed", rows,
                       MT_LIMIT_BATCH_ROWS);
    const mt_kernels *k = &dev->k;
    dev->rows = rows;
    dev->packed_block = block_bytes(dev);
    dev->packed = mt_cpu_alloc(dev, (rows + MT_CPU_ROW_BLOCK - 1) / MT_CPU_ROW_BLOCK * dev->packed_block);
    size_t scratch = max_of(k->q_scratch_bytes(dev->max_k), k->b_scratch_bytes(dev->max_k));
    scratch = max_of(scratch, k->f_scratch_bytes(dev->max_k));
    dev->scratch_bytes = mt_cpu_up(max_of(scratch, mt_cpu_attention_scratch(dev)), 64);
    dev->scratch = mt_cpu_alloc(dev, mt_pool_threads(dev->pool) * dev->scratch_bytes);
    mt_cpu_plan_attention(dev);
    mt_cpu_plan_moe(dev);
    return true;
}

uint8_t *mt_cpu_scratch(mt_device *dev, size_t worker)
{
    return dev->scratch + worker * dev->scratch_bytes;
}

void mt_cpu_run(mt_device *dev, mt_pool_fn *fn, void *ctx, size_t items, size_t elements)
{
    if (elements >= MT_CPU_INLINE && items > 1) {
        mt_pool_run(dev->pool, fn, ctx, items);
        return;
    }
    for (size_t i = 0; i < items; i++)
        fn(ctx, i, 0);
}
