/* Config files: their lines, who counts more, and that what is generated from the table can be read back. */
#include "folder.h"

#include "options/limits.h"
#include "options/options.h"
#include "options/options_table.h"

enum { WORDS = 16 };

static const char *home, *xdg, *named, *threads;

static char *fake_env(const char *name)
{
    static const struct {
        const char *name, **value;
    } variables[] = {{"HOME", &home}, {"XDG_CONFIG_HOME", &xdg}, {"MOTET_CONFIG", &named}, {"MOTET_THREADS", &threads}};

    for (size_t i = 0; i < MT_COUNT(variables); i++)
        if (strcmp(variables[i].name, name) == 0)
            return (char *)(uintptr_t)*variables[i].value;
    return NULL;
}

static bool parse(mt_options *opt, const char *line, mt_error *err)
{
    static char copy[1024];
    char *argv[WORDS] = {copy};
    int argc = 1;

    snprintf(copy, sizeof(copy), "%s", line);
    for (char *space = copy; (space = strchr(space, ' ')); *space++ = '\0') {
        assert_true(argc < WORDS);
        argv[argc++] = space + 1;
    }
    return mt_options_parse(opt, argc, argv, fake_env, err);
}

static const char *path_of(const char *name)
{
    static char path[4][128];
    static size_t next;
    char *p = path[next++ % 4];

    snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
    return p;
}

/* Parses motet serve with what the file "a.conf" holds. */
static bool parse_text(mt_options *opt, const char *text, mt_error *err)
{
    put("a.conf", text);
    named = path_of("a.conf");
    return parse(opt, "motet serve d", err);
}

static void expect_error(const char *text, const char *sentence)
{
    char wanted[1024];
    mt_options opt;
    mt_error err = {0};

    assert_false(parse_text(&opt, text, &err));
    snprintf(wanted, sizeof(wanted), "%s%s", named, sentence);
    assert_string_equal(err.text, wanted);
    mt_options_free(&opt);
}

static void values_of_all_kinds(void **state)
{
    mt_options opt;
    mt_error err;

    (void)state;
    assert_true(parse_text(&opt,
                           "# a comment\n\n  \t# another\nport = 8123\r\n\tmemory=3G  \nany-model\n"
                           "media-allow-private = no\nalias = one\nalias=two words\nprecision = reference\n"
                           "default-temperature = 0.5\nhost = \"unix:/a \\\"b\\\" \\\\ # c\"\napi-key = a#b\n"
                           "served-name = \"\"",
                           &err));
    assert_int_equal(opt.port, 8123);
    assert_int_equal(opt.memory, (int64_t)3 << 30);
    assert_true(opt.any_model);
    assert_false(opt.media_allow_private);
    assert_int_equal(opt.aliases.count, 2);
    assert_string_equal(opt.aliases.at[0], "one");
    assert_string_equal(opt.aliases.at[1], "two words");
    assert_int_equal(opt.precision, MT_PRECISION_REFERENCE);
    assert_true(opt.default_temperature == 0.5);
    assert_string_equal(opt.host, "unix:/a \"b\" \\ # c");
    assert_string_equal(opt.api_keys.at[0], "a#b");
    assert_string_equal(opt.served_name, "");
    assert_int_equal(opt.read.count, 1);
    mt_options_free(&opt);
    assert_true(parse_text(&opt, "", &err));
    mt_options_free(&opt);
}

