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

/* Maps a regular file for reading; its pages are shared with other processes. False: *err. Undo with mt_file_unmap. If
   another program shortens the file meanwhile, reading the missing part raises SIGBUS, which mt_mapping_guard
   reports. */
bool mt_file_map(mt_file *file, const char *path, mt_error *err) MT_NODISCARD;
void mt_file_unmap(mt_file *file); /* leaves it empty; a zeroed mt_file is fine */

/* Appends the content of a regular file to buf. False: *err; MT_E_TOO_LARGE where buf's limit does not allow it. */
bool mt_file_read(mt_buf *buf, const char *path, mt_error *err) MT_NODISCARD;

/* Whether there is no file of that name. One that cannot be examined counts as existing: reading it will say why. */
bool mt_file_absent(const char *path);

/* Makes a folder for its user alone, and those above it that are missing. False: errno says why. */
bool mt_file_make_folder(const char *path) MT_NODISCARD;

/* Takes the numbers of standard input, output and error that are closed, so that no file or socket opened later gets
   one. Reading and writing there fails as before. */
void mt_file_take_standard(void);

#endif
