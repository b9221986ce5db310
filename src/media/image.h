/* Decodes pictures to the pixels that Pillow's Image.open(...), ImageOps.exif_transpose and convert("RGB") give. */
#ifndef MT_MEDIA_IMAGE_H
#define MT_MEDIA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "media/limits.h"
#include "media/watch.h"

typedef struct mt_image {
    uint8_t *pixels; /* red, green, blue; rows from the top, without padding. Owned; free with mt_image_free */
    uint32_t width, height;
    size_t mapped; /* size of the mapping, where pixels are a memory mapping; 0: they are from the heap */
} mt_image;

typedef enum mt_image_format { MT_IMAGE_JPEG, MT_IMAGE_PNG, MT_IMAGE_WEBP, MT_IMAGE_GIF, MT_IMAGE_BMP } mt_image_format;

/* False in a build without libwebp, where WebP pictures are refused as MT_E_UNSUPPORTED. */
extern const bool mt_image_webp_present;

/* Facts from a picture's header. */
typedef struct mt_image_info {
    mt_image_format format;
    uint32_t width, height; /* before the EXIF orientation is applied */
    size_t memory;          /* most bytes that mt_image_decode needs, pixels included */
    uint64_t work;          /* mt_image_work */
} mt_image_info;

/* Recognises the format by the bytes and reads the header; allocates nothing that grows with the picture. Fails like
   mt_image_decode where it is no picture, or has no pixels or too many. */
bool mt_image_probe(mt_image_info *info, const void *data, size_t size, const mt_media_limits *limits,
                    mt_error *err) MT_NODISCARD;

/* Estimates from its headers what decoding a picture costs, in pixels: as many as it has, times the scans of a JPEG,
   and twice for a PNG of more than 32 bits a pixel and for a WebP that has alpha. 0: the header is damaged, and
   mt_image_probe refuses it. Reads the bytes with code of this project alone and allocates nothing. */
uint64_t mt_image_work(const void *data, size_t size);

/* Decodes a picture; of an animation the first frame. Alpha is dropped, as convert("RGB") does. A file that ends early
   or is inconsistent fails. Asks the watch for all memory before it decodes, and stops within some rows (WebP: at the
   end) after watch->stop is set or the thread has had limits->image_seconds for it. Every failure is MT_E_INVALID with
   a sentence for the client, or the watch's error. Free with mt_image_free. */
bool mt_image_decode(mt_image *image, const void *data, size_t size, const mt_media_limits *limits,
                     const mt_media_watch *watch, mt_error *err) MT_NODISCARD;

/* The same into given memory, which is zeroed and has room for the size that mt_image_probe gave. Sets the size in
   *info to that after the EXIF orientation. */
bool mt_image_decode_to(uint8_t *to, mt_image_info *info, const void *data, size_t size, const mt_media_limits *limits,
                        const mt_media_watch *watch, mt_error *err) MT_NODISCARD;

/* A black picture; the caller has checked the size against the limits. */
void mt_image_new(mt_image *image, uint32_t width, uint32_t height);
void mt_image_free(mt_image *image); /* leaves it empty; a zeroed one is fine */

/* Copies the part of `in` that begins at (left, top); it must lie inside. Free out with mt_image_free. */
void mt_image_crop(mt_image *out, const mt_image *in, uint32_t left, uint32_t top, uint32_t width, uint32_t height);

#endif