static void sentences(void **state)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"port = 1\nprot = 8000\n", ":2: \"prot\" is not an option: did you mean \"port\"?"},
        {"\n\nfoo bar\n", ":3: \"foo bar\" is no setting: write name = value"},
        {"= 3", ":1: \"= 3\" is no setting: write name = value"},
        {"max-model-len = 1", ":1: \"max-model-len\" is not an option of motet but of vLLM: use --context N"},
        {"dance = 1", ":1: \"dance\" is not an option of motet serve: see motet help config"},
        {"image = a.png", ":1: \"image\" is not an option of motet serve: see motet help config"},
        {"config = b", ":1: \"config\" is not an option of motet serve: see motet help config"},
        {"check", ":1: \"check\" is not an option: did you mean \"chunk\"?"},
        {"help", ":1: \"help\" is not an option of motet serve: see motet help config"},
        {"port", ":1: \"port\" needs a value: port = N"},
        {"port =", ":1: \"port\" has no value: write one, or \"\" for an empty one"},
        {"# x\nport = many", ":2: port \"many\" is not a whole number: use 0 to 65535"},
        {"port = 70000", ":1: port 70000 is out of range: use 0 to 65535"},
        {"port = 1 # one", ":1: \"# one\" may be a comment: give it a line of its own, or put the value in quotes"},
        {"any-model = maybe", ":1: any-model \"maybe\" is neither yes nor no: use one of them"},
        {"port = 1\nport = 2", ":2: \"port\" stands in line 1 already: take one of them out"},
        {"store = ~/x", ":1: \"~/x\" begins with ~, which only shells understand: write the whole path"},
        {"host = \"a", ":1: a quote is not closed: end the value with \""},
        {"host = \"a\\", ":1: only \\\" and \\\\ may follow \"\\\" in quotes: write \\\\ for one"},
        {"host = \"a\\n\"", ":1: only \\\" and \\\\ may follow \"\\\" in quotes: write \\\\ for one"},
        {"host = \"a\" b", ":1: \" b\" stands behind the closing quote: take it away"},
        {"[serve]", ":1: \"[serve]\" is not an option of motet serve: see motet help config"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        expect_error(rows[i].text, rows[i].sentence);
}

static void who_counts_more(void **state)
{
    mt_options opt;
    mt_error err;
    char line[1024];

    (void)state;
    put("a.conf", "threads = 3\nport = 1\nalias = a\nalias = b\nprecision = reference\n");
    put("b.conf", "threads = 4\nalias = c\nany-model = no\nlog-level = debug");
    named = path_of("a.conf");
    assert_true(parse(&opt, "motet serve d", &err));
    assert_int_equal(opt.threads, 3);
    mt_options_free(&opt);
    threads = "5";
    assert_true(parse(&opt, "motet serve d --alias x", &err));
    assert_int_equal(opt.threads, 5);
    assert_int_equal(opt.port, 1);
    assert_int_equal(opt.aliases.count, 1);
    assert_string_equal(opt.aliases.at[0], "x");
    mt_options_free(&opt);
    assert_true(parse(&opt, "motet serve d --threads 6", &err));
    assert_int_equal(opt.threads, 6);
    mt_options_free(&opt);
    /* the line's files instead of the environment's, and the last of them counts most */
    threads = NULL;
    named = "/no/such/file";
    snprintf(line, sizeof(line), "motet serve d --config %s --config %s", path_of("a.conf"), path_of("b.conf"));
    assert_true(parse(&opt, line, &err));
    assert_int_equal(opt.threads, 4);
    assert_int_equal(opt.port, 1);
    assert_int_equal(opt.aliases.count, 1);
    assert_string_equal(opt.aliases.at[0], "c");
    assert_int_equal(opt.read.count, 2);
    mt_options_free(&opt);
    /* other commands have what is theirs */
    snprintf(line, sizeof(line), "motet run d --token-ids 1 --config %s", path_of("b.conf"));
    assert_true(parse(&opt, line, &err));
    assert_int_equal(opt.threads, 4);
    assert_int_equal(opt.log_level, MT_LOG_DEBUG);
    assert_int_equal(opt.port, 8000);
    mt_options_free(&opt);
    /* a wrong value that does not count is wrong all the same */
    put("a.conf", "threads = x");
    snprintf(line, sizeof(line), "motet serve d --threads 1 --config %s", path_of("a.conf"));
    assert_false(parse(&opt, line, &err));
    mt_options_free(&opt);
    assert_false(parse(&opt, "motet serve d", &err)); /* the environment's file is not there */
    mt_options_free(&opt);
    assert_true(parse(&opt, "motet serve --help", &err));
    mt_options_free(&opt);
}

