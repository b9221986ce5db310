/* Each encoding has the same three functions: begin, unpack some bytes, end. One loop around them keeps all bounds. */
#include "http/coding.h"

#include <string.h>
#include <strings.h>

#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"

enum {
    PIECE = 64 << 10,      /* bytes unpacked at once */
    GZIP = 16 + MAX_WBITS, /* zlib's number for gzip */
    WINDOW_LOG = 23        /* of zstd: the window that RFC 8878 asks every receiver to support, and no more */
};

typedef struct unpacker {
    mt_http_coding coding;
    const unsigned char *data;
    size_t len, at; /* at: bytes read */
    bool ended;     /* a whole stream was read, and nothing of another */
    z_stream z;
    ZSTD_DStream *zstd;
} unpacker;

bool mt_http_coding_read(const char *value, mt_http_coding *coding)
{
    static const struct {
        const char *name;
        mt_http_coding coding;
    } known[] = {{"identity", MT_HTTP_PLAIN},  {"gzip", MT_HTTP_GZIP}, {"x-gzip", MT_HTTP_GZIP},
                 {"deflate", MT_HTTP_DEFLATE}, {"zstd", MT_HTTP_ZSTD}, {"", MT_HTTP_PLAIN}};

    *coding = MT_HTTP_PLAIN;
    for (size_t i = 0; value && i < MT_COUNT(known); i++)
        if (strcasecmp(value, known[i].name) == 0) {
            *coding = known[i].coding;
            return true;
        }
    return !value;
}

/* "deflate" has a header of two bytes that is a multiple of 31; some clients leave it out. */
static int window_bits(const unpacker *u)
{
    if (u->coding == MT_HTTP_GZIP)
        return GZIP;
    const bool wrapped = u->len >= 2 && (u->data[0] & 15) == Z_DEFLATED && (u->data[0] << 8 | u->data[1]) % 31 == 0;
    return wrapped ? MAX_WBITS : -MAX_WBITS;
}

static bool begin(unpacker *u)
{
    if (u->coding != MT_HTTP_ZSTD)
        return inflateInit2(&u->z, window_bits(u)) == Z_OK;
    u->zstd = ZSTD_createDStream();
    return u->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, WINDOW_LOG));
}

static void end(unpacker *u)
{
    if (u->coding == MT_HTTP_ZSTD)
        ZSTD_freeDStream(u->zstd);
    else
        inflateEnd(&u->z);
}

/* Unpacks up to PIECE bytes; *got: how many. */
static bool inflate_some(unpacker *u, unsigned char *out, size_t *got)
{
    int result;

    if (u->ended && inflateReset(&u->z) != Z_OK) /* gzip may be several streams in sequence */
        return false;
    u->z.next_in = (z_const Bytef *)(u->data + u->at);
    u->z.avail_in = (uInt)(u->len - u->at < UINT32_MAX ? u->len - u->at : UINT32_MAX);
    u->z.next_out = out;
    u->z.avail_out = PIECE;
    result = inflate(&u->z, Z_NO_FLUSH);
    u->at = (size_t)(u->z.next_in - u->data);
    *got = PIECE - u->z.avail_out;
    u->ended = result == Z_STREAM_END;
    if (u->ended && u->at < u->len && u->coding != MT_HTTP_GZIP)
        return false;
    return result == Z_OK || result == Z_STREAM_END;
}

static bool zstd_some(unpacker *u, unsigned char *out, size_t *got)
{
    ZSTD_inBuffer in = {.src = u->data, .size = u->len, .pos = u->at};
    ZSTD_outBuffer to = {.dst = out, .size = PIECE};
    const size_t left = ZSTD_decompressStream(u->zstd, &to, &in);

    *got = to.pos;
    u->ended = left == 0;
    if (ZSTD_isError(left) || (to.pos == 0 && in.pos == u->at))
        return false;
    u->at = in.pos;
    return true;
}

/* Takes bytes of the room for `more` bytes in out. */
static bool charge(mt_room *room, const mt_buf *out, size_t more, size_t *taken)
{
    const size_t wanted = 2 * (out->len + more); /* a growing buffer allocates up to twice its length */

    if (!mt_room_take(room, wanted - *taken))
        return false;
    *taken = wanted;
    return true;
}

static bool stopped(const atomic_bool *stop)
{
    return stop && atomic_load_explicit(stop, memory_order_relaxed); /* relaxed: read again and again */
}

static mt_http_unpacked unpack(unpacker *u, unsigned char *piece, mt_buf *out, mt_room *room, size_t *taken,
                               const atomic_bool *stop)
{
    size_t got;

    do {
        if (stopped(stop))
            return MT_HTTP_UNPACK_STOPPED;
        if (!(u->coding == MT_HTTP_ZSTD ? zstd_some : inflate_some)(u, piece, &got))
            return MT_HTTP_UNPACK_DAMAGED;
        if (got > out->limit - out->len)
            return MT_HTTP_UNPACK_TOO_LARGE;
        if (!charge(room, out, got, taken))
            return MT_HTTP_UNPACK_NO_ROOM;
        mt_buf_add(out, piece, got);
    } while (!u->ended || u->at < u->len);
    return MT_HTTP_UNPACKED;
}

mt_http_unpacked mt_http_unpack(mt_http_coding coding, const char *data, size_t len, mt_buf *out, mt_room *room,
                                size_t *charged, const atomic_bool *stop)
{
    unpacker u = {.coding = coding, .data = (const unsigned char *)data, .len = len};
    mt_http_unpacked result = MT_HTTP_UNPACK_DAMAGED;
    size_t taken = 0;
    unsigned char *piece = mt_alloc(PIECE);

    if (begin(&u))
        result = unpack(&u, piece, out, room, &taken, stop);
    end(&u);
    mt_free(piece);
    mt_room_give(room, taken - out->len);
    *charged += out->len;
    return result;
}
