/* See upload.h. A file has its name once it is whole, has the digest, and is on disk; so a file that is found there can
   be used. A model has hard links to its files: the number of links tells whether a model still has one. */
#include "hub/upload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/limits.h"
#include "hub/limits.h"
#include "hub/names.h"
#include "hub/repo.h"

#define SPARE (64u << 20)   /* bytes that uploads leave free on the disk */
#define CHECKED (64u << 20) /* bytes between two looks at what is free */

#define FOLDER "motet-uploads" /* within the hub's cache, whose other entries have other names */
#define NEW ".new"
#define PART ".part"

struct mt_upload {
    EVP_MD_CTX *hash;
    int fd;
    uint64_t len;
    char digest[MT_UPLOAD_DIGITS + 1];
    char part[MT_LIMIT_PATH], whole[MT_LIMIT_PATH];
};

bool mt_upload_digest(const char *text, char digest[MT_UPLOAD_DIGITS + 1])
{
    static const char kind[] = "sha256";
    const char *digits = text + sizeof(kind);
    size_t count = 0;

    if (strncmp(text, kind, sizeof(kind) - 1) != 0 || !strchr(":-", text[sizeof(kind) - 1]) || !text[sizeof(kind) - 1])
        return false;
    for (; mt_hex_digit(digits[count]) >= 0 && count < MT_UPLOAD_DIGITS; count++)
        digest[count] = (char)(digits[count] >= 'A' && digits[count] <= 'F' ? digits[count] + 32 : digits[count]);
    digest[count] = '\0';
    return count == MT_UPLOAD_DIGITS && digits[count] == '\0';
}

/* The path of a file of the folder. */
static bool path_of(char path[MT_LIMIT_PATH], const char *cache, const char *digest, const char *suffix)
{
    return snprintf(path, MT_LIMIT_PATH, "%s/" FOLDER "/%s%s", cache, digest, suffix) < MT_LIMIT_PATH;
}

/* The path of the file of a digest, whether a model was made of it or not. */
static bool find(char path[MT_LIMIT_PATH], const char *cache, const char *digest)
{
    return (path_of(path, cache, digest, "") && access(path, R_OK) == 0) ||
           (path_of(path, cache, digest, NEW) && access(path, R_OK) == 0);
}

