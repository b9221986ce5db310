/* Checks a video file before FFmpeg reads it. */
#ifndef MT_MEDIA_CONTAINER_H
#define MT_MEDIA_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The name of FFmpeg's demuxer for the bytes: "mov" or "matroska". NULL when they are neither. */
const char *mt_container_name(const uint8_t *data, size_t size);

/* False where an MP4 claims more samples than are allowed: a few bytes can claim billions, and FFmpeg allocates a table
   for them before it looks for them. */
bool mt_container_claims(const uint8_t *data, size_t size, mt_error *err) MT_NODISCARD;

#endif
