/* Reports crashes: which signal, where, and which calls were being worked on. crash.c says how. */
#ifndef MT_BASE_CRASH_H
#define MT_BASE_CRASH_H

#include <stddef.h>

/* From now on a crash (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS) writes a few lines to standard error
   before the signal's default effect. Call once, at the start. */
void mt_crash_setup(void);

/* Registers the id of something that is being worked on, so that a crash names it, until mt_crash_leave. Returns its
   place; MT_CRASH_NO_PLACE where there are too many. Up to 63 bytes of id are kept. Any thread. */
#define MT_CRASH_NO_PLACE ((size_t)-1)
size_t mt_crash_enter(const char *id);
void mt_crash_leave(size_t place); /* MT_CRASH_NO_PLACE is fine */

/* In a build with a sanitizer: does what it reports where MOTET_TEST_PLANT is "WHERE:address" (reads behind an
   allocation) or "WHERE:undefined" (adds beyond INT_MAX). So a test knows that a report from there is seen. Does
   nothing in other builds. */
void mt_crash_plant(const char *where);

#endif
