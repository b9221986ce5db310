/* BMP of Windows and OS/2: 1, 4, 8, 16, 24 and 32 bits, RLE, bit fields, either way up. */
#include <stdio.h>
#include <string.h>

#include "media/bytes.h"
#include "media/codec.h"

static const char NAME[] = "BMP";

enum { LOOK = 4096 }; /* codes between checks whether the picture is still wanted */
enum { FILE_HEAD = 14, OS2_HEAD = 12, INFO_HEAD = 40 };
enum { RAW = 0, RLE8 = 1, RLE4 = 2, FIELDS = 3, ALPHA_FIELDS = 6 };

/* A BMP file and its header. */
typedef struct bmp {
    const uint8_t *data, *end;
    uint32_t width, height, bits, compression;
    uint32_t masks[3]; /* red, green, blue */
    size_t pixels;     /* offset of the pixels in the file */
    bool top_down;
    uint8_t colours[256][3];
} bmp;

static bool is_bmp(const uint8_t *data, size_t size)
{
    return size >= 2 && data[0] == 'B' && data[1] == 'M';
}

/* Returns the offset behind the table. */
static size_t read_colours(bmp *b, size_t at, size_t count, size_t entry)
{
    size_t size = (size_t)(b->end - b->data), i;

    for (i = 0; i < count && i < 256 && at + entry <= size; i++, at += entry)
        for (int c = 0; c < 3; c++)
            b->colours[i][c] = b->data[at + 2 - (size_t)c];
    mt_codec_colours_rest(b->colours, i);
    return at;
}

/* Fields that are all empty mean the usual ones where a pixel has 32 bits; 24 bits have no others. */
static bool read_masks(bmp *b, size_t at, mt_error *err)
{
    static const uint32_t five[3] = {0x7C00, 0x3E0, 0x1F}, eight[3] = {0xFF0000, 0xFF00, 0xFF};
    static const uint8_t none[12], usual[12] = {0, 0, 0xFF, 0, 0, 0xFF, 0, 0, 0xFF};

    memcpy(b->masks, b->bits == 16 ? five : eight, sizeof(b->masks));
    if (b->compression != FIELDS && b->compression != ALPHA_FIELDS)
        return true;
    if ((size_t)(b->end - b->data) < at + 12)
        return mt_codec_ends_early(err, NAME);
    if (b->bits == 32 && memcmp(b->data + at, none, sizeof(none)) == 0)
        return true;
    if (b->bits == 24)
        return memcmp(b->data + at, usual, sizeof(usual)) == 0 ||
               mt_codec_damaged(err, NAME, "it has other bit fields than 24 bits may have");
    for (size_t i = 0; i < 3; i++) {
        uint32_t mask = mt_le32(b->data + at + 4 * i), low = mask & (~mask + 1);

        if (mask == 0 || ((mask / low) & (mask / low + 1)) != 0)
            return mt_codec_damaged(err, NAME, "a bit field is empty or has gaps");
        b->masks[i] = mask;
    }
    return true;
}

static bool is_supported(const bmp *b)
{
    switch (b->bits) {
    case 1: return b->compression == RAW;
    case 4: return b->compression == RAW || b->compression == RLE4;
    case 8: return b->compression == RAW || b->compression == RLE8;
    case 24: return b->compression == RAW || b->compression == FIELDS;
    case 16:
    case 32: return b->compression == RAW || b->compression == FIELDS || b->compression == ALPHA_FIELDS;
    default: return false;
    }
}

/* Where a file says that its pixels begin, though its colours do, they are behind these. */
static bool read_tables(bmp *b, uint32_t head, uint32_t count, mt_error *err)
{
    size_t at = (size_t)FILE_HEAD + head, said = mt_le32(b->data + 10);
    bool wrong = b->bits <= 8 && said == at;
    char why[80];

    if (!is_supported(b)) {
        snprintf(why, sizeof(why), "%u bits with compression %u", (unsigned)b->bits, (unsigned)b->compression);
        return mt_codec_unknown(err, NAME, why);
    }
    if (!read_masks(b, FILE_HEAD + INFO_HEAD, err))
        return false;
    if (head == INFO_HEAD && b->compression != RAW && b->bits > 8)
        at += b->compression == FIELDS ? 12 : 16;
    if (b->bits <= 8)
        at = read_colours(b, at, count ? count : (size_t)1 << b->bits, head == OS2_HEAD ? 3 : 4);
    b->pixels = said && !wrong ? said : at;
    return b->pixels <= (size_t)(b->end - b->data) || mt_codec_ends_early(err, NAME);
}

