/* What the segments of a JPEG say of it, of files that end before their pixels. */
#include "unit.h"

#include "base/buf.h"
#include "base/compiler.h"
#include "media/codec.h"
#include "media/limits.h"

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

/* A progressive JPEG in one colour whose scans, each of a few bytes, say nothing of its pixels. */
static void write_scans(mt_buf *to, uint8_t side_high, unsigned scans, const char *between, size_t len)
{
    const char frame[] = {'\xFF', '\xC2', 0, 11, 8, (char)side_high, 0, (char)side_high, 0, 1, 1, 0x11, 0};

    mt_buf_init(to, 1 << 20);
    mt_buf_add(to, "\xFF\xD8", 2);
    mt_buf_add(to, frame, sizeof(frame));
    for (unsigned i = 0; i < scans; i++) {
        mt_buf_add(to, PIXELS "\x55\x55", sizeof(PIXELS) + 1);
        mt_buf_add(to, between, len);
    }
    mt_buf_add(to, "\xFF\xD9", 2);
}

static bool probe_scans(uint8_t side_high, unsigned scans, const char *between, size_t len, mt_image_info *info,
                        mt_error *err)
{
    mt_media_limits limits = mt_media_limits_default();
    mt_buf bytes;
    bool ok;

    write_scans(&bytes, side_high, scans, between, len);
    ok = mt_image_probe(info, bytes.data, bytes.len, &limits, err);
    assert_true(!ok || info->work == mt_image_work(bytes.data, bytes.len));
    mt_buf_free(&bytes);
    return ok;
}

/* Nothing is decoded to find them: there are no pixels. */
static void scans_are_counted_before_pixels_are_decoded(void **state)
{
    mt_image_info info;
    mt_error err = {0};

    (void)state;
    assert_true(probe_scans(1, MT_LIMIT_MEDIA_SCANS, "", 0, &info, &err)); /* 256x256 */
    assert_int_equal(info.work, 256 * 256 * MT_LIMIT_MEDIA_SCANS);
    assert_false(probe_scans(1, MT_LIMIT_MEDIA_SCANS + 1, "", 0, &info, &err));
    assert_string_equal(err.text, "the \"JPEG\" picture has more than 100 scans: save it with fewer, or as baseline");
    assert_false(probe_scans(32, MT_LIMIT_MEDIA_PASSES + 1, "", 0, &info, &err)); /* 8192x8192, all that one may have */
    assert_string_equal(err.text, "the \"JPEG\" picture is 8192x8192 pixels in 17 scans, and 16 are allowed for so "
                                  "many: send a smaller one, or one with fewer scans");
    assert_false(probe_scans(32, MT_LIMIT_MEDIA_PASSES, "", 0, &info, &err));
    assert_non_null(strstr(err.text, "ends early")); /* since it has too few bytes for its pixels */
}

/* What stands between scans, and how many scans there are then with two that are counted without. */
static void only_scans_are_counted(void **state)
{
    static const struct {
        const char *between;
        size_t len;
        unsigned scans;
    } rows[] = {
        {"", 0, 2},
        {PIXELS, sizeof(PIXELS) - 1, 4},
        {"\xFF\0\xDA", 3, 2},                                   /* a byte of the pixels */
        {"\xFF\xD0\x55\xFF\xD7\x55", 6, 2},                     /* restarts */
        {"\xFF\xFF\xFF\xDA\0\x08\1\1\0\0\x3F\0", 12, 4},        /* filled up */
        {"\xFF\xE1\0\x0E" PIXELS "\0", 4 + 12, 2},              /* in a segment: a thumbnail */
        {"\xFF\xE1\0\0" PIXELS, 4 + sizeof(PIXELS) - 1, 4},     /* behind one that says it has no length */
        {"\xFF\xFE\0\1" PIXELS, 4 + sizeof(PIXELS) - 1, 4},     /* the same */
        {"\xFF\xD9\xFF\xD8" PIXELS, 4 + sizeof(PIXELS) - 1, 1}, /* a second picture */
        {"\xFF\xDA\xFF\xFF", 4, 1},                             /* cut off */
    };
    mt_image_info info;
    mt_error err = {0};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        if (!probe_scans(1, 2, rows[i].between, rows[i].len, &info, &err))
            fail_msg("row %zu: %s", i, err.text);
        if (info.work != 256ull * 256 * rows[i].scans)
            fail_msg("row %zu: %llu", i, (unsigned long long)info.work / 65536);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(scans_are_counted_before_pixels_are_decoded),
    cmocka_unit_test(only_scans_are_counted),
    cmocka_unit_test(segments_are_read),
    cmocka_unit_test(segments_that_cannot_be_are_refused),
};

UNIT_MAIN(tests)
