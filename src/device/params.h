/* How a device is opened. */
#ifndef MT_DEVICE_PARAMS_H
#define MT_DEVICE_PARAMS_H

#include "device/host.h"

typedef struct mt_ranks mt_ranks; /* ranks/ranks.h */

typedef enum mt_precision {
    MT_PRECISION_FAST,     /* int8 with quantised weights, bf16 with bf16 weights; fp32 elsewhere */
    MT_PRECISION_REFERENCE /* fp32 with exactly dequantised weights */
} mt_precision;

/* How products with quantised weights are computed in fast precision (docs/numerics.md): with the bits of every device
   that follows R3 and R4, or with those of tensor cores of sm_90. A device has one of the first two. */
typedef enum mt_numerics {
    MT_NUMERICS_PORTABLE,
    MT_NUMERICS_NATIVE,
    MT_NUMERICS_SM90,         /* on a CPU: native, and where R5 leaves open how to add, as tensor cores of sm_90 do */
    MT_NUMERICS_AUTO,         /* native where that is the device's own, in fast precision; else portable */
    MT_NUMERICS_SM90_PORTABLE /* portable, and adding likewise */
} mt_numerics;

/* How cached keys and values are stored: in 16 bits (fp32 in reference precision), or as integers with a scale for each
   vector. */
typedef enum mt_kv_bits { MT_KV_BITS_16, MT_KV_BITS_8, MT_KV_BITS_4 } mt_kv_bits;

typedef struct mt_device_params {
    /* "cpu", "cuda", "cuda:1" for the second of several, "vulkan"; NULL, "auto": a GPU that works here, else the CPU */
    const char *name;
    int number; /* which of several; mt_device_open reads it from the name */
    mt_precision precision;
    mt_kv_bits kv_bits;
    mt_numerics numerics;
    mt_host_params host; /* threads and kernels of the host */
    mt_ranks *ranks;     /* the ranks that compute together, this one included; borrowed; NULL: there is one rank */
    mt_host *shared;     /* used instead of an own host; borrowed. Devices that share a host compute one at a time */
} mt_device_params;

#endif
