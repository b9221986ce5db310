/* The frames of a WebSocket (RFC 6455): parses what a client sends, in whatever pieces it comes, and writes the heads
   of frames. Knows nothing of sockets. */
#ifndef MT_HTTP_FRAMES_H
#define MT_HTTP_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_FRAMES_HEAD = 14, MT_FRAMES_CONTROL = 125 }; /* most bytes of a frame's head, and of a control frame */

typedef enum mt_frames_opcode {
    MT_FRAMES_CONTINUATION = 0,
    MT_FRAMES_TEXT = 1,
    MT_FRAMES_BINARY = 2,
    MT_FRAMES_CLOSE = 8,
    MT_FRAMES_PING = 9,
    MT_FRAMES_PONG = 10
} mt_frames_opcode;

/* Codes of close frames. */
typedef enum mt_frames_code {
    MT_FRAMES_NORMAL = 1000,
    MT_FRAMES_GOING_AWAY = 1001,
    MT_FRAMES_PROTOCOL = 1002,
    MT_FRAMES_UNSUPPORTED = 1003,
    MT_FRAMES_NO_CODE = 1005, /* a close frame had none; never sent */
    MT_FRAMES_NOT_UTF8 = 1007,
    MT_FRAMES_POLICY = 1008,
    MT_FRAMES_TOO_LARGE = 1009,
    MT_FRAMES_FAILED = 1011,
    MT_FRAMES_TRY_LATER = 1013
} mt_frames_code;

typedef enum mt_frames_event {
    MT_FRAMES_NEED,        /* all bytes are used, and more are needed */
    MT_FRAMES_GOT_PIECE,   /* piece and piece_len are the next bytes of a message, still masked: mt_frames_unmask */
    MT_FRAMES_GOT_MESSAGE, /* the message is complete */
    MT_FRAMES_GOT_CONTROL, /* a frame with `opcode` CLOSE, PING or PONG; control and control_len are its bytes */
    MT_FRAMES_BAD          /* `code` says why; nothing can be read any more */
} mt_frames_event;

typedef struct mt_frames {
    const uint8_t *piece;
    size_t piece_len;
    mt_frames_opcode opcode;
    uint8_t control[MT_FRAMES_CONTROL];
    size_t control_len;
    mt_frames_code code; /* of BAD; of a close frame: the client's */

    /* Private. */
    uint64_t limit; /* bytes of a message */
    uint8_t head[MT_FRAMES_HEAD];
    size_t head_len; /* bytes of the present frame's head that were read */
    bool in_payload; /* the head is complete */
    bool last;       /* the frame is the last of its message */
    bool open;       /* a message has begun and is not complete */
    uint64_t left;   /* bytes of the payload to come */
    uint64_t length; /* of the message, the present frame included */
    uint8_t mask[4];
    size_t masked, piece_at; /* bytes of the payload before the next one; before `piece` */
} mt_frames;

void mt_frames_init(mt_frames *frames, uint64_t limit);

/* Reads up to the next event; *used: how many bytes that took. len may be 0. */
mt_frames_event mt_frames_next(mt_frames *frames, const uint8_t *data, size_t len, size_t *used);

/* Unmasks a copy of the piece of the latest MT_FRAMES_GOT_PIECE. */
void mt_frames_unmask(const mt_frames *frames, uint8_t *copy, size_t len);

bool mt_frames_idle(const mt_frames *frames); /* no byte of a frame was read, and no message has begun */

/* Whether the frame that is being read, or else the one that begins with this byte, is a control frame. */
bool mt_frames_is_control(const mt_frames *frames, uint8_t byte);

/* Writes the head of an unmasked frame that is a whole message or a control frame. Returns its bytes. */
size_t mt_frames_head(uint8_t out[MT_FRAMES_HEAD], mt_frames_opcode opcode, uint64_t len);

#endif
