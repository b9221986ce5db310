/* Functions that the decoders share (codec.h): new pictures, colour tables, and messages about broken files. */
#include "media/codec.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

bool mt_codec_ends_early(mt_error *err, const char *name)
{
    return mt_fail(err, MT_E_INVALID, "the \"%s\" picture ends early: send the whole file", name);
}

bool mt_codec_damaged(mt_error *err, const char *name, const char *why)
{
    return mt_fail(err, MT_E_INVALID, "the \"%s\" picture is damaged (%s): send an intact file", name, why);
}

bool mt_codec_unknown(mt_error *err, const char *name, const char *kind)
{
    return mt_fail(err, MT_E_INVALID,
                   "the \"%s\" picture is of a kind that is not known here (%s): send it as an 8-bit \"PNG\"", name,
                   kind);
}

uint64_t mt_codec_work(uint32_t width, uint32_t height, uint64_t times)
{
    const uint64_t pixels = (uint64_t)width * height;

    return times == 0 || pixels <= UINT64_MAX / times ? pixels * times : UINT64_MAX;
}

bool mt_codec_stopped(mt_error *err)
{
    return mt_fail(err, MT_E_INVALID, "the picture was not decoded to its end: its request was cancelled");
}

bool mt_codec_spent(mt_error *err, double seconds)
{
    return mt_fail(
        err, MT_E_INVALID,
        "the picture takes more than the %g seconds of a processor that one may: send a smaller or simpler one",
        seconds);
}

void mt_codec_colours_rest(uint8_t colours[256][3], size_t count)
{
    bool greys = true;

    for (size_t i = 0; i < count; i++)
        greys = greys && colours[i][0] == i && colours[i][1] == i && colours[i][2] == i;
    for (size_t i = count; i < 256; i++)
        memset(colours[i], greys ? (int)i : 0, 3);
}

void mt_image_new(mt_image *image, uint32_t width, uint32_t height)
{
    size_t size;

    assert(width > 0 && height > 0);
    if (MT_MUL_OVERFLOWS((size_t)width * 3, (size_t)height, &size))
        size = SIZE_MAX; /* mt_alloc refuses it */
    *image = (mt_image){.pixels = mt_alloc(size), .width = width, .height = height};
}

void mt_image_free(mt_image *image)
{
    if (image->mapped)
        munmap(image->pixels, image->mapped);
    else
        mt_free(image->pixels);
    *image = (mt_image){0};
}
