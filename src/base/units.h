/* Sizes and times as people read them. */
#ifndef MT_BASE_UNITS_H
#define MT_BASE_UNITS_H

#include <stdint.h>

#define MT_UNITS_TEXT 32

/* Writes "512 B" or "16.2 MiB" to out, and returns it. */
const char *mt_bytes_text(uint64_t bytes, char out[MT_UNITS_TEXT]);

/* Writes "48 s", "3:05 min", "2:07 h" or "4 days" to out, and returns it. */
const char *mt_seconds_text(uint64_t seconds, char out[MT_UNITS_TEXT]);

#endif
