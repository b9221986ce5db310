/* Files as memory: large ones mapped, small ones read. */
#ifndef MT_BASE_FILE_H
#define MT_BASE_FILE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct mt_file {
    const char *data; /* read-only; NULL when the file is empty */
    size_t size;
} mt_file;

/* Maps a regular file for reading. Its pages are shared with every other process that maps it. Undo with
   mt_file_unmap. A file that someone shortens while it is mapped raises SIGBUS when the missing part is read, which
   mt_mapping_guard turns into a sentence. */
bool mt_file_map(mt_file *file, const char *path, mt_error *err) MT_NODISCARD;
void mt_file_unmap(mt_file *file); /* leaves it empty; a zeroed mt_file is fine */

/* Appends the whole of a regular file to buf; fails with MT_E_TOO_LARGE when buf's limit does not allow it. */
bool mt_file_read(mt_buf *buf, const char *path, mt_error *err) MT_NODISCARD;

/* Whether there is nothing of that name. What cannot be looked at is there: reading it says why it cannot be read. */
bool mt_file_absent(const char *path);

#endif
