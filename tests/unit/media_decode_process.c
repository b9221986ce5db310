/* What is decoded in processes of its own is what is decoded here, and what goes wrong there goes wrong for one request
   alone. libpng's first function is this file's: it does what a picture that has taken over its decoder would do. */
#include "media_common.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "media/decode_process.h"

#include <png.h>

enum { SOUND, CRASHES, LOOPS, GREEDY, CURIOUS };
enum { OPENS, CONNECTS, FORKS, RUNS, CODES, KILLS, WAYS };

/* Volatile, since a compiler may leave out what is allocated and not used. */
static void *volatile block;

/* In memory that processes share. */
typedef struct deed {
    int kind;
    int error[WAYS]; /* what it got for each way out; -1: it got out */
    bool refused;
    volatile pid_t pid;
} deed;

static deed *evil;

static int got(long result)
{
    return result < 0 ? errno : -1;
}

static void try_all(void)
{
    char *const words[] = {(char *)(uintptr_t) "/bin/true", NULL};
    void *code;

    evil->error[OPENS] = got(open("/etc/passwd", O_RDONLY));
    evil->error[CONNECTS] = got(socket(AF_INET, SOCK_STREAM, 0));
    evil->error[KILLS] = got(kill(getppid(), 0));
    evil->error[RUNS] = got(execv(words[0], words));
    code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    evil->error[CODES] = code == MAP_FAILED ? errno : -1;
    evil->error[FORKS] = got(fork());
}

static volatile int *nowhere;

png_structp png_create_read_struct(png_const_charp version, png_voidp ctx, png_error_ptr error, png_error_ptr warning)
{
    png_structp (*real)(png_const_charp, png_voidp, png_error_ptr, png_error_ptr);
    void *next = dlsym(RTLD_NEXT, "png_create_read_struct");

    memcpy(&real, &next, sizeof(real));
    evil->pid = getpid();
    if (evil->kind == CRASHES)
        *nowhere = 1;
    while (evil->kind == LOOPS) {}
    if (evil->kind == GREEDY) {
        block = malloc((size_t)4 << 30);
        evil->refused = block == NULL;
    }
    if (evil->kind == CURIOUS)
        try_all();
    return real(version, ctx, error, warning);
}

static const mt_media_watch no_watch;
static mt_media_limits limits;

static void open_for(int kind)
{
    if (!evil)
        evil = mmap(NULL, sizeof(*evil), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(evil != MAP_FAILED);
    memset(evil, 0, sizeof(*evil));
    evil->kind = kind;
    limits = mt_media_limits_default();
    assert_true(mt_decode_process_open());
}

static mt_decode_client *hire(const mt_media_watch *watch)
{
    mt_error err;
    mt_decode_client *d = mt_decode_client_new(&limits, watch, 64 << 20, &err);

    if (!d)
        fail_msg("%s", err.text);
    return d;
}

static void expect_same(mt_decode_client *d, const char *name)
{
    mt_image here = {0}, there = {0};
    mt_error err_here = {0}, err_there = {0};
    mt_buf bytes;
    bool ok;

    media_read(&bytes, "images", name);
    ok = media_decode(&here, &bytes, &err_here);
    assert_int_equal(mt_decode_client_image(d, &there, bytes.data, bytes.len, NULL, NULL, &err_there), ok);
    if (ok) {
        assert_int_equal(here.width, there.width);
        assert_int_equal(here.height, there.height);
        assert_memory_equal(here.pixels, there.pixels, (size_t)here.width * here.height * 3);
    } else {
        assert_string_equal(err_here.text, err_there.text);
        assert_int_equal(err_here.code, err_there.code);
    }
    mt_image_free(&here);
    mt_image_free(&there);
    mt_buf_free(&bytes);
}

static void pictures_are_the_same_and_so_are_faults(void **state)
{
    DIR *folder = opendir(media_path("images", ""));
    mt_decode_client *d;

    (void)state;
    open_for(SOUND);
    d = hire(&no_watch);
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));)
        if (e->d_name[0] != '.')
            expect_same(d, e->d_name);
    closedir(folder);
    mt_decode_client_free(d);
    assert_int_equal(mt_decode_process_crashed(), 0);
    mt_decode_process_close();
}

static void expect_same_frames(mt_video *here, mt_video *there)
{
    const mt_video_info a = mt_video_about(here), b = mt_video_about(there);

    assert_true(a.width == b.width && a.height == b.height && a.frames == b.frames);
    for (int64_t i = 0; i < a.frames; i += 3) {
        mt_image x, y;
        mt_error err;

        assert_true(mt_video_time(here, i) == mt_video_time(there, i));
        assert_true(mt_video_frame(here, i, &x, &err) && mt_video_frame(there, i, &y, &err));
        assert_memory_equal(x.pixels, y.pixels, (size_t)x.width * x.height * 3);
        mt_image_free(&x);
        mt_image_free(&y);
    }
}

