#include "unit.h"

#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "http/coding.h"

enum { LEN = 300000, RAW = 1000 }; /* RAW: deflate without its header, as some clients send it */

static const int kinds[] = {MT_HTTP_GZIP, MT_HTTP_DEFLATE, MT_HTTP_ZSTD, RAW};

static mt_http_coding coding_of(int kind)
{
    return kind == RAW ? MT_HTTP_DEFLATE : (mt_http_coding)kind;
}

static void pack(int kind, const char *text, size_t len, mt_buf *out)
{
    const size_t most = ZSTD_compressBound(len) + 1024;
    unsigned char *packed = mt_alloc(most);
    z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)text,
                  .avail_in = (uInt)len,
                  .next_out = packed,
                  .avail_out = (uInt)most};

    if (kind == MT_HTTP_ZSTD) {
        mt_buf_add(out, packed, ZSTD_compress(packed, most, text, len, 3));
    } else {
        const int bits = kind == MT_HTTP_GZIP ? 16 + MAX_WBITS : kind == RAW ? -MAX_WBITS : MAX_WBITS;

        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        mt_buf_add(out, packed, z.total_out);
        deflateEnd(&z);
    }
    mt_free(packed);
}

/* Unpacks, and sees to it that no more is charged than what is there. */
static mt_http_unpacked unpack(int kind, const mt_buf *packed, size_t limit, size_t room_bytes, mt_buf *out)
{
    mt_room room = {.limit = room_bytes};
    size_t charged = 0;
    mt_http_unpacked result;

    mt_buf_init(out, limit);
    result = mt_http_unpack(coding_of(kind), packed->data, packed->len, out, &room, &charged, NULL);
    assert_int_equal(charged, out->len);
    assert_int_equal(room.used, charged);
    assert_true(out->len <= limit);
    return result;
}

static char *some_text(void)
{
    char *text = mt_alloc(LEN);

    for (size_t i = 0; i < LEN; i++)
        text[i] = (char)(' ' + i * i % 89);
    return text;
}

static void what_was_packed_is_unpacked(void **state)
{
    static const size_t lengths[] = {0, 1, 100, 65536, 65537, LEN};
    char *text = some_text();

    (void)state;
    for (size_t k = 0; k < MT_COUNT(kinds); k++)
        for (size_t i = 0; i < MT_COUNT(lengths); i++) {
            mt_buf packed, out;

            mt_buf_init(&packed, 1u << 20);
            pack(kinds[k], text, lengths[i], &packed);
            assert_int_equal(unpack(kinds[k], &packed, LEN, 2 * LEN, &out), MT_HTTP_UNPACKED);
            assert_int_equal(out.len, lengths[i]);
            assert_true(out.len == 0 || memcmp(out.data, text, out.len) == 0);
            mt_buf_free(&out);
            mt_buf_free(&packed);
        }
    mt_free(text);
}

static void what_is_damaged_is_refused_wherever_it_is_cut(void **state)
{
    char *text = some_text();

    (void)state;
    for (size_t k = 0; k < MT_COUNT(kinds); k++) {
        mt_buf packed, out;

        mt_buf_init(&packed, 1u << 20);
        pack(kinds[k], text, 300, &packed);
        for (size_t len = packed.len; len-- > 0;) {
            const mt_buf cut = {.data = packed.data, .len = len};

            assert_int_equal(unpack(kinds[k], &cut, LEN, 2 * LEN, &out), MT_HTTP_UNPACK_DAMAGED);
            mt_buf_free(&out);
        }
        mt_buf_puts(&packed, "and more");
        assert_int_equal(unpack(kinds[k], &packed, LEN, 2 * LEN, &out), MT_HTTP_UNPACK_DAMAGED);
        mt_buf_free(&out);
        mt_buf_free(&packed);
    }
    mt_free(text);
}

