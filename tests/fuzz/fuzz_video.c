/* Arbitrary bytes as a video: what opens has frames, and the first, one in between and the last can be asked for. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "media/cost.h"
#include "media/video.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(mt_video *video, int64_t index)
{
    mt_video_info info = mt_video_about(video);
    mt_image image;
    mt_error err = {0};

    if (mt_video_frame(video, index, &image, &err)) {
        assert(image.width == info.width && image.height == info.height);
        mt_image_free(&image);
        return;
    }
    assert(err.code == MT_E_INVALID && strlen(err.text) > 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_media_limits limits = mt_media_limits_default();
    mt_error err = {0};
    mt_video_info info;
    mt_video *video;

    (void)mt_media_cost(data, size);
    limits.video_pixels = 1 << 16;
    limits.video_frames = 64;
    video = mt_video_open(data, size, &limits, NULL, &err);
    if (!video) {
        assert(err.code == (mt_video_present ? MT_E_INVALID : MT_E_UNSUPPORTED) && strlen(err.text) > 20);
        return 0;
    }
    info = mt_video_about(video);
    assert(info.frames > 0 && info.frames <= limits.video_frames && info.fps > 0 && info.duration > 0);
    assert((uint64_t)info.width * info.height <= limits.video_pixels);
    take(video, 0);
    take(video, info.frames / 2);
    take(video, info.frames - 1);
    mt_video_close(video);
    return 0;
}
