/* Objects of a device with a fallback: how they are made, written and read. */
#include "base/limits.h"
#include "device/fallback_copies.h"

/* ---- memory ---- */

void *mt_plain_alloc(mt_set *set, size_t bytes)
{
    return mt_cpu_alloc(set_of(set)->host, bytes);
}

mt_memory *mt_plain_memory(mt_set *set, size_t bytes)
{
    mt_fallback *f = of(set_of(set)->head.dev);
    piece_of_memory *piece = mt_plain_alloc(set, sizeof(*piece));
    mt_memory *memory = f->own->memory_new(f->dev, bytes ? bytes : 1);
    if (!memory) {
        f->lost = true;
        return NULL;
    }
    *piece = (piece_of_memory){.memory = memory, .next = set_of(set)->first, .bytes = bytes};
    set_of(set)->first = piece;
    f->bytes += bytes;
    return memory;
}

/* ---- making objects ---- */

static mt_set *fallback_set_new(mt_device *dev)
{
    mt_set *host = mt_cpu_set_new(of(dev)->cpu);
    plain_set *set = mt_cpu_alloc(host, sizeof(*set));
    *set = (plain_set){.head = {.dev = dev}, .host = host};
    return (mt_set *)(void *)set;
}

static void fallback_set_free(mt_set *set)
{
    mt_fallback *f = of(set_of(set)->head.dev);
    for (piece_of_memory *piece = set_of(set)->first; piece; piece = piece->next) {
        f->own->memory_free(f->dev, piece->memory);
        f->bytes -= piece->bytes;
    }
    mt_cpu_set_free(set_of(set)->host);
}

static mt_tensor *make_tensor(mt_set *set, mt_tensor *host, mt_memory *memory, size_t offset)
{
    mt_plain_tensor *t = mt_plain_alloc(set, sizeof(*t));
    *t = (mt_plain_tensor){.host = host,
                           .memory = memory,
                           .offset = offset,
                           .rows = host->rows,
                           .cols = host->cols,
                           .stride = host->stride};
    return (mt_tensor *)(void *)t;
}

static mt_tensor *fallback_tensor_new(mt_set *set, size_t rows, size_t cols)
{
    mt_tensor *host = mt_cpu_tensor_new(set_of(set)->host, rows, cols);
    return make_tensor(set, host, mt_plain_memory(set, rows * host->stride * sizeof(float)), 0);
}

static mt_tensor *fallback_tensor_reserve(mt_set *set, size_t rows, size_t cols, mt_error *err)
{
    mt_tensor *host = mt_cpu_tensor_reserve(set_of(set)->host, rows, cols, err);
    mt_memory *memory = host ? mt_plain_memory(set, rows * host->stride * sizeof(float)) : NULL;
    if (host && !memory)
        mt_fail(err, MT_E_MEMORY, "the device has no memory for %zu rows of %zu numbers; lower --memory", rows, cols);
    return memory ? make_tensor(set, host, memory, 0) : NULL;
}

static mt_tensor *fallback_tensor_part(mt_set *set, mt_tensor *whole, size_t row, size_t rows, size_t col, size_t cols)
{
    const mt_plain_tensor *t = plain(whole);
    mt_tensor *host = mt_cpu_tensor_part(set_of(set)->host, t->host, row, rows, col, cols);
    return make_tensor(set, host, t->memory, t->offset + row * t->stride + col);
}

static mt_tensor *fallback_tensor_view(mt_set *set)
{
    return make_tensor(set, mt_cpu_tensor_view(set_of(set)->host), NULL, 0);
}

static void fallback_tensor_aim(mt_device *dev, mt_tensor *view, const mt_tensor *tensor, size_t row, size_t rows)
{
    const mt_plain_tensor *t = plain(tensor);
    mt_plain_tensor *v = (mt_plain_tensor *)(void *)view;
    mt_cpu_tensor_aim(of(dev)->cpu, v->host, t->host, row, rows);
    v->memory = t->memory;
    v->offset = t->offset + row * t->stride;
    v->rows = rows;
    v->cols = t->cols;
    v->stride = t->stride;
}

