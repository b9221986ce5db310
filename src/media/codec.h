/* The interface between image.c and the decoder of each picture format, and what they share. Included in this folder
   only. */
#ifndef MT_MEDIA_CODEC_H
#define MT_MEDIA_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "media/image.h"

/* Facts from the header of a picture. */
typedef struct mt_codec_head {
    uint32_t width, height;
    size_t memory;        /* bytes that decoding needs besides the pixels */
    uint64_t least;       /* least bytes that a file of this size can have: a shorter file is refused */
    unsigned orientation; /* EXIF orientation: 1 to 8 */
    uint64_t work;        /* mt_image_work; not of `head` but of `work` */
} mt_codec_head;

typedef struct mt_codec {
    const char *name; /* for messages */
    mt_image_format format;
    /* whether the bytes begin like a file of this format */
    bool (*is)(const uint8_t *data, size_t size);
    /* reads the header */
    bool (*head)(mt_codec_head *head, const uint8_t *data, size_t size, mt_error *err);
    /* Estimates the work of decoding in pixels (mt_image_work). Reads the bytes with code of this project alone, since
       the server calls it outside of the decoding process. */
    uint64_t (*work)(const uint8_t *data, size_t size);
    /* Fills image, which has the size from `head` and is black. Checks mt_media_stopped now and then. */
    bool (*decode)(mt_image *image, const uint8_t *data, size_t size, const mt_media_watch *watch, mt_error *err);
} mt_codec;

extern const mt_codec mt_codec_jpeg, mt_codec_png, mt_codec_webp, mt_codec_gif, mt_codec_bmp;

/* Set the error for a file that ends too early, that is inconsistent, or that may be in order but is of a kind that is
   not read here. All return false. */
bool mt_codec_ends_early(mt_error *err, const char *name);
bool mt_codec_damaged(mt_error *err, const char *name, const char *why);
bool mt_codec_unknown(mt_error *err, const char *name, const char *kind);

/* Pixels of a picture, counted so many times; UINT64_MAX where that is more. */
uint64_t mt_codec_work(uint32_t width, uint32_t height, uint64_t times);

/* Set the error for work that was cancelled (watch->stop), or that took too many seconds of a processor. Return
   false. */
bool mt_codec_stopped(mt_error *err);
bool mt_codec_spent(mt_error *err, double seconds);

/* Fills entries `count` to 255 of a colour table as Pillow does: with black, or with greys where all known entries are
   the greys of their index (so that the table says nothing). */
void mt_codec_colours_rest(uint8_t colours[256][3], size_t count);

/* Where a file says how its picture has to be turned; NULL: it has no such data. */
typedef struct mt_metadata {
    const uint8_t *exif, *xmp;
    size_t exif_size, xmp_size;
} mt_metadata;

/* The EXIF orientation of a picture, 1 to 8, as Pillow finds it: where EXIF says nothing of it, XMP may. */
unsigned mt_metadata_orientation(const mt_metadata *m);

/* Turns and mirrors a picture that has this EXIF orientation, so that it is upright. */
void mt_image_orient(mt_image *image, unsigned orientation);

#endif
