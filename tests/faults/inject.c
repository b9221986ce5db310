/* Linked into motet, it makes a program in which all that can fail does so when a test wants it. The linker sends the
   program's calls here first (--wrap); nothing of it is in motet itself.

   A place that asks for something is known by the address of its call: of the frames above this file, the first that is
   in the program and not in a function whose work it is to ask for others (a "door": mt_alloc, mt_buf_add and so on).
   So a place has a name, file and line, that tests/faults/control.py makes of the address.

   Calls that libraries make for the program, such as libevent's to readv, come here as well: a program's own function
   of that name is used before the C library's. */
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "device/device.h"

extern const char __executable_start[], etext[];

enum { FRAMES = 24 };

static fault_control *control;
static MT_THREAD_LOCAL bool inside;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("MOTET_FAULTS");
    void *frames[2];
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at = file >= 0 ? mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;

    if (file >= 0)
        close(file);
    backtrace(frames, 2); /* the first call allocates */
    control = at == MAP_FAILED ? NULL : at;
}

static bool is_door(uint64_t offset)
{
    uint64_t low = 0, high = control->door_count; /* they ascend */

    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        if (offset >= control->door[middle][1])
            low = middle + 1;
        else
            high = middle;
    }
    return low < control->door_count && offset >= control->door[low][0];
}

static uint64_t find_key(fault_kind kind)
{
    void *frames[FRAMES];
    const int count = backtrace(frames, FRAMES);

    for (int i = 0; i < count; i++) {
        const uintptr_t at = (uintptr_t)frames[i] - 1;
        if (at < (uintptr_t)__executable_start || at >= (uintptr_t)etext)
            continue;
        if (!is_door(at - (uintptr_t)__executable_start))
            return (uint64_t)(kind + 1) << 56 | (at - (uintptr_t)__executable_start);
    }
    return (uint64_t)(kind + 1) << 56;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void note(uint64_t key)
{
    for (uint64_t i = mix(key), tried = 0; tried < FAULT_SITES; i++, tried++) {
        fault_site *s = &control->site[i % FAULT_SITES];
        uint_fast64_t was = 0;
        if (atomic_load(&s->key) == key || atomic_compare_exchange_strong(&s->key, &was, key) || was == key) {
            atomic_fetch_add(&s->passes, 1);
            return;
        }
    }
    atomic_fetch_add(&control->lost, 1);
}

static bool is_next(uint64_t key)
{
    const uint64_t wanted = atomic_load(&control->key);

    if ((wanted && wanted != key) || (!wanted && !(atomic_load(&control->kinds) >> ((key >> 56) - 1) & 1)))
        return false;
    return atomic_fetch_sub(&control->nth, 1) == 1;
}

static bool is_unlucky(uint64_t key, uint64_t pass)
{
    return atomic_load(&control->kinds) >> ((key >> 56) - 1) & 1 &&
           mix(mix(atomic_load(&control->seed)) + pass) >> 32 < atomic_load(&control->rate);
}

/* Whether what is asked for now fails. */
static bool fails(fault_kind kind)
{
    const int before = errno;
    bool failed = false;

    if (!control || inside || atomic_load(&control->mode) == FAULT_OFF)
        return false;
    inside = true;
    const uint64_t key = find_key(kind), pass = atomic_fetch_add(&control->passes, 1);
    note(key);
    switch (atomic_load(&control->mode)) {
    case FAULT_NTH: failed = is_next(key); break;
    case FAULT_RANDOM: failed = is_unlucky(key, pass); break;
    default: break;
    }
    if (failed) {
        atomic_store(&control->last, key);
        atomic_fetch_add(&control->fired, 1);
    }
    inside = false;
    errno = before;
    return failed;
}

/* WRAP(kind, what to return and errno, type, name, parameters, arguments) */
#define WRAP(kind, failed, code, type, name, parameters, arguments) \
    type __real_##name parameters;                                  \
    type __wrap_##name parameters;                                  \
    type __wrap_##name parameters                                   \
    {                                                               \
        if (fails(kind)) {                                          \
            errno = code;                                           \
            return failed;                                          \
        }                                                           \
        return __real_##name arguments;                             \
    }

/* ---- memory, files ---- */

WRAP(FAULT_ALLOC, NULL, ENOMEM, void *, calloc, (size_t count, size_t size), (count, size))
WRAP(FAULT_ALLOC, NULL, ENOMEM, void *, realloc, (void *ptr, size_t size), (ptr, size))
WRAP(FAULT_ALLOC, ENOMEM, ENOMEM, int, posix_memalign, (void **ptr, size_t align, size_t size), (ptr, align, size))
WRAP(FAULT_OPEN, NULL, EMFILE, FILE *, fopen64, (const char *path, const char *mode), (path, mode))
WRAP(FAULT_OPEN, NULL, EMFILE, void *, opendir, (const char *path), (path))
WRAP(FAULT_OPEN, -1, EMFILE, int, memfd_create, (const char *name, unsigned flags), (name, flags))
WRAP(FAULT_OPEN, -1, EMFILE, int, pipe, (int ends[2]), (ends))
WRAP(FAULT_OPEN, -1, EMFILE, int, pipe2, (int ends[2], int flags), (ends, flags))
WRAP(FAULT_OPEN, -1, EMFILE, int, eventfd, (unsigned first, int flags), (first, flags))
WRAP(FAULT_READ, -1, EIO, ssize_t, read, (int fd, void *to, size_t size), (fd, to, size))
WRAP(FAULT_READ, -1, EIO, ssize_t, preadv64, (int fd, const struct iovec *v, int count, off_t at), (fd, v, count, at))
WRAP(FAULT_READ, -1, EIO, int, fstat64, (int fd, void *info), (fd, info))
WRAP(FAULT_READ, -1, EIO, int, stat64, (const char *path, void *info), (path, info))
WRAP(FAULT_WRITE, -1, ENOSPC, ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size))
WRAP(FAULT_WRITE, -1, ENOSPC, ssize_t, pwritev64, (int fd, const struct iovec *v, int count, off_t at),
     (fd, v, count, at))
