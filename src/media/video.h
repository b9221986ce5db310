/* Decodes videos: MP4 and WebM (Matroska) with H.264, HEVC, VP8, VP9 or AV1, from memory. A processor reads the
   properties, chooses frames by number and decodes them one by one, so that one frame at a time is in memory. */
#ifndef MT_MEDIA_VIDEO_H
#define MT_MEDIA_VIDEO_H

#include "media/image.h"

typedef struct mt_video mt_video;

/* False in a build without FFmpeg, where every video is refused as MT_E_UNSUPPORTED. */
extern const bool mt_video_present;

typedef struct mt_video_info {
    uint32_t width, height;
    int64_t frames;  /* frames that are shown, counted, not taken from the header; at least 1 */
    double fps;      /* average frames per second; above 0 */
    double duration; /* seconds: frames / fps */
    size_t memory;   /* most bytes that decoding needs besides the file */
} mt_video_info;

/* Borrows data and the watch until mt_video_close. Asks the watch for the memory that decoding needs; after watch->stop
   is set, this and mt_video_frame fail soon. Failures are MT_E_INVALID with a sentence for the client, or the watch's
   error. */
mt_video *mt_video_open(const void *data, size_t size, const mt_media_limits *limits, const mt_media_watch *watch,
                        mt_error *err) MT_NODISCARD;
void mt_video_close(mt_video *video); /* NULL is fine */

mt_video_info mt_video_about(const mt_video *video);

/* When a frame is shown, in seconds from the first. index < frames. */
double mt_video_time(const mt_video *video, int64_t index);

/* Decodes frame number index, counted from 0 in the order of display. The numbers must not decrease from call to call;
   the same one may be asked for again. Free image with mt_image_free. */
bool mt_video_frame(mt_video *video, int64_t index, mt_image *image, mt_error *err) MT_NODISCARD;

/* A video that is decoded elsewhere (the decoder process): next fills image, which has the right size; end is called
   when the video is closed. Owns times, an array from mt_alloc with one element a frame. */
mt_video *mt_video_from(const mt_video_info *about, double *times,
                        bool (*next)(void *ctx, int64_t index, mt_image *image, mt_error *err), void (*end)(void *ctx),
                        void *ctx);

#endif
