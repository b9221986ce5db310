/* Loads the NVIDIA driver (driver.h). */
#include "device/cuda/host/driver.h"

#include <dlfcn.h>
#include <string.h>

#define OLDEST 12000 /* CUDA 12.0, which the embedded kernels need */

static bool find_all(mt_cuda_driver *d, mt_error *err)
{
    static const char *const symbols[] = {
#define SYMBOL(name, symbol, parameters) symbol,
        MT_CU_CALLS(SYMBOL)
#undef SYMBOL
    };
    void **field[] = {
#define FIELD(name, symbol, parameters) (void **)(void *)&d->name,
        MT_CU_CALLS(FIELD)
#undef FIELD
    };
    for (size_t i = 0; i < MT_COUNT(symbols); i++) {
        *field[i] = dlsym(d->library, symbols[i]);
        if (!*field[i])
            return mt_fail(err, MT_E_UNSUPPORTED, "the NVIDIA driver has no %s; install a driver for CUDA %d or later",
                           symbols[i], OLDEST / 1000);
    }
    return true;
}

const char *mt_cuda_driver_text(const mt_cuda_driver *d, CUresult error)
{
    const char *text = NULL;
    return d->error_string(error, &text) == 0 && text ? text : "an unknown error";
}

static bool start(mt_cuda_driver *d, mt_error *err)
{
    int version = 0;
    const CUresult error = d->init(0);
    if (error)
        return mt_fail(err, MT_E_UNSUPPORTED, "the NVIDIA driver does not start: %s; look at nvidia-smi",
                       mt_cuda_driver_text(d, error));
    if (d->driver_version(&version) || version < OLDEST)
        return mt_fail(err, MT_E_UNSUPPORTED, "the NVIDIA driver is one for CUDA %d.%d; %d.0 or later is needed",
                       version / 1000, version % 1000 / 10, OLDEST / 1000);
    return true;
}

bool mt_cuda_driver_open(mt_cuda_driver *d, mt_error *err)
{
    memset(d, 0, sizeof(*d));
    /* never unloaded: the driver has threads of its own */
    d->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!d->library)
        return mt_fail(err, MT_E_NOT_FOUND, "there is no NVIDIA driver here (libcuda.so.1); use --device cpu");
    if (find_all(d, err) && start(d, err))
        return true;
    mt_cuda_driver_close(d);
    return false;
}

void mt_cuda_driver_close(mt_cuda_driver *d)
{
    if (d->library)
        dlclose(d->library);
    d->library = NULL;
}
