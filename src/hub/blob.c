/* Downloads a file (blob.h).

   The part that is downloaded is in DIGEST.incomplete, which only the holder of the lock writes. The digest is computed
   meanwhile, so that a file is read again only when a download is continued. A file gets its final name when it is
   complete, has the right digest and is on disk; so a blob that is found can be used. */
#include "hub/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/log.h"
#include "hub/limits.h"

#define PART (1u << 20)
#define SHA256_DIGITS 64

/* A download under way. */
typedef struct download {
    const mt_blob *blob;
    EVP_MD_CTX *digest;
    char path[MT_LIMIT_PATH]; /* of the incomplete file */
    int fd;
    uint64_t have;
    bool first;   /* the first part of a body: its headers are not checked yet */
    bool resumed; /* some of it was downloaded by an earlier process */
} download;

static void tell(download *d)
{
    /* relaxed: only a counter */
    atomic_store_explicit(d->blob->done, d->have, memory_order_relaxed);
}

static bool begin_digest(download *d, mt_error *err)
{
    const bool lfs = strlen(d->blob->digest) == SHA256_DIGITS;
    char head[40];
    const int len = snprintf(head, sizeof(head), "blob %llu", (unsigned long long)d->blob->size) + 1;

    return (EVP_DigestInit_ex(d->digest, lfs ? EVP_sha256() : EVP_sha1(), NULL) == 1 &&
            (lfs || EVP_DigestUpdate(d->digest, head, (size_t)len) == 1)) ||
           mt_fail(err, MT_E_INTERNAL, "OpenSSL has no %s here", lfs ? "SHA-256" : "SHA-1");
}

static bool start_over(download *d, mt_error *err)
{
    d->have = 0;
    d->resumed = false;
    tell(d);
    if (ftruncate(d->fd, 0) != 0 || lseek(d->fd, 0, SEEK_SET) != 0)
        return mt_repo_fail(d->path, err);
    return begin_digest(d, err);
}

/* Computes the digest of what is downloaded already. */
static bool read_back(download *d, mt_error *err)
{
    char *part = mt_alloc(PART);
    ssize_t len;

    while ((len = read(d->fd, part, PART)) > 0) {
        EVP_DigestUpdate(d->digest, part, (size_t)len);
        d->have += (uint64_t)len;
        tell(d);
    }
    mt_free(part);
    return len == 0 || mt_repo_fail(d->path, err);
}

