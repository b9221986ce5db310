/* Copies between host and GPU that no step waits for, on a second stream: pages, states and features on their way to
   tiers and back.

   1. What is enqueued here runs after all that was enqueued on the first stream before, so that what is read was
      computed and what is overwritten is no longer used. The first stream never waits for it: whoever needs a copy asks
      or waits for its event, and until then holds what is read and keeps others from what is written.
   2. Freeing a set waits for both streams. */
#include <assert.h>

#include "device/cuda/cuda.h"

bool mt_cuda_aside_open(mt_device *dev, mt_error *err)
{
    CUresult error = dev->cu.stream_new(&dev->aside, MT_CU_STREAM_NON_BLOCKING);
    if (error)
        dev->aside = NULL;
    if (!error)
        error = dev->cu.event_new(&dev->so_far, MT_CU_EVENT_WITHOUT_TIME);
    return !error || mt_fail(err, MT_E_IO, "%s cannot be used: %s", dev->name, mt_cuda_driver_text(&dev->cu, error));
}

void mt_cuda_aside_close(mt_device *dev)
{
    if (dev->so_far)
        (void)dev->cu.event_free(dev->so_far);
    if (dev->aside)
        (void)dev->cu.stream_free(dev->aside);
    dev->so_far = NULL;
    dev->aside = NULL;
}

void mt_cuda_aside_wait(mt_device *dev)
{
    if (dev->aside)
        mt_cuda_do(dev, "wait", stream_wait, dev->aside);
}

CUstream mt_cuda_aside(mt_device *dev)
{
    const bool waited = dev->waited;
    CUstream stream = mt_cuda_stream(dev);
    dev->waited = waited; /* recording an event is nothing to wait for */
    mt_cuda_do(dev, "order copies", event_record, dev->so_far, stream);
    mt_cuda_do(dev, "order copies", stream_after, dev->aside, dev->so_far, 0);
    return dev->aside;
}

/* Whether an event has happened; true for a device that has failed. */
static bool is_over(mt_device *dev, CUevent event)
{
    if (dev->failed)
        return true;
    const CUresult error = dev->cu.event_query(event);
    return error != MT_CU_NOT_READY && (mt_cuda_ok(dev, error, "copy"), true);
}

/* ---- to the host ---- */

mt_reading *mt_cuda_reading_aside(mt_set *set, size_t bytes)
{
    mt_reading *r = mt_cuda_reading_new(set, bytes);
    r->aside = true;
    return r;
}

bool mt_cuda_reading_come(mt_device *dev, mt_reading *r)
{
    return is_over(dev, r->come);
}

/* ---- to the device ---- */

mt_sending *mt_cuda_sending_new(mt_set *set, size_t bytes)
{
    mt_sending *s = mt_cuda_host(set, sizeof(*s));
    *s = (mt_sending){.host = mt_cuda_pinned(set, bytes), .bytes = bytes, .gone = mt_cuda_event(set)};
    return s;
}

void *mt_cuda_sending_room(mt_device *dev, mt_sending *s)
{
    (void)dev;
    return s->host;
}

void mt_cuda_send_aside(mt_device *dev, CUdeviceptr to, mt_sending *s, size_t at, size_t bytes)
{
    assert(at + bytes <= s->bytes);
    mt_cuda_do(dev, "take data from the host", to_device, to, s->host + at, bytes, mt_cuda_aside(dev));
    mt_cuda_do(dev, "take data from the host", event_record, s->gone, dev->aside);
    s->begun = true;
}

bool mt_cuda_sending_gone(mt_device *dev, mt_sending *s)
{
    if (s->begun)
        s->begun = !is_over(dev, s->gone);
    return !s->begun;
}

void mt_cuda_sending_wait(mt_device *dev, mt_sending *s)
{
    if (s->begun)
        mt_cuda_do(dev, "take data from the host", event_wait, s->gone);
    s->begun = false;
}
