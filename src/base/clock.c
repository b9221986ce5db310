/* See clock.h. */
#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>

/* macOS can wait for conditions only by the time of day. */
#ifdef __APPLE__
#define WAITING_CLOCK CLOCK_REALTIME
#else
#define WAITING_CLOCK CLOCK_MONOTONIC
#endif

/* What mt_clock_ns returns instead of the time; 0: nothing is set. Relaxed everywhere: a test orders what it sets and
   what others then read by the locks and queues of what it tests. */
static atomic_uint_fast64_t set_ns;

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t mt_clock_ns(void)
{
    const uint64_t set = atomic_load_explicit(&set_ns, memory_order_relaxed);

    return set ? set : read_ns(CLOCK_MONOTONIC);
}

void mt_clock_set(uint64_t ns)
{
    atomic_store_explicit(&set_ns, ns, memory_order_relaxed);
}

uint64_t mt_clock_thread_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void mt_clock_cond_init(pthread_cond_t *cond)
{
#ifdef __APPLE__
    pthread_cond_init(cond, NULL);
#else
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, WAITING_CLOCK);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
#endif
}

struct timespec mt_clock_deadline(int after_ms)
{
    struct timespec t;

    clock_gettime(WAITING_CLOCK, &t);
    t.tv_sec += after_ms / 1000;
    t.tv_nsec += after_ms % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

const char *mt_clock_text(struct timespec when, int digits, char text[MT_CLOCK_TEXT])
{
    char parts[16];
    struct tm utc;
    const size_t len = strftime(text, MT_CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", gmtime_r(&when.tv_sec, &utc));

    snprintf(parts, sizeof(parts), "%09ld", when.tv_nsec);
    snprintf(text + len, MT_CLOCK_TEXT - len, "%s%.*sZ", digits ? "." : "", digits, parts);
    return text;
}
