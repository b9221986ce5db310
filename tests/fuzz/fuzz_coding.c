/* Packed bodies that are anything at all: what comes out fits, and what is charged is what is there. The first byte
   says how the rest is packed. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "http/coding.h"

enum { LIMIT = 200000, ROOM = 300000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mt_http_coding codings[] = {MT_HTTP_GZIP, MT_HTTP_DEFLATE, MT_HTTP_ZSTD};
    mt_room room = {.limit = ROOM};
    size_t charged = 0;
    mt_buf out;

    if (size == 0)
        return 0;
    mt_buf_init(&out, LIMIT);
    (void)mt_http_unpack(codings[data[0] % 3], (const char *)data + 1, size - 1, &out, &room, &charged, NULL);
    assert(out.len <= LIMIT && charged == out.len && room.used == charged);
    mt_buf_free(&out);
    return 0;
}
