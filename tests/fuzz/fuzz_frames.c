/* The bytes of a WebSocket to messages. The same bytes in other pieces must give the same messages and the same code;
   no message has more than the limit. The first byte chooses the pieces. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGE_BYTES = 300 };

typedef struct run {
    mt_frames frames;
    mt_buf notes;
    size_t message; /* bytes of the present one */
} run;

static void note_piece(run *r)
{
    const size_t before = r->notes.len;

    r->message += r->frames.piece_len;
    assert(r->frames.piece_len > 0 && r->message <= MESSAGE_BYTES);
    mt_buf_add(&r->notes, r->frames.piece, r->frames.piece_len);
    mt_frames_unmask(&r->frames, (uint8_t *)r->notes.data + before, r->frames.piece_len);
}

/* False when the parser can go no further. */
static bool feed(run *r, const uint8_t *data, size_t len)
{
    mt_frames *f = &r->frames;
    size_t used;

    for (;; data += used, len -= used)
        switch (mt_frames_next(f, data, len, &used)) {
        case MT_FRAMES_NEED: assert(used == len); return true;
        case MT_FRAMES_GOT_PIECE: note_piece(r); break;
        case MT_FRAMES_GOT_MESSAGE:
            r->message = 0;
            mt_buf_puts(&r->notes, ";");
            break;
        case MT_FRAMES_GOT_CONTROL:
            assert(f->control_len <= MT_FRAMES_CONTROL && f->opcode >= MT_FRAMES_CLOSE && f->opcode <= MT_FRAMES_PONG);
            mt_buf_printf(&r->notes, "(%d %d", f->opcode, f->opcode == MT_FRAMES_CLOSE ? (int)f->code : 0);
            mt_buf_add(&r->notes, f->control, f->control_len);
            break;
        case MT_FRAMES_BAD:
            assert(f->code >= MT_FRAMES_PROTOCOL && f->code <= MT_FRAMES_TOO_LARGE);
            mt_buf_printf(&r->notes, "!%d", f->code);
            return false;
        }
}

static void parse(run *r, const uint8_t *data, size_t size, size_t piece)
{
    mt_buf_init(&r->notes, SIZE_MAX / 4);
    mt_frames_init(&r->frames, MESSAGE_BYTES);
    for (size_t at = 0; at < size; at += piece)
        if (!feed(r, data + at, size - at < piece ? size - at : piece))
            break;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run whole = {.message = 0}, cut = {.message = 0};

    if (size < 2)
        return 0;
    parse(&whole, data + 1, size - 1, size);
    parse(&cut, data + 1, size - 1, (size_t)data[0] % 64 + 1);
    assert(whole.notes.len == cut.notes.len);
    assert(whole.notes.len == 0 || memcmp(whole.notes.data, cut.notes.data, whole.notes.len) == 0);
    mt_buf_free(&whole.notes);
    mt_buf_free(&cut.notes);
    return 0;
}
