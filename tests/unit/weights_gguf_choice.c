/* Which of the GGUF files in a folder or a list is taken, and where a path leads. */
#include "folder.h"

#include "base/error.h"
#include "base/limits.h"
#include "weights/gguf_choice.h"
#include "weights/gguf_place.h"

static const char *label(const char *name)
{
    static char out[MT_GGUF_LABEL];

    mt_gguf_label(name, out);
    return out;
}

static void a_name_tells_its_quantisation(void **state)
{
    (void)state;
    assert_string_equal(label("Qwen3-8B-Q4_K_M.gguf"), "Q4_K_M");
    assert_string_equal(label("qwen3-8b.q4_k_m.gguf"), "Q4_K_M");
    assert_string_equal(label("a/b/model-Q8_0-00001-of-00003.gguf"), "Q8_0");
    assert_string_equal(label("Qwen3-30B-A3B-UD-Q4_K_XL.gguf"), "UD-Q4_K_XL");
    assert_string_equal(label("UD-IQ4_XS.gguf"), "UD-IQ4_XS");
    assert_string_equal(label("gpt-oss-20b-MXFP4_MOE.gguf"), "MXFP4_MOE");
    assert_string_equal(label("gpt-oss-20b-mxfp4.gguf"), "MXFP4");
    assert_string_equal(label("x-BF16.gguf"), "BF16");
    assert_string_equal(label("x-TQ1_0.gguf"), "TQ1_0");
    assert_string_equal(label("Qwen2.gguf"), "");
    assert_string_equal(label("Quick-1_2.gguf"), "");
    assert_string_equal(label("model.gguf"), "");
    assert_string_equal(label("QUD-Q4_0.gguf"), "Q4_0");
    assert_string_equal(label("sha256-0123"), "");
    assert_string_equal(label("x-Q4_0123456789012345678901234567890.gguf"), "");
}

static void shards_belong_together(void **state)
{
    (void)state;
    assert_true(mt_gguf_same("m-Q8_0-00001-of-00003.gguf", "m-Q8_0-00003-of-00003.gguf"));
    assert_false(mt_gguf_same("m-Q8_0-00001-of-00003.gguf", "m-Q8_0-00001-of-00004.gguf"));
    assert_false(mt_gguf_same("m-Q8_0-00001-of-00003.gguf", "m-Q6_K-00001-of-00003.gguf"));
    assert_false(mt_gguf_same("a/m-Q8_0-00001-of-00003.gguf", "b/m-Q8_0-00001-of-00003.gguf"));
    assert_true(mt_gguf_same("m.gguf", "m.gguf"));
    assert_true(mt_gguf_is_first("m-00001-of-00002.gguf"));
    assert_false(mt_gguf_is_first("m-00002-of-00002.gguf"));
    assert_true(mt_gguf_is_first("m-0002-of-0002.gguf"));
    assert_false(mt_gguf_is_first("mmproj-m.gguf"));
    assert_false(mt_gguf_is_first("m.safetensors"));
    assert_true(mt_gguf_is_projector("m.mmproj-f16.gguf"));
    assert_false(mt_gguf_is_projector("mmproj/m.gguf"));
}

static const mt_gguf_file many[] = {{"m-BF16-00001-of-00002.gguf", 900},
                                    {"m-BF16-00002-of-00002.gguf", 800},
                                    {"m-IQ4_XS.gguf", 400},
                                    {"m-Q4_K_M.gguf", 480},
                                    {"m-Q8_0.gguf", 850},
                                    {"mmproj-m-BF16.gguf", 60},
                                    {"mmproj-m-F16.gguf", 60}};

static const char *choose(const mt_gguf_file *files, size_t count, const char *tag, uint64_t memory)
{
    static char said[MT_LIMIT_ERROR_TEXT];
    mt_error err = {0};
    size_t at = 99;

    if (mt_gguf_choose(files, count, tag, memory, &at, &err))
        return files[at].name;
    snprintf(said, sizeof(said), "%s", err.text);
    return said;
}

