#include "unit.h"

#include <sys/stat.h>

#include "base/compiler.h"
#include "media/source.h"

static void expect_bytes(const char *text, const char *bytes, size_t len)
{
    mt_error err;
    mt_buf out;

    mt_buf_init(&out, 1 << 20);
    if (!mt_base64_decode(&out, text, strlen(text), &err))
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(out.len, len);
    if (len)
        assert_memory_equal(out.data, bytes, len);
    mt_buf_free(&out);
}

static void expect_wrong(const char *text, const char *sentence)
{
    mt_error err;
    mt_buf out;

    mt_buf_init(&out, 1 << 20);
    if (mt_base64_decode(&out, text, strlen(text), &err))
        fail_msg("\"%s\" is taken", text);
    assert_int_equal(err.code, MT_E_INVALID);
    assert_non_null(strstr(err.text, sentence));
    mt_buf_free(&out);
}

static void base64_stands_for_bytes(void **state)
{
    (void)state;
    expect_bytes("", "", 0);
    expect_bytes("Zg==", "f", 1);
    expect_bytes("Zm8=", "fo", 2);
    expect_bytes("Zm9v", "foo", 3);
    expect_bytes("Zm9vYmFy", "foobar", 6);
    expect_bytes("Zg", "f", 1);
    expect_bytes("Zm8", "fo", 2);
    expect_bytes("AP/+gA==", "\0\xff\xfe\x80", 4);
    expect_bytes(" Zm\r\n9v\tYmFy \n", "foobar", 6);
    expect_bytes("Zg=\n=", "f", 1);
}

static void what_is_no_base64_is_refused(void **state)
{
    static const char *const where[] = {
        "Zm9v!", "Zm-v", "Zm_v", "Zg==Zg==", "Zg===", "=", "Zm9v=", "Zm9v%3D", "Z\xc3\xa9"};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(where); i++)
        expect_wrong(where[i], "where none may be: send the letters A-Z, a-z, 0-9, + and /");
    expect_wrong("Zm9vY", "ends within a group of four: send the whole of it");
    expect_wrong("Zg=", "ends within a group of four: send the whole of it");
    expect_wrong("Z===", "ends within a group of four: send the whole of it");
}

static void every_length_comes_back(void **state)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static uint8_t bytes[9001];
    static char text[12100];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37 + (i >> 5));
    for (size_t len = 0; len <= sizeof(bytes); len += len < 20 ? 1 : 449) {
        size_t out = 0;

        for (size_t i = 0; i < len; i += 3) {
            uint32_t bits = (uint32_t)bytes[i] << 16 | (i + 1 < len ? (uint32_t)bytes[i + 1] << 8 : 0) |
                            (i + 2 < len ? (uint32_t)bytes[i + 2] : 0);

            for (size_t k = 0; k < 4; k++)
                text[out++] = i + k > len ? '=' : letters[bits >> (18 - 6 * k) & 63];
        }
        text[out] = '\0';
        expect_bytes(text, (const char *)bytes, len);
    }
}

static bool load(mt_buf *bytes, const char *url, const char *root, size_t most, mt_error *err)
{
    mt_media_limits limits = mt_media_limits_default();

    limits.root = root;
    limits.bytes = most;
    return mt_media_load(bytes, url, strlen(url), &limits, NULL, err);
}

static void expect_loaded(const char *url, const char *root, const char *content)
{
    mt_error err;
    mt_buf bytes;

    if (!load(&bytes, url, root, 1000, &err))
        fail_msg("%s: %s", url, err.text);
    assert_string_equal(bytes.data, content);
    mt_buf_free(&bytes);
}

static void expect_refusal(const char *url, const char *root, const char *sentence)
{
    mt_error err;
    mt_buf bytes;

    if (load(&bytes, url, root, 5, &err))
        fail_msg("%s is read", url);
    assert_int_equal(err.code, MT_E_INVALID);
    assert_string_equal(err.text, sentence);
    assert_null(bytes.data);
}

