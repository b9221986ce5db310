/* Checks video files before FFmpeg reads them (container.h). */
#include "media/container.h"

#include <inttypes.h>
#include <string.h>

#include "media/bytes.h"

/* bytes of a box's header, with a 32-bit and a 64-bit length; deepest nesting that is followed */
enum { BOX = 8, LARGE_BOX = 16, NESTING = 8 };

const char *mt_container_name(const uint8_t *data, size_t size)
{
    static const uint8_t ebml[4] = {0x1A, 0x45, 0xDF, 0xA3};

    if (size >= 12 && memcmp(data + 4, "ftyp", 4) == 0)
        return "mov";
    return size >= 4 && memcmp(data, ebml, 4) == 0 ? "matroska" : NULL;
}

static bool is_one_of(const uint8_t *name, const char *names)
{
    for (; *names; names += 4)
        if (memcmp(name, names, 4) == 0)
            return true;
    return false;
}

/* The offset of the number of samples in a box that has one; 0 for other boxes. */
static size_t count_at(const uint8_t *name)
{
    if (is_one_of(name, "stszstz2"))
        return BOX + 8;
    return is_one_of(name, "trun") ? BOX + 4 : 0;
}

/* Adds up the samples that the boxes from data on claim; follows boxes that contain such boxes. */
static uint64_t samples_in(const uint8_t *data, size_t size, unsigned depth)
{
    uint64_t sum = 0;

    while (size >= BOX && depth < NESTING) {
        uint64_t len = mt_be32(data);
        size_t head = BOX, at = count_at(data + 4);

        if (len == 1 && size >= LARGE_BOX) {
            len = (uint64_t)mt_be32(data + 8) << 32 | mt_be32(data + 12);
            head = LARGE_BOX;
        }
        if (len == 0 || len > size) /* 0: to the end; a length beyond the end is cut */
            len = size;
        if (len < head)
            break;
        if (at && len >= head - BOX + at + 4)
            sum += mt_be32(data + head - BOX + at);
        else if (is_one_of(data + 4, "moovtrakmdiaminfstblmooftraf"))
            sum += samples_in(data + head, (size_t)len - head, depth + 1);
        data += len;
        size -= (size_t)len;
    }
    return sum;
}

bool mt_container_claims(const uint8_t *data, size_t size, mt_error *err)
{
    uint64_t samples = samples_in(data, size, 0);

    return samples <= MT_LIMIT_MEDIA_SAMPLES ||
           mt_fail(err, MT_E_INVALID, "the video lists %" PRIu64 " samples, and %d are allowed: send a shorter one",
                   samples, MT_LIMIT_MEDIA_SAMPLES);
}
