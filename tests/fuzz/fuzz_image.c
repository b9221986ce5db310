/* Arbitrary bytes as a picture: what is decoded is within limits, probing and decoding agree, and every pixel is there
   to be resized. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "media/cost.h"
#include "media/resize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void resize(const mt_image *image, mt_resample resample)
{
    mt_image made;

    mt_image_resize(&made, image, 5, 7, resample);
    mt_image_free(&made);
}

/* A build may lack the library for a format. */
static bool is_refusal(const mt_error *err)
{
    return (err->code == MT_E_INVALID || err->code == MT_E_UNSUPPORTED) && strlen(err->text) > 20;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_media_limits limits = mt_media_limits_default();
    mt_image_info info;
    mt_image image;
    mt_error err = {0};
    bool known;

    limits.pixels = 1 << 18;
    known = mt_image_probe(&info, data, size, &limits, &err);
    assert(known || is_refusal(&err));
    assert(!known || info.work == mt_media_cost(data, size));
    if (!mt_image_decode(&image, data, size, &limits, NULL, &err)) {
        assert(is_refusal(&err));
        return 0;
    }
    assert(known && (uint64_t)image.width * image.height == (uint64_t)info.width * info.height);
    assert((uint64_t)image.width * image.height <= limits.pixels);
    resize(&image, MT_RESAMPLE_BICUBIC);
    resize(&image, MT_RESAMPLE_NEAREST);
    mt_image_free(&image);
    return 0;
}
