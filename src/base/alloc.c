#include "base/alloc.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__linux__)
#include <malloc.h>
#elif defined(__APPLE__)
#include <malloc/malloc.h>
#endif

static MT_THREAD_LOCAL unsigned forbidden;
static MT_THREAD_LOCAL int64_t held;

static int64_t size_of(void *ptr)
{
#if defined(__linux__)
    return (int64_t)malloc_usable_size(ptr);
#elif defined(__APPLE__)
    return (int64_t)malloc_size(ptr);
#else
    return ptr ? 0 : 0;
#endif
}

MT_NORETURN static void out_of_memory(size_t size)
{
    fprintf(stderr, "motet: the system refused %zu bytes of memory: free some or use a smaller model\n", size);
    _Exit(1);
}

static void check_permitted(size_t size)
{
    if (!forbidden)
        return;
    fprintf(stderr, "motet: bug: %zu bytes allocated inside a step, where nothing may be\n", size);
    abort();
}

void *mt_alloc(size_t size)
{
    void *ptr;

    check_permitted(size);
    ptr = calloc(1, size ? size : 1);
    if (!ptr)
        out_of_memory(size);
    held += size_of(ptr);
    return ptr;
}

void *mt_alloc_array(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        out_of_memory(SIZE_MAX);
    return mt_alloc(count * size);
}

/* Blocks of many megabytes get large pages before they are first touched: attention walks a cache in pieces of a few
   kilobytes, and each small page would cost it a walk through the page tables. */
static void want_large_pages(void *ptr, size_t size)
{
#if defined(MADV_HUGEPAGE)
    (void)madvise(ptr, size, MADV_HUGEPAGE); /* a wish: nothing depends on it */
#else
    (void)ptr, (void)size;
#endif
}

void *mt_alloc_aligned(size_t align, size_t size)
{
    const size_t large = (size_t)2 << 20;
    void *ptr;

    assert(align && (align & (align - 1)) == 0);
    check_permitted(size);
    if (align < sizeof(void *))
        align = sizeof(void *);
    if (size >= 8 * large && align < large)
        align = large;
    if (posix_memalign(&ptr, align, size ? size : 1))
        out_of_memory(size);
    if (size >= 8 * large)
        want_large_pages(ptr, size);
    held += size_of(ptr);
    return memset(ptr, 0, size);
}

void *mt_realloc(void *ptr, size_t old_size, size_t new_size)
{
    char *grown;

    check_permitted(new_size);
    held -= size_of(ptr);
    grown = realloc(ptr, new_size ? new_size : 1);
    if (!grown)
        out_of_memory(new_size);
    held += size_of(grown);
    if (new_size > old_size)
        memset(grown + old_size, 0, new_size - old_size);
    return grown;
}

void *mt_grow(void *list, size_t *cap, size_t needed, size_t size)
{
    size_t more = *cap ? *cap : 16;

    if (needed <= *cap)
        return list;
    while (more < needed)
        more *= 2;
    list = mt_realloc(list, *cap * size, more * size);
    *cap = more;
    return list;
}

void mt_free(void *ptr)
{
    held -= size_of(ptr);
    free(ptr);
}

char *mt_strdup(const char *s)
{
    size_t size = strlen(s) + 1;

    return memcpy(mt_alloc(size), s, size);
}

void mt_alloc_setup(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* else it grows to 32 MiB, which every thread may keep */
#endif
}

void mt_alloc_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0); /* other libraries do so by themselves */
#endif
}

uint64_t mt_resident_bytes(uint64_t *files)
{
    unsigned long size = 0, resident = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    const bool told = f && fscanf(f, "%lu %lu %lu", &size, &resident, &shared) == 3;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (f)
        fclose(f);
    if (files)
        *files = told ? shared * page : 0;
    return told ? resident * page : 0;
}

int64_t mt_alloc_held(void)
{
    return held;
}

void mt_alloc_forbid(void)
{
    forbidden++;
}

void mt_alloc_permit(void)
{
    assert(forbidden);
    forbidden--;
}

bool mt_alloc_forbidden(void)
{
    return forbidden > 0;
}
