/* What media may cost at most. The server fills this from its options; everything in src/media obeys it. */
#ifndef MT_MEDIA_LIMITS_H
#define MT_MEDIA_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

typedef struct mt_media_limits {
    size_t bytes;          /* of a picture or a video as it came */
    uint64_t pixels;       /* of a picture: width times height */
    uint64_t video_pixels; /* of a frame of a video, of which a decoder keeps many */
    int64_t video_frames;  /* that a video may have, not those that are looked at */
    double video_seconds;  /* that it may last */
    int64_t fetch_ms;      /* a URL may take, its redirects included */
    bool allow_private;    /* fetch from addresses that the internet does not reach */
    const char *root;      /* the folder that file URLs may name files of; NULL: they are refused. Borrowed */
} mt_media_limits;

static inline mt_media_limits mt_media_limits_default(void)
{
    return (mt_media_limits){
        .bytes = MT_LIMIT_MEDIA_BYTES,
        .pixels = MT_LIMIT_MEDIA_PIXELS,
        .video_pixels = MT_LIMIT_MEDIA_VIDEO_PIXELS,
        .video_frames = MT_LIMIT_MEDIA_FRAMES,
        .video_seconds = MT_LIMIT_MEDIA_SECONDS,
        .fetch_ms = MT_LIMIT_MEDIA_FETCH_MS,
    };
}

#endif
