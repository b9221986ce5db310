/* Objects of the CPU device: how they are made, written and read. */
#include <assert.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/limits.h"
#include "device/native.h"
#include "kernels/kvq.h"
#include "sample/chain.h"

/* ---- tensors and lists ---- */

mt_tensor *mt_cpu_tensor_new(mt_set *set, size_t rows, size_t cols)
{
    mt_tensor *t = mt_cpu_alloc(set, sizeof(*t));
    t->rows = rows;
    t->cols = cols;
    t->stride = mt_cpu_up(cols, MT_ROW_PAD);
    t->data = mt_cpu_alloc(set, rows * t->stride * sizeof(*t->data));
    return t;
}

mt_tensor *mt_cpu_tensor_reserve(mt_set *set, size_t rows, size_t cols, mt_error *err)
{
    const size_t stride = mt_cpu_up(cols, MT_ROW_PAD);
    float *data = mt_cpu_map(set, rows, stride * sizeof(*data));
    if (!data) {
        mt_fail(err, MT_E_MEMORY, "%zu rows of %zu numbers do not fit in memory; lower --memory or --media-cache", rows,
                cols);
        return NULL;
    }
    mt_tensor *t = mt_cpu_alloc(set, sizeof(*t));
    *t = (mt_tensor){.rows = rows, .cols = cols, .stride = stride, .data = data};
    return t;
}

mt_tensor *mt_cpu_tensor_part(mt_set *set, mt_tensor *whole, size_t row, size_t rows, size_t col, size_t cols)
{
    mt_tensor *t = mt_cpu_alloc(set, sizeof(*t));
    assert(row + rows <= whole->rows && col + cols <= whole->cols);
    *t = (mt_tensor){
        .rows = rows, .cols = cols, .stride = whole->stride, .data = whole->data + row * whole->stride + col};
    return t;
}

mt_tensor *mt_cpu_tensor_view(mt_set *set)
{
    return mt_cpu_alloc(set, sizeof(mt_tensor));
}

void mt_cpu_tensor_aim(mt_device *dev, mt_tensor *view, const mt_tensor *t, size_t row, size_t rows)
{
    (void)dev;
    assert(row + rows <= t->rows);
    *view = (mt_tensor){.rows = rows, .cols = t->cols, .stride = t->stride, .data = mt_cpu_row(t, row)};
}

void mt_cpu_tensor_write(mt_device *dev, mt_tensor *t, size_t row, size_t rows, const float *data)
{
    (void)dev;
    assert(row + rows <= t->rows);
    for (size_t i = 0; i < rows; i++)
        memcpy(mt_cpu_row(t, row + i), data + i * t->cols, t->cols * sizeof(*data));
}

mt_index *mt_cpu_index_new(mt_set *set, size_t count)
{
    mt_index *index = mt_cpu_alloc(set, sizeof(*index));
    index->count = count;
    index->data = mt_cpu_alloc(set, count * sizeof(*index->data));
    return index;
}

void mt_cpu_index_write(mt_device *dev, mt_index *index, const uint32_t *data, size_t count)
{
    (void)dev;
    assert(count <= index->count);
    memcpy(index->data, data, count * sizeof(*data));
}

mt_patches *mt_cpu_patches_new(mt_set *set, size_t rows, size_t frames, size_t area)
{
    mt_patches *p = mt_cpu_alloc(set, sizeof(*p));
    *p = (mt_patches){.rows = rows, .frames = frames, .area = area};
    return p;
}

void mt_cpu_patches_write(mt_device *dev, mt_patches *p, const mt_pixels *pixels, size_t m)
{
    (void)dev;
    assert(m <= p->rows);
    p->pixels = pixels;
}

/* ---- weights ---- */

static void init_weight(mt_set *set, mt_weight *w, const mt_mat *mat, const float *bias, mt_class class)
{
    w->mat = *mat;
    w->bias = bias;
    w->class = class;
    w->power = class == MT_CLASS_N ? mt_native_power(mat) : 0;
    set->needs.k = mt_cpu_max(set->needs.k, mat->k);
}

