/* Loads the bytes behind a URL (source.h). */
#include "media/source.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hex.h"
#include "base/limits.h"
#include "media/address.h"
#include "media/fetch.h"
#include "media/limits.h"

enum { SHOWN = 200 }; /* bytes of a URL that messages show */

static bool begins(const char *url, size_t len, const char *scheme)
{
    return len >= strlen(scheme) && strncasecmp(url, scheme, strlen(scheme)) == 0;
}

/* Asks the watch for the memory of a buffer with at most `most` bytes; a buffer never exceeds its limit and a NUL. */
static bool take_memory(const mt_media_watch *watch, mt_buf *bytes, size_t most, mt_error *err)
{
    if (most < bytes->limit)
        bytes->limit = most;
    return mt_media_take(watch, bytes->limit + 1, err);
}

/* data:image/png;base64,iVBORw0... The type is ignored: the bytes decide. */
static bool load_data(mt_buf *bytes, const char *url, size_t len, const mt_media_watch *watch, mt_error *err)
{
    static const char mark[] = ";base64";
    const char *comma = memchr(url, ',', len);
    size_t head = comma ? (size_t)(comma - url) : 0;

    if (!comma)
        return mt_fail(err, MT_E_INVALID, "the data URL has no comma: write data:image/png;base64, and then the data");
    if (head < strlen(mark) || strncasecmp(comma - strlen(mark), mark, strlen(mark)) != 0)
        return mt_fail(err, MT_E_INVALID, "the data URL is not base64: write data:image/png;base64, and then the data");
    return take_memory(watch, bytes, (len - head) / 4 * 3 + 3, err) &&
           (mt_base64_decode(bytes, comma + 1, len - head - 1, err) || mt_fail_within(err, "data URL"));
}

/* The path in file:///path or file://localhost/path, with %20 and the like decoded. False where it has none. */
static bool path_of(char path[MT_LIMIT_PATH], const char *url, size_t len)
{
    static const char local[] = "localhost";
    size_t at = strlen("file://"), out = 0;

    if (len - at > strlen(local) && strncasecmp(url + at, local, strlen(local)) == 0)
        at += strlen(local);
    if (at >= len || url[at] != '/')
        return false;
    for (; at < len && out + 1 < MT_LIMIT_PATH; at++) {
        int high = len - at > 2 ? mt_hex_digit(url[at + 1]) : -1, low = len - at > 2 ? mt_hex_digit(url[at + 2]) : -1;

        path[out] = url[at];
        if (url[at] == '%' && high >= 0 && low >= 0) {
            path[out] = (char)(high * 16 + low);
            at += 2;
        }
        if (path[out++] == '\0')
            return false;
    }
    path[out] = '\0';
    return at >= len;
}

/* Whether the file is in the folder after every link is followed; found: its real path. */
static bool is_below(char found[PATH_MAX], const char *path, const char *root)
{
    char folder[PATH_MAX];
    size_t len;

    if (!realpath(root, folder) || !realpath(path, found))
        return false;
    len = strlen(folder);
    return strncmp(found, folder, len) == 0 && (found[len] == '/' || folder[len - 1] == '/');
}

/* A file outside the folder and a missing file get the same message, so that clients cannot probe which files exist. */
static bool load_file(mt_buf *bytes, const char *url, size_t len, const char *root, const mt_media_watch *watch,
                      mt_error *err)
{
    char path[MT_LIMIT_PATH], found[PATH_MAX];
    struct stat info;
    int shown = len < SHOWN ? (int)len : SHOWN;

    if (!root)
        return mt_fail(err, MT_E_INVALID, "\"%.*s\" may not be read: start with --media-root to allow a folder", shown,
                       url);
    if (!begins(url, len, "file://") || !path_of(path, url, len) || !is_below(found, path, root))
        return mt_fail(err, MT_E_INVALID, "\"%.*s\" is no file in the folder of --media-root: check the path", shown,
                       url);
    if (stat(found, &info) == 0 && (uint64_t)info.st_size <= bytes->limit &&
        !take_memory(watch, bytes, (size_t)info.st_size, err))
        return false;
    if (mt_file_read(bytes, found, err))
        return true;
    if (err->code == MT_E_TOO_LARGE)
        return mt_fail(err, MT_E_INVALID, "\"%.*s\" has more than the %zu bytes allowed: name a smaller file", shown,
                       url, bytes->limit);
    return mt_fail(err, MT_E_INVALID, "\"%.*s\" cannot be read: check that it is a file and readable", shown, url);
}

static bool load_url(mt_buf *bytes, const char *url, size_t len, const mt_media_limits *limits,
                     const mt_media_watch *watch, mt_error *err)
{
    mt_fetch_rules rules = {.ms = limits->fetch_ms, .watch = watch};
    char text[MT_LIMIT_MEDIA_URL + 2];

    rules.allowed = limits->allow_private ? NULL : mt_address_is_public;
    if (memchr(url, '\0', len))
        return mt_fail(err, MT_E_INVALID, "the URL has a zero byte in it: leave it out");
    if (len > MT_LIMIT_MEDIA_URL) /* one byte more than allowed is enough to be refused as too long */
        len = MT_LIMIT_MEDIA_URL + 1;
    memcpy(text, url, len);
    text[len] = '\0';
    return mt_fetch(bytes, text, &rules, err);
}

bool mt_media_load(mt_buf *bytes, const char *url, size_t len, const mt_media_limits *limits,
                   const mt_media_watch *watch, mt_error *err)
{
    bool ok;

    mt_buf_init(bytes, limits->bytes);
    if (begins(url, len, "data:"))
        ok = load_data(bytes, url, len, watch, err);
    else if (begins(url, len, "http://") || begins(url, len, "https://"))
        ok = load_url(bytes, url, len, limits, watch, err);
    else if (begins(url, len, "file:"))
        ok = load_file(bytes, url, len, limits->root, watch, err);
    else
        ok = mt_fail(err, MT_E_INVALID, "\"%.*s\" is no URL that can be read: begin with data:, https:, http: or file:",
                     (int)(len < SHOWN ? len : SHOWN), url);
    if (!ok)
        mt_buf_free(bytes);
    return ok;
}
