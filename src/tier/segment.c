/* Segments (segment.h). The layout of a file, all numbers little-endian:

       file:    64 bytes: "motet seg\n", version, number, nonce, CRC32C of these
       record:  128 bytes of header (record.c); then the parts, then zeros up to a multiple of 128

   A record counts when its header's checksum and nonce are right and it ends within the file. Its parts count when
   their checksum is right, which is checked at every read: so it does not matter in which order the system writes pages
   of the file to the disk, and nothing has to be synced. A damaged header costs only its record: the search goes on at
   the next multiple of 128. */
#include "tier/segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "tier/bytes.h"

enum { VERSION = 1, GRAIN = 128, FILE_HEADER = 64, RECORD_HEADER = MT_RECORD_HEADER };

static const char file_magic[12] = "motet seg\n";

/* byte offsets in the file's header */
enum { FILE_VERSION = 12, FILE_NUMBER = 16, FILE_NONCE = 24, FILE_SUM = 60 };
static uint64_t up(uint64_t bytes)
{
    return (bytes + GRAIN - 1) / GRAIN * GRAIN;
}

uint64_t mt_segment_begin(void)
{
    return GRAIN;
}

uint64_t mt_segment_room(uint64_t size)
{
    return RECORD_HEADER + up(size);
}

/* Reads or writes all pieces, in as many system calls as that takes. Modifies the array of pieces. */
static bool transfer(int fd, bool writes, struct iovec *piece, int count, uint64_t at)
{
    while (count > 0) {
        const ssize_t n = writes ? pwritev(fd, piece, count, (off_t)at) : preadv(fd, piece, count, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? ENODATA : errno; /* the file has become shorter */
            return false;
        }
        at += (uint64_t)n;
        size_t left = (size_t)n;
        for (; count > 0 && left >= piece->iov_len; count--)
            left -= piece++->iov_len;
        if (count > 0) {
            piece->iov_base = (char *)piece->iov_base + left;
            piece->iov_len -= left;
        }
    }
    return true;
}

static bool transfer_one(int fd, bool writes, void *data, size_t size, uint64_t at)
{
    struct iovec piece = {.iov_base = data, .iov_len = size};
    return transfer(fd, writes, &piece, 1, at);
}

static bool create(mt_segment *s, uint64_t number)
{
    uint8_t header[FILE_HEADER] = {0};
    if (getentropy(&s->nonce, sizeof(s->nonce)) != 0)
        return false;
    memcpy(header, file_magic, sizeof(file_magic));
    mt_put32(header + FILE_VERSION, VERSION);
    mt_put64(header + FILE_NUMBER, number);
    mt_put64(header + FILE_NONCE, s->nonce);
    mt_put32(header + FILE_SUM, mt_crc32c(0, header, FILE_SUM));
    s->number = number;
    s->end = GRAIN;
    return transfer_one(s->fd, true, header, sizeof(header), 0);
}

bool mt_segment_create(mt_segment *s, int folder, const char *name, uint64_t number, mt_error *err)
{
    *s = (mt_segment){.fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (s->fd >= 0 && create(s, number))
        return true;
    mt_fail(err, MT_E_IO, "\"%s\" cannot be made: %s", name, strerror(errno));
    if (s->fd >= 0)
        unlinkat(folder, name, 0);
    mt_segment_close(s);
    return false;
}

static bool read_header(mt_segment *s)
{
    uint8_t header[FILE_HEADER];
    if (s->end < GRAIN || !transfer_one(s->fd, false, header, sizeof(header), 0))
        return false;
    s->number = mt_get64(header + FILE_NUMBER);
    s->nonce = mt_get64(header + FILE_NONCE);
    return memcmp(header, file_magic, sizeof(file_magic)) == 0 && mt_get32(header + FILE_VERSION) == VERSION &&
           mt_get32(header + FILE_SUM) == mt_crc32c(0, header, FILE_SUM);
}

bool mt_segment_open(mt_segment *s, int folder, const char *name, mt_error *err)
{
    struct stat info;
    *s = (mt_segment){.fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
    if (s->fd < 0 || fstat(s->fd, &info)) {
        mt_fail(err, MT_E_IO, "\"%s\" cannot be opened: %s", name, strerror(errno));
    } else {
        s->end = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
        if (read_header(s))
            return true;
        mt_fail(err, MT_E_INVALID, "\"%s\" is not a segment of this version", name);
    }
    mt_segment_close(s);
    return false;
}

void mt_segment_close(mt_segment *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

bool mt_segment_append(mt_segment *s, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                       size_t parts, uint64_t *at, mt_error *err)
{
    uint8_t header[RECORD_HEADER], zeros[GRAIN] = {0};
    struct iovec piece[MT_TIER_PARTS + 2] = {{.iov_base = header, .iov_len = sizeof(header)}};
    uint64_t size = 0;
    mt_record_write(header, key, kind, part, parts, s->nonce);
    for (size_t i = 0; i < parts; i++) {
        piece[i + 1] = (struct iovec){.iov_base = part[i].data, .iov_len = part[i].size};
        size += part[i].size;
    }
    piece[parts + 1] = (struct iovec){.iov_base = zeros, .iov_len = (size_t)(up(size) - size)};
    if (!transfer(s->fd, true, piece, (int)parts + 2, s->end))
        return mt_fail(err, MT_E_IO, "a record cannot be written: %s", strerror(errno));
    *at = s->end;
    s->end += mt_segment_room(size);
    return true;
}

/* Reads a record's header at `at`; false where these 128 bytes are no header of a record in this file. */
static bool understand(const mt_segment *s, const uint8_t header[RECORD_HEADER], uint64_t at, mt_record *record)
{
    if (!mt_record_read(record, header, s->nonce, s->end))
        return false;
    record->at = at;
    record->bytes = mt_segment_room(record->bytes);
    return record->bytes <= s->end - at;
}

bool mt_segment_next(const mt_segment *s, uint64_t *at, mt_record *record)
{
    uint8_t header[RECORD_HEADER];
    for (; *at + sizeof(header) <= s->end; *at += GRAIN) {
        if (!transfer_one(s->fd, false, header, sizeof(header), *at))
            return false;
        if (understand(s, header, *at, record)) {
            *at += record->bytes;
            return true;
        }
    }
    return false;
}

mt_segment_result mt_segment_read(const mt_segment *s, uint64_t at, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                                  const mt_tier_part part[], size_t parts)
{
    uint8_t header[RECORD_HEADER];
    struct iovec piece[MT_TIER_PARTS];
    mt_record record;
    assert(parts <= MT_TIER_PARTS);
    if (!transfer_one(s->fd, false, header, sizeof(header), at))
        return errno == ENODATA ? MT_SEGMENT_BROKEN : MT_SEGMENT_FAILED;
    if (!understand(s, header, at, &record))
        return MT_SEGMENT_BROKEN;
    if (!mt_record_matches(&record, key, kind, part, parts))
        return MT_SEGMENT_OTHER;
    for (size_t i = 0; i < parts; i++)
        piece[i] = (struct iovec){.iov_base = part[i].data, .iov_len = part[i].size};
    if (!transfer(s->fd, false, piece, (int)parts, at + RECORD_HEADER))
        return errno == ENODATA ? MT_SEGMENT_BROKEN : MT_SEGMENT_FAILED;
    return mt_record_is_whole(&record, part, parts) ? MT_SEGMENT_READ : MT_SEGMENT_BROKEN;
}
