/* Whether the heap is as it was. Of use under the address sanitizer alone, whose search for leaks walks through the
   whole address space on ARM and takes seconds a program. A program that ends with as many bytes as it began with has
   leaked none and is spared the search; any other is searched, which tells what it holds apart from what it lost. */
#ifndef MT_TESTS_HEAP_H
#define MT_TESTS_HEAP_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) /* clang */
#define HEAP_IS_COUNTED
#endif
#elif defined(__SANITIZE_ADDRESS__) /* gcc */
#define HEAP_IS_COUNTED
#endif

#ifdef HEAP_IS_COUNTED
#include <sanitizer/allocator_interface.h>
#include <sanitizer/lsan_interface.h>

static int heap_is_flat;

/* The sanitizer asks this before it searches. */
int __lsan_is_turned_off(void)
{
    return heap_is_flat;
}

static inline size_t heap_bytes(void)
{
    return __sanitizer_get_current_allocated_bytes();
}

static inline void heap_end(size_t before)
{
    heap_is_flat = heap_bytes() == before;
}
#else
static inline size_t heap_bytes(void)
{
    return 0;
}

static inline void heap_end(size_t before)
{
    (void)before;
}
#endif

#endif