static void streams_may_follow_one_another(void **state)
{
    (void)state;
    for (size_t k = 0; k < MT_COUNT(kinds); k++) {
        const bool may = kinds[k] == MT_HTTP_GZIP || kinds[k] == MT_HTTP_ZSTD;
        mt_buf packed, out;

        mt_buf_init(&packed, 1u << 20);
        pack(kinds[k], "one, ", 5, &packed);
        pack(kinds[k], "two", 3, &packed);
        assert_int_equal(unpack(kinds[k], &packed, LEN, 2 * LEN, &out),
                         may ? MT_HTTP_UNPACKED : MT_HTTP_UNPACK_DAMAGED);
        if (may)
            assert_string_equal(out.data, "one, two");
        mt_buf_free(&out);
        mt_buf_free(&packed);
    }
}

/* A million bytes of nothing are a thousand when they are packed, and few of them are unpacked. */
static void no_more_is_unpacked_than_fits(void **state)
{
    const size_t len = 1 << 20;
    char *text = mt_alloc(len);

    (void)state;
    for (size_t k = 0; k < MT_COUNT(kinds); k++) {
        atomic_bool stop = true;
        mt_room room = {.limit = SIZE_MAX / 2};
        size_t charged = 0;
        mt_buf packed, out;

        mt_buf_init(&packed, 1u << 20);
        pack(kinds[k], text, len, &packed);
        assert_true(packed.len < 2000);
        assert_int_equal(unpack(kinds[k], &packed, len, 2 * len, &out), MT_HTTP_UNPACKED);
        mt_buf_free(&out);
        assert_int_equal(unpack(kinds[k], &packed, len - 1, 2 * len, &out), MT_HTTP_UNPACK_TOO_LARGE);
        mt_buf_free(&out);
        assert_int_equal(unpack(kinds[k], &packed, 100000, 2 * len, &out), MT_HTTP_UNPACK_TOO_LARGE);
        mt_buf_free(&out);
        assert_int_equal(unpack(kinds[k], &packed, len, len, &out), MT_HTTP_UNPACK_NO_ROOM);
        mt_buf_free(&out);
        mt_buf_init(&out, len);
        assert_int_equal(mt_http_unpack(coding_of(kinds[k]), packed.data, packed.len, &out, &room, &charged, &stop),
                         MT_HTTP_UNPACK_STOPPED);
        mt_buf_free(&out);
        mt_buf_free(&packed);
    }
    mt_free(text);
}

/* A frame that wants a window of 128 MiB. */
static void windows_have_a_bound(void **state)
{
    static const char frame[] = "\x28\xB5\x2F\xFD\x00\x88\x0A\x00\x00"
                                "a";
    mt_buf packed = {.data = (char *)(uintptr_t)frame, .len = sizeof(frame) - 1}, out;

    (void)state;
    assert_int_equal(unpack(MT_HTTP_ZSTD, &packed, LEN, 2 * LEN, &out), MT_HTTP_UNPACK_DAMAGED);
    mt_buf_free(&out);
}

static void codings_have_names(void **state)
{
    static const struct {
        const char *name;
        mt_http_coding coding;
    } rows[] = {{"gzip", MT_HTTP_GZIP}, {"GZIP", MT_HTTP_GZIP}, {"x-gzip", MT_HTTP_GZIP}, {"deflate", MT_HTTP_DEFLATE},
                {"zstd", MT_HTTP_ZSTD}, {"", MT_HTTP_PLAIN},    {NULL, MT_HTTP_PLAIN},    {"identity", MT_HTTP_PLAIN}};
    static const char *const unknown[] = {"br", "gzip, gzip", "gzi", "gzipp", "compress", "gzip, zstd"};
    mt_http_coding coding;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        assert_true(mt_http_coding_read(rows[i].name, &coding));
        assert_int_equal(coding, rows[i].coding);
    }
    for (size_t i = 0; i < MT_COUNT(unknown); i++)
        assert_false(mt_http_coding_read(unknown[i], &coding));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_packed_is_unpacked),    cmocka_unit_test(what_is_damaged_is_refused_wherever_it_is_cut),
    cmocka_unit_test(streams_may_follow_one_another), cmocka_unit_test(no_more_is_unpacked_than_fits),
    cmocka_unit_test(windows_have_a_bound),           cmocka_unit_test(codings_have_names),
};

int main(void)
{
    return unit_main(__FILE__, tests, MT_COUNT(tests));
}
