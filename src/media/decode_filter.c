/* The system calls that the kernel allows a decoder process, as a seccomp program. All others fail with EPERM,
   so libraries that try more (the number of processors, say) go on without. No allowed call opens a file, makes a
   socket, starts a process or thread, or makes memory executable. */
#include "media/decode_inside.h"

#include "base/compiler.h"
#include "base/confine.h"

#if defined(__linux__) && (defined(__aarch64__) || defined(__x86_64__)) && !MT_SANITIZED_THREAD

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#ifdef __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH AUDIT_ARCH_X86_64
#endif

/* Arguments are 64 bits wide; FIELD loads the low half, which comes first on these machines and has all flags. */
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define REFUSE RETURN(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), RETURN(SECCOMP_RET_ALLOW)

/* Allows a call whose third argument is a memory protection, unless that includes PROT_EXEC. */
#define ALLOW_DATA(call)                                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 4), FIELD(args[2]), \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), REFUSE, RETURN(SECCOMP_RET_ALLOW)

static const struct sock_filter program[] = {
    FIELD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    FIELD(nr), /* numbers of x86-64's x32 calls are higher than all of these, and so refused */
    ALLOW(read),
    ALLOW(write),
    ALLOW(recvmsg),
    ALLOW(sendmsg),
    ALLOW(close),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW(madvise),
    ALLOW(brk),
    ALLOW(futex),
    ALLOW(sched_yield),
    ALLOW(sched_getaffinity),
    ALLOW(getrandom),
    ALLOW(clock_gettime),
    ALLOW(setitimer),
    ALLOW(getpid),
    ALLOW(gettid),
#if MT_SANITIZED_ADDRESS
    ALLOW(sigaltstack), /* it looks for the stack before each call that does not return */
#endif
    ALLOW(rt_sigreturn),
    ALLOW(rt_sigprocmask),
    ALLOW(restart_syscall),
    ALLOW(exit),
    ALLOW(exit_group),
    ALLOW_DATA(mmap),
    FIELD(nr),
    ALLOW_DATA(mprotect),
    REFUSE,
};

bool mt_decode_can_filter(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

bool mt_decode_filter(void)
{
    const struct sock_fprog all = {.len = sizeof(program) / sizeof(program[0]),
                                   .filter = (struct sock_filter *)(uintptr_t)program};

    mt_confine_prepare();
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0) == 0;
}

#else

bool mt_decode_can_filter(void)
{
    return false;
}

bool mt_decode_filter(void)
{
    return false;
}

#endif
