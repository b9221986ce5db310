/* Finds a GPU and opens it with its kernels, closes it, and opens it anew after a fault.

   1. Each device has a context of its own, so that a fault of one engine does not affect another, and one can be opened
      anew while others compute. The driver's primary context, which all would share, would have to be released by all
      first.
   2. The code that the driver took from the images decides which kernels are launched, not the card: newer cards run
      code for older ones. Every image has every kernel. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/cuda/cuda.h"

#define OLDEST 80 /* least compute capability that there is code for */

extern const unsigned char *const mt_cuda_images[]; /* a fatbin for each file of kernels, then NULL: see images.S.in */

/* ---- kernels ---- */

static bool load_images(mt_device *dev, mt_error *err)
{
    for (size_t i = 0; mt_cuda_images[i]; i++) {
        assert(i < MT_COUNT(dev->module));
        const CUresult error = dev->cu.module_load(&dev->module[i], mt_cuda_images[i]);
        if (error && strcmp((const char *)mt_cuda_images[i], "no kernels") == 0)
            return mt_fail(err, MT_E_UNSUPPORTED,
                           "this program was built without kernels for GPUs: build it where nvcc and the card are, or "
                           "with -Dcuda=enabled, or use --device cpu");
        if (error)
            return mt_fail(err, MT_E_UNSUPPORTED,
                           "the driver takes none of this program's kernels for %s: %s; install a newer driver, or use "
                           "--device cpu",
                           dev->name, mt_cuda_driver_text(&dev->cu, error));
    }
    return true;
}

static CUresult find(mt_device *dev, const char *name, CUfunction *function)
{
    CUresult error = 0;
    for (size_t i = 0; i < MT_COUNT(dev->module) && dev->module[i]; i++)
        if ((error = dev->cu.module_function(function, dev->module[i], name)) == 0)
            return 0;
    return error;
}

/* Allows a kernel to use all shared memory that a block may have. */
static CUresult widen(mt_device *dev, CUfunction function)
{
    int own = 0;
    const CUresult error = dev->cu.function_get(&own, MT_CU_FUNC_STATIC_BYTES, function);
    return error ? error : dev->cu.function_set(function, MT_CU_FUNC_SHARED_BYTES, dev->shared - own);
}

static bool find_kernels(mt_device *dev, mt_error *err)
{
    static const char *const names[] = {
#define NAME(name, family, start) "mtk_" #name,
        MT_CUDA_KERNELS(NAME)
#undef NAME
    };
    CUresult error = 0;
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        if ((error = find(dev, names[i], &dev->kernel[i])) != 0 || (error = widen(dev, dev->kernel[i])) != 0)
            return mt_fail(err, MT_E_INTERNAL, "the kernel %s cannot be used: %s", names[i],
                           mt_cuda_driver_text(&dev->cu, error));
    }
    error = dev->cu.function_get(&dev->code, MT_CU_FUNC_PTX_VERSION, dev->kernel[0]);
    return !error || mt_fail(err, MT_E_INTERNAL, "the driver does not say what kernels it took: %s",
                             mt_cuda_driver_text(&dev->cu, error));
}

/* Tensor cores of other cards add in other ways than the rule of `native` says. */
static bool choose_numerics(mt_device *dev, mt_error *err)
{
    if (dev->head.numerics == MT_NUMERICS_AUTO)
        dev->head.numerics =
            dev->code == 90 && dev->head.precision == MT_PRECISION_FAST ? MT_NUMERICS_NATIVE : MT_NUMERICS_PORTABLE;
    if (dev->head.numerics == MT_NUMERICS_NATIVE)
        snprintf(dev->name + strlen(dev->name), sizeof(dev->name) - strlen(dev->name), ", arithmetic native");
    return dev->head.numerics != MT_NUMERICS_NATIVE || dev->code == 90 ||
           mt_fail(
               err, MT_E_UNSUPPORTED,
               "--arithmetic native needs a GPU of compute capability 9.0 and kernels for it, and %s has kernels for "
               "sm_%d; leave it out",
               dev->name, dev->code);
}

/* ---- the card ---- */

