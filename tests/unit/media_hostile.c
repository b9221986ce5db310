/* What a decoder process may say once a picture has taken it over. mt_decode_work is this file's: it says what
   the first byte of the picture wants. Whatever that is, one request gets an error, the server keeps nothing of it,
   and the next picture is decoded. */
#include "media_common.h"

#include <dirent.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "media/decode_inside.h"
#include "media/limits.h"

enum {
    SOUND,
    SILENT,
    NO_WIDTH,
    TOO_WIDE,
    TOO_WIDE_BY_ONE,
    TOO_MANY_PIXELS,
    OTHER_SIZE,
    DONE_FIRST,
    HALF_A_LETTER,
    ENDLESS_TEXT,
    ODD_CODE,
    GREEDY,
    INSATIABLE,
    BRINGS_FILES,
    HAS_NO_TIME,
    LIVED_BEFORE,
    UNKNOWN,
    STILL_IMAGES,
    BACKWARDS = STILL_IMAGES,
    NO_FRAMES,
    TOO_MANY_FRAMES,
    NO_RATE,
    ENDLESS,
    ODD_TIMES,
    NOT_ONE_FRAME,
    ONE_FRAME_TOO_MANY,
    FRAMES_TOO_LARGE,
    STANDS_STILL,
    TOO_FAST,
    ENDS_BEFORE,
    TOO_LONG,
    DEEDS
};

static int hear(int socket, mt_decode_message *in)
{
    size_t count;
    int file = -1;

    if (!mt_decode_receive(socket, in, sizeof(*in), &file, 1, &count))
        _exit(0);
    return file;
}

static void tell(int socket, mt_decode_message *out, mt_decode_kind kind)
{
    out->kind = kind;
    if (!mt_decode_send(socket, out, sizeof(*out), NULL, 0))
        _exit(0);
}

/* Says how large it is, and writes where it may. */
static void show(int socket, mt_decode_message *out, size_t size, double times)
{
    mt_decode_message in;
    void *at;

    tell(socket, out, MT_DECODE_ABOUT);
    const int file = hear(socket, &in);
    if (file < 0)
        return;
    at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED)
        _exit(1);
    if (times != 0)
        for (size_t i = 0; i < size / sizeof(double); i++)
            ((double *)at)[i] = times;
    else
        memset(at, 7, size);
    munmap(at, size);
}

static void ask_for(int socket, mt_decode_message *out, uint64_t bytes, int times)
{
    mt_decode_message in;

    for (int i = 0; i < times; i++) {
        out->size = bytes;
        tell(socket, out, MT_DECODE_TAKE);
        hear(socket, &in);
    }
}

static void misbehave(int socket, int deed)
{
    mt_decode_message out = {.image = {.width = 2, .height = 1},
                             .video = {.width = 2, .height = 1, .frames = 2, .fps = 2, .duration = 1}};

    switch (deed) {
    case SILENT: _exit(0);
    case NO_WIDTH: out.image.width = 0; break;
    case TOO_WIDE: out.image.width = UINT32_MAX; break;
    case TOO_WIDE_BY_ONE: out.image.width = MT_LIMIT_MEDIA_SIDE + 1; break;
    case TOO_MANY_PIXELS: out.image.width = out.image.height = MT_LIMIT_MEDIA_SIDE; break;
    case DONE_FIRST: tell(socket, &out, MT_DECODE_DONE); return;
    case HALF_A_LETTER: mt_decode_send(socket, &out, sizeof(out) / 2, NULL, 0); return;
    case ODD_CODE:
        out.code = (mt_code)12345;
        snprintf(out.text, sizeof(out.text), "so it is");
        break;
    case ENDLESS_TEXT: memset(out.text, 'x', sizeof(out.text)); break;
    case GREEDY: ask_for(socket, &out, UINT64_MAX, 1); break;
    case INSATIABLE: ask_for(socket, &out, 1, INT32_MAX); break;
    case BRINGS_FILES: mt_decode_send(socket, &out, sizeof(out), (int[]){socket}, 1); return;
    case HAS_NO_TIME: tell(socket, &out, MT_DECODE_SPENT); return;
    case LIVED_BEFORE: out.cpu_ns = UINT64_MAX; break;
    case UNKNOWN: tell(socket, &out, (mt_decode_kind)99); return;
    case BACKWARDS: out.video.height = 0; break;
    case NO_FRAMES: out.video.frames = -1; break;
    case TOO_MANY_FRAMES: out.video.frames = INT64_MAX; break;
    case NO_RATE: out.video.fps = NAN; break;
    case ENDLESS: out.video.duration = INFINITY; break;
    case NOT_ONE_FRAME: out.video.frames = 0; break;
    case ONE_FRAME_TOO_MANY: out.video.frames = MT_LIMIT_MEDIA_FRAMES + 1; break;
    case FRAMES_TOO_LARGE: out.video.width = out.video.height = 4097; break;
    case STANDS_STILL: out.video.fps = 0; break;
    case TOO_FAST: out.video.fps = 1e5; break;
    case ENDS_BEFORE: out.video.duration = -1; break;
    case TOO_LONG: out.video.duration = MT_LIMIT_MEDIA_SECONDS + 1; break;
    default: break;
    }
    if (deed == ODD_CODE || deed == ENDLESS_TEXT) {
        tell(socket, &out, MT_DECODE_FAILED);
        return;
    }
    show(socket, &out, deed == ODD_TIMES ? 16 : 6, deed == ODD_TIMES ? NAN : 0);
    if (deed == OTHER_SIZE)
        out.image.width = 2000;
    tell(socket, &out, MT_DECODE_DONE);
}

