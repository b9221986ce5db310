/* What decoding will cost, told from headers: for every picture and video of tests/media what they have, and for bytes
   that are cut off or damaged anything but a fault. */
#include "media_common.h"

#include <dirent.h>

#include "media/cost.h"

static void each_file(const char *folder, void (*look)(const char *name, const mt_buf *file))
{
    DIR *all = opendir(media_path(folder, ""));

    assert_non_null(all);
    for (struct dirent *e; (e = readdir(all));) {
        mt_buf file;

        if (e->d_name[0] == '.')
            continue;
        media_read(&file, folder, e->d_name);
        look(e->d_name, &file);
        mt_buf_free(&file);
    }
    closedir(all);
}

/* Deeper PNGs and WebPs with alpha count twice, and a JPEG as often as it has scans. */
static unsigned times_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned times;
    } more[] = {{"rgb-16", 2},          {"rgba-16", 2},      {"lossy-alpha", 2},
                {"animated-offset", 2}, {"progressive", 10}, {"grey-progressive", 6}};

    for (size_t i = 0; i < MT_COUNT(more); i++)
        if (strncmp(name, more[i].name, strlen(more[i].name)) == 0)
            return more[i].times;
    return 1;
}

static void look_at_picture(const char *name, const mt_buf *file)
{
    const mt_media_limits limits = mt_media_limits_default();
    const uint64_t cost = mt_media_cost(file->data, file->len);
    mt_image_info info;
    mt_error err;

    if (!mt_image_probe(&info, file->data, file->len, &limits, &err))
        return;
    assert_int_equal(cost, info.work);
    if (cost != (uint64_t)info.width * info.height * times_of(name))
        fail_msg("%s: %llu pixels, and not %ux%ux%u", name, (unsigned long long)cost, info.width, info.height,
                 times_of(name));
}

static void pictures_cost_their_pixels(void **state)
{
    (void)state;
    each_file("images", look_at_picture);
}

/* The lines of videos.txt have name, width, height and frames. */
static void videos_cost_the_pixels_of_their_frames(void **state)
{
    FILE *list = fopen(media_path("", "videos.txt"), "r");
    unsigned width, height, frames, seen = 0;
    char line[200], name[100];

    (void)state;
    assert_non_null(list);
    while (fgets(line, sizeof(line), list)) {
        mt_buf file;

        assert_int_equal(sscanf(line, "%99s %u %u %u", name, &width, &height, &frames), 4);
        media_read(&file, "videos", name);
        if (mt_media_cost(file.data, file.len) != (uint64_t)width * height * frames)
            fail_msg("%s: %llu", name, (unsigned long long)mt_media_cost(file.data, file.len));
        mt_buf_free(&file);
        seen++;
    }
    fclose(list);
    assert_true(seen > 10);
}

/* In memory of its own, so that a sanitizer notices a byte read behind it. */
static void tear(const char *name, const mt_buf *file)
{
    const size_t step = file->len > 2000 ? file->len / 1000 : 1;
    uint32_t dice = 1;

    (void)name;
    for (size_t len = 0; len <= file->len; len += step) {
        uint8_t *cut = malloc(len + 1);

        memcpy(cut, file->data, len);
        (void)mt_media_cost(cut, len);
        for (int i = 0; i < 4 && len > 0; i++) {
            dice = dice * 1664525 + 1013904223;
            cut[(dice >> 8) % len] = i % 2 ? 0xFF : (uint8_t)(dice >> 24);
        }
        cut = realloc(cut, len ? len : 1);
        (void)mt_media_cost(cut, len);
        free(cut);
    }
}

static void torn_files_do_no_harm(void **state)
{
    (void)state;
    each_file("images", tear);
    each_file("videos", tear);
}

/* Headers alone that say more than any file has. */
static void claims_are_counted_and_never_wrap(void **state)
{
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x10\6\0\0\0\0\0\0\0";
    static const char webp[] = "RIFF\xFF\xFF\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF";
    static const char lossless[] = "RIFF\xFF\xFF\0\0WEBPVP8L\x0a\0\0\0\x2F\xFF\xFF\xFF\x0F\0\0\0\0\0\0";
    static const char lossy[] = "RIFF\xFF\xFF\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\xFF\x3F\xFF\x3F";
    /* a fragment in front of its track, which has 16x16 pixels */
    static const char fragment[] = "\0\0\0\x10"
                                   "ftypisom\0\0\0\0"
                                   "\0\0\0\x20moof\0\0\0\x18traf\0\0\0\x10trun\0\0\0\0\0\0\0\7"
                                   "\0\0\0\x62moov\0\0\0\x5atrak\0\0\0\x52mdia\0\0\0\x4aminf\0\0\0\x42stbl"
                                   "\0\0\0\x3astsd\0\0\0\0\0\0\0\1\0\0\0\x2a"
                                   "avc1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\x10\0\0\0\0\0\0\0";
    /* a track of 16x16 pixels, then a cluster of unknown length with a block of three frames, one of another track and
       one in a group */
    static const char laced[] = "\x1A\x45\xDF\xA3\x80\x18\x53\x80\x67\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                                "\x16\x54\xAE\x6B\x8e\xAE\x8c\xD7\x81\1\x83\x81\1\xE0\x86\xB0\x81\x10\xBA\x81\x10"
                                "\x1F\x43\xB6\x75\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                                "\xA3\x85\x81\0\0\6\2\xA3\x84\x82\0\0\0\xA0\x86\xA1\x84\x81\0\0\0";

    (void)state;
    assert_true(mt_media_cost(png, sizeof(png) - 1) == UINT64_MAX);
    if (mt_image_webp_present) {
        assert_true(mt_media_cost(webp, sizeof(webp) - 1) == 2ull << 48);
        assert_true(mt_media_cost(lossless, sizeof(lossless) - 1) == 1ull << 28);
        assert_true(mt_media_cost(lossy, sizeof(lossy) - 1) == 16383ull * 16383);
    }
    assert_int_equal(mt_media_cost(fragment, sizeof(fragment) - 1), 7 * 256);
    assert_int_equal(mt_media_cost(laced, sizeof(laced) - 1), 4 * 256);
    assert_int_equal(mt_media_cost("", 0), 0);
    assert_int_equal(mt_media_cost("nothing of the kind", 19), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pictures_cost_their_pixels),
    cmocka_unit_test(videos_cost_the_pixels_of_their_frames),
    cmocka_unit_test(torn_files_do_no_harm),
    cmocka_unit_test(claims_are_counted_and_never_wrap),
};

UNIT_MAIN(tests)