static bool find_card(mt_device *dev, mt_error *err)
{
    int count = 0;
    if (dev->cu.device_count(&count) || count == 0)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "the NVIDIA driver knows no GPU; look at nvidia-smi, or use --device cpu");
    if (dev->number >= count)
        return mt_fail(err, MT_E_UNSUPPORTED, "there is no GPU number %d: the driver knows %d, from 0 on", dev->number,
                       count);
    return true;
}

static bool describe_card(mt_device *dev, mt_error *err)
{
    char name[80] = "";
    int major = 0, minor = 0;
    size_t total = 0;
    if (dev->cu.device_get(&dev->device, dev->number) || dev->cu.device_name(name, sizeof(name), dev->device) ||
        dev->cu.device_memory(&total, dev->device) ||
        dev->cu.device_attribute(&major, MT_CU_ATTRIBUTE_MAJOR, dev->device) ||
        dev->cu.device_attribute(&minor, MT_CU_ATTRIBUTE_MINOR, dev->device) ||
        dev->cu.device_attribute(&dev->processors, MT_CU_ATTRIBUTE_MULTIPROCESSORS, dev->device) ||
        dev->cu.device_attribute(&dev->shared, MT_CU_ATTRIBUTE_SHARED_BYTES, dev->device))
        return mt_fail(err, MT_E_IO, "GPU %d does not answer; look at nvidia-smi", dev->number);
    dev->capability = major * 10 + minor;
    snprintf(dev->name, sizeof(dev->name), "cuda:%d (%s, sm_%d, %d multiprocessors, %.1f GiB)", dev->number, name,
             dev->capability, dev->processors, (double)total / (1 << 30));
    return dev->capability >= OLDEST ||
           mt_fail(err, MT_E_UNSUPPORTED,
                   "%s is too old: compute capability %d.%d or later is needed; use --device cpu", dev->name,
                   OLDEST / 10, OLDEST % 10);
}

static bool enter(mt_device *dev, mt_error *err)
{
    size_t total = 0, left = 0;
    CUresult error = dev->cu.context_new(&dev->context, 0, dev->device);
    if (!error)
        error = dev->cu.memory_info(&left, &total);
    if (!error)
        error = dev->cu.host_alloc((void **)&dev->staging, MT_CUDA_STAGING);
    if (!error)
        error = dev->cu.alloc(&dev->step_memory, MT_CUDA_STAGING);
    dev->memory = left;
    return !error || mt_fail(err, MT_E_IO, "%s cannot be used: %s; look at nvidia-smi for who else uses it", dev->name,
                             mt_cuda_driver_text(&dev->cu, error));
}

static void leave(mt_device *dev)
{
    mt_cuda_aside_close(dev);
    mt_cuda_launcher_close(dev);
    if (dev->staging)
        (void)dev->cu.host_free(dev->staging);
    if (dev->step_memory)
        (void)dev->cu.free(dev->step_memory);
    for (size_t i = 0; i < MT_COUNT(dev->module) && dev->module[i]; i++)
        (void)dev->cu.module_unload(dev->module[i]);
    if (dev->context)
        (void)dev->cu.context_free(dev->context);
    mt_cuda_driver_close(&dev->cu);
}

bool mt_cuda_open_gpu(mt_device *dev, mt_error *err)
{
    if (mt_cuda_ways_read(&dev->ways, getenv("MOTET_CUDA"), err) && mt_cuda_driver_open(&dev->cu, err) &&
        find_card(dev, err) && describe_card(dev, err) && enter(dev, err) && load_images(dev, err) &&
        find_kernels(dev, err) && choose_numerics(dev, err) && mt_cuda_launcher_open(dev, err) &&
        mt_cuda_aside_open(dev, err)) {
        dev->bytes = MT_CUDA_STAGING;
        dev->failed = false;
        return true;
    }
    mt_cuda_close_gpu(dev);
    return false;
}

/* Resets the device, except for its parameters. */
void mt_cuda_close_gpu(mt_device *dev)
{
    const mt_device_head head = dev->head;
    const int number = dev->number;
    const mt_cuda_fusion *fusions = dev->fusions;
    char name[sizeof(dev->name)];
    memcpy(name, dev->name, sizeof(name));
    if (dev->cu.library)
        leave(dev);
    *dev = (mt_device){.head = head, .number = number, .fusions = fusions, .failed = true};
    memcpy(dev->name, name, sizeof(name));
    mt_fail(&dev->fault, MT_E_IO, "the GPU is not open");
}
