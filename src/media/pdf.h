/* PDFs: their text, and pictures of their pages, by poppler's programs pdftotext and pdftoppm, each run in a process of
   its own that has no files of ours, no network, little memory and little time (decode_program.c). */
#ifndef MT_MEDIA_PDF_H
#define MT_MEDIA_PDF_H

#include "base/buf.h"
#include "base/error.h"
#include "media/watch.h"

typedef enum mt_pdf_program { MT_PDF_NONE, MT_PDF_TEXT, MT_PDF_PICTURES, MT_PDF_PROGRAMS } mt_pdf_program;

bool mt_pdf_is(const void *data, size_t size); /* whether it begins as PDFs do */

/* Appends the text of the first `pages` pages to out, each with a form feed behind it, as pdftotext writes it. *cpu_ns:
   processor time is added. False: *err, a sentence about the PDF, or about what is missing here. */
bool mt_pdf_text(const void *data, size_t size, uint32_t pages, const mt_media_watch *watch, mt_buf *out,
                 uint64_t *cpu_ns, mt_error *err) MT_NODISCARD;

/* Appends pictures of the first `pages` pages to out, PNGs one behind the other, whose longer sides have `side`
   pixels. */
bool mt_pdf_pictures(const void *data, size_t size, uint32_t pages, uint32_t side, const mt_media_watch *watch,
                     mt_buf *out, uint64_t *cpu_ns, mt_error *err) MT_NODISCARD;

/* How many bytes the PNG at the beginning of some bytes has; 0: there is no whole one. */
size_t mt_pdf_picture_size(const void *data, size_t size);

/* The path of a program; NULL: it is not installed. */
const char *mt_pdf_path(mt_pdf_program program);

#endif
