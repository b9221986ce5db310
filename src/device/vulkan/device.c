/* The Vulkan device: runs shaders on one queue of a GPU of any vendor. Objects are those of the fallback
   (fallback.h), and the CPU computes what has no shader here. Its bits are the CPU's without BFMMLA and AMX, and so
   is its fingerprint: shaders use integers, and of floats only sums and products that are rounded once to nearest
   even. */
#include <string.h>

#include "base/alloc.h"
#include "device/vulkan/operations.h"
#include "kernels/kernels.h"

static mt_device *open_vulkan(const mt_device_params *params, mt_host *host, mt_error *err)
{
    /* not by itself: the CPU is faster as long as it computes most operations anyway */
    if (!params->name || strcmp(params->name, "auto") == 0) {
        mt_fail(err, MT_E_NOT_FOUND, "--device vulkan asks for it");
        return NULL;
    }
    if (params->numerics == MT_NUMERICS_NATIVE) {
        mt_fail(err, MT_E_UNSUPPORTED,
                "--arithmetic native is for NVIDIA GPUs of compute capability 9.0 and --device cuda; leave it out");
        return NULL;
    }
    mt_device *dev = mt_alloc(sizeof(*dev));
    *dev = (mt_device){.head = {.backend = &mt_backend_vulkan,
                                .host = host,
                                .precision = params->precision,
                                .kv_bits = params->kv_bits,
                                .numerics = MT_NUMERICS_PORTABLE},
                       .number = params->number};
    if (mt_vulkan_open_gpu(dev, err))
        return dev;
    mt_free(dev);
    return NULL;
}

static void let_go(mt_device *dev)
{
    if (dev->packed)
        mt_vulkan_memory_free(dev, dev->packed);
    if (dev->step)
        mt_vulkan_memory_free(dev, dev->step);
    mt_free(dev->step_host);
    dev->packed = dev->step = NULL;
    dev->step_host = NULL;
    mt_vulkan_close_gpu(dev);
}

static void close_vulkan(mt_device *dev)
{
    let_go(dev);
    mt_free(dev);
}

static bool renew(mt_device *dev, mt_error *err)
{
    let_go(dev);
    return mt_vulkan_open_gpu(dev, err);
}

static const char *describe(const mt_device *dev)
{
    return dev->name;
}

static bool device_well(const mt_device *dev, mt_error *err)
{
    return !dev->failed || mt_fail(err, MT_E_INTERNAL, "%s", dev->why);
}

const mt_backend mt_backend_vulkan = {.name = "vulkan",
                                      .without = MT_CPU_BF16 | MT_CPU_AMX,
                                      .open = open_vulkan,
                                      .close = close_vulkan,
                                      .renew = renew,
                                      .describe = describe,
                                      .memory_new = mt_vulkan_memory_new,
                                      .memory_free = mt_vulkan_memory_free,
                                      .memory_write = mt_vulkan_memory_write,
                                      .memory_read = mt_vulkan_memory_read,
                                      .device_memory = mt_vulkan_device_memory,
                                      .device_well = device_well,
                                      .device_wait = mt_vulkan_finish,
                                      .device_plan = mt_vulkan_device_plan,
                                      .step_begin = mt_vulkan_step_begin,
                                      .weight_new = mt_vulkan_weight_new,
#define FIELD(name) .name = mt_vulkan_##name,
                                      MT_VULKAN_OPERATIONS(FIELD)
#undef FIELD
};
