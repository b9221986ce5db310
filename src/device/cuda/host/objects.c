/* Objects of the CUDA device: how they are made, written and read. */
#include <assert.h>
#include <string.h>

#include "device/cuda/cuda.h"
#include "device/limits.h"
#include "kernels/kvq.h"
#include "sample/chain.h"

/* ---- tensors and lists ---- */

static mt_tensor *make_tensor(mt_set *set, CUdeviceptr data, size_t rows, size_t cols)
{
    mt_tensor *t = mt_cuda_host(set, sizeof(*t));
    t->m = (mt_cuda_mat){.data = data, .rows = (uint32_t)rows, .cols = (uint32_t)cols, .stride = mt_cuda_up(cols, 32)};
    return t;
}

mt_tensor *mt_cuda_tensor_new(mt_set *set, size_t rows, size_t cols)
{
    return make_tensor(set, mt_cuda_memory(set, rows * mt_cuda_up(cols, 32) * sizeof(float)), rows, cols);
}

mt_tensor *mt_cuda_tensor_reserve(mt_set *set, size_t rows, size_t cols, mt_error *err)
{
    const CUdeviceptr data = mt_cuda_reserve(set, rows * mt_cuda_up(cols, 32) * sizeof(float));
    if (data)
        return make_tensor(set, data, rows, cols);
    if (mt_cuda_device_well(set->head.dev, err))
        mt_fail(err, MT_E_MEMORY,
                "%zu rows of %zu numbers do not fit in the GPU's memory; lower --memory or --media-cache", rows, cols);
    return NULL;
}

mt_tensor *mt_cuda_tensor_part(mt_set *set, mt_tensor *whole, size_t row, size_t rows, size_t col, size_t cols)
{
    mt_tensor *t = mt_cuda_host(set, sizeof(*t));
    t->m = (mt_cuda_mat){.data = whole->m.data + (row * whole->m.stride + col) * sizeof(float),
                         .rows = (uint32_t)rows,
                         .cols = (uint32_t)cols,
                         .stride = whole->m.stride};
    return t;
}

mt_tensor *mt_cuda_tensor_view(mt_set *set)
{
    return mt_cuda_host(set, sizeof(mt_tensor));
}

void mt_cuda_tensor_aim(mt_device *dev, mt_tensor *view, const mt_tensor *t, size_t row, size_t rows)
{
    (void)dev;
    view->m = t->m;
    view->m.rows = (uint32_t)rows;
    view->m.data += row * t->m.stride * sizeof(float);
}

size_t mt_cuda_tensor_cols(const mt_device *dev, const mt_tensor *t)
{
    (void)dev;
    return t->m.cols;
}

static CUdeviceptr row_at(const mt_tensor *t, size_t row)
{
    assert(row < t->m.rows);
    return t->m.data + row * t->m.stride * sizeof(float);
}

/* Writes rows by one copy, since each copy takes the host some microseconds. */
void mt_cuda_tensor_write(mt_device *dev, mt_tensor *t, size_t row, size_t rows, const float *data)
{
    const size_t bytes = t->m.cols * sizeof(*data), some = MT_CUDA_STAGING / 4 / bytes, most = some ? some : 1;
    assert(row + rows <= t->m.rows);
    for (size_t at = 0; at < rows; at += most) {
        const size_t left = rows - at, n = left < most ? left : most;
        if (n == 1) {
            mt_cuda_send(dev, row_at(t, row + at), data + at * t->m.cols, bytes);
            continue;
        }
        uint8_t *staged = mt_cuda_stage(dev, n * bytes);
        memcpy(staged, data + at * t->m.cols, n * bytes);
        const CUmemcpy2D copy = {.from_type = MT_CU_MEMORY_HOST,
                                 .from_host = staged,
                                 .from_pitch = bytes,
                                 .to_type = MT_CU_MEMORY_DEVICE,
                                 .to = row_at(t, row + at),
                                 .to_pitch = t->m.stride * sizeof(*data),
                                 .width = bytes,
                                 .height = n};
        mt_cuda_do(dev, "take data from the host", copy_rows, &copy, mt_cuda_stream(dev));
    }
}

mt_index *mt_cuda_index_new(mt_set *set, size_t count)
{
    mt_index *index = mt_cuda_host(set, sizeof(*index));
    *index = (mt_index){.count = count, .data = mt_cuda_memory(set, count * sizeof(uint32_t))};
    return index;
}

void mt_cuda_index_write(mt_device *dev, mt_index *index, const uint32_t *data, size_t count)
{
    assert(count <= index->count);
    mt_cuda_send(dev, index->data, data, count * sizeof(*data));
}

