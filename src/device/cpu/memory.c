/* Memory of the CPU device: sets and their objects, scratch memory of threads, and running work on threads. */
#include <assert.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "device/cpu/cpu.h"

mt_set *mt_cpu_set_new(mt_device *dev)
{
    mt_set *set = mt_alloc(sizeof(*set));
    set->head.dev = dev;
    set->arena = mt_arena_new(0);
    set->next = dev->sets;
    set->link = &dev->sets;
    if (set->next)
        set->next->link = &set->next;
    dev->sets = set;
    return set;
}

void mt_cpu_set_free(mt_set *set)
{
    *set->link = set->next;
    if (set->next)
        set->next->link = set->link;
    set->head.dev->bytes -= set->bytes;
    mt_arena_free(set->arena);
    mt_free(set);
}

static void keep(mt_set *set, void (*dispose)(void *), void *object, size_t bytes)
{
    const int kept = mt_arena_defer(set->arena, dispose, object);
    assert(kept); /* this arena has no limit */
    (void)kept;
    set->bytes += bytes;
    set->head.dev->bytes += bytes;
}

static void free_block(void *block)
{
    mt_free(block);
}

void *mt_cpu_alloc(mt_set *set, size_t bytes)
{
    void *p = mt_alloc_aligned(64, bytes ? bytes : 64);
    keep(set, free_block, p, bytes);
    return p;
}

typedef struct mapping {
    void *data;
    size_t bytes;
} mapping;

static void unmap(void *object)
{
    const mapping *m = object;
    munmap(m->data, m->bytes);
}

void *mt_cpu_map(mt_set *set, size_t count, size_t bytes_each)
{
    if (count >= MT_NO_PAGE || count > (SIZE_MAX >> 16) / bytes_each)
        return NULL;
    const size_t bytes = count * bytes_each;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
#if defined(MADV_HUGEPAGE)
    (void)madvise(data, bytes, MADV_HUGEPAGE); /* optional: nothing depends on it */
#endif
    mapping *m = mt_cpu_alloc(set, sizeof(*m));
    *m = (mapping){.data = data, .bytes = bytes};
    keep(set, unmap, m, bytes);
    return data;
}

uint8_t *mt_cpu_scratch(mt_device *dev, size_t worker)
{
    return dev->scratch + worker * dev->scratch_bytes;
}

void mt_cpu_run(mt_device *dev, mt_pool_fn *fn, void *ctx, size_t items, size_t elements)
{
    if (elements >= MT_CPU_INLINE && items > 1) {
        mt_host_run(dev->head.host, fn, ctx, items);
        return;
    }
    for (size_t i = 0; i < items; i++)
        fn(ctx, i, 0);
}
