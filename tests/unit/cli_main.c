/* The program itself: exit statuses, and what goes to which stream. */
#include "unit.h"

/* Runs motet with arguments and redirections as a shell reads them; returns its exit status. */
static int run(const char *arguments, char *text, size_t size)
{
    const char *program = getenv("MOTET_PROGRAM");
    char command[512];
    size_t len;
    FILE *pipe;
    int status;

    assert_non_null(program);
    snprintf(command, sizeof(command), "ASAN_OPTIONS=detect_leaks=0 '%s' %s", program, arguments);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    len = fread(text, 1, size - 1, pipe);
    text[len] = '\0';
    status = pclose(pipe);
    return WEXITSTATUS(status);
}

static void help_and_version_go_to_standard_output(void **state)
{
    char text[1 << 15];

    (void)state;
    assert_int_equal(run("--version 2>/dev/null", text, sizeof(text)), 0);
    assert_memory_equal(text, "motet " MT_VERSION " ", strlen("motet " MT_VERSION " "));
    assert_non_null(strstr(text, "\ncommit: "));
    assert_non_null(strstr(text, "\ncompiler: "));
    assert_non_null(strstr(text, "\ndevices: "));
    assert_non_null(strstr(text, "\nprocessor: "));
    assert_int_equal(run("--help 2>/dev/null", text, sizeof(text)), 0);
    assert_non_null(strstr(text, "usage: motet COMMAND"));
    assert_int_equal(run("run --help 2>/dev/null", text, sizeof(text)), 0);
    assert_memory_equal(text, "motet run DIR", 13);
    assert_int_equal(run("help info 2>/dev/null", text, sizeof(text)), 0);
    assert_memory_equal(text, "motet info DIR", 14);
}

static void wrong_usage_is_status_2(void **state)
{
    char text[4096];

    (void)state;
    assert_int_equal(run("", text, sizeof(text)), 2);
    assert_int_equal(run("rum 2>&1 >/dev/null", text, sizeof(text)), 2);
    assert_string_equal(text, "motet: \"rum\" is not a command: did you mean \"run\"?\n");
    assert_int_equal(run("info 2>/dev/null", text, sizeof(text)), 2);
    assert_string_equal(text, "");
}

static void what_fails_is_status_1(void **state)
{
    char text[4096];

    (void)state;
    assert_int_equal(run("info /no/such/folder 2>/dev/null", text, sizeof(text)), 1);
    assert_int_equal(run("run /no/such/folder --token-ids 1 2>/dev/null", text, sizeof(text)), 1);
    assert_int_equal(run("help 2>&1 >/dev/full", text, sizeof(text)), 1);
    assert_string_equal(text, "motet: cannot write the output: No space left on device\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(help_and_version_go_to_standard_output),
    cmocka_unit_test(wrong_usage_is_status_2),
    cmocka_unit_test(what_fails_is_status_1),
};
UNIT_MAIN(tests)
