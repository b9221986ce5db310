/* Signals that people send by habit end nobody. */
#include "unit.h"

#include <signal.h>

#include "base/compiler.h"
#include "base/signals.h"

static const int idle[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPIPE, SIGXFSZ};

static void be_sent_all(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < MT_COUNT(idle); i++)
        signal(idle[i], SIG_DFL);
    mt_signals_ignore();
    for (size_t i = 0; i < MT_COUNT(idle); i++)
        raise(idle[i]);
#ifdef SIGRTMIN
    raise(SIGRTMIN);
    raise(SIGRTMAX);
#endif
}

static void be_ended(void *arg)
{
    (void)arg;
    mt_signals_ignore();
    raise(SIGTERM);
}

static void what_means_nothing_ends_nobody(void **state)
{
    char text[256];
    int status;

    (void)state;
    assert_int_equal(unit_in_child(be_sent_all, NULL, text, sizeof(text)), 0);
    status = unit_in_child(be_ended, NULL, text, sizeof(text));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

static volatile sig_atomic_t heard;

static void hear(int number)
{
    heard = number;
}

static void a_handler_stays(void **state)
{
    (void)state;
    signal(SIGPROF, hear); /* as a profiler has one */
    mt_signals_ignore();
    raise(SIGPROF);
    assert_int_equal(heard, SIGPROF);
    signal(SIGPROF, SIG_DFL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_means_nothing_ends_nobody),
    cmocka_unit_test(a_handler_stays),
};
UNIT_MAIN(tests)
