/* Runs poppler's programs, pdftotext and pdftoppm, on PDFs of clients. The process that receives the order
   (decode_process.c) forks once more and waits; the child executes the program. Before that the child restricts itself,
   for good:

   1. Files: it may read the system's libraries, fonts and settings, and nothing else (Landlock, where the kernel has
      it). The PDF and the output are open already, as standard input and output.
   2. System calls: those of a program that computes, reads and writes (seccomp); no network, no processes or threads,
      no signals to other processes. All other calls fail with EPERM.
   3. Memory, processor time and bytes of output (setrlimit).

   The child ends with its parent, and the parent when the server closes its end of the order's leash. */
#include "media/decode_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/limits.h"

static char paths[MT_PDF_PROGRAMS][MT_LIMIT_PATH];

/* Finds a program in the folders of a search path; leaves `out` empty where none has it. */
static void find(const char *search, const char *name, char out[MT_LIMIT_PATH])
{
    struct stat info;

    for (const char *at = search; *at && !*out; at += strcspn(at, ":"), at += *at == ':') {
        const int len = (int)strcspn(at, ":");

        if (*at != '/' || snprintf(out, MT_LIMIT_PATH, "%.*s/%s", len, at, name) >= MT_LIMIT_PATH ||
            stat(out, &info) != 0 || !S_ISREG(info.st_mode) || !(info.st_mode & S_IXUSR))
            *out = '\0';
    }
}

void mt_decode_find_programs(void)
{
    const char *search = getenv("PATH");

    if (!search)
        search = "/usr/local/bin:/usr/bin:/bin";
    find(search, "pdftotext", paths[MT_PDF_TEXT]);
    find(search, "pdftoppm", paths[MT_PDF_PICTURES]);
}

const char *mt_pdf_path(mt_pdf_program program)
{
    return *paths[program] ? paths[program] : NULL;
}

#if defined(__linux__) && (defined(__aarch64__) || defined(__x86_64__))

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/confine.h"

#ifdef __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH AUDIT_ARCH_X86_64
#endif

#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), RETURN(SECCOMP_RET_ALLOW)

/* The upper half of an argument; FIELD loads the lower one (both processors are little-endian). */
#define UPPER(index) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[index]) + 4)

/* Allows to read limits, not to set them: the third argument must be NULL, in both halves. */
#define ALLOW_READING(call)                                                                                   \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 6), FIELD(args[2]),                                   \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3), UPPER(2), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), \
        RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_ERRNO | EPERM)

static const struct sock_filter program[] = {
    FIELD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    FIELD(nr),
    ALLOW(read),
    ALLOW(readv),
    ALLOW(pread64),
    ALLOW(write),
    ALLOW(writev),
    ALLOW(pwrite64),
    ALLOW(lseek),
    ALLOW(openat),
    ALLOW(close),
    ALLOW(fstat),
    ALLOW(newfstatat),
    ALLOW(statx),
    ALLOW(statfs),
    ALLOW(fstatfs),
    ALLOW(faccessat),
    ALLOW(faccessat2),
    ALLOW(readlinkat),
    ALLOW(getdents64),
    ALLOW(getcwd),
    ALLOW(fcntl),
    ALLOW(fadvise64),
    ALLOW(mmap),
    ALLOW(mprotect),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW(madvise),
    ALLOW(brk),
    ALLOW(futex),
    ALLOW(set_tid_address),
    ALLOW(set_robust_list),
    ALLOW(rseq),
    ALLOW(sched_yield),
    ALLOW(sched_getaffinity),
    ALLOW(getrandom),
    ALLOW(clock_gettime),
    ALLOW(clock_getres),
    ALLOW(gettimeofday),
    ALLOW(getrusage),
    ALLOW(times),
    ALLOW(sysinfo),
    ALLOW(uname),
    ALLOW(getpid),
    ALLOW(gettid),
    ALLOW(getuid),
    ALLOW(geteuid),
    ALLOW(getgid),
    ALLOW(getegid),
    ALLOW(rt_sigaction),
    ALLOW(rt_sigprocmask),
    ALLOW(rt_sigreturn),
    ALLOW(sigaltstack),
    ALLOW(restart_syscall),
    ALLOW(execve),
    ALLOW(exit),
    ALLOW(exit_group),
#ifdef __x86_64__ /* calls that arm64 does not have */
    ALLOW(arch_prctl),
    ALLOW(open),
    ALLOW(stat),
    ALLOW(lstat),
    ALLOW(access),
    ALLOW(readlink),
    ALLOW(time),
#endif
    ALLOW_READING(prlimit64),
    RETURN(SECCOMP_RET_ERRNO | EPERM),
};

