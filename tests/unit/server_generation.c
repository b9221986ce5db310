#include "unit.h"

#include <sys/stat.h>

#include "sample/limits.h"
#include "server/prepare/generation.h"

static char folder[] = "/tmp/motet-generation-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    remove(path);
    if (!text)
        return;
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static bool read_all(mt_generation_config *g, const char *config, const char *generation, const char *tokenizer,
                     mt_error *err)
{
    mt_config *c = mt_config_parse(config, strlen(config), err);
    bool ok;

    assert_non_null(c);
    write_file("generation_config.json", generation);
    write_file("tokenizer_config.json", tokenizer);
    ok = mt_generation_read(g, folder, c, NULL, err);
    mt_config_free(c);
    return ok;
}

static void no_file_means_plain_sampling(void **state)
{
    mt_generation_config g;
    mt_error err;

    (void)state;
    assert_true(read_all(&g, "{\"eos_token_id\":null}", NULL, NULL, &err));
    assert_int_equal(g.eos_count, 0);
    assert_true(g.defaults.sampling.temperature == 1.0f && g.defaults.sampling.top_p == 1.0f &&
                g.defaults.sampling.top_k == 0);
}

static void a_limit_of_tokens_counts(void **state)
{
    mt_generation_config g;
    mt_error err;

    (void)state;
    assert_true(read_all(&g, "{}", "{\"max_new_tokens\":300}", NULL, &err));
    assert_int_equal(g.defaults.max_tokens, 300);
    assert_true(read_all(&g, "{}", "{\"max_new_tokens\":null}", NULL, &err));
    assert_int_equal(g.defaults.max_tokens, 0);
    assert_true(read_all(&g, "{}", "{\"max_new_tokens\":99999999999}", NULL, &err));
    assert_int_equal(g.defaults.max_tokens, MT_LIMIT_CONTEXT);
    assert_false(read_all(&g, "{}", "{\"max_new_tokens\":-1}", NULL, &err));
}

static void ends_are_the_union(void **state)
{
    mt_generation_config g;
    mt_error err;

    (void)state;
    assert_true(read_all(&g, "{\"eos_token_id\":5,\"text_config\":{\"eos_token_id\":[6,5]}}",
                         "{\"eos_token_id\":[7,5]}", "{\"eos_token\":\"</s>\"}", &err));
    assert_int_equal(g.eos_count, 3);
    assert_int_equal(g.eos[0], 5);
    assert_int_equal(g.eos[1], 6);
    assert_int_equal(g.eos[2], 7);
}

static void defaults_come_from_the_file(void **state)
{
    mt_generation_config g;
    mt_error err;

    (void)state;
    assert_true(
        read_all(&g, "{}", "{\"temperature\":0.6,\"top_p\":0.9,\"top_k\":20,\"repetition_penalty\":1.1}", NULL, &err));
    assert_true(g.defaults.sampling.temperature == 0.6f && g.defaults.sampling.top_p == 0.9f &&
                g.defaults.sampling.repetition_penalty == 1.1f);
    assert_int_equal(g.defaults.sampling.top_k, 20);
    assert_true(read_all(&g, "{}", "{\"temperature\":0.6,\"do_sample\":false}", NULL, &err));
    assert_true(g.defaults.sampling.temperature == 0.0f);
    assert_true(read_all(&g, "{}", "{\"temperature\":2.5}", NULL, &err));
    assert_true(g.defaults.sampling.temperature == 2.5f);
}

static void a_broken_file_is_said(void **state)
{
    mt_generation_config g;
    mt_error err;

    (void)state;
    assert_false(read_all(&g, "{}", "{\"temperature\":", NULL, &err));
    assert_non_null(strstr(err.text, "generation_config.json"));
    assert_false(read_all(&g, "{}", "{\"temperature\":-3}", NULL, &err));
    assert_non_null(strstr(err.text, "temperature"));
}

/* Those of requests. */
static void ranges_have_their_ends(void **state)
{
    static const struct {
        const char *text;
        bool ok;
    } cases[] = {{"{\"temperature\":100,\"repetition_penalty\":100,\"top_k\":-1}", true},
                 {"{\"temperature\":0,\"repetition_penalty\":0.01,\"top_p\":0,\"min_p\":0}", true},
                 {"{\"top_p\":1,\"min_p\":1,\"top_k\":2147483647}", true},
                 {"{\"temperature\":100.5}", false},
                 {"{\"repetition_penalty\":100.5}", false},
                 {"{\"repetition_penalty\":0.005}", false},
                 {"{\"top_p\":1.5}", false},
                 {"{\"min_p\":1.5}", false},
                 {"{\"top_k\":-2}", false}};
    mt_generation_config g;
    mt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (read_all(&g, "{}", cases[i].text, NULL, &err) != cases[i].ok)
            fail_msg("%s", cases[i].text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranges_have_their_ends),      cmocka_unit_test(no_file_means_plain_sampling),
    cmocka_unit_test(a_limit_of_tokens_counts),    cmocka_unit_test(ends_are_the_union),
    cmocka_unit_test(defaults_come_from_the_file), cmocka_unit_test(a_broken_file_is_said),
};

int main(void)
{
    int status;

    if (!mkdtemp(folder))
        return 1;
    status = unit_main(__FILE__, tests, sizeof(tests) / sizeof(tests[0]));
    write_file("generation_config.json", NULL);
    write_file("tokenizer_config.json", NULL);
    rmdir(folder);
    return status;
}
