/* EXIF orientation (codec.h): cameras store pictures as the sensor was held, and say in EXIF data how to turn them. */
#include <string.h>

#include "media/bytes.h"
#include "media/codec.h"

enum { ORIENTATION = 0x0112, TYPE_BYTE = 1, TYPE_SHORT = 3, TYPE_LONG = 4, ENTRY = 12 };

/* A TIFF structure; big: numbers are big-endian. */
typedef struct tiff {
    const uint8_t *data;
    size_t size;
    bool big;
} tiff;

static uint32_t read16(const tiff *t, size_t at)
{
    return t->big ? mt_be16(t->data + at) : mt_le16(t->data + at);
}

static uint32_t read32(const tiff *t, size_t at)
{
    return t->big ? mt_be32(t->data + at) : mt_le32(t->data + at);
}

static uint32_t entry_value(const tiff *t, size_t entry)
{
    switch (read16(t, entry + 2)) {
    case TYPE_BYTE: return t->data[entry + 8];
    case TYPE_SHORT: return read16(t, entry + 8);
    case TYPE_LONG: return read32(t, entry + 8);
    default: return 1;
    }
}

unsigned mt_exif_orientation(const uint8_t *data, size_t size)
{
    tiff t = {.data = data, .size = size};
    uint32_t count, value;
    size_t at;

    if (size < 8 || (memcmp(data, "II*\0", 4) != 0 && memcmp(data, "MM\0*", 4) != 0))
        return 1;
    t.big = data[0] == 'M';
    at = read32(&t, 4);
    if (at > size || size - at < 2)
        return 1;
    count = read16(&t, at);
    at += 2;
    for (uint32_t i = 0; i < count && size - at >= ENTRY; i++, at += ENTRY) {
        if (read16(&t, at) != ORIENTATION)
            continue;
        value = entry_value(&t, at);
        return value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
}

/* Offset of the source of the first pixel, and the steps to the sources of the next one to the right and below. */
typedef struct walk {
    ptrdiff_t start, right, down;
} walk;

static walk walk_of(const mt_image *in, unsigned orientation)
{
    ptrdiff_t pixel = 3, row = (ptrdiff_t)in->width * 3;
    /* offsets of the last column and the last row */
    ptrdiff_t east = row - pixel, south = ((ptrdiff_t)in->height - 1) * row;

    switch (orientation) {
    case 2: return (walk){east, -pixel, row};
    case 3: return (walk){east + south, -pixel, -row};
    case 4: return (walk){south, pixel, -row};
    case 5: return (walk){0, row, pixel};
    case 6: return (walk){south, -row, pixel};
    case 7: return (walk){east + south, -row, -pixel};
    default: return (walk){east, row, -pixel};
    }
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void mt_image_orient(mt_image *image, unsigned orientation)
{
    enum { TILE = 32 }; /* tiles, so that rows that become columns stay in the cache */
    mt_image out;
    walk w;

    if (orientation < 2 || orientation > 8)
        return;
    w = walk_of(image, orientation);
    if (orientation >= 5)
        mt_image_new(&out, image->height, image->width);
    else
        mt_image_new(&out, image->width, image->height);
    for (uint32_t top = 0; top < out.height; top += TILE)
        for (uint32_t left = 0; left < out.width; left += TILE)
            for (uint32_t y = top; y < lesser(top + TILE, out.height); y++)
                for (uint32_t x = left; x < lesser(left + TILE, out.width); x++)
                    memcpy(out.pixels + ((size_t)y * out.width + x) * 3,
                           image->pixels + w.start + (ptrdiff_t)x * w.right + (ptrdiff_t)y * w.down, 3);
    mt_image_free(image);
    *image = out;
}