static void videos_are_the_same_and_so_are_faults(void **state)
{
    DIR *folder = opendir(media_path("videos", ""));
    mt_decode_client *d;

    (void)state;
    if (!mt_video_present)
        UNIT_SKIP("no videos in this build");
    open_for(SOUND);
    d = hire(&no_watch);
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        mt_error err_here = {0}, err_there = {0};
        mt_buf bytes;

        if (e->d_name[0] == '.')
            continue;
        media_read(&bytes, "videos", e->d_name);
        mt_video *here = mt_video_open(bytes.data, bytes.len, &limits, NULL, &err_here);
        mt_video *there = mt_decode_client_video(d, bytes.data, bytes.len, &err_there);
        if (here && there)
            expect_same_frames(here, there);
        else
            assert_string_equal(err_here.text, err_there.text);
        mt_video_close(here);
        mt_video_close(there);
        mt_buf_free(&bytes);
    }
    closedir(folder);
    expect_same(d, "baseline-444.jpg"); /* it goes on with something else */
    mt_decode_client_free(d);
    mt_decode_process_close();
}

static void nothing_at_all_is_no_picture(void **state)
{
    mt_decode_client *d;
    mt_image image;
    mt_error err = {0};

    (void)state;
    open_for(SOUND);
    d = hire(&no_watch);
    assert_false(mt_decode_client_image(d, &image, "", 0, NULL, NULL, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_non_null(strstr(err.text, "the 0 bytes are no picture"));
    if (mt_video_present) {
        assert_null(mt_decode_client_video(d, "", 0, &err));
        assert_int_equal(err.code, MT_E_INVALID);
    }
    expect_same(d, "baseline-444.jpg"); /* it goes on with something else */
    mt_decode_client_free(d);
    mt_decode_process_close();
}

static bool show_png(mt_decode_client *d, mt_error *err)
{
    mt_image image;
    mt_buf bytes;
    bool ok;

    media_read(&bytes, "images", "grey-1.png");
    ok = mt_decode_client_image(d, &image, bytes.data, bytes.len, NULL, NULL, err);
    mt_image_free(&image);
    mt_buf_free(&bytes);
    return ok;
}

static void a_crash_is_one_requests(void **state)
{
    const uint64_t before = mt_decode_process_crashed(), begun = mt_decode_process_begun();
    mt_decode_client *d, *other;
    mt_error err;

    (void)state;
    open_for(CRASHES);
    other = hire(&no_watch);
    d = hire(&no_watch);
    assert_false(show_png(d, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_non_null(strstr(err.text, "cannot be decoded"));
    assert_false(show_png(d, &err)); /* and it stays so */
    assert_int_equal(mt_decode_process_crashed(), before + 1);
    assert_int_equal(mt_decode_process_begun(), begun + 2);
    mt_decode_client_free(d);
    expect_same(other, "baseline-444.jpg");
    mt_decode_client_free(other);
    mt_decode_process_close();
}

static void memory_is_bounded(void **state)
{
    mt_decode_client *d;
    mt_error err;

    (void)state;
#if MT_SANITIZED
    UNIT_SKIP("a sanitizer maps all there is");
#endif
    open_for(GREEDY);
    d = hire(&no_watch);
    assert_true(show_png(d, &err));
    assert_true(evil->refused);
    mt_decode_client_free(d);
    mt_decode_process_close();
}

static void nothing_leads_out(void **state)
{
    mt_decode_client *d;
    mt_error err;

    (void)state;
    open_for(CURIOUS);
    if (!mt_decode_process_is_filtered()) {
        mt_decode_process_close();
        UNIT_SKIP("no filters in this kernel or build");
    }
    d = hire(&no_watch);
    assert_true(show_png(d, &err));
    assert_int_not_equal(evil->pid, getpid());
    for (size_t i = 0; i < WAYS; i++)
        if (evil->error[i] != EPERM)
            fail_msg("way %zu: %d", i, evil->error[i]);
    mt_decode_client_free(d);
    mt_decode_process_close();
}

/* A decoder that never looks at the clock, which uses up the time of a picture. The clock on the wall has no say. */
static void a_picture_has_so_much_processor_time(void **state)
{
    const uint64_t crashed = mt_decode_process_crashed();
    mt_decode_client *d;
    mt_error err = {0};

    (void)state;
#if MT_SANITIZED_THREAD
    UNIT_SKIP("the thread sanitizer keeps signals back until a call of the C library");
#endif
    open_for(LOOPS);
    limits.image_seconds = 0.01;
    d = hire(&no_watch);
    expect_same(d, "baseline-444.jpg"); /* which is decoded in no time, and whose timer is off then */
    assert_false(show_png(d, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_string_equal(err.text, "the picture takes more than the 0.01 seconds of a processor that one may: send a "
                                  "smaller or simpler one");
    assert_true(mt_decode_client_cpu_ns(d) > 10000000);
    assert_false(show_png(d, &err)); /* it has ended */
    assert_int_equal(mt_decode_process_crashed(), crashed);
    mt_decode_client_free(d);
    mt_decode_process_close();
}

static void processor_time_is_told(void **state)
{
    mt_decode_client *d;
    uint64_t before;
    mt_error err;

    (void)state;
    assert_int_equal(mt_decode_client_cpu_ns(NULL), 0);
    open_for(SOUND);
    d = hire(&no_watch);
    assert_int_equal(mt_decode_client_cpu_ns(d), 0);
    assert_true(show_png(d, &err));
    before = mt_decode_client_cpu_ns(d);
    assert_true(before > 0);
    expect_same(d, "grey-1.png");
    assert_true(mt_decode_client_cpu_ns(d) > before);
    before = mt_decode_client_cpu_ns(d);
    evil->kind = CRASHES; /* what it had is not told then: the time that it was not heard of counts */
    assert_false(show_png(d, &err));
    assert_true(mt_decode_client_cpu_ns(d) > before);
    mt_decode_client_free(d);
    mt_decode_process_close();
}

static void *leave(void *stop)
{
    while (!evil->pid)
        usleep(1000);
    atomic_store((atomic_bool *)stop, true);
    return NULL;
}

/* It does not listen, and is ended all the same. */
static void who_leaves_takes_the_process_along(void **state)
{
    atomic_bool stop = false;
    const mt_media_watch watch = {.stop = &stop};
    mt_decode_client *d;
    pthread_t thread;
    mt_error err;

    (void)state;
    open_for(LOOPS);
    d = hire(&watch);
    pthread_create(&thread, NULL, leave, &stop);
    assert_false(show_png(d, &err));
    assert_non_null(strstr(err.text, "cancelled"));
    pthread_join(thread, NULL);
    mt_decode_client_free(d);
    while (kill(evil->pid, 0) == 0)
        usleep(1000);
    assert_int_equal(errno, ESRCH);
    mt_decode_process_close();
}

static void who_left_before_is_no_crash(void **state)
{
    atomic_bool stop = true;
    const mt_media_watch watch = {.stop = &stop};
    const uint64_t crashed = mt_decode_process_crashed();
    mt_decode_client *d;
    mt_error err;

    (void)state;
    open_for(SOUND);
    d = hire(&watch);
    assert_false(show_png(d, &err)); /* its decoder asks for memory, and nobody waits any more */
    assert_non_null(strstr(err.text, "cancelled"));
    assert_int_equal(mt_decode_process_crashed(), crashed);
    mt_decode_client_free(d);
    mt_decode_process_close();
}

static bool refuse(void *ctx, size_t bytes, mt_error *err)
{
    (void)ctx;
    return bytes < 100 || mt_fail(err, MT_E_BUSY, "not so much");
}

static bool look_away(void *ctx, const mt_image_info *info, mt_error *err)
{
    *(mt_image_info *)ctx = *info;
    return mt_fail(err, MT_E_INVALID, "seen enough");
}

static void who_asks_decides_on_memory_and_pixels(void **state)
{
    const mt_media_watch watch = {.take = refuse};
    mt_image_info info;
    mt_image image;
    mt_decode_client *d;
    mt_error err;
    mt_buf bytes;

    (void)state;
    open_for(SOUND);
    d = hire(&watch);
    assert_false(show_png(d, &err));
    assert_true(err.code == MT_E_BUSY && strcmp(err.text, "not so much") == 0);
    assert_false(mt_decode_client_image(d, &image, "junk", 4, NULL, NULL, &err)); /* which has its own reason */
    assert_true(err.code == MT_E_INVALID && strstr(err.text, "the 4 bytes are no picture"));
    media_read(&bytes, "images", "baseline-444.jpg");
    assert_false(mt_decode_client_image(d, &image, bytes.data, bytes.len, look_away, &info, &err));
    assert_string_equal(err.text, "seen enough");
    assert_true(info.width == 45 && info.height == 31);
    mt_decode_client_free(d);
    d = hire(&no_watch);
    assert_false(mt_decode_client_image(d, &image, bytes.data, bytes.len, look_away, &info, &err));
    expect_same(d, "baseline-444.jpg"); /* a process whose picture was not wanted decodes the next */
    mt_buf_free(&bytes);
    mt_decode_client_free(d);
    mt_decode_process_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pictures_are_the_same_and_so_are_faults),
    cmocka_unit_test(videos_are_the_same_and_so_are_faults),
    cmocka_unit_test(nothing_at_all_is_no_picture),
    cmocka_unit_test(a_crash_is_one_requests),
    cmocka_unit_test(memory_is_bounded),
    cmocka_unit_test(nothing_leads_out),
    cmocka_unit_test(a_picture_has_so_much_processor_time),
    cmocka_unit_test(processor_time_is_told),
    cmocka_unit_test(who_leaves_takes_the_process_along),
    cmocka_unit_test(who_left_before_is_no_crash),
    cmocka_unit_test(who_asks_decides_on_memory_and_pixels),
};

UNIT_MAIN(tests)
