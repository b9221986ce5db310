/* The table of mapped files, which the handler of SIGBUS can read at any moment, on any thread.

   Invariants:
   1. An entry is free while its `taken` is false. mt_mapping_add claims an entry so, writes size and path, and then
      data; mt_mapping_remove clears data first. So an entry with data is always complete when the handler sees it.
   2. The path of a removed entry is freed when the entry is used again, never at once, since the handler may be reading
      it.
   3. The handler calls only stat, write, pause, signal and _exit, which POSIX allows there, and the handler that was
      set before.

   A mapping is looked up by the address that could not be read. Rejected: ending only the requests that need the file,
   since every request needs all weights; copying weights into memory, since they are used where they are. */
#include "base/mapping.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/limits.h"

typedef struct place {
    atomic_bool taken;
    _Atomic(uintptr_t) data;
    size_t size;
    char *path;
} place;

static place places[MT_LIMIT_MAPPINGS];
static struct sigaction before;             /* the handler set before: it gets other bus errors */
static atomic_flag told = ATOMIC_FLAG_INIT; /* a thread is writing the message */

typedef struct line {
    char text[MT_LIMIT_PATH + 128];
    size_t len;
} line;

static void add(line *l, const char *text)
{
    while (*text && l->len < sizeof(l->text))
        l->text[l->len++] = *text++;
}

MT_NORETURN static void end(const place *p, size_t at)
{
    struct stat info;
    const bool shorter = stat(p->path, &info) != 0 || (uint64_t)info.st_size <= at;
    line l = {.len = 0};

    while (atomic_flag_test_and_set(&told)) /* several threads may fail at once; the first one ends them all */
        pause();
    add(&l, "motet: \"");
    add(&l, p->path);
    add(&l, shorter ? "\" was shortened while it was in use: put the whole file back and start again\n"
                    : "\" cannot be read any more: check the disk it lies on and start again\n");
    if (write(STDERR_FILENO, l.text, l.len) < 0) {
        /* There is nowhere to report it. */
    }
    _exit(MT_EXIT_MAPPING);
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    const uintptr_t address = (uintptr_t)info->si_addr;

    for (size_t i = 0; i < MT_COUNT(places); i++) {
        /* acquire: size and path were written before data */
        const uintptr_t data = atomic_load_explicit(&places[i].data, memory_order_acquire);

        if (data && address >= data && address - data < places[i].size)
            end(&places[i], address - data);
    }
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else
        signal(number, SIG_DFL); /* the access is tried again on return, and ends the program */
}

void mt_mapping_guard(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before);
}

void mt_mapping_add(const void *data, size_t size, const char *path)
{
    for (size_t i = 0; i < MT_COUNT(places); i++) {
        place *p = &places[i];

        /* acquire: sees what mt_mapping_remove did before it freed the entry */
        if (atomic_exchange_explicit(&p->taken, true, memory_order_acquire))
            continue;
        mt_free(p->path);
        p->path = mt_strdup(path);
        p->size = size;
        atomic_store_explicit(&p->data, (uintptr_t)data, memory_order_release);
        return;
    }
}

void mt_mapping_remove(const void *data)
{
    for (size_t i = 0; i < MT_COUNT(places); i++) {
        uintptr_t found = (uintptr_t)data;

        if (atomic_compare_exchange_strong(&places[i].data, &found, 0)) {
            atomic_store_explicit(&places[i].taken, false, memory_order_release);
            return;
        }
    }
}