static void a_tag_or_the_memory_chooses(void **state)
{
    const size_t count = MT_COUNT(many);

    (void)state;
    assert_string_equal(choose(many, count, "Q8_0", 0), "m-Q8_0.gguf");
    assert_string_equal(choose(many, count, "q8_0", 1),
                        "m-Q8_0.gguf"); /* what is asked for is not held to memory here */
    assert_string_equal(choose(many, count, "bf16", 0), "m-BF16-00001-of-00002.gguf");
    assert_string_equal(choose(many, count, NULL, 0), "m-Q4_K_M.gguf");
    assert_string_equal(choose(many, count, "latest", 1000), "m-Q4_K_M.gguf");
    assert_string_equal(choose(many, count, "", 479), "m-IQ4_XS.gguf");
    assert_string_equal(choose(many, 2, "", 1700), "m-BF16-00001-of-00002.gguf");
    assert_string_equal(choose(many, 2, "", 1699),
                        "no quantisation takes 1.7 KiB or less, which motet may take here: BF16 (1.7 KiB)");
    assert_string_equal(choose(many, count, "Q2_K", 0),
                        "there is no quantisation \"Q2_K\"; take one of these: BF16 (1.7 KiB), IQ4_XS (400 B), Q4_K_M "
                        "(480 B), Q8_0 (850 B)");
    assert_string_equal(choose(many + 5, 2, "", 0), "there is no GGUF file of a model; give a folder that has one");
    assert_int_equal(mt_gguf_choose_projector(many, count, "m-Q8_0.gguf"), 6);
    assert_int_equal(mt_gguf_choose_projector(many, 6, "m-Q8_0.gguf"), 5);
    assert_int_equal(mt_gguf_choose_projector(many, 5, "m-Q8_0.gguf"), 5);
}

static void a_projector_belongs_to_its_model(void **state)
{
    static const mt_gguf_file flat[] = {
        {"a-Q4_0.gguf", 1}, {"b-Q4_0.gguf", 1}, {"b-Q8_0.gguf", 1}, {"mmproj-b.gguf", 1}};

    (void)state;
    assert_int_equal(mt_gguf_choose_projector(flat, 4, "a-Q4_0.gguf"), 4);
    assert_int_equal(mt_gguf_choose_projector(flat, 4, "dir/b-Q8_0.gguf"), 3);
    assert_int_equal(mt_gguf_choose_projector(flat + 1, 3, "b-Q4_0.gguf"), 2);
}

static void an_importance_matrix_is_no_model(void **state)
{
    static const mt_gguf_file with[] = {{"imatrix_m.gguf", 9}, {"m-imatrix.gguf", 9}, {"m.gguf", 1}};

    (void)state;
    assert_string_equal(choose(with, 3, NULL, 0), "m.gguf");
    assert_false(mt_gguf_is_first("dir/m.Imatrix.gguf"));
    assert_true(mt_gguf_is_first("m-imatrix-Q4_K_M.gguf"));
    assert_true(mt_gguf_is_first("m-i1-IQ4_XS-imatrix.gguf"));
    assert_true(mt_gguf_is_first("imatrix/m-Q8_0.gguf"));
}

static void an_exact_label_comes_before_a_dynamic_one(void **state)
{
    static const mt_gguf_file both[] = {{"m-UD-Q4_K_M.gguf", 1}, {"m-q4_k_m.gguf", 1}};

    (void)state;
    assert_string_equal(choose(both, 2, "Q4_K_M", 0), "m-q4_k_m.gguf");
    assert_string_equal(choose(both, 1, "Q4_K_M", 0), "m-UD-Q4_K_M.gguf");
    assert_string_equal(choose(both, 2, "ud-q4_k_m", 0), "m-UD-Q4_K_M.gguf");
}

/* The place of a path below the test's folder: "MODEL PROJECTOR", "other", or the error. */
static const char *locate(const char *below, const char *tag)
{
    static char out[3 * MT_LIMIT_PATH];
    char path[MT_LIMIT_PATH];
    mt_gguf_place place;
    mt_error err = {0};
    const size_t len = strlen(folder) + 1;

    snprintf(path, sizeof(path), "%s/%s", folder, below);
    if (mt_gguf_locate(&place, path, tag, &err))
        snprintf(out, sizeof(out), "%s %s", place.model + len, place.projector[0] ? place.projector + len : "-");
    else
        snprintf(out, sizeof(out), "%s", err.code == MT_OK ? "other" : err.text);
    return out;
}

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LAYER(kind, digest) "{\"mediaType\":\"application/vnd.ollama.image." kind "\",\"digest\":\"" digest "\"}"

static void a_path_leads_to_files(void **state)
{
    (void)state;
    put("one/a.gguf", "GGUF");
    put("two/a-Q4_0.gguf", "GGUF");
    put("two/a-Q8_0.gguf", "GGUF");
    put("two/mmproj-a.gguf", "GGUF");
    put("mixed/a.gguf", "GGUF");
    put("mixed/model.safetensors", "");
    put("none/config.json", "{}");
    put("blind/mmproj-a.gguf", "GGUF");
    assert_string_equal(locate("one", NULL), "one/a.gguf -");
    assert_string_equal(locate("one/a.gguf", NULL), "one/a.gguf -");
    assert_string_equal(locate("two", NULL), "two/a-Q4_0.gguf two/mmproj-a.gguf");
    assert_string_equal(locate("two", "Q8_0"), "two/a-Q8_0.gguf two/mmproj-a.gguf");
    assert_string_equal(locate("two/a-Q8_0.gguf", NULL), "two/a-Q8_0.gguf two/mmproj-a.gguf");
    assert_string_equal(locate("mixed", NULL), "other");
    assert_string_equal(locate("mixed/a.gguf", NULL), "mixed/a.gguf -");
    put("mixed/a-Q8_0.gguf", "GGUF");
    assert_string_equal(locate("mixed", "Q8_0"), "mixed/a-Q8_0.gguf -");
    put("large/Q8_0/a-Q8_0-00001-of-00002.gguf", "GGUF");
    put("large/Q8_0/a-Q8_0-00002-of-00002.gguf", "GGUF");
    put("large/other/a-Q4_0.gguf", "GGUF");
    assert_string_equal(locate("large", NULL), "large/Q8_0/a-Q8_0-00001-of-00002.gguf -");
    assert_string_equal(locate("large", "Q4_0"), "there is no quantisation \"Q4_0\"; take one of these: Q8_0 (8 B)");
    assert_string_equal(locate("none", NULL), "other");
    assert_string_equal(locate("nowhere", NULL), "other");
    assert_string_equal(locate("none/config.json", NULL), "other");
    assert_string_equal(locate("blind", NULL), "there is no GGUF file of a model; give a folder that has one");
}

