/* Time that only moves forward, for measuring and for deadlines. */
#ifndef MT_BASE_CLOCK_H
#define MT_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Nanoseconds since a moment fixed for the life of the process. */
uint64_t mt_clock_ns(void);

/* A condition that is waited for until mt_clock_deadline: whoever sets the clock does not prolong that. */
void mt_clock_cond_init(pthread_cond_t *cond);
struct timespec mt_clock_deadline(int after_ms);

#endif
