/* Videos: MP4 and WebM (Matroska) with H.264, HEVC, VP8, VP9 or AV1, read from memory and nowhere else. A processor
   learns what there is, chooses frames by index and takes them one by one, so that one frame at a time is in memory. */
#ifndef MT_MEDIA_VIDEO_H
#define MT_MEDIA_VIDEO_H

#include "media/image.h"

typedef struct mt_video mt_video;

/* False in a build without FFmpeg, where every video is refused as MT_E_UNSUPPORTED. */
extern const bool mt_video_present;

typedef struct mt_video_info {
    uint32_t width, height;
    int64_t frames;  /* that are shown, counted, not believed; at least 1 */
    double fps;      /* the average rate; more than 0 */
    double duration; /* seconds: frames / fps */
    size_t memory;   /* that decoding takes at most, besides the bytes */
} mt_video_info;

/* Borrows data and the watch until mt_video_close. Asks the watch for the memory that decoding takes; once that stops,
   this and mt_video_frame fail soon. Failures are MT_E_INVALID with a sentence for the client, or the watch's. */
mt_video *mt_video_open(const void *data, size_t size, const mt_media_limits *limits, const mt_media_watch *watch,
                        mt_error *err) MT_NODISCARD;
void mt_video_close(mt_video *video); /* NULL is fine */

mt_video_info mt_video_about(const mt_video *video);

/* When a frame is shown, in seconds from the first: what timestamps are made of. index < frames. */
double mt_video_time(const mt_video *video, int64_t index);

/* Decodes frame index, counted from 0 in the order they are shown. Indices of one video never fall from call to call;
   the same one may be asked for again. Free image with mt_image_free. */
bool mt_video_frame(mt_video *video, int64_t index, mt_image *image, mt_error *err) MT_NODISCARD;

/* One that is decoded elsewhere: next fills image, which has its size; end is called when it is closed. Takes times,
   one for each frame, from mt_alloc. */
mt_video *mt_video_from(const mt_video_info *about, double *times,
                        bool (*next)(void *ctx, int64_t index, mt_image *image, mt_error *err), void (*end)(void *ctx),
                        void *ctx);

#endif
