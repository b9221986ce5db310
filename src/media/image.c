/* Recognises and decodes pictures (image.h) by the codec of their format (codec.h). */
#include "media/image.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "media/codec.h"
#include "media/limits.h"

static const mt_codec *const codecs[] = {&mt_codec_jpeg, &mt_codec_png, &mt_codec_webp, &mt_codec_gif, &mt_codec_bmp};

static bool check_size(const mt_codec_head *head, const char *name, const mt_media_limits *limits, mt_error *err)
{
    uint64_t pixels = (uint64_t)head->width * head->height;

    if (pixels == 0)
        return mt_fail(err, MT_E_INVALID,
                       "the \"%s\" picture is %" PRIu32 "x%" PRIu32 " pixels: send one that has some", name,
                       head->width, head->height);
    if (head->width > MT_LIMIT_MEDIA_SIDE || head->height > MT_LIMIT_MEDIA_SIDE)
        return mt_fail(err, MT_E_INVALID,
                       "the \"%s\" picture is %" PRIu32 "x%" PRIu32
                       " pixels, and a side may have %d: send a smaller one",
                       name, head->width, head->height, MT_LIMIT_MEDIA_SIDE);
    if (pixels > limits->pixels)
        return mt_fail(err, MT_E_INVALID,
                       "the \"%s\" picture is %" PRIu32 "x%" PRIu32 " pixels, %" PRIu64 " in all, and %" PRIu64
                       " are allowed: send a smaller one",
                       name, head->width, head->height, pixels, limits->pixels);
    return true;
}

static bool check_work(const mt_codec_head *head, const char *name, const mt_media_limits *limits, mt_error *err)
{
    const uint64_t pixels = (uint64_t)head->width * head->height;

    return head->work / MT_LIMIT_MEDIA_PASSES <= limits->pixels ||
           mt_fail(err, MT_E_INVALID,
                   "the \"%s\" picture is %" PRIu32 "x%" PRIu32 " pixels in %" PRIu64 " scans, and %" PRIu64
                   " are allowed for so many: send a smaller one, or one with fewer scans",
                   name, head->width, head->height, head->work / pixels,
                   limits->pixels * MT_LIMIT_MEDIA_PASSES / pixels);
}

static const mt_codec *codec_of(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < MT_COUNT(codecs); i++)
        if (codecs[i]->is(data, size))
            return codecs[i];
    return NULL;
}

uint64_t mt_image_work(const void *data, size_t size)
{
    const mt_codec *codec = codec_of(data, size);

    return codec ? codec->work(data, size) : 0;
}

/* Recognises the format and reads the header; NULL where that fails. */
static const mt_codec *recognise(mt_codec_head *head, const uint8_t *data, size_t size, const mt_media_limits *limits,
                                 mt_error *err)
{
    const mt_codec *codec;

    if (size > limits->bytes) {
        mt_fail(err, MT_E_INVALID, "the picture has %zu bytes, and %zu are allowed: send a smaller one", size,
                limits->bytes);
        return NULL;
    }
    codec = codec_of(data, size);
    if (!codec) {
        mt_fail(err, MT_E_INVALID,
                "the %zu bytes are no picture that is known here: send \"JPEG\", \"PNG\", \"WebP\", \"GIF\" or \"BMP\"",
                size);
        return NULL;
    }
    *head = (mt_codec_head){.orientation = 1};
    if (!codec->head(head, data, size, err) || !check_size(head, codec->name, limits, err))
        return NULL;
    head->work = codec->work(data, size);
    if (!check_work(head, codec->name, limits, err))
        return NULL;
    if (head->least <= size)
        return codec;
    mt_codec_ends_early(err, codec->name);
    return NULL;
}

/* The pixels, and besides the codec's memory or, where the picture has to be turned, a second copy, whichever is
   more. */
static size_t memory_of(const mt_codec_head *head)
{
    const size_t picture = (size_t)head->width * head->height * 3;

    return picture + (head->orientation == 1 || head->memory > picture ? head->memory : picture);
}

bool mt_image_probe(mt_image_info *info, const void *data, size_t size, const mt_media_limits *limits, mt_error *err)
{
    mt_codec_head head;
    const mt_codec *codec = recognise(&head, data, size, limits, err);

    if (!codec)
        return false;
    *info = (mt_image_info){.format = codec->format,
                            .width = head.width,
                            .height = head.height,
                            .memory = memory_of(&head),
                            .work = head.work};
    return true;
}

/* Decodes within the processor time that a picture may have. */
static bool decode_in_time(const mt_codec *codec, mt_image *image, const void *data, size_t size,
                           const mt_media_limits *limits, const mt_media_watch *watch, mt_error *err)
{
    mt_media_watch own = watch ? *watch : (mt_media_watch){0};

    own.cpu_end = mt_clock_thread_ns() + (uint64_t)(limits->image_seconds * 1e9);
    if (codec->decode(image, data, size, &own, err))
        return true;
    return mt_media_spent(&own) ? mt_codec_spent(err, limits->image_seconds) : false;
}

bool mt_image_decode(mt_image *image, const void *data, size_t size, const mt_media_limits *limits,
                     const mt_media_watch *watch, mt_error *err)
{
    mt_codec_head head;
    const mt_codec *codec = recognise(&head, data, size, limits, err);

    *image = (mt_image){0};
    if (!codec || !mt_media_take(watch, memory_of(&head), err))
        return false;
    mt_image_new(image, head.width, head.height);
    if (!decode_in_time(codec, image, data, size, limits, watch, err)) {
        mt_image_free(image);
        return false;
    }
    mt_image_orient(image, head.orientation);
    return true;
}

/* A picture that has to be turned is decoded to separate memory first. */
bool mt_image_decode_to(uint8_t *to, mt_image_info *info, const void *data, size_t size, const mt_media_limits *limits,
                        const mt_media_watch *watch, mt_error *err)
{
    mt_codec_head head;
    const mt_codec *codec = recognise(&head, data, size, limits, err);
    mt_image image;

    if (!codec)
        return false;
    if (head.orientation == 1) {
        image = (mt_image){.pixels = to, .width = head.width, .height = head.height};
        return mt_media_take(watch, memory_of(&head), err) &&
               decode_in_time(codec, &image, data, size, limits, watch, err);
    }
    if (!mt_image_decode(&image, data, size, limits, watch, err))
        return false;
    memcpy(to, image.pixels, (size_t)image.width * image.height * 3);
    info->width = image.width;
    info->height = image.height;
    mt_image_free(&image);
    return true;
}

void mt_image_crop(mt_image *out, const mt_image *in, uint32_t left, uint32_t top, uint32_t width, uint32_t height)
{
    assert(width <= in->width && left <= in->width - width && height <= in->height && top <= in->height - height);
    mt_image_new(out, width, height);
    for (uint32_t y = 0; y < height; y++)
        memcpy(out->pixels + (size_t)y * width * 3, in->pixels + ((size_t)(top + y) * in->width + left) * 3,
               (size_t)width * 3);
}
