#include "unit.h"

#include <fcntl.h>

#include "base/limits.h"
#include "base/log.h"

typedef struct event {
    mt_log_level level;
    mt_log_format format;
    const char *name;
    const char *sentence;
} event;

static void write_event(void *arg)
{
    const event *e = arg;

    mt_log_setup(MT_LOG_INFO, e->format);
    mt_log(e->level, e->name, "%s", e->sentence);
}

/* The line an event gives, with the digits of its time replaced by 0. */
static char *line_of(mt_log_level level, mt_log_format format, const char *name, const char *sentence)
{
    static char line[2 * MT_LIMIT_LOG_LINE];
    event e = {level, format, name, sentence};
    size_t digits = format == MT_LOG_JSON ? 33 : 12;

    unit_in_child(write_event, &e, line, sizeof(line));
    for (size_t i = 0; i < digits && line[i]; i++)
        if (line[i] >= '0' && line[i] <= '9')
            line[i] = '0';
    return line;
}

typedef struct fields {
    mt_log_format format;
    const char *members;
} fields;

static void write_fields(void *arg)
{
    const fields *f = arg;

    mt_log_setup(MT_LOG_INFO, f->format);
    mt_log_fields(MT_LOG_INFO, "e", f->members, "%s", "done");
}

/* The line of an event "e" with members and the sentence "done", without its time. */
static const char *line_with(mt_log_format format, const char *members)
{
    static char line[2 * MT_LIMIT_LOG_LINE];
    fields f = {format, members};

    unit_in_child(write_fields, &f, line, sizeof(line));
    return line + (format == MT_LOG_JSON ? sizeof("{'time':'0000-00-00T00:00:00.000Z',") - 1 : sizeof("00:00:00.000"));
}

static void text_lines(void **state)
{
    (void)state;
    assert_string_equal(line_of(MT_LOG_INFO, MT_LOG_TEXT, "weights.mapped", "\"a\\b\" 3 shards"),
                        "00:00:00.000 info  weights.mapped \"a\\b\" 3 shards\n");
    assert_string_equal(line_of(MT_LOG_ERROR, MT_LOG_TEXT, "x", "two\nlines\x1b[0m \xc3\xa9 \xff"),
                        "00:00:00.000 error x two\\nlines\\u001b[0m \xc3\xa9 \xef\xbf\xbd\n");
}

static void json_lines(void **state)
{
    (void)state;
    assert_string_equal(line_of(MT_LOG_WARN, MT_LOG_JSON, "cache.full", "\"a\\b\"\n"),
                        "{\"time\":\"0000-00-00T00:00:00.000Z\",\"level\":\"warn\",\"event\":\"cache.full\","
                        "\"message\":\"\\\"a\\\\b\\\"\\n\"}\n");
}

static void levels_above_the_chosen_are_silent(void **state)
{
    (void)state;
    assert_string_equal(line_of(MT_LOG_DEBUG, MT_LOG_TEXT, "x", "y"), "");
    mt_log_setup(MT_LOG_WARN, MT_LOG_TEXT);
    assert_true(mt_log_enabled(MT_LOG_ERROR));
    assert_true(mt_log_enabled(MT_LOG_WARN));
    assert_false(mt_log_enabled(MT_LOG_INFO));
    mt_log_setup(MT_LOG_DEBUG, MT_LOG_TEXT);
    assert_true(mt_log_enabled(MT_LOG_DEBUG));
}

/* Members of an event stand in the object, where there is room for them, and not in the text. */
static void members_of_an_event(void **state)
{
    char many[MT_LIMIT_LOG_LINE] = "\"a\":\"";
    (void)state;
    memset(many + 5, 'x', sizeof(many) - 7);
    many[sizeof(many) - 2] = '"';
    assert_string_equal(line_with(MT_LOG_JSON, "\"tokens\":7,\"key\":\"k\""),
                        "\"level\":\"info\",\"event\":\"e\",\"tokens\":7,\"key\":\"k\",\"message\":\"done\"}\n");
    assert_string_equal(line_with(MT_LOG_JSON, many), "\"level\":\"info\",\"event\":\"e\",\"message\":\"done\"}\n");
    assert_string_equal(line_with(MT_LOG_TEXT, "\"tokens\":7"), "info  e done\n");
}

/* A line that is too long is cut between characters, ends in a newline, and is still JSON. */
static void lines_end_at_the_limit(void **state)
{
    char longer[MT_LIMIT_LOG_LINE + 100];
    char *line;
    size_t len;

    (void)state;
    memset(longer, '\n', sizeof(longer) - 1); /* two bytes each when escaped */
    longer[sizeof(longer) - 1] = '\0';
    for (int shift = 0; shift < 2; shift++) {
        line = line_of(MT_LOG_INFO, MT_LOG_JSON, shift ? "ab" : "a", longer);
        len = strlen(line);
        assert_in_range(len, MT_LIMIT_LOG_LINE - 1, MT_LIMIT_LOG_LINE);
        assert_string_equal(line + len - 5, "\\n\"}\n");
        line = line_of(MT_LOG_INFO, MT_LOG_TEXT, shift ? "ab" : "a", longer);
        len = strlen(line);
        assert_in_range(len, MT_LIMIT_LOG_LINE - 1, MT_LIMIT_LOG_LINE);
        assert_string_equal(line + len - 3, "\\n\n");
    }
}

/* Reads what is in a pipe, and returns the number of lines. */
static size_t lines_in(int pipe, char *text, size_t size)
{
    size_t lines = 0;
    ssize_t n;

    while ((n = read(pipe, text, size - 1)) > 0) {
        text[n] = '\0';
        for (const char *at = text; (at = strchr(at, '\n')); at++)
            lines++;
    }
    return lines;
}

static void log_for_nobody(void *arg)
{
    static char text[1 << 17];
    const int out = dup(STDERR_FILENO);
    size_t come, lost = 0;
    int ends[2];

    (void)arg;
    alarm(60); /* it does not wait for ever */
    if (pipe(ends) || fcntl(ends[0], F_SETFL, O_NONBLOCK) || dup2(ends[1], STDERR_FILENO) < 0)
        _exit(1);
    mt_log_setup(MT_LOG_INFO, MT_LOG_TEXT);
    for (int i = 0; i < 1000; i++)
        mt_log_info("x", "%500d", i);
    come = lines_in(ends[0], text, sizeof(text));
    mt_log_info("y", "somebody reads");
    if (lines_in(ends[0], text, sizeof(text)) != 2 || sscanf(text, "%*s warn log.lost %zu lines", &lost) != 1)
        _exit(2);
    dprintf(out, "%d %s", come > 50 && come + lost == 1000, strchr(text, '\n') + 14);
}

static void a_log_that_nobody_reads_holds_up_nobody(void **state)
{
    char text[1000];

    (void)state;
    assert_int_equal(unit_in_child(log_for_nobody, NULL, text, sizeof(text)), 0);
    assert_string_equal(text, "1 info  y somebody reads\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(text_lines),
    cmocka_unit_test(json_lines),
    cmocka_unit_test(members_of_an_event),
    cmocka_unit_test(levels_above_the_chosen_are_silent),
    cmocka_unit_test(lines_end_at_the_limit),
    cmocka_unit_test(a_log_that_nobody_reads_holds_up_nobody),
};
UNIT_MAIN(tests)
