/* Whether the heap is as it was. Of use under the address sanitizer alone, whose search for leaks walks through the
   whole address space on ARM and takes seconds a program. A program that ends with as many bytes as it began with has
   leaked none and is spared the search; any other is searched, which tells what it holds apart from what it lost. What
   the C library and OpenSSL keep until the end (stacks of threads, time zones, the environment, lists of algorithms) is
   given back before it is counted: of a hundred programs sixty would be searched for these alone. */
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

void OPENSSL_cleanup(void) __attribute__((weak)); /* not there in who does without */
void __libc_freeres(void) __attribute__((weak));  /* glibc's */

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

/* The last that a program does. */
static inline void heap_end(size_t before)
{
    heap_is_flat = heap_bytes() == before;
    if (heap_is_flat)
        return;
    if (OPENSSL_cleanup)
        OPENSSL_cleanup();
    if (__libc_freeres)
        __libc_freeres();
    heap_is_flat = heap_bytes() <= 1; /* which stands for none */
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