WRAP(FAULT_WRITE, -1, ENOSPC, int, ftruncate64, (int fd, off_t size), (fd, size))
WRAP(FAULT_WRITE, -1, EROFS, int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(FAULT_SYNC, -1, EIO, int, fdatasync, (int fd), (fd))
WRAP(FAULT_SYNC, -1, EIO, int, fsync, (int fd), (fd))
WRAP(FAULT_MAP, MAP_FAILED, ENOMEM, void *, mmap64,
     (void *at, size_t size, int protection, int flags, int fd, off_t offset),
     (at, size, protection, flags, fd, offset))

int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode)
{
    errno = EMFILE;
    return fails(FAULT_OPEN) ? -1 : __real_open64(path, flags, mode);
}

int __real_openat64(int folder, const char *path, int flags, mode_t mode);
int __wrap_openat64(int folder, const char *path, int flags, mode_t mode);
int __wrap_openat64(int folder, const char *path, int flags, mode_t mode)
{
    errno = EMFILE;
    return fails(FAULT_OPEN) ? -1 : __real_openat64(folder, path, flags, mode);
}

/* ---- sockets, threads, processes ---- */

WRAP(FAULT_SOCKET, -1, EMFILE, int, socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(FAULT_SOCKET, -1, EMFILE, int, socketpair, (int domain, int type, int protocol, int ends[2]),
     (domain, type, protocol, ends))
WRAP(FAULT_SOCKET, -1, EADDRINUSE, int, bind, (int fd, const struct sockaddr *address, socklen_t len),
     (fd, address, len))
WRAP(FAULT_SOCKET, -1, EADDRINUSE, int, listen, (int fd, int backlog), (fd, backlog))
WRAP(FAULT_SOCKET, -1, ENOBUFS, ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
     (fd, message, flags))
WRAP(FAULT_SOCKET, -1, ENOMEM, ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
WRAP(FAULT_FORK, -1, EAGAIN, pid_t, fork, (void), ())
WRAP(FAULT_THREAD, EAGAIN, EAGAIN, int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *how, void *(*run)(void *), void *ctx), (thread, how, run, ctx))

#if !MT_SANITIZED /* whose own functions these would hide */
static void find(const char *name, void *function)
{
    void *next = dlsym(RTLD_NEXT, name);

    memcpy(function, &next, sizeof(next)); /* C has no other way from one kind of pointer to the other */
}

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    static int (*real)(int, struct sockaddr *, socklen_t *, int);

    if (!real)
        find("accept4", &real);
    if (!fails(FAULT_SOCKET))
        return real(fd, address, len, flags);
    errno = EMFILE;
    return -1;
}

ssize_t readv(int fd, const struct iovec *v, int count)
{
    static ssize_t (*real)(int, const struct iovec *, int);

    if (!real)
        find("readv", &real);
    if (!fails(FAULT_SOCKET))
        return real(fd, v, count);
    errno = ECONNRESET;
    return -1;
}

