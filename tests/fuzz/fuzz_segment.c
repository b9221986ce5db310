/* A file of the cache on disk that was written well and then changed in any way: bits, lengths, its end, headers whose
   sums are right and which lie. Whatever is found in it was written there. The input is a list of orders, five bytes
   each: what to do, where (three bytes), and a byte to do it with; with 0xFF first, it is the file itself. */
#include <string.h>

#include "base/crc32c.h"
#include "scratch.h"
#include "tier/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS = 3, HEADER = 128, OWN_SUM = 124, MOST = 1 << 16 };

typedef struct written {
    uint8_t key[MT_TIER_KEY];
    uint8_t bytes[300];
    size_t size[2];
} written;

static void make(written *w, unsigned number)
{
    memset(w->key, (int)number + 1, sizeof(w->key));
    for (size_t i = 0; i < sizeof(w->bytes); i++)
        w->bytes[i] = (uint8_t)(i * 7 + number * 31);
    w->size[0] = 100 * number;
    w->size[1] = sizeof(w->bytes) - w->size[0];
}

/* The bytes of a file with all of them. */
static size_t write_all(const written *w, uint8_t *out)
{
    mt_segment s;
    mt_error err = {0};
    uint64_t at;
    const char *path = scratch_path("whole");

    unlink(path);
    assert(mt_segment_create(&s, AT_FDCWD, path, 1, &err));
    for (unsigned i = 0; i < RECORDS; i++) {
        const mt_tier_part parts[] = {{(void *)w[i].bytes, w[i].size[0]},
                                      {(void *)(w[i].bytes + w[i].size[0]), w[i].size[1]}};

        assert(mt_segment_append(&s, w[i].key, i, parts, 2, &at, &err));
    }
    const ssize_t got = pread(s.fd, out, MOST / 2, 0);
    assert(got == (ssize_t)s.end);
    mt_segment_close(&s);
    return (size_t)got;
}

static size_t spoil(uint8_t *file, size_t size, const uint8_t *data, size_t orders)
{
    for (size_t i = 0; i < orders; i++, data += 5) {
        const size_t at = ((size_t)data[1] | (size_t)data[2] << 8 | (size_t)data[3] << 16) % (size + 1);
        const size_t record = at / HEADER * HEADER;

        switch (data[0] % 5) {
        case 0: size = at; break;
        case 1:
            if (at < size)
                file[at] = data[4];
            break;
        case 2: /* more of the same, as a copy within a file would be */
            if (size + HEADER <= MOST && at + HEADER <= size) {
                memcpy(file + size, file + at, HEADER);
                size += HEADER;
            }
            break;
        case 3:
            if (at < size)
                file[at] ^= (uint8_t)(1u << data[4] % 8);
            break;
        default: /* the header there is right again */
            if (record + HEADER <= size) {
                const uint32_t sum = mt_crc32c(0, file + record, OWN_SUM);

                memcpy(file + record + OWN_SUM, &sum, sizeof(sum));
            }
        }
    }
    return size;
}

/* What a record says must be what somebody wrote, unless its header was made anew. */
static void check_read(const mt_segment *s, const mt_record *r)
{
    uint8_t *bytes[MT_TIER_PARTS];
    mt_tier_part parts[MT_TIER_PARTS];
    uint64_t all = 0;

    for (size_t i = 0; i < r->parts; i++) {
        assert(r->size[i] <= s->end);
        bytes[i] = malloc((size_t)r->size[i] + 1);
        parts[i] = (mt_tier_part){bytes[i], (size_t)r->size[i]};
        all += r->size[i];
    }
    assert(r->at + mt_segment_room(all) <= s->end);
    if (mt_segment_read(s, r->at, r->key, r->kind, parts, r->parts) == MT_SEGMENT_READ) {
        uint32_t sum = 0;

        for (size_t i = 0; i < r->parts; i++)
            sum = mt_crc32c(sum, bytes[i], parts[i].size);
        assert(sum == r->sum);
    }
    for (size_t i = 0; i < r->parts; i++)
        free(bytes[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t whole[MOST], file[MOST];
    static size_t whole_size;
    static written w[RECORDS];
    mt_segment s;
    mt_record r;
    mt_error err = {0};
    size_t length;

    if (whole_size == 0) {
        for (unsigned i = 0; i < RECORDS; i++)
            make(&w[i], i);
        whole_size = write_all(w, whole);
    }
    memcpy(file, whole, whole_size);
    if (size > 0 && data[0] == 0xFF && size <= MOST) {
        length = size - 1;
        memcpy(file, data + 1, length);
    } else {
        length = spoil(file, whole_size, data, size / 5 < 64 ? size / 5 : 64);
    }
    if (!mt_segment_open(&s, AT_FDCWD, scratch_put("spoilt", file, length), &err)) {
        assert(err.code == MT_E_INVALID && strlen(err.text) > 0);
        return 0;
    }
    for (uint64_t at = 0, last = 0; mt_segment_next(&s, &at, &r); last = at) {
        assert(r.at >= last && at == r.at + r.bytes && at <= s.end && r.parts > 0 && r.parts <= MT_TIER_PARTS);
        check_read(&s, &r);
    }
    mt_segment_close(&s);
    return 0;
}
