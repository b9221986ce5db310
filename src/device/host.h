/* The machine that a device hangs on: its threads and its kernels, for work that is the host's whatever device
   computes. Devices that share it run one thing at a time: who comes while another's is run waits for it. */
#ifndef MT_DEVICE_HOST_H
#define MT_DEVICE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernels/kernels.h"

typedef struct mt_host mt_host;

typedef struct mt_host_params {
    size_t threads;    /* 0: the machine's performance cores */
    unsigned cpu_mask; /* features that may be used; ~0u for all */
} mt_host_params;

/* NULL on failure. Free with mt_host_close. */
mt_host *mt_host_open(const mt_host_params *params, mt_error *err) MT_NODISCARD;
void mt_host_close(mt_host *host); /* NULL is fine */

uint64_t mt_host_memory(void); /* bytes that the machine has */
size_t mt_host_threads(const mt_host *host);
const mt_kernels *mt_host_kernels(const mt_host *host);

/* fn for items [0, items) on the host's threads; worker is below mt_host_threads. From any thread, but not from fn. */
void mt_host_run(mt_host *host, void (*fn)(void *ctx, size_t item, size_t worker), void *ctx, size_t items);

/* What the threads did in runs, in nanoseconds. `wall` of all threads is busy, or lost: before a thread's first item,
   after its last one, and between its items. */
typedef struct mt_host_work {
    uint64_t wall;                     /* from a run's begin to its end */
    uint64_t busy, late, idle, claims; /* of all threads together */
} mt_host_work;

/* Adds up in `work` what is run from here on; NULL: no more. Runs take a little longer meanwhile. */
void mt_host_measure(mt_host *host, mt_host_work *work);

#endif
