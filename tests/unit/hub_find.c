/* Where a model's name leads. */
#include "folder.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "hub/find.h"

static const char *variable; /* the only one that is set, to the folder */

static char *env(const char *name)
{
    return variable && strcmp(name, variable) == 0 ? folder : NULL;
}

/* The result below the test's folder, or the error's sentence. */
static const char *find(const char *model, const char *models_dir)
{
    static char result[MT_LIMIT_ERROR_TEXT];
    mt_error err = {0};
    char *found = mt_hub_find(model, models_dir, env, &err);
    const size_t len = strlen(folder);

    if (!found)
        snprintf(result, sizeof(result), "%s", err.text);
    else
        snprintf(result, sizeof(result), "%s", strncmp(found, folder, len) == 0 ? found + len : found);
    mt_free(found);
    return result;
}

static void folders_and_what_is_no_name_stay_as_they_are(void **state)
{
    (void)state;
    variable = "HF_HUB_CACHE";
    put("a/b/config.json", "{}");
    assert_string_equal(find(folder, NULL), "");
    assert_string_equal(find("tests/oracle", NULL), "tests/oracle");
    assert_string_equal(find("/nowhere/model", NULL), "/nowhere/model");
    assert_string_equal(find("./owner/model", NULL), "./owner/model");
    assert_string_equal(find("../model", NULL), "../model");
    assert_string_equal(find("owner/..", NULL), "owner/..");
    assert_string_equal(find("model", NULL), "model");
    assert_string_equal(find("a/b/c", NULL), "a/b/c");
    assert_string_equal(find("", NULL), "");
}

static void a_name_is_found_in_the_cache(void **state)
{
    (void)state;
    put("models--Owner--Model-1.5_x/refs/main", "abc123\n");
    put("models--Owner--Model-1.5_x/snapshots/abc123/config.json", "{}");
    put("models--Owner--Model-1.5_x/snapshots/fff/config.json", "{}");
    variable = "HF_HUB_CACHE";
    assert_string_equal(find("Owner/Model-1.5_x", NULL), "/models--Owner--Model-1.5_x/snapshots/abc123");
    put("hub/models--o--m/snapshots/1/tokenizer.json", "{}"); /* downloaded by commit */
    variable = "HF_HOME";
    assert_string_equal(find("o/m", NULL), "/hub/models--o--m/snapshots/1");
    put(".cache/huggingface/hub/models--o--m/refs/main", "gone");
    put(".cache/huggingface/hub/models--o--m/snapshots/2/config.json", "{}");
    variable = "HUGGINGFACE_HUB_CACHE";
    assert_string_equal(find("Owner/Model-1.5_x", NULL), "/models--Owner--Model-1.5_x/snapshots/abc123");
    variable = "HOME";
    assert_string_equal(find("o/m", NULL), "/.cache/huggingface/hub/models--o--m/snapshots/2");
    put(".cache/huggingface/hub/models--o--m/refs/main", "../../evil"); /* never leaves the folder */
    assert_string_equal(find("o/m", NULL), "/.cache/huggingface/hub/models--o--m/snapshots/2");
}

static void a_revision_is_a_branch_or_a_commit(void **state)
{
    (void)state;
    variable = "HF_HUB_CACHE";
    put("models--o--m/refs/main", "aaa");
    put("models--o--m/refs/refs/pr/1", "bbb");
    put("models--o--m/snapshots/aaa/config.json", "{}");
    put("models--o--m/snapshots/bbb/config.json", "{}");
    put("models--plain/snapshots/ccc/config.json", "{}");
    assert_string_equal(find("o/m", NULL), "/models--o--m/snapshots/aaa");
    assert_string_equal(find("o/m@main", NULL), "/models--o--m/snapshots/aaa");
    assert_string_equal(find("o/m@refs/pr/1", NULL), "/models--o--m/snapshots/bbb");
    assert_string_equal(find("o/m@bbb", NULL), "/models--o--m/snapshots/bbb");
    assert_string_equal(find("plain", NULL), "/models--plain/snapshots/ccc");
    assert_non_null(strstr(find("o/m@ccc", NULL), "motet pull o/m@ccc"));
    assert_string_equal(find("o/m@../aaa", NULL), "o/m@../aaa");
    assert_string_equal(find("o/m@", NULL), "o/m@");
}

static void a_folder_of_models_comes_before_the_cache(void **state)
{
    char models[128];

    (void)state;
    variable = "HF_HUB_CACHE";
    snprintf(models, sizeof(models), "%s/models", folder);
    put("models--o--m/snapshots/1/config.json", "{}");
    assert_string_equal(find("o/m", models), "/models--o--m/snapshots/1");
    put("models/m/config.json", "{}");
    assert_string_equal(find("o/m", models), "/models/m");
    put("models/o/m/config.json", "{}");
    assert_string_equal(find("o/m", models), "/models/o/m");
    assert_string_equal(find("m", models), "/models/m");
}

