/* Unpacks compressed bodies (content-encoding: gzip, deflate, zstd). */
#ifndef MT_HTTP_CODING_H
#define MT_HTTP_CODING_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/room.h"
#include "http/http.h"

/* Parses a content-encoding header; NULL: there is none. False: the encoding is not supported. */
bool mt_http_coding_read(const char *value, mt_http_coding *coding) MT_NODISCARD;

typedef enum mt_http_unpacked {
    MT_HTTP_UNPACKED,
    MT_HTTP_UNPACK_DAMAGED,   /* it is not in that encoding, or is incomplete */
    MT_HTTP_UNPACK_TOO_LARGE, /* out is full */
    MT_HTTP_UNPACK_NO_ROOM,
    MT_HTTP_UNPACK_STOPPED
} mt_http_unpacked;

/* Unpacks a body into out, an initialised buffer whose limit holds, piece by piece, so that a small body cannot become
   huge. Bytes are taken from the room as out grows; in the end those of the unpacked body are added to *charged, which
   the caller gives back. stop: ends it from another thread; may be NULL. Any thread. */
mt_http_unpacked mt_http_unpack(mt_http_coding coding, const char *data, size_t len, mt_buf *out, mt_room *room,
                                size_t *charged, const atomic_bool *stop);

#endif
