/* The GPU's memory, and the host's that is pinned. Each piece of the GPU's lies between pages that nobody may touch, in
   a range of addresses that is given out from one end to the other and never again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "fake.h"

#if MT_SANITIZED_THREAD
#define RANGE ((size_t)1 << 34) /* the sanitizer's tables leave no room for more */
#else
#define RANGE ((size_t)1 << 42)
#endif
#define AT ((void *)(uintptr_t)0x5a5a00000000) /* where two numbers side by side are hardly taken for an address */
#define PAGE ((size_t)65536)

typedef struct piece {
    uint64_t at;
    size_t bytes;
    bool fresh; /* nothing was written yet: it is all zeros */
    CUcontext context;
} piece;

typedef struct pieces {
    piece *piece;
    size_t count, room;
} pieces;

static pieces device, pinned;
static uint64_t first, next; /* the range, and what of it was given out */
static size_t taken;

static void add(pieces *list, uint64_t at, size_t bytes)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->piece = realloc(list->piece, list->room * sizeof(*list->piece));
    }
    list->piece[list->count++] = (piece){at, bytes, true, fake_context()};
}

static piece *find(const pieces *list, uint64_t at, size_t bytes)
{
    for (size_t i = 0; i < list->count; i++) {
        piece *p = &list->piece[i];
        if (at >= p->at && at - p->at <= p->bytes && bytes <= p->bytes - (at - p->at))
            return p->context == fake_context() ? p : NULL;
    }
    return NULL;
}

static piece *find_first(const pieces *list, uint64_t at)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->piece[i].at == at)
            return list->piece[i].context == fake_context() ? &list->piece[i] : NULL;
    return NULL;
}

static void drop(pieces *list, const piece *p)
{
    list->piece[p - list->piece] = list->piece[list->count - 1];
    list->count--;
}

static size_t whole(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

bool fake_memory_has(uint64_t at, size_t bytes)
{
    return find(&device, at, bytes) != NULL;
}

bool fake_memory_is_zero(uint64_t at, size_t bytes)
{
    const piece *p = find(&device, at, bytes);
    return p && p->fresh;
}

void fake_memory_written(uint64_t at)
{
    piece *p = find(&device, at, 0);
    if (p)
        p->fresh = false;
}

bool fake_memory_ours(uint64_t at)
{
    return at >= first && at < next;
}

bool fake_pinned_has(const void *at, size_t bytes)
{
    return find(&pinned, (uintptr_t)at, bytes) != NULL;
}

static const piece *find_of(const pieces *list, CUcontext context)
{
    for (size_t i = 0; i < list->count; i++)
        if (!context || list->piece[i].context == context)
            return &list->piece[i];
    return NULL;
}

void fake_memory_check_empty(const char *call, CUcontext context)
{
    const piece *p = find_of(&device, context), *q = find_of(&pinned, context);
    if (p)
        fake_broken(call, "%zu bytes of the GPU's memory were not freed", p->bytes);
    if (q)
        fake_broken(call, "%zu bytes of pinned memory were not freed", q->bytes);
}

static void lock_away(const piece *p)
{
    madvise((void *)(uintptr_t)p->at, whole(p->bytes), MADV_DONTNEED);
    mprotect((void *)(uintptr_t)p->at, whole(p->bytes), PROT_NONE);
}

void fake_memory_drop(CUcontext context)
{
    const piece *p;
    while ((p = find_of(&device, context))) {
        taken -= p->bytes;
        lock_away(p);
        drop(&device, p);
    }
    while ((p = find_of(&pinned, context))) {
        munmap((void *)(uintptr_t)p->at, p->bytes);
        drop(&pinned, p);
    }
    if (device.count + pinned.count)
        return;
    free(device.piece);
    free(pinned.piece);
    device = pinned = (pieces){0};
}

FAKE_API CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
    FAKE_CALL(true);
    *total = fake.memory;
    *left = fake.memory - taken;
    return error;
}

FAKE_API CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
    FAKE_CALL(true);
    if (error)
        return error;
    if (bytes == 0)
        fake_broken(__func__, "no bytes are asked for");
    if (!first) {
        void *range = mmap(AT, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED)
            range = mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED)
            fake_broken(__func__, "there are no addresses");
        first = next = (uintptr_t)range;
    }
    if (bytes > fake.memory - taken)
        return OUT_OF_MEMORY;
    if (next + whole(bytes) + PAGE > first + RANGE)
        fake_broken(__func__, "the addresses are used up");
    *at = next;
    if (mprotect((void *)(uintptr_t)next, whole(bytes), PROT_READ | PROT_WRITE))
        return OUT_OF_MEMORY;
    next += whole(bytes) + PAGE;
    taken += bytes;
    add(&device, *at, bytes);
    return 0;
}

FAKE_API CUresult cuMemFree_v2(CUdeviceptr at)
{
    FAKE_CALL(true);
    piece *p = find_first(&device, at);
    if (!p)
        fake_broken(__func__, "%#llx is not allocated, or was freed before", (unsigned long long)at);
    if (error)
        return error;
    fake_streams_run(); /* as the real one waits */
    taken -= p->bytes;
    lock_away(p);
    drop(&device, p);
    return 0;
}

FAKE_API CUresult cuMemAllocHost_v2(void **at, size_t bytes)
{
    FAKE_CALL(true);
    if (error)
        return error;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        return OUT_OF_MEMORY;
    add(&pinned, (uintptr_t)data, bytes);
    *at = data;
    return 0;
}

FAKE_API CUresult cuMemFreeHost(void *at)
{
    FAKE_CALL(true);
    piece *p = find_first(&pinned, (uintptr_t)at);
    if (!p)
        fake_broken(__func__, "%p is not pinned, or was freed before", at);
    if (error)
        return error;
    fake_streams_run();
    munmap(at, p->bytes);
    drop(&pinned, p);
    return 0;
}