static mt_index *fallback_index_new(mt_set *set, size_t count)
{
    mt_plain_index *p = mt_plain_alloc(set, sizeof(*p));
    p->host = mt_cpu_index_new(set_of(set)->host, count);
    p->memory = mt_plain_memory(set, count * sizeof(uint32_t));
    return (mt_index *)(void *)p;
}

static mt_weight *fallback_weight_new(mt_set *set, const mt_mat *mat, const float *bias, bool exact)
{
    const mt_backend *own = of(set_of(set)->head.dev)->own;
    mt_plain_weight *w =
        own->weight_new ? (void *)own->weight_new(set, mat, bias, exact) : mt_plain_alloc(set, sizeof(*w));
    w->host = mt_cpu_weight_new(set_of(set)->host, mat, bias, exact);
    return (mt_weight *)(void *)w;
}

static mt_experts *fallback_experts_new(mt_set *set, const mt_experts_params *params)
{
    const mt_backend *own = of(set_of(set)->head.dev)->own;
    mt_plain_experts *e = own->experts_new ? (void *)own->experts_new(set, params) : mt_plain_alloc(set, sizeof(*e));
    e->host = mt_cpu_experts_new(set_of(set)->host, params);
    e->weight = mt_plain_alloc(set, params->count * 3 * sizeof(*e->weight));
    for (size_t i = 0; i < params->count; i++) {
        e->weight[3 * i].host = &e->host->gate[i];
        e->weight[3 * i + 1].host = &e->host->up[i];
        e->weight[3 * i + 2].host = &e->host->down[i];
    }
    return (mt_experts *)(void *)e;
}

static mt_kv *fallback_kv_new(mt_set *set, const mt_kv_shape *shape, mt_error *err)
{
    mt_kv *host = mt_cpu_kv_new(set_of(set)->host, shape, err);
    mt_plain_kv *p = host ? mt_plain_alloc(set, sizeof(*p)) : NULL;
    if (p)
        p->host = host;
    return (mt_kv *)(void *)p;
}

static bool fallback_kv_reserve(mt_set *set, mt_kv *kv, size_t pages, mt_error *err)
{
    mt_plain_kv *p = (mt_plain_kv *)(void *)kv;
    if (!mt_cpu_kv_reserve(set_of(set)->host, p->host, pages, err))
        return false;
    p->memory = mt_plain_memory(set, pages * p->host->page_bytes);
    return p->memory ||
           mt_fail(err, MT_E_MEMORY, "the device has no memory for %zu cache pages; lower --memory", pages);
}

static mt_states *fallback_state_new(mt_set *set, const mt_state_shape *shape, size_t memos)
{
    mt_plain_states *p = mt_plain_alloc(set, sizeof(*p));
    p->host = mt_cpu_state_new(set_of(set)->host, shape, memos);
    p->memo_bytes = shape->layers * MT_LIMIT_MEMO_ROWS * p->host->memo_row * sizeof(float);
    p->memos = mt_plain_memory(set, memos * p->memo_bytes);
    return (mt_states *)(void *)p;
}

static bool fallback_state_reserve(mt_set *set, mt_states *states, size_t slots, mt_error *err)
{
    mt_plain_states *p = (mt_plain_states *)(void *)states;
    if (!mt_cpu_state_reserve(set_of(set)->host, p->host, slots, err))
        return false;
    p->memory = mt_plain_memory(set, slots * slot_bytes(p));
    return p->memory || mt_fail(err, MT_E_MEMORY, "the device has no memory for %zu states; lower --memory", slots);
}

/* ---- transfers: complete at once ---- */

static void fallback_tensor_write(mt_device *dev, mt_tensor *t, size_t row, size_t rows, const float *data)
{
    mt_fallback *f = of(dev);
    if (plain(t)->cols != plain(t)->stride)
        read_tensor_rows(f, plain(t), row, rows); /* there is something between the rows */
    mt_cpu_tensor_write(f->cpu, plain(t)->host, row, rows, data);
    write_tensor_rows(f, plain(t), row, rows);
}

static void fallback_read_rows(mt_device *dev, mt_reading *r, const mt_tensor *t, size_t row, size_t rows)
{
    read_tensor_rows(of(dev), plain(t), row, rows);
    mt_cpu_read_rows(of(dev)->cpu, r, plain(t)->host, row, rows);
}

