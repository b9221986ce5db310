/* What a hub answers: lists of files, which are believed as little as anything else that comes from outside, and what
   its refusals mean. */
#include "unit.h"

#include "hub/limits.h"
#include "hub/remote.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define SHA256 COMMIT "0123456789abcdef01234567"
#define FILE_ENTRY(name) "{\"rfilename\": \"" name "\", \"size\": 3, \"blobId\": \"" COMMIT "\"}"
#define LIST(entries) "{\"sha\": \"" COMMIT "\", \"siblings\": [" entries "]}"

static mt_listing list;

static int forget(void **state)
{
    (void)state;
    mt_listing_free(&list);
    return 0;
}

static const char *read_list(const char *text)
{
    static mt_error err;

    mt_listing_free(&list);
    err = (mt_error){0};
    return mt_listing_read(&list, text, strlen(text), &err) ? "" : err.text;
}

static void what_motet_reads_is_taken(void **state)
{
    static const char *const wanted[] = {"1_Pooling/config.json",
                                         "2_Dense/config.json",
                                         "2_Dense/model.safetensors",
                                         "additional_chat_templates/tool_use.jinja",
                                         "chat_template.jinja",
                                         "config.json",
                                         "merges.txt",
                                         "model-Q4_0.gguf",
                                         "model.safetensors",
                                         "mtp/weights.safetensors"};

    static const char *const names[] = {"config.json",
                                        "README.md",
                                        "model.bin",
                                        "model-Q4_0.gguf",
                                        "original/model.safetensors",
                                        "1_Pooling/config.json",
                                        "2_Dense/config.json",
                                        "2_Dense/model.safetensors",
                                        "2_Dense/pytorch_model.bin",
                                        "merges.txt",
                                        "chat_template.jinja",
                                        ".hidden.json",
                                        "additional_chat_templates/tool_use.jinja",
                                        "mtp/weights.safetensors",
                                        "onnx/config.json"};
    mt_buf text;

    (void)state;
    mt_buf_init(&text, 1 << 16);
    mt_buf_puts(&text, "{\"sha\": \"" COMMIT "\", \"siblings\": [");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        mt_buf_printf(&text, FILE_ENTRY("%s") ",", names[i]);
    mt_buf_puts(&text, "{\"rfilename\": \"model.safetensors\", \"size\": 9, \"blobId\": \"" COMMIT
                       "\", \"lfs\": {\"sha256\": \"" SHA256 "\", \"size\": 7}}]}");
    assert_string_equal(read_list(text.data), "");
    mt_buf_free(&text);
    assert_string_equal(list.commit, COMMIT);
    assert_string_equal(list.other, "model.bin");
    assert_int_equal(list.count, 10);
    for (size_t i = 0; i < 10; i++)
        assert_string_equal(list.files[i].name, wanted[i]);
    assert_true(list.files[2].weights && list.files[7].weights && list.files[8].weights && list.files[9].weights &&
                !list.files[5].weights);
    assert_string_equal(list.files[8].digest, SHA256);
    assert_int_equal(list.files[8].size, 7);
    assert_string_equal(list.files[5].digest, COMMIT);
    assert_int_equal(list.files[5].size, 3);
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
    static const char *const lists[] = {
        LIST(FILE_ENTRY("../../evil.safetensors")),
        LIST(FILE_ENTRY("/etc/evil.json")),
        LIST(FILE_ENTRY("a/../../evil.json")),
        LIST(FILE_ENTRY("..")),
        LIST(FILE_ENTRY("./a.json")),
        LIST(FILE_ENTRY("")),
        LIST(FILE_ENTRY("evil\\u0000.json")),
        LIST(FILE_ENTRY("a//b")),
        LIST(FILE_ENTRY("x/")),
        LIST(FILE_ENTRY("a\\\\evil.json")),
        LIST(FILE_ENTRY("a\\u001b[2J.json")),
    };
    char longest[1024];

    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (!strstr(read_list(lists[i]), "could lead out of its folder"))
            fail_msg("%s", lists[i]);
    snprintf(longest, sizeof(longest), LIST(FILE_ENTRY("%0300d.json")), 1);
    assert_non_null(strstr(read_list(longest), "could lead out of its folder"));
}

