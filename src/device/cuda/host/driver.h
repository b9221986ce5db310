/* The part of the NVIDIA driver's interface that is used, as plain C; its functions are found at run time. */
#ifndef MT_DEVICE_CUDA_HOST_DRIVER_H
#define MT_DEVICE_CUDA_HOST_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

/* Structs of the driver. */
typedef struct CUlaunchAttribute {
    unsigned id;
    union {
        int allowed;
        unsigned cluster[3]; /* blocks, along each axis */
        uint64_t all[8];
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned grid[3], block[3], shared;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
} CUlaunchConfig;

typedef struct CUmemcpy2D {
    size_t from_x, from_y;
    unsigned from_type;
    const void *from_host;
    CUdeviceptr from;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    unsigned to_type;
    void *to_host;
    CUdeviceptr to;
    void *to_array;
    size_t to_pitch, width, height;
} CUmemcpy2D;

/* Values of the driver's enumerations, which never change. */
enum {
    MT_CU_ATTRIBUTE_MULTIPROCESSORS = 16,
    MT_CU_ATTRIBUTE_MAJOR = 75,
    MT_CU_ATTRIBUTE_MINOR = 76,
    MT_CU_ATTRIBUTE_SHARED_BYTES = 97, /* of a block that asks for it */
    MT_CU_FUNC_STATIC_BYTES = 1,       /* shared memory that a kernel has by itself */
    MT_CU_FUNC_PTX_VERSION = 5,
    MT_CU_FUNC_SHARED_BYTES = 8,
    MT_CU_STREAM_NON_BLOCKING = 1,
    MT_CU_EVENT_WITHOUT_TIME = 2,
    MT_CU_NOT_READY = 600, /* not an error: an event has not happened yet */
    MT_CU_CAPTURE_RELAXED = 2,
    MT_CU_LAUNCH_CLUSTER = 4,
    MT_CU_LAUNCH_PROGRAMMATIC = 6,
    MT_CU_MEMORY_HOST = 1,
    MT_CU_MEMORY_DEVICE = 2
};

/* Marks of a kernel's parameters as one block: before its address, before its size, and at the end. */
#define MT_CU_PARAMETER_AT ((void *)1)
#define MT_CU_PARAMETER_SIZE ((void *)2)
#define MT_CU_PARAMETER_END ((void *)0)

/* X(name, symbol, parameters): the symbol contains the version of the interface. */
/* clang-format off */
#define MT_CU_CALLS(X)                                                                                                 \
    X(init, "cuInit", (unsigned flags))                                                                                \
    X(driver_version, "cuDriverGetVersion", (int *version))                                                            \
    X(error_string, "cuGetErrorString", (CUresult error, const char **text))                                           \
    X(device_count, "cuDeviceGetCount", (int *count))                                                                  \
    X(device_get, "cuDeviceGet", (CUdevice *device, int ordinal))                                                      \
    X(device_name, "cuDeviceGetName", (char *name, int len, CUdevice device))                                          \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device))                          \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t *bytes, CUdevice device))                                          \
    X(context_new, "cuCtxCreate_v2", (CUcontext *context, unsigned flags, CUdevice device))                            \
    X(context_free, "cuCtxDestroy_v2", (CUcontext context))                                                            \
    X(context_use, "cuCtxSetCurrent", (CUcontext context))                                                             \
    X(module_load, "cuModuleLoadData", (CUmodule *module, const void *image))                                          \
    X(module_unload, "cuModuleUnload", (CUmodule module))                                                              \
    X(module_function, "cuModuleGetFunction", (CUfunction *function, CUmodule module, const char *name))               \
    X(function_set, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))                             \
    X(function_get, "cuFuncGetAttribute", (int *value, int attribute, CUfunction function))                            \
    X(memory_info, "cuMemGetInfo_v2", (size_t *free, size_t *total))                                                   \
    X(alloc, "cuMemAlloc_v2", (CUdeviceptr *at, size_t bytes))                                                         \
    X(free, "cuMemFree_v2", (CUdeviceptr at))                                                                          \
    X(host_alloc, "cuMemAllocHost_v2", (void **at, size_t bytes))                                                      \
    X(host_free, "cuMemFreeHost", (void *at))                                                                          \
    X(stream_new, "cuStreamCreate", (CUstream *stream, unsigned flags))                                                \
    X(stream_free, "cuStreamDestroy_v2", (CUstream stream))                                                            \
    X(stream_wait, "cuStreamSynchronize", (CUstream stream))                                                           \
    X(stream_after, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags))                             \
    X(event_new, "cuEventCreate", (CUevent *event, unsigned flags))                                                    \
    X(event_free, "cuEventDestroy_v2", (CUevent event))                                                                \
    X(event_record, "cuEventRecord", (CUevent event, CUstream stream))                                                 \
    X(event_query, "cuEventQuery", (CUevent event))                                                                    \
    X(event_wait, "cuEventSynchronize", (CUevent event))                                                               \
    X(to_device, "cuMemcpyHtoDAsync_v2", (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))            \
    X(to_host, "cuMemcpyDtoHAsync_v2", (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                    \
    X(copy, "cuMemcpyDtoDAsync_v2", (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                 \
    X(set_bytes, "cuMemsetD8Async", (CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream))              \
    X(copy_rows, "cuMemcpy2DAsync_v2", (const CUmemcpy2D *copy, CUstream stream))                                      \
    X(launch, "cuLaunchKernelEx",                                                                                      \
      (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))                            \
    X(capture_begin, "cuStreamBeginCapture_v2", (CUstream stream, int mode))                                           \
    X(capture_end, "cuStreamEndCapture", (CUstream stream, CUgraph *graph))                                            \
    X(graph_free, "cuGraphDestroy", (CUgraph graph))                                                                   \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                                                \
      (CUgraphExec *exec, CUgraph graph, unsigned long long flags))                                                    \
    X(graph_exec_free, "cuGraphExecDestroy", (CUgraphExec exec))                                                       \
    X(graph_launch, "cuGraphLaunch", (CUgraphExec exec, CUstream stream))
/* clang-format on */

typedef struct mt_cuda_driver {
#define MT_CU_FIELD(name, symbol, parameters) CUresult(*name) parameters;
    MT_CU_CALLS(MT_CU_FIELD)
#undef MT_CU_FIELD
    void *library;
} mt_cuda_driver;

/* Loads libcuda.so.1, finds all functions above, and initialises the driver. False with a sentence. */
bool mt_cuda_driver_open(mt_cuda_driver *driver, mt_error *err) MT_NODISCARD;
void mt_cuda_driver_close(mt_cuda_driver *driver);

/* The driver's name of an error; never NULL. */
const char *mt_cuda_driver_text(const mt_cuda_driver *driver, CUresult error);

#endif
