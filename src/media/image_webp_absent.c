/* Replaces image_webp.c in a build without libwebp: WebP is recognised and refused by name. */
#include <string.h>

#include "media/codec.h"

const bool mt_image_webp_present = false;

static bool is_webp(const uint8_t *data, size_t size)
{
    return size >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0;
}

static bool read_head(mt_codec_head *head, const uint8_t *data, size_t size, mt_error *err)
{
    (void)head, (void)data, (void)size;
    return mt_fail(err, MT_E_UNSUPPORTED,
                   "the \"WebP\" picture cannot be read, since this motet was built without libwebp: send \"JPEG\", "
                   "\"PNG\", \"GIF\" or \"BMP\"");
}

static uint64_t work(const uint8_t *data, size_t size)
{
    (void)data, (void)size;
    return 0;
}

const mt_codec mt_codec_webp = {
    .name = "WebP", .format = MT_IMAGE_WEBP, .is = is_webp, .head = read_head, .work = work};