static void lists_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *text, *what;
    } rows[] = {
        {"", "is not JSON"},
        {"<html>", "is not JSON"},
        {"[]", "is no list of a model's files"},
        {"{\"sha\": \"..\", \"siblings\": []}", "is no list of a model's files"},
        {"{\"sha\": \"" COMMIT "\"}", "is no list of a model's files"},
        {LIST("1"), "without a name"},
        {LIST("{\"rfilename\": 1}"), "without a name"},
        {LIST(FILE_ENTRY("a.json") "," FILE_ENTRY("a.json")), "twice"},
        {LIST("{\"rfilename\": \"a.json\", \"size\": 1, \"blobId\": \"../x\"}"), "a digest that is none"},
        {LIST("{\"rfilename\": \"a.json\", \"lfs\": {\"sha256\": \"" COMMIT "\", \"size\": 1}}"),
         "a digest that is none"},
        {LIST("{\"rfilename\": \"a.json\", \"size\": -1, \"blobId\": \"" COMMIT "\"}"), "no file has so many"},
        {LIST("{\"rfilename\": \"a.json\", \"size\": 1125899906842625, \"blobId\": \"" COMMIT "\"}"),
         "no file has so many"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!strstr(read_list(rows[i].text), rows[i].what))
            fail_msg("%s: %s", rows[i].text, read_list(rows[i].text));
    assert_string_equal(read_list(LIST("{\"rfilename\": \"a.json\", \"size\": 99999999999999999999, \"blobId\": "
                                       "\"" COMMIT "\"}")),
                        "");
    assert_null(list.files[0].digest); /* a size that is no number is none: it is asked for */
}

static void a_list_without_end_is_refused(void **state)
{
    mt_buf text;

    (void)state;
    mt_buf_init(&text, 1 << 22);
    mt_buf_puts(&text, "{\"sha\": \"" COMMIT "\", \"siblings\": [");
    for (int i = 0; i <= MT_LIMIT_PULL_FILES; i++)
        mt_buf_printf(&text, "%s{\"rfilename\": \"%d.json\"}", i ? "," : "", i);
    mt_buf_puts(&text, "]}");
    assert_non_null(strstr(read_list(text.data), "more than 4096 files"));
    mt_buf_free(&text);
}

static const char *explained(long status, const char *code, const char *token, int64_t wait)
{
    static mt_error err;
    mt_remote remote = {.endpoint = "https://hub.example"};
    mt_hub_name name;

    snprintf(remote.token, sizeof(remote.token), "%s", token);
    assert_true(mt_hub_name_read(&name, "o/n@v1"));
    assert_false(mt_remote_explain(&remote, &name, status, code, wait, &err));
    return err.text;
}

static void refusals_say_what_to_do(void **state)
{
    (void)state;
    assert_string_equal(explained(401, "", "", -1),
                        "\"o/n\" is private, gated or not at https://hub.example: check the name; if it is there, set "
                        "HF_TOKEN to a token that may read it or run: hf auth login");
    assert_string_equal(explained(401, "", "t", -1),
                        "https://hub.example does not accept the token, or has no \"o/n\" for it: check HF_TOKEN and "
                        "the name, or run: hf auth login");
    assert_string_equal(
        explained(401, "GatedRepo", "", -1),
        "\"o/n\" is gated: accept its terms at https://hub.example/o/n, then set HF_TOKEN to a token of "
        "yours or run: hf auth login");
    assert_string_equal(explained(403, "GatedRepo", "t", -1), "\"o/n\" is gated, and the token's owner may not read it "
                                                              "yet: ask for access at https://hub.example/o/n");
    assert_string_equal(explained(403, "", "t", -1),
                        "the token may not read \"o/n\": give it that right, or set HF_TOKEN to another");
    assert_string_equal(explained(404, "RevisionNotFound", "", -1),
                        "\"o/n\" has no revision \"v1\": look at https://hub.example/o/n/tree/main");
    assert_string_equal(explained(404, "RepoNotFound", "t", -1),
                        "there is no \"o/n\" at https://hub.example: check the name");
    assert_string_equal(explained(429, "", "t", 60), "https://hub.example asks to wait 60 seconds: try again then");
    assert_string_equal(explained(503, "", "", -1),
                        "https://hub.example is out of order (status 503): try again later");
    assert_string_equal(explained(418, "", "", -1),
                        "https://hub.example answered with status 418: check that HF_ENDPOINT is a hub's");
}

