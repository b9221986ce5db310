/* The models that are here: listed, and removed. */
#include "folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include "base/alloc.h"
#include "hub/find.h"
#include "hub/local.h"
#include "hub/remove.h"

#define OLD "1111111111111111111111111111111111111111"
#define NEW "2222222222222222222222222222222222222222"
#define REPO "models--Owner--Model-1.5"
#define TEXT_CONFIG                                                                                                   \
    "{\"architectures\":[\"Qwen3ForCausalLM\"],\"model_type\":\"qwen3\",\"hidden_size\":64,\"num_hidden_layers\":1,"  \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":32,\"intermediate_size\":128,\"vocab_size\":16" \
    "}"
#define BERT_CONFIG                                                                                          \
    "{\"architectures\":[\"BertModel\"],\"model_type\":\"bert\",\"hidden_size\":64,\"num_hidden_layers\":1," \
    "\"num_attention_heads\":2,\"intermediate_size\":128,\"vocab_size\":16,\"max_position_embeddings\":64,"  \
    "\"type_vocab_size\":2}"

static char *env(const char *name)
{
    return strcmp(name, "HF_HUB_CACHE") == 0 ? folder : NULL;
}

static const char *below(const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static bool is_there(const char *name)
{
    struct stat st;

    return lstat(below(name), &st) == 0;
}

/* A file of a snapshot as the hub's tools leave it: a blob and a link to it. */
static void put_file(const char *commit, const char *name, const char *blob, const char *text)
{
    char path[256], target[256];

    snprintf(path, sizeof(path), REPO "/blobs/%s", blob);
    put(path, text);
    snprintf(path, sizeof(path), REPO "/snapshots/%s/%s", commit, name);
    put(path, "");
    assert_int_equal(unlink(below(path)), 0);
    snprintf(target, sizeof(target), "../../blobs/%s", blob);
    assert_int_equal(symlink(target, below(path)), 0);
}

static void put_model(void)
{
    put_file(OLD, "config.json", "c0", TEXT_CONFIG);
    put_file(OLD, "model.safetensors", "w0", "old weights");
    put_file(NEW, "config.json", "c0", TEXT_CONFIG);
    put_file(NEW, "model.safetensors", "w1", "the new weights");
    put(REPO "/refs/main", NEW);
    put(REPO "/refs/refs/pr/1", OLD);
    put(REPO "/refs/v1", OLD);
}

static mt_local list;

static const mt_local_model *listed(const char *models_dir, size_t count)
{
    mt_error err = {0};

    mt_local_free(&list);
    assert_true(mt_local_list(&list, models_dir, env, &err));
    assert_int_equal(list.count, count);
    for (size_t i = 0; i < count; i++) {
        char *found = mt_hub_find(list.at[i].name, models_dir, env, &err);

        assert_non_null(found);
        if (*list.at[i].revision || !list.at[i].cached)
            assert_string_equal(found, list.at[i].folder);
        mt_free(found);
    }
    return list.at;
}

static int forget(void **state)
{
    mt_local_free(&list);
    return remove_folder(state);
}

static void revisions_of_the_cache_are_listed_by_names_that_find_them(void **state)
{
    const mt_local_model *at;
    char can[64];

    (void)state;
    put_model();
    put("CACHEDIR.TAG", "");
    put("datasets--o--d/snapshots/1/config.json", "{}");
    put("models--a--b--c/snapshots/1/config.json", "{}"); /* no name that the hub gives */
    at = listed(NULL, 2);
    assert_string_equal(at[0].name, "Owner/Model-1.5");
    assert_string_equal(at[0].revision, NEW);
    assert_string_equal(at[0].folder, below(REPO "/snapshots/" NEW));
    assert_string_equal(at[0].place, folder);
    assert_string_equal(at[0].family, "qwen3");
    assert_string_equal(at[0].problem, "");
    assert_string_equal(mt_local_abilities(at[0].can, can), "text");
    assert_int_equal(at[0].bytes, strlen(TEXT_CONFIG) + strlen("the new weights"));
    assert_true(at[0].whole && at[0].cached && at[0].modified > 0);
    assert_string_equal(at[1].name, "Owner/Model-1.5@" OLD);
    assert_int_equal(at[1].bytes, strlen(TEXT_CONFIG) + strlen("old weights"));
}

static void what_lacks_weights_or_is_not_known_says_so(void **state)
{
    const mt_local_model *at;

    (void)state;
    put("models--o--begun/blobs/abc.incomplete", "half");
    put("models--o--half/snapshots/1/config.json", TEXT_CONFIG);
    put("models--o--half/snapshots/1/model-00001-of-00002.safetensors", "");
    put("models--o--other/snapshots/1/config.json", "{\"model_type\":\"mamba\"}");
    put("models--o--other/snapshots/1/model.safetensors", "");
    put("models--o--odd/snapshots/1/config.json", "[");
    put("models--o--vectors/snapshots/1/config.json", BERT_CONFIG);
    put("models--o--vectors/snapshots/1/model.safetensors", "");
    mt_error err = {0};
    assert_true(mt_local_list(&list, NULL, env, &err));
    at = list.at;
    assert_int_equal(list.count, 5);
    assert_string_equal(at[0].name, "o/begun");
    assert_true(!at[0].whole && at[0].bytes == 4 && !*at[0].revision);
    assert_non_null(strstr(at[0].problem, "download the rest"));
    assert_string_equal(at[1].name, "o/half");
    assert_false(at[1].whole);
    assert_non_null(strstr(at[1].problem, "lacks 1 of its 2 shards"));
    assert_int_equal(at[1].can, MT_LOCAL_TEXT);
    assert_string_equal(at[2].name, "o/odd");
    assert_true(!at[2].whole && *at[2].problem);
    assert_string_equal(at[3].name, "o/other");
    assert_true(at[3].whole && at[3].can == 0);
    assert_non_null(strstr(at[3].problem, "model type \"mamba\" is a recurrent model"));
    assert_string_equal(at[4].name, "o/vectors");
    assert_true(at[4].whole && at[4].can == MT_LOCAL_EMBED && !*at[4].problem);
}

static void a_folder_of_models_hides_the_cache(void **state)
{
    const mt_local_model *at;
    char models[128];

    (void)state;
    snprintf(models, sizeof(models), "%s/models", folder);
    put_model();
    put("models/plain/config.json", TEXT_CONFIG);
    put("models/.hidden/config.json", TEXT_CONFIG);
    put("models/b@d/config.json", TEXT_CONFIG); /* reads like a revision */
    put("models/Owner/Model-1.5/config.json", TEXT_CONFIG);
    put("models/Owner/deep/er/config.json", TEXT_CONFIG);
    at = listed(models, 3);
    assert_string_equal(at[0].name, "Owner/Model-1.5");
    assert_true(!at[0].cached && !*at[0].revision && !at[0].whole);
    assert_string_equal(at[0].place, models);
    assert_string_equal(at[1].name, "Owner/Model-1.5@" OLD);
    assert_string_equal(at[2].name, "plain");
    listed("/nowhere", 2);
}

static uint64_t removed(const char *name, const char *models_dir)
{
    uint64_t freed;
    mt_error err = {0};

    if (!mt_local_remove(name, models_dir, env, &freed, &err))
        fail_msg("%s", err.text);
    return freed;
}

static const char *refused(const char *name, const char *models_dir)
{
    static mt_error err;
    uint64_t freed;

    assert_false(mt_local_remove(name, models_dir, env, &freed, &err));
    return err.text;
}

static void a_revision_goes_with_what_only_it_had(void **state)
{
    (void)state;
    put_model();
    assert_int_equal(removed("Owner/Model-1.5@v1", NULL), strlen("old weights") + 2 * strlen(OLD));
    assert_false(is_there(REPO "/snapshots/" OLD));
    assert_false(is_there(REPO "/blobs/w0"));
    assert_false(is_there(REPO "/refs/v1"));
    assert_false(is_there(REPO "/refs/refs/pr/1"));
    assert_true(is_there(REPO "/blobs/c0") && is_there(REPO "/blobs/w1") && is_there(REPO "/refs/main"));
    assert_string_equal(listed(NULL, 1)->name, "Owner/Model-1.5");
    assert_true(list.at[0].whole);
    removed("Owner/Model-1.5@" NEW, NULL); /* the last */
    assert_false(is_there(REPO));
}

static void a_model_goes_with_all_of_its_revisions(void **state)
{
    (void)state;
    put_model();
    put(".locks/" REPO "/w0.lock", "");
    put("models--Owner--Other/snapshots/1/config.json", TEXT_CONFIG);
    put("outside/config.json", TEXT_CONFIG);
    assert_int_equal(symlink("../../../outside", below(REPO "/snapshots/" OLD "/link")), 0);
    assert_true(removed("Owner/Model-1.5", NULL) > strlen(TEXT_CONFIG));
    assert_false(is_there(REPO) || is_there(".locks/" REPO));
    assert_true(is_there("models--Owner--Other/snapshots/1/config.json") && is_there("outside/config.json"));
}

static void what_is_no_model_here_stays(void **state)
{
    char models[128];

    (void)state;
    snprintf(models, sizeof(models), "%s/models", folder);
    put("config.json", TEXT_CONFIG);
    put("models/readme/README.md", "");
    put_model();
    assert_non_null(strstr(refused("..", models), "is no model's name"));
    assert_non_null(strstr(refused("../models", models), "is no model's name"));
    assert_non_null(strstr(refused("Owner/..", NULL), "is no model's name"));
    assert_non_null(strstr(refused("", models), "is no model's name"));
    assert_non_null(strstr(refused("readme", models), "is not a model in"));
    assert_non_null(strstr(refused("o/m", models), "is not a model in"));
    assert_non_null(strstr(refused("Owner/Model-1.5@v2", NULL), "has no revision \"v2\""));
    assert_true(is_there("config.json") && is_there("models/readme/README.md") && is_there(REPO "/blobs/w0"));
}

static void a_folder_of_models_loses_folders_and_links_alone(void **state)
{
    char models[128];

    (void)state;
    snprintf(models, sizeof(models), "%s/models", folder);
    put("models/plain/config.json", TEXT_CONFIG);
    put("models/plain/deep/model.safetensors", "w");
    put("elsewhere/config.json", TEXT_CONFIG);
    assert_int_equal(symlink("../elsewhere", below("models/linked")), 0);
    assert_int_equal(removed("plain", models), strlen(TEXT_CONFIG) + 1);
    assert_false(is_there("models/plain"));
    assert_int_equal(removed("linked", models), 0);
    assert_true(!is_there("models/linked") && is_there("elsewhere/config.json"));
}

static bool affects(const char *name, const char *path)
{
    char models[128];

    snprintf(models, sizeof(models), "%s/models", folder);
    return mt_local_affects(name, models, env, below(path));
}

static void what_is_in_use_is_known_by_any_name(void **state)
{
    (void)state;
    put_model();
    put("models/plain/config.json", TEXT_CONFIG);
    put("models/plain/deep/config.json", TEXT_CONFIG);
    put("other/config.json", TEXT_CONFIG);
    put("links/tokenizer.json", "");
    assert_int_equal(symlink("models", below("way")), 0);
    assert_int_equal(symlink("../other", below("models/linked")), 0);
    assert_int_equal(symlink("../" REPO "/blobs/w0", below("links/model.safetensors")), 0);

    assert_true(affects("Owner/Model-1.5", REPO "/snapshots/" OLD));
    assert_true(affects("Owner--Model-1.5", REPO "/snapshots/" OLD)); /* the same folder of the cache */
    assert_true(affects("Owner/Model-1.5@v1", REPO "/snapshots/" OLD));
    assert_true(affects("Owner/Model-1.5@" OLD, REPO "/snapshots/" OLD));
    assert_true(affects("Owner/Model-1.5@main", REPO "/snapshots/" NEW));
    assert_false(affects("Owner/Model-1.5@main", REPO "/snapshots/" OLD));
    assert_false(affects("Owner/Model-1.5@" OLD, REPO "/snapshots/" NEW));
    assert_true(affects("Owner/Model-1.5@v1", "links"));
    assert_true(affects("Owner/Model-1.5", "links"));
    assert_true(affects("plain", "way/plain"));
    assert_true(affects("plain", "way/plain/deep"));
    assert_true(affects("plain", "models/plain/config.json"));
    assert_true(affects("plain/deep", "models/plain")); /* a part of it */
    assert_true(affects("linked", "other"));
    assert_false(affects("plain", "other"));
    assert_false(affects("plain", "nowhere"));
    assert_false(affects("nothing", "models/plain"));
    assert_false(affects("../models", "models/plain"));
}

/* A quantisation may go while another one of the same model is in use. */
static void a_quantisation_is_in_use_by_itself(void **state)
{
    (void)state;
    put_file(OLD, "m-Q8_0.gguf", "q8", "w");
    put_file(OLD, "m-Q4_K_M.gguf", "q4", "w");
    put("models/two/m-Q8_0.gguf", "w");
    put("models/two/m-Q4_K_M.gguf", "w");
    assert_int_equal(symlink(REPO "/snapshots/" OLD "/m-Q8_0.gguf", below("x-Q2_K.gguf")), 0);

    assert_true(affects("Owner/Model-1.5:Q8_0", REPO "/snapshots/" OLD "/m-Q8_0.gguf"));
    assert_false(affects("Owner/Model-1.5:Q8_0", REPO "/snapshots/" OLD "/m-Q4_K_M.gguf"));
    assert_true(affects("Owner/Model-1.5", REPO "/snapshots/" OLD "/m-Q4_K_M.gguf"));
    assert_true(affects("two:q4_k_m", "models/two/m-Q4_K_M.gguf"));
    assert_false(affects("two:q4_k_m", "models/two/m-Q8_0.gguf"));
    assert_true(affects("two:q4_k_m", "models/two"));            /* no file: it may be any */
    assert_true(affects("Owner/Model-1.5:Q8_0", "x-Q2_K.gguf")); /* a link says nothing of what it leads to */
}

static void what_is_being_downloaded_stays(void **state)
{
    int fd;

    (void)state;
    put_model();
    put(".locks/" REPO "/w1.lock", "");
    fd = open(below(".locks/" REPO "/w1.lock"), O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_non_null(strstr(refused("Owner/Model-1.5", NULL), "is being downloaded"));
    close(fd);
    removed("Owner/Model-1.5", NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(revisions_of_the_cache_are_listed_by_names_that_find_them, make_folder, forget),
    cmocka_unit_test_setup_teardown(what_lacks_weights_or_is_not_known_says_so, make_folder, forget),
    cmocka_unit_test_setup_teardown(a_folder_of_models_hides_the_cache, make_folder, forget),
    cmocka_unit_test_setup_teardown(a_revision_goes_with_what_only_it_had, make_folder, forget),
    cmocka_unit_test_setup_teardown(a_model_goes_with_all_of_its_revisions, make_folder, forget),
    cmocka_unit_test_setup_teardown(what_is_no_model_here_stays, make_folder, forget),
    cmocka_unit_test_setup_teardown(a_folder_of_models_loses_folders_and_links_alone, make_folder, forget),
    cmocka_unit_test_setup_teardown(what_is_in_use_is_known_by_any_name, make_folder, forget),
    cmocka_unit_test_setup_teardown(a_quantisation_is_in_use_by_itself, make_folder, forget),
    cmocka_unit_test_setup_teardown(what_is_being_downloaded_stays, make_folder, forget),
};

UNIT_MAIN(tests)
