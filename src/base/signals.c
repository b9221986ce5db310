/* See signals.h. */
#include "base/signals.h"

#include <signal.h>
#include <stddef.h>

#include "base/compiler.h"

static void ignore(int number)
{
    struct sigaction now;

    if (sigaction(number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
        signal(number, SIG_IGN);
}

void mt_signals_ignore(void)
{
    static const int numbers[] = {
        SIGUSR1,   SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPIPE, SIGXFSZ,
#ifdef SIGPWR
        SIGPWR,
#endif
#ifdef SIGSTKFLT
        SIGSTKFLT,
#endif
    };

    for (size_t i = 0; i < MT_COUNT(numbers); i++)
        ignore(numbers[i]);
#ifdef SIGRTMIN
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        ignore(number);
#endif
}
