/* The last words of a program that crashes: which signal, where, and what was being worked on. See crash.c. */
#ifndef MT_BASE_CRASH_H
#define MT_BASE_CRASH_H

#include <stddef.h>

/* From now on a crash (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS) writes a few lines to standard error
   before the signal does what it does by default. Once, at the start. */
void mt_crash_setup(void);

/* Something is worked on, which the lines name until it is left: a place, or MT_CRASH_NO_PLACE where there are too
   many. id: up to 63 bytes are kept. From any thread. */
#define MT_CRASH_NO_PLACE ((size_t)-1)
size_t mt_crash_enter(const char *id);
void mt_crash_leave(size_t place); /* MT_CRASH_NO_PLACE is fine */

#endif
