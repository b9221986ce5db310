/* A table of mapped files. If another program shortens one, reading it raises SIGBUS; then the program ends with a
   message that names the file. */
#ifndef MT_BASE_MAPPING_H
#define MT_BASE_MAPPING_H

#include <stddef.h>

#define MT_EXIT_MAPPING 3 /* exit status where a mapped file cannot be read any more */

/* Sets the handler of SIGBUS. Once, at the start. */
void mt_mapping_guard(void);

/* Adds a mapping and its file's path. If the table is full, it is not guarded. */
void mt_mapping_add(const void *data, size_t size, const char *path);
void mt_mapping_remove(const void *data);

#endif
