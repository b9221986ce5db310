/* What the segments of a JPEG say of it, of files that end before their pixels. */
#include "unit.h"

#include "base/compiler.h"
#include "media/codec.h"

#define FRAME(kind) "\xFF" kind "\0\x0B\x08\0\x80\1\0\1\1\x11\0" /* 256x128 in one colour */
#define FRAME_OF_3 "\xFF\xC0\0\x11\x08\0\x80\1\0\3\1\x22\0\2\x11\1\3\x11\1"
#define PIXELS "\xFF\xDA\0\x08\1\1\0\0\x3F\0"
#define PIXELS_OF_3 "\xFF\xDA\0\x0C\3\1\0\2\x11\3\x11\0\x3F\0"
#define EXIF(orientation) \
    "\xFF\xE1\0\x1E"      \
    "Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0" orientation "\0\0\0"
#define XMP(text)    \
    "\xFF\xE1\0\x31" \
    "http://ns.adobe.com/xap/1.0/\0" text
#define NO_XMP XMP("tiff:Orientatio   ")
#define COMMENT      \
    "\xFF\xFE\0\x14" \
    "tiff:Orientation>6"

typedef struct file {
    const char *bytes;
    size_t size;
    unsigned orientation;
    size_t memory;
    uint64_t least;
} file;

#define FILE_OF(bytes) "\xFF\xD8" bytes, sizeof("\xFF\xD8" bytes) - 1

/* Rows of blocks that are converted take 256 * 64 bytes a colour and 64 KiB, coefficients 256 * 128 * 2 a colour. */
static void segments_are_read(void **state)
{
    static const file files[] = {
        {FILE_OF(FRAME("\xC0") PIXELS), 1, 81920, 16},
        {FILE_OF(FRAME("\xC1") PIXELS), 1, 81920, 16},
        {FILE_OF(FRAME("\xC2") PIXELS), 1, 81920 + 65536, 16},
        {FILE_OF(FRAME("\xC9") PIXELS), 1, 81920 + 65536, 0},
        {FILE_OF(FRAME_OF_3 PIXELS_OF_3), 1, 114688, 16},
        {FILE_OF(FRAME_OF_3 PIXELS), 1, 114688 + 3 * 65536, 16},
        {FILE_OF("\xFF\xC0\0\x08\x08\0\x80\1\0\1" PIXELS), 1, 81920, 16},
        {FILE_OF(EXIF("\6") FRAME("\xC0") PIXELS), 6, 81920, 16},
        {FILE_OF(EXIF("\6") EXIF("\3") FRAME("\xC0") PIXELS), 6, 81920, 16},
        {FILE_OF(XMP("tiff:Orientation>6") FRAME("\xC0") PIXELS), 6, 81920, 16},
        {FILE_OF(XMP("tiff:Orientation>6") XMP("tiff:Orientation>5") FRAME("\xC0") PIXELS), 5, 81920, 16},
        {FILE_OF(NO_XMP COMMENT FRAME("\xC0") PIXELS), 1, 81920, 16},
        {FILE_OF("??\xFF\1\xFF\xD0\xFF\xFF" FRAME("\xC0") "\xFF\0" EXIF("\6") PIXELS), 6, 81920, 16},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(files); i++) {
        mt_codec_head head = {.orientation = 1};
        mt_error err;

        if (!mt_codec_jpeg.head(&head, (const uint8_t *)files[i].bytes, files[i].size, &err))
            fail_msg("file %zu: %s", i, err.text);
        assert_int_equal(head.width, 256);
        assert_int_equal(head.height, 128);
        assert_int_equal(head.orientation, files[i].orientation);
        assert_int_equal(head.memory, files[i].memory);
        assert_int_equal(head.least, files[i].least);
    }
}

static void segments_that_cannot_be_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *told;
    } files[] = {
        {FILE_OF(PIXELS FRAME("\xC0")), "its pixels come before their size"},
        {FILE_OF("\xFF\xC0\0\7\x08\0\x80\1\0" PIXELS), "its frame header is too short"},
        {FILE_OF("\xFF\xC0\0\x0B\x08\0\x80\1\0\5\1\x11\0" PIXELS), "8 bits for each of 5 colours"},
        {FILE_OF(FRAME("\xC0")), "ends early"},
        {FILE_OF(FRAME("\xC0") "\xFF\xDA\0\1" PIXELS), "ends early"},
        {FILE_OF(FRAME("\xC0") "\xFF\xDA\0\x09\1\1\0\0\x3F\0"), "ends early"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(files); i++) {
        mt_codec_head head = {0};
        mt_error err;

        assert_false(mt_codec_jpeg.head(&head, (const uint8_t *)files[i].bytes, files[i].size, &err));
        if (!strstr(err.text, files[i].told))
            fail_msg("file %zu: %s", i, err.text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(segments_are_read),
    cmocka_unit_test(segments_that_cannot_be_are_refused),
};

UNIT_MAIN(tests)
