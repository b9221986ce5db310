#include "weights_files.h"

#include <sys/stat.h>

#include "weights/checkpoint.h"

static void expect_refusal(mt_code code, const char *sentence)
{
    mt_error err = {0};

    assert_null(mt_checkpoint_open(folder, &err));
    expect_sentence(&err, code, sentence);
}

static mt_checkpoint *open_folder(void)
{
    mt_error err = {0};
    mt_checkpoint *c = mt_checkpoint_open(folder, &err);

    assert_string_equal(err.text, "");
    assert_non_null(c);
    return c;
}

static void a_single_file_is_opened(void **state)
{
    char dir[64];
    mt_error err = {0};
    mt_checkpoint *c;

    (void)state;
    put_text("config.json", "{\"model_type\":\"x\"}");
    PUT_TENSORS("model.safetensors", {"m.b", "F32", "2", 8, NULL}, {"m.a", "BF16", "3, 1", 6, NULL});
    snprintf(dir, sizeof(dir), "%s//", folder);
    c = mt_checkpoint_open(dir, &err);
    assert_non_null(c);
    assert_string_equal(mt_checkpoint_dir(c), folder);
    assert_string_equal(mt_config_string(mt_checkpoint_config(c), "model_type", ""), "x");
    assert_int_equal(mt_checkpoint_count(c), 2);
    assert_int_equal(mt_checkpoint_shards(c), 1);
    assert_int_equal(mt_checkpoint_bytes(c), 14);
    assert_string_equal(mt_checkpoint_at(c, 0)->name, "m.a");
    assert_ptr_equal(mt_checkpoint_find(c, "m.b"), mt_checkpoint_at(c, 1));
    assert_null(mt_checkpoint_find(c, "m."));
    assert_int_equal(mt_checkpoint_lower(c, "m."), 0);
    assert_int_equal(mt_checkpoint_lower(c, "m.b"), 1);
    assert_int_equal(mt_checkpoint_lower(c, "z"), 2);
    mt_checkpoint_close(c);
    mt_checkpoint_close(NULL);
}

static void put_sharded(void)
{
    put_text("config.json", "{}");
    put_text("model.safetensors.index.json",
             "{\"metadata\":{\"total_size\":24},\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
             "\"b\":\"model-00002-of-00002.safetensors\",\"c\":\"model-00001-of-00002.safetensors\"}}");
    PUT_TENSORS("model-00001-of-00002.safetensors", {"a", "F32", "2", 8, NULL}, {"c", "F32", "2", 8, NULL});
    PUT_TENSORS("model-00002-of-00002.safetensors", {"b", "F32", "2", 8, NULL});
}

static void shards_are_opened(void **state)
{
    mt_checkpoint *c;

    (void)state;
    put_sharded();
    PUT_TENSORS("other.safetensors", {"unrelated", "F32", "2", 8, NULL});
    c = open_folder();
    assert_int_equal(mt_checkpoint_shards(c), 2);
    assert_int_equal(mt_checkpoint_count(c), 3);
    assert_non_null(mt_checkpoint_find(c, "b"));
    mt_checkpoint_close(c);
    remove_file("other.safetensors");
    remove_file("model.safetensors.index.json");
    c = open_folder();
    assert_int_equal(mt_checkpoint_shards(c), 2);
    assert_non_null(mt_checkpoint_find(c, "b"));
    mt_checkpoint_close(c);
}

/* A conversion to one file that kept the index of the original. */
static void one_file_beats_a_stale_index(void **state)
{
    mt_checkpoint *c;

    (void)state;
    put_sharded();
    remove_file("model-00001-of-00002.safetensors");
    remove_file("model-00002-of-00002.safetensors");
    PUT_TENSORS("model.safetensors", {"w", "F32", "2", 8, NULL});
    c = open_folder();
    assert_int_equal(mt_checkpoint_count(c), 1);
    mt_checkpoint_close(c);
    put_text("model.safetensors.index.json",
             "{\"weight_map\":{\"w\":\"model.safetensors\",\"x\":\"extra.safetensors\"}}");
    PUT_TENSORS("extra.safetensors", {"x", "F32", "2", 8, NULL});
    c = open_folder();
    assert_int_equal(mt_checkpoint_count(c), 2);
    mt_checkpoint_close(c);
}

static void what_is_no_checkpoint(void **state)
{
    char path[64];
    mt_error err = {0};

    (void)state;
    assert_null(mt_checkpoint_open("/no/such/folder", &err));
    expect_sentence(
        &err, MT_E_NOT_FOUND,
        "\"/no/such/folder\" does not exist; give the folder that holds config.json and *.safetensors, or a "
        "GGUF file");
    expect_refusal(MT_E_NOT_FOUND, "\"%s\" is not a checkpoint: it has no config.json; give the folder that holds "
                                   "config.json and *.safetensors");
    put_text("config.json", "{}");
    snprintf(path, sizeof(path), "%s/config.json", folder);
    assert_null(mt_checkpoint_open(path, &err));
    expect_sentence(&err, MT_E_INVALID,
                    "\"%s/config.json\" is not a folder; give the folder that holds config.json and "
                    "*.safetensors, or a GGUF file");
    expect_refusal(MT_E_NOT_FOUND,
                   "\"%s\" is not a complete checkpoint: it has config.json but no *.safetensors; download "
                   "the weights too");
    put_text("weights.gguf", "GGUF");
    expect_refusal(MT_E_INVALID, "\"%s/weights.gguf\": the file is truncated: it ends within its header; download the "
                                 "file again");
    put_text("weights.bin", "PK");
    remove_file("weights.gguf");
    expect_refusal(MT_E_INVALID,
                   "\"%s\" holds \"weights.bin\" but no *.safetensors, the only kind of weights motet reads "
                   "beside GGUF; give a folder with a safetensors version of the model, or a GGUF file");
    PUT_TENSORS("model.safetensors", {"a", "F32", "0", 0, NULL});
    mt_checkpoint_close(open_folder());
    put_bytes("model.safetensors", "\2\0\0\0\0\0\0\0{}", 10);
    expect_refusal(MT_E_INVALID, "\"%s\" holds no tensors; download the weights again");
    put_text("config.json", "{");
    expect_refusal(MT_E_INVALID,
                   "\"%s/config.json\": line 1 is not valid JSON: string or '}' expected near end of file");
}

