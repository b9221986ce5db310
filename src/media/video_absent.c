/* Replaces video.c in a build without FFmpeg: every video is refused. */
#include <assert.h>

#include "media/video.h"

const bool mt_video_present = false;

mt_video *mt_video_open(const void *data, size_t size, const mt_media_limits *limits, const mt_media_watch *watch,
                        mt_error *err)
{
    (void)data, (void)size, (void)limits, (void)watch;
    mt_fail(err, MT_E_UNSUPPORTED,
            "the video cannot be read, since this motet was built without FFmpeg: send a list of pictures instead");
    return NULL;
}

void mt_video_close(mt_video *video)
{
    (void)video;
}

mt_video_info mt_video_about(const mt_video *video)
{
    (void)video;
    assert(false);
    return (mt_video_info){0};
}

double mt_video_time(const mt_video *video, int64_t index)
{
    (void)video, (void)index;
    assert(false);
    return 0;
}

bool mt_video_frame(mt_video *video, int64_t index, mt_image *image, mt_error *err)
{
    (void)video, (void)index, (void)image, (void)err;
    assert(false);
    return false;
}

mt_video *mt_video_from(const mt_video_info *about, double *times,
                        bool (*next)(void *ctx, int64_t index, mt_image *image, mt_error *err), void (*end)(void *ctx),
                        void *ctx)
{
    (void)about, (void)times, (void)next, (void)end, (void)ctx;
    assert(false);
    return NULL;
}
