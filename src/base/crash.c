/* The report is written in a signal handler, while the program may be broken. So:

   1. Nothing is allocated or locked: lines are written by write() from a buffer on the stack.
   2. Registered ids stand in a table of fixed size. mt_crash_enter claims an entry by `taken`, writes the id and then
      sets `set`; mt_crash_leave clears `set` first. An id may be replaced while it is read: then the line has parts of
      both.
   3. The handler handles one crash. A second one, on any thread or in the handler itself, ends the process as the
      signal does by default.
   4. glibc's backtrace loads a library when it is first called, which a handler must not do; so it is called at setup.

   A handler needs stack, which a stack overflow leaves none of; the main thread's has its own (sigaltstack). */
#include "base/crash.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__GLIBC__) || defined(__APPLE__)
#define MT_HAVE_EXECINFO 1
#include <execinfo.h>
#else
#define MT_HAVE_EXECINFO 0
#endif

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/limits.h"

enum { FRAMES = 64, STACK = 64 << 10 }; /* of the backtrace; bytes of the handler's stack */

typedef struct place {
    atomic_bool taken, set;
    char id[MT_LIMIT_CRASH_ID];
} place;

static place places[MT_LIMIT_CRASH_IDS];
static atomic_size_t beyond; /* ids that found no entry */
static char stack[STACK];

size_t mt_crash_enter(const char *id)
{
    for (size_t i = 0; i < MT_COUNT(places); i++) {
        place *p = &places[i];

        /* acquire: sees what mt_crash_leave did before it freed the entry */
        if (atomic_load_explicit(&p->taken, memory_order_relaxed) ||
            atomic_exchange_explicit(&p->taken, true, memory_order_acquire))
            continue;
        strncpy(p->id, id, sizeof(p->id) - 1);
        atomic_store_explicit(&p->set, true, memory_order_release);
        return i;
    }
    atomic_fetch_add(&beyond, 1);
    return MT_CRASH_NO_PLACE;
}

void mt_crash_leave(size_t at)
{
    if (at == MT_CRASH_NO_PLACE) {
        atomic_fetch_sub(&beyond, 1);
        return;
    }
    atomic_store_explicit(&places[at].set, false, memory_order_relaxed);
    memset(places[at].id, 0, sizeof(places[at].id));
    atomic_store_explicit(&places[at].taken, false, memory_order_release);
}

typedef struct line {
    char text[256];
    size_t len;
} line;

static void add(line *l, const char *text)
{
    while (*text && l->len < sizeof(l->text))
        l->text[l->len++] = *text++;
}

static void add_number(line *l, uint64_t number, unsigned base)
{
    char digits[24], *at = digits + sizeof(digits) - 1;

    *at = '\0';
    do
        *--at = "0123456789abcdef"[number % base];
    while ((number /= base) > 0);
    add(l, at);
}

static void say(line *l)
{
    add(l, "\n");
    if (write(STDERR_FILENO, l->text, l->len) < 0) {
        /* There is nowhere to report it. */
    }
    l->len = 0;
}

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"},
               {SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"}};

static void say_what(int number, const siginfo_t *info)
{
    line l = {.len = 0};

    add(&l, "motet: crashed by ");
    for (size_t i = 0; i < MT_COUNT(signals); i++)
        if (signals[i].number == number)
            add(&l, signals[i].name);
    if (info->si_code > 0) { /* raised by the processor, not sent by a process */
        add(&l, " at 0x");
        add_number(&l, (uint64_t)(uintptr_t)info->si_addr, 16);
    }
    add(&l, "; please report these lines (docs/security.md says how)");
    say(&l);
}

static void say_who(void)
{
    const size_t more = atomic_load(&beyond);
    line l = {.len = 0};

    for (size_t i = 0; i < MT_COUNT(places); i++)
        if (atomic_load_explicit(&places[i].set, memory_order_acquire)) {
            add(&l, "motet: in flight: ");
            add(&l, places[i].id);
            say(&l);
        }
    if (more > 0) {
        add(&l, "motet: in flight: more, ");
        add_number(&l, more, 10);
        say(&l);
    }
}

static void say_where(void)
{
#if MT_HAVE_EXECINFO
    void *frames[FRAMES];
    const int count = backtrace(frames, FRAMES);

    backtrace_symbols_fd(frames, count, STDERR_FILENO);
#endif
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (size_t i = 0; i < MT_COUNT(signals); i++)
        signal(signals[i].number, SIG_DFL);
    say_what(number, info);
    say_who();
    say_where();
    raise(number);
}

void mt_crash_setup(void)
{
#if !MT_SANITIZED /* sanitizers have their own handlers */
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
#if MT_HAVE_EXECINFO
    void *frame;

    (void)backtrace(&frame, 1);
#endif
    sigemptyset(&action.sa_mask);
    sigaltstack(&own, NULL);
    for (size_t i = 0; i < MT_COUNT(signals); i++)
        sigaction(signals[i].number, &action, NULL);
#else
    (void)stack;
    (void)on_crash;
#endif
}

#if MT_SANITIZED

void mt_crash_plant(const char *where)
{
    const char *planted = getenv("MOTET_TEST_PLANT");
    const size_t len = strlen(where);
    volatile int largest = INT_MAX;
    volatile char *one;

    if (!planted || strncmp(planted, where, len) != 0)
        return;
    if (strcmp(planted + len, ":undefined") == 0)
        largest = largest + 1;
    if (strcmp(planted + len, ":address") != 0)
        return;
    one = mt_alloc(1);
    (void)one[1];
    mt_free((void *)(uintptr_t)one);
}

#else

void mt_crash_plant(const char *where)
{
    (void)where;
}

#endif
