/* Times every call that a device is given: a table of functions in front of the backend's own, which counts what each
   operation has to move and to multiply, has it done, waits for it and notes how long that took. A device that nobody
   times does not pass through here. */
#ifndef MT_DEVICE_TIMED_H
#define MT_DEVICE_TIMED_H

#include "device/device.h"

/* What an operation cannot do without. */
typedef struct mt_work {
    double bytes;   /* read and written once: weights, cached keys and values, states, and rows going in and out */
    double weights; /* of these, the matrices of products; of experts those that are chosen */
    double ops;     /* a multiply-add is two */
    mt_arithmetic arithmetic;
    size_t m, n, k; /* of a product: rows, columns of all weights, width; else rows */
} mt_work;

typedef struct mt_timing {
    const char *name; /* "op_matmul" */
    uint64_t begin, end;
    mt_work work;
    mt_host_work host;
} mt_timing;

/* Calls in their order. One that finds no room is counted and dropped. */
typedef struct mt_timings {
    mt_timing *at;
    size_t count, capacity, dropped;
} mt_timings;

typedef struct mt_timed mt_timed;

/* Borrows both until mt_timed_end. */
mt_timed *mt_timed_begin(mt_device *dev, mt_timings *timings);
void mt_timed_end(mt_timed *timed); /* the device is as before; NULL is fine */

/* Bytes of a matrix with its scales. */
double mt_work_mat_bytes(const mt_mat *mat);

#endif
