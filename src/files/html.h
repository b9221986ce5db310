/* HTML as text. */
#ifndef MT_FILES_HTML_H
#define MT_FILES_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Whether bytes are HTML: they begin as a page does, or name (may be NULL) ends as those of pages do. */
bool mt_files_is_html(const char *bytes, size_t len, const char *name, size_t name_len);

/* Appends the text of a page: without tags, scripts, styles and comments; blocks, rows and list items begin lines,
   cells are set apart by tabs, and white space is one blank but for that of <pre>. Never more bytes than there were,
   and one. False: out is full. */
bool mt_files_html(mt_buf *out, const char *bytes, size_t len);

#endif