static void fallback_read_index(mt_device *dev, mt_reading *r, const mt_index *index, size_t count)
{
    read_list(of(dev), plain_index(index), count);
    mt_cpu_read_index(of(dev)->cpu, r, plain_index(index)->host, count);
}

static void fallback_read_page(mt_device *dev, mt_reading *r, const mt_kv *kv, uint32_t page)
{
    read_one_page(of(dev), plain_kv(kv), page);
    mt_cpu_read_page(of(dev)->cpu, r, plain_kv(kv)->host, page);
}

static void fallback_read_state(mt_device *dev, mt_reading *r, const mt_states *states, uint32_t slot)
{
    read_slot(of(dev), plain_states(states), slot);
    mt_cpu_read_state(of(dev)->cpu, r, plain_states(states)->host, slot);
}

static void fallback_kv_restore(mt_device *dev, mt_kv *kv, uint32_t page, mt_sending *s, size_t at)
{
    mt_cpu_kv_restore(of(dev)->cpu, plain_kv(kv)->host, page, s, at);
    write_one_page(of(dev), plain_kv(kv), page);
}

static void fallback_state_restore(mt_device *dev, mt_states *states, uint32_t slot, mt_sending *s, size_t at)
{
    mt_cpu_state_restore(of(dev)->cpu, plain_states(states)->host, slot, s, at);
    write_slot(of(dev), plain_states(states), slot);
}

static void fallback_kv_poison(mt_device *dev, mt_kv *kv, uint32_t page)
{
    mt_cpu_kv_poison(of(dev)->cpu, plain_kv(kv)->host, page);
    write_one_page(of(dev), plain_kv(kv), page);
}

static bool fallback_kv_poisoned(mt_device *dev, const mt_kv *kv, uint32_t page)
{
    read_one_page(of(dev), plain_kv(kv), page);
    return mt_cpu_kv_poisoned(of(dev)->cpu, plain_kv(kv)->host, page);
}

static void fallback_state_poison(mt_device *dev, mt_states *states, uint32_t slot)
{
    mt_cpu_state_poison(of(dev)->cpu, plain_states(states)->host, slot);
    write_slot(of(dev), plain_states(states), slot);
}

static bool fallback_state_poisoned(mt_device *dev, const mt_states *states, uint32_t slot)
{
    read_slot(of(dev), plain_states(states), slot);
    return mt_cpu_state_poisoned(of(dev)->cpu, plain_states(states)->host, slot);
}

static size_t fallback_tensor_cols(const mt_device *dev, const mt_tensor *t)
{
    (void)dev;
    return plain(t)->cols;
}

static const mt_weight *fallback_experts_weight(const mt_device *dev, const mt_experts *e, size_t which, size_t part)
{
    (void)dev;
    return (const mt_weight *)(const void *)&((const mt_plain_experts *)(const void *)e)->weight[3 * which + part];
}

const mt_backend mt_fallback_objects = {.set_new = fallback_set_new,
                                        .set_free = fallback_set_free,
                                        .tensor_new = fallback_tensor_new,
                                        .tensor_reserve = fallback_tensor_reserve,
                                        .tensor_part = fallback_tensor_part,
                                        .tensor_view = fallback_tensor_view,
                                        .tensor_aim = fallback_tensor_aim,
                                        .index_new = fallback_index_new,
                                        .kv_new = fallback_kv_new,
                                        .kv_reserve = fallback_kv_reserve,
                                        .state_new = fallback_state_new,
                                        .state_reserve = fallback_state_reserve,
                                        .tensor_write = fallback_tensor_write,
                                        .read_rows = fallback_read_rows,
                                        .read_index = fallback_read_index,
                                        .read_page = fallback_read_page,
                                        .read_state = fallback_read_state,
                                        .kv_restore = fallback_kv_restore,
                                        .state_restore = fallback_state_restore,
                                        .kv_poison = fallback_kv_poison,
                                        .kv_poisoned = fallback_kv_poisoned,
                                        .state_poison = fallback_state_poison,
                                        .state_poisoned = fallback_state_poisoned,
                                        .tensor_cols = fallback_tensor_cols,
                                        .experts_weight = fallback_experts_weight,
                                        .weight_new = fallback_weight_new,
                                        .experts_new = fallback_experts_new};
