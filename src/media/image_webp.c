/* Decodes WebP through libwebp: a still picture, or the first frame of an animation on a black canvas. */
#include <webp/decode.h>
#include <webp/demux.h>

#include <string.h>

#include "media/bytes.h"
#include "media/codec.h"

const bool mt_image_webp_present = true;

static const char NAME[] = "WebP";

static bool is_webp(const uint8_t *data, size_t size)
{
    return size >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0;
}

/* The data of a chunk, which lie in the file's; NULL: there is none. */
static const uint8_t *find_chunk(const WebPDemuxer *demuxer, const char *name, size_t *size)
{
    WebPChunkIterator chunk;
    const uint8_t *data = NULL;

    if (WebPDemuxGetChunk(demuxer, name, 1, &chunk)) {
        data = chunk.chunk.bytes;
        *size = chunk.chunk.size;
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    return data;
}

static unsigned orientation_of(const WebPDemuxer *demuxer)
{
    mt_metadata m = {0};

    m.exif = find_chunk(demuxer, "EXIF", &m.exif_size);
    m.xmp = find_chunk(demuxer, "XMP ", &m.xmp_size);
    return mt_metadata_orientation(&m);
}

/* NULL with a sentence where the file is cut off or damaged. */
static WebPDemuxer *open_file(const uint8_t *data, size_t size, mt_error *err)
{
    WebPDemuxState state;
    WebPData bytes = {.bytes = data, .size = size};
    WebPDemuxer *demuxer = WebPDemuxPartial(&bytes, &state);

    if (demuxer && state == WEBP_DEMUX_DONE)
        return demuxer;
    WebPDemuxDelete(demuxer);
    if (state == WEBP_DEMUX_PARSE_ERROR)
        mt_codec_damaged(err, NAME, "its chunks make no sense");
    else
        mt_codec_ends_early(err, NAME);
    return NULL;
}

static bool read_head(mt_codec_head *head, const uint8_t *data, size_t size, mt_error *err)
{
    WebPDemuxer *demuxer = open_file(data, size, err);

    if (!demuxer)
        return false;
    head->width = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH);
    head->height = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT);
    head->orientation = orientation_of(demuxer);
    head->memory = (size_t)head->width * head->height * 5 + 1048576; /* lossless: 4 bytes a pixel; lossy: alpha */
    WebPDemuxDelete(demuxer);
    return true;
}

/* The first chunk has the size: of the canvas (VP8X) or, where there is no other chunk, of the lossy or lossless
   pixels. VP8X also tells whether there is alpha, which may be a second picture to decode. */
static uint64_t work(const uint8_t *data, size_t size)
{
    const uint8_t *chunk = data + 12, *body = data + 20;

    if (size < 30)
        return 0;
    if (memcmp(chunk, "VP8X", 4) == 0)
        return mt_codec_work((mt_le32(body + 4) & 0xFFFFFF) + 1, (mt_le32(body + 6) >> 8) + 1, body[0] & 0x10 ? 2 : 1);
    if (memcmp(chunk, "VP8L", 4) == 0)
        return mt_codec_work((mt_le32(body + 1) & 0x3FFF) + 1, (mt_le32(body + 1) >> 14 & 0x3FFF) + 1, 1);
    return memcmp(chunk, "VP8 ", 4) == 0 ? mt_codec_work(mt_le16(body + 6) & 0x3FFF, mt_le16(body + 8) & 0x3FFF, 1) : 0;
}

static bool decode_frame(mt_image *image, const WebPIterator *frame)
{
    size_t line = (size_t)image->width * 3, at;
    int width, height;

    if (frame->x_offset < 0 || frame->y_offset < 0 || frame->width <= 0 || frame->height <= 0 ||
        (uint32_t)frame->x_offset + (uint32_t)frame->width > image->width ||
        (uint32_t)frame->y_offset + (uint32_t)frame->height > image->height ||
        !WebPGetInfo(frame->fragment.bytes, frame->fragment.size, &width, &height) || width != frame->width ||
        height != frame->height)
        return false;
    at = (size_t)frame->y_offset * line + (size_t)frame->x_offset * 3;
    return WebPDecodeRGBInto(frame->fragment.bytes, frame->fragment.size, image->pixels + at, line * image->height - at,
                             (int)line) != NULL;
}

static bool decode(mt_image *image, const uint8_t *data, size_t size, const mt_media_watch *watch, mt_error *err)
{
    WebPDemuxer *demuxer = open_file(data, size, err);
    WebPIterator frame;
    bool ok = false;

    (void)watch; /* not checked: libwebp decodes a picture in one call */
    if (!demuxer)
        return false;
    if (WebPDemuxGetFrame(demuxer, 1, &frame)) {
        ok = decode_frame(image, &frame);
        WebPDemuxReleaseIterator(&frame);
    }
    WebPDemuxDelete(demuxer);
    return ok || mt_codec_damaged(err, NAME, "its pixels cannot be decoded");
}

const mt_codec mt_codec_webp = {
    .name = NAME,
    .format = MT_IMAGE_WEBP,
    .is = is_webp,
    .head = read_head,
    .work = work,
    .decode = decode,
};