static void a_manifest_lists_blobs(void **state)
{
    (void)state;
    put("s/manifests/registry.ollama.ai/library/m/1b",
        "{\"layers\":[" LAYER("model", "sha256:" DIGEST) "," LAYER("template", "sha256:" DIGEST) "]}");
    put("s/manifests/h/o/m/eyes",
        "{\"layers\":[" LAYER("projector", "sha256:" DIGEST) "," LAYER("model", "sha256:" DIGEST) "]}");
    put("s/manifests/h/o/m/lies", "{\"layers\":[" LAYER("model", "sha256:../../../etc/passwd") "]}");
    put("s/manifests/h/o/m/short", "{\"layers\":[" LAYER("model", "sha256:00") "]}");
    put("s/manifests/h/o/m/empty", "{}");
    put("s/manifests/h/o/m/cut", "{\"layers\":[");
    assert_string_equal(locate("s/manifests/registry.ollama.ai/library/m/1b", NULL), "s/blobs/sha256-" DIGEST " -");
    assert_string_equal(locate("s/manifests/h/o/m/eyes", NULL), "s/blobs/sha256-" DIGEST " s/blobs/sha256-" DIGEST);
    assert_string_equal(locate("s/manifests/h/o/m/lies", NULL),
                        "a layer of the manifest has no digest: pull the model again with Ollama");
    assert_string_equal(locate("s/manifests/h/o/m/short", NULL),
                        "a layer of the manifest has no digest: pull the model again with Ollama");
    assert_string_equal(locate("s/manifests/h/o/m/empty", NULL),
                        "the manifest has no layer with a GGUF model: take another model");
    assert_ptr_equal(strstr(locate("s/manifests/h/o/m/cut", NULL), "other"), NULL);
}

static bool architecture(const char *bytes, size_t len, char out[MT_GGUF_LABEL])
{
    char path[MT_LIMIT_PATH];

    snprintf(path, sizeof(path), "%s/head", folder);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    return mt_gguf_architecture(path, out);
}

#define HEAD "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
#define FLAG "\1\0\0\0\0\0\0\0x\7\0\0\0\1"
#define KEY "\24\0\0\0\0\0\0\0general.architecture\10\0\0\0"

static void the_first_bytes_tell_the_architecture(void **state)
{
    static const char good[] = HEAD FLAG KEY "\5\0\0\0\0\0\0\0qwen3";
    static const char list[] = HEAD "\1\0\0\0\0\0\0\0x\11\0\0\0\1" KEY "\5\0\0\0\0\0\0\0qwen3";
    static const char wide[] = HEAD KEY "\377\377\377\377\377\377\377\377qwen3";
    static const char number[] = HEAD "\24\0\0\0\0\0\0\0general.architecture\7\0\0\0\1";
    char out[MT_GGUF_LABEL] = "";

    (void)state;
    assert_true(architecture(good, sizeof(good) - 1, out));
    assert_string_equal(out, "qwen3");
    for (size_t len = 0; len < sizeof(good) - 1; len++)
        assert_false(architecture(good, len, out));
    assert_false(architecture(list, sizeof(list) - 1, out));
    assert_false(architecture(wide, sizeof(wide) - 1, out));
    assert_false(architecture(number, sizeof(number) - 1, out));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_name_tells_its_quantisation),
    cmocka_unit_test(shards_belong_together),
    cmocka_unit_test(a_tag_or_the_memory_chooses),
    cmocka_unit_test(a_projector_belongs_to_its_model),
    cmocka_unit_test(an_importance_matrix_is_no_model),
    cmocka_unit_test(an_exact_label_comes_before_a_dynamic_one),
    cmocka_unit_test_setup_teardown(a_path_leads_to_files, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_manifest_lists_blobs, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(the_first_bytes_tell_the_architecture, make_folder, remove_folder),
};

UNIT_MAIN(tests)