static void a_tag_chooses_a_quantisation(void **state)
{
    static const char *const odd[] = {"o/g:", "o/g:a/b", "o/g:../x", ":Q4_0"};
    char below[128];

    (void)state;
    variable = "HF_HUB_CACHE";
    put("models--o--g/refs/main", "abc");
    put("models--o--g/snapshots/abc/g-Q4_K_M.gguf", "GGUF");
    put("models--o--g/snapshots/abc/g-Q8_0.gguf", "GGUF");
    put("below/plain.gguf", "GGUF");
    put("below/o/safe/config.json", "{}");
    put("below/o/safe/model.safetensors", "");
    assert_string_equal(find("o/g", NULL), "/models--o--g/snapshots/abc/g-Q4_K_M.gguf");
    assert_string_equal(find("hf.co/o/g", NULL), "/models--o--g/snapshots/abc/g-Q4_K_M.gguf");
    assert_string_equal(find("https://huggingface.co/o/g:Q8_0", NULL), "/models--o--g/snapshots/abc/g-Q8_0.gguf");
    assert_string_equal(find("o/g:q8_0", NULL), "/models--o--g/snapshots/abc/g-Q8_0.gguf");
    assert_string_equal(find("o/g@abc:Q8_0", NULL), "/models--o--g/snapshots/abc/g-Q8_0.gguf");
    assert_string_equal(find("o/g:Q2_K", NULL),
                        "\"o/g\": there is no quantisation \"Q2_K\"; take one of these: Q4_K_M (4 B), Q8_0 (4 B)");
    snprintf(below, sizeof(below), "%s/below", folder);
    assert_string_equal(find("plain", below), "/below/plain.gguf");
    assert_string_equal(find("o/safe", below), "/below/o/safe");
    assert_non_null(strstr(find("o/safe:Q8_0", below), "motet pull o/safe:Q8_0"));
    for (size_t i = 0; i < MT_COUNT(odd); i++) /* no names, so they stay as they are */
        assert_string_equal(find(odd[i], NULL), odd[i]);
}

static void stores_of_other_programs_are_read(void **state)
{
    (void)state;
    put(".lmstudio/models/o/studio/s-Q4_0.gguf", "GGUF");
    put(".ollama/models/manifests/registry.ollama.ai/library/lib/3b", "{}");
    put(".ollama/models/manifests/registry.ollama.ai/user/own/latest", "{}");
    put(".ollama/models/manifests/hf.co/o/hub/Q4_0", "{}");
    variable = "HOME";
    assert_string_equal(find("o/studio", NULL), "/.lmstudio/models/o/studio/s-Q4_0.gguf");
    assert_string_equal(find("o/studio:Q4_0", NULL), "/.lmstudio/models/o/studio/s-Q4_0.gguf");
    assert_string_equal(find("lib:3b", NULL), "/.ollama/models/manifests/registry.ollama.ai/library/lib/3b");
    assert_string_equal(find("user/own", NULL), "/.ollama/models/manifests/registry.ollama.ai/user/own/latest");
    assert_string_equal(find("o/hub:Q4_0", NULL), "/.ollama/models/manifests/hf.co/o/hub/Q4_0");
    assert_string_equal(find("lib", NULL), "lib"); /* it has no "latest" */
    put("manifests/registry.ollama.ai/library/lib/latest", "{}");
    variable = "OLLAMA_MODELS";
    assert_string_equal(find("lib", NULL), "/manifests/registry.ollama.ai/library/lib/latest");
    assert_string_equal(find("lib:latest", NULL), "/manifests/registry.ollama.ai/library/lib/latest");
}

static void short_names_lead_to_repositories(void **state)
{
    (void)state;
    variable = "HF_HUB_CACHE";
    assert_string_equal(find("qwen3:0.6B", NULL), "\"qwen3:0.6B\" is short for \"Qwen/Qwen3-0.6B\", which is not here: "
                                                  "download it with motet pull qwen3:0.6B");
    put("models--Qwen--Qwen3-0.6B/snapshots/1/config.json", "{}");
    assert_string_equal(find("qwen3:0.6b", NULL), "/models--Qwen--Qwen3-0.6B/snapshots/1");
    put("below/qwen3/config.json", "{}"); /* what has the name itself comes first */
    char below[256];
    snprintf(below, sizeof(below), "%s/below", folder);
    assert_string_equal(find("qwen3", below), "/below/qwen3");
    assert_string_equal(find("lama3.3", NULL), "\"lama3.3\" is neither a folder here nor a model's name: did you mean "
                                               "\"llama3.3\", of motet list --known?");
    assert_non_null(strstr(find("own:7b-long-tag", NULL), "motet list --known has the short names"));
}

/* A repository that is here, but too large for this machine, is not said to be missing. */
static void what_is_wrong_with_a_short_names_folder_is_told(void **state)
{
    char path[300];

    (void)state;
    variable = "HF_HUB_CACHE";
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "models--Qwen--Qwen3-8B/snapshots/1/m-Q%d_0.gguf", i ? 4 : 8);
        put(path, "GGUF");
        snprintf(path, sizeof(path), "%s/models--Qwen--Qwen3-8B/snapshots/1/m-Q%d_0.gguf", folder, i ? 4 : 8);
        assert_int_equal(truncate(path, (off_t)1 << 42), 0);
    }
    const char *said = find("qwen3", NULL);
    assert_null(strstr(said, "is not here"));
    assert_non_null(strstr(said, "\"Qwen/Qwen3-8B\": no quantisation takes"));
}

static void what_is_absent_comes_with_the_command_that_gets_it(void **state)
{
    (void)state;
    variable = "HF_HUB_CACHE";
    put("models--o--half/snapshots/1/README.md", "");
    assert_non_null(strstr(find("o/half", NULL), "motet pull o/half"));
    assert_non_null(strstr(find("o/m", NULL), folder));
    assert_non_null(strstr(find("o/m", "/models"), "in \"/models\" or \"/tmp/motet-test-"));
    variable = NULL;
    assert_non_null(strstr(find("o/m", NULL), "motet pull o/m"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(folders_and_what_is_no_name_stay_as_they_are, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_name_is_found_in_the_cache, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_revision_is_a_branch_or_a_commit, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_folder_of_models_comes_before_the_cache, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_tag_chooses_a_quantisation, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(stores_of_other_programs_are_read, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(short_names_lead_to_repositories, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(what_is_wrong_with_a_short_names_folder_is_told, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(what_is_absent_comes_with_the_command_that_gets_it, make_folder, remove_folder),
};

UNIT_MAIN(tests)