/* Reads the file's header. */
static bool open_file(bmp *b, const uint8_t *data, size_t size, mt_error *err)
{
    uint32_t head, count = 0;
    char why[80];

    *b = (bmp){.data = data, .end = data + size};
    if (size < FILE_HEAD + 4)
        return mt_codec_ends_early(err, NAME);
    head = mt_le32(data + FILE_HEAD);
    if (head != OS2_HEAD && head != 40 && head != 52 && head != 56 && head != 64 && head != 108 && head != 124) {
        snprintf(why, sizeof(why), "its header has %u bytes", (unsigned)head);
        return mt_codec_damaged(err, NAME, why);
    }
    if (size < FILE_HEAD + head)
        return mt_codec_ends_early(err, NAME);
    if (head == OS2_HEAD) {
        b->width = mt_le16(data + 18);
        b->height = mt_le16(data + 20);
        b->bits = mt_le16(data + 24);
    } else {
        b->width = mt_le32(data + 18);
        b->height = mt_le32(data + 22);
        b->top_down = b->height >> 31;
        if (b->top_down)
            b->height = ~b->height + 1;
        b->bits = mt_le16(data + 28);
        b->compression = mt_le32(data + 30);
        count = mt_le32(data + 46);
    }
    return read_tables(b, head, count, err);
}

/* Bytes of an uncompressed row, which are a multiple of 4; those that fill up the last row may be missing. */
static size_t line_of(const bmp *b)
{
    return ((size_t)b->width * b->bits + 31) / 32 * 4;
}

static bool read_head(mt_codec_head *head, const uint8_t *data, size_t size, mt_error *err)
{
    bmp b;

    if (!open_file(&b, data, size, err))
        return false;
    head->width = b.width;
    head->height = b.height;
    if (b.compression != RLE8 && b.compression != RLE4 && b.height > 0)
        head->least = b.pixels + (uint64_t)line_of(&b) * (b.height - 1) + ((uint64_t)b.width * b.bits + 7) / 8;
    return true;
}

static uint64_t work(const uint8_t *data, size_t size)
{
    mt_error ignored;
    bmp b;

    return open_file(&b, data, size, &ignored) ? mt_codec_work(b.width, b.height, 1) : 0;
}

/* Where row y of the file goes in the picture. */
static uint8_t *row_of(const bmp *b, mt_image *image, uint32_t y)
{
    return image->pixels + (size_t)(b->top_down ? y : b->height - 1 - y) * image->width * 3;
}

/* A colour of a pixel by its mask, scaled so that all ones are 255, rounded down like Pillow. */
static uint8_t field(uint32_t pixel, uint32_t mask)
{
    uint32_t most = mask / (mask & (~mask + 1));

    return (uint8_t)((uint64_t)((pixel & mask) / (mask & (~mask + 1))) * 255 / most);
}

static void fields_row(const bmp *b, uint8_t *out, const uint8_t *in)
{
    for (size_t x = 0; x < b->width; x++) {
        uint32_t pixel = b->bits == 16 ? mt_le16(in + 2 * x) : mt_le32(in + 4 * x);

        for (int c = 0; c < 3; c++)
            out[3 * x + (size_t)c] = field(pixel, b->masks[c]);
    }
}

static void numbers_row(const bmp *b, uint8_t *out, const uint8_t *in)
{
    unsigned per_byte = 8 / b->bits, mask = (1u << b->bits) - 1;

    for (size_t x = 0; x < b->width; x++) {
        unsigned shift = 8 - b->bits * (unsigned)(x % per_byte + 1);

        memcpy(out + 3 * x, b->colours[(unsigned)(in[x / per_byte] >> shift) & mask], 3);
    }
}

