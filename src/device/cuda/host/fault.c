/* Faults of a GPU. The first failed driver call is recorded and is the device's fault until it is opened anew: nothing
   is computed any more, and results since then are invalid. */
#include "base/log.h"
#include "device/cuda/cuda.h"

bool mt_cuda_ok(mt_device *dev, CUresult error, const char *what)
{
    if (!error)
        return true;
    if (!dev->failed) {
        mt_fail(&dev->fault, MT_E_IO, "the GPU could not %s: %s", what, mt_cuda_driver_text(&dev->cu, error));
        mt_log_error("cuda.failed", "%s could not %s: %s", dev->name, what, mt_cuda_driver_text(&dev->cu, error));
    }
    dev->failed = true;
    return false;
}

void mt_cuda_lack(mt_device *dev, size_t bytes)
{
    if (!dev->failed)
        mt_fail(&dev->fault, MT_E_MEMORY,
                "the GPU has %.0f MiB, of which %.0f are in use, and %.0f more are needed: lower --batch-tokens or "
                "--max-sequences, or take a smaller model",
                (double)dev->memory / (1 << 20), (double)dev->bytes / (1 << 20), (double)bytes / (1 << 20));
    dev->failed = true;
}

void mt_cuda_refuse(mt_device *dev, const char *what)
{
    if (!dev->failed)
        mt_fail(&dev->fault, MT_E_UNSUPPORTED, "the GPU does not compute %s", what);
    dev->failed = true;
}

bool mt_cuda_device_well(const mt_device *dev, mt_error *err)
{
    return !dev->failed || mt_fail(err, dev->fault.code, "%s", dev->fault.text);
}
