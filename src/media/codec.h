/* What image.c asks of each format of pictures; nobody else includes this. */
#ifndef MT_MEDIA_CODEC_H
#define MT_MEDIA_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "media/image.h"

/* What a header says of a picture. */
typedef struct mt_codec_head {
    uint32_t width, height;
    size_t memory;        /* that decoding takes besides the picture */
    uint64_t least;       /* bytes that such a file has: a small one that claims more lies */
    unsigned orientation; /* as EXIF numbers them: 1 to 8 */
} mt_codec_head;

typedef struct mt_codec {
    const char *name; /* in sentences */
    mt_image_format format;
    bool (*is)(const uint8_t *data, size_t size);
    bool (*head)(mt_codec_head *head, const uint8_t *data, size_t size, mt_error *err);
    /* Fills image, which has the size that head told and is black. Looks now and then whether it should stop. */
    bool (*decode)(mt_image *image, const uint8_t *data, size_t size, const mt_media_watch *watch, mt_error *err);
} mt_codec;

extern const mt_codec mt_codec_jpeg, mt_codec_png, mt_codec_webp, mt_codec_gif, mt_codec_bmp;

/* The two ways a file is wrong: it stops, or it says what cannot be. Both return false. */
bool mt_codec_ends_early(mt_error *err, const char *name);
bool mt_codec_damaged(mt_error *err, const char *name, const char *why);

/* Nobody waits for the picture any more. Returns false. */
bool mt_codec_stopped(mt_error *err);

/* Fills the rest of a table of colours of which count are known, as Pillow does: with black, or with greys where those
   known are the greys of their numbers (and so the table says nothing). */
void mt_codec_colours_rest(uint8_t colours[256][3], size_t count);

/* The orientation that a TIFF structure, which is what EXIF data are, asks for; 1 where it asks for none. */
unsigned mt_exif_orientation(const uint8_t *tiff, size_t size);

/* Turns and mirrors a picture so that what EXIF numbers orientation becomes upright. */
void mt_image_orient(mt_image *image, unsigned orientation);

#endif