/* ---- patches ---- */

#define LEVELS 16 /* most different tables of levels among patches that are written together */

mt_patches *mt_cuda_patches_new(mt_set *set, size_t rows, size_t frames, size_t area)
{
    mt_patches *p = mt_cuda_host(set, sizeof(*p));
    *p = (mt_patches){.rows = rows,
                      .frames = frames,
                      .area = area,
                      .bytes = mt_cuda_memory(set, rows * 3 * frames * area),
                      .at = mt_cuda_memory(set, rows * sizeof(uint64_t)),
                      .level = mt_cuda_memory(set, rows * sizeof(uint32_t)),
                      .levels = mt_cuda_memory(set, LEVELS * 3 * 256 * sizeof(float))};
    return p;
}

static size_t patch_bytes(const mt_patches *p, const mt_pixels *pixels)
{
    return 3 * p->area * (pixels->still ? 1 : p->frames);
}

/* Sends the bytes of patches one behind the other, as many at a time as a part of the ring holds. */
static void send_bytes(mt_device *dev, const mt_patches *p, const mt_pixels *pixels, size_t m)
{
    CUdeviceptr to = p->bytes;
    for (size_t first = 0, end = 0; first < m; first = end) {
        size_t bytes = 0, used = 0;
        while (end < m && (end == first || bytes + patch_bytes(p, &pixels[end]) <= MT_CUDA_STAGING / 4))
            bytes += patch_bytes(p, &pixels[end++]);
        uint8_t *staged = mt_cuda_stage(dev, bytes);
        for (size_t i = first; i < end; i++) {
            memcpy(staged + used, pixels[i].bytes, patch_bytes(p, &pixels[i]));
            used += patch_bytes(p, &pixels[i]);
        }
        mt_cuda_flush(dev, to, staged, bytes);
        to += bytes;
    }
}

void mt_cuda_patches_write(mt_device *dev, mt_patches *p, const mt_pixels *pixels, size_t m)
{
    const float(*known[LEVELS])[256];
    size_t levels = 0, used = 0;
    assert(m <= p->rows);
    uint8_t *staged = mt_cuda_stage(dev, m * (sizeof(uint64_t) + sizeof(uint32_t)));
    uint64_t *at = (uint64_t *)(void *)staged;
    uint32_t *level = (uint32_t *)(void *)(at + m);
    for (size_t i = 0; i < m; i++) {
        at[i] = used | (pixels[i].still ? 1ull << 63 : 0);
        level[i] = 0;
        while (level[i] < levels && known[level[i]] != pixels[i].levels)
            level[i]++;
        if (level[i] == levels) {
            assert(levels < LEVELS);
            known[levels++] = pixels[i].levels;
        }
        used += patch_bytes(p, &pixels[i]);
    }
    mt_cuda_flush(dev, p->at, staged, m * sizeof(*at));
    mt_cuda_flush(dev, p->level, staged + m * sizeof(*at), m * sizeof(*level));
    for (size_t i = 0; i < levels; i++)
        mt_cuda_send(dev, p->levels + i * 3 * 256 * sizeof(float), known[i], 3 * 256 * sizeof(float));
    send_bytes(dev, p, pixels, m);
}

/* ---- pages ---- */

size_t mt_cuda_kv_page_bytes(const mt_device *dev, const mt_kv_shape *s)
{
    (void)dev;
    return s->layers * mt_rules_kv_blocks(s) * mt_rules_kv_block(s);
}

mt_kv *mt_cuda_kv_new(mt_set *set, const mt_kv_shape *s, mt_error *err)
{
    if (s->top) {
        mt_fail(err, MT_E_UNSUPPORTED, "attention to chosen positions is not computed on GPUs yet; use --device cpu");
        return NULL;
    }
    if (s->latent && !mt_cuda_latent_fits(set->head.dev, s)) {
        mt_fail(err, MT_E_UNSUPPORTED, "keys of %zu elements are too wide for this GPU; use --device cpu", s->head_dim);
        return NULL;
    }
    assert(s->query_heads % s->heads == 0 && MT_KV_SEGMENT % s->page_tokens == 0 &&
           (s->page_tokens % MT_PAGE_TOKENS == 0 || !mt_rules_kv_bits(s->type)));
    mt_kv *kv = mt_cuda_host(set, sizeof(*kv));
    kv->shape = *s;
    kv->d = (mt_cuda_kv){.page_bytes = mt_cuda_kv_page_bytes(set->head.dev, s),
                         .block = mt_rules_kv_block(s),
                         .group = (uint32_t)s->group,
                         .layers = (uint32_t)s->layers,
                         .heads = (uint32_t)s->heads,
                         .query_heads = (uint32_t)s->query_heads,
                         .head_dim = (uint32_t)s->head_dim,
                         .head_stride = (uint32_t)mt_rules_kv_stride(s),
                         .page_tokens = (uint32_t)s->page_tokens,
                         .f32 = s->type == MT_KV_F32,
                         .bits = mt_rules_kv_bits(s->type)};
    return kv;
}

