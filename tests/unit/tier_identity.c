/* Weights are known by every byte of them, and large files are read once. */
#include "folder.h"

#include <fcntl.h>

#include "tier/identity.h"

static void find(uint8_t out[32])
{
    char dir[128];
    mt_error err = {0};
    snprintf(dir, sizeof(dir), "%s/model", folder);
    if (!mt_identity(dir, folder, out, &err))
        fail_msg("%s", err.text);
}

static void expect_other(const uint8_t a[32], const uint8_t b[32])
{
    assert_memory_not_equal(a, b, 32);
}

static void every_byte_counts(void **state)
{
    uint8_t first[32], again[32], other[32];
    (void)state;
    put("model/config.json", "{\"model_type\": \"llama\"}");
    put("model/model.safetensors", "some weights");
    find(first);
    find(again);
    assert_memory_equal(first, again, 32);
    put("model/model.safetensors", "some Weights");
    find(other);
    expect_other(first, other);
    put("model/model.safetensors", "some weights"); /* the same bytes are the same weights, whatever happened between */
    find(again);
    assert_memory_equal(first, again, 32);
    put("model/config.json", "{\"model_type\": \"qwen2\"}");
    find(other);
    expect_other(first, other);
    put("model/README.md", "no weights");
    find(again);
    assert_memory_equal(other, again, 32);
}

/* Of a GGUF model every shard counts, and nothing beside it, by its folder or its file. */
static void every_byte_of_gguf_counts(void **state)
{
    uint8_t first[32], again[32], other[32];
    char file[128];
    mt_error err = {0};
    (void)state;
    put("model/m-00001-of-00002.gguf", "some weights");
    put("model/m-00002-of-00002.gguf", "some more");
    put("model/config.json", "{}");
    find(first);
    put("model/config.json", "{\"model_type\": \"llama\"}");
    find(again);
    assert_memory_equal(first, again, 32);
    snprintf(file, sizeof(file), "%s/model/m-00001-of-00002.gguf", folder);
    assert_true(mt_identity(file, folder, again, &err));
    assert_memory_equal(first, again, 32);
    put("model/m-00002-of-00002.gguf", "some More");
    find(other);
    expect_other(first, other);
}

static void damage_memos(const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/weights", folder);
    FILE *f = fopen(path, "r+");
    fseek(f, -20, SEEK_END);
    fputs(text, f);
    fclose(f);
}

static void a_damaged_memo_is_none(void **state)
{
    uint8_t first[32], again[32];
    (void)state;
    put("model/config.json", "{}");
    put("model/model.safetensors", "x");
    find(first);
    damage_memos("0");
    find(again);
    assert_memory_equal(first, again, 32);
    put("weights", "garbage without an end");
    find(again);
    assert_memory_equal(first, again, 32);
}

/* What a memo says is believed: that is how we see that the file is not read again. */
static void a_file_that_was_not_touched_is_not_read(void **state)
{
    uint8_t first[32], again[32];
    char path[128], memos[128], text[4096];
    (void)state;
    put("model/config.json", "{}");
    put("model/model.safetensors", "x");
    find(first);
    snprintf(path, sizeof(path), "%s/model/model.safetensors", folder);
    snprintf(memos, sizeof(memos), "%s/weights", folder);
    FILE *f = fopen(memos, "r");
    const size_t lines = fread(text, 1, sizeof(text), f);
    fclose(f);
    assert_int_equal(chmod(path, 0000), 0); /* which touches it */
    if (geteuid() != 0) {
        mt_error err = {0};
        char dir[128];
        snprintf(dir, sizeof(dir), "%s/model", folder);
        assert_false(mt_identity(dir, folder, again, &err));
    }
    assert_int_equal(chmod(path, 0600), 0);
    find(again);
    assert_memory_equal(first, again, 32);
    f = fopen(memos, "r");
    assert_true(fread(text, 1, sizeof(text), f) > lines); /* it was read once more, and remembered */
    fclose(f);
    find(again);
    f = fopen(memos, "r");
    const size_t now = fread(text, 1, sizeof(text), f);
    fclose(f);
    find(again);
    f = fopen(memos, "r");
    assert_int_equal(fread(text, 1, sizeof(text), f), now); /* and then not */
    fclose(f);
}

/* Of the file of memos. */
static unsigned mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 0777;
}

static void memos_are_their_owners_alone(void **state)
{
    uint8_t digest[32];
    char path[128];
    const mode_t before = umask(0);
    (void)state;
    snprintf(path, sizeof(path), "%s/weights", folder);
    put("model/config.json", "{}");
    put("model/model.safetensors", "x");
    find(digest);
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(chmod(path, 0644), 0); /* as earlier builds made it */
    put("model/model.safetensors", "y");
    find(digest);
    assert_int_equal(mode_of(path), 0600);
    umask(before);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
static const struct CMUnitTest tests[] = {TEST(every_byte_counts), TEST(every_byte_of_gguf_counts),
                                          TEST(a_damaged_memo_is_none), TEST(a_file_that_was_not_touched_is_not_read),
                                          TEST(memos_are_their_owners_alone)};
UNIT_MAIN(tests)
