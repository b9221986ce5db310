/* Times every call to a device: a table of functions in front of the backend's own that computes what an operation has
   to move and multiply, runs it, waits for it, and records how long it took. Used by `motet bench`; a device that is
   not timed does not pass through here. */
#ifndef MT_DEVICE_TIMED_H
#define MT_DEVICE_TIMED_H

#include "device/device.h"

/* The least work that an operation must do. */
typedef struct mt_work {
    double bytes;   /* each counted once: weights, cached keys and values, states, input and output rows */
    double weights; /* of these, matrices of products; of experts those that are chosen */
    double ops;     /* a multiply-add is two */
    mt_arithmetic arithmetic;
    size_t m, n, k; /* of a product: rows, columns of all weights, width; else rows only */
} mt_work;

typedef struct mt_timing {
    const char *name; /* "op_matmul" */
    /* mt_clock_ns */
    uint64_t begin, end;
    mt_work work;
    mt_host_work host;
} mt_timing;

/* Calls in their order; calls beyond capacity are counted in dropped. */
typedef struct mt_timings {
    mt_timing *at;
    size_t count, capacity, dropped;
} mt_timings;

typedef struct mt_timed mt_timed;

/* Borrows both until mt_timed_end. */
mt_timed *mt_timed_begin(mt_device *dev, mt_timings *timings);
void mt_timed_end(mt_timed *timed); /* restores the device; NULL is fine */

/* Bytes of a matrix with its scales. */
double mt_work_mat_bytes(const mt_mat *mat);

#endif
