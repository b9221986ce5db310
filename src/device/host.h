/* The host: the machine's threads and kernels, for work that is done by the CPU whatever device computes. Devices may
   share a host; calls with several items run one at a time, and others wait. */
#ifndef MT_DEVICE_HOST_H
#define MT_DEVICE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct mt_kernels mt_kernels; /* kernels/kernels.h */
typedef struct mt_host mt_host;

typedef struct mt_host_params {
    size_t threads;    /* 0: as many as the machine has performance cores */
    unsigned cpu_mask; /* CPU features that may be used; ~0u: all */
} mt_host_params;

/* NULL on failure. Free with mt_host_close. */
mt_host *mt_host_open(const mt_host_params *params, mt_error *err) MT_NODISCARD;
void mt_host_close(mt_host *host); /* NULL is fine */

uint64_t mt_host_memory(void); /* the machine's, or what its container may have */
size_t mt_host_threads(const mt_host *host);
const mt_kernels *mt_host_kernels(const mt_host *host);

/* Calls fn for items [0, items) on the host's threads, the calling one among them; returns when all are done. worker is
   below mt_host_threads, and no two threads of one call have the same. A single item runs on the calling thread at
   once, as worker 0, even while another call runs: so two calls must not share what a worker writes to. From any
   thread, but not from fn. */
void mt_host_run(mt_host *host, void (*fn)(void *ctx, size_t item, size_t worker), void *ctx, size_t items);

/* What the threads did in runs, in nanoseconds. Each thread's wall time is busy or lost: late before its first item,
   claims between its items, idle behind its last. */
typedef struct mt_host_work {
    uint64_t wall;                     /* from the begin of runs to their end */
    uint64_t busy, late, idle, claims; /* summed over threads */
} mt_host_work;

/* Adds what is run from here on to *work, except calls with a single item; NULL: no longer. Runs are a little slower
   meanwhile. Call only while nothing runs: no lock is taken. */
void mt_host_measure(mt_host *host, mt_host_work *work);

#endif
