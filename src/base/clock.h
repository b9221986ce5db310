/* Time that only moves forward, for measuring and for deadlines; and how a time of day is written. */
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

#define MT_CLOCK_TEXT 40 /* bytes that such a text may take */

/* "2026-03-01T12:30:00Z": a time since 1970 in UTC, with so many digits of a second's parts (0 to 9); returns text. */
const char *mt_clock_text(struct timespec when, int digits, char text[MT_CLOCK_TEXT]);

#endif
