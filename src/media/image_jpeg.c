/* JPEG through libjpeg-turbo with its defaults, which are Pillow's. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/alloc.h"
#include "media/bytes.h"
#include "media/codec.h"
#include "media/limits.h"

static const char NAME[] = "JPEG";

enum { ROWS = 64 }; /* most rows of each component that libjpeg keeps: five times 8, twice where it smooths */
enum { SOI = 0xD8, SOS = 0xDA, APP0 = 0xE0, APP1 = 0xE1, TEM = 0x01, RST0 = 0xD0, EOI = 0xD9 };

static bool is_jpeg(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 0xFF && data[1] == SOI && data[2] == 0xFF;
}

/* SOF0 to SOF15, except DHT, JPG and DAC, whose numbers lie among them. */
static bool is_frame(unsigned marker)
{
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/* Finds the next segment from *at on, moves *at behind it and returns its marker; 0 where the picture ends before.
   Skips the compressed pixels of a scan, in which a 0xFF is followed by 0 or a restart marker. */
static unsigned next_segment(const uint8_t *data, size_t size, size_t *at, const uint8_t **segment, size_t *len)
{
    while (size - *at >= 4) {
        unsigned marker = data[*at + 1];

        if (data[*at] != 0xFF || marker == 0xFF || marker == 0) { /* bytes between segments are skipped */
            (*at)++;
            continue;
        }
        *at += 2;
        if (marker == EOI)
            return 0;
        if (marker == TEM || (marker >= RST0 && marker < EOI))
            continue;
        *len = mt_be16(data + *at);
        if (marker >= APP0 && *len < 2)
            *len = 2; /* libjpeg goes on there */
        if (*len < 2 || *len > size - *at)
            return 0;
        *segment = data + *at + 2;
        *at += *len;
        *len -= 2;
        return marker;
    }
    return 0;
}

/* Bytes that libjpeg keeps for a picture whose components come in several scans: 16 bits a coefficient. */
static size_t coefficients(const mt_codec_head *head, unsigned components)
{
    return (((size_t)head->width + 31) & ~(size_t)31) * (((size_t)head->height + 31) & ~(size_t)31) * 2 * components;
}

/* Of several EXIF segments the later ones continue the first, where the orientation is; of XMP, the last counts. */
static void read_app1(mt_metadata *m, const uint8_t *segment, size_t len)
{
    static const char exif[6] = "Exif\0", xmp[] = "http://ns.adobe.com/xap/1.0/";

    if (len > sizeof(exif) && memcmp(segment, exif, sizeof(exif)) == 0) {
        if (!m->exif) {
            m->exif = segment;
            m->exif_size = len;
        }
    } else if (len >= sizeof(xmp) && memcmp(segment, xmp, sizeof(xmp)) == 0) {
        m->xmp = segment + sizeof(xmp);
        m->xmp_size = len - sizeof(xmp);
    }
}

/* Reads the size from a frame header. Pillow, too, reads 8 bits a colour only. */
static bool read_frame(mt_codec_head *head, const uint8_t *segment, size_t len, unsigned *components, mt_error *err)
{
    char kind[80];

    if (len < 6)
        return mt_codec_damaged(err, NAME, "its frame header is too short");
    head->height = mt_be16(segment + 1);
    head->width = mt_be16(segment + 3);
    *components = segment[5];
    if (segment[0] == 8 && (*components == 1 || *components == 3 || *components == 4))
        return true;
    snprintf(kind, sizeof(kind), "%u bits for each of %u colours", (unsigned)segment[0], *components);
    return mt_codec_unknown(err, NAME, kind);
}

/* Counts the scans that begin from `at` on, up to one more than a picture may have. */
static unsigned count_scans(const uint8_t *data, size_t size, size_t at)
{
    const uint8_t *segment;
    unsigned marker, scans = 0;
    size_t len;

    while (scans <= MT_LIMIT_MEDIA_SCANS && (marker = next_segment(data, size, &at, &segment, &len)) != 0)
        scans += marker == SOS;
    return scans;
}

/* Each scan of a picture costs about as much as decoding it whole. */
static uint64_t work(const uint8_t *data, size_t size)
{
    const uint8_t *segment = NULL;
    uint32_t width = 0, height = 0;
    unsigned marker;
    size_t at = 2, len = 0, behind = 2;

    for (; (marker = next_segment(data, size, &at, &segment, &len)) != 0 && marker != SOS; behind = at)
        if (is_frame(marker) && len >= 5) {
            height = mt_be16(segment + 1);
            width = mt_be16(segment + 3);
        }
    return mt_codec_work(width, height, count_scans(data, size, behind));
}

static bool read_head(mt_codec_head *head, const uint8_t *data, size_t size, mt_error *err)
{
    const uint8_t *segment = NULL;
    mt_metadata metadata = {0};
    size_t at = 2, len = 0;
    unsigned marker, components = 0, progressive = 0, arithmetic = 0;

    while ((marker = next_segment(data, size, &at, &segment, &len)) != 0) {
        if (is_frame(marker)) {
            if (!read_frame(head, segment, len, &components, err))
                return false;
            progressive = marker != 0xC0 && marker != 0xC1;
            arithmetic = marker > 0xC8;
        } else if (marker == APP1) {
            read_app1(&metadata, segment, len);
        } else if (marker == SOS) {
            if (!components)
                return mt_codec_damaged(err, NAME, "its pixels come before their size");
            head->orientation = mt_metadata_orientation(&metadata);
            head->memory = progressive || len < 1 || segment[0] < components ? coefficients(head, components) : 0;
            head->memory += (size_t)head->width * ROWS * components + 65536; /* rows of blocks being converted to RGB */
            /* a bit for each 8x8 block at least, and blocks for a fourth of the pixels at least */
            head->least = arithmetic ? 0 : (uint64_t)head->width * head->height / (64 * 4 * 8);
            return 1 + count_scans(data, size, at) <= MT_LIMIT_MEDIA_SCANS ||
                   mt_fail(err, MT_E_INVALID,
                           "the \"%s\" picture has more than %d scans: save it with fewer, or as baseline", NAME,
                           MT_LIMIT_MEDIA_SCANS);
        }
    }
    return mt_codec_ends_early(err, NAME);
}

/* libjpeg reports errors by longjmp: all variables that must survive one are in this struct. */
typedef struct decoder {
    struct jpeg_decompress_struct jpeg; /* first: callbacks get a pointer to it */
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    const mt_media_watch *watch;
    jmp_buf failed;
    char why[JMSG_LENGTH_MAX];
    bool unknown;  /* libjpeg does not know this kind of file */
    uint8_t *inks; /* a row of a picture with four inks */
} decoder;

static void on_error(j_common_ptr jpeg)
{
    decoder *d = (decoder *)jpeg;

    jpeg->err->format_message(jpeg, d->why);
    d->unknown = jpeg->err->msg_code == JERR_SOF_UNSUPPORTED || jpeg->err->msg_code == JERR_ARITH_NOTIMPL;
    longjmp(d->failed, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    (void)jpeg, (void)level; /* warnings are ignored */
}

/* Called for every row of blocks. */
static void on_progress(j_common_ptr jpeg)
{
    decoder *d = (decoder *)jpeg;

    if (mt_media_stopped(d->watch))
        longjmp(d->failed, 1);
}

static void source_nothing(j_decompress_ptr jpeg)
{
    (void)jpeg;
}

static boolean source_ended(j_decompress_ptr jpeg)
{
    (void)jpeg;
    return FALSE; /* libjpeg stops here */
}

static void source_skip(j_decompress_ptr jpeg, long count)
{
    struct jpeg_source_mgr *source = jpeg->src;
    size_t step;

    if (count <= 0)
        return;
    step = (size_t)count < source->bytes_in_buffer ? (size_t)count : source->bytes_in_buffer;
    source->next_input_byte += step;
    source->bytes_in_buffer -= step;
}

static void setup(decoder *d, const uint8_t *data, size_t size)
{
    d->jpeg.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = on_error;
    d->errors.emit_message = on_message;
    d->source = (struct jpeg_source_mgr){
        .next_input_byte = data,
        .bytes_in_buffer = size,
        .init_source = source_nothing,
        .fill_input_buffer = source_ended,
        .skip_input_data = source_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = source_nothing,
    };
    d->progress.progress_monitor = on_progress;
}

/* Pillow takes every JPEG with four inks as inverted, as Adobe writes them: 255 is no ink. */
static void inks_to_rgb(uint8_t *out, const uint8_t *inks, size_t width)
{
    for (size_t x = 0; x < width; x++) {
        unsigned white = inks[4 * x + 3];

        for (int c = 0; c < 3; c++) {
            unsigned product = (255u - inks[4 * x + (size_t)c]) * white + 128;

            out[3 * x + (size_t)c] = (uint8_t)(white - ((product + (product >> 8)) >> 8));
        }
    }
}

static bool start(decoder *d, const mt_image *image)
{
    struct jpeg_decompress_struct *jpeg = &d->jpeg;

    if (jpeg_read_header(jpeg, TRUE) != JPEG_HEADER_OK)
        return false;
    if (jpeg->image_width != image->width || jpeg->image_height != image->height ||
        (jpeg->num_components != 1 && jpeg->num_components != 3 && jpeg->num_components != 4)) {
        snprintf(d->why, sizeof(d->why), "it has two sizes");
        longjmp(d->failed, 1);
    }
    jpeg->out_color_space = jpeg->num_components == 4 ? JCS_CMYK : JCS_RGB;
    return jpeg_start_decompress(jpeg);
}

static bool read_rows(decoder *d, mt_image *image)
{
    if (d->jpeg.num_components == 4)
        d->inks = mt_alloc((size_t)image->width * 4);
    while (d->jpeg.output_scanline < image->height) {
        uint8_t *out = image->pixels + (size_t)d->jpeg.output_scanline * image->width * 3;
        JSAMPROW row = d->inks ? d->inks : out;

        if (jpeg_read_scanlines(&d->jpeg, &row, 1) != 1)
            return false;
        if (d->inks)
            inks_to_rgb(out, d->inks, image->width);
    }
    return true;
}

static bool decode(mt_image *image, const uint8_t *data, size_t size, const mt_media_watch *watch, mt_error *err)
{
    decoder *d = mt_alloc(sizeof(*d));
    volatile bool ok = false;

    setup(d, data, size);
    d->watch = watch;
    if (setjmp(d->failed) == 0) {
        jpeg_create_decompress(&d->jpeg);
        d->jpeg.src = &d->source;
        d->jpeg.progress = &d->progress;
        ok = start(d, image) && read_rows(d, image);
        if (!ok)
            mt_codec_ends_early(err, NAME);
    } else {
        (void)(mt_media_stopped(watch) ? mt_codec_stopped(err)
               : d->unknown            ? mt_codec_unknown(err, NAME, d->why)
                                       : mt_codec_damaged(err, NAME, d->why));
    }
    jpeg_destroy_decompress(&d->jpeg);
    mt_free(d->inks);
    mt_free(d);
    return ok;
}

const mt_codec mt_codec_jpeg = {
    .name = NAME,
    .format = MT_IMAGE_JPEG,
    .is = is_jpeg,
    .head = read_head,
    .work = work,
    .decode = decode,
};