mt_weight *mt_cpu_weight_new(mt_set *set, const mt_mat *mat, const float *bias, bool exact)
{
    mt_weight *w = mt_cpu_alloc(set, sizeof(*w));
    const mt_device_head *dev = &set->head.dev->head;
    init_weight(set, w, mat, bias, mt_rules_class(dev->precision, dev->numerics, mat, exact));
    return w;
}

static mt_weight *copy_weights(mt_set *set, size_t count, const mt_mat *mats, const float *bias)
{
    mt_weight *w = mt_cpu_alloc(set, count * sizeof(*w));
    const mt_device_head *dev = &set->head.dev->head;
    for (size_t i = 0; i < count; i++)
        init_weight(set, &w[i], &mats[i], bias ? bias + i * mats[i].n : NULL,
                    mt_rules_class(dev->precision, dev->numerics, &mats[i], false));
    return w;
}

mt_experts *mt_cpu_experts_new(mt_set *set, const mt_experts_params *p)
{
    mt_experts *e = mt_cpu_alloc(set, sizeof(*e));
    assert(p->top_k <= p->count && p->routing.groups <= MT_LIMIT_EXPERT_GROUPS);
    assert(!p->routing.on_input || !p->gate_bias);
    *e = (mt_experts){.count = p->count,
                      .top_k = p->top_k,
                      .hidden = p->gate[0].k,
                      .inner = p->down[0].k,
                      .slices = p->slices,
                      .gate = copy_weights(set, p->count, p->gate, p->gate_bias),
                      .up = copy_weights(set, p->count, p->up, p->up_bias),
                      .down = copy_weights(set, p->count, p->down, p->down_bias),
                      .correction = p->correction,
                      .scale = p->scale,
                      .routing = p->routing,
                      .glu = p->glu};
    set->needs.experts = mt_cpu_max(set->needs.experts, e->count);
    set->needs.top_k = mt_cpu_max(set->needs.top_k, e->top_k);
    set->needs.hidden = mt_cpu_max(set->needs.hidden, e->hidden);
    set->needs.inner = mt_cpu_max(set->needs.inner, e->inner);
    return e;
}

/* ---- pages ---- */

/* Pages are padded so that they are not a multiple of a cache way apart: a segment is read from several pages by turns,
   and their cache lines would evict each other. */
size_t mt_cpu_kv_page_bytes(const mt_device *dev, const mt_kv_shape *shape)
{
    enum { WAY = 64 << 10, SKEW = 512 };
    const size_t bytes = shape->layers * mt_rules_kv_blocks(shape) * mt_rules_kv_block(shape);
    (void)dev;
    return bytes % WAY == 0 ? bytes + SKEW : bytes;
}

mt_kv *mt_cpu_kv_new(mt_set *set, const mt_kv_shape *shape, mt_error *err)
{
    _Static_assert(MT_KV_SEGMENT == MT_SEGMENT, "both are the segment of R8");
    assert(shape->query_heads % shape->heads == 0 && MT_SEGMENT % shape->page_tokens == 0);
    assert(!shape->latent || (shape->heads == 1 && shape->latent <= shape->head_dim));
    if (!shape->latent && shape->query_heads / shape->heads > MT_CPU_ATTN_ROWS) {
        mt_fail(err, MT_E_UNSUPPORTED, "%zu query heads share a key/value head; at most %d may",
                shape->query_heads / shape->heads, MT_CPU_ATTN_ROWS);
        return NULL;
    }
    mt_kv *kv = mt_cpu_alloc(set, sizeof(*kv));
    kv->shape = *shape;
    kv->head_stride = mt_rules_kv_stride(shape);
    kv->bits = mt_rules_kv_bits(shape->type);
    kv->widened = kv->bits && (shape->latent || set->head.dev->head.precision == MT_PRECISION_REFERENCE);
    kv->query = kv->head_stride * (shape->type == MT_KV_BF16 ? sizeof(mt_bf16) : sizeof(float));
    if (kv->bits && !kv->widened)
        kv->query = mt_kvq_query_bytes(kv->head_stride);
    kv->block = mt_rules_kv_block(shape);
    kv->parts = mt_rules_kv_parts(shape);
    kv->page_bytes = mt_cpu_kv_page_bytes(set->head.dev, shape);
    set->needs.head_stride = mt_cpu_max(set->needs.head_stride, kv->head_stride);
    set->needs.query = mt_cpu_max(set->needs.query, shape->query_heads * kv->head_stride);
    set->needs.widened |= kv->widened || shape->top > 0;
    if (shape->top) {
        assert(shape->latent == shape->head_dim);
        set->needs.top = mt_cpu_max(set->needs.top, shape->top);
        set->needs.compared = mt_cpu_max(set->needs.compared, shape->query_heads);
    }
    return kv;
}

