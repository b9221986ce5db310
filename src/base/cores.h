/* How many processor cores there are to compute on. */
#ifndef MT_BASE_CORES_H
#define MT_BASE_CORES_H

#include <stddef.h>

/* Cores this process may run on: the affinity mask. At least 1. */
size_t mt_cores_allowed(void);

/* The fast ones of these (on a machine with cores of several kinds), no more than the process's CPU quota buys.
   At least 1. */
size_t mt_cores_fast(void);

/* The same, for a machine whose /sys and /proc are below root and whose cores 0..count-1 are allowed where
   allowed[i] is not 0. For tests. */
size_t mt_cores_fast_at(const char *root, const unsigned char *allowed, size_t count);

#endif