static void data_urls_carry_their_bytes(void **state)
{
    (void)state;
    expect_loaded("data:image/png;base64,Zm9vYmFy", NULL, "foobar");
    expect_loaded("DATA:image/png;x=y;BASE64, Zm9v\n YmFy", NULL, "foobar");
    expect_loaded("data:;base64,Zm9vYmFy", NULL, "foobar");
    expect_refusal("data:image/png;base64", NULL,
                   "the data URL has no comma: write data:image/png;base64, and then the data");
    expect_refusal("data:image/png,abc", NULL,
                   "the data URL is not base64: write data:image/png;base64, and then the data");
    expect_refusal("data:,", NULL, "the data URL is not base64: write data:image/png;base64, and then the data");
    expect_refusal("data:image/png;base64,Zm9vYmFy", NULL,
                   "data URL: the base64 text stands for more than the 5 bytes allowed: send less");
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    expect_refusal("", NULL, "\"\" is no URL that can be read: begin with data:, https:, http: or file:");
    expect_refusal("s3://bucket/x.png", NULL,
                   "\"s3://bucket/x.png\" is no URL that can be read: begin with data:, https:, http: or file:");
}

static char top[] = "/tmp/motet-media-XXXXXX";

static void write_file(const char *name, const char *content)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", top, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void link_to(const char *target, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    assert_int_equal(symlink(target, path), 0);
}

static int make_folders(void **state)
{
    char path[256];

    (void)state;
    memcpy(top + sizeof(top) - 7, "XXXXXX", 6);
    if (!mkdtemp(top))
        return -1;
    snprintf(path, sizeof(path), "%s/root", top);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/root/sub dir", top);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/root-other", top);
    mkdir(path, 0700);
    write_file("secret", "secret");
    write_file("root-other/secret", "secret");
    write_file("root/sub dir/a.png", "picture");
    write_file("root/b.png", "other");
    link_to("../secret", "root/escape");
    link_to("sub dir/a.png", "root/inside");
    link_to("..", "root/up");
    link_to("root", "link");
    return 0;
}

static int remove_folders(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", top);
    return system(command);
}

static void files_of_the_folder_are_read(void **state)
{
    char root[128], url[256];

    (void)state;
    snprintf(root, sizeof(root), "%s/root", top);
    snprintf(url, sizeof(url), "file://%s/root/sub%%20dir/a.png", top);
    expect_loaded(url, root, "picture");
    snprintf(url, sizeof(url), "file://localhost%s/root/inside", top);
    expect_loaded(url, root, "picture");
    snprintf(url, sizeof(url), "file://%s/root/sub dir/../b.png", top);
    expect_loaded(url, root, "other");
    snprintf(url, sizeof(url), "file://%s/root/b.png", top);
    expect_loaded(url, "/", "other");
    snprintf(root, sizeof(root), "%s/link", top); /* the folder itself may be a link */
    expect_loaded(url, root, "other");
}

static void other_files_are_not(void **state)
{
    static const char *const outside[] = {
        "file://%s/secret",
        "file://%s/root/../secret",
        "file://%s/root/escape",
        "file://%s/root/up/secret",
        "file://%s/root/missing",
        "file://%s/root-other/secret",
        "file://%s/root%%2f..%%2fsecret",
        "file://%s/root/b.png%%00",
        "file:%s/root/b.png",
        "file://elsewhere%s/root/b.png",
        "file://%s/root",
    };
    char root[128], url[256], sentence[512];

    (void)state;
    snprintf(root, sizeof(root), "%s/root", top);
    for (size_t i = 0; i < MT_COUNT(outside); i++) {
        snprintf(url, sizeof(url), outside[i], top);
        snprintf(sentence, sizeof(sentence), "\"%s\" is no file in the folder of --media-root: check the path", url);
        expect_refusal(url, root, sentence);
    }
    snprintf(url, sizeof(url), "file://%s/root/b.png", top);
    snprintf(sentence, sizeof(sentence), "\"%s\" may not be read: start with --media-root to allow a folder", url);
    expect_refusal(url, NULL, sentence);
    snprintf(url, sizeof(url), "file://%s/root/sub dir", top);
    snprintf(sentence, sizeof(sentence), "\"%s\" cannot be read: check that it is a file and readable", url);
    expect_refusal(url, root, sentence);
    snprintf(url, sizeof(url), "file://%s/root/inside", top);
    snprintf(sentence, sizeof(sentence), "\"%s\" has more than the 5 bytes allowed: name a smaller file", url);
    expect_refusal(url, root, sentence);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(base64_stands_for_bytes),
    cmocka_unit_test(what_is_no_base64_is_refused),
    cmocka_unit_test(every_length_comes_back),
    cmocka_unit_test(data_urls_carry_their_bytes),
    cmocka_unit_test(other_texts_are_refused),
    cmocka_unit_test_setup_teardown(files_of_the_folder_are_read, make_folders, remove_folders),
    cmocka_unit_test_setup_teardown(other_files_are_not, make_folders, remove_folders),
};
UNIT_MAIN(tests)