static void bgr_row(const bmp *b, uint8_t *out, const uint8_t *in)
{
    for (size_t x = 0; x < b->width; x++)
        for (size_t c = 0; c < 3; c++)
            out[3 * x + c] = in[3 * x + 2 - c];
}

/* read_head has checked that all rows are in the file. */
static void decode_raw(const bmp *b, mt_image *image)
{
    const uint8_t *in = b->data + b->pixels;

    for (uint32_t y = 0; y < b->height; y++, in += line_of(b)) {
        uint8_t *out = row_of(b, image, y);

        if (b->bits <= 8)
            numbers_row(b, out, in);
        else if (b->bits == 24)
            bgr_row(b, out, in);
        else
            fields_row(b, out, in);
    }
}

/* Where the next pixel of a run is written; pixels beyond the end of a row are dropped. */
typedef struct pen {
    const bmp *b;
    mt_image *image;
    uint32_t x, y;
} pen;

static void put(pen *p, unsigned number)
{
    if (p->x < p->b->width)
        memcpy(row_of(p->b, p->image, p->y) + (size_t)p->x++ * 3, p->b->colours[number], 3);
}

/* Colour number i of those packed at `in`. */
static unsigned number_at(const bmp *b, const uint8_t *in, unsigned i)
{
    return b->compression == RLE8 ? in[i] : (unsigned)(in[i / 2] >> (i % 2 ? 0 : 4)) & 15u;
}

/* Copies uncompressed colour numbers, which are padded to whole words. Returns the next code; NULL: the file ends
   early. */
static const uint8_t *put_written_out(pen *p, const uint8_t *in, unsigned count)
{
    size_t bytes = p->b->compression == RLE8 ? count : (count + 1) / 2;

    if ((size_t)(p->b->end - in) < bytes)
        return NULL;
    for (unsigned i = 0; i < count; i++)
        put(p, number_at(p->b, in, i));
    bytes += bytes & 1;
    return (size_t)(p->b->end - in) < bytes ? p->b->end : in + bytes;
}

static bool decode_runs(const bmp *b, mt_image *image, const mt_media_watch *watch, mt_error *err)
{
    const uint8_t *in = b->data + b->pixels;
    size_t codes = 0;
    pen p = {.b = b, .image = image};

    while (p.y < b->height && b->end - in >= 2) {
        unsigned count = in[0], value = in[1];
        const uint8_t pair[2] = {in[1], in[1]};

        if (codes++ % LOOK == 0 && mt_media_stopped(watch))
            return mt_codec_stopped(err);
        in += 2;
        if (count > 0) {
            for (unsigned i = 0; i < count; i++)
                put(&p, b->compression == RLE8 ? value : number_at(b, pair, i & 1));
        } else if (value == 0) { /* the end of a row */
            p.x = 0;
            p.y++;
        } else if (value == 1) { /* end of the picture: what was not written has colour 0 */
            return true;
        } else if (value == 2) { /* moves right and down */
            if (b->end - in < 2)
                break;
            p.x += in[0];
            p.y += in[1];
            in += 2;
        } else if ((in = put_written_out(&p, in, value)) == NULL) {
            break;
        }
        if (p.y + 1 == b->height && p.x >= b->width)
            return true;
    }
    return p.y >= b->height || mt_codec_ends_early(err, NAME);
}

static bool decode(mt_image *image, const uint8_t *data, size_t size, const mt_media_watch *watch, mt_error *err)
{
    bmp b;

    if (!open_file(&b, data, size, err))
        return false;
    if (b.compression != RLE8 && b.compression != RLE4) {
        decode_raw(&b, image); /* not stopped: this is copying, which is fast */
        return true;
    }
    for (size_t i = 0; i < (size_t)b.width * b.height; i++)
        memcpy(image->pixels + 3 * i, b.colours[0], 3);
    return decode_runs(&b, image, watch, err);
}

const mt_codec mt_codec_bmp = {
    .name = NAME,
    .format = MT_IMAGE_BMP,
    .is = is_bmp,
    .head = read_head,
    .work = work,
    .decode = decode,
};
