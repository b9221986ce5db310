/* Decodes PNG through libpng. A row is decoded into the end of its place in the picture, as colour numbers or greys,
   and expanded from there; so an interlaced picture needs no further memory. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>
#include <zlib.h>

#include "base/alloc.h"
#include "media/bytes.h"
#include "media/codec.h"
#include "media/limits.h"

static const char NAME[] = "PNG";
static const uint8_t SIGNATURE[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

enum { HEAD = 33, CHUNK = 12 }; /* bytes to the end of IHDR; bytes around a chunk's data */
enum { TEXT = 65536 };          /* most bytes of a compressed text that are looked at */

static bool is_png(const uint8_t *data, size_t size)
{
    return size >= sizeof(SIGNATURE) && memcmp(data, SIGNATURE, sizeof(SIGNATURE)) == 0;
}

/* A text of a PNG. */
typedef struct text {
    const uint8_t *data; /* NULL: there is none */
    size_t len;
    bool packed; /* compressed by zlib */
} text;

/* The texts that may say how a picture has to be turned, of each the last. */
typedef struct texts {
    text xmp, profile; /* profile: EXIF data as some programs write them, as a text of hex digits */
} texts;

/* Moves behind the next zero; NULL where there is none. */
static const uint8_t *behind_zero(const uint8_t *p, const uint8_t *end)
{
    p = p ? memchr(p, 0, (size_t)(end - p)) : NULL;
    return p ? p + 1 : NULL;
}

/* Reads a chunk of one of the three kinds of texts: key, perhaps how it is compressed, perhaps language and translated
   key, and the text. */
static void read_text(texts *t, const uint8_t *name, const uint8_t *body, size_t len)
{
    static const char xmp[] = "XML:com.adobe.xmp", profile[] = "Raw profile type exif";
    text *to = len > sizeof(xmp) && memcmp(body, xmp, sizeof(xmp)) == 0               ? &t->xmp
               : len > sizeof(profile) && memcmp(body, profile, sizeof(profile)) == 0 ? &t->profile
                                                                                      : NULL;
    const uint8_t *end = body + len, *p = behind_zero(body, end);
    bool packed = *name == 'z';

    if (!to)
        return;
    if (packed)
        p++; /* the method of compression; there is one */
    if (*name == 'i') {
        packed = *p;
        p = end - p >= 2 ? behind_zero(behind_zero(p + 2, end), end) : NULL;
    }
    if (p)
        *to = (text){.data = p, .len = (size_t)(end - p), .packed = packed};
}

/* Sets *data to the text or, where it is compressed, to its beginning, expanded to `room`. Returns its length. */
static size_t open_text(const text *t, uint8_t *room, const uint8_t **data)
{
    z_stream z = {.next_in = (z_const Bytef *)t->data, .avail_in = (uInt)t->len, .next_out = room, .avail_out = TEXT};

    *data = t->packed ? room : t->data;
    if (!t->packed)
        return t->len;
    if (inflateInit(&z) != Z_OK)
        return 0;
    (void)inflate(&z, Z_SYNC_FLUSH); /* what came before a fault is as good as what comes before the end of the room */
    inflateEnd(&z);
    return TEXT - z.avail_out;
}

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Reads the hex digits behind the third line end of a profile, at most TEXT of them, to `to`. */
static size_t read_hex(const uint8_t *profile, size_t len, uint8_t *to)
{
    size_t lines = 0, digits = 0;

    for (size_t i = 0; i < len && digits < TEXT; i++) {
        int digit = hex_digit(profile[i]);

        lines += profile[i] == '\n';
        if (lines < 3 || profile[i] == '\n')
            continue;
        if (digit < 0)
            break;
        to[digits / 2] = (uint8_t)(digits % 2 ? to[digits / 2] << 4 | digit : digit);
        digits++;
    }
    return digits / 2;
}

/* Adds what stands in texts. The digits of a compressed profile become bytes in their own place. */
static unsigned orientation_with(mt_metadata *m, const texts *t)
{
    const uint8_t *profile;
    unsigned orientation;
    uint8_t *room;

    if (!t->profile.data && !t->xmp.data)
        return mt_metadata_orientation(m);
    room = mt_alloc((size_t)2 * TEXT);
    if (!m->exif && t->profile.data) {
        size_t len = open_text(&t->profile, room, &profile);

        m->exif_size = read_hex(profile, len, room);
        m->exif = room;
    }
    if (t->xmp.data)
        m->xmp_size = open_text(&t->xmp, room + TEXT, &m->xmp);
    orientation = mt_metadata_orientation(m);
    mt_free(room);
    return orientation;
}

