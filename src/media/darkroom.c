/* The darkroom itself: a small process that is forked before the server has threads, files or weights, and forks a
   process for each request that brings pictures: always one ahead.

   1. The small one runs no decoder and reads nothing of a client's. It lives until the server closes its socket. Should
      it be killed, another one does nothing but fork it anew: the server cannot, which has threads and secrets by then.
   2. A forked one has three files: a socket for letters, a page with a flag that says when to stop, and a leash: a pipe
      whose other end the server holds. When that is closed, be it that the server was killed, the kernel ends the
      process by a signal that it cannot catch.
   3. It has limits on memory and time, and the kernel's filter (darkroom_filter.c) before it reads the first letter.

   Rejected: one process for all requests, which a hostile picture of one client would share with another's; threads,
   which share everything; and running a program, which would have to be found, and may not be (the server gives up
   exec). */
#include "media/darkroom_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/limits.h"
#include "media/darkroom_client.h"

#ifdef __linux__

/* ---- the processes ---- */

#ifdef __GLIBC__
typedef __rlimit_resource_t resource; /* an enumeration there */
#else
typedef int resource;
#endif

static void bound(resource what, rlim_t most)
{
    struct rlimit limit;

    if (getrlimit(what, &limit) == 0 && limit.rlim_max != RLIM_INFINITY && limit.rlim_max < most)
        most = limit.rlim_max;
    setrlimit(what, &(struct rlimit){.rlim_cur = most, .rlim_max = most});
}

/* Address space that the process has before it does anything. */
static uint64_t own_size(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file) {
        if (fscanf(file, "%llu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The one way in which the server ends it: the pipe's other end is closed, and that is a signal. */
static bool wear_leash(int leash)
{
    return fcntl(leash, F_SETOWN, getpid()) == 0 && fcntl(leash, F_SETSIG, SIGKILL) == 0 &&
           fcntl(leash, F_SETFL, O_ASYNC | O_NONBLOCK) == 0;
}

static _Noreturn void develop(const mt_dark_order *order, const int files[MT_DARK_FILES], uint64_t own)
{
    const mt_dark_page *page = mmap(NULL, sizeof(*page), PROT_READ, MAP_SHARED, files[MT_DARK_PAGE], 0);
    char nothing;

    /* that it was closed already is no news that comes by signal */
    if (page == MAP_FAILED || !wear_leash(files[MT_DARK_LEASH]) || read(files[MT_DARK_LEASH], &nothing, 1) == 0)
        _exit(1);
#if !MT_SANITIZED /* which maps all there is */
    if (own > 0)
        bound(RLIMIT_AS, own + order->memory + MT_LIMIT_DARK_SLACK);
#else
    (void)own;
    (void)order;
#endif
    bound(RLIMIT_CPU, MT_LIMIT_DARK_SECONDS);
    bound(RLIMIT_FSIZE, 0);
    bound(RLIMIT_NPROC, 0);
    close(files[MT_DARK_PAGE]);
    if (!mt_dark_filter() && mt_dark_can_filter())
        _exit(1); /* it would do without what it is here for */
    mt_dark_work(files[MT_DARK_SOCKET], page);
}

/* The one that waits for the next request. It says so when that has come, by closing its end of a pipe. */
static _Noreturn void stand_ready(int socket, int waiting, uint64_t own)
{
    mt_dark_order order;
    int files[MT_DARK_FILES];
    size_t count;

    if (!mt_dark_receive(socket, &order, sizeof(order), files, MT_DARK_FILES, &count) || count != MT_DARK_FILES)
        _exit(0);
    close(waiting);
    close(socket); /* others' orders are none of a picture's business */
    develop(&order, files, own);
}

static bool is_left(int socket)
{
    struct pollfd end = {.fd = socket};

    return poll(&end, 1, 0) != 0;
}

/* There is always one that stands ready, so that nobody waits for a fork. */
static _Noreturn void keep_house(int socket)
{
    const uint64_t own = own_size();
    char nothing;
    int ends[2];

    while (!is_left(socket) && pipe(ends) == 0) {
        const pid_t ready = fork();

        if (ready == 0) {
            close(ends[0]);
            stand_ready(socket, ends[1], own);
        }
        close(ends[1]);
        while (read(ends[0], &nothing, 1) < 0 && errno == EINTR) {}
        close(ends[0]);
        if (ready < 0)
            usleep(MT_LIMIT_DARK_AGAIN_US); /* there is no room for one more now */
    }
    _exit(0);
}

/* Keeps one that keeps house. */
static _Noreturn void watch_house(int socket)
{
    const pid_t self = getpid();

    while (!is_left(socket)) {
        const pid_t keeper = fork();

        if (keeper == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != self)
                _exit(0);
            keep_house(socket);
        }
        while (keeper > 0 && waitpid(keeper, NULL, 0) < 0 && errno == EINTR) {}
        if (!is_left(socket))
            usleep(MT_LIMIT_DARK_AGAIN_US); /* whatever ends it does so but so often */
    }
    _exit(0);
}

/* Nothing of the server's: neither its files, nor what it does on signals. */
static void undress(int socket)
{
    const int null = open("/dev/null", O_RDWR);

    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* the terminal's are for the server, at whose end this one ends */
    signal(SIGQUIT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* nobody waits for what has ended */
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    for (int i = 3, most = (int)sysconf(_SC_OPEN_MAX) < 4096 ? (int)sysconf(_SC_OPEN_MAX) : 4096; i < most; i++)
        if (i != socket)
            close(i);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "motet-darkroom");
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    bound(RLIMIT_CORE, 0);
    bound(RLIMIT_NOFILE, 64);
}

static int house = -1;
static pid_t watchman;

bool mt_darkroom_open(void)
{
    const pid_t server = getpid();
    int ends[2];

    if (house >= 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return house >= 0;
    watchman = fork();
    if (watchman == 0) {
        undress(ends[1]);
        if (getppid() != server)
            _exit(0);
        watch_house(ends[1]);
    }
    close(ends[1]);
    if (watchman < 0)
        close(ends[0]);
    else
        house = ends[0];
    return house >= 0;
}

void mt_darkroom_close(void)
{
    if (house < 0)
        return;
    close(house);
    house = -1;
    while (waitpid(watchman, NULL, 0) < 0 && errno == EINTR) {}
}

int mt_darkroom_socket(void)
{
    return house;
}

#else

bool mt_darkroom_open(void)
{
    return false;
}

void mt_darkroom_close(void)
{
}

int mt_darkroom_socket(void)
{
    return -1;
}

#endif

bool mt_darkroom_is_open(void)
{
    return mt_darkroom_socket() >= 0;
}

bool mt_darkroom_is_filtered(void)
{
    return mt_darkroom_is_open() && mt_dark_can_filter();
}
