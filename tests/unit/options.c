#include "unit.h"

#include "base/file.h"
#include "kernels/kernels.h"
#include "options/options.h"

enum { WORDS = 24 };

static const char *env_name, *env_value;

static char *fake_env(const char *name)
{
    static char nothing[] = "/dev/null";

    /* what this machine's own config files say is no business of tests */
    if (!(env_name && strcmp(env_name, name) == 0) && strcmp(name, "MOTET_CONFIG") == 0)
        return nothing;
    return env_name && strcmp(name, env_name) == 0 ? (char *)(uintptr_t)env_value : NULL;
}

/* Parses a line of words separated by single spaces. The words live until the next call. */
static bool parse(mt_options *opt, const char *line, mt_error *err)
{
    static char copy[512];
    char *argv[WORDS] = {copy};
    int argc = 1;
    bool ok;

    snprintf(copy, sizeof(copy), "%s", line);
    for (char *space = copy; (space = strchr(space, ' ')); *space++ = '\0') {
        assert_true(argc < WORDS);
        argv[argc++] = space + 1;
    }
    ok = mt_options_parse(opt, argc, argv, fake_env, err);
    mt_options_free(opt); /* nothing that is looked at came from a file */
    return ok;
}

static void expect_error(const char *line, const char *sentence)
{
    mt_options opt;
    mt_error err = {0};

    assert_false(parse(&opt, line, &err));
    assert_int_not_equal(err.code, MT_OK);
    assert_string_equal(err.text, sentence);
}

static void defaults(void **state)
{
    mt_options opt;
    mt_error err;

    (void)state;
    assert_true(parse(&opt, "motet run dir --token-ids 1", &err));
    assert_int_equal(opt.command, MT_COMMAND_RUN);
    assert_string_equal(opt.dir, "dir");
    assert_string_equal(opt.token_ids, "1");
    assert_int_equal(opt.threads, 0);
    assert_int_equal(opt.precision, MT_PRECISION_FAST);
    assert_int_equal(opt.cpu_mask, ~0u);
    assert_int_equal(opt.max_tokens, 0);
    assert_int_equal(opt.logprobs, 0);
    assert_int_equal(opt.context, 0);
    assert_int_equal(opt.chunk, 0);
    assert_int_equal(opt.log_level, MT_LOG_WARN); /* of a server: info */
    assert_int_equal(opt.seed, -1);
    assert_int_equal(opt.think, MT_THINK_AUTO);
    assert_int_equal(opt.log_format, MT_LOG_TEXT);
    assert_false(opt.json || opt.help || opt.version || opt.help_form);
}

static void values_in_both_forms_and_any_order(void **state)
{
    mt_options opt;
    mt_error err;

    (void)state;
    assert_true(
        parse(&opt, "motet run --threads 7 --precision=reference dir --json --token-ids=1,2,3 --threads 256", &err));
    assert_int_equal(opt.threads, 256);
    assert_int_equal(opt.precision, MT_PRECISION_REFERENCE);
    assert_true(opt.json);
    assert_string_equal(opt.token_ids, "1,2,3");
    assert_true(parse(&opt, "motet info --log-level debug --log-format json -- --odd-folder", &err));
    assert_string_equal(opt.dir, "--odd-folder");
    assert_int_equal(opt.log_level, MT_LOG_DEBUG);
    assert_int_equal(opt.log_format, MT_LOG_JSON);
    assert_true(parse(&opt, "motet run d --token-ids 1 --cpu-mask portable --logprobs 20 --chunk 7 --context 9", &err));
    assert_int_equal(opt.cpu_mask, 0);
    assert_int_equal(opt.logprobs, 20);
    assert_int_equal(opt.chunk, 7);
    assert_int_equal(opt.context, 9);
    assert_true(parse(&opt, "motet info -", &err));
    assert_string_equal(opt.dir, "-");
}

static void help_and_version(void **state)
{
    mt_options opt;
    mt_error err;

    (void)state;
    assert_true(parse(&opt, "motet", &err));
    assert_int_equal(opt.command, MT_COMMAND_NONE);
    assert_true(parse(&opt, "motet --help", &err) && opt.help);
    assert_true(parse(&opt, "motet --version", &err) && opt.version);
    assert_true(parse(&opt, "motet run --help", &err) && opt.help);
    assert_true(parse(&opt, "motet -h", &err) && opt.help && !opt.version);
    assert_true(parse(&opt, "motet -v", &err) && opt.version && !opt.help);
    assert_true(parse(&opt, "motet -h -v", &err) && opt.version && opt.help);
    assert_true(parse(&opt, "motet -v -h", &err) && opt.version && opt.help);
    assert_false(parse(&opt, "motet run -v", &err) || parse(&opt, "motet -w", &err));
    assert_true(parse(&opt, "motet help run", &err));
    assert_int_equal(opt.topic, MT_COMMAND_RUN);
    assert_true(parse(&opt, "motet help --as markdown", &err));
    assert_int_equal(opt.help_form, MT_HELP_MARKDOWN);
    assert_true(parse(&opt, "motet help config", &err));
    assert_int_equal(opt.help_form, MT_HELP_CONF);
}

