/* See file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/limits.h"
#include "base/mapping.h"

static bool fail_system(mt_error *err, const char *path, const char *verb, int code)
{
    if (code == ENOENT || code == ENOTDIR)
        return mt_fail(err, MT_E_NOT_FOUND, "\"%s\" does not exist: check the path", path);
    if (code == EACCES || code == EPERM)
        return mt_fail(err, MT_E_IO, "\"%s\" may not be read: check its permissions%s", path,
                       mt_confine_has_files() ? ", or restart the server where its folder is a new one" : "");
    return mt_fail(err, MT_E_IO, "cannot %s \"%s\": %s", verb, path, strerror(code));
}

bool mt_file_absent(const char *path)
{
    struct stat st;

    return stat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* For an existing folder, some systems report another error than EEXIST. */
static bool make_one(const char *path)
{
    struct stat st;

    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return true;
    const int why = errno;
    if (stat(path, &st) == 0)
        return true;
    errno = why;
    return false;
}

bool mt_file_make_folder(const char *path)
{
    char part[MT_LIMIT_PATH];

    if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part)) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (!make_one(part))
            return false;
        *at = '/';
    }
    return make_one(part);
}

void mt_file_take_standard(void)
{
    int fd;

    do /* the way that the standard files are not used */
        fd = open("/dev/null", fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Opens a regular file; *size: its size. Returns the descriptor; -1: *err. */
static int open_regular(const char *path, size_t *size, mt_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: opening a FIFO must not block */

    if (fd < 0) {
        fail_system(err, path, "open", errno);
        return -1;
    }
    if (fstat(fd, &st))
        fail_system(err, path, "examine", errno);
    else if (S_ISDIR(st.st_mode))
        mt_fail(err, MT_E_INVALID, "\"%s\" is a folder: name a file", path);
    else if (!S_ISREG(st.st_mode))
        mt_fail(err, MT_E_INVALID, "\"%s\" is not a regular file: name one that is", path);
    else {
        *size = (size_t)st.st_size;
        return fd;
    }
    close(fd);
    return -1;
}

bool mt_file_map(mt_file *file, const char *path, mt_error *err)
{
    size_t size;
    void *data = NULL;
    int code = 0, fd = open_regular(path, &size, err);

    *file = (mt_file){0};
    if (fd < 0)
        return false;
    if (size > 0) {
        data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        code = errno;
    }
    close(fd);
    if (data == MAP_FAILED)
        return fail_system(err, path, "map", code);
    *file = (mt_file){.data = data, .size = size};
    if (size > 0)
        mt_mapping_add(data, size, path);
    return true;
}

void mt_file_unmap(mt_file *file)
{
    if (file->size > 0) {
        mt_mapping_remove(file->data);
        munmap((void *)(uintptr_t)file->data, file->size);
    }
    *file = (mt_file){0};
}

/* Reads to the end of the file, whatever its size was before. Returns 0 or an errno; E2BIG: buf is full. */
static int read_all(int fd, mt_buf *buf)
{
    char part[16384];

    for (;;) {
        ssize_t n = read(fd, part, sizeof(part));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : 0;
        if (!mt_buf_add(buf, part, (size_t)n))
            return E2BIG;
    }
}

bool mt_file_read(mt_buf *buf, const char *path, mt_error *err)
{
    size_t size;
    int code, fd = open_regular(path, &size, err);

    if (fd < 0)
        return false;
    code = size > buf->limit - buf->len ? E2BIG : read_all(fd, buf);
    close(fd);
    if (code == E2BIG)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "\"%s\" is larger than the %zu bytes allowed for it: check that it is the right file", path,
                       buf->limit);
    if (code)
        return fail_system(err, path, "read", code);
    return true;
}
