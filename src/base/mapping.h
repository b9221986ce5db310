/* The files that are mapped, so that one that others shorten ends the program with a sentence and not without a word:
   reading what is no longer there raises SIGBUS. */
#ifndef MT_BASE_MAPPING_H
#define MT_BASE_MAPPING_H

#include <stddef.h>

#define MT_EXIT_MAPPING 3 /* exit status when a mapped file cannot be read any more */

/* Once, at the start. */
void mt_mapping_guard(void);

/* A mapping of so many bytes, and the file it is of. One that finds no place is not guarded. */
void mt_mapping_add(const void *data, size_t size, const char *path);
void mt_mapping_remove(const void *data);

#endif
