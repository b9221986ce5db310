#include "media_common.h"

#include "media/bytes.h"
#include "media/codec.h"
#include "media/limits.h"

/* Calls one for every line of images.txt. */
static int each_image(void (*one)(const char *name, unsigned width, unsigned height, int tolerance, const char *hex))
{
    FILE *list = fopen(media_path("", "images.txt"), "r");
    char name[128], hex[80];
    unsigned width, height;
    int tolerance, count = 0;

    assert_non_null(list);
    while (fscanf(list, "%127s %u %u %d %79s", name, &width, &height, &tolerance, hex) == 5) {
        if (!mt_image_webp_present && strstr(name, ".webp"))
            continue;
        one(name, width, height, tolerance, hex);
        count++;
    }
    fclose(list);
    return count;
}

static void expect_pixels(const char *name, unsigned width, unsigned height, int tolerance, const char *hex)
{
    mt_image image;
    int off;

    media_load(&image, "images", name);
    if (image.width != width || image.height != height)
        fail_msg("%s: is %ux%u, not %ux%u", name, image.width, image.height, width, height);
    if (tolerance) {
        off = media_off(&image, name);
        if (off > tolerance)
            fail_msg("%s: is %d levels off", name, off);
    } else if (strcmp(media_hex(&image), hex) != 0) {
        fail_msg("%s: the pixels differ", name);
    }
    mt_image_free(&image);
}

static void pixels_are_those_of_pillow(void **state)
{
    (void)state;
    assert_true(each_image(expect_pixels) > 80);
}

static void expect_probe(const char *name, unsigned width, unsigned height, int tolerance, const char *hex)
{
    mt_media_limits limits = mt_media_limits_default();
    mt_image_info info;
    mt_error err;
    mt_buf buf;

    (void)tolerance, (void)hex;
    media_read(&buf, "images", name);
    assert_true(mt_image_probe(&info, buf.data, buf.len, &limits, &err));
    if ((info.width != width || info.height != height) && (info.width != height || info.height != width))
        fail_msg("%s: is said to be %ux%u", name, info.width, info.height);
    assert_true(info.memory >= (size_t)width * height * 3 + (info.format == MT_IMAGE_PNG ? 32 * width + 65536 : 0));
    mt_buf_free(&buf);
}

static void headers_tell_sizes(void **state)
{
    (void)state;
    each_image(expect_probe);
}

/* A file cut off anywhere is refused with a sentence, unless all pixels were there already. */
static void expect_cuts_refused(const char *name, unsigned width, unsigned height, int tolerance, const char *hex)
{
    mt_image_info info;
    mt_image image, whole;
    mt_error err;
    mt_buf buf;
    size_t step, full;

    (void)width, (void)height, (void)tolerance, (void)hex;
    media_read(&buf, "images", name);
    full = buf.len;
    assert_true(media_decode(&whole, &buf, &err));
    step = full / 60 + 1;
    for (size_t len = 0; len < full; len += len < 80 ? 1 : step) {
        char *exact = malloc(len + 1); /* so that the address sanitizer sees a byte too many */
        mt_media_limits limits = mt_media_limits_default();

        memcpy(exact, buf.data, len);
        if (mt_image_decode(&image, exact, len, &limits, NULL, &err)) {
            bool turned = image.width != whole.width; /* what says so may stand behind the pixels */

            if (!turned && media_distance(&image, &whole) > 0)
                fail_msg("%s: %zu of %zu bytes are taken for a picture", name, len, full);
            mt_image_free(&image);
        } else {
            assert_int_equal(err.code, MT_E_INVALID);
            if (len > 2 && !strstr(err.text, "picture ends early") && !strstr(err.text, "is damaged") &&
                !strstr(err.text, "no picture"))
                fail_msg("%s at %zu: \"%s\"", name, len, err.text);
            assert_null(strstr(err.text, "(it ends early)"));
            if (mt_image_probe(&info, exact, len, &limits, &err) && info.format == MT_IMAGE_JPEG) {
                assert_false(mt_image_decode(&image, exact, len, &limits, NULL, &err));
                assert_string_equal(err.text, "the \"JPEG\" picture ends early: send the whole file");
            }
        }
        free(exact);
    }
    mt_image_free(&whole);
    mt_buf_free(&buf);
}

static void a_file_that_ends_early_is_refused(void **state)
{
    (void)state;
    each_image(expect_cuts_refused);
}

