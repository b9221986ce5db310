/* A record is a head of HEAD bytes, a text, and the end of a line, so that a journal can be looked at:

       CHECKSUM LINE KIND LENGTH TEXT

   The checksum is of all that follows it. Invariants:

   1. `good` is where the last synced record ends, `end` where the last written one does. `torn`: behind `end` there may
      be a record that could not be written whole, or not be synced; it is cut off before the next is written.
   2. Whoever reads stops at the first record that is not whole. Behind it can only be what was never synced. */
#include "files/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crc32c.h"

/* SUM: bytes of the checksum and the blank behind it; HEAD: of all before the text */
enum { SUM = 9, HEAD = SUM + 11 + 2 + 11 };

#define LARGEST (1u << 30) /* bytes of a text */

struct mt_journal {
    int fd;
    uint64_t good, end;
    bool torn;
};

uint64_t mt_journal_size(size_t len)
{
    return HEAD + (uint64_t)len + 1;
}

static bool fail_write(mt_error *err)
{
    return mt_fail(err, MT_E_IO, "the results of a batch cannot be written: %s", strerror(errno));
}

static void write_head(char head[HEAD + 1], const mt_journal_record *r)
{
    char rest[HEAD - SUM + 1];
    uint32_t sum;

    snprintf(rest, sizeof(rest), "%010" PRIu32 " %c %010" PRIu32 " ", r->line, r->kind, (uint32_t)r->len);
    sum = mt_crc32c(mt_crc32c(0, rest, HEAD - SUM), r->text, r->len);
    snprintf(head, HEAD + 1, "%08" PRIx32 " %s", sum, rest);
}

static bool write_all(int fd, const char *data, size_t len, uint64_t *at)
{
    while (len > 0) {
        const ssize_t n = pwrite(fd, data, len, (off_t)*at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        data += n;
        *at += (uint64_t)n;
        len -= (size_t)n;
    }
    return true;
}

static bool cut_off(mt_journal *j)
{
    j->torn = ftruncate(j->fd, (off_t)j->end) != 0;
    return !j->torn;
}

bool mt_journal_add(mt_journal *j, const mt_journal_record *r, mt_error *err)
{
    char head[HEAD + 1];
    uint64_t at = j->end;

    if (r->len > LARGEST)
        return mt_fail(err, MT_E_TOO_LARGE, "a result of a batch has more than %u bytes", LARGEST);
    if (j->torn && !cut_off(j))
        return fail_write(err);
    write_head(head, r);
    j->torn = !write_all(j->fd, head, HEAD, &at) || !write_all(j->fd, r->text, r->len, &at) ||
              !write_all(j->fd, "\n", 1, &at);
    if (j->torn)
        return fail_write(err);
    j->end = at;
    return true;
}

bool mt_journal_sync(mt_journal *j, mt_error *err)
{
    if (fsync(j->fd) == 0) {
        j->good = j->end;
        return true;
    }
    fail_write(err);
    j->end = j->good;
    (void)!cut_off(j);
    return false;
}

uint64_t mt_journal_bytes(const mt_journal *j)
{
    return j->end;
}

/* Reads the head of a record. False: it is none. */
static bool read_head(const char *head, mt_journal_record *r, uint32_t *sum)
{
    unsigned long line, len;
    char *end;

    if (head[SUM - 1] != ' ' || head[SUM + 10] != ' ' || head[SUM + 12] != ' ' || head[HEAD - 1] != ' ')
        return false;
    *sum = (uint32_t)strtoul(head, &end, 16);
    if (end != head + SUM - 1)
        return false;
    line = strtoul(head + SUM, &end, 10);
    if (end != head + SUM + 10 || line > UINT32_MAX)
        return false;
    len = strtoul(head + SUM + 13, &end, 10);
    if (end != head + HEAD - 1 || len > LARGEST)
        return false;
    *r = (mt_journal_record){.line = (uint32_t)line, .kind = head[SUM + 11], .len = len};
    return true;
}

/* Tells all whole records of a file, and where the last of them ends. False: the reader wants no more. */
static bool tell_all(int fd, mt_journal_reader *reader, void *ctx, uint64_t *end)
{
    const int copy = dup(fd);
    FILE *f = copy >= 0 && lseek(copy, 0, SEEK_SET) == 0 ? fdopen(copy, "rb") : NULL;
    char head[HEAD + 1] = {0}, *text = NULL;
    size_t cap = 0;
    mt_journal_record r;
    uint32_t sum;
    bool ok = true;

    *end = 0;
    while (ok && f && fread(head, 1, HEAD, f) == HEAD && read_head(head, &r, &sum)) {
        text = mt_grow(text, &cap, r.len + 1, 1);
        if (fread(text, 1, r.len + 1, f) != r.len + 1 || text[r.len] != '\n' ||
            mt_crc32c(mt_crc32c(0, head + SUM, HEAD - SUM), text, r.len) != sum)
            break;
        text[r.len] = '\0';
        r.text = text;
        *end += mt_journal_size(r.len);
        ok = reader(ctx, &r);
    }
    mt_free(text);
    if (f)
        fclose(f);
    else if (copy >= 0)
        close(copy);
    return ok && f;
}

mt_journal *mt_journal_open(int folder, const char *name, mt_journal_reader *reader, void *ctx, mt_error *err)
{
    const int fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    mt_journal *j;
    uint64_t end;

    if (fd < 0 || !tell_all(fd, reader, ctx, &end) || ftruncate(fd, (off_t)end) != 0) {
        fail_write(err);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    j = mt_alloc(sizeof(*j));
    *j = (mt_journal){.fd = fd, .good = end, .end = end};
    return j;
}

void mt_journal_close(mt_journal *j)
{
    if (!j)
        return;
    close(j->fd);
    mt_free(j);
}

bool mt_journal_read(int folder, const char *name, mt_journal_reader *reader, void *ctx, mt_error *err)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    uint64_t end;
    bool ok;

    if (fd < 0)
        return errno == ENOENT || mt_fail(err, MT_E_IO, "the results of a batch cannot be read: %s", strerror(errno));
    ok = tell_all(fd, reader, ctx, &end) || mt_fail(err, MT_E_IO, "the results of a batch cannot be read");
    close(fd);
    return ok;
}
