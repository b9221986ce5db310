#include "unit.h"

#include <fcntl.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"

/* As after a while; the clock is not waited for. */
static void tell_half(mt_progress *p)
{
    p->next = 0;
    mt_progress_add(p, p->total / 2 - p->done);
}

static void half_way(void *arg)
{
    mt_progress p;

    (void)arg;
    mt_log_setup(MT_LOG_INFO, MT_LOG_TEXT);
    mt_progress_begin(&p, "weights.reading", "reading weights", 80);
    tell_half(&p);
    p.next += UINT64_C(1) << 40; /* however slow the machine is */
    mt_progress_add(&p, 30);     /* soon after: not worth a line */
    p.next = 0;
    mt_progress_add(&p, 1000);
    mt_progress_end();
}

static void a_log_has_a_line_now_and_then(void **state)
{
    char text[400];

    (void)state;
    unit_in_child(half_way, NULL, text, sizeof(text));
    assert_non_null(strstr(text, " info  weights.reading reading weights: 50 %\n"));
    assert_non_null(strstr(text, " info  weights.reading reading weights: 100 %\n"));
    assert_null(strstr(text, "87 %"));
    assert_null(strchr(text, '\033'));
}

static void bytes_come(void *arg)
{
    mt_progress p;

    (void)arg;
    mt_log_setup(MT_LOG_INFO, MT_LOG_TEXT);
    mt_progress_begin_bytes(&p, "pull.downloading", "pulling o/n", 1024, 8192);
    p.next = 0;
    p.then -= UINT64_C(1000000000000); /* a thousand seconds ago, and a little more */
    mt_progress_set(&p, 3072, 4096);
    p.next = 0;
    mt_progress_set(&p, 1024, 4096); /* some of it has to come again */
    p.next = 0;
    mt_progress_set(&p, 9999, 4096);
    mt_progress_end();
}

static void bytes_have_a_rate_and_a_time(void **state)
{
    char text[800];

    (void)state;
    unit_in_child(bytes_come, NULL, text, sizeof(text));
    assert_non_null(strstr(text, " info  pull.downloading pulling o/n: 75 % of 4.0 KiB, 2 B/s, 8:2"));
    assert_non_null(strstr(text, " min left\n"));
    assert_non_null(strstr(text, "pulling o/n: 25 % of 4.0 KiB, "));
    assert_non_null(strstr(text, "pulling o/n: 100 % of 4.0 KiB, "));
}

static void at_once(void *arg)
{
    mt_progress p;

    (void)arg;
    mt_log_setup(MT_LOG_DEBUG, MT_LOG_TEXT);
    mt_progress_begin(&p, "weights.reading", "reading weights", 100);
    p.next += UINT64_C(1) << 40; /* however slow the machine is */
    mt_progress_add(&p, 100);
    mt_progress_end();
}

static void what_is_quick_is_not_spoken_of(void **state)
{
    char text[400];

    (void)state;
    unit_in_child(at_once, NULL, text, sizeof(text));
    assert_string_equal(text, "");
}

/* Both sides of a terminal. False where there is none to be had: a root folder may have no /dev/pts, or another's. */
static bool open_terminal(int *own, int *terminal)
{
    *own = posix_openpt(O_RDWR | O_NOCTTY);
    *terminal = -1;
    if (*own >= 0 && grantpt(*own) == 0 && unlockpt(*own) == 0)
        *terminal = open(ptsname(*own), O_RDWR | O_NOCTTY);
    if (*terminal < 0 && *own >= 0)
        close(*own);
    return *terminal >= 0;
}

/* Runs body with standard error on a terminal and returns what the terminal got. */
static const char *shown_by(void (*body)(mt_progress *p))
{
    static char text[800];
    const int saved = dup(STDERR_FILENO);
    size_t len = 0;
    mt_progress p;
    int own, terminal;

    assert_true(open_terminal(&own, &terminal) && dup2(terminal, STDERR_FILENO) >= 0);
    setenv("TERM", "xterm", 1);
    mt_progress_begin(&p, "weights.reading", "reading weights", 80);
    body(&p);
    dup2(saved, STDERR_FILENO);
    assert_int_equal(write(terminal, ".", 1), 1); /* a terminal takes its time */
    do {
        const ssize_t got = read(own, text + len, sizeof(text) - 1 - len);

        assert_true(got > 0);
        len += (size_t)got;
    } while (text[len - 1] != '.');
    text[len - 1] = '\0';
    close(terminal);
    close(own);
    close(saved);
    return text;
}

