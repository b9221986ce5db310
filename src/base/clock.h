/* A clock that only moves forward, for measuring and for deadlines; and times of day as text. */
#ifndef MT_BASE_CLOCK_H
#define MT_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment before the process started. */
uint64_t mt_clock_ns(void);

/* For tests: stops the clock at `ns`, for all threads; 0 lets it run again. What waits for a time to pass, waits until
   the test sets a later one: the threads of a pool spin, so a test whose clock stands gives the device one thread.
   mt_clock_thread_ns and mt_clock_deadline are not affected. */
void mt_clock_set(uint64_t ns);

/* Nanoseconds of a processor that the calling thread has used. */
uint64_t mt_clock_thread_ns(void);

/* A condition variable to be waited for with a deadline of mt_clock_deadline, which changes of the time of day do not
   affect. */
void mt_clock_cond_init(pthread_cond_t *cond);
struct timespec mt_clock_deadline(int after_ms);

#define MT_CLOCK_TEXT 40 /* bytes for mt_clock_text */

/* Writes a time as "2026-03-01T12:30:00Z", in UTC, with that many digits of a second (0 to 9). Returns text. */
const char *mt_clock_text(struct timespec when, int digits, char text[MT_CLOCK_TEXT]);

#endif
