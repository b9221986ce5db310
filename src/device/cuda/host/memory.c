/* Memory of the CUDA device and of its sets. Data of the host go through a ring of pinned memory, so that they may
   change as soon as a call returns. */
#include <assert.h>
#include <string.h>

#include "device/cuda/cuda.h"

typedef struct block {
    mt_device *dev;
    CUdeviceptr at;
    void *pinned;
} block;

/* Also for a device that has failed: the driver may still accept it. */
static void free_block(void *object)
{
    const block *b = object;
    const CUresult error = b->pinned ? b->dev->cu.host_free(b->pinned) : b->dev->cu.free(b->at);
    mt_cuda_ok(b->dev, error, "free memory");
}

void *mt_cuda_host(mt_set *set, size_t bytes)
{
    void *p = mt_arena_alloc(set->arena, bytes);
    assert(p); /* this arena has no limit */
    return p;
}

void mt_cuda_defer(mt_set *set, void (*end)(void *object), void *object)
{
    const int ok = mt_arena_defer(set->arena, end, object);
    assert(ok);
    (void)ok;
}

static void keep(mt_set *set, block b)
{
    block *kept = mt_cuda_host(set, sizeof(*kept));
    *kept = b;
    mt_cuda_defer(set, free_block, kept);
}

CUdeviceptr mt_cuda_reserve(mt_set *set, size_t bytes)
{
    mt_device *dev = set->head.dev;
    CUdeviceptr at = 0;
    bytes = mt_cuda_up(bytes ? bytes : 1, 256);
    if (dev->failed || dev->cu.alloc(&at, bytes))
        return 0;
    set->bytes += bytes;
    dev->bytes += bytes;
    keep(set, (block){.dev = dev, .at = at});
    return mt_cuda_do(dev, "clear memory", set_bytes, at, 0, bytes, mt_cuda_stream(dev)) ? at : 0;
}

CUdeviceptr mt_cuda_memory(mt_set *set, size_t bytes)
{
    const CUdeviceptr at = mt_cuda_reserve(set, bytes);
    if (!at)
        mt_cuda_lack(set->head.dev, bytes);
    return at;
}

/* Of a device that has failed it is plain memory, which nothing fills. */
void *mt_cuda_pinned(mt_set *set, size_t bytes)
{
    mt_device *dev = set->head.dev;
    void *at = NULL;
    if (!mt_cuda_do(dev, "pin memory of the host", host_alloc, &at, bytes ? bytes : 1))
        return mt_cuda_host(set, bytes ? bytes : 1);
    keep(set, (block){.dev = dev, .pinned = at});
    return at;
}

/* An event of a set. */
typedef struct owned {
    mt_device *dev;
    CUevent event;
} owned;

static void free_event(void *object)
{
    const owned *o = object;
    mt_cuda_ok(o->dev, o->dev->cu.event_free(o->event), "free an event");
}

CUevent mt_cuda_event(mt_set *set)
{
    owned *o = mt_cuda_host(set, sizeof(*o));
    *o = (owned){.dev = set->head.dev};
    if (!mt_cuda_do(o->dev, "make an event", event_new, &o->event, MT_CU_EVENT_WITHOUT_TIME))
        return NULL;
    mt_cuda_defer(set, free_event, o);
    return o->event;
}

uint8_t *mt_cuda_stage(mt_device *dev, size_t bytes)
{
    assert(bytes <= MT_CUDA_STAGING);
    bytes = mt_cuda_up(bytes, 64);
    if (dev->staged + bytes > MT_CUDA_STAGING) {
        mt_cuda_do(dev, "wait", stream_wait, mt_cuda_stream(dev));
        dev->staged = 0;
        dev->step_staged = NULL;
    }
    uint8_t *at = dev->staging + dev->staged;
    dev->staged += bytes;
    return at;
}

void mt_cuda_flush(mt_device *dev, CUdeviceptr to, const uint8_t *staged, size_t bytes)
{
    if (bytes)
        mt_cuda_do(dev, "take data from the host", to_device, to, staged, bytes, mt_cuda_stream(dev));
}

void mt_cuda_send(mt_device *dev, CUdeviceptr to, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const size_t left = bytes - done, n = left < MT_CUDA_STAGING / 4 ? left : MT_CUDA_STAGING / 4;
        uint8_t *at = mt_cuda_stage(dev, n);
        memcpy(at, (const uint8_t *)from + done, n);
        mt_cuda_flush(dev, to + done, at, n);
        done += n;
    }
}

void mt_cuda_device_wait(mt_device *dev)
{
    if (dev->waited)
        return;
    dev->waited = mt_cuda_do(dev, "compute", stream_wait, mt_cuda_stream(dev));
    mt_cuda_idle(dev);
}

mt_reading *mt_cuda_reading_new(mt_set *set, size_t bytes)
{
    mt_reading *r = mt_cuda_host(set, sizeof(*r));
    bytes += bytes / 8 + 4096; /* rows are read with their padding */
    *r = (mt_reading){.host = mt_cuda_pinned(set, bytes), .bytes = bytes, .come = mt_cuda_event(set)};
    return r;
}
