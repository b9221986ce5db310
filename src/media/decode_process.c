/* The processes that decode pictures and videos (decode_process.h). A small process is forked before the server has
   threads, files or weights. It forks a process for each request with pictures, and always has one ready.

   1. The small process runs no decoder and reads nothing from clients. It lives until the server closes its socket. If
      it is killed, a guardian process, which does nothing else, forks it again: the server cannot, as it has threads
      and secrets by then.
   2. A decoding process has three files: a socket for messages, a page of shared memory with a stop flag, and a leash:
      a pipe whose other end the server holds. When that end closes, even because the server was killed, the kernel
      kills the process by a signal that cannot be caught.
   3. It has limits on memory and time, and the kernel's filter (decode_filter.c), before it reads the first message.
   4. A picture that takes too much processor time ends it by a signal of its own timer, so that decoders need not
      cooperate; it says so first.

   Rejected: one process for all requests, which a malicious picture of one client would share with others; threads,
   which share everything; and running a program, which would have to be found (and the server gives up exec). */
#include "media/decode_inside.h"

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

#include "base/signals.h"
#include "media/decode_client.h"
#include "media/limits.h"

#ifdef __linux__

/* ---- the processes ---- */

/* How many of the standard files these processes give up: all three, unless a sanitizer reports to the last. */
enum { GIVEN_UP = MT_SANITIZED ? 2 : 3 };

#ifdef __GLIBC__
typedef __rlimit_resource_t resource; /* an enumeration in glibc */
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

/* Bytes of address space that the process has before it does anything. */
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

/* Has the kernel send SIGKILL when the other end of the pipe closes: the only way in which the server ends the
   process. */
static bool wear_leash(int leash)
{
    return fcntl(leash, F_SETOWN, getpid()) == 0 && fcntl(leash, F_SETSIG, SIGKILL) == 0 &&
           fcntl(leash, F_SETFL, O_ASYNC | O_NONBLOCK) == 0;
}

static int way_out; /* the socket of a decoding process, for its signal handler */

/* The timer of mt_decode_work: calls only functions that a signal handler may. */
static void on_spent(int number)
{
    static mt_decode_message last; /* static: large for a stack that may be nearly full */

    (void)number;
    last.kind = MT_DECODE_SPENT;
    last.cpu_ns = mt_decode_cpu_ns();
    (void)mt_decode_send(way_out, &last, sizeof(last), NULL, 0);
    _exit(0);
}

static _Noreturn void develop(const mt_decode_order *order, const int files[MT_DECODE_FILES], uint64_t own)
{
    const mt_decode_page *page = mmap(NULL, sizeof(*page), PROT_READ, MAP_SHARED, files[MT_DECODE_PAGE], 0);
    char nothing;

    /* an end that was closed before causes no signal: reading shows it */
    if (page == MAP_FAILED || !wear_leash(files[MT_DECODE_LEASH]) || read(files[MT_DECODE_LEASH], &nothing, 1) == 0)
        _exit(1);
#if !MT_SANITIZED /* sanitizers reserve huge address ranges */
    if (own > 0)
        bound(RLIMIT_AS, own + order->memory + MT_LIMIT_DECODE_SLACK);
#else
    (void)own;
    (void)order;
#endif
    way_out = files[MT_DECODE_SOCKET];
    signal(SIGPROF, on_spent);
    bound(RLIMIT_CPU, MT_LIMIT_DECODE_SECONDS);
#if !MT_SANITIZED /* a sanitizer's report may go to a file */
    bound(RLIMIT_FSIZE, 0);
#endif
    bound(RLIMIT_NPROC, 0);
    close(files[MT_DECODE_PAGE]);
    if (!mt_decode_filter() && mt_decode_can_filter())
        _exit(1); /* it would run without protection */
    mt_decode_work(files[MT_DECODE_SOCKET], page);
}

/* A process that runs a program and waits for its end. The program has the rules of decode_program.c. */
static _Noreturn void run_program(const mt_decode_order *order, const int files[MT_DECODE_MOST])
{
    char nothing;

    if (!wear_leash(files[MT_DECODE_LEASH]) || read(files[MT_DECODE_LEASH], &nothing, 1) == 0)
        _exit(1);
    mt_decode_run(order, files);
}

/* A process that waits for the next request. Closes its end of the pipe `waiting` when one has come. */
static _Noreturn void stand_ready(int socket, int waiting, uint64_t own)
{
    mt_decode_order order;
    int files[MT_DECODE_MOST];
    size_t count;

    if (!mt_decode_receive(socket, &order, sizeof(order), files, MT_DECODE_MOST, &count) ||
        count != (order.program ? MT_DECODE_MOST : MT_DECODE_FILES))
        _exit(0);
    close(waiting);
    close(socket); /* a decoder must not receive other requests */
    if (order.program)
        run_program(&order, files);
    develop(&order, files, own);
}

static bool is_left(int socket)
{
    struct pollfd end = {.fd = socket};

    return poll(&end, 1, 0) != 0;
}

/* The small process: keeps one process ready, so that requests do not wait for a fork. */
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
            usleep(MT_LIMIT_DECODE_AGAIN_US); /* no process can be forked now; try later */
    }
    _exit(0);
}

/* The guardian: forks the small process, and again whenever it ends. */
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
            usleep(MT_LIMIT_DECODE_AGAIN_US); /* limits how often it is forked again */
    }
    _exit(0);
}

/* Drops what was inherited from the server: its files, and its handling of signals. */
static void undress(int socket)
{
    const int null = open("/dev/null", O_RDWR);

    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* signals of the terminal are for the server, and these processes end with it */
    signal(SIGQUIT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    mt_signals_ignore();
    signal(SIGCHLD, SIG_IGN); /* children are reaped by the kernel */
    for (int i = 0; i < GIVEN_UP; i++)
        dup2(null, i);
    for (int i = 3, most = (int)sysconf(_SC_OPEN_MAX) < 4096 ? (int)sysconf(_SC_OPEN_MAX) : 4096; i < most; i++)
        if (i != socket)
            close(i);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "motet-decoder");
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    bound(RLIMIT_CORE, 0);
    bound(RLIMIT_NOFILE, 64);
}

static int house = -1;
static pid_t watchman;

bool mt_decode_process_open(void)
{
    const pid_t server = getpid();
    int ends[2];

    if (house >= 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return house >= 0;
    mt_decode_find_programs();
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

void mt_decode_process_close(void)
{
    if (house < 0)
        return;
    close(house);
    house = -1;
    while (waitpid(watchman, NULL, 0) < 0 && errno == EINTR) {}
}

int mt_decode_process_socket(void)
{
    return house;
}

#else

bool mt_decode_process_open(void)
{
    return false;
}

void mt_decode_process_close(void)
{
}

int mt_decode_process_socket(void)
{
    return -1;
}

#endif

bool mt_decode_process_is_open(void)
{
    return mt_decode_process_socket() >= 0;
}

bool mt_decode_process_is_filtered(void)
{
    return mt_decode_process_is_open() && mt_decode_can_filter();
}
