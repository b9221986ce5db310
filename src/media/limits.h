/* Limits on media in requests. The server fills this from its options; everything in src/media keeps to it. */
#ifndef MT_MEDIA_LIMITS_H
#define MT_MEDIA_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

typedef struct mt_media_limits {
    size_t bytes;          /* of an encoded picture or video */
    uint64_t pixels;       /* of a picture: width times height */
    double image_seconds;  /* most processor time for decoding a picture */
    uint64_t video_pixels; /* of a frame of a video; lower, since a decoder keeps many frames */
    int64_t video_frames;  /* most frames of a video, used or not */
    double video_seconds;  /* longest duration */
    int64_t fetch_ms;      /* most milliseconds for a URL, redirects included */
    bool allow_private;    /* URLs may lead to private addresses */
    const char *root;      /* folder whose files file: URLs may name; NULL: they are refused. Borrowed */
} mt_media_limits;

static inline mt_media_limits mt_media_limits_default(void)
{
    return (mt_media_limits){
        .bytes = MT_LIMIT_MEDIA_BYTES,
        .pixels = MT_LIMIT_MEDIA_PIXELS,
        .image_seconds = MT_LIMIT_MEDIA_IMAGE_SECONDS,
        .video_pixels = MT_LIMIT_MEDIA_VIDEO_PIXELS,
        .video_frames = MT_LIMIT_MEDIA_FRAMES,
        .video_seconds = MT_LIMIT_MEDIA_SECONDS,
        .fetch_ms = MT_LIMIT_MEDIA_FETCH_MS,
    };
}

#endif
