/* A model's folder in the hub's cache (repo.h). */
#include "hub/repo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/units.h"

bool mt_repo_fail(const char *path, mt_error *err)
{
    const int code = errno;

    if (code == ENOSPC || code == EDQUOT || code == EFBIG)
        return mt_fail(err, MT_E_IO,
                       "there is no room for \"%s\" (%s): make some with motet rm, or set HF_HUB_CACHE to a folder on "
                       "another disk; a pull goes on where it ended",
                       path, strerror(code));
    if (code == EACCES || code == EPERM || code == EROFS)
        return mt_fail(err, MT_E_IO,
                       "\"%s\" may not be written (%s): change its permissions, or set HF_HUB_CACHE to a folder of "
                       "yours",
                       path, strerror(code));
    return mt_fail(err, MT_E_IO, "\"%s\" cannot be written (%s): set HF_HUB_CACHE to another folder", path,
                   strerror(code));
}

static bool fail_long(mt_error *err)
{
    return mt_fail(err, MT_E_TOO_LARGE, "the path of the hub's cache is too long: set HF_HUB_CACHE to a shorter one");
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Makes the folders on the path to a file. For an existing one, some systems report another error than EEXIST. */
static bool make_folders(const char *path, mt_error *err)
{
    char part[MT_LIMIT_PATH];

    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (!is_folder(part) && mkdir(part, 0777) != 0 && !(errno == EEXIST && is_folder(part)))
            return mt_repo_fail(part, err);
        *slash = '/';
    }
    return true;
}

bool mt_repo_open(mt_repo *repo, const char *cache, const char *id, mt_error *err)
{
    char path[MT_LIMIT_PATH], folder[MT_LIMIT_PATH];

    if (!mt_hub_folder(repo->model, cache, id) || !mt_hub_folder(folder, "", id) ||
        snprintf(repo->locks, sizeof(repo->locks), "%s/.locks%s", cache, folder) >= (int)sizeof(repo->locks))
        return fail_long(err);
    if (!mt_hub_join(path, repo->model, "blobs/x") || !make_folders(path, err) ||
        !mt_hub_join(path, repo->model, "snapshots/x") || !make_folders(path, err))
        return false;
    return mt_hub_join(path, repo->locks, "x") && make_folders(path, err);
}

bool mt_repo_blob(char path[MT_LIMIT_PATH], const mt_repo *repo, const char *digest, bool incomplete, mt_error *err)
{
    return snprintf(path, MT_LIMIT_PATH, "%s/blobs/%s%s", repo->model, digest, incomplete ? ".incomplete" : "") <
               MT_LIMIT_PATH ||
           fail_long(err);
}

bool mt_repo_whole(const mt_repo *repo, const char *digest, uint64_t size)
{
    char path[MT_LIMIT_PATH];
    struct stat st;

    return mt_repo_blob(path, repo, digest, false, NULL) && stat(path, &st) == 0 && (uint64_t)st.st_size == size;
}

uint64_t mt_repo_have(const mt_repo *repo, const char *digest, uint64_t size)
{
    char path[MT_LIMIT_PATH];
    struct stat st;

    if (mt_repo_whole(repo, digest, size))
        return size;
    if (mt_repo_blob(path, repo, digest, true, NULL) && stat(path, &st) == 0 && (uint64_t)st.st_size < size)
        return (uint64_t)st.st_size;
    return 0;
}

/* Whether an open lock file is still at its path: a process that releases a lock may remove its file. */
static bool is_same(int fd, const char *path)
{
    struct stat ours, theirs;

    return fstat(fd, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
           ours.st_dev == theirs.st_dev;
}

bool mt_repo_lock(const mt_repo *repo, const char *digest, int *fd, mt_error *err)
{
    char path[MT_LIMIT_PATH];

    if (snprintf(path, sizeof(path), "%s/%s.lock", repo->locks, digest) >= (int)sizeof(path))
        return fail_long(err);
    for (;;) {
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0664);
        if (*fd < 0)
            return mt_repo_fail(path, err);
        const int locked = flock(*fd, LOCK_EX | LOCK_NB);
        if (locked == 0 && is_same(*fd, path))
            return true;
        if (locked != 0 && errno != EWOULDBLOCK && errno != EINTR)
            return true; /* a disk without locks: digests are checked anyway */
        close(*fd);
        *fd = -1;
        if (locked != 0)
            return true;
    }
}

static bool leads_to(const char *path, const char *target)
{
    char now[MT_LIMIT_PATH];
    const ssize_t len = readlink(path, now, sizeof(now) - 1);

    if (len < 0)
        return false;
    now[len] = '\0';
    return strcmp(now, target) == 0;
}

bool mt_repo_link(const mt_repo *repo, const char *commit, const char *name, const char *digest, mt_error *err)
{
    char path[MT_LIMIT_PATH], passing[MT_LIMIT_PATH], target[MT_LIMIT_PATH] = "../..";
    size_t len = strlen(target);

    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/'))
        len += (size_t)snprintf(target + len, sizeof(target) - len, "/..");
    snprintf(target + len, sizeof(target) - len, "/blobs/%s", digest);
    if (snprintf(path, sizeof(path), "%s/snapshots/%s/%s", repo->model, commit, name) >= (int)sizeof(path) ||
        snprintf(passing, sizeof(passing), "%s.%ld", path, (long)getpid()) >= (int)sizeof(passing))
        return fail_long(err);
    if (leads_to(path, target))
        return true;
    if (!make_folders(path, err))
        return false;
    unlink(passing);
    if (symlink(target, passing) == 0 && rename(passing, path) == 0)
        return true;
    mt_repo_fail(path, err);
    unlink(passing);
    return false;
}

/* Writes a temporary file completely before it gets its name. */
static bool write_text(const char *path, const char *text, mt_error *err)
{
    char passing[MT_LIMIT_PATH];
    const size_t len = strlen(text);
    bool ok;
    int fd;

    if (snprintf(passing, sizeof(passing), "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof(passing))
        return fail_long(err);
    fd = open(passing, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    ok = fd >= 0 && write(fd, text, len) == (ssize_t)len;
    ok = (fd < 0 || close(fd) == 0) && ok && rename(passing, path) == 0;
    if (ok)
        return true;
    mt_repo_fail(path, err);
    unlink(passing);
    return false;
}

bool mt_repo_ref(const mt_repo *repo, const char *revision, const char *commit, mt_error *err)
{
    char path[MT_LIMIT_PATH];

    if (snprintf(path, sizeof(path), "%s/refs/%s", repo->model, revision) >= (int)sizeof(path))
        return fail_long(err);
    return make_folders(path, err) && write_text(path, commit, err);
}

bool mt_repo_check_room(const mt_repo *repo, uint64_t bytes, mt_error *err)
{
    char need[MT_UNITS_TEXT], have[MT_UNITS_TEXT];
    struct statvfs fs;

    if (statvfs(repo->model, &fs) != 0)
        return true;
    const uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
    return bytes <= room ||
           mt_fail(err, MT_E_IO,
                   "\"%s\" has %s free, and %s are to come: make room with motet rm, or set HF_HUB_CACHE to a folder "
                   "on another disk",
                   repo->model, mt_bytes_text(room, have), mt_bytes_text(bytes, need));
}