/* Bytes changed at random: anything may come out but a crash, and a failure has its sentence. */
static void expect_no_crash(const char *name, unsigned width, unsigned height, int tolerance, const char *hex)
{
    uint32_t random = 12345;
    mt_image image;
    mt_error err;
    mt_buf buf;

    (void)width, (void)height, (void)tolerance, (void)hex;
    media_read(&buf, "images", name);
    for (int round = 0; round < 40; round++) {
        char saved[3];
        size_t at[3];

        for (int i = 0; i < 3; i++) {
            random = random * 1664525 + 1013904223;
            at[i] = random % (round < 20 && buf.len > 64 ? 64 : buf.len);
            saved[i] = buf.data[at[i]];
            buf.data[at[i]] = (char)(random >> 24);
        }
        if (media_decode(&image, &buf, &err))
            mt_image_free(&image);
        else
            assert_int_equal(err.code, MT_E_INVALID);
        for (int i = 2; i >= 0; i--)
            buf.data[at[i]] = saved[i];
    }
    mt_buf_free(&buf);
}

static void a_damaged_file_does_no_harm(void **state)
{
    (void)state;
    each_image(expect_no_crash);
}

/* Chunks that pixels need are refused where their sums are wrong; others count as missing, those that say how to turn
   the picture, too. */
static void expect_sums_checked(const char *name, unsigned width, unsigned height, int tolerance, const char *hex)
{
    const bool turns = strncmp(name, "exif-be", 7) == 0 || strncmp(name, "xmp-", 4) == 0;
    mt_image image;
    mt_error err;
    mt_buf buf;

    (void)tolerance, (void)hex;
    if (!strstr(name, ".png"))
        return;
    media_read(&buf, "images", name);
    for (size_t at = 8, next; at < buf.len; at = next) {
        const char *kind = buf.data + at + 4;
        const bool needed =
            memcmp(kind, "IHDR", 4) == 0 || memcmp(kind, "PLTE", 4) == 0 || memcmp(kind, "IDAT", 4) == 0;
        const bool metadata = memcmp(kind, "eXIf", 4) == 0 || memcmp(kind + 1, "TXt", 3) == 0;

        next = at + 12 + mt_be32((const uint8_t *)buf.data + at);
        buf.data[next - 1] ^= 1;
        if (media_decode(&image, &buf, &err) == needed)
            fail_msg("%s: a wrong sum of %.4s is %s", name, kind, needed ? "accepted" : err.text);
        if (needed)
            assert_non_null(strstr(err.text, "CRC error"));
        else if (turns && metadata)
            assert_true(image.width == height && image.height == width);
        if (!needed)
            mt_image_free(&image);
        buf.data[next - 1] ^= 1;
    }
    mt_buf_free(&buf);
}

static void sums_of_chunks_are_checked(void **state)
{
    (void)state;
    each_image(expect_sums_checked);
}

