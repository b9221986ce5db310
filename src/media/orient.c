/* EXIF orientation (codec.h): cameras store pictures as the sensor was held, and say in EXIF data how to turn them.
   Some programs say it in XMP instead. */
#include <string.h>

#include "media/bytes.h"
#include "media/codec.h"

enum { ORIENTATION = 0x0112, ENTRY = 12 };
enum {
    TYPE_SHORT = 3,
    TYPE_LONG = 4,
    TYPE_SIGNED_BYTE = 6,
    TYPE_SIGNED_SHORT = 8,
    TYPE_SIGNED_LONG = 9,
    TYPE_IFD = 13
};
static const char EXIF[6] = "Exif\0"; /* JPEG writes it before EXIF data, and some programs do in other formats, too */

/* A TIFF structure, which is how EXIF data are stored; big: numbers are big-endian. */
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

/* The number in an entry, of several the first; 1, which turns nothing, where it is no whole number or lies elsewhere.
   0: the entry is empty. */
static unsigned entry_value(const tiff *t, size_t entry)
{
    uint32_t count = read32(t, entry + 4), most = 0, value = 1;

    switch (read16(t, entry + 2)) {
    case TYPE_SIGNED_BYTE:
        value = t->data[entry + 8];
        most = 4;
        break;
    case TYPE_SHORT:
    case TYPE_SIGNED_SHORT:
        value = read16(t, entry + 8);
        most = 2;
        break;
    case TYPE_LONG:
    case TYPE_SIGNED_LONG:
    case TYPE_IFD:
        value = read32(t, entry + 8);
        most = 1;
        break;
    default: break;
    }
    if (count == 0)
        return 0;
    return count <= most && value >= 1 && value <= 8 ? value : 1;
}

/* 0: none. */
static unsigned tiff_orientation(const tiff *t)
{
    size_t at = read32(t, 4);
    uint32_t count;

    if (at > t->size || t->size - at < 2)
        return 0;
    count = read16(t, at);
    at += 2;
    for (uint32_t i = 0; i < count && t->size - at >= ENTRY; i++, at += ENTRY) {
        unsigned value = read16(t, at) == ORIENTATION ? entry_value(t, at) : 0;

        if (value)
            return value;
    }
    return 0;
}

/* Some programs write the number behind the order of bytes in the wrong order. 0: none. */
static unsigned exif_orientation(const uint8_t *data, size_t size)
{
    for (int i = 0; i < 2 && size >= sizeof(EXIF) && memcmp(data, EXIF, sizeof(EXIF)) == 0; i++) {
        data += sizeof(EXIF);
        size -= sizeof(EXIF);
    }
    if (size < 8 || (memcmp(data, "II", 2) != 0 && memcmp(data, "MM", 2) != 0) ||
        (memcmp(data + 2, "*\0", 2) != 0 && memcmp(data + 2, "\0*", 2) != 0))
        return 0;
    return tiff_orientation(&(tiff){.data = data, .size = size, .big = data[0] == 'M'});
}

/* Searches the text, as Pillow does. 0: none. */
static unsigned xmp_orientation(const uint8_t *xmp, size_t size)
{
    static const char name[] = "tiff:Orientation";
    const uint8_t *end = xmp + size;

    while ((xmp = memmem(xmp, (size_t)(end - xmp), name, sizeof(name) - 1)) != NULL) {
        const uint8_t *p = xmp += sizeof(name) - 1;

        if (end - p > 1 && p[0] == '>')
            p++;
        else if (end - p > 2 && memcmp(p, "=\"", 2) == 0)
            p += 2;
        if (p > xmp && *p >= '0' && *p <= '9')
            return *p >= '1' && *p <= '8' ? (unsigned)(*p - '0') : 1;
    }
    return 0;
}

unsigned mt_metadata_orientation(const mt_metadata *m)
{
    unsigned value = m->exif ? exif_orientation(m->exif, m->exif_size) : 0;

    if (!value && m->xmp)
        value = xmp_orientation(m->xmp, m->xmp_size);
    return value ? value : 1;
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
