/* The only door to the heap. Inside a step (between mt_alloc_forbid and mt_alloc_permit on the same thread)
   an allocation is a bug and aborts; so "nothing allocates inside a step" is checked by every test that steps.
   mt_pool_run carries the ban over to its workers. */
#ifndef MT_BASE_ALLOC_H
#define MT_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Never return NULL: where the system refuses memory and there is no reserve left, the program ends with a sentence.
   Memory is zeroed. */
void *mt_alloc(size_t size);
void *mt_alloc_array(size_t count, size_t size);               /* a product that overflows counts as running out */
void *mt_alloc_aligned(size_t align, size_t size);             /* align: a power of two; free with mt_free too */
void *mt_realloc(void *ptr, size_t old_size, size_t new_size); /* the new part is zeroed */
void mt_free(void *ptr);

/* The same for what somebody else decides the size of. NULL: the system refuses it. What was to be resized is as it
   was. */
void *mt_alloc_try(size_t size) MT_NODISCARD;
void *mt_realloc_try(void *ptr, size_t old_size, size_t new_size) MT_NODISCARD;

/* Makes a reserve for when the system refuses memory, or fills up what is missing of it. Any thread. */
void mt_alloc_reserve(void);
bool mt_alloc_scarce(void); /* part of the reserve was needed, and is missing still */

/* How often the system has refused memory: to the calling thread, and to all. */
uint64_t mt_alloc_refused(void);
uint64_t mt_alloc_refused_all(void);

/* Room for `needed` entries of `size` bytes in a list that has room for *cap: where that is too little, at least twice
   as much. Returns the list as mt_realloc does, and so must be assigned to it. */
void *mt_grow(void *list, size_t *cap, size_t needed, size_t size) MT_NODISCARD;

char *mt_strdup(const char *s);

/* Once, at the start: large blocks go back to the system as soon as they are freed, so that what a budget counts is
   what the process has. */
void mt_alloc_setup(void);

/* Gives back to the system what was freed and is kept for later: some milliseconds where there is much. */
void mt_alloc_trim(void);

/* Bytes that the process has in memory, and how many of them files back (NULL: not asked); 0 where the system does not
   tell. */
uint64_t mt_resident_bytes(uint64_t *files);

/* Bytes that the calling thread has allocated here, less those that it has freed: what something takes that one thread
   makes is the difference. */
int64_t mt_alloc_held(void);

void mt_alloc_forbid(void); /* nests */
void mt_alloc_permit(void);
bool mt_alloc_forbidden(void); /* on the calling thread */

/* Around what a library takes for itself on whatever thread it runs: that is not the step's. Returns what to resume
   with. */
unsigned mt_alloc_suspend(void);
void mt_alloc_resume(unsigned suspended);

#endif