bool mt_cuda_kv_reserve(mt_set *set, mt_kv *kv, size_t pages, mt_error *err)
{
    kv->d.data = mt_cuda_reserve(set, pages * kv->d.page_bytes);
    kv->pages = pages;
    return kv->d.data ||
           (mt_cuda_device_well(set->head.dev, err) &&
            mt_fail(err, MT_E_MEMORY,
                    "%zu cache pages of %zu bytes do not fit in the GPU's memory; lower --memory or --context", pages,
                    (size_t)kv->d.page_bytes));
}

const mt_kv_shape *mt_cuda_kv_shape_of(const mt_device *dev, const mt_kv *kv)
{
    (void)dev;
    return &kv->shape;
}

static CUdeviceptr page_at(const mt_kv *kv, uint32_t page)
{
    assert(page < kv->pages);
    return kv->d.data + page * kv->d.page_bytes;
}

void mt_cuda_kv_restore(mt_device *dev, mt_kv *kv, uint32_t page, mt_sending *s, size_t at)
{
    mt_cuda_send_aside(dev, page_at(kv, page), s, at, kv->d.page_bytes);
}

void mt_cuda_op_kv_copy(mt_device *dev, mt_kv *kv, uint32_t to, uint32_t from)
{
    mt_cuda_do(dev, "copy a page", copy, page_at(kv, to), page_at(kv, from), kv->d.page_bytes, mt_cuda_stream(dev));
}

void mt_cuda_kv_poison(mt_device *dev, mt_kv *kv, uint32_t page)
{
    mt_cuda_do(dev, "poison a page", set_bytes, page_at(kv, page), 0xff, kv->d.page_bytes, mt_cuda_stream(dev));
}

/* Reads in pieces, through the ring. */
static bool poisoned(mt_device *dev, CUdeviceptr at, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const size_t left = bytes - done, n = left < MT_CUDA_STAGING / 4 ? left : MT_CUDA_STAGING / 4;
        uint8_t *to = mt_cuda_stage(dev, n);
        mt_cuda_do(dev, "read", to_host, to, at + done, n, mt_cuda_stream(dev));
        mt_cuda_do(dev, "read", stream_wait, mt_cuda_stream(dev));
        if (dev->failed)
            return true; /* the device has failed: cannot be told */
        if (to[0] != 0xff || memcmp(to, to + 1, n - 1) != 0)
            return false;
        done += n;
    }
    return true;
}

bool mt_cuda_kv_poisoned(mt_device *dev, const mt_kv *kv, uint32_t page)
{
    return poisoned(dev, page_at(kv, page), kv->d.page_bytes);
}

/* ---- states ---- */

static void measure(mt_states *st, const mt_state_shape *s)
{
    const size_t columns = 2 * s->key_heads * s->key_dim + s->value_heads * s->value_dim;
    const size_t blocks = (s->value_dim + MT_DELTA_COLUMNS - 1) / MT_DELTA_COLUMNS;
    const size_t conv = mt_cuda_up((s->taps - 1) * columns, MT_LANES);
    *st = (mt_states){.shape = *s,
                      .d = {.layer = conv + s->value_heads * blocks * s->key_dim * MT_DELTA_COLUMNS,
                            .conv = conv,
                            .memo_row = mt_cuda_up(2 * columns + 2 * s->value_heads, MT_LANES),
                            .layers = (uint32_t)s->layers,
                            .key_heads = (uint32_t)s->key_heads,
                            .value_heads = (uint32_t)s->value_heads,
                            .key_dim = (uint32_t)s->key_dim,
                            .value_dim = (uint32_t)s->value_dim,
                            .taps = (uint32_t)s->taps,
                            .columns = (uint32_t)columns,
                            .blocks = (uint32_t)blocks}};
    st->slot_bytes = s->layers * st->d.layer * sizeof(float);
}

size_t mt_cuda_state_slot_bytes(const mt_device *dev, const mt_state_shape *shape)
{
    mt_states st;
    (void)dev;
    measure(&st, shape);
    return st.slot_bytes;
}

