/* Signals that mean nothing to this program and would end it. */
#ifndef MT_BASE_SIGNALS_H
#define MT_BASE_SIGNALS_H

/* Ignores the signals that end a process by default though nothing is wrong with it: those for users and timers
   (SIGUSR1, SIGUSR2, SIGALRM, ...), which people send by habit, as other programs reopen their logs on one, and those
   that a descriptor raises (SIGPIPE, SIGXFSZ), whose calls fail instead. One that a library or the caller has a
   handler for stays. Before there are threads. */
void mt_signals_ignore(void);

#endif
