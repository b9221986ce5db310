/* How many processor cores there are to compute on. */
#ifndef MT_BASE_CORES_H
#define MT_BASE_CORES_H

#include <stddef.h>

/* Number of cores that this process may run on (affinity mask); at least 1. */
size_t mt_cores_allowed(void);

/* Number of fast cores among them, where cores differ, but no more than the process's CPU quota allows; at least 1. */
size_t mt_cores_fast(void);

/* For tests: the same for a machine whose /sys and /proc are below root; core i is allowed where allowed[i] is not
   0. */
size_t mt_cores_fast_at(const char *root, const unsigned char *allowed, size_t count);

#endif