mt_states *mt_cuda_state_new(mt_set *set, const mt_state_shape *shape, size_t memos)
{
    mt_states *st = mt_cuda_host(set, sizeof(*st));
    measure(st, shape);
    st->d.memo = mt_cuda_memory(set, memos * shape->layers * MT_LIMIT_MEMO_ROWS * st->d.memo_row * sizeof(float));
    return st;
}

bool mt_cuda_state_reserve(mt_set *set, mt_states *st, size_t slots, mt_error *err)
{
    st->d.data = mt_cuda_reserve(set, slots * st->slot_bytes);
    st->slots = slots;
    return st->d.data || (mt_cuda_device_well(set->head.dev, err) &&
                          mt_fail(err, MT_E_MEMORY,
                                  "%zu recurrent states of %zu bytes do not fit in the GPU's memory; lower "
                                  "--max-sequences or --state-cache",
                                  slots, st->slot_bytes));
}

const mt_state_shape *mt_cuda_state_shape_of(const mt_device *dev, const mt_states *st)
{
    (void)dev;
    return &st->shape;
}

static CUdeviceptr slot_at(const mt_states *st, uint32_t slot)
{
    assert(slot < st->slots);
    return st->d.data + slot * st->slot_bytes;
}

void mt_cuda_state_restore(mt_device *dev, mt_states *st, uint32_t slot, mt_sending *s, size_t at)
{
    mt_cuda_send_aside(dev, slot_at(st, slot), s, at, st->slot_bytes);
}

void mt_cuda_state_poison(mt_device *dev, mt_states *st, uint32_t slot)
{
    mt_cuda_do(dev, "poison a state", set_bytes, slot_at(st, slot), 0xff, st->slot_bytes, mt_cuda_stream(dev));
}

bool mt_cuda_state_poisoned(mt_device *dev, const mt_states *st, uint32_t slot)
{
    return poisoned(dev, slot_at(st, slot), st->slot_bytes);
}

/* ---- reading ---- */

static CUstream stream_of(mt_device *dev, const mt_reading *r)
{
    return r->aside ? mt_cuda_aside(dev) : mt_cuda_stream(dev);
}

static void end(mt_device *dev, mt_reading *r)
{
    r->here = false;
    mt_cuda_do(dev, "hand over what was computed", event_record, r->come, r->aside ? dev->aside : mt_cuda_stream(dev));
}

static void begin(mt_device *dev, mt_reading *r, CUdeviceptr from, size_t bytes)
{
    assert(bytes <= r->bytes);
    mt_cuda_do(dev, "hand over what was computed", to_host, r->host, from, bytes, stream_of(dev, r));
    end(dev, r);
}

void mt_cuda_read_rows(mt_device *dev, mt_reading *r, const mt_tensor *t, size_t row, size_t rows)
{
    r->stride = t->m.cols * sizeof(float);
    assert(rows * r->stride <= r->bytes);
    const CUmemcpy2D copy = {.from_type = MT_CU_MEMORY_DEVICE,
                             .from = row_at(t, row),
                             .from_pitch = t->m.stride * sizeof(float),
                             .to_type = MT_CU_MEMORY_HOST,
                             .to_host = r->host,
                             .to_pitch = r->stride,
                             .width = r->stride,
                             .height = rows};
    if (rows)
        mt_cuda_do(dev, "hand over what was computed", copy_rows, &copy, stream_of(dev, r));
    end(dev, r);
}

void mt_cuda_read_index(mt_device *dev, mt_reading *r, const mt_index *index, size_t count)
{
    begin(dev, r, index->data, count * sizeof(uint32_t));
}

void mt_cuda_read_page(mt_device *dev, mt_reading *r, const mt_kv *kv, uint32_t page)
{
    begin(dev, r, page_at(kv, page), kv->d.page_bytes);
}

void mt_cuda_read_state(mt_device *dev, mt_reading *r, const mt_states *st, uint32_t slot)
{
    begin(dev, r, slot_at(st, slot), st->slot_bytes);
}

static void wait_for(mt_device *dev, mt_reading *r)
{
    if (!r->here)
        r->here = mt_cuda_do(dev, "hand over what was computed", event_wait, r->come);
}

const float *mt_cuda_reading_row(mt_device *dev, mt_reading *r, size_t row)
{
    wait_for(dev, r);
    return (const float *)(const void *)(r->host + row * r->stride);
}

const void *mt_cuda_reading_data(mt_device *dev, mt_reading *r)
{
    wait_for(dev, r);
    return r->host;
}
