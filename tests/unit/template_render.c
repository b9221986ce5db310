/* motet render: what it prints, and its exit codes. */
#include "folder.h"

/* A search for leaks takes seconds: the program is searched once for each way to end. */
static const char *environment(int code)
{
    static bool searched[3];
    const bool again = searched[code];

    searched[code] = true;
    return again ? "ASAN_OPTIONS=detect_leaks=0" : "";
}

/* The exit code, which is expected to be `code`; what was printed, on either stream, goes to text. */
static int render(const char *template, const char *context, const char *options, int code, char *text, size_t size)
{
    const char *program = getenv("MOTET_PROGRAM");
    char command[1024];
    size_t len;
    FILE *out;
    int status;

    put("t.jinja", template);
    put("c.json", context);
    snprintf(command, sizeof(command), "cd '%s' && %s '%s' render t.jinja c.json %s 2>&1", folder, environment(code),
             program ? program : "build/motet", options);
    out = popen(command, "r");
    assert_non_null(out);
    len = fread(text, 1, size - 1, out);
    text[len] = '\0';
    status = pclose(out);
    return WEXITSTATUS(status);
}

static void check(const char *template, const char *context, const char *options, int code, const char *expected)
{
    char text[2048];

    assert_int_equal(render(template, context, options, code, text, sizeof(text)), code);
    assert_string_equal(text, expected);
}

static void the_text_is_printed_as_it_is(void **state)
{
    (void)state;
    check("{% for m in messages %}\n<{{ m.role }}>\n{% endfor %}",
          "{\"messages\": [{\"role\": \"a\"}, {\"role\": \"b\"}]}", "", 0, "<a>\n<b>\n");
    check("{{ x|tojson }}", "{\"x\": {\"b\": 1.0, \"a\": \"\\u00e9\"}}", "", 0, "{\"b\": 1.0, \"a\": \"\u00e9\"}");
    check("{{ strftime_now('%d %b %Y, %H:%M:%S, %A, %j') }}", "{}", "--now 2026-01-02T03:04:05", 0,
          "02 Jan 2026, 03:04:05, Friday, 002");
    check("", "{}", "", 0, "");
}

static void what_the_template_raises_is_told_apart(void **state)
{
    (void)state;
    check("{{ raise_exception('Roles must alternate!') }}", "{}", "", 2, "Roles must alternate!\n");
    check("a\n {{ messages.x.y }}", "{\"messages\": {}}", "", 1,
          "motet: line 2, column 15: 'dict object' has no attribute 'x'\n");
    check("a{% if %}", "{}", "", 1,
          "motet: \"t.jinja\": line 1, column 8: unexpected 'end of statement block'; an expression should be here\n");
    check("", "[]", "", 1, "motet: the context is not an object\n");
    check("", "{", "", 1, "motet: \"c.json\": invalid JSON at byte 1: expected a key in quotes, found the end\n");
    check("", "{}", "--now yesterday", 1, "motet: \"--now yesterday\" is no time; write it like 2026-01-02T03:04:05\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_text_is_printed_as_it_is, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(what_the_template_raises_is_told_apart, make_folder, remove_folder),
};
UNIT_MAIN(tests)