static void expect_refusal(const void *data, size_t size, const char *sentence)
{
    mt_media_limits limits = mt_media_limits_default();
    mt_image_info info;
    mt_image image;
    mt_error err;

    assert_false(mt_image_probe(&info, data, size, &limits, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_string_equal(err.text, sentence);
    assert_false(mt_image_decode(&image, data, size, &limits, NULL, &err));
    assert_string_equal(err.text, sentence);
    assert_null(image.pixels);
}

static void what_is_no_picture_is_refused(void **state)
{
    (void)state;
    expect_refusal(
        "", 0, "the 0 bytes are no picture that is known here: send \"JPEG\", \"PNG\", \"WebP\", \"GIF\" or \"BMP\"");
    expect_refusal(
        "<html>", 6,
        "the 6 bytes are no picture that is known here: send \"JPEG\", \"PNG\", \"WebP\", \"GIF\" or \"BMP\"");
}

/* Files that may be in order: "damaged" would have their owner look for a fault that is not there. */
static void kinds_that_are_not_read_are_named(void **state)
{
    static const char jpeg[] = "\xff\xd8\xff\xc1\0\x0b\x0c\0\1\0\1\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0";
    static const char two[] = "\xff\xd8\xff\xc0\0\x0e\x08\0\1\0\1\2\1\x11\0\2\x11\0";
    static const char bmp[] = "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\1\0\0\0\1\0\0\0\1\0\2\0\0\0\0\0"
                              "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    static const char other[] = "\xff\xd8\xff\xc5\0\x0b\x08\0\1\0\1\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0";
    mt_media_limits limits = mt_media_limits_default();
    mt_image image;
    mt_error err;

    (void)state;
    expect_refusal(
        jpeg, sizeof(jpeg) - 1,
        "the \"JPEG\" picture is of a kind that is not known here (12 bits for each of 1 colours): send it as an "
        "8-bit \"PNG\"");
    expect_refusal(
        two, sizeof(two) - 1,
        "the \"JPEG\" picture is of a kind that is not known here (8 bits for each of 2 colours): send it as an "
        "8-bit \"PNG\"");
    expect_refusal(bmp, sizeof(bmp) - 1,
                   "the \"BMP\" picture is of a kind that is not known here (2 bits with compression 0): send it as an "
                   "8-bit \"PNG\"");
    assert_false(mt_image_decode(&image, other, sizeof(other) - 1, &limits, NULL, &err)); /* libjpeg's words follow */
    assert_non_null(strstr(err.text, "the \"JPEG\" picture is of a kind that is not known here ("));
}

#define PNG_HEAD "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"

static void bombs_are_refused_by_their_header(void **state)
{
    static const char png[] = PNG_HEAD "\0\0\x27\x10\0\0\x27\x10\x08\x02\0\0\0\0\0\0\0\0\0\0";
    static const char wide[] = PNG_HEAD "\0\x01\x86\xa0\0\0\0\x01\x08\x02\0\0\0\0\0\0\0\0\0\0";
    static const char tall[] = PNG_HEAD "\0\0\0\x01\0\x01\x86\xa0\x08\x02\0\0\0\0\0\0\0\0\0\0";
    static const char jpeg[] = "\xff\xd8\xff\xc2\0\x11\x08\xff\xff\xff\xff\x03\1\x22\0\2\x11\1\3\x11\1"
                               "\xff\xda\0\x0c\x03\1\0\2\x11\3\x11\0\x3f\0";
    static const char gif[] = "GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\1\0\1\0\0\2";
    static const char bmp[] = "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x20\x4e\0\0\x20\x4e\0\0\1\0\x18\0\0\0\0\0"
                              "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    static const char webp[] =
        "RIFF\x26\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\x3f\0\xff\x3f\0VP8L\x08\0\0\0\x2f\xff\xff\xff\x0f\0\0\0";

    (void)state;
    expect_refusal(
        png, sizeof(png) - 1,
        "the \"PNG\" picture is 10000x10000 pixels, 100000000 in all, and 67108864 are allowed: send a smaller one");
    expect_refusal(wide, sizeof(wide) - 1,
                   "the \"PNG\" picture is 100000x1 pixels, and a side may have 65535: send a smaller one");
    expect_refusal(tall, sizeof(tall) - 1,
                   "the \"PNG\" picture is 1x100000 pixels, and a side may have 65535: send a smaller one");
    expect_refusal(
        jpeg, sizeof(jpeg) - 1,
        "the \"JPEG\" picture is 65535x65535 pixels, 4294836225 in all, and 67108864 are allowed: send a smaller one");
    expect_refusal(
        gif, sizeof(gif) - 1,
        "the \"GIF\" picture is 65535x65535 pixels, 4294836225 in all, and 67108864 are allowed: send a smaller one");
    expect_refusal(
        bmp, sizeof(bmp) - 1,
        "the \"BMP\" picture is 20000x20000 pixels, 400000000 in all, and 67108864 are allowed: send a smaller one");
    if (!mt_image_webp_present)
        return;
    expect_refusal(
        webp, sizeof(webp) - 1,
        "the \"WebP\" picture is 16384x16384 pixels, 268435456 in all, and 67108864 are allowed: send a smaller one");
}

/* 8000x8000 pixels are allowed, but not in so few bytes: known before memory is set aside. */
static void small_files_that_claim_large_pictures_are_refused(void **state)
{
    static const char png[] = PNG_HEAD "\0\0\x1f\x40\0\0\x1f\x40\x08\x02\0\0\0\0\0\0\0\0\0\0";
    static const char jpeg[] = "\xff\xd8\xff\xc2\0\x11\x08\x1f\x40\x1f\x40\x03\1\x22\0\2\x11\1\3\x11\1"
                               "\xff\xda\0\x0c\x03\1\0\2\x11\3\x11\0\x3f\0";
    static const char bmp[] = "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x18\0\0\0\0\0"
                              "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    (void)state;
    expect_refusal(png, sizeof(png) - 1, "the \"PNG\" picture ends early: send the whole file");
    expect_refusal(jpeg, sizeof(jpeg) - 1, "the \"JPEG\" picture ends early: send the whole file");
    expect_refusal(bmp, sizeof(bmp) - 1, "the \"BMP\" picture ends early: send the whole file");
}

static void a_picture_without_pixels_is_refused(void **state)
{
    static const char png[] = PNG_HEAD "\0\0\0\0\0\0\0\x05\x08\x02\0\0\0\0\0\0\0\0\0\0";

    (void)state;
    expect_refusal(png, sizeof(png) - 1, "the \"PNG\" picture is 0x5 pixels: send one that has some");
}

static void too_many_bytes_are_refused(void **state)
{
    mt_media_limits limits = mt_media_limits_default();
    mt_image image;
    mt_error err;
    mt_buf buf;

    (void)state;
    limits.bytes = 100;
    media_read(&buf, "images", "rgb-24.bmp");
    assert_false(mt_image_decode(&image, buf.data, buf.len, &limits, NULL, &err));
    assert_string_equal(err.text, "the picture has 886 bytes, and 100 are allowed: send a smaller one");
    mt_buf_free(&buf);
}

/* Two progressive scans of a large picture that are repeated cost seconds each and few bytes. */
static void a_picture_of_too_many_scans_is_refused(void **state)
{
    mt_error err;
    mt_image image;
    mt_buf buf, many;
    size_t scan = 0, scans = 0;

    (void)state;
    media_read(&buf, "images", "grey-progressive.jpg");
    for (size_t i = 0; i + 1 < buf.len; i++) /* the last scan: it refines, and may come again */
        if ((uint8_t)buf.data[i] == 0xFF && (uint8_t)buf.data[i + 1] == 0xDA) {
            scan = i;
            scans++;
        }
    mt_buf_init(&many, 1 << 20);
    mt_buf_add(&many, buf.data, scan);
    for (; scans <= MT_LIMIT_MEDIA_SCANS + 1; scans++) {
        mt_buf_add(&many, buf.data + scan, buf.len - 2 - scan);
        if (scans < MT_LIMIT_MEDIA_SCANS)
            continue;
        mt_buf_add(&many, "\xff\xd9", 2);
        assert_int_equal(media_decode(&image, &many, &err), scans == MT_LIMIT_MEDIA_SCANS);
        mt_image_free(&image);
        many.len -= 2;
    }
    assert_string_equal(err.text, "the \"JPEG\" picture has more than 100 scans: save it with fewer, or as baseline");
    mt_buf_free(&many);
    mt_buf_free(&buf);
}

static void a_part_is_cut_out(void **state)
{
    mt_image image, part;

    (void)state;
    mt_image_new(&image, 5, 4);
    for (int i = 0; i < 60; i++)
        image.pixels[i] = (uint8_t)i;
    mt_image_crop(&part, &image, 3, 1, 2, 3);
    assert_int_equal(part.width, 2);
    assert_int_equal(part.height, 3);
    for (int y = 0; y < 3; y++)
        assert_memory_equal(part.pixels + y * 6, image.pixels + (y + 1) * 15 + 9, 6);
    mt_image_free(&part);
    mt_image_free(&image);
}

typedef struct purse {
    size_t taken, most;
} purse;

static bool purse_take(void *ctx, size_t bytes, mt_error *err)
{
    purse *p = ctx;

    p->taken += bytes;
    return p->taken <= p->most || mt_fail(err, MT_E_BUSY, "no room");
}

/* What a header says is asked for before anything is decoded, and decoding ends when nobody waits for it. */
static void expect_watched(const char *name, unsigned width, unsigned height, int tolerance, const char *hex)
{
    mt_media_limits limits = mt_media_limits_default();
    atomic_bool stop = false;
    purse p = {.most = SIZE_MAX};
    const mt_media_watch watch = {.stop = &stop, .take = purse_take, .ctx = &p};
    mt_image_info info;
    mt_image image;
    mt_error err;
    mt_buf buf;

    (void)tolerance, (void)hex, (void)width, (void)height;
    media_read(&buf, "images", name);
    assert_true(mt_image_probe(&info, buf.data, buf.len, &limits, &err));
    assert_true(mt_image_decode(&image, buf.data, buf.len, &limits, &watch, &err));
    assert_int_equal(p.taken, info.memory);
    mt_image_free(&image);
    p = (purse){.most = info.memory - 1};
    assert_false(mt_image_decode(&image, buf.data, buf.len, &limits, &watch, &err));
    assert_string_equal(err.text, "no room");
    p.most = SIZE_MAX;
    atomic_store(&stop, true);
    if (info.format != MT_IMAGE_WEBP && info.format != MT_IMAGE_BMP) { /* which are decoded at one go */
        assert_false(mt_image_decode(&image, buf.data, buf.len, &limits, &watch, &err));
        assert_string_equal(err.text, "the picture was not decoded to its end: its request was cancelled");
    }
    mt_buf_free(&buf);
}

/* Not even one nanosecond; only libwebp and the copying of a BMP do not look at the clock. */
static void a_picture_has_so_much_processor_time_and_no_more(void **state)
{
    static const char *const names[] = {"baseline-444.jpg", "progressive.jpg", "rgb-8.png", "plain.gif", "rle8.bmp"};
    mt_media_limits limits = mt_media_limits_default();

    (void)state;
    assert_true(limits.image_seconds == MT_LIMIT_MEDIA_IMAGE_SECONDS);
    limits.image_seconds = 1e-9;
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        mt_image image;
        mt_error err = {0};
        mt_buf buf;

        media_read(&buf, "images", names[i]);
        assert_false(mt_image_decode(&image, buf.data, buf.len, &limits, NULL, &err));
        assert_int_equal(err.code, MT_E_INVALID);
        assert_string_equal(err.text,
                            "the picture takes more than the 1e-09 seconds of a processor that one may: send a "
                            "smaller or simpler one");
        assert_null(image.pixels);
        mt_buf_free(&buf);
    }
}

static void decoding_asks_for_memory_and_can_be_stopped(void **state)
{
    (void)state;
    each_image(expect_watched);
}

/* The same orientation in either order of bytes, and in every type that Pillow takes a number from; also where the
   magic number is in the wrong order, and where it is the first of as many as fit. Then what turns nothing: another
   number, a byte, a text, more numbers than fit. At last what says nothing, so that XMP is asked. */
static void orientations_are_read_in_every_form(void **state)
{
    static const struct {
        const char *tiff;
        unsigned orientation;
    } cases[] = {
        {"II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0", 6},   {"MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0", 6},
        {"II*\0\x08\0\0\0\1\0\x12\1\4\0\1\0\0\0\6\0\0\0", 6},   {"MM\0*\0\0\0\x08\0\1\1\x12\0\4\0\0\0\1\0\0\0\6", 6},
        {"MM\0*\0\0\0\x08\0\1\1\x12\0\6\0\0\0\1\6\0\0\0", 6},   {"MM\0*\0\0\0\x08\0\1\1\x12\0\x08\0\0\0\1\0\6\0\0", 6},
        {"MM\0*\0\0\0\x08\0\1\1\x12\0\x09\0\0\0\1\0\0\0\6", 6}, {"MM\0*\0\0\0\x08\0\1\1\x12\0\x0D\0\0\0\1\0\0\0\6", 6},
        {"MM*\0\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0", 6},   {"II*\0\x08\0\0\0\1\0\x12\1\3\0\2\0\0\0\6\0\3\0", 6},
        {"II*\0\x08\0\0\0\1\0\x12\1\6\0\4\0\0\0\6\0\0\0", 6},   {"II*\0\x08\0\0\0\1\0\x12\1\6\0\5\0\0\0\6\0\0\0", 1},
        {"II*\0\x08\0\0\0\1\0\x12\1\4\0\2\0\0\0\6\0\0\0", 1},   {"II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\0\0\0\0", 1},
        {"MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\x09\0\0", 1}, {"II*\0\x08\0\0\0\1\0\x12\1\1\0\1\0\0\0\6\0\0\0", 1},
        {"MM\0*\0\0\0\x08\0\1\1\x12\0\2\0\0\0\1\0\6\0\0", 1},   {"II*\0\x08\0\0\0\1\0\x12\1\3\0\3\0\0\0\6\0\0\0", 1},
        {"II*\0\x08\0\0\0\1\0\x12\1\3\0\0\0\0\0\6\0\0\0", 8},   {"II*\0\xFF\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0", 8},
        {"II+\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0", 8},   {"II*\0\x08\0\0\0\0\0\x12\1\3\0\1\0\0\0\6\0\0\0", 8}};
    static const char xmp[] = "tiff:Orientation, tiff:Orientation=\"8\"";

    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        const mt_metadata m = {.exif = (const uint8_t *)cases[i].tiff,
                               .exif_size = 22,
                               .xmp = (const uint8_t *)xmp,
                               .xmp_size = sizeof(xmp) - 1};

        assert_int_equal(mt_metadata_orientation(&m), cases[i].orientation);
    }
}

