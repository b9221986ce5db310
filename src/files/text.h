/* Documents as text. */
#ifndef MT_FILES_TEXT_H
#define MT_FILES_TEXT_H

#include <stddef.h>

#include "base/error.h"

/* Finds the text of a file: all that is UTF-8, which plain text, Markdown, CSV, code and HTML are, from *begin on.
   False: *err, the file is something else. */
bool mt_files_text(const char *bytes, size_t len, size_t *begin, mt_error *err) MT_NODISCARD;

#endif
