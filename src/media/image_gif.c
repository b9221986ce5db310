/* Decodes GIF: the first frame on its canvas, with the background that Pillow gives. */
#include <string.h>

#include "base/alloc.h"
#include "media/bytes.h"
#include "media/codec.h"

static const char NAME[] = "GIF";

enum { LOOK = 4096 }; /* codes between checks whether the picture is still wanted */
enum { HEAD = 13, EXTENSION = 0x21, IMAGE = 0x2C, CONTROL = 0xF9, CODES = 4096, DESCRIPTOR = 9 };

/* A GIF file up to its first frame. */
typedef struct gif {
    const uint8_t *data;
    size_t size, at;
    uint8_t colours[256][3];
    int transparent;                    /* number of the transparent colour; -1: none */
    uint32_t width, height;             /* of the canvas */
    uint32_t left, top, columns, lines; /* of the frame */
    bool interlaced;
} gif;

static bool is_gif(const uint8_t *data, size_t size)
{
    return size >= 6 && (memcmp(data, "GIF87a", 6) == 0 || memcmp(data, "GIF89a", 6) == 0);
}

static bool read_colours(gif *g, unsigned flags)
{
    size_t count = (size_t)2 << (flags & 7);

    if (g->size - g->at < count * 3)
        return false;
    memcpy(g->colours, g->data + g->at, count * 3);
    mt_codec_colours_rest(g->colours, count);
    g->at += count * 3;
    return true;
}

static bool skip_blocks(gif *g)
{
    while (g->at < g->size) {
        size_t len = g->data[g->at++];

        if (len == 0)
            return true;
        if (len > g->size - g->at)
            return false;
        g->at += len;
    }
    return false;
}

static bool read_extension(gif *g)
{
    if (g->size - g->at < 2)
        return false;
    if (g->data[g->at] == CONTROL && g->data[g->at + 1] >= 4 && g->size - g->at >= 6 && (g->data[g->at + 2] & 1))
        g->transparent = g->data[g->at + 5];
    g->at++;
    return skip_blocks(g);
}

/* A frame that is larger than the canvas enlarges it. */
static bool read_descriptor(gif *g)
{
    const uint8_t *p = g->data + g->at;

    if (g->size - g->at < DESCRIPTOR)
        return false;
    g->left = mt_le16(p);
    g->top = mt_le16(p + 2);
    g->columns = mt_le16(p + 4);
    g->lines = mt_le16(p + 6);
    g->interlaced = p[8] & 0x40;
    if (g->left + g->columns > g->width)
        g->width = g->left + g->columns;
    if (g->top + g->lines > g->height)
        g->height = g->top + g->lines;
    g->at += DESCRIPTOR;
    return !(p[8] & 0x80) || read_colours(g, p[8]);
}

/* Reads up to the pixels of the first frame. */
static bool open_file(gif *g, const uint8_t *data, size_t size, mt_error *err)
{
    *g = (gif){.data = data, .size = size, .at = HEAD, .transparent = -1};
    if (size < HEAD)
        return mt_codec_ends_early(err, NAME);
    g->width = mt_le16(data + 6);
    g->height = mt_le16(data + 8);
    mt_codec_colours_rest(g->colours, 0);
    if ((data[10] & 0x80) && !read_colours(g, data[10]))
        return mt_codec_ends_early(err, NAME);
    while (g->at < size) {
        uint8_t kind = data[g->at++];

        if (kind == IMAGE)
            return read_descriptor(g) || mt_codec_ends_early(err, NAME);
        if (kind == EXTENSION && !read_extension(g))
            return mt_codec_ends_early(err, NAME);
        if (kind == ';')
            return mt_codec_damaged(err, NAME, "it has no frame");
    }
    return mt_codec_ends_early(err, NAME);
}

static bool read_head(mt_codec_head *head, const uint8_t *data, size_t size, mt_error *err)
{
    gif g;

    if (!open_file(&g, data, size, err))
        return false;
    head->width = g.width;
    head->height = g.height;
    head->memory = (size_t)CODES * 8;
    return true;
}

static uint64_t work(const uint8_t *data, size_t size)
{
    mt_error ignored;
    gif g;

    return open_file(&g, data, size, &ignored) ? mt_codec_work(g.width, g.height, 1) : 0;
}

/* Reads codes of 3 to 12 bits, least significant bit first, from blocks of at most 255 bytes. */
typedef struct reader {
    gif *g;
    size_t block; /* bytes left in the present block */
    uint32_t bits;
    unsigned count;
} reader;

