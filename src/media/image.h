/* Pictures: what Pillow's Image.open(...), ImageOps.exif_transpose and convert("RGB") give, from bytes. */
#ifndef MT_MEDIA_IMAGE_H
#define MT_MEDIA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "media/limits.h"
#include "media/watch.h"

typedef struct mt_image {
    uint8_t *pixels; /* red, green, blue; rows from the top, without gaps. Owned; free with mt_image_free */
    uint32_t width, height;
    size_t mapped; /* bytes of pixels where they are a mapping of their own; 0: they are from the heap */
} mt_image;

typedef enum mt_image_format { MT_IMAGE_JPEG, MT_IMAGE_PNG, MT_IMAGE_WEBP, MT_IMAGE_GIF, MT_IMAGE_BMP } mt_image_format;

/* False in a build without libwebp, where such pictures are refused as MT_E_UNSUPPORTED. */
extern const bool mt_image_webp_present;

/* What a header says. */
typedef struct mt_image_info {
    mt_image_format format;
    uint32_t width, height; /* before the picture is turned as its EXIF data wishes */
    size_t memory;          /* that mt_image_decode takes at most, the picture included */
} mt_image_info;

/* Decides by the bytes what they are and reads the header; allocates nothing that grows with the picture. Fails as
   mt_image_decode does for what is no picture, has no pixels or more than allowed. */
bool mt_image_probe(mt_image_info *info, const void *data, size_t size, const mt_media_limits *limits,
                    mt_error *err) MT_NODISCARD;

/* Decodes a picture, the first one of an animation. Alpha is dropped, as convert("RGB") does. A file that ends early
   or contradicts itself fails. Asks the watch for all the memory that it takes before it decodes, and ends within some
   rows (of WebP: with the picture) where nobody waits any more. Every failure is MT_E_INVALID with a sentence for the
   client, or the watch's. Free with mt_image_free. */
bool mt_image_decode(mt_image *image, const void *data, size_t size, const mt_media_limits *limits,
                     const mt_media_watch *watch, mt_error *err) MT_NODISCARD;

/* The same to where there is room for the pixels that mt_image_probe told, and zeros. Sets the size in *info to what it
   is when the picture was turned. */
bool mt_image_decode_to(uint8_t *to, mt_image_info *info, const void *data, size_t size, const mt_media_limits *limits,
                        const mt_media_watch *watch, mt_error *err) MT_NODISCARD;

/* An empty (black) picture of a size that is known to be within limits. */
void mt_image_new(mt_image *image, uint32_t width, uint32_t height);
void mt_image_free(mt_image *image); /* leaves it empty; a zeroed one is fine */

/* The part of in that begins at (left, top); it must lie inside. Free out with mt_image_free. */
void mt_image_crop(mt_image *out, const mt_image *in, uint32_t left, uint32_t top, uint32_t width, uint32_t height);

#endif
