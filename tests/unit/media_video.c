#include "media_common.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>

#include "media/cost.h"
#include "media/video.h"

static mt_video *open_clip(const mt_buf *bytes, mt_error *err)
{
    static mt_media_limits limits;

    limits = mt_media_limits_default();
    return mt_video_open(bytes->data, bytes->len, &limits, NULL, err);
}

typedef struct row {
    char file[128];
    unsigned width, height;
    long long frames, index;
    double fps, time;
} row;

static bool next_row(FILE *list, row *r)
{
    return fscanf(list, "%127s %u %u %lld %lf %lld %lf", r->file, &r->width, &r->height, &r->frames, &r->fps, &r->index,
                  &r->time) == 7;
}

/* On x86-64 swscale has no way of its own for 10 bits and for odd sizes: colours between those of the file are found by
   another filter. */
static bool turns_colours_otherwise(const char *file)
{
#if defined(__x86_64__)
    return !strcmp(file, "h264-10.mp4") || !strcmp(file, "vp9-odd.webm");
#else
    (void)file;
    return false;
#endif
}

static void expect_frame(mt_video *video, const row *r)
{
    mt_video_info info = mt_video_about(video);
    char name[256];
    mt_image image;
    mt_error err;
    int off;

    if (info.width != r->width || info.height != r->height || info.frames != r->frames ||
        fabs(info.fps - r->fps) > 1e-4)
        fail_msg("%s: is %ux%u, %lld frames, %g fps", r->file, info.width, info.height, (long long)info.frames,
                 info.fps);
    assert_true(fabs(info.duration - (double)r->frames / r->fps) < 1e-3);
    assert_true(fabs(mt_video_time(video, r->index) - r->time) < 1e-3);
    if (!mt_video_frame(video, r->index, &image, &err))
        fail_msg("%s: %s", r->file, err.text);
    snprintf(name, sizeof(name), "%s%s-%lld", turns_colours_otherwise(r->file) ? "x86_64/" : "", r->file, r->index);
    off = media_off(&image, name);
    if (off > 3) /* swscale rounds in its own way on each processor */
        fail_msg("%s: frame %lld is %d levels off", r->file, r->index, off);
    mt_image_free(&image);
}

static void frames_are_those_of_pyav(void **state)
{
    FILE *list = fopen(media_path("", "videos.txt"), "r");
    char opened[128] = "";
    mt_video *video = NULL;
    mt_buf bytes = {0};
    mt_error err;
    row r;

    (void)state;
    assert_non_null(list);
    while (next_row(list, &r)) {
        if (strcmp(opened, r.file) != 0) {
            mt_video_close(video);
            mt_buf_free(&bytes);
            media_read(&bytes, "videos", r.file);
            video = open_clip(&bytes, &err);
            if (!video)
                fail_msg("%s: %s", r.file, err.text);
            snprintf(opened, sizeof(opened), "%s", r.file);
        }
        expect_frame(video, &r);
    }
    assert_string_not_equal(opened, "");
    mt_video_close(video);
    mt_buf_free(&bytes);
    fclose(list);
}

static void a_frame_may_be_asked_for_again(void **state)
{
    mt_image one, two, three;
    mt_video *video;
    mt_error err;
    mt_buf bytes;

    (void)state;
    media_read(&bytes, "videos", "h264.mp4");
    video = open_clip(&bytes, &err);
    assert_non_null(video);
    assert_true(mt_video_frame(video, 7, &one, &err));
    assert_true(mt_video_frame(video, 7, &two, &err));
    assert_true(mt_video_frame(video, 8, &three, &err));
    assert_int_equal(media_distance(&one, &two), 0);
    assert_true(media_distance(&one, &three) > 0);
    mt_image_free(&one);
    mt_image_free(&two);
    mt_image_free(&three);
    mt_video_close(video);
    mt_buf_free(&bytes);
}

static void read_all(const char *data, size_t len)
{
    mt_media_limits limits = mt_media_limits_default();
    mt_error err = {0};
    mt_video *video = mt_video_open(data, len, &limits, NULL, &err);
    mt_image image;

    for (int64_t i = 0; video && i < mt_video_about(video).frames; i++) {
        if (!mt_video_frame(video, i, &image, &err))
            break;
        mt_image_free(&image);
    }
    if (!video || err.code)
        assert_int_equal(err.code, MT_E_INVALID);
    mt_video_close(video);
}