static bool filter(void)
{
    const struct sock_fprog all = {.len = MT_COUNT(program), .filter = (struct sock_filter *)(uintptr_t)program};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0) == 0;
}

#ifdef __GLIBC__
typedef __rlimit_resource_t resource; /* an enumeration in glibc */
#else
typedef int resource;
#endif

static void bound(resource what, rlim_t most)
{
    setrlimit(what, &(struct rlimit){.rlim_cur = most, .rlim_max = most});
}

/* Writes the command line of a program; `numbers` holds its numbers. */
static void spell(const mt_decode_order *o, char numbers[3][16], const char *arguments[20])
{
    const char *const text[] = {paths[MT_PDF_TEXT], "-enc", "UTF-8", "-f", numbers[0], "-l",
                                numbers[1],         "-",    "-",     NULL};
    const char *const pictures[] = {
        paths[MT_PDF_PICTURES], "-png", "-f", numbers[0], "-l", numbers[1], "-scale-to", numbers[2], "-", NULL};
    const bool is_text = o->program == MT_PDF_TEXT;

    snprintf(numbers[0], 16, "%u", o->first);
    snprintf(numbers[1], 16, "%u", o->last);
    snprintf(numbers[2], 16, "%u", o->side);
    memcpy(arguments, is_text ? text : pictures, is_text ? sizeof(text) : sizeof(pictures));
}

/* The child: restricts itself and executes the program. */
static _Noreturn void become(const mt_decode_order *o, const int files[MT_DECODE_MOST], int complaints, pid_t parent)
{
    static const mt_confine_path readable[] = {
        {.path = "/usr", .run = true},       {.path = "/lib", .run = true},       {.path = "/lib64", .run = true},
        {.path = "/nix/store", .run = true}, {.path = "/gnu/store", .run = true}, {.path = "/etc/fonts"},
        {.path = "/etc/ld.so.cache"},        {.path = "/var/cache/fontconfig"},   {.path = "/dev/null"}};
    char locale[] = "LC_ALL=C", home[] = "HOME=/nowhere";
    char *const environment[] = {locale, home, NULL};
    char numbers[3][16];
    const char *arguments[20];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(files[MT_DECODE_PAGE], 0) < 0 || dup2(files[MT_DECODE_OUTPUT], 1) < 0 ||
        dup2(complaints, 2) < 0)
        _exit(127);
    for (int i = 3; i < 64; i++) /* the process that forked has no more descriptors */
        close(i);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    spell(o, numbers, arguments);
    bound(RLIMIT_AS, o->memory);
    bound(RLIMIT_CPU, o->seconds);
    bound(RLIMIT_FSIZE, o->output);
    bound(RLIMIT_CORE, 0);
    bound(RLIMIT_NPROC, 0);
    mt_confine_to_run(readable, MT_COUNT(readable));
    if (!filter())
        _exit(127); /* else the program would run without protection */
    execve(arguments[0], (char *const *)(uintptr_t)arguments, environment);
    _exit(127);
}

_Noreturn void mt_decode_run(const mt_decode_order *order, const int files[MT_DECODE_MOST])
{
    static mt_decode_message out;
    const pid_t self = getpid();
    int ends[2], status = 0;
    struct rusage used;
    char rest[512];
    size_t len = 0;
    ssize_t n;
    pid_t child;

    signal(SIGCHLD, SIG_DFL); /* the child is waited for */
    if (order->program >= MT_PDF_PROGRAMS || !*paths[order->program] || pipe(ends) != 0 || (child = fork()) < 0)
        _exit(1);
    if (child == 0)
        become(order, files, ends[1], self);
    close(ends[1]);
    while ((n = read(ends[0], rest, sizeof(rest))) > 0 || (n < 0 && errno == EINTR)) {
        const size_t fits = MT_MIN(n > 0 ? (size_t)n : 0, sizeof(out.text) - 1 - len);

        memcpy(out.text + len, rest, fits);
        len += fits;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    out.kind = MT_DECODE_DONE;
    out.size = (uint64_t)(unsigned)status;
    if (getrusage(RUSAGE_CHILDREN, &used) == 0)
        out.cpu_ns = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000u +
                     (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000u;
    (void)mt_decode_send(files[MT_DECODE_SOCKET], &out, sizeof(out), NULL, 0);
    _exit(0);
}

#else

_Noreturn void mt_decode_run(const mt_decode_order *order, const int files[MT_DECODE_MOST])
{
    (void)order, (void)files;
    _exit(1);
}

#endif