/* With what JPEG writes before it, once, twice and too often. What is behind the end is not read. */
static void exif_may_end_anywhere(void **state)
{
    static const char exif[] = "Exif\0\0Exif\0\0Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0";

    (void)state;
    for (size_t begin = 0; begin <= 18; begin += 6)
        for (size_t end = begin; end <= sizeof(exif); end++) {
            const mt_metadata m = {.exif = (const uint8_t *)exif + begin, .exif_size = end - begin};

            assert_int_equal(mt_metadata_orientation(&m), end == sizeof(exif) && begin > 0 ? 6 : 1);
        }
}

/* The first digit counts; one that is no orientation turns nothing. */
static void orientations_are_digits_in_xmp(void **state)
{
    static const struct {
        const char *xmp;
        unsigned orientation;
    } cases[] = {{"tiff:Orientation=\"0\" tiff:Orientation=\"8\"", 1},
                 {"tiff:Orientation>9 tiff:Orientation>8", 1},
                 {"tiff:Orientation=\"1\" tiff:Orientation=\"8\"", 1},
                 {"tiff:Orientation>2 tiff:Orientation>8", 2},
                 {"tiff:Orientation=\"/\" tiff:Orientation=\"8\"", 8},
                 {"tiff:Orientation>: tiff:Orientation>8", 8},
                 {"tiff:Orientation 3 tiff:Orientation=4 tiff:Orientation\"5", 1}};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        const mt_metadata m = {.xmp = (const uint8_t *)cases[i].xmp, .xmp_size = strlen(cases[i].xmp)};

        assert_int_equal(mt_metadata_orientation(&m), cases[i].orientation);
    }
}

