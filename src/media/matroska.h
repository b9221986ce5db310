/* Reads what a Matroska or WebM file says of its frames, with code of this project alone. */
#ifndef MT_MEDIA_MATROSKA_H
#define MT_MEDIA_MATROSKA_H

#include <stddef.h>
#include <stdint.h>

/* Pixels of all frames of the first video track; 0 where it does not say. Allocates nothing. */
uint64_t mt_matroska_work(const uint8_t *data, size_t size);

#endif