static void missing_shards_are_named(void **state)
{
    (void)state;
    put_sharded();
    remove_file("model-00002-of-00002.safetensors");
    expect_refusal(MT_E_NOT_FOUND,
                   "\"%s\" lacks 1 of its 2 shards: \"model-00002-of-00002.safetensors\"; download them "
                   "too");
    remove_file("model.safetensors.index.json");
    expect_refusal(MT_E_NOT_FOUND,
                   "\"%s\" lacks 1 of its 2 shards: \"model-00002-of-00002.safetensors\"; download them "
                   "too");
    remove_file("model-00001-of-00002.safetensors");
    PUT_TENSORS("m-00007-of-00020.safetensors", {"b", "F32", "2", 8, NULL});
    mt_error err = {0};
    assert_null(mt_checkpoint_open(folder, &err));
    assert_non_null(strstr(err.text, "lacks 19 of its 20 shards: \"m-00001-of-00020.safetensors\", "));
    assert_non_null(strstr(err.text, " more; download them too"));
}

static void a_truncated_shard_is_named(void **state)
{
    char path[80];

    (void)state;
    put_sharded();
    snprintf(path, sizeof(path), "%s/model-00002-of-00002.safetensors", folder);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 3), 0);
    expect_refusal(MT_E_INVALID,
                   "\"%s/model-00002-of-00002.safetensors\": the file is truncated: tensor \"b\" ends at byte "
                   "8 of the data, but there are only 5; download the file again");
}

static void an_index_that_lies_is_refused(void **state)
{
    static const char *const names[] = {
        "../x.safetensors", "/etc/x.safetensors", ".x.safetensors", "a/x.safetensors", "..", "x.bin",
        "a\\x.safetensors"};
    char text[160], wanted[200], *quoted;

    (void)state;
    put_sharded();
    put_text(
        "model.safetensors.index.json",
        "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\",\"b\":\"model-00001-of-00002.safetensors\"}}");
    expect_refusal(MT_E_INVALID,
                   "the index of \"%s\" says that tensor \"b\" is in \"model-00001-of-00002.safetensors\", "
                   "which does not hold it; download the index and that file again");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        quoted = strcmp(names[i], "a\\x.safetensors") == 0 ? "a\\\\x.safetensors" : (char *)(uintptr_t)names[i];
        snprintf(text, sizeof(text), "{\"weight_map\":{\"a\":\"%s\"}}", quoted);
        put_text("model.safetensors.index.json", text);
        snprintf(
            wanted, sizeof(wanted),
            "\"%%s/model.safetensors.index.json\": it names \"%s\" as a shard; only *.safetensors files of the folder "
            "itself are read",
            names[i]);
        expect_refusal(MT_E_INVALID, wanted);
    }
}

static void a_broken_index_is_refused(void **state)
{
    static const char *const texts[] = {"[]", "{}", "{\"weight_map\":[]}", "{\"weight_map\":{}}",
                                        "{\"weight_map\":{\"a\":5}}"};

    (void)state;
    put_sharded();
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put_text("model.safetensors.index.json", texts[i]);
        expect_refusal(MT_E_INVALID,
                       "\"%s/model.safetensors.index.json\": its \"weight_map\" must give each tensor the name "
                       "of a file; download it again");
    }
    put_text("model.safetensors.index.json", "{\"weight_map\"");
    expect_refusal(MT_E_INVALID,
                   "\"%s/model.safetensors.index.json\": invalid JSON at byte 13: expected ':' after a key, "
                   "found the end; download the file again");
}

static void a_tensor_in_two_shards_is_refused(void **state)
{
    (void)state;
    put_text("config.json", "{}");
    PUT_TENSORS("x.safetensors", {"a", "F32", "2", 8, NULL});
    PUT_TENSORS("y.safetensors", {"a", "F32", "2", 8, NULL});
    mt_error err = {0};
    assert_null(mt_checkpoint_open(folder, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_non_null(strstr(err.text, "tensor \"a\" is in both \""));
    assert_non_null(strstr(err.text, "remove the file that does not belong to the checkpoint"));
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(a_single_file_is_opened),           IN_FOLDER(shards_are_opened),
    IN_FOLDER(one_file_beats_a_stale_index),      IN_FOLDER(what_is_no_checkpoint),
    IN_FOLDER(missing_shards_are_named),          IN_FOLDER(a_truncated_shard_is_named),
    IN_FOLDER(an_index_that_lies_is_refused),     IN_FOLDER(a_broken_index_is_refused),
    IN_FOLDER(a_tensor_in_two_shards_is_refused),
};
UNIT_MAIN(tests)
