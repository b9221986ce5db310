/* See frames.h. What RFC 6455 forbids a client is refused: unmasked frames, reserved bits and opcodes, control frames
   that are long or in parts, lengths that are not as short as they can be, messages inside of messages. No extension is
   ever agreed on, so no frame is compressed. */
#include "http/frames.h"

#include <string.h>

#include "base/utf8.h"

enum { FIN = 0x80, RESERVED = 0x70, OPCODE = 0x0F, CONTROL = 0x08, MASKED = 0x80, LENGTH = 0x7F };

void mt_frames_init(mt_frames *f, uint64_t limit)
{
    *f = (mt_frames){.limit = limit};
}

bool mt_frames_idle(const mt_frames *f)
{
    return f->head_len == 0 && !f->open;
}

bool mt_frames_is_control(const mt_frames *f, uint8_t byte)
{
    return (f->head_len ? f->head[0] : byte) & CONTROL;
}

static mt_frames_event fail(mt_frames *f, mt_frames_code code)
{
    f->code = code;
    return MT_FRAMES_BAD;
}

/* The length of a frame's head, from its first two bytes. */
static size_t head_size(const mt_frames *f)
{
    const uint8_t length = f->head[1] & LENGTH;

    return (length == 127 ? 10u : length == 126 ? 4u : 2u) + sizeof(f->mask);
}

/* Checks the first two bytes of a frame: why they are refused, as an mt_frames_code; 0: they are good. */
static int judge(const mt_frames *f)
{
    const uint8_t opcode = f->head[0] & OPCODE;
    const bool control = opcode & CONTROL;

    if ((f->head[0] & RESERVED) || !(f->head[1] & MASKED))
        return MT_FRAMES_PROTOCOL;
    if (control)
        return opcode > MT_FRAMES_PONG || !(f->head[0] & FIN) || (f->head[1] & LENGTH) > MT_FRAMES_CONTROL
                   ? MT_FRAMES_PROTOCOL
                   : 0;
    if (opcode > MT_FRAMES_BINARY || (opcode == MT_FRAMES_CONTINUATION) != f->open)
        return MT_FRAMES_PROTOCOL;
    return opcode == MT_FRAMES_BINARY ? MT_FRAMES_UNSUPPORTED : 0;
}

/* Reads the length of a complete head. False: it could be written shorter, or has its highest bit set. */
static bool read_length(mt_frames *f)
{
    const size_t bytes = head_size(f) - sizeof(f->mask) - 2;

    f->left = bytes ? 0 : f->head[1] & LENGTH;
    for (size_t i = 0; i < bytes; i++)
        f->left = f->left << 8 | f->head[2 + i];
    return bytes == 0 || (bytes == 2 ? f->left > 125 : f->left > UINT16_MAX && f->left <= INT64_MAX);
}

static mt_frames_event end_head(mt_frames *f)
{
    if (!read_length(f))
        return fail(f, MT_FRAMES_PROTOCOL);
    memcpy(f->mask, f->head + head_size(f) - sizeof(f->mask), sizeof(f->mask));
    f->in_payload = true;
    f->masked = 0;
    f->control_len = 0;
    f->last = f->head[0] & FIN;
    if (f->head[0] & CONTROL)
        return MT_FRAMES_NEED;
    f->length = f->open ? f->length : 0;
    f->open = true;
    if (f->left > f->limit - f->length)
        return fail(f, MT_FRAMES_TOO_LARGE);
    f->length += f->left;
    return MT_FRAMES_NEED;
}

/* Reads bytes of a head. */
static mt_frames_event read_head(mt_frames *f, const uint8_t *data, size_t len, size_t *used)
{
    int code;

    while (*used < len && !f->in_payload) {
        f->head[f->head_len++] = data[(*used)++];
        code = f->head_len == 2 ? judge(f) : 0;
        if (code)
            return fail(f, (mt_frames_code)code);
        if (f->head_len >= 2 && f->head_len == head_size(f) && end_head(f) == MT_FRAMES_BAD)
            return MT_FRAMES_BAD;
    }
    return MT_FRAMES_NEED;
}

