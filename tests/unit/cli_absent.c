/* What a build without libcurl, FFmpeg, libwebp, libzmq and MPI says. This program has the files that stand in for
   theirs, and so no other build is needed to test them. */
#include "unit.h"

#include "cli/bench.h"
#include "cli/cli.h"
#include "events/publisher.h"
#include "hub/pull.h"
#include "media/image.h"
#include "media/source.h"
#include "media/video.h"
#include "ranks/ranks.h"
#include "tier/remote.h"

static void pictures_are_not_fetched(void **state)
{
    static const char url[] = "https://example.org/a.png";
    const mt_media_limits limits = mt_media_limits_default();
    mt_error err = {0};
    mt_buf bytes;

    (void)state;
    assert_false(mt_media_load(&bytes, url, strlen(url), &limits, NULL, &err));
    assert_int_equal(err.code, MT_E_UNSUPPORTED);
    assert_string_equal(err.text, "\"https://example.org/a.png\" cannot be fetched, since this motet was built without "
                                  "libcurl: send the bytes as a data URL");
}

static void videos_are_refused(void **state)
{
    const mt_media_limits limits = mt_media_limits_default();
    mt_error err = {0};

    (void)state;
    assert_null(mt_video_open("", 0, &limits, NULL, &err));
    assert_int_equal(err.code, MT_E_UNSUPPORTED);
    assert_string_equal(err.text, "the video cannot be read, since this motet was built without FFmpeg: send a list of "
                                  "pictures instead");
    mt_video_close(NULL);
}

static void webp_is_known_and_refused(void **state)
{
    static const char webp[] = "RIFF\x04\0\0\0WEBP";
    static const char bmp[] = "BM";
    const mt_media_limits limits = mt_media_limits_default();
    mt_error err = {0};
    mt_image image;

    (void)state;
    assert_false(mt_image_decode(&image, webp, sizeof(webp) - 1, &limits, NULL, &err));
    assert_int_equal(err.code, MT_E_UNSUPPORTED);
    assert_string_equal(err.text, "the \"WebP\" picture cannot be read, since this motet was built without libwebp: "
                                  "send \"JPEG\", \"PNG\", \"GIF\" or \"BMP\"");
    assert_false(mt_image_decode(&image, bmp, sizeof(bmp) - 1, &limits, NULL, &err));
    assert_int_equal(err.code, MT_E_INVALID);
}

static void nothing_is_shared(void **state)
{
    const mt_remote_store_params params = {.url = "redis://localhost", .queue = 1 << 20};
    mt_error err = {0};

    (void)state;
    assert_null(mt_remote_store_open(&params, &err));
    assert_int_equal(err.code, MT_E_UNSUPPORTED);
    assert_string_equal(err.text,
                        "a shared store cannot be used, since this motet was built without hiredis: leave out "
                        "--cache-remote");
}

static void nothing_is_published(void **state)
{
    const mt_publisher_params params = {.address = "tcp://*:5557"};
    mt_error err = {0};

    (void)state;
    assert_null(mt_publisher_open(&params, &err));
    assert_int_equal(err.code, MT_E_UNSUPPORTED);
    assert_string_equal(err.text, "KV events cannot be published at \"tcp://*:5557\", since this motet was built "
                                  "without libzmq");
    assert_int_equal(mt_publisher_look(NULL).numbered, 0);
    mt_publisher_close(NULL);
}

static void chat(void *arg)
{
    if (mt_cmd_chat(arg) != 1)
        abort();
}

static void run_message(void *arg)
{
    if (mt_run_message(arg) != 1)
        abort();
}

static void no_server_is_asked(void **state)
{
    mt_options opt = {0};
    mt_error err = {0};
    char text[512];

    (void)state;
    assert_int_equal(unit_in_child(chat, &opt, text, sizeof(text)), 0);
    assert_string_equal(text, "motet: this motet was built without libcurl and cannot ask a server: start \"motet "
                              "serve\" and use another client\n");
    assert_false(mt_bench_server(&opt, NULL, &err));
    assert_int_equal(err.code, MT_E_UNSUPPORTED);
    assert_string_equal(err.text, "this motet was built without libcurl and cannot ask a server: measure with another");
    assert_int_equal(unit_in_child(run_message, &opt, text, sizeof(text)), 0);
    assert_string_equal(text, "motet: this motet was built without libcurl and cannot ask a server: give raw text with "
                              "\"--prompt\", or start \"motet serve\" and use another client\n");
}

static char *no_variable(const char *name)
{
    return strcmp(name, "HOME") == 0 ? (char *)(uintptr_t) "/nowhere" : NULL;
}

static void no_model_is_downloaded(void **state)
{
    const mt_pull_params params = {.model = "owner/name@v1", .env = no_variable};
    mt_error err = {0};

    (void)state;
    assert_false(mt_pull_present);
    assert_null(mt_pull(&params, &err));
    assert_int_equal(err.code, MT_E_UNSUPPORTED);
    assert_string_equal(err.text, "this motet was built without libcurl and cannot download: get the model with: hf "
                                  "download owner/name");
}

static void version(void *arg)
{
    dup2(STDERR_FILENO, STDOUT_FILENO);
    mt_cmd_help(arg);
    fflush(stdout);
}

static void the_version_says_what_is_absent(void **state)
{
    mt_options opt = {.version = true};
    static const char first[] = "motet " MT_VERSION " -events -fetch -mpi -remote +tls -video -webp\ncommit: ";
    char text[1024];

    (void)state;
    assert_int_equal(unit_in_child(version, &opt, text, sizeof(text)), 0);
    assert_memory_equal(text, first, sizeof(first) - 1);
}

/* What Open MPI's mpirun says. */
static void processes_do_not_find_each_other(void **state)
{
    mt_error err = {0};

    (void)state;
    unsetenv("PMI_SIZE");
    assert_int_equal(setenv("OMPI_COMM_WORLD_SIZE", "1", 1), 0);
    assert_false(mt_ranks_present);
    assert_true(mt_ranks_join(1, &err));
    assert_null(mt_ranks_all());
    assert_int_equal(setenv("OMPI_COMM_WORLD_SIZE", "3", 1), 0);
    assert_false(mt_ranks_join(1, &err));
    assert_string_equal(err.text, "3 processes were started together, and this motet was built without MPI: start one, "
                                  "or build it with -Dmpi=enabled");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    assert_int_equal(mt_ranks_started(), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pictures_are_not_fetched),
    cmocka_unit_test(videos_are_refused),
    cmocka_unit_test(webp_is_known_and_refused),
    cmocka_unit_test(no_server_is_asked),
    cmocka_unit_test(the_version_says_what_is_absent),
    cmocka_unit_test(no_model_is_downloaded),
    cmocka_unit_test(nothing_is_published),
    cmocka_unit_test(processes_do_not_find_each_other),
    cmocka_unit_test(nothing_is_shared),
};
UNIT_MAIN(tests)
