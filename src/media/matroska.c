/* Counts the frames of a Matroska file (matroska.h).

   The file is read as one row of elements: of those that contain others only the head is skipped, so that nothing
   nests, and elements of unknown length need no special case. Which track a number belongs to follows from the order:
   a track's numbers stand behind its head. */
#include "media/matroska.h"

#include <stdbool.h>

#include "media/codec.h"
#include "media/limits.h"

enum {
    SEGMENT = 0x18538067,
    CLUSTER = 0x1F43B675,
    GROUP = 0xA0, /* of a block and what is said of it */
    BLOCK = 0xA1,
    SIMPLE_BLOCK = 0xA3,
    TRACKS = 0x1654AE6B,
    TRACK = 0xAE,
    NUMBER = 0xD7,
    TYPE = 0x83,
    VIDEO = 0xE0,
    WIDTH = 0xB0,
    HEIGHT = 0xBA,
};
enum { TYPE_VIDEO = 1, LACED = 0x06 };

typedef struct track {
    uint64_t number, type;
    uint32_t width, height;
} track;

typedef struct reader {
    const uint8_t *at, *end;
    track last;  /* the track whose numbers are being read */
    track video; /* the first of videos; number 0: none yet */
    uint64_t frames;
} reader;

/* Reads a number whose first bits say how many bytes it has; keeps these bits where `whole`. False: it is cut off. */
static bool read_number(reader *r, unsigned most, bool whole, uint64_t *value)
{
    unsigned bytes = 1;

    if (r->at == r->end || *r->at == 0)
        return false;
    while (!(*r->at & 0x80 >> (bytes - 1)))
        bytes++;
    if (bytes > most || (size_t)(r->end - r->at) < bytes)
        return false;
    *value = whole ? *r->at : *r->at & (0x7Fu >> (bytes - 1));
    for (unsigned i = 1; i < bytes; i++)
        *value = *value << 8 | r->at[i];
    r->at += bytes;
    return true;
}

static uint64_t read_value(const uint8_t *body, uint64_t len)
{
    uint64_t value = 0;

    for (uint64_t i = 0; i < len && i < 8; i++)
        value = value << 8 | body[i];
    return value;
}

static uint32_t read_side(const uint8_t *body, uint64_t len)
{
    const uint64_t value = read_value(body, len);

    return value > MT_LIMIT_MEDIA_SIDE ? MT_LIMIT_MEDIA_SIDE + 1 : (uint32_t)value;
}

static void end_track(reader *r)
{
    if (r->last.type == TYPE_VIDEO && r->video.number == 0)
        r->video = r->last;
    r->last = (track){0};
}

/* A block has one frame, or as many as the byte behind its head says and one more. */
static void count_block(reader *r, const uint8_t *body, uint64_t len)
{
    reader block = {.at = body, .end = body + len};
    uint64_t number;

    end_track(r);
    if (!read_number(&block, 8, false, &number) || block.end - block.at < 3 || number != r->video.number)
        return;
    r->frames += block.at[2] & LACED && block.end - block.at > 3 ? (uint64_t)block.at[3] + 1 : 1;
}

/* Reads an element and moves behind it, or to the first one inside. */
static bool read_element(reader *r)
{
    uint64_t id, len;

    if (!read_number(r, 4, true, &id) || !read_number(r, 8, false, &len))
        return false;
    if (len > (uint64_t)(r->end - r->at)) /* also where it is unknown */
        len = (uint64_t)(r->end - r->at);
    switch (id) {
    case TRACK: end_track(r); return true;
    case SEGMENT:
    case CLUSTER:
    case GROUP:
    case TRACKS:
    case VIDEO: return true;
    case NUMBER: r->last.number = read_value(r->at, len); break;
    case TYPE: r->last.type = read_value(r->at, len); break;
    case WIDTH: r->last.width = read_side(r->at, len); break;
    case HEIGHT: r->last.height = read_side(r->at, len); break;
    case BLOCK:
    case SIMPLE_BLOCK: count_block(r, r->at, len); break;
    default: break;
    }
    r->at += len;
    return true;
}

uint64_t mt_matroska_work(const uint8_t *data, size_t size)
{
    reader r = {.at = data, .end = data + size};

    while (r.at < r.end && read_element(&r)) {}
    return mt_codec_work(r.video.width, r.video.height, r.frames);
}
