/* What the kernel offers, in the order in which it must be asked: no new privileges, then files, system calls,
   capabilities. What it does not offer is left out, and the caller is told.

   Files: all rights that Landlock of Linux 5.19 knows are taken away, and granted again below the given paths. An older
   Landlock forbids renaming between folders in any case, which downloads need, so it is not used. System calls: a list
   of those that are refused, not of those allowed, since libraries differ in what they call, and a server killed by a
   new C library is no safer. Capabilities: a server that is started as root is meant to read folders of other
   users and to listen on port 443; the three capabilities for that stay, within the rules for files. */
#include "base/confine.h"

#include "base/compiler.h"

#if MT_SANITIZED_ADDRESS
#include <sanitizer/common_interface_defs.h>
#endif

void mt_confine_prepare(void)
{
#if MT_SANITIZED_ADDRESS
    __sanitizer_sandbox_arguments none = {0};

    __sanitizer_sandbox_on_notify(&none);
#endif
}

static bool has_files; /* set before there are other threads */

bool mt_confine_has_files(void)
{
    return has_files;
}

#if defined(__linux__) && (defined(__aarch64__) || defined(__x86_64__)) && !MT_SANITIZED_THREAD

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

/* ---- files: Landlock, whose header older systems lack ---- */

enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_FOLDER = 1 << 3,
    REMOVE_FOLDER = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_CHAR = 1 << 6,
    MAKE_FOLDER = 1 << 7,
    MAKE_FILE = 1 << 8,
    MAKE_SOCKET = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11,
    MAKE_LINK = 1 << 12,
    MOVE = 1 << 13,     /* from version 2 on */
    TRUNCATE = 1 << 14, /* from version 3 on */
    READ = READ_FILE | READ_FOLDER,
    CHANGE =
        WRITE_FILE | REMOVE_FOLDER | REMOVE_FILE | MAKE_FOLDER | MAKE_FILE | MAKE_SOCKET | MAKE_LINK | MOVE | TRUNCATE,
    OF_FILES = READ_FILE | WRITE_FILE | TRUNCATE | EXECUTE,
    ALL = READ | CHANGE | EXECUTE | MAKE_CHAR | MAKE_FIFO | MAKE_BLOCK
};

/* Numbers of system calls, and constants of Landlock */
enum { CREATE = 444, ADD = 445, RESTRICT = 446, VERSION = 1, BENEATH = 1, OLDEST = 2 };

typedef struct ruleset {
    uint64_t rights;
} ruleset;

#pragma pack(push, 1)
typedef struct rule {
    uint64_t rights;
    int32_t folder;
} rule;
#pragma pack(pop)

/* Grants rights below a path. set: the rule set; handled: the rights that this kernel knows. */
static void allow(int set, const mt_confine_path *p, uint64_t handled)
{
    rule r = {.rights = (READ | (p->write ? CHANGE : 0) | (p->run ? EXECUTE : 0)) & handled,
              .folder = open(p->path, O_PATH | O_CLOEXEC)};
    struct stat info;

    if (r.folder < 0)
        return;
    if (fstat(r.folder, &info) == 0 && !S_ISDIR(info.st_mode))
        r.rights &= OF_FILES;
    syscall(ADD, set, BENEATH, &r, 0);
    close(r.folder);
}

static bool confine_files(const mt_confine_path *paths, size_t count)
{
    const long version = syscall(CREATE, NULL, 0, VERSION);
    const ruleset all = {.rights = version > 2 ? ALL : ALL & ~TRUNCATE};
    int set;
    bool ok;

    if (version < OLDEST || (set = (int)syscall(CREATE, &all, sizeof(all), 0)) < 0)
        return false;
    for (size_t i = 0; i < count; i++)
        allow(set, &paths[i], all.rights);
    ok = syscall(RESTRICT, set, 0) == 0;
    close(set);
    return ok;
}

/* ---- calls: seccomp ---- */

#ifdef __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH AUDIT_ARCH_X86_64
#endif
#define OTHER_NUMBERS 0x40000000 /* x86-64 has a second set of call numbers from here on */

#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define REFUSE(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), RETURN(SECCOMP_RET_ERRNO | EPERM)

static const struct sock_filter program[] = {
    FIELD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    FIELD(nr),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, OTHER_NUMBERS, 0, 1),
    RETURN(SECCOMP_RET_ERRNO | EPERM),
    REFUSE(execve),
    REFUSE(execveat),
#if !MT_SANITIZED /* the search for leaks traces its own threads */
    REFUSE(ptrace),
#endif
    REFUSE(process_vm_readv),
    REFUSE(process_vm_writev),
    REFUSE(mount),
    REFUSE(umount2),
    REFUSE(pivot_root),
    REFUSE(chroot),
    REFUSE(setns),
    REFUSE(unshare),
    REFUSE(init_module),
    REFUSE(finit_module),
    REFUSE(delete_module),
    REFUSE(kexec_load),
    REFUSE(bpf),
    REFUSE(perf_event_open),
    REFUSE(userfaultfd),
    REFUSE(add_key),
    REFUSE(keyctl),
    REFUSE(request_key),
    REFUSE(reboot),
    REFUSE(swapon),
    REFUSE(swapoff),
    REFUSE(acct),
    REFUSE(settimeofday),
    REFUSE(clock_settime),
    RETURN(SECCOMP_RET_ALLOW),
};

static bool confine_calls(void)
{
    const struct sock_fprog all = {.len = MT_COUNT(program), .filter = (struct sock_filter *)(uintptr_t)program};

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0) == 0;
}

/* ---- capabilities ---- */

static bool drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3];
    const uint32_t kept =
        geteuid() == 0 ? 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_NET_BIND_SERVICE : 0;

    if (syscall(__NR_capget, &head, own) != 0)
        return false;
    if (own[0].permitted == 0 && own[1].permitted == 0)
        return true; /* a service manager may have done so already, and kill a process that asks */
    for (size_t i = 0; i < MT_COUNT(own); i++) {
        own[i].permitted &= i == 0 ? kept : 0;
        own[i].effective = own[i].permitted;
        own[i].inheritable = 0;
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(__NR_capset, &head, own) == 0;
}

bool mt_confine_to_run(const mt_confine_path *paths, size_t count)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    const bool ok = confine_files(paths, count);

    return syscall(__NR_capset, &head, none) == 0 && ok;
}

unsigned mt_confine(const mt_confine_path *paths, size_t count)
{
    unsigned done = 0;

    mt_confine_prepare();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 0;
    has_files = confine_files(paths, count);
    done |= has_files ? MT_CONFINED_FILES : 0;
    done |= confine_calls() ? MT_CONFINED_CALLS : 0;
    done |= drop_capabilities() ? MT_CONFINED_CAPABILITIES : 0;
    return done;
}

#else

bool mt_confine_to_run(const mt_confine_path *paths, size_t count)
{
    (void)paths;
    (void)count;
    return false;
}

unsigned mt_confine(const mt_confine_path *paths, size_t count)
{
    (void)paths;
    (void)count;
    return 0;
}

#endif
