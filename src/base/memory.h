/* How much memory there is for this process. */
#ifndef MT_BASE_MEMORY_H
#define MT_BASE_MEMORY_H

#include <stdint.h>

/* Bytes: the machine's memory, but no more than the process's control group and the groups around it allow, which is
   how containers and services are bounded. Looked up by the first call, and not again: a process that has given up its
   files (confine.h) could not. */
uint64_t mt_memory_total(void);

/* For tests: the same for a machine of that much memory whose /sys and /proc are below root. */
uint64_t mt_memory_total_at(const char *root, uint64_t machine);

#endif