/* Whether a chunk's data, behind its name, are as they were written. */
static bool is_intact(const uint8_t *name, size_t len)
{
    return crc32_z(0, name, 4 + len) == mt_be32(name + 4 + len);
}

/* Finds EXIF and XMP data, which may be before or behind the pixels; the last of each count. Damaged ones do not:
   pixels need none of them. */
static unsigned orientation_of(const uint8_t *data, size_t size)
{
    size_t at = sizeof(SIGNATURE);
    mt_metadata m = {0};
    texts t = {0};

    while (size - at >= CHUNK) {
        size_t len = mt_be32(data + at);
        const uint8_t *name = data + at + 4, *body = data + at + 8;

        if (len > size - at - CHUNK || memcmp(name, "IEND", 4) == 0)
            break;
        if (memcmp(name, "eXIf", 4) == 0 && is_intact(name, len)) {
            m.exif = body;
            m.exif_size = len;
        } else if ((memcmp(name, "tEXt", 4) == 0 || memcmp(name, "zTXt", 4) == 0 || memcmp(name, "iTXt", 4) == 0) &&
                   is_intact(name, len)) {
            read_text(&t, name, body, len);
        }
        at += len + CHUNK;
    }
    return orientation_with(&m, &t);
}

/* Bits of a pixel. */
static unsigned bits_of(const uint8_t *data)
{
    static const uint8_t channels[7] = {1, 0, 3, 1, 2, 0, 4};

    return data[25] < MT_COUNT(channels) ? (unsigned)data[24] * channels[data[25]] : 0;
}

/* Least bytes of a file: zlib expands at most 1032 to 1. */
static uint64_t least_of(const uint8_t *data)
{
    uint64_t width = mt_be32(data + 16), height = mt_be32(data + 20);

    return width * bits_of(data) / 8 / 1032 * height;
}

static bool read_head(mt_codec_head *head, const uint8_t *data, size_t size, mt_error *err)
{
    if (size < HEAD)
        return mt_codec_ends_early(err, NAME);
    if (memcmp(data + 12, "IHDR", 4) != 0)
        return mt_codec_damaged(err, NAME, "it does not begin with its size");
    head->width = mt_be32(data + 16);
    head->height = mt_be32(data + 20);
    head->least = least_of(data);
    head->orientation = orientation_of(data, size);
    head->memory = (size_t)head->width * 8 * 4 + 65536; /* rows of at most 8 bytes a pixel, and zlib */
    return true;
}

static uint64_t work(const uint8_t *data, size_t size)
{
    return size < HEAD ? 0 : mt_codec_work(mt_be32(data + 16), mt_be32(data + 20), bits_of(data) > 32 ? 2 : 1);
}

/* A PNG that is being decoded. */
typedef struct decoder {
    const uint8_t *data;
    size_t size, at;
    const mt_media_watch *watch;
    png_structp png;
    png_infop info;
    bool ended; /* libpng asked for bytes behind the end */
    char why[128];
    uint8_t colours[256][3]; /* where a pixel is a colour number */
    bool wide;               /* 16-bit grey */
} decoder;