/* The next code of `width` bits; -1 at the end of the data. */
static int read_code(reader *r, unsigned width)
{
    int code;

    while (r->count < width) {
        gif *g = r->g;

        if (r->block == 0) {
            if (g->at >= g->size || g->data[g->at] == 0)
                return -1;
            r->block = g->data[g->at++];
        }
        if (g->at >= g->size)
            return -1;
        r->bits |= (uint32_t)g->data[g->at++] << r->count;
        r->count += 8;
        r->block--;
    }
    code = (int)(r->bits & ((1u << width) - 1));
    r->bits >>= width;
    r->count -= width;
    return code;
}

/* Where the next pixel goes: along the lines of the frame, in four passes where it is interlaced. */
typedef struct pen {
    mt_image *image;
    const gif *g;
    uint32_t x, y, pass;
    bool done;
} pen;

static void next_line(pen *p)
{
    static const uint8_t first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};

    p->x = 0;
    p->y += p->g->interlaced ? step[p->pass] : 1;
    while (p->g->interlaced && p->y >= p->g->lines && p->pass < 3)
        p->y = first[++p->pass];
    p->done = p->y >= p->g->lines;
}

static void put(pen *p, uint8_t number)
{
    const gif *g = p->g;

    if (p->done)
        return;
    memcpy(p->image->pixels + ((size_t)(g->top + p->y) * p->image->width + g->left + p->x) * 3, g->colours[number], 3);
    if (++p->x == g->columns)
        next_line(p);
}

/* The LZW table: a code stands for the pixels of an earlier code and one more. */
typedef struct lzw {
    uint16_t before[CODES];
    uint8_t last[CODES], stack[CODES];
    int clear, next, previous;
    unsigned start_width, width;
    uint8_t first; /* first pixel of the previous code */
} lzw;

static void lzw_clear(lzw *z)
{
    z->width = z->start_width;
    z->next = z->clear + 2;
    z->previous = -1;
}

/* Writes the pixels of a code and adds a new code. False where the code is invalid. */
static bool lzw_expand(lzw *z, int code, pen *p)
{
    int at = code, depth = 0;

    if (code > z->next || (code == z->next && z->previous < 0) || (z->previous < 0 && code >= z->clear))
        return false;
    if (code == z->next) { /* the previous code's pixels, then its first pixel again */
        z->stack[depth++] = z->first;
        at = z->previous;
    }
    for (; at >= z->clear; at = z->before[at])
        z->stack[depth++] = z->last[at];
    z->first = (uint8_t)at;
    z->stack[depth++] = z->first;
    while (depth > 0)
        put(p, z->stack[--depth]);
    if (z->previous >= 0 && z->next < CODES) {
        z->before[z->next] = (uint16_t)z->previous;
        z->last[z->next++] = z->first;
        if (z->next == 1 << z->width && z->width < 12)
            z->width++;
    }
    z->previous = code;
    return true;
}

/* Decompresses the frame's pixels. */
static bool decompress(lzw *z, gif *g, mt_image *image, const mt_media_watch *watch, mt_error *err)
{
    reader r = {.g = g};
    pen p = {.image = image, .g = g, .done = g->columns == 0 || g->lines == 0};
    size_t codes = 0;

    if (g->at >= g->size)
        return mt_codec_ends_early(err, NAME);
    if (g->data[g->at] < 1 || g->data[g->at] > 8)
        return mt_codec_damaged(err, NAME, "its codes have no such width");
    z->start_width = g->data[g->at++] + 1u;
    z->clear = 1 << (z->start_width - 1);
    lzw_clear(z);
    while (!p.done) {
        int code = read_code(&r, z->width);

        if (codes++ % LOOK == 0 && mt_media_stopped(watch))
            return mt_codec_stopped(err);
        if (code < 0 || code == z->clear + 1)
            return mt_codec_ends_early(err, NAME);
        if (code == z->clear)
            lzw_clear(z);
        else if (!lzw_expand(z, code, &p))
            return mt_codec_damaged(err, NAME, "a code stands for nothing");
    }
    return true;
}

static bool decode(mt_image *image, const uint8_t *data, size_t size, const mt_media_watch *watch, mt_error *err)
{
    size_t pixels = (size_t)image->width * image->height;
    lzw *z;
    gif g;
    bool ok;

    if (!open_file(&g, data, size, err))
        return false;
    for (size_t i = 0; i < pixels; i++)
        memcpy(image->pixels + 3 * i, g.colours[g.transparent < 0 ? 0 : g.transparent], 3);
    z = mt_alloc(sizeof(*z));
    ok = decompress(z, &g, image, watch, err);
    mt_free(z);
    return ok;
}

const mt_codec mt_codec_gif = {
    .name = NAME,
    .format = MT_IMAGE_GIF,
    .is = is_gif,
    .head = read_head,
    .work = work,
    .decode = decode,
};