static const char *variable, *value_of_it;

static char *env(const char *name)
{
    return strcmp(name, "HOME") == 0                 ? (char *)(uintptr_t) "/nowhere"
           : variable && strcmp(name, variable) == 0 ? (char *)(uintptr_t)value_of_it
                                                     : NULL;
}

static const char *remote_of(mt_remote *remote, const char *name, const char *value)
{
    static mt_error err;

    variable = name;
    value_of_it = value;
    return mt_remote_read(remote, env, &err) ? "" : err.text;
}

static void the_environment_tells_where_the_hub_is(void **state)
{
    mt_hub_name name;
    mt_remote remote;
    mt_buf url;

    (void)state;
    assert_string_equal(remote_of(&remote, NULL, NULL), "");
    assert_string_equal(remote.endpoint, "https://huggingface.co");
    assert_string_equal(remote.cache, "/nowhere/.cache/huggingface/hub");
    assert_string_equal(remote.token, "");
    assert_string_equal(remote_of(&remote, "HF_HUB_CACHE", "~/models"), "");
    assert_string_equal(remote.cache, "/nowhere/models");
    assert_string_equal(remote_of(&remote, "HF_TOKEN", " hf_x\n"), "");
    assert_string_equal(remote.token, "hf_x");
    assert_non_null(strstr(remote_of(&remote, "HF_TOKEN", "a\nX-Evil: b"), "\"HF_TOKEN\" holds no token"));
    assert_non_null(strstr(remote_of(&remote, "HF_TOKEN", "h\xc3\xa4"), "\"HF_TOKEN\" holds no token"));
    assert_non_null(strstr(remote_of(&remote, "HF_ENDPOINT", "ftp://x"), "no address of a hub"));
    assert_non_null(strstr(remote_of(&remote, "HF_ENDPOINT", "https://a@b"), "no address of a hub"));
    assert_non_null(strstr(remote_of(&remote, "HF_HUB_OFFLINE", "True"), "HF_HUB_OFFLINE is set"));
    assert_non_null(strstr(remote_of(&remote, "HF_HUB_DOWNLOAD_TIMEOUT", "0"), "from 1 to 86400"));
    assert_string_equal(remote_of(&remote, "HF_ENDPOINT", "http://127.0.0.1:80/hub//"), "");
    assert_true(mt_hub_name_read(&name, "o/n@refs/pr/1"));
    mt_buf_init(&url, 1000);
    mt_remote_list_url(&url, &remote, &name);
    assert_string_equal(url.data, "http://127.0.0.1:80/hub/api/models/o/n/revision/refs%2Fpr%2F1?blobs=true");
    url.len = 0;
    mt_remote_file_url(&url, &remote, &name, COMMIT, "a b/\xc3\xa4?#%.json");
    assert_string_equal(url.data, "http://127.0.0.1:80/hub/o/n/resolve/" COMMIT "/a%20b/%C3%A4%3F%23%25.json");
    mt_buf_free(&url);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(what_motet_reads_is_taken, forget),
    cmocka_unit_test_teardown(names_that_lead_elsewhere_are_refused, forget),
    cmocka_unit_test_teardown(lists_that_are_none_are_refused, forget),
    cmocka_unit_test_teardown(a_list_without_end_is_refused, forget),
    cmocka_unit_test(refusals_say_what_to_do),
    cmocka_unit_test(the_environment_tells_where_the_hub_is),
};

UNIT_MAIN(tests)
