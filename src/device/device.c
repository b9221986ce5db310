/* The devices there are, and the way from a call to the function of the one that it is about. */
#include "device/device.h"

#include <string.h>

#include "device/backend.h"

static const mt_backend *const backends[] = {&mt_backend_cpu};

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
    return "cpu";
}

static const mt_backend *find(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(backends); i++)
        if (!name || strcmp(name, backends[i]->name) == 0)
            return backends[i];
    return NULL;
}

mt_device *mt_device_open(const mt_device_params *params, mt_error *err)
{
    const mt_backend *backend = find(params->name);
    if (!backend) {
        mt_fail(err, MT_E_UNSUPPORTED, "there is no device \"%.40s\" here; known are %s", params->name,
                mt_device_names());
        return NULL;
    }
    mt_host *own = params->shared ? NULL : mt_host_open(&params->host, err), *host = own ? own : params->shared;
    mt_device *dev = host ? backend->open(params, host, err) : NULL;
    if (!dev)
        mt_host_close(own);
    else
        ((mt_device_head *)dev)->own = own;
    return dev;
}

void mt_device_close(mt_device *dev)
{
    if (!dev)
        return;
    mt_host *own = head_of(dev)->own;
    of_device(dev)->close(dev);
    mt_host_close(own);
}

mt_precision mt_device_precision(const mt_device *dev)
{
    return head_of(dev)->precision;
}

mt_kv_bits mt_device_kv_bits(const mt_device *dev)
{
    return head_of(dev)->kv_bits;
}

mt_host *mt_device_host(mt_device *dev)
{
    return head_of(dev)->host;
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
    for (size_t i = 0; t && i < rows; i++)
        mt_tensor_write(((const mt_set_head *)set)->dev, t, i, data + i * cols);
    return t;
}

mt_index *mt_index_of(mt_set *set, const uint32_t *data, size_t count)
{
    mt_index *index = mt_index_new(set, count);
    mt_index_write(((const mt_set_head *)set)->dev, index, data, count);
    return index;
}
