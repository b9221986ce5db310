/* See cores.h. */
#include "base/cores.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "base/cgroup.h"

enum { CORES_MAX = 1024 };

/* Number of allowed cores with the highest cpu_capacity. Machines with equal cores lack these files. */
static size_t count_fastest(const char *root, const unsigned char *allowed, size_t count)
{
    unsigned long best = 0;
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        unsigned long capacity = 0;
        char text[32];

        if (!allowed[i])
            continue;
        if (mt_cgroup_read(text, sizeof(text), "%s/sys/devices/system/cpu/cpu%zu/cpu_capacity", root, i))
            capacity = strtoul(text, NULL, 10);
        if (capacity > best || found == 0) {
            best = capacity;
            found = 0;
        }
        found += capacity == best;
    }
    return found;
}

/* Number of whole cores that "quota period" of a cpu.max file allows; UINT64_MAX for "max". Rounded down: one thread
   too many would be stopped in the middle of its work, and the others would wait for it. */
static uint64_t quota_cores(const char *text)
{
    unsigned long long quota, period;

    if (sscanf(text, "%llu %llu", &quota, &period) != 2 || period == 0)
        return UINT64_MAX;
    return quota < period ? 1 : quota / period;
}

size_t mt_cores_fast_at(const char *root, const unsigned char *allowed, size_t count)
{
    const uint64_t quota = mt_cgroup_least(root, "", "cpu.max", quota_cores);
    size_t cores = count_fastest(root, allowed, count);

    if (cores > quota)
        cores = (size_t)quota;
    return cores ? cores : 1;
}

#if defined(__linux__)

static size_t read_affinity(unsigned char allowed[CORES_MAX])
{
    cpu_set_t set;
    size_t count = 0;

    memset(allowed, 0, CORES_MAX);
    if (sched_getaffinity(0, sizeof(set), &set))
        return 0;
    for (size_t i = 0; i < CORES_MAX && i < CPU_SETSIZE; i++) {
        allowed[i] = CPU_ISSET(i, &set) != 0;
        count += allowed[i];
    }
    return count;
}

size_t mt_cores_allowed(void)
{
    unsigned char allowed[CORES_MAX];
    size_t count = read_affinity(allowed);

    return count ? count : 1;
}

size_t mt_cores_fast(void)
{
    unsigned char allowed[CORES_MAX];

    read_affinity(allowed);
    return mt_cores_fast_at("", allowed, CORES_MAX);
}

#else

size_t mt_cores_allowed(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? (size_t)count : 1;
}

size_t mt_cores_fast(void)
{
#ifdef __APPLE__
    int count = 0;
    size_t size = sizeof(count);

    if (sysctlbyname("hw.perflevel0.physicalcpu", &count, &size, NULL, 0) == 0 && count > 0)
        return (size_t)count;
#endif
    return mt_cores_allowed();
}

#endif
