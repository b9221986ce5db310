/* Put before the C library by the loader: the wall clock is ahead by as many seconds as stand in the file that
   MOTET_TEST_CLOCK names, a binary int64_t, which may change at any moment. The clock that measures how much time goes
   by is left alone, as an operator or a time server leaves it, too. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;
static int (*real_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find(void)
{
    const char *path = getenv("MOTET_TEST_CLOCK");
    const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *next = dlsym(RTLD_NEXT, "clock_gettime"), *at;

    memcpy(&real_clock, &next, sizeof(next)); /* C has no other way from one kind of pointer to the other */
    at = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(*ahead), PROT_READ, MAP_SHARED, file, 0);
    if (at != MAP_FAILED)
        ahead = at;
    if (file >= 0)
        close(file);
}

int clock_gettime(clockid_t which, struct timespec *now)
{
    if (!real_clock)
        find();
    const int result = real_clock(which, now);
    if (result == 0 && ahead && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        now->tv_sec += *ahead;
    return result;
}

time_t time(time_t *out)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise = {0};
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){.tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / 1000};
    return 0;
}