_Noreturn void mt_decode_work(int socket, const mt_decode_page *page)
{
    mt_decode_message in;

    (void)page;
    for (;;) {
        const int file = hear(socket, &in);
        unsigned char deed = 0;

        if (file < 0)
            continue;
        const unsigned char *data = mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
        if (data != MAP_FAILED)
            deed = *data;
        close(file);
        misbehave(socket, deed);
    }
}

static size_t open_files(void)
{
    size_t count = 0;
    DIR *all = opendir("/proc/self/fd");

    while (all && readdir(all))
        count++;
    closedir(all);
    return count;
}

/* How often memory that is shared with a process is mapped here. */
static size_t mappings(void)
{
    char line[1000];
    size_t count = 0;
    FILE *all = fopen("/proc/self/maps", "r");

    while (all && fgets(line, sizeof(line), all))
        count += strstr(line, "motet-picture") != NULL;
    if (all)
        fclose(all);
    return count;
}

static bool give_little(void *ctx, size_t bytes, mt_error *err)
{
    (void)ctx;
    return bytes < 1000 || mt_fail(err, MT_E_BUSY, "there is no room");
}

static bool decode(unsigned char deed, mt_error *err)
{
    const mt_media_limits limits = mt_media_limits_default();
    const mt_media_watch watch = {.take = give_little};
    const uint64_t begun = mt_clock_ns();
    mt_decode_client *d = mt_decode_client_new(&limits, &watch, 1 << 20, err);
    bool ok;

    assert_non_null(d);
    if (deed < STILL_IMAGES) {
        mt_image image;
        ok = mt_decode_client_image(d, &image, &deed, 1, NULL, NULL, err);
        assert_true(!ok || (image.width == 2 && image.height == 1 && image.pixels[5] == 7));
        if (ok)
            mt_image_free(&image);
    } else {
        mt_video *video = mt_decode_client_video(d, &deed, 1, err);
        ok = video != NULL;
        assert_true(!ok || mt_video_time(video, 1) == 0);
        mt_video_close(video);
    }
    assert_true(mt_decode_client_cpu_ns(d) <= mt_clock_ns() - begun); /* whatever it says */
    mt_decode_client_free(d);
    return ok;
}

static void one_request_is_told_and_nobody_else(void **state)
{
    mt_error err = {0};
    size_t before;

    (void)state;
    if (!mt_decode_process_open())
        skip(); /* the system has no such thing */
    assert_true(decode(SOUND, &err));
    before = open_files();
    for (unsigned char deed = SILENT; deed < DEEDS; deed++) {
        /* times that are none are nought, and who goes on without what it was refused has a limit of the kernel's */
        const bool may = deed == ODD_TIMES || deed == GREEDY || deed == LIVED_BEFORE, ok = decode(deed, &err);

        assert_true(ok == may);
        if (!ok) {
            assert_int_equal(MT_E_INVALID, err.code);
            assert_true(strlen(err.text) > 5 && strlen(err.text) < sizeof(err.text));
        }
        assert_true(decode(SOUND, &err));
        assert_int_equal(before, open_files());
        assert_int_equal(mappings(), 0);
    }
    mt_decode_process_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_request_is_told_and_nobody_else),
};
UNIT_MAIN(tests)
