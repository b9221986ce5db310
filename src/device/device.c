/* The list of backends, and the functions of device.h, which call the device's backend. */
#include "device/device.h"

#include <ctype.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/backend.h"
#include "device/fallback.h"

/* In the order in which they are tried. */
static const mt_backend *const backends[] = {
#if defined(MT_CUDA)
    &mt_backend_cuda,
#endif
    &mt_backend_vulkan,
    &mt_backend_cpu,
};

static const mt_backend *added; /* found by name only */

void mt_backend_add(const mt_backend *backend)
{
    added = backend;
}

static const mt_device_head *head_of(const mt_device *dev)
{
    return (const mt_device_head *)dev;
}

static const mt_backend *of_device(const mt_device *dev)
{
    return head_of(dev)->backend;
}

static const mt_backend *of_set(const mt_set *set)
{
    return of_device(((const mt_set_head *)set)->dev);
}

const char *mt_device_names(void)
{
#if defined(MT_CUDA)
#define CUDA ", cuda, cuda:N"
#else
#define CUDA ""
#endif
    return mt_backend_vulkan.name ? "auto, cpu" CUDA ", vulkan, vulkan:N" : "auto, cpu" CUDA;
#undef CUDA
}

/* The backend with that name, which may end with a number: "cuda:1"; NULL: none. */
static const mt_backend *find(const char *name, int *number)
{
    const size_t len = strcspn(name, ":");
    char *end = NULL;
    if (added && strcmp(added->name, name) == 0)
        return added;
    for (size_t i = 0; i < MT_COUNT(backends); i++) {
        if (!backends[i]->name || strlen(backends[i]->name) != len || memcmp(name, backends[i]->name, len) != 0)
            continue;
        *number = 0;
        if (!name[len])
            return backends[i];
        const unsigned long given = strtoul(name + len + 1, &end, 10);
        *number = given < INT_MAX ? (int)given : INT_MAX;
        return backends[i] != &mt_backend_cpu && isdigit((unsigned char)name[len + 1]) && !*end ? backends[i] : NULL;
    }
    return NULL;
}

/* The first backend that opens. Logs why a GPU that exists cannot be used. */
static mt_device *open_any(const mt_device_params *params, mt_host *host, mt_error *err)
{
    mt_device *dev = NULL;
    for (size_t i = 0; i < MT_COUNT(backends) && !dev; i++) {
        dev = backends[i]->name ? backends[i]->open(params, host, err) : NULL;
        if (!dev && backends[i]->name && err->code != MT_E_NOT_FOUND)
            mt_log_warn("device.unused", "no GPU is used: %s", err->text);
    }
    return dev;
}

mt_device *mt_device_open(const mt_device_params *given, mt_error *err)
{
    static atomic_uint opened;
    mt_device_params params = *given;
    mt_error why = {0};
    bool any = !params.name || strcmp(params.name, "auto") == 0;
    const mt_backend *backend = any ? NULL : find(params.name, &params.number);
    if (!any && !backend) {
        mt_fail(err, MT_E_UNSUPPORTED, "there is no device \"%.40s\" here; known are %s", params.name,
                mt_device_names());
        return NULL;
    }
    if (params.numerics == MT_NUMERICS_SM90 || params.numerics == MT_NUMERICS_SM90_PORTABLE) {
        if (!any && backend != &mt_backend_cpu) {
            mt_fail(err, MT_E_UNSUPPORTED,
                    "--arithmetic sm90 is what a CPU computes, to check a GPU's answers: give --device cpu, or for the "
                    "same on the GPU --arithmetic native");
            return NULL;
        }
        any = false;
        backend = &mt_backend_cpu;
        params.name = backend->name;
    }
    mt_host *own = params.shared ? NULL : mt_host_open(&params.host, &why), *host = own ? own : params.shared;
    mt_device *dev = !host ? NULL : any ? open_any(&params, host, &why) : backend->open(&params, host, &why);
    if (dev && !mt_fallback_unneeded(of_device(dev)) && !mt_fallback_begin(dev, &params, &why)) {
        of_device(dev)->close(dev);
        dev = NULL;
    }
    if (dev) {
        ((mt_device_head *)dev)->own = own;
        ((mt_device_head *)dev)->serial = atomic_fetch_add(&opened, 1);
        return dev;
    }
    mt_host_close(own);
    mt_fail(err, why.code, "%s", why.text);
    return NULL;
}

void mt_device_close(mt_device *dev)
{
    if (!dev)
        return;
    mt_host *own = head_of(dev)->own;
    mt_fallback *fallback = head_of(dev)->fallback;
    of_device(dev)->close(dev);
    mt_fallback_end(fallback);
    mt_host_close(own);
}

bool mt_device_renew(mt_device *dev, mt_error *err)
{
    return of_device(dev)->renew(dev, err);
}

mt_precision mt_device_precision(const mt_device *dev)
{
    return head_of(dev)->precision;
}

mt_kv_bits mt_device_kv_bits(const mt_device *dev)
{
    return head_of(dev)->kv_bits;
}

mt_numerics mt_device_numerics(const mt_device *dev)
{
    return head_of(dev)->numerics;
}

void mt_device_watch(mt_device *dev, mt_progress *progress)
{
    ((mt_device_head *)dev)->progress = progress;
}

mt_host *mt_device_host(mt_device *dev)
{
    return head_of(dev)->host;
}

mt_ranks *mt_device_ranks(const mt_device *dev)
{
    return head_of(dev)->ranks;
}

uint32_t mt_device_serial(const mt_device *dev)
{
    return head_of(dev)->serial;
}

const char *mt_device_lacks(const mt_device *dev, size_t i)
{
    const mt_backend *b = head_of(dev)->fallback ? mt_fallback_backend(head_of(dev)->fallback) : of_device(dev);
#define LACKS(result, name, parameters, arguments) \
    if (!b->name && i-- == 0)                      \
        return #name;
    MT_DEVICE_OPERATIONS(LACKS)
#undef LACKS
    return NULL;
}

const char *mt_device_name(const mt_device *dev)
{
    return of_device(dev)->describe(dev);
}

mt_set *mt_set_new(mt_device *dev)
{
    return of_device(dev)->set_new(dev);
}

void mt_set_free(mt_set *set)
{
    if (set)
        of_set(set)->set_free(set);
}

#define MAKE(result, name, parameters, arguments) \
    result mt_##name parameters                   \
    {                                             \
        return of_set(set)->name arguments;       \
    }
MT_DEVICE_OBJECTS(MAKE)
#undef MAKE

#define ASK(result, name, parameters, arguments) \
    result mt_##name parameters                  \
    {                                            \
        return of_device(dev)->name arguments;   \
    }
MT_DEVICE_ANSWERS(ASK)
#undef ASK

#define TELL(result, name, parameters, arguments) \
    result mt_##name parameters                   \
    {                                             \
        of_device(dev)->name arguments;           \
    }
MT_DEVICE_CALLS(TELL)
MT_DEVICE_OPERATIONS(TELL)
#undef TELL

mt_tensor *mt_tensor_of(mt_set *set, const float *data, size_t rows, size_t cols)
{
    mt_tensor *t = data ? mt_tensor_new(set, rows, cols) : NULL;
    if (t)
        mt_tensor_write(((const mt_set_head *)set)->dev, t, 0, rows, data);
    return t;
}

mt_index *mt_index_of(mt_set *set, const uint32_t *data, size_t count)
{
    mt_index *index = mt_index_new(set, count);
    mt_index_write(((const mt_set_head *)set)->dev, index, data, count);
    return index;
}