bool mt_upload_has(const char *cache, const char *digest)
{
    char path[MT_LIMIT_PATH];

    return find(path, cache, digest);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

/* Whether nothing needs a file any more. */
static bool is_unused(const char *name, const struct stat *st)
{
    const bool waits = ends_with(name, NEW) || ends_with(name, PART);

    return S_ISREG(st->st_mode) && st->st_nlink == 1 && (!waits || time(NULL) - st->st_mtime > MT_LIMIT_UPLOAD_AGE_S);
}

/* Removes what is not used; returns how many files are left. */
static size_t sweep(const char *cache)
{
    char folder[MT_LIMIT_PATH], path[MT_LIMIT_PATH];
    DIR *dir = mt_hub_join(folder, cache, FOLDER) ? opendir(folder) : NULL;
    size_t left = 0;
    struct stat st;

    for (const struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
        if (d->d_name[0] == '.' || !mt_hub_join(path, folder, d->d_name) || lstat(path, &st) != 0)
            continue;
        left += !is_unused(d->d_name, &st) || unlink(path) != 0;
    }
    if (dir)
        closedir(dir);
    return left;
}

void mt_upload_sweep(const char *cache)
{
    sweep(cache);
}

/* Whether the disk of that path has so many bytes left. */
static bool has_space(const char *path, uint64_t bytes, mt_error *err)
{
    mt_repo here;

    snprintf(here.model, sizeof(here.model), "%s", path);
    return mt_repo_check_room(&here, bytes, err);
}

/* Whether there may be one more file, of this size. */
static bool has_room(const char *cache, uint64_t size, mt_error *err)
{
    if (size != UINT64_MAX && size > MT_LIMIT_UPLOAD_BYTES)
        return mt_fail(err, MT_E_TOO_LARGE, "the file has more than %llu bytes: divide it",
                       (unsigned long long)MT_LIMIT_UPLOAD_BYTES);
    if (sweep(cache) >= MT_LIMIT_UPLOADS)
        return mt_fail(err, MT_E_TOO_LARGE, "there are %d uploaded files already: delete models that are made of them",
                       MT_LIMIT_UPLOADS);
    return has_space(cache, SPARE + (size == UINT64_MAX ? 0 : size), err);
}

static bool open_part(mt_upload *u, const char *cache, mt_error *err)
{
    static atomic_uint number;
    char suffix[48], folder[MT_LIMIT_PATH];

    /* relaxed: only a number that no other upload of this process has */
    snprintf(suffix, sizeof(suffix), ".%ld-%u" PART, (long)getpid(),
             atomic_fetch_add_explicit(&number, 1, memory_order_relaxed));
    if (!mt_hub_join(folder, cache, FOLDER) || !path_of(u->part, cache, u->digest, suffix) ||
        !path_of(u->whole, cache, u->digest, NEW))
        return mt_fail(err, MT_E_TOO_LARGE,
                       "the path of the hub's cache is too long: set HF_HUB_CACHE to a shorter one");
    u->fd =
        mt_file_make_folder(folder) ? open(u->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644) : -1;
    return u->fd >= 0 || mt_repo_fail(u->part, err);
}

mt_upload *mt_upload_new(const char *cache, const char *digest, uint64_t size, mt_error *err)
{
    mt_upload *u = mt_alloc(sizeof(*u));

    u->fd = -1;
    snprintf(u->digest, sizeof(u->digest), "%s", digest);
    u->hash = EVP_MD_CTX_new();
    if (((u->hash && EVP_DigestInit_ex(u->hash, EVP_sha256(), NULL) == 1) ||
         mt_fail(err, MT_E_INTERNAL, "OpenSSL has no SHA-256 here")) &&
        has_room(cache, size, err) && open_part(u, cache, err))
        return u;
    mt_upload_free(u);
    return NULL;
}

bool mt_upload_add(mt_upload *u, const void *data, size_t len, mt_error *err)
{
    if (len > MT_LIMIT_UPLOAD_BYTES - u->len)
        return mt_fail(err, MT_E_TOO_LARGE, "the file has more than %llu bytes: divide it",
                       (unsigned long long)MT_LIMIT_UPLOAD_BYTES);
    /* The length of a body in chunks is not known before, and others write meanwhile. */
    if (u->len / CHECKED != (u->len + len) / CHECKED && !has_space(u->part, CHECKED + SPARE, err))
        return false;
    EVP_DigestUpdate(u->hash, data, len);
    u->len += len;
    for (const char *at = data; len > 0;) {
        const ssize_t n = write(u->fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mt_repo_fail(u->part, err);
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool mt_upload_end(mt_upload *u, mt_error *err)
{
    uint8_t bytes[MT_UPLOAD_DIGITS / 2];
    char found[MT_UPLOAD_DIGITS + 1];

    EVP_DigestFinal_ex(u->hash, bytes, NULL);
    mt_hex_text(bytes, sizeof(bytes), found);
    if (strcmp(found, u->digest) != 0)
        return mt_fail(err, MT_E_INVALID, "the file has the digest sha256:%s: name it so, or send it again", found);
    if (fsync(u->fd) != 0 || rename(u->part, u->whole) != 0)
        return mt_repo_fail(u->part, err);
    u->part[0] = '\0';
    return true;
}

void mt_upload_free(mt_upload *u)
{
    if (!u)
        return;
    if (u->fd >= 0) {
        close(u->fd);
        if (u->part[0])
            unlink(u->part);
    }
    EVP_MD_CTX_free(u->hash);
    mt_free(u);
}

bool mt_upload_name_ok(const char *name)
{
    mt_hub_name read;

    return mt_hub_name_read(&read, name) && !strchr(name, '@') && !read.owned;
}

/* The name of a snapshot of these files: the beginning of a digest of their names and digests. */
static void commit_of(const mt_upload_file *files, size_t count, char commit[MT_HUB_COMMIT + 1])
{
    uint8_t bytes[MT_UPLOAD_DIGITS / 2] = {0};
    EVP_MD_CTX *hash = EVP_MD_CTX_new();

    EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
    for (size_t i = 0; i < count; i++) {
        EVP_DigestUpdate(hash, files[i].name, strlen(files[i].name) + 1);
        EVP_DigestUpdate(hash, files[i].digest, MT_UPLOAD_DIGITS);
    }
    EVP_DigestFinal_ex(hash, bytes, NULL);
    EVP_MD_CTX_free(hash);
    mt_hex_text(bytes, MT_HUB_COMMIT / 2, commit);
}

/* Gives the model a hard link to a file. */
static bool link_file(const char *cache, const mt_repo *repo, const char *digest, mt_error *err)
{
    char from[MT_LIMIT_PATH], to[MT_LIMIT_PATH], used[MT_LIMIT_PATH];

    if (!find(from, cache, digest))
        return mt_fail(err, MT_E_NOT_FOUND, "the file sha256:%s is not here: upload it to /api/blobs first", digest);
    if (!mt_repo_blob(to, repo, digest, false, err))
        return false;
    if (link(from, to) != 0 && errno != EEXIST)
        return mt_repo_fail(to, err);
    /* another creation may have renamed it meanwhile */
    if (path_of(used, cache, digest, "") && strcmp(used, from) != 0 && rename(from, used) != 0 &&
        access(used, F_OK) != 0)
        return mt_repo_fail(used, err);
    return true;
}

bool mt_upload_model(const char *cache, const char *id, const mt_upload_file *files, size_t count, mt_error *err)
{
    char commit[MT_HUB_COMMIT + 1];
    mt_repo repo;

    for (size_t i = 0; i < count; i++)
        if (!mt_upload_has(cache, files[i].digest))
            return mt_fail(err, MT_E_NOT_FOUND, "the file sha256:%s is not here: upload it to /api/blobs first",
                           files[i].digest);
    if (!mt_repo_open(&repo, cache, id, err))
        return false;
    commit_of(files, count, commit);
    for (size_t i = 0; i < count; i++)
        if (!link_file(cache, &repo, files[i].digest, err) ||
            !mt_repo_link(&repo, commit, files[i].name, files[i].digest, err))
            return false;
    return mt_repo_ref(&repo, "main", commit, err);
}