ssize_t writev(int fd, const struct iovec *v, int count)
{
    static ssize_t (*real)(int, const struct iovec *, int);

    if (!real)
        find("writev", &real);
    if (!fails(FAULT_SOCKET))
        return real(fd, v, count);
    errno = EPIPE;
    return -1;
}
#endif

/* ---- devices ---- */

/* Devices of which an operation has failed and that were not reopened since. Each is used by one thread. */
static _Atomic(const mt_device *) sick[64];

static bool is_sick(const mt_device *dev)
{
    for (size_t i = 0; i < MT_COUNT(sick); i++)
        if (atomic_load(&sick[i]) == dev)
            return true;
    return false;
}

static void fall_sick(const mt_device *dev)
{
    for (size_t i = 0; i < MT_COUNT(sick) && !is_sick(dev); i++) {
        const mt_device *nobody = NULL;
        if (atomic_compare_exchange_strong(&sick[i], &nobody, dev))
            return;
    }
}

static void recover(const mt_device *dev)
{
    for (size_t i = 0; i < MT_COUNT(sick); i++) {
        const mt_device *it = dev;
        atomic_compare_exchange_strong(&sick[i], &it, NULL);
    }
}

bool __real_mt_device_well(const mt_device *dev, mt_error *err);
bool __wrap_mt_device_well(const mt_device *dev, mt_error *err);
bool __wrap_mt_device_well(const mt_device *dev, mt_error *err)
{
    if (fails(FAULT_DEVICE))
        fall_sick(dev);
    if (is_sick(dev))
        return mt_fail(err, MT_E_IO, "the device has failed: it was told to");
    return __real_mt_device_well(dev, err);
}

bool __real_mt_device_renew(mt_device *dev, mt_error *err);
bool __wrap_mt_device_renew(mt_device *dev, mt_error *err);
bool __wrap_mt_device_renew(mt_device *dev, mt_error *err)
{
    if (fails(FAULT_DEVICE))
        return mt_fail(err, MT_E_IO, "the device cannot be opened: it was told so");
    recover(dev);
    return __real_mt_device_renew(dev, err);
}

void __real_mt_device_close(mt_device *dev);
void __wrap_mt_device_close(mt_device *dev);
void __wrap_mt_device_close(mt_device *dev)
{
    recover(dev); /* the next may have its address */
    __real_mt_device_close(dev);
}

static void hang(void)
{
    const bool wanted = fails(FAULT_HANG);

    for (uint64_t ms = 0; wanted && ms < atomic_load(&control->hang); ms += 10)
        usleep(10000);
}

void __real_mt_op_scale(mt_device *dev, mt_tensor *x, size_t m, float factor);

/* The first row of what an operation of the step has computed. */
static void spoil(const char *name, mt_device *dev, void *y)
{
    static const char *const some[] = {"op_embed", "op_norm", "op_layer_norm", "op_add",    "op_matmul",
                                       "op_glu",   "op_act",  "op_attention",  "op_pixels", "op_gather"};

    for (size_t i = 0; i < MT_COUNT(some); i++)
        if (strcmp(name, some[i]) == 0 && fails(FAULT_NAN))
            __real_mt_op_scale(dev, y, 1, NAN);
}

static void spare(const char *name, mt_device *dev, void *y)
{
    if (strcmp(name, "device_wait") == 0 || strcmp(name, "step_chosen") == 0)
        hang();
    (void)dev, (void)y;
}

/* Every call and operation that has no answer may make the device fail, or its numbers; and what waits for the device
   may wait for long. */
#define SECOND_OF(first, second, ...) second
#define SECOND(...) SECOND_OF(__VA_ARGS__, NULL, NULL)
#define OPERATE(result, name, parameters, arguments)                        \
    result __real_mt_##name parameters;                                     \
    result __wrap_mt_##name parameters;                                     \
    result __wrap_mt_##name parameters                                      \
    {                                                                       \
        if (fails(FAULT_DEVICE))                                            \
            fall_sick(dev);                                                 \
        __real_mt_##name arguments;                                         \
        _Generic(SECOND arguments, mt_tensor *                              \
                 : spoil, default                                           \
                 : spare)(#name, dev, (void *)(uintptr_t)SECOND arguments); \
    }
MT_DEVICE_CALLS(OPERATE)
MT_DEVICE_OPERATIONS(OPERATE)