static void on_error(png_structp png, png_const_charp message)
{
    decoder *d = png_get_error_ptr(png);

    snprintf(d->why, sizeof(d->why), "%s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static void on_read(png_structp png, png_bytep out, size_t count)
{
    decoder *d = png_get_io_ptr(png);

    if (count > d->size - d->at) {
        d->ended = true;
        png_error(png, "it ends early");
    }
    memcpy(out, d->data + d->at, count);
    d->at += count;
}

/* Colour numbers without a colour are black, as in Pillow. */
static void fill_colours(decoder *d)
{
    png_colorp palette = NULL;
    int count = 0;

    if (!png_get_PLTE(d->png, d->info, &palette, &count))
        return;
    for (int i = 0; i < count && i < 256; i++) {
        d->colours[i][0] = palette[i].red;
        d->colours[i][1] = palette[i].green;
        d->colours[i][2] = palette[i].blue;
    }
}

static bool has_numbers(const decoder *d)
{
    int type = png_get_color_type(d->png, d->info);

    return type == PNG_COLOR_TYPE_PALETTE || type == PNG_COLOR_TYPE_GRAY;
}

/* Asks libpng for what Pillow's convert("RGB") gives: alpha is dropped, and the low byte of 16-bit colours; 16-bit grey
   is clamped to 255. */
static void ask_for_rgb(decoder *d)
{
    int type = png_get_color_type(d->png, d->info), depth = png_get_bit_depth(d->png, d->info);

    d->wide = type == PNG_COLOR_TYPE_GRAY && depth == 16;
    if (type == PNG_COLOR_TYPE_PALETTE)
        fill_colours(d);
    if (type == PNG_COLOR_TYPE_GRAY)
        mt_codec_colours_rest(d->colours, 0);
    if (depth < 8 && type == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(d->png);
    if (depth < 8 && type == PNG_COLOR_TYPE_PALETTE)
        png_set_packing(d->png);
    if (depth == 16 && !d->wide)
        png_set_strip_16(d->png);
    if (type & PNG_COLOR_MASK_ALPHA)
        png_set_strip_alpha(d->png);
    if (type == PNG_COLOR_TYPE_GRAY_ALPHA)
        png_set_gray_to_rgb(d->png);
}

static size_t bytes_per_pixel(const decoder *d)
{
    return !has_numbers(d) ? 3 : d->wide ? 2 : 1;
}

static void spread_row(const decoder *d, uint8_t *row, size_t width)
{
    size_t step = bytes_per_pixel(d);
    const uint8_t *from = row + width * (3 - step);

    for (size_t x = 0; step < 3 && x < width; x++) {
        unsigned number = !d->wide ? from[x] : from[2 * x] ? 255 : from[2 * x + 1];

        memcpy(row + 3 * x, d->colours[number], 3); /* never overwrites a number that is still to be read */
    }
}

static void read_pixels(decoder *d, mt_image *image)
{
    size_t line = (size_t)image->width * 3, before;
    int passes;

    png_read_info(d->png, d->info);
    if (png_get_image_width(d->png, d->info) != image->width || png_get_image_height(d->png, d->info) != image->height)
        png_error(d->png, "it has two sizes");
    ask_for_rgb(d);
    passes = png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    before = line - (size_t)image->width * bytes_per_pixel(d);
    if (png_get_rowbytes(d->png, d->info) != line - before)
        png_error(d->png, "its rows have another length");
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < image->height; y++) {
            if (mt_media_stopped(d->watch))
                png_error(d->png, "it was stopped");
            png_read_row(d->png, image->pixels + y * line + before, NULL);
        }
    for (uint32_t y = 0; y < image->height; y++)
        spread_row(d, image->pixels + y * line, image->width);
}

/* Reads only chunks that pixels need: texts and profiles may be compressed and huge. */
static void setup(decoder *d)
{
    png_set_read_fn(d->png, d, on_read);
    png_set_user_limits(d->png, MT_LIMIT_MEDIA_SIDE, MT_LIMIT_MEDIA_SIDE);
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
}

/* The decoder is on the heap: local variables that change before a longjmp are undefined after it. */
static bool decode(mt_image *image, const uint8_t *data, size_t size, const mt_media_watch *watch, mt_error *err)
{
    decoder *d = mt_alloc(sizeof(*d));
    volatile bool ok = false;

    *d = (decoder){.data = data, .size = size, .watch = watch, .why = "no memory"};
    d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, on_error, on_warning);
    d->info = d->png ? png_create_info_struct(d->png) : NULL;
    if (d->info && setjmp(png_jmpbuf(d->png)) == 0) {
        setup(d);
        read_pixels(d, image);
        ok = true;
    }
    png_destroy_read_struct(&d->png, &d->info, NULL);
    if (!ok)
        (void)(mt_media_stopped(watch) ? mt_codec_stopped(err)
               : d->ended              ? mt_codec_ends_early(err, NAME)
                                       : mt_codec_damaged(err, NAME, d->why));
    mt_free(d);
    return ok;
}

const mt_codec mt_codec_png = {
    .name = NAME,
    .format = MT_IMAGE_PNG,
    .is = is_png,
    .head = read_head,
    .work = work,
    .decode = decode,
};
