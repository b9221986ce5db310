/* The only access to the heap. Within a step of the model (between mt_alloc_forbid and mt_alloc_permit on the same
   thread) an allocation is a bug and aborts, so every test that runs steps checks that they allocate nothing.
   mt_pool_run carries the ban over to its workers. */
#ifndef MT_BASE_ALLOC_H
#define MT_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* These never return NULL: where the system refuses memory and no reserve is left, the program ends with a message.
   Memory is zeroed. */
void *mt_alloc(size_t size);
void *mt_alloc_array(size_t count, size_t size);               /* a product that overflows counts as out of memory */
void *mt_alloc_aligned(size_t align, size_t size);             /* align: a power of two; free with mt_free, too */
void *mt_realloc(void *ptr, size_t old_size, size_t new_size); /* the new part is zeroed */
void mt_free(void *ptr);

/* The same for sizes that others decide, such as clients. NULL: the system refuses it, and a block to be
   resized is unchanged. */
void *mt_alloc_try(size_t size) MT_NODISCARD;
void *mt_realloc_try(void *ptr, size_t old_size, size_t new_size) MT_NODISCARD;

/* Makes a reserve for when the system refuses memory, or completes it. Any thread. */
void mt_alloc_reserve(void);
bool mt_alloc_scarce(void); /* part of the reserve was used, and is still missing */

/* How often the system has refused memory: to the calling thread, and to all. */
uint64_t mt_alloc_refused(void);
uint64_t mt_alloc_refused_all(void);

/* Grows a list so that `needed` elements of `size` bytes fit; *cap is its capacity in elements, at least doubled where
   it is too small. Returns the list as mt_realloc does: assign it. */
void *mt_grow(void *list, size_t *cap, size_t needed, size_t size) MT_NODISCARD;

char *mt_strdup(const char *s);

/* Once, at the start: large blocks go back to the system as soon as they are freed, so that the process has no more
   memory than the budgets count. */
void mt_alloc_setup(void);

/* Gives freed memory that the C library keeps back to the system; takes milliseconds where it is much. */
void mt_alloc_trim(void);

/* Bytes that the process has in memory; *files (may be NULL): how many of them are mapped files. 0 where the system
   does not tell. */
uint64_t mt_resident_bytes(uint64_t *files);

/* Bytes that the calling thread has allocated, less those it has freed; the difference of two calls is what something
   made in between takes. */
int64_t mt_alloc_held(void);

void mt_alloc_forbid(void); /* nests */
void mt_alloc_permit(void);
bool mt_alloc_forbidden(void); /* on the calling thread */

/* Around calls of a library that allocates for itself within a step. Returns what mt_alloc_resume needs. */
unsigned mt_alloc_suspend(void);
void mt_alloc_resume(unsigned suspended);

#endif
