/* See memory.h. */
#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/compiler.h"

/* Bytes of a file with one number; "max" and what cannot be read: no limit. */
static uint64_t limit_of(const char *text)
{
    char *end;
    const unsigned long long bytes = strtoull(text, &end, 10);

    return end == text || bytes == 0 ? UINT64_MAX : bytes;
}

uint64_t mt_memory_total_at(const char *root, uint64_t machine)
{
    const uint64_t new = mt_cgroup_least(root, "", "memory.max", limit_of);
    const uint64_t old = mt_cgroup_least(root, "memory", "memory.limit_in_bytes", limit_of);

    return MT_MIN(machine, MT_MIN(new, old));
}

static uint64_t total;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void look_up(void)
{
    total = mt_memory_total_at("", (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}

uint64_t mt_memory_total(void)
{
    pthread_once(&once, look_up);
    return total;
}