bool mt_cpu_kv_reserve(mt_set *set, mt_kv *kv, size_t pages, mt_error *err)
{
    assert(!kv->data && pages > 0);
    kv->data = mt_cpu_map(set, pages, kv->page_bytes);
    kv->pages = pages;
    return kv->data ||
           mt_fail(err, MT_E_MEMORY, "%zu cache pages of %zu bytes do not fit in memory; lower --memory or --context",
                   pages, kv->page_bytes);
}

static uint8_t *page_of(const mt_kv *kv, uint32_t page)
{
    assert(page < kv->pages);
    return kv->data + page * kv->page_bytes;
}

void mt_cpu_kv_restore(mt_device *dev, mt_kv *kv, uint32_t page, mt_sending *s, size_t at)
{
    (void)dev;
    memcpy(page_of(kv, page), s->data + at, kv->page_bytes);
}

void mt_cpu_op_kv_copy(mt_device *dev, mt_kv *kv, uint32_t to, uint32_t from)
{
    (void)dev;
    memcpy(page_of(kv, to), page_of(kv, from), kv->page_bytes);
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

void mt_cpu_kv_poison(mt_device *dev, mt_kv *kv, uint32_t page)
{
    (void)dev;
    mt_cpu_poison(page_of(kv, page), kv->page_bytes);
}

bool mt_cpu_kv_poisoned(mt_device *dev, const mt_kv *kv, uint32_t page)
{
    (void)dev;
    return mt_cpu_poisoned(page_of(kv, page), kv->page_bytes);
}

/* ---- reading ---- */

mt_reading *mt_cpu_reading_new(mt_set *set, size_t bytes)
{
    (void)bytes; /* nothing is copied */
    return mt_cpu_alloc(set, sizeof(mt_reading));
}

void mt_cpu_read_rows(mt_device *dev, mt_reading *r, const mt_tensor *t, size_t row, size_t rows)
{
    (void)dev;
    assert(row + rows <= t->rows);
    *r = (mt_reading){.data = (const uint8_t *)mt_cpu_row(t, row), .stride = t->stride * sizeof(*t->data)};
}

void mt_cpu_read_index(mt_device *dev, mt_reading *r, const mt_index *index, size_t count)
{
    (void)dev;
    assert(count <= index->count);
    *r = (mt_reading){.data = (const uint8_t *)index->data};
}

void mt_cpu_read_page(mt_device *dev, mt_reading *r, const mt_kv *kv, uint32_t page)
{
    (void)dev;
    *r = (mt_reading){.data = page_of(kv, page)};
}

const float *mt_cpu_reading_row(mt_device *dev, mt_reading *r, size_t row)
{
    (void)dev;
    return (const float *)(const void *)(r->data + row * r->stride);
}

const void *mt_cpu_reading_data(mt_device *dev, mt_reading *r)
{
    (void)dev;
    return r->data;
}

mt_reading *mt_cpu_reading_aside(mt_set *set, size_t bytes)
{
    return mt_cpu_reading_new(set, bytes);
}

bool mt_cpu_reading_come(mt_device *dev, mt_reading *r)
{
    (void)dev, (void)r;
    return true;
}

/* ---- sending: complete at once ---- */

mt_sending *mt_cpu_sending_new(mt_set *set, size_t bytes)
{
    mt_sending *s = mt_cpu_alloc(set, sizeof(*s));
    s->data = mt_cpu_alloc(set, bytes);
    return s;
}

void *mt_cpu_sending_room(mt_device *dev, mt_sending *s)
{
    (void)dev;
    return s->data;
}

bool mt_cpu_sending_gone(mt_device *dev, mt_sending *s)
{
    (void)dev, (void)s;
    return true;
}

void mt_cpu_sending_wait(mt_device *dev, mt_sending *s)
{
    (void)dev, (void)s;
}

/* ---- choosing ---- */

mt_chooser *mt_cpu_chooser_new(mt_set *set, size_t vocab)
{
    mt_chooser *c = mt_cpu_alloc(set, sizeof(*c));
    c->vocab = vocab;
    c->token = mt_cpu_alloc(set, MT_LIMIT_BATCH_ROWS * sizeof(*c->token));
    c->scratch_bytes = mt_cpu_up(mt_sample_scratch_bytes(vocab), 64);
    c->scratch = mt_cpu_alloc(set, c->scratch_bytes * mt_host_threads(set->head.dev->head.host));
    return c;
}

typedef struct choosing {
    const mt_device *dev;
    const mt_chooser *c;
    const mt_tensor *logits;
    mt_chain *const *chains;
} choosing;

static void choose_item(void *ctx, size_t item, size_t worker)
{
    const choosing *op = ctx;
    mt_chain *chain = op->chains[item];
    mt_chain_choose(chain, &op->dev->k, mt_cpu_row(op->logits, chain->first), op->logits->stride, op->c->vocab,
                    op->c->scratch + worker * op->c->scratch_bytes);
    op->c->token[chain->first] = chain->sampled_count > 0 ? chain->sampled[0].chosen.id : 0;
}

void mt_cpu_step_choose(mt_device *dev, mt_chooser *c, const mt_tensor *logits, mt_chain *const *chains, size_t count)
{
    choosing op = {.dev = dev, .c = c, .logits = logits, .chains = chains};
    mt_host_run(dev->head.host, choose_item, &op, count);
}

/* mt_cpu_step_choose has chosen already. */
void mt_cpu_step_chosen(mt_device *dev, mt_chooser *c, const mt_tensor *logits, mt_chain *const *chains, size_t count)
{
    (void)dev, (void)c, (void)logits, (void)chains, (void)count;
}

/* True where the choice does not depend on the token before. */
bool mt_cpu_chooses(const mt_device *dev, const mt_chain *chain)
{
    (void)dev;
    return !chain->constrained && !chain->counts && chain->settings->bad_count == 0;
}

/* ---- properties ---- */

size_t mt_cpu_tensor_cols(const mt_device *dev, const mt_tensor *t)
{
    (void)dev;
    return t->cols;
}

const mt_mat *mt_cpu_weight_mat(const mt_device *dev, const mt_weight *w)
{
    (void)dev;
    return &w->mat;
}

mt_arithmetic mt_cpu_weight_arithmetic(const mt_device *dev, const mt_weight *w)
{
    (void)dev;
    static const mt_arithmetic of[] = {
        [MT_CLASS_N] = MT_ARITHMETIC_BF16, /* which has the speed of fp16 where there are tensor cores */
        [MT_CLASS_Q] = MT_ARITHMETIC_INT8,
        [MT_CLASS_B] = MT_ARITHMETIC_BF16,
        [MT_CLASS_F] = MT_ARITHMETIC_FP32};
    return of[w->class];
}

size_t mt_cpu_experts_count(const mt_device *dev, const mt_experts *e)
{
    (void)dev;
    return e->count;
}

size_t mt_cpu_experts_top_k(const mt_device *dev, const mt_experts *e)
{
    (void)dev;
    return e->top_k;
}

const mt_weight *mt_cpu_experts_weight(const mt_device *dev, const mt_experts *e, size_t which, size_t part)
{
    (void)dev;
    assert(which < e->count && part < 3);
    return &(const mt_weight *const[]){e->gate, e->up, e->down}[part][which];
}

const mt_kv_shape *mt_cpu_kv_shape_of(const mt_device *dev, const mt_kv *kv)
{
    (void)dev;
    return &kv->shape;
}

const mt_state_shape *mt_cpu_state_shape_of(const mt_device *dev, const mt_states *states)
{
    (void)dev;
    return &states->shape;
}
