/* See msgpack.h. */
#include "base/msgpack.h"

#include <assert.h>
#include <string.h>

/* A first byte, then a value of that many bytes, most significant first. */
static void put(mt_buf *out, unsigned first, uint64_t value, size_t bytes)
{
    uint8_t all[9] = {(uint8_t)first};
    for (size_t i = 0; i < bytes; i++)
        all[1 + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    mt_buf_add(out, all, 1 + bytes);
}

void mt_msgpack_nil(mt_buf *out)
{
    put(out, 0xc0, 0, 0);
}

void mt_msgpack_uint(mt_buf *out, uint64_t value)
{
    if (value < 0x80)
        put(out, (unsigned)value, 0, 0);
    else if (value <= UINT8_MAX)
        put(out, 0xcc, value, 1);
    else if (value <= UINT16_MAX)
        put(out, 0xcd, value, 2);
    else if (value <= UINT32_MAX)
        put(out, 0xce, value, 4);
    else
        put(out, 0xcf, value, 8);
}

void mt_msgpack_double(mt_buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put(out, 0xcb, bits, 8);
}

/* The head of a value with a count: `small` for up to `most`, else with 16 or 32 bits. */
static void head(mt_buf *out, size_t count, unsigned small, size_t most, unsigned medium)
{
    assert(count <= UINT32_MAX);
    if (count <= most)
        put(out, small | (unsigned)count, 0, 0);
    else if (count <= UINT16_MAX)
        put(out, medium, count, 2);
    else
        put(out, medium + 1, count, 4);
}

void mt_msgpack_text(mt_buf *out, const char *text, size_t len)
{
    if (len > 31 && len <= UINT8_MAX)
        put(out, 0xd9, len, 1);
    else
        head(out, len, 0xa0, 31, 0xda);
    mt_buf_add(out, text, len);
}

void mt_msgpack_array(mt_buf *out, size_t count)
{
    head(out, count, 0x90, 15, 0xdc);
}

void mt_msgpack_map(mt_buf *out, size_t pairs)
{
    head(out, pairs, 0x80, 15, 0xde);
}
