/* The pictures and videos of a chat: from the parts of messages to the patches that the engine needs. Used by
   preparation threads of the lane for pictures, which may wait for the network and for room. */
#ifndef MT_SERVER_PREPARE_PICTURES_H
#define MT_SERVER_PREPARE_PICTURES_H

#include <stdatomic.h>

#include "chat/source.h"
#include "engine/request.h"
#include "media/decode_process.h"
#include "media/limits.h"
#include "models/processor.h"
#include "server/prepare/picture_room.h"
#include "server/prepare/rendered.h"
#include "server/prepare/uploads.h"

/* The client for which a prompt is prepared, and the cost of that. */
typedef struct mt_prep {
    const atomic_bool *stop; /* the request is cancelled */
    const mt_client *client;
    const struct mt_account *account; /* whose uploads it may refer to; NULL: the server has no keys */
    mt_uploads *uploads;
    struct mt_files *files; /* that clients keep here; NULL: they may not */
    mt_rendered *rendered;  /* what PDFs gave that were read before */
    int64_t pdf_pages,
        pdf_pictures; /* most pages of a request's PDFs, and of these, pages of which pictures are made */
    char told[160];   /* what the client is to be told of its documents; "": nothing */
    /* Tells the lane that preparing will take long, as soon as that is known; NULL: there is no lane to tell */
    void (*takes_long)(void *lane);
    void *lane;
    uint64_t begin;  /* mt_clock_thread_ns of the preparing thread when it began */
    double decoding; /* seconds of a processor that the decoder process has used since */
    double earlier;  /* seconds of a processor that preparing took in lanes that the call has left */
} mt_prep;

/* The pictures of one prompt while it is prepared. */
typedef struct mt_pictures {
    const mt_processor *processor;
    const mt_media_limits *limits;
    mt_picture_room *room;
    mt_prep *prep;
    mt_chat_media_options options; /* what the request says for all its pictures */
    mt_media_watch watch;          /* handed to src/media: asks for room and for cancellation */
    mt_decode_client *decoder;     /* the process that decodes; NULL: not begun, or this thread decodes */
    bool decoding;                 /* decoder process was begun, or is known not to exist */
    mt_picture_share has;          /* bytes taken from the room */
    size_t now;                    /* bytes needed at this moment; may be fewer */
    uint64_t pixels;               /* mt_image_work of all pictures so far */
    mt_arena *scratch;             /* memory for the part that is being prepared; NULL between parts */
    mt_arena *arena;               /* memory for what follows */
    mt_picture *at;
    size_t count, room_at; /* pictures in `at`; how many there is space for */
    mt_expanded prompt;    /* set by tokens.c: each picture has as many tokens as it has features */
} mt_pictures;

/* Reads the request's settings for all its pictures: min_pixels, max_pixels, fps, num_frames, in the body itself or in
   mm_processor_kwargs. room and prep are set before. False: *err. Free with mt_pictures_free in any case. */
bool mt_pictures_init(mt_pictures *p, const json_t *body, mt_error *err) MT_NODISCARD;
void mt_pictures_free(mt_pictures *p);

/* Fetches and decodes all media of a chat, and writes into texts what stands for each in the prompt. The callback
   mt_prompt_model.describe; ctx is the mt_pictures. False: *err. */
bool mt_pictures_describe(void *ctx, const mt_chat_media *media, size_t count, mt_chat_text *texts, mt_error *err);

/* Moves the pictures to a request, which frees them with itself; p is empty afterwards. False: *err. */
bool mt_pictures_give(mt_pictures *p, mt_request *request, mt_error *err) MT_NODISCARD;

#endif
