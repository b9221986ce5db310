/* Reads the boxes of MP4 files (container.h). */
#include "media/container.h"

#include <inttypes.h>
#include <string.h>

#include "media/bytes.h"
#include "media/codec.h"
#include "media/limits.h"
#include "media/matroska.h"

/* bytes of a box's header, with a 32-bit and a 64-bit length; deepest nesting that is followed */
enum { BOX = 8, LARGE_BOX = 16, NESTING = 8 };

static bool is_one_of(const uint8_t *name, const char *names)
{
    for (; *names; names += 4)
        if (memcmp(name, names, 4) == 0)
            return true;
    return false;
}

const char *mt_container_name(const uint8_t *data, size_t size)
{
    static const uint8_t ebml[4] = {0x1A, 0x45, 0xDF, 0xA3};

    if (size >= 12 && memcmp(data + 4, "ftyp", 4) == 0)
        return is_one_of(data + 8, "avifavisheicheixheimheishevchevxmif1mif2msf1") ? NULL : "mov";
    return size >= 4 && memcmp(data, ebml, 4) == 0 ? "matroska" : NULL;
}

/* The contents that a file claims to have, or one of its tracks. */
typedef struct claims {
    uint64_t samples; /* of all kinds */
    uint64_t loose;   /* of these, in fragments, which belong to a track elsewhere in the file */
    uint64_t work;    /* pixels of all frames of the track that has most */
    uint32_t width, height;
} claims;

typedef struct box {
    const uint8_t *name, *body;
    size_t len; /* of the body */
} box;

/* Reads the box at *data and moves behind it. A length of 0 means up to the end; one beyond the end is cut. */
static bool next_box(const uint8_t **data, size_t *size, box *b)
{
    uint64_t len = *size >= BOX ? mt_be32(*data) : 0;
    size_t head = BOX;

    if (*size < BOX)
        return false;
    if (len == 1 && *size >= LARGE_BOX) {
        len = (uint64_t)mt_be32(*data + 8) << 32 | mt_be32(*data + 12);
        head = LARGE_BOX;
    }
    if (len == 0 || len > *size)
        len = *size;
    if (len < head)
        return false;
    *b = (box){.name = *data + 4, .body = *data + head, .len = (size_t)len - head};
    *data += len;
    *size -= (size_t)len;
    return true;
}

/* The size of the first description of samples; those of sound have 0 where pictures have their height. */
static void read_size(claims *c, const box *b)
{
    enum { ENTRY = 8, WIDTH = ENTRY + 32, HEIGHT = ENTRY + 34 };

    if (b->len >= HEIGHT + 2) {
        c->width = mt_be16(b->body + WIDTH);
        c->height = mt_be16(b->body + HEIGHT);
    }
}

static void read_boxes(claims *c, const uint8_t *data, size_t size, unsigned depth);

static void read_track(claims *c, const box *b, unsigned depth)
{
    claims track = {0};
    uint64_t work;

    read_boxes(&track, b->body, b->len, depth);
    work = mt_codec_work(track.width, track.height, track.samples);
    c->samples += track.samples;
    if (work > c->work)
        c->work = work;
    if ((uint64_t)track.width * track.height > (uint64_t)c->width * c->height) {
        c->width = track.width;
        c->height = track.height;
    }
}

/* Adds up what the boxes from data on claim; follows boxes that contain such boxes. */
static void read_boxes(claims *c, const uint8_t *data, size_t size, unsigned depth)
{
    box b;

    while (depth < NESTING && next_box(&data, &size, &b)) {
        if (is_one_of(b.name, "stszstz2") && b.len >= 12) {
            c->samples += mt_be32(b.body + 8);
        } else if (is_one_of(b.name, "trun") && b.len >= 8) {
            c->samples += mt_be32(b.body + 4);
            c->loose += mt_be32(b.body + 4);
        } else if (is_one_of(b.name, "stsd")) {
            read_size(c, &b);
        } else if (is_one_of(b.name, "trak")) {
            read_track(c, &b, depth + 1);
        } else if (is_one_of(b.name, "moovmdiaminfstblmooftraf")) {
            read_boxes(c, b.body, b.len, depth + 1);
        }
    }
}

bool mt_container_claims(const uint8_t *data, size_t size, mt_error *err)
{
    claims c = {0};

    read_boxes(&c, data, size, 0);
    if (c.samples > MT_LIMIT_MEDIA_SAMPLES)
        return mt_fail(err, MT_E_INVALID, "the video lists %" PRIu64 " samples, and %d are allowed: send a shorter one",
                       c.samples, MT_LIMIT_MEDIA_SAMPLES);
    return c.work <= MT_LIMIT_MEDIA_VIDEO_WORK ||
           mt_fail(err, MT_E_INVALID,
                   "the video lists frames of %.0f million pixels in all, and %.0f are allowed: send a shorter or "
                   "smaller one",
                   (double)c.work / 1e6, (double)MT_LIMIT_MEDIA_VIDEO_WORK / 1e6);
}

uint64_t mt_container_work(const uint8_t *data, size_t size)
{
    const char *name = mt_container_name(data, size);
    claims c = {0};
    uint64_t loose;

    if (!name)
        return 0;
    if (strcmp(name, "matroska") == 0)
        return mt_matroska_work(data, size);
    read_boxes(&c, data, size, 0);
    loose = mt_codec_work(c.width, c.height, c.loose);
    return c.work > loose ? c.work : loose;
}
