/* The fallback: what a device computes that its backend cannot. A backend needs nine functions of its table (docs/
   architecture.md, "Devices"); each operation that it lacks is computed by the CPU device on copies: inputs are read
   from the device's memory, outputs are written back. That is slow, and has the CPU's bits. A backend with all
   functions has no fallback and none of the objects below. */
#ifndef MT_DEVICE_FALLBACK_H
#define MT_DEVICE_FALLBACK_H

#include "device/backend.h"

/* The objects of a device with a fallback, for the operations that its backend has. host: the CPU device's copy, of
   which the backend knows nothing; the layout in memory is the same. */
typedef struct mt_plain_tensor {
    mt_tensor *host;
    mt_memory *memory;
    size_t offset, rows, cols, stride; /* floats before the first element, and from one row to the next */
} mt_plain_tensor;

typedef struct mt_plain_index {
    mt_index *host;
    mt_memory *memory; /* uint32_t [count] */
} mt_plain_index;

typedef struct mt_plain_kv {
    mt_kv *host;
    mt_memory *memory; /* pages of mt_kv_page_bytes */
} mt_plain_kv;

typedef struct mt_plain_states {
    mt_states *host;
    mt_memory *memory, *memos; /* slots of mt_state_slot_bytes; memos of memo_bytes */
    size_t memo_bytes;
} mt_plain_states;

/* A backend that multiplies makes weights and experts of its own (weight_new, experts_new). Their structs begin with
   these, which it leaves as they are: zeros. */
typedef struct mt_plain_weight {
    mt_weight *host;
} mt_plain_weight;

typedef struct mt_plain_experts {
    mt_experts *host;
    mt_plain_weight *weight; /* [count][3]: gate, up and down */
} mt_plain_experts;

/* For such functions: memory of zeros of the host, and of the device (NULL: there is none), both freed with the set. */
void *mt_plain_alloc(mt_set *set, size_t bytes);
mt_memory *mt_plain_memory(mt_set *set, size_t bytes);

/* Whether a backend has all functions, so that it needs no fallback. */
bool mt_fallback_unneeded(const mt_backend *backend);

/* Puts the fallback in front of the backend of a device that was just opened. False with a sentence. */
bool mt_fallback_begin(mt_device *dev, const mt_device_params *params, mt_error *err) MT_NODISCARD;

/* After the device was closed. NULL is fine. */
void mt_fallback_end(mt_fallback *fallback);

/* The fallback's functions alone: for a backend whose own does not take what it was given. */
const mt_backend *mt_fallback_host(const mt_device *dev);

/* The backend's own table. */
const mt_backend *mt_fallback_backend(const mt_fallback *fallback);

#endif