static void the_environment_counts_less_than_the_line(void **state)
{
    mt_options opt;
    mt_error err;

    (void)state;
    env_name = "MOTET_THREADS";
    env_value = "5";
    assert_true(parse(&opt, "motet run d --token-ids 1", &err));
    assert_int_equal(opt.threads, 5);
    assert_true(parse(&opt, "motet run d --token-ids 1 --threads 3", &err));
    assert_int_equal(opt.threads, 3);
    env_value = "many";
    expect_error("motet run d --token-ids 1", "MOTET_THREADS \"many\" is not a whole number: use 0 to 256");
    assert_true(parse(&opt, "motet info d", &err)); /* which has no threads */
    env_value = "";
    assert_true(parse(&opt, "motet run d --token-ids 1", &err));
    assert_int_equal(opt.threads, 0);
    env_name = NULL;
}

static void sentences(void **state)
{
    static const struct {
        const char *line, *sentence;
    } rows[] = {
        {"motet rum d", "\"rum\" is not a command: did you mean \"run\"?"},
        {"motet dance", "\"dance\" is not a command: see motet help"},
        {"motet help dance", "\"dance\" is not a command: see motet help"},
        {"motet --threads 2", "\"--threads\" stands before a command: write motet chat --threads"},
        {"motet --nonsense", "\"--nonsense\" is not an option: see motet --help"},
        {"motet --versoin", "\"--versoin\" is not an option: did you mean \"--version\"?"},
        {"motet run d --thread 2", "\"--thread\" is not an option: did you mean \"--threads\"?"},
        {"motet run d --nonsense=3", "\"--nonsense\" is not an option: see motet run --help"},
        {"motet run d -x 2", "\"-x\" is not an option: see motet run --help"},
        {"motet info d --token-ids 1", "\"--token-ids\" is not an option of \"info\": it belongs to motet run"},
        {"motet info d --version", "\"--version\" is not an option of \"info\": it belongs to motet"},
        {"motet run d --threads", "\"--threads\" needs a value: --threads N"},
        {"motet run d --precision", "\"--precision\" needs a value: --precision fast|reference"},
        {"motet run d --threads two", "--threads \"two\" is not a whole number: use 0 to 256"},
        {"motet run d --threads 2x", "--threads \"2x\" is not a whole number: use 0 to 256"},
        {"motet run d --threads=", "--threads \"\" is not a whole number: use 0 to 256"},
        {"motet run d --threads 257", "--threads 257 is out of range: use 0 to 256"},
        {"motet run d --threads -1", "--threads -1 is out of range: use 0 to 256"},
        {"motet run d --threads 99999999999999999999", "--threads 99999999999999999999 is out of range: use 0 to 256"},
        {"motet run d --max-tokens -1", "--max-tokens -1 is out of range: use 0 to 16777216"},
        {"motet run d --logprobs 21", "--logprobs 21 is out of range: use 0 to 20"},
        {"motet run d --precision fats", "--precision \"fats\" is not one of the choices: use fast|reference"},
        {"motet run d --kv-bits 5", "--kv-bits \"5\" is not one of the choices: use 16|8|4"},
        {"motet run d --precision fast|", "--precision \"fast|\" is not one of the choices: use fast|reference"},
        {"motet run d --cpu-mask mmx",
         "--cpu-mask \"mmx\" names no instruction sets: use all, portable, or a list such as neon,dotprod or avx2"},
        {"motet run d --json=yes", "\"--json\" takes no value: leave \"=yes\" out"},
        {"motet info", "\"info\" needs a checkpoint folder: motet info DIR"},
        {"motet list a", "\"a\" is one argument too many: motet list"},
        {"motet pull", "\"pull\" needs a name: motet pull NAME[@REVISION]"},
        {"motet info a b", "\"b\" is one argument too many: motet info DIR"},
        {"motet help run info", "\"info\" is one argument too many: motet help [COMMAND]"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        expect_error(rows[i].line, rows[i].sentence);
}

static void options_of_other_programs(void **state)
{
    static const struct {
        const char *line, *sentence;
    } rows[] = {
        {"motet serve d --max-model-len 4096",
         "\"--max-model-len\" is not an option of motet but of vLLM: use --context N"},
        {"motet serve d --max_model_len=4096",
         "\"--max_model_len\" is not an option of motet but of vLLM: use --context N"},
        {"motet --max-model-len 4096", "\"--max-model-len\" is not an option of motet but of vLLM: use --context N"},
        {"motet serve d -c 4096",
         "\"-c\" is not an option of motet but of llama.cpp: use --context N (of each answer, not "
         "of all slots together)"},
        {"motet serve d --mem-fraction-static 0.8",
         "\"--mem-fraction-static\" is not an option of motet but of SGLang: use --memory SIZE (bytes for weights, "
         "cache and all else together, such as 40G)"},
        {"motet serve d --tp 2",
         "\"--tp\" is not an option of motet but of SGLang: take a model that fits on one GPU, or "
         "start several processes on CPUs with mpirun (docs/scale.md)"},
        {"motet serve d --enable-lora", "\"--enable-lora\" is not an option of motet but of vLLM and SGLang: merge the "
                                        "adapter into the weights beforehand: motet has no LoRA adapters"},
        {"motet serve d --no-host",
         "\"--no-host\" is not an option of motet but of llama.cpp: leave it out: a model is on "
         "one device, with all its weights and its cache"},
        {"motet run d -t 2", "\"-t\" is not an option of motet but of llama.cpp: use --threads N"},
        {"motet run d --temp 1",
         "\"--temp\" is not an option of motet but of llama.cpp and mlx-lm: use --temperature X"},
        {"motet serve d --continuous-batching",
         "\"--continuous-batching\" is not an option of motet but of vllm-mlx: leave it out: requests are always "
         "batched"},
        {"motet serve d --trust-remote-code",
         "\"--trust-remote-code\" is not an option of motet but of vLLM, SGLang, vllm-mlx, "
         "mlx-lm and mlx-vlm: leave it out: motet runs no code of checkpoints"},
        /* one that programs mean different things by */
        {"motet serve d --served-model-name a",
         "\"--served-model-name\" is not an option of motet but of vLLM: use "
         "--served-name A --alias B; of SGLang and vllm-mlx: use --served-name NAME"},
        /* one that motet has for another command */
        {"motet serve d --max-tokens 9",
         "\"--max-tokens\" is not an option of motet but of vllm-mlx, mlx-lm and mlx-vlm: "
         "use --default-max-tokens N (where a request has none)"},
        {"motet bench d --temp 1", "\"--temp\" is not an option: did you mean \"--help\"?"}, /* of no row for bench */
        {"motet serve d --max-model", "\"--max-model\" is not an option: did you mean \"--any-model\"?"},
        {"motet serve d --max-model-length", "\"--max-model-length\" is not an option: see motet serve --help"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        expect_error(rows[i].line, rows[i].sentence);
}

static void sizes_numbers_and_lists(void **state)
{
    mt_options opt;
    mt_error err;

    (void)state;
    env_name = "MOTET_API_KEY";
    env_value = "from-environment";
    assert_true(parse(&opt, "motet serve d --memory 3G --max-body 64k --default-temperature 0.25", &err));
    assert_int_equal(opt.memory, (int64_t)3 << 30);
    assert_int_equal(opt.max_body, 65536);
    assert_true(opt.default_temperature == 0.25);
    assert_true(opt.default_top_p != opt.default_top_p); /* not given */
    assert_int_equal(opt.api_keys.count, 1);
    assert_string_equal(opt.api_keys.at[0], "from-environment");
    assert_true(parse(&opt, "motet serve d --api-key a --api-key b --alias=x", &err));
    assert_int_equal(opt.api_keys.count, 2);
    assert_string_equal(opt.api_keys.at[1], "b");
    assert_string_equal(opt.aliases.at[0], "x");
    env_name = NULL;
    expect_error("motet serve d --memory 3X",
                 "--memory \"3X\" is not a size: use a number of bytes, such as 512M or 64G");
    expect_error("motet serve d --memory -3",
                 "--memory \"-3\" is not a size: use a number of bytes, such as 512M or 64G");
    expect_error("motet serve d --max-body 99999999T", "--max-body 99999999T is out of range: use 1K to 64M");
    expect_error("motet serve d --default-top-p 1.5", "--default-top-p 1.5 is out of range: use 0 to 1");
    expect_error(
        "motet serve d --alias 1 --alias 2 --alias=3 --alias=4 --alias=5 --alias=6 --alias=7 --alias=8 --alias=9 "
        "--alias=10 --alias=11 --alias=12 --alias=13 --alias=14 --alias=15 --alias=16 --alias=17",
        "\"--alias\" is given more than 16 times: leave some out");
    expect_error("motet serve d --default-top-p nan", "--default-top-p \"nan\" is not a number: use 0 to 1");
}

static void what_media_may_cost(void **state)
{
    mt_media_limits standard = mt_media_limits_default(), got;
    mt_options opt;
    mt_error err;

    (void)state;
    assert_true(parse(&opt, "motet serve d", &err));
    got = mt_options_media(&opt);
    assert_int_equal(got.bytes, standard.bytes);
    assert_int_equal(got.pixels, standard.pixels);
    assert_int_equal(got.video_pixels, standard.video_pixels);
    assert_int_equal(got.video_frames, standard.video_frames);
    assert_true(got.image_seconds == standard.image_seconds && got.video_seconds == standard.video_seconds);
    assert_int_equal(got.fetch_ms, standard.fetch_ms);
    assert_false(got.allow_private);
    assert_null(got.root);
    assert_true(parse(&opt, "motet serve d --media-root /m --media-allow-private --media-max-pixels 9", &err));
    got = mt_options_media(&opt);
    assert_true(got.allow_private);
    assert_int_equal(got.pixels, 9);
    assert_string_equal(got.root, "/m");
}

static void help_names_what_there_is(void **state)
{
    mt_buf out;

    (void)state;
    mt_buf_init(&out, 1 << 20);
    mt_options_help(&out, MT_COMMAND_NONE);
    assert_non_null(strstr(out.data, "  run DIR "));
    assert_non_null(strstr(out.data, "--version"));
    assert_null(strstr(out.data, "--threads"));
    mt_buf_free(&out);
    mt_options_help(&out, MT_COMMAND_RUN);
    assert_non_null(strstr(out.data, "motet run DIR [PROMPT] [options]: answer one prompt"));
    assert_non_null(strstr(out.data, "  --max-tokens N            tokens to generate at most; 0: what the context "));
    assert_non_null(strstr(out.data, "  MOTET_THREADS             --threads\n"));
    mt_buf_free(&out);
}

static void the_document_is_current(void **state)
{
    mt_buf wanted, found;
    mt_error err;

    (void)state;
    mt_buf_init(&wanted, 1 << 20);
    mt_buf_init(&found, 1 << 20);
    mt_options_markdown(&wanted);
    assert_true(mt_file_read(&found, "docs/options.md", &err));
    if (strcmp(found.data, wanted.data) != 0)
        fail_msg("docs/options.md is not what options.def says: run make docs");
    mt_buf_free(&wanted);
    mt_buf_free(&found);
}

/* Every table of other programs' options stands in the page, as a whole, and the page has no others. */
static void the_page_of_other_programs_is_current(void **state)
{
    static const char end[] = "<!-- end -->\n";
    mt_buf wanted, page;
    mt_error err;
    size_t tables = 0;

    (void)state;
    mt_buf_init(&wanted, 1 << 20);
    mt_buf_init(&page, 1 << 20);
    mt_options_foreign_markdown(&wanted);
    assert_true(mt_file_read(&page, "docs/coming-from.md", &err));
    for (char *at = wanted.data, *next; *at; at = next, tables++) {
        char kept;

        next = strstr(at, end) + strlen(end);
        kept = *next;
        *next = '\0';
        if (!strstr(page.data, at))
            fail_msg("docs/coming-from.md is not what options_foreign.def says: run make docs");
        *next = kept;
    }
    for (const char *at = page.data; (at = strstr(at, end)); at++)
        tables--;
    assert_int_equal(tables, 0);
    mt_buf_free(&wanted);
    mt_buf_free(&page);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(defaults),
    cmocka_unit_test(values_in_both_forms_and_any_order),
    cmocka_unit_test(help_and_version),
    cmocka_unit_test(the_environment_counts_less_than_the_line),
    cmocka_unit_test(sentences),
    cmocka_unit_test(options_of_other_programs),
    cmocka_unit_test(sizes_numbers_and_lists),
    cmocka_unit_test(what_media_may_cost),
    cmocka_unit_test(help_names_what_there_is),
    cmocka_unit_test(the_document_is_current),
    cmocka_unit_test(the_page_of_other_programs_is_current),
};
UNIT_MAIN(tests)
