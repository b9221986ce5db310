/* How a body is packed: its content-encoding. */
#ifndef MT_HTTP_CODING_H
#define MT_HTTP_CODING_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/room.h"
#include "http/http.h"

/* Reads what a content-encoding header says; NULL: there is none. False: it is not known. */
bool mt_http_coding_read(const char *value, mt_http_coding *coding) MT_NODISCARD;

typedef enum mt_http_unpacked {
    MT_HTTP_UNPACKED,
    MT_HTTP_UNPACK_DAMAGED,   /* it is not what it is said to be, or does not end */
    MT_HTTP_UNPACK_TOO_LARGE, /* out is full */
    MT_HTTP_UNPACK_NO_ROOM,
    MT_HTTP_UNPACK_STOPPED
} mt_http_unpacked;

/* Unpacks a body into out, an initialised buffer whose limit holds, piece by piece: no more is unpacked than fits,
   however much would come. What out takes is taken from the room first, as it grows; in the end what is there is
   charged once, which is added to *charged. stop: NULL, or ends it from another thread. Any thread. */
mt_http_unpacked mt_http_unpack(mt_http_coding coding, const char *data, size_t len, mt_buf *out, mt_room *room,
                                size_t *charged, const atomic_bool *stop);

#endif