static bool is_utf8(const uint8_t *text, size_t len)
{
    size_t size = 1;

    for (size_t at = 0; at < len && size; at += size)
        size = mt_utf8_length((const char *)text + at, len - at);
    return size > 0;
}

/* Reads the code of a close frame. */
static mt_frames_event read_close(mt_frames *f)
{
    const int code = f->control_len < 2 ? MT_FRAMES_NO_CODE : f->control[0] << 8 | f->control[1];

    if (f->control_len == 1 || (f->control_len > 1 && (code < 1000 || (code > 1003 && code < 1007) ||
                                                       (code > 1014 && code < 3000) || code > 4999)))
        return fail(f, MT_FRAMES_PROTOCOL);
    if (f->control_len > 2 && !is_utf8(f->control + 2, f->control_len - 2))
        return fail(f, MT_FRAMES_NOT_UTF8);
    f->code = (mt_frames_code)code;
    return MT_FRAMES_GOT_CONTROL;
}

/* Ends a frame, whose payload is complete. */
static mt_frames_event end_frame(mt_frames *f)
{
    f->in_payload = false;
    f->head_len = 0;
    f->opcode = (mt_frames_opcode)(f->head[0] & OPCODE);
    if (f->opcode == MT_FRAMES_CLOSE)
        return read_close(f);
    if (f->opcode & CONTROL)
        return MT_FRAMES_GOT_CONTROL;
    f->open = !f->last;
    return f->last ? MT_FRAMES_GOT_MESSAGE : MT_FRAMES_NEED;
}

static void read_control(mt_frames *f, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++, f->masked++)
        f->control[f->control_len++] = data[i] ^ f->mask[f->masked % 4];
}

/* Reads bytes of a payload, at least one and at most as many as are missing. True: they are a piece of a message, which
   mt_frames_next tells; those of control frames are collected first. */
static bool read_payload(mt_frames *f, const uint8_t *data, size_t len)
{
    f->left -= len;
    if (f->head[0] & CONTROL) {
        read_control(f, data, len);
        return false;
    }
    f->piece = data;
    f->piece_len = len;
    f->piece_at = f->masked;
    f->masked += len;
    return true;
}

mt_frames_event mt_frames_next(mt_frames *f, const uint8_t *data, size_t len, size_t *used)
{
    mt_frames_event event = MT_FRAMES_NEED;

    *used = 0;
    while (event == MT_FRAMES_NEED && (*used < len || (f->in_payload && f->left == 0))) {
        if (!f->in_payload) {
            event = read_head(f, data, len, used);
        } else if (f->left == 0) {
            event = end_frame(f);
        } else {
            const size_t here = f->left < len - *used ? (size_t)f->left : len - *used;

            event = read_payload(f, data + *used, here) ? MT_FRAMES_GOT_PIECE : MT_FRAMES_NEED;
            *used += here;
        }
    }
    return event;
}

void mt_frames_unmask(const mt_frames *f, uint8_t *copy, size_t len)
{
    for (size_t i = 0; i < len; i++)
        copy[i] ^= f->mask[(f->piece_at + i) % 4];
}

size_t mt_frames_head(uint8_t out[MT_FRAMES_HEAD], mt_frames_opcode opcode, uint64_t len)
{
    const size_t bytes = len > UINT16_MAX ? 8 : len > 125 ? 2 : 0;

    out[0] = (uint8_t)(FIN | opcode);
    out[1] = (uint8_t)(bytes == 8 ? 127 : bytes ? 126 : len);
    for (size_t i = 0; i < bytes; i++)
        out[2 + i] = (uint8_t)(len >> (8 * (bytes - 1 - i)));
    return 2 + bytes;
}
