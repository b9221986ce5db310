/* Declarations that the files of the fallback share: its state, and the copies of objects. */
#ifndef MT_DEVICE_FALLBACK_COPIES_H
#define MT_DEVICE_FALLBACK_COPIES_H

#include <assert.h>

#include "device/cpu/cpu.h"
#include "device/fallback.h"

#define MOST_ARGUMENTS 10 /* of an operation */

typedef struct piece_of_memory {
    mt_memory *memory;
    struct piece_of_memory *next;
    size_t bytes;
} piece_of_memory;

/* The contents of an mt_set of a device with a fallback. */
typedef struct plain_set {
    mt_set_head head;
    mt_set *host;
    piece_of_memory *first;
} plain_set;

/* Something to be written back when an operation is done. */
typedef struct output {
    void (*write)(mt_fallback *f, const void *object);
    const void *object;
} output;

struct mt_fallback {
    mt_backend table; /* the device's: the backend's functions, and those below where it has none */
    mt_backend all;   /* operations as if the backend had none */
    const mt_backend *own;
    mt_device *dev, *cpu;
    uint64_t bytes;
    bool lost;      /* memory was refused */
    mt_batch batch; /* of the present step */
    output out[MOST_ARGUMENTS];
    size_t outs;
    mt_columns columns[3];
};

static inline mt_fallback *of(const mt_device *dev)
{
    return ((const mt_device_head *)dev)->fallback;
}

static inline plain_set *set_of(mt_set *set)
{
    return (plain_set *)(void *)set;
}

static inline void from_device(mt_fallback *f, const mt_memory *memory, size_t at, void *data, size_t bytes)
{
    if (memory && bytes)
        f->own->memory_read(f->dev, memory, at, data, bytes);
}

static inline void to_device(mt_fallback *f, mt_memory *memory, size_t at, const void *data, size_t bytes)
{
    if (memory && bytes)
        f->own->memory_write(f->dev, memory, at, data, bytes);
}

static inline const mt_plain_tensor *plain(const mt_tensor *t)
{
    return (const mt_plain_tensor *)(const void *)t;
}

static inline const mt_plain_kv *plain_kv(const mt_kv *kv)
{
    return (const mt_plain_kv *)(const void *)kv;
}

static inline const mt_plain_states *plain_states(const mt_states *states)
{
    return (const mt_plain_states *)(const void *)states;
}

static inline const mt_plain_index *plain_index(const mt_index *index)
{
    return (const mt_plain_index *)(const void *)index;
}

static inline mt_weight *host_weight(const mt_weight *w)
{
    return ((const mt_plain_weight *)(const void *)w)->host;
}

static inline mt_experts *host_experts(const mt_experts *e)
{
    return ((const mt_plain_experts *)(const void *)e)->host;
}

/* Bytes from the first element of some rows to the last. */
static inline size_t extent(const mt_plain_tensor *t, size_t rows)
{
    return rows ? ((rows - 1) * t->stride + t->cols) * sizeof(float) : 0;
}

static inline void read_tensor_rows(mt_fallback *f, const mt_plain_tensor *t, size_t row, size_t rows)
{
    from_device(f, t->memory, (t->offset + row * t->stride) * sizeof(float), mt_cpu_row(t->host, row), extent(t, rows));
}

static inline void write_tensor_rows(mt_fallback *f, const mt_plain_tensor *t, size_t row, size_t rows)
{
    to_device(f, t->memory, (t->offset + row * t->stride) * sizeof(float), mt_cpu_row(t->host, row), extent(t, rows));
}

static inline void read_list(mt_fallback *f, const mt_plain_index *index, size_t count)
{
    from_device(f, index->memory, 0, index->host->data, count * sizeof(uint32_t));
}

static inline void read_one_page(mt_fallback *f, const mt_plain_kv *kv, uint32_t page)
{
    const size_t at = page * kv->host->page_bytes;
    from_device(f, kv->memory, at, kv->host->data + at, kv->host->page_bytes);
}

static inline void write_one_page(mt_fallback *f, const mt_plain_kv *kv, uint32_t page)
{
    const size_t at = page * kv->host->page_bytes;
    to_device(f, kv->memory, at, kv->host->data + at, kv->host->page_bytes);
}

static inline size_t slot_bytes(const mt_plain_states *st)
{
    return mt_cpu_state_slot_bytes(NULL, &st->host->shape);
}

static inline void read_slot(mt_fallback *f, const mt_plain_states *st, uint32_t slot)
{
    const size_t bytes = slot_bytes(st), at = slot * bytes;
    from_device(f, st->memory, at, (uint8_t *)st->host->data + at, bytes);
}

static inline void write_slot(mt_fallback *f, const mt_plain_states *st, uint32_t slot)
{
    const size_t bytes = slot_bytes(st), at = slot * bytes;
    to_device(f, st->memory, at, (uint8_t *)st->host->data + at, bytes);
}

/* The functions that make, write and read objects; NULL: all others. */
extern const mt_backend mt_fallback_objects;

#endif
