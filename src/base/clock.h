/* Time that only moves forward, for measuring and for deadlines. */
#ifndef MT_BASE_CLOCK_H
#define MT_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since a moment fixed for the life of the process. */
uint64_t mt_clock_ns(void);

#endif
