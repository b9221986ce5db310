/* A backend: what a kind of device implements, as a name and a function for everything that device.h declares. Each
   backend defines its own struct mt_device, mt_set and so on, which no other code looks into, except the heads
   below.

   A function that is NULL has a fallback (fallback.h), except name, open, close, describe, device_memory, device_wait
   and the four functions of memory. A backend with fallbacks uses their objects. */
#ifndef MT_DEVICE_BACKEND_H
#define MT_DEVICE_BACKEND_H

#include "device/device.h"

typedef struct mt_memory mt_memory; /* a piece of a device's memory */
typedef struct mt_fallback mt_fallback;

typedef struct mt_backend {
    const char *name;
    /* Features of processors (MT_CPU_, kernels/kernels.h) that its fallback does without, so that what the CPU computes
       has the same bits on every host. */
    unsigned without;
    /* Borrows the host. */
    mt_device *(*open)(const mt_device_params *params, mt_host *host, mt_error *err);
    void (*close)(mt_device *dev);
    bool (*renew)(mt_device *dev, mt_error *err);
    const char *(*describe)(const mt_device *dev);
    mt_set *(*set_new)(mt_device *dev);
    void (*set_free)(mt_set *set);
    /* For the fallback alone: memory of zeros (NULL: there is none), and copies to and from byte `at` of it, which are
       made behind everything that was enqueued before, and are complete when the function returns. */
    mt_memory *(*memory_new)(mt_device *dev, size_t bytes);
    void (*memory_free)(mt_device *dev, mt_memory *memory);
    void (*memory_write)(mt_device *dev, mt_memory *memory, size_t at, const void *data, size_t bytes);
    void (*memory_read)(mt_device *dev, const mt_memory *memory, size_t at, void *data, size_t bytes);
#define MT_BACKEND_FIELD(result, name, parameters, arguments) result(*name) parameters;
    MT_DEVICE_OBJECTS(MT_BACKEND_FIELD)
    MT_DEVICE_ANSWERS(MT_BACKEND_FIELD)
    MT_DEVICE_CALLS(MT_BACKEND_FIELD)
    MT_DEVICE_OPERATIONS(MT_BACKEND_FIELD)
#undef MT_BACKEND_FIELD
} mt_backend;

/* The first member of every backend's struct mt_device, and of its struct mt_set. */
typedef struct mt_device_head {
    const mt_backend *backend;
    mt_host *host;
    mt_host *own; /* the same, where the device owns it; NULL: it is shared */
    mt_precision precision;
    mt_kv_bits kv_bits;
    mt_numerics numerics;
    mt_ranks *ranks;       /* NULL: there is one rank */
    uint32_t serial;       /* number of the device, as mt_device_open counts */
    mt_progress *progress; /* where loading of weights is reported; NULL: nowhere */
    mt_fallback *fallback; /* NULL: the backend has all functions */
} mt_device_head;

typedef struct mt_set_head {
    mt_device *dev;
} mt_set_head;

/* Increased with every change of a rule of docs/numerics.md: part of each backend's fingerprint (R12). */
#define MT_NUMERICS_VERSION 4u

/* Adds a backend to those that mt_device_open finds by name. For tests, before the first device is opened. */
void mt_backend_add(const mt_backend *backend);

extern const mt_backend mt_backend_cpu;
#if defined(MT_CUDA)
extern const mt_backend mt_backend_cuda;
#endif
extern const mt_backend mt_backend_vulkan; /* without a name where motet is built without it */

#endif