static void a_cut_or_damaged_file_does_no_harm(void **state)
{
    static const char *const files[] = {"h264.mp4", "vp9.webm", "hevc.mp4", "vp8.webm", "av1.webm"};
    uint32_t random = 99;
    mt_buf bytes;

    (void)state;
    for (size_t f = 0; f < MT_COUNT(files); f++) {
        media_read(&bytes, "videos", files[f]);
        for (size_t len = 0; len < bytes.len; len += bytes.len / 25 + 1) {
            char *exact = malloc(len + 1);

            memcpy(exact, bytes.data, len);
            read_all(exact, len);
            free(exact);
        }
        for (int round = 0; round < 25; round++) {
            random = random * 1664525 + 1013904223;
            bytes.data[(random >> 8) % bytes.len] ^= (char)(1 << (random & 7));
            read_all(bytes.data, bytes.len);
        }
        mt_buf_free(&bytes);
    }
}

static void expect_refusal(const void *data, size_t size, const mt_media_limits *limits, const char *sentence)
{
    mt_error err;

    assert_null(mt_video_open(data, size, limits, NULL, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_string_equal(err.text, sentence);
}

static void limits_are_kept(void **state)
{
    mt_media_limits limits = mt_media_limits_default(), less = limits;
    mt_buf bytes;

    (void)state;
    media_read(&bytes, "videos", "h264.mp4");
    expect_refusal("GIF89a", 6, &limits, "the 6 bytes are no video that is known here: send MP4 or WebM");
    less.bytes = 100;
    expect_refusal(bytes.data, bytes.len, &less, "the video has 3872 bytes, and 100 are allowed: send a smaller one");
    less = limits;
    less.video_pixels = 3000;
    expect_refusal(bytes.data, bytes.len, &less,
                   "the video is 64x48 pixels, and 3000 in all are allowed: send a smaller one");
    less = limits;
    less.video_frames = 29;
    expect_refusal(bytes.data, bytes.len, &less, "the video has more than the 29 frames allowed: send a shorter one");
    less = limits;
    less.video_seconds = 2;
    expect_refusal(bytes.data, bytes.len, &less,
                   "the video lasts 2.5 seconds, and 2.0 are allowed: send a shorter one");
    mt_buf_free(&bytes);
}

/* A few bytes that claim a billion samples, in a table and in a fragment. */
static void claims_of_samples_are_refused(void **state)
{
    static const char table[] = "\0\0\0\x10"
                                "ftypisom\0\0\0\0"
                                "\0\0\0\x3c"
                                "moov\0\0\0\x34trak\0\0\0\x2cmdia\0\0\0\x24minf\0\0\0\x1cstbl"
                                "\0\0\0\x14stsz\0\0\0\0\0\0\0\x01\x40\0\0\0";
    static const char fragment[] = "\0\0\0\x10"
                                   "ftypisom\0\0\0\0"
                                   "\0\0\0\x20moof\0\0\0\x18traf\0\0\0\x10trun\0\0\0\0\x40\0\0\0";
    static const char sentence[] = "the video lists 1073741824 samples, and 4194304 are allowed: send a shorter one";
    mt_media_limits limits = mt_media_limits_default();

    (void)state;
    expect_refusal(table, sizeof(table) - 1, &limits, sentence);
    expect_refusal(fragment, sizeof(fragment) - 1, &limits, sentence);
}

/* 40000 frames of 2048x2048, of which a list of edits could hide all but one; and pictures in the boxes of a video. */
static void claims_of_pixels_and_still_pictures_are_refused(void **state)
{
    static const char track[] = "\0\0\0\x10"
                                "ftypisom\0\0\0\0"
                                "\0\0\0\x76moov\0\0\0\x6etrak\0\0\0\x66mdia\0\0\0\x5eminf\0\0\0\x56stbl"
                                "\0\0\0\x3astsd\0\0\0\0\0\0\0\1\0\0\0\x2a"
                                "avc1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\x08\0\0\0\0\0\0\0"
                                "\0\0\0\x14stsz\0\0\0\0\0\0\0\1\0\0\x9c\x40";
    static const char brands[][5] = {"avif", "avis", "heic", "hevc", "mif1", "msf1"};
    mt_media_limits limits = mt_media_limits_default();
    char file[sizeof(track)];

    (void)state;
    assert_int_equal(mt_media_cost(track, sizeof(track) - 1), 40000ull * 2048 * 2048);
    expect_refusal(track, sizeof(track) - 1, &limits,
                   "the video lists frames of 167772 million pixels in all, and 137439 are allowed: send a shorter or "
                   "smaller one");
    for (size_t i = 0; i < MT_COUNT(brands); i++) {
        memcpy(file, track, sizeof(track));
        memcpy(file + 8, brands[i], 4);
        assert_int_equal(mt_media_cost(file, sizeof(file) - 1), 0);
        expect_refusal(file, sizeof(file) - 1, &limits,
                       "the 134 bytes are no video that is known here: send MP4 or WebM");
    }
}

static void reading_can_be_cancelled(void **state)
{
    mt_media_limits limits = mt_media_limits_default();
    atomic_bool cancel = true;
    const mt_media_watch watch = {.stop = &cancel};
    mt_video *video;
    mt_image image;
    mt_error err;
    mt_buf bytes;

    (void)state;
    media_read(&bytes, "videos", "h264.mp4");
    assert_null(mt_video_open(bytes.data, bytes.len, &limits, &watch, &err));
    assert_string_equal(err.text, "the video was not read to its end: its request was cancelled");
    atomic_store(&cancel, false);
    video = mt_video_open(bytes.data, bytes.len, &limits, &watch, &err);
    assert_non_null(video);
    atomic_store(&cancel, true);
    assert_false(mt_video_frame(video, 20, &image, &err));
    assert_string_equal(err.text, "the video was not read to its end: its request was cancelled");
    mt_video_close(video);
    mt_buf_free(&bytes);
}

static bool refuse_or_count(void *ctx, size_t bytes, mt_error *err)
{
    size_t *left = ctx;

    if (bytes > *left)
        return mt_fail(err, MT_E_BUSY, "no room");
    *left -= bytes;
    return true;
}

static void memory_is_asked_for_before_anything_is_decoded(void **state)
{
    mt_media_limits limits = mt_media_limits_default();
    size_t left = (size_t)1 << 40;
    const mt_media_watch watch = {.take = refuse_or_count, .ctx = &left};
    mt_video *video;
    mt_error err;
    mt_buf bytes;
    size_t needed;

    (void)state;
    media_read(&bytes, "videos", "h264.mp4");
    video = mt_video_open(bytes.data, bytes.len, &limits, &watch, &err);
    assert_non_null(video);
    needed = mt_video_about(video).memory;
    assert_int_equal(((size_t)1 << 40) - left, needed);
    mt_video_close(video);
    left = needed - 1;
    assert_null(mt_video_open(bytes.data, bytes.len, &limits, &watch, &err));
    assert_string_equal(err.text, "no room");
    mt_buf_free(&bytes);
}

static void a_frame_without_memory_is_an_error_with_a_sentence(void **state)
{
    void (*limit)(size_t); /* of FFmpeg: the largest piece of memory that it asks for */
    void *symbol = dlsym(RTLD_DEFAULT, "av_max_alloc");
    mt_video *video;
    mt_image image;
    mt_error err = {0};
    mt_buf bytes;

    (void)state;
    if (!symbol)
        skip(); /* FFmpeg is linked in, without names */
    memcpy(&limit, &symbol, sizeof(limit));
    media_read(&bytes, "videos", "h264.mp4");
    video = open_clip(&bytes, &err);
    assert_non_null(video);
    limit(1);
    assert_false(mt_video_frame(video, 0, &image, &err));
    limit(INT_MAX);
    assert_non_null(strstr(err.text, "(decoding: "));
    mt_video_close(video);
    mt_buf_free(&bytes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_frame_without_memory_is_an_error_with_a_sentence),
    cmocka_unit_test(memory_is_asked_for_before_anything_is_decoded),
    cmocka_unit_test(frames_are_those_of_pyav),
    cmocka_unit_test(a_frame_may_be_asked_for_again),
    cmocka_unit_test(a_cut_or_damaged_file_does_no_harm),
    cmocka_unit_test(limits_are_kept),
    cmocka_unit_test(claims_of_samples_are_refused),
    cmocka_unit_test(claims_of_pixels_and_still_pictures_are_refused),
    cmocka_unit_test(reading_can_be_cancelled),
};
UNIT_MAIN_IF(mt_video_present, "FFmpeg", tests)