/* XMP that ends in the middle of what is searched for. */
static void xmp_may_end_anywhere(void **state)
{
    static const char *const texts[] = {"<tiff:Orientation>6", " tiff:Orientation=\"6"};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(texts); i++)
        for (size_t len = 0; len <= strlen(texts[i]); len++) {
            uint8_t *exact = malloc(len + 1);
            const mt_metadata m = {.xmp = exact, .xmp_size = len};

            exact[len] = '6'; /* is not read */
            memcpy(exact, texts[i], len);
            assert_int_equal(mt_metadata_orientation(&m), len == strlen(texts[i]) ? 6 : 1);
            free(exact);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(decoding_asks_for_memory_and_can_be_stopped),
    cmocka_unit_test(a_picture_has_so_much_processor_time_and_no_more),
    cmocka_unit_test(pixels_are_those_of_pillow),
    cmocka_unit_test(headers_tell_sizes),
    cmocka_unit_test(a_file_that_ends_early_is_refused),
    cmocka_unit_test(a_damaged_file_does_no_harm),
    cmocka_unit_test(sums_of_chunks_are_checked),
    cmocka_unit_test(what_is_no_picture_is_refused),
    cmocka_unit_test(kinds_that_are_not_read_are_named),
    cmocka_unit_test(bombs_are_refused_by_their_header),
    cmocka_unit_test(small_files_that_claim_large_pictures_are_refused),
    cmocka_unit_test(a_picture_without_pixels_is_refused),
    cmocka_unit_test(too_many_bytes_are_refused),
    cmocka_unit_test(a_picture_of_too_many_scans_is_refused),
    cmocka_unit_test(a_part_is_cut_out),
    cmocka_unit_test(orientations_are_read_in_every_form),
    cmocka_unit_test(exif_may_end_anywhere),
    cmocka_unit_test(orientations_are_digits_in_xmp),
    cmocka_unit_test(xmp_may_end_anywhere),
};
UNIT_MAIN(tests)
