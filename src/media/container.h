/* Checks a video file before FFmpeg reads it, with code of this project alone. */
#ifndef MT_MEDIA_CONTAINER_H
#define MT_MEDIA_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The name of FFmpeg's demuxer for the bytes: "mov" or "matroska". NULL when they are neither, or when they are still
   pictures in an MP4's boxes (AVIF, HEIC). */
const char *mt_container_name(const uint8_t *data, size_t size);

/* False where an MP4 claims more samples than are allowed, since a few bytes can claim billions and FFmpeg allocates a
   table for them before it looks for them; or where the frames of one of its tracks have too many pixels in all, shown
   or not: a file may list frames that have to be decoded and are never shown. */
bool mt_container_claims(const uint8_t *data, size_t size, mt_error *err) MT_NODISCARD;

/* Estimates the work of decoding a whole video from its container, in pixels: those of a frame times the frames of the
   track that has most. 0: it is none, or does not say. */
uint64_t mt_container_work(const uint8_t *data, size_t size);

#endif
