/* What a video's file is, before FFmpeg sees it. */
#ifndef MT_MEDIA_CONTAINER_H
#define MT_MEDIA_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The name of FFmpeg's demuxer for the bytes: "mov" or "matroska". NULL when they are neither. */
const char *mt_container_name(const uint8_t *data, size_t size);

/* Whether an MP4 claims more samples than anyone may: a few bytes can claim billions, and FFmpeg makes a table of them
   before it looks for them. */
bool mt_container_claims(const uint8_t *data, size_t size, mt_error *err) MT_NODISCARD;

#endif
