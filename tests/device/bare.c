/* Backends for tests of the fallback (bare.h). Their memory is the host's with each byte changed, so that nothing that
   is read or written around them is right. */
#include "bare.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "device/fallback.h"

#define CHANGED 0x5a /* bits of each byte that are stored the other way round */
#define MOST_BYTES ((size_t)1 << 30)

struct mt_device {
    mt_device_head head;
    size_t pieces; /* of memory that are not freed yet */
};

struct mt_memory {
    size_t bytes;
    uint8_t data[];
};

/* What a device with products of its own would have here is a copy in its memory. */
struct mt_weight {
    mt_plain_weight plain;
    const mt_mat *mat;
};

static mt_device *open_with(const mt_backend *backend, const mt_device_params *params, mt_host *host)
{
    mt_device *dev = mt_alloc(sizeof(*dev));
    dev->head = (mt_device_head){.backend = backend,
                                 .host = host,
                                 .precision = params->precision,
                                 .kv_bits = params->kv_bits,
                                 .numerics = params->numerics};
    return dev;
}

static mt_device *open_bare(const mt_device_params *params, mt_host *host, mt_error *err)
{
    (void)err;
    return open_with(&bare_backend, params, host);
}

static mt_device *open_mixed(const mt_device_params *params, mt_host *host, mt_error *err)
{
    (void)err;
    return open_with(&mixed_backend, params, host);
}

static void close_device(mt_device *dev)
{
    assert(dev->pieces == 0);
    mt_free(dev);
}

static const char *describe(const mt_device *dev)
{
    return dev->head.backend->name;
}

static mt_memory *memory_new(mt_device *dev, size_t bytes)
{
    if (bytes > MOST_BYTES)
        return NULL;
    mt_memory *m = mt_alloc(sizeof(*m) + bytes);
    m->bytes = bytes;
    memset(m->data, CHANGED, bytes);
    dev->pieces++;
    return m;
}

static void memory_free(mt_device *dev, mt_memory *m)
{
    dev->pieces--;
    mt_free(m);
}

static void memory_write(mt_device *dev, mt_memory *m, size_t at, const void *data, size_t bytes)
{
    (void)dev;
    assert(at <= m->bytes && bytes <= m->bytes - at);
    for (size_t i = 0; i < bytes; i++)
        m->data[at + i] = ((const uint8_t *)data)[i] ^ CHANGED;
}

static void memory_read(mt_device *dev, const mt_memory *m, size_t at, void *data, size_t bytes)
{
    (void)dev;
    assert(at <= m->bytes && bytes <= m->bytes - at);
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)data)[i] = m->data[at + i] ^ CHANGED;
}

static void device_wait(mt_device *dev)
{
    (void)dev;
}

static uint64_t device_memory(const mt_device *dev)
{
    (void)dev;
    return MOST_BYTES;
}

const mt_backend bare_backend = {.name = "bare",
                                 .open = open_bare,
                                 .close = close_device,
                                 .describe = describe,
                                 .memory_new = memory_new,
                                 .memory_free = memory_free,
                                 .memory_write = memory_write,
                                 .memory_read = memory_read,
                                 .device_wait = device_wait,
                                 .device_memory = device_memory};

/* ---- operations of "mixed" ---- */

static const mt_plain_tensor *plain(const mt_tensor *t)
{
    return (const mt_plain_tensor *)(const void *)t;
}

static size_t byte_of(const mt_plain_tensor *t, size_t row, size_t col)
{
    return (t->offset + row * t->stride + col) * sizeof(float);
}

static void op_add(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m)
{
    for (size_t i = 0; i < m; i++)
        for (size_t c = 0; c < plain(y)->cols; c++) {
            float a, b;
            memory_read(dev, plain(y)->memory, byte_of(plain(y), i, c), &a, sizeof(a));
            memory_read(dev, plain(x)->memory, byte_of(plain(x), i, c), &b, sizeof(b));
            a += b;
            memory_write(dev, plain(y)->memory, byte_of(plain(y), i, c), &a, sizeof(a));
        }
}

static void op_copy_row(mt_device *dev, mt_tensor *y, size_t to, const mt_tensor *x, size_t from)
{
    for (size_t c = 0; c < plain(y)->cols; c++) {
        float a;
        memory_read(dev, plain(x)->memory, byte_of(plain(x), from, c), &a, sizeof(a));
        memory_write(dev, plain(y)->memory, byte_of(plain(y), to, c), &a, sizeof(a));
    }
}

static void op_kv_copy(mt_device *dev, mt_kv *kv, uint32_t to, uint32_t from)
{
    const mt_plain_kv *p = (const mt_plain_kv *)(const void *)kv;
    const size_t bytes = mt_kv_page_bytes(dev, mt_kv_shape_of(dev, kv));
    memcpy(p->memory->data + to * bytes, p->memory->data + from * bytes, bytes);
}

static mt_weight *weight_new(mt_set *set, const mt_mat *mat, const float *bias, bool exact)
{
    (void)bias, (void)exact;
    mt_weight *w = mt_plain_alloc(set, sizeof(*w));
    w->mat = mat;
    return w;
}

const mt_backend mixed_backend = {.name = "mixed",
                                  .open = open_mixed,
                                  .close = close_device,
                                  .describe = describe,
                                  .memory_new = memory_new,
                                  .memory_free = memory_free,
                                  .memory_write = memory_write,
                                  .memory_read = memory_read,
                                  .device_wait = device_wait,
                                  .device_memory = device_memory,
                                  .weight_new = weight_new,
                                  .op_add = op_add,
                                  .op_copy_row = op_copy_row,
                                  .op_kv_copy = op_kv_copy};