static bool open_incomplete(download *d, mt_error *err)
{
    struct stat st;

    if (!mt_repo_blob(d->path, d->blob->repo, d->blob->digest, true, err))
        return false;
    d->fd = open(d->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (d->fd < 0 || fstat(d->fd, &st) != 0)
        return mt_repo_fail(d->path, err);
    if ((uint64_t)st.st_size > d->blob->size)
        return start_over(d, err);
    d->resumed = st.st_size > 0;
    return begin_digest(d, err) && read_back(d, err);
}

/* Checks that the headers of a body agree with the list of files. */
static bool check_head(download *d, const mt_line_answer *a, mt_error *err)
{
    if (*a->commit && strcmp(a->commit, d->blob->commit) != 0)
        return mt_fail(err, MT_E_INVALID, "the hub sends \"%s\" of another revision than it listed: try again later",
                       d->blob->name);
    if (mt_remote_is_digest(a->digest) && strcmp(a->digest, d->blob->digest) != 0)
        return mt_fail(err, MT_E_INVALID, "the hub sends another \"%s\" than it listed: try again later",
                       d->blob->name);
    if (a->size >= 0 && (uint64_t)a->size != d->blob->size)
        return mt_fail(err, MT_E_INVALID,
                       "the hub says that \"%s\" has %lld bytes, and has listed %llu: try again later", d->blob->name,
                       (long long)a->size, (unsigned long long)d->blob->size);
    if ((uint64_t)a->from == d->have)
        return true;
    return a->from == 0 ? start_over(d, err)
                        : mt_fail(err, MT_E_INVALID,
                                  "the hub sends another part of \"%s\" than it was asked for: try "
                                  "again later",
                                  d->blob->name);
}

static bool write_all(download *d, const char *data, size_t len, mt_error *err)
{
    while (len > 0) {
        const ssize_t n = write(d->fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return mt_repo_fail(d->path, err);
        EVP_DigestUpdate(d->digest, data, (size_t)n);
        d->have += (uint64_t)n;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

static bool take(void *arg, const mt_line_answer *answer, const char *data, size_t len, mt_error *err)
{
    download *d = arg;

    if (d->first && !check_head(d, answer, err))
        return false;
    d->first = false;
    if (len > d->blob->size - d->have)
        return mt_fail(err, MT_E_INVALID, "the hub sends more of \"%s\" than the %llu bytes it listed: try again later",
                       d->blob->name, (unsigned long long)d->blob->size);
    if (!write_all(d, data, len, err))
        return false;
    tell(d);
    return true;
}

/* Asks until all bytes have come. A response that brings some is followed by the next request at once. */
static bool bring(download *d, mt_line *line, mt_error *err)
{
    unsigned tries = 0;

    while (d->have < d->blob->size) {
        const mt_line_request request = {.url = d->blob->url, .from = d->have, .body = take, .arg = d};
        const uint64_t before = d->have;
        mt_line_answer answer;

        d->first = true;
        const mt_line_end end = mt_line_ask(line, &request, &answer, err);
        if (end == MT_LINE_REFUSED && answer.status == 416 && before > 0) { /* the file has no such offset */
            if (!d->resumed)
                return mt_fail(err, MT_E_INVALID,
                               "the hub has fewer bytes of \"%s\" than the %llu it listed: try again "
                               "later",
                               d->blob->name, (unsigned long long)d->blob->size);
            if (!start_over(d, err))
                return false;
        } else if (end == MT_LINE_REFUSED) {
            return false;
        }
        if (end == MT_LINE_DONE && d->have == before)
            mt_fail(err, MT_E_IO, "the hub sends nothing of \"%s\": try again later", d->blob->name);
        if (d->have > before)
            tries = 0;
        else if (!mt_line_pause(line, &answer, &tries, MT_LIMIT_PULL_FILE_TRIES, err))
            return false;
    }
    return true;
}

static bool is_right(download *d)
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    char text[2 * EVP_MAX_MD_SIZE + 1];
    unsigned len = 0;

    if (EVP_DigestFinal_ex(d->digest, raw, &len) != 1)
        return false;
    for (unsigned i = 0; i < len; i++)
        snprintf(text + 2 * i, 3, "%02x", raw[i]);
    return strcmp(text, d->blob->digest) == 0;
}

/* Downloads the rest of a file; where its digest is wrong and it was continued, downloads it once more. */
static bool bring_right(download *d, mt_line *line, mt_error *err)
{
    for (;;) {
        if (!bring(d, line, err))
            return false;
        if (is_right(d))
            return true;
        if (!d->resumed) {
            unlink(d->path);
            return mt_fail(err, MT_E_INVALID,
                           "\"%s\" has not the digest that the hub listed, %s: it was damaged on its way and is "
                           "removed; try again",
                           d->blob->name, d->blob->digest);
        }
        mt_log_warn("pull.again", "\"%s\" has not its digest: what an earlier download left is not used",
                    d->blob->name);
        if (!start_over(d, err))
            return false;
    }
}

static bool download_it(const mt_blob *blob, mt_line *line, mt_error *err)
{
    download d = {.blob = blob, .digest = EVP_MD_CTX_new(), .fd = -1};
    char path[MT_LIMIT_PATH];
    bool ok = (d.digest || mt_fail(err, MT_E_MEMORY, "no memory for a digest: try again later")) &&
              mt_repo_blob(path, blob->repo, blob->digest, false, err) && open_incomplete(&d, err) &&
              bring_right(&d, line, err);

    /* EINVAL: the file system does not support it */
    if (ok && ((fsync(d.fd) != 0 && errno != EINVAL) || rename(d.path, path) != 0))
        ok = mt_repo_fail(path, err);
    if (d.fd >= 0)
        close(d.fd);
    EVP_MD_CTX_free(d.digest);
    return ok;
}

/* Waits while another process downloads the file, and shows its progress. */
static bool wait_for_lock(const mt_blob *blob, int *fd, mt_error *err)
{
    const struct timespec part = {.tv_nsec = 50 * 1000000};

    for (;;) {
        if (!mt_repo_lock(blob->repo, blob->digest, fd, err))
            return false;
        if (*fd >= 0)
            return true;
        /* relaxed: a counter, and a flag on which no other data depend */
        atomic_store_explicit(blob->done, mt_repo_have(blob->repo, blob->digest, blob->size), memory_order_relaxed);
        if (atomic_load_explicit(blob->stop, memory_order_relaxed))
            return mt_fail(err, MT_E_IO, "the download was stopped");
        nanosleep(&part, NULL);
    }
}

bool mt_blob_fetch(const mt_blob *blob, mt_line *line, mt_error *err)
{
    bool ok = true;
    int lock;

    if (!mt_repo_whole(blob->repo, blob->digest, blob->size)) {
        if (!wait_for_lock(blob, &lock, err))
            return false;
        ok = mt_repo_whole(blob->repo, blob->digest, blob->size) || download_it(blob, line, err);
        close(lock);
    }
    if (ok)
        atomic_store_explicit(blob->done, blob->size, memory_order_relaxed); /* relaxed: only a counter */
    return ok;
}