static void come_and_go(mt_progress *p)
{
    mt_log_setup(MT_LOG_WARN, MT_LOG_TEXT);
    tell_half(p);
    mt_progress_end();
    mt_progress_end();
}

static void event_between(mt_progress *p)
{
    mt_log_setup(MT_LOG_INFO, MT_LOG_TEXT);
    tell_half(p);
    mt_log_info("x", "y");
    mt_progress_end();
}

static void as_json(mt_progress *p)
{
    mt_log_setup(MT_LOG_INFO, MT_LOG_JSON);
    tell_half(p);
    mt_progress_end();
}

static void a_terminal_has_one_line_that_goes_away(void **state)
{
    static const char whole[] = "\r\033[Kreading weights: 50 %\r\033[K";
    const char *text;
    int own, terminal;

    (void)state;
    if (!open_terminal(&own, &terminal))
        UNIT_SKIP("there are no pseudo-terminals");
    close(terminal);
    close(own);
    assert_string_equal(shown_by(come_and_go), whole);
    text = shown_by(event_between);
    assert_memory_equal(text, whole, strlen(whole));
    assert_non_null(strstr(text, " info  x y\r\n"));
    assert_null(strchr(text + strlen(whole), '\033'));
    text = shown_by(as_json);
    assert_memory_equal(text, "{", 1);
    assert_null(strchr(text, '\033'));
}

static void note(void *ctx, const char *what, unsigned percent)
{
    snprintf(ctx, 64, "%s: %u", what, percent);
}

static void told_to_another(void *arg)
{
    char told[64] = "";
    mt_progress p;

    (void)arg;
    mt_log_setup(MT_LOG_ERROR, MT_LOG_TEXT); /* whatever is logged */
    mt_progress_watch(note, told);
    mt_progress_begin(&p, "weights.reading", "reading weights", 80);
    tell_half(&p);
    mt_progress_watch(NULL, NULL);
    p.next = 0;
    mt_progress_add(&p, 80);
    fprintf(stderr, "told %s\n", told);
}

static void somebody_else_may_be_told(void **state)
{
    char text[400];

    (void)state;
    unit_in_child(told_to_another, NULL, text, sizeof(text));
    assert_non_null(strstr(text, "told reading weights: 50\n"));
}

static void count(void *ctx, const char *what, unsigned percent)
{
    (void)what, (void)percent;
    ++*(unsigned *)ctx;
}

/* With a clock that stands: the first line after half a second, the next after five more, and the rate of each. */
static void lines_at_their_times(void *arg)
{
    const uint64_t ms = 1000000, begin = 1000 * ms;
    unsigned told = 0;
    mt_progress p;

    (void)arg;
    mt_log_setup(MT_LOG_ERROR, MT_LOG_TEXT);
    mt_progress_watch(count, &told);
    mt_clock_set(begin);
    mt_progress_begin_bytes(&p, "pull.downloading", "pulling o/n", 0, 100000);
    mt_clock_set(begin + 500 * ms - 1);
    mt_progress_set(&p, 100, 100000);
    fprintf(stderr, "%u ", told);
    mt_clock_set(begin + 500 * ms);
    mt_progress_set(&p, 500, 100000);
    fprintf(stderr, "%u at %.0f, ", told, p.rate);
    mt_clock_set(begin + 5500 * ms - 1);
    mt_progress_set(&p, 600, 100000);
    fprintf(stderr, "%u ", told);
    mt_clock_set(begin + 5500 * ms);
    mt_progress_set(&p, 3000, 100000);
    fprintf(stderr, "%u at %.0f, ", told, p.rate);
    p.next = 0; /* twice in one moment */
    mt_progress_set(&p, 4000, 100000);
    fprintf(stderr, "at %.0f\n", p.rate);
    mt_progress_watch(NULL, NULL);
}

static void progress_is_told_at_its_times(void **state)
{
    char text[400];

    (void)state;
    unit_in_child(lines_at_their_times, NULL, text, sizeof(text));
    assert_string_equal(text, "0 1 at 1000, 1 2 at 500, at 500\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(progress_is_told_at_its_times),  cmocka_unit_test(somebody_else_may_be_told),
    cmocka_unit_test(a_log_has_a_line_now_and_then),  cmocka_unit_test(bytes_have_a_rate_and_a_time),
    cmocka_unit_test(what_is_quick_is_not_spoken_of), cmocka_unit_test(a_terminal_has_one_line_that_goes_away),
};

UNIT_MAIN(tests)
