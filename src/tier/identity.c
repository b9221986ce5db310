/* The identity of a checkpoint (identity.h). The file of memos has a line for each file that was read: device and
   inode, size, times of the last change of content and of inode, digest, and a checksum of the line, so that a torn or
   damaged line is ignored. A file that is changed in place gets another time, unless the machine's clock is set
   back. */
#include "tier/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/progress.h"
#include "media/digest.h"
#include "weights/gguf_place.h"
#include "weights/shards.h"

#define PIECE (64ul << 20) /* bytes between two reports of progress */
enum { LINE = 512, MEMOS_BYTES = 1 << 20 };

/* macOS has other names for the times of a file. */
#ifdef __APPLE__
#define MODIFIED st_mtimespec
#define CHANGED st_ctimespec
#else
#define MODIFIED st_mtim
#define CHANGED st_ctim
#endif

/* Describes a file so that another file, or the same file after a change, is described differently. */
static void describe(const struct stat *info, char out[LINE])
{
    snprintf(out, LINE, "%ju %ju %jd %jd.%09ld %jd.%09ld", (uintmax_t)info->st_dev, (uintmax_t)info->st_ino,
             (intmax_t)info->st_size, (intmax_t)info->MODIFIED.tv_sec, info->MODIFIED.tv_nsec,
             (intmax_t)info->CHANGED.tv_sec, info->CHANGED.tv_nsec);
}

static void write_line(const char *file, const uint8_t digest[32], char out[LINE])
{
    size_t len = (size_t)snprintf(out, LINE, "%s ", file);
    for (size_t i = 0; i < 32; i++)
        len += (size_t)snprintf(out + len, LINE - len, "%02x", digest[i]);
    snprintf(out + len, LINE - len, " %08" PRIx32 "\n", mt_crc32c(0, out, len));
}

/* The digest that a line has for this file; false where the line is of another file, or damaged. */
static bool read_line(const char *line, size_t len, const char *file, uint8_t digest[32])
{
    char again[LINE];
    const size_t at = strlen(file) + 1;
    if (len < at + 64 || strncmp(line, file, at - 1) != 0 || line[at - 1] != ' ')
        return false;
    for (size_t i = 0; i < 32; i++)
        if (sscanf(line + at + 2 * i, "%2hhx", &digest[i]) != 1)
            return false;
    write_line(file, digest, again);
    return strlen(again) == len + 1 && strncmp(line, again, len) == 0;
}

static bool remembered(const mt_buf *memos, const char *file, uint8_t digest[32])
{
    const char *line = memos->data, *end = memos->len ? memos->data + memos->len : NULL;
    for (const char *next; line && (next = memchr(line, '\n', (size_t)(end - line))); line = next + 1)
        if (read_line(line, (size_t)(next - line), file, digest))
            return true;
    return false;
}

/* Adds a line. A failure is ignored: the file is read again next time. */
static void remember(const char *path, const char *file, const uint8_t digest[32], bool anew)
{
    char line[LINE];
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (anew ? O_TRUNC : O_APPEND), 0600);
    FILE *memos = fd < 0 ? NULL : fdopen(fd, "a");
    if (!memos) {
        if (fd >= 0)
            close(fd);
        return;
    }
    (void)!fchmod(fd, 0600); /* builds of before made it readable for others */
    write_line(file, digest, line);
    fputs(line, memos);
    fclose(memos);
}

/* Computes a file's digest, in pieces, with progress. */
static bool read_file(const char *path, uint8_t digest[32], mt_error *err)
{
    mt_file file;
    mt_progress progress;
    uint8_t next[32];
    if (!mt_file_map(&file, path, err))
        return false;
    mt_progress_begin(&progress, "cache.identity", "reading weights to know them again", file.size);
    mt_digest(digest, (mt_digest_part[]){{"file", 4}}, 1);
    for (size_t at = 0; at < file.size; at += PIECE) {
        const size_t size = file.size - at < PIECE ? file.size - at : PIECE;
        mt_digest(next, (mt_digest_part[]){{digest, 32}, {file.data + at, size}}, 2);
        memcpy(digest, next, sizeof(next));
        mt_progress_add(&progress, size);
    }
    mt_progress_end();
    mt_file_unmap(&file);
    return true;
}

/* Adds a file's name and digest to `sum`; the digest comes from the memos where the file has not changed. */
static bool add_file(const char *dir, const char *name, const char *memo_path, uint8_t sum[32], mt_error *err)
{
    char path[MT_LIMIT_PATH], file[LINE];
    uint8_t digest[32], next[32];
    struct stat info;
    mt_error none = {0};
    mt_buf memos;
    if (!mt_shards_path(path, dir, name, err))
        return false;
    if (stat(path, &info))
        return mt_fail(err, MT_E_IO, "\"%.200s\" cannot be read: %s", path, strerror(errno));
    describe(&info, file);
    mt_buf_init(&memos, MEMOS_BYTES);
    const bool read = *memo_path && mt_file_read(&memos, memo_path, &none);
    const bool known = read && remembered(&memos, file, digest);
    mt_buf_free(&memos);
    if (!known && !read_file(path, digest, err))
        return false;
    if (!known && *memo_path)
        remember(memo_path, file, digest, none.code == MT_E_TOO_LARGE);
    mt_digest(next, (mt_digest_part[]){{sum, 32}, {name, strlen(name)}, {digest, 32}}, 3);
    memcpy(sum, next, sizeof(next));
    return true;
}

/* Adds a GGUF file that is in one piece. */
static bool add_whole(const char *path, const char *memo_path, uint8_t sum[32], mt_error *err)
{
    char file[MT_LIMIT_PATH];
    snprintf(file, sizeof(file), "%s", path);
    char *slash = strrchr(file, '/');
    if (slash)
        *slash = '\0';
    return add_file(slash ? file : ".", slash ? slash + 1 : file, memo_path, sum, err);
}

/* Adds all files of a GGUF model, which have the config as well. */
static bool add_gguf(const char *first, const char *memo_path, uint8_t sum[32], mt_error *err)
{
    bool ok = true;
    for (unsigned n = 1; ok && mt_gguf_shard(first, n); n++) {
        char file[MT_LIMIT_PATH];
        snprintf(file, sizeof(file), "%s", first);
        mt_gguf_set_shard(file, n);
        ok = add_whole(file, memo_path, sum, err);
    }
    return ok;
}

bool mt_identity(const char *dir, const char *memos, uint8_t out[32], mt_error *err)
{
    static const char what[] = "motet weights 1";
    char path[MT_LIMIT_PATH] = "";
    mt_arena *arena = mt_arena_new(0);
    mt_shards shards;
    mt_gguf_place place;
    mt_digest(out, (mt_digest_part[]){{what, sizeof(what)}}, 1);
    bool ok = !memos || mt_shards_path(path, memos, "weights", err);
    if (ok && mt_gguf_locate(&place, dir, NULL, NULL)) {
        ok = add_gguf(place.model, path, out, err) &&
             (!place.projector[0] || add_whole(place.projector, path, out, err));
    } else {
        ok = ok && mt_shards_find(&shards, dir, arena, err) && add_file(dir, "config.json", path, out, err);
        for (size_t i = 0; ok && i < shards.count; i++)
            ok = add_file(dir, shards.names[i], path, out, err);
    }
    mt_arena_free(arena);
    return ok;
}
