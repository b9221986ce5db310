/* Limits on media in requests. The server fills this from its options; everything in src/media keeps to it. */
#ifndef MT_MEDIA_LIMITS_H
#define MT_MEDIA_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Media, unless options say otherwise. */
#define MT_LIMIT_MEDIA_BYTES (64u << 20)        /* of a picture or video as received */
#define MT_LIMIT_MEDIA_PIXELS (64u << 20)       /* of a picture */
#define MT_LIMIT_MEDIA_VIDEO_PIXELS (16u << 20) /* of a frame of a video; 4K has half of that */
#define MT_LIMIT_MEDIA_FRAMES 36000             /* of a video: 20 minutes at 30 a second */
#define MT_LIMIT_MEDIA_SECONDS 3600             /* of a video */
#define MT_LIMIT_MEDIA_FETCH_MS 20000           /* for a URL, its redirects included */

/* Media, always. */
#define MT_LIMIT_MEDIA_SIDE 65535              /* pixels of a side */
#define MT_LIMIT_MEDIA_SCANS 100               /* of a progressive JPEG; encoders write about ten */
#define MT_LIMIT_MEDIA_PASSES 16               /* scans of a JPEG with the most pixels; smaller ones may have more */
#define MT_LIMIT_MEDIA_STREAMS 64              /* of a video's file */
#define MT_LIMIT_MEDIA_SAMPLES (4 << 20)       /* samples that an MP4 lists, sound included */
#define MT_LIMIT_MEDIA_VIDEO_WORK (1ull << 37) /* pixels of all frames: an hour of 720p, ten minutes of 4K */
#define MT_LIMIT_MEDIA_IMAGE_SECONDS 20        /* processor seconds for a picture; a large one takes one or two */
#define MT_LIMIT_DECODE_SECONDS 900            /* processor seconds for all pictures and videos of a request */
#define MT_LIMIT_DECODE_AGAIN_US 100000 /* microseconds before a process that could not be started is tried again */
#define MT_LIMIT_DECODE_TAKES 10000     /* how often a picture or a frame may ask for memory */
#define MT_LIMIT_DECODE_IMAGE_MS 600000 /* for one picture by the clock, after which a process that sleeps is ended */
/* Bytes of a decoding process beyond what it asked for: code, input, results */
#define MT_LIMIT_DECODE_SLACK (512ul << 20)
/* PDFs */
#define MT_LIMIT_PDF_SECONDS 30            /* processor seconds of a program that reads one */
#define MT_LIMIT_PDF_MS 60000              /* for it by the clock */
#define MT_LIMIT_PDF_MEMORY (1ul << 30)    /* bytes of its address space */
#define MT_LIMIT_PDF_TEXT (8u << 20)       /* bytes of text */
#define MT_LIMIT_PDF_PICTURES (64ul << 20) /* bytes of pictures of pages */
#define MT_LIMIT_PDF_SIDE 2048             /* pixels of the longer side of a page's picture */
#define MT_LIMIT_MEDIA_URL 4096            /* bytes of a URL that is fetched */
#define MT_LIMIT_MEDIA_REDIRECTS 5         /* followed */

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
