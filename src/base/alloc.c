/* mt_alloc never returns NULL, so that no work has to be undone half-way. For that, a server has a reserve: address
   space that is not used. When the system refuses memory, pieces of the reserve are given back to it until it does not,
   and the thread notices later (mt_alloc_refused): a thread that works for a request ends that request in good order.
   While a piece is missing nothing new is begun (mt_alloc_scarce). What a request can make arbitrarily large is
   allocated by mt_alloc_try, which does not touch the reserve.

   Only an allocation that finds the reserve empty ends the program; commands without a reserve end at once. Rejected:
   returning NULL everywhere, since a thousand places would need error paths that are never taken. */
#include "base/alloc.h"

#include "base/limits.h"

#include <assert.h>
#include <stdatomic.h>
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

static MT_THREAD_LOCAL unsigned forbidden; /* nesting of mt_alloc_forbid */
static MT_THREAD_LOCAL int64_t held;       /* bytes of this thread, see mt_alloc_held */
static MT_THREAD_LOCAL uint64_t refused;
static atomic_uint_fast64_t refused_all;
static _Atomic(void *) reserve[MT_LIMIT_RESERVE_PIECES];
static atomic_bool has_reserve;

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

static void note_refusal(void)
{
    refused++;
    atomic_fetch_add_explicit(&refused_all, 1, memory_order_relaxed); /* relaxed: only a counter */
}

/* Gives a piece of the reserve back to the system. False: none is left. */
static bool break_reserve(void)
{
    for (size_t i = 0; i < MT_LIMIT_RESERVE_PIECES; i++) {
        void *piece = atomic_exchange(&reserve[i], NULL);

        if (piece) {
            munmap(piece, MT_LIMIT_RESERVE_PIECE);
            return true;
        }
    }
    return false;
}

/* After a refusal: whether to try again. Ends the program where no reserve is left. */
static bool once_more(size_t size)
{
    note_refusal();
    if (!break_reserve())
        out_of_memory(size);
    return true;
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
    do
        ptr = calloc(1, size ? size : 1);
    while (!ptr && once_more(size));
    held += size_of(ptr);
    return ptr;
}

void *mt_alloc_try(size_t size)
{
    void *ptr;

    check_permitted(size);
    ptr = calloc(1, size ? size : 1);
    if (!ptr)
        note_refusal();
    held += size_of(ptr);
    return ptr;
}

void *mt_alloc_array(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        out_of_memory(SIZE_MAX);
    return mt_alloc(count * size);
}

/* Blocks of many megabytes get large pages before they are first used: attention reads the cache in pieces of a few
   kilobytes, and each small page would cost it a walk through the page tables. */
static void want_large_pages(void *ptr, size_t size)
{
#if defined(MADV_HUGEPAGE)
    (void)madvise(ptr, size, MADV_HUGEPAGE); /* only a hint */
#else
    (void)ptr, (void)size;
#endif
}

void *mt_alloc_aligned(size_t align, size_t size)
{
    const size_t large = (size_t)2 << 20;
    void *ptr = NULL;

    assert(align && (align & (align - 1)) == 0);
    check_permitted(size);
    if (align < sizeof(void *))
        align = sizeof(void *);
    if (size >= 8 * large && align < large)
        align = large;
    while (posix_memalign(&ptr, align, size ? size : 1) != 0 && once_more(size)) {}
    if (size >= 8 * large)
        want_large_pages(ptr, size);
    held += size_of(ptr);
    return memset(ptr, 0, size);
}

void *mt_realloc_try(void *ptr, size_t old_size, size_t new_size)
{
    const int64_t before = size_of(ptr);
    char *grown;

    check_permitted(new_size);
    grown = realloc(ptr, new_size ? new_size : 1);
    if (!grown) {
        note_refusal();
        return NULL;
    }
    held += size_of(grown) - before;
    if (new_size > old_size)
        memset(grown + old_size, 0, new_size - old_size);
    return grown;
}

void *mt_realloc(void *ptr, size_t old_size, size_t new_size)
{
    void *grown;

    while (!(grown = mt_realloc_try(ptr, old_size, new_size)))
        if (!break_reserve())
            out_of_memory(new_size);
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
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* else the threshold grows to 32 MiB, which every thread may keep */
#endif
}

void mt_alloc_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0); /* other C libraries do so by themselves */
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

void mt_alloc_reserve(void)
{
    for (size_t i = 0; i < MT_LIMIT_RESERVE_PIECES; i++) {
        void *none = NULL, *piece;

        if (atomic_load(&reserve[i]))
            continue;
        piece = mmap(NULL, MT_LIMIT_RESERVE_PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece == MAP_FAILED)
            break;
        if (!atomic_compare_exchange_strong(&reserve[i], &none, piece)) /* another thread was quicker */
            munmap(piece, MT_LIMIT_RESERVE_PIECE);
    }
    atomic_store(&has_reserve, true);
}

bool mt_alloc_scarce(void)
{
    bool whole = true;

    for (size_t i = 0; i < MT_LIMIT_RESERVE_PIECES; i++)
        whole = whole && atomic_load(&reserve[i]);
    return !whole && atomic_load(&has_reserve);
}

uint64_t mt_alloc_refused(void)
{
    return refused;
}

uint64_t mt_alloc_refused_all(void)
{
    return atomic_load_explicit(&refused_all, memory_order_relaxed);
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

unsigned mt_alloc_suspend(void)
{
    const unsigned suspended = forbidden;

    forbidden = 0;
    return suspended;
}

void mt_alloc_resume(unsigned suspended)
{
    forbidden = suspended;
}

bool mt_alloc_forbidden(void)
{
    return forbidden > 0;
}