static void the_users_own_file(void **state)
{
    mt_options opt;
    mt_error err;

    (void)state;
    named = NULL;
    put("home/.config/motet.conf", "port = 11");
    put("xdg/motet.conf", "port = 12");
    home = path_of("home");
    assert_true(parse(&opt, "motet serve d", &err));
    assert_int_equal(opt.port, 11);
    mt_options_free(&opt);
    xdg = path_of("xdg");
    assert_true(parse(&opt, "motet serve d", &err));
    assert_int_equal(opt.port, 12);
    mt_options_free(&opt);
    xdg = path_of("none"); /* need not be there */
    assert_true(parse(&opt, "motet serve d", &err));
    mt_options_free(&opt);
    xdg = "relative"; /* which the standard says to ignore */
    assert_true(parse(&opt, "motet serve d", &err));
    assert_int_equal(opt.port, 11);
    mt_options_free(&opt);
    home = xdg = NULL;
}

/* Of a file with every setting, the lines of those that have a default, without their #. */
static void take_defaults(mt_buf *out, const char *all)
{
    for (size_t i = 0; i < mt_option_count; i++) {
        const mt_option_row *row = &mt_option_rows[i];
        char start[64];
        const char *line;

        if (!mt_option_in_file(row))
            continue;
        snprintf(start, sizeof(start), "\n#%s = ", row->name);
        line = strstr(all, start);
        assert_non_null(line);
        if (row->type != MT_OPTION_TEXT && row->type != MT_OPTION_LIST && row->type != MT_OPTION_NUMBER &&
            row->type != MT_OPTION_TIME)
            mt_buf_printf(out, "%.*s\n", (int)strcspn(line + 2, "\n"), line + 2);
    }
}

static void the_generated_file_can_be_read(void **state)
{
    mt_options opt, plain;
    mt_buf all, out;
    mt_error err;

    (void)state;
    mt_buf_init(&all, 1 << 20);
    mt_buf_init(&out, 1 << 20);
    mt_options_conf(&all);
    assert_true(parse_text(&plain, all.data, &err)); /* nothing but comments */
    take_defaults(&out, all.data);
    if (!parse_text(&opt, out.data, &err))
        fail_msg("%s", err.text);
    assert_int_equal(opt.port, plain.port);
    assert_int_equal(opt.max_body, plain.max_body);
    assert_int_equal(opt.speculate, plain.speculate);
    assert_int_equal(opt.media_max_bytes, plain.media_max_bytes);
    assert_int_equal(opt.any_model, plain.any_model);
    assert_int_equal(opt.cpu_mask, plain.cpu_mask);
    mt_options_free(&opt);
    mt_options_free(&plain);
    mt_buf_free(&all);
    mt_buf_free(&out);
}

static void odd_files(void **state)
{
    char text[] = "port = 1\n";
    mt_options opt;
    mt_error err;
    FILE *f;

    (void)state;
    put("a.conf", "");
    f = fopen(path_of("a.conf"), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, sizeof(text), f), sizeof(text)); /* the NUL with it */
    fclose(f);
    named = path_of("a.conf");
    assert_false(parse(&opt, "motet serve d", &err));
    assert_non_null(strstr(err.text, "holds a byte of value 0"));
    mt_options_free(&opt);
    for (int more = 0; more <= 1; more++) {
        f = fopen(path_of("a.conf"), "w");
        assert_non_null(f);
        fprintf(f, "#%*s", (int)MT_LIMIT_OPTION_FILE - 1 + more, "");
        fclose(f);
        assert_int_equal(parse(&opt, "motet serve d", &err), !more);
        assert_true(!more || strstr(err.text, "is it a config file?"));
        mt_options_free(&opt);
    }
    named = "/dev/zero"; /* which has no end */
    assert_false(parse(&opt, "motet serve d", &err));
    assert_non_null(strstr(err.text, "is it a config file?"));
    mt_options_free(&opt);
    named = folder;
    assert_false(parse(&opt, "motet serve d", &err));
    mt_options_free(&opt);
    named = NULL;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(values_of_all_kinds, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(sentences, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(who_counts_more, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(the_users_own_file, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(the_generated_file_can_be_read, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(odd_files, make_folder, remove_folder),
};
UNIT_MAIN(tests)
