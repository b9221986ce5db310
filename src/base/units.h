/* Sizes and times as people read them. */
#ifndef MT_BASE_UNITS_H
#define MT_BASE_UNITS_H

#include <stdint.h>

#define MT_UNITS_TEXT 32

/* "512 B", "16.2 MiB"; into out. */
const char *mt_bytes_text(uint64_t bytes, char out[MT_UNITS_TEXT]);

/* "48 s", "3:05 min", "2:07 h", "4 days"; into out. */
const char *mt_seconds_text(uint64_t seconds, char out[MT_UNITS_TEXT]);

#endif
