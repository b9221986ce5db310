/* HTML as text. */
#ifndef MT_FILES_HTML_H
#define MT_FILES_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Whether bytes are HTML: they begin with <!doctype html, <html, <head or <body, or name (may be NULL) ends in .html,
   .htm or .xhtml. */
bool mt_files_is_html(const char *bytes, size_t len, const char *name, size_t name_len);

/* Appends the text of a page, without tags, scripts, styles and comments. Blocks, rows and list items begin lines, a
   tab separates cells, and white space outside <pre> becomes one blank. The text has at most len + 1 bytes. False: out
   is full. */
bool mt_files_html(mt_buf *out, const char *bytes, size_t len);

#endif
