/* The pictures of a chat, from what messages say to what the engine takes. In their own lane of preparation, where
   threads may wait for the network and for room. */
#ifndef MT_SERVER_PICTURES_H
#define MT_SERVER_PICTURES_H

#include <pthread.h>
#include <stdatomic.h>

#include "chat/source.h"
#include "engine/request.h"
#include "engine/stats.h"
#include "media/darkroom.h"
#include "media/limits.h"
#include "models/processor.h"

/* Pictures that are being fetched and decoded, wait for the model, or are being answered: so many bytes and no more,
   with all that is needed on the way. Shared by all threads. */
typedef struct mt_picture_room {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    size_t used, limit;
    size_t given;          /* of used, by requests that the engine has: it ends them by itself */
    size_t holders, stuck; /* requests being prepared that have some, and those of them that wait for more */
    uint64_t frees;        /* how often some was given back */
    uint64_t pictures;     /* prepared so far */
    mt_histogram seconds;  /* that the pictures of a request took, from the first byte to the last patch */
} mt_picture_room;

void mt_picture_room_init(mt_picture_room *room, size_t limit);
void mt_picture_room_free(mt_picture_room *room);

/* The pictures of one request while it is prepared. */
typedef struct mt_pictures {
    const mt_processor *processor;
    const mt_media_limits *limits;
    mt_picture_room *room;
    const atomic_bool *stop;       /* may be NULL: nobody waits any more */
    mt_chat_media_options options; /* what the request says for all */
    mt_media_watch watch;
    mt_developer *developer; /* who decodes them; NULL: not begun, or this thread does */
    bool developing;         /* it was begun */
    size_t charged;          /* bytes it has of the room */
    size_t now;              /* of them, what it needs at this moment */
    uint64_t pixels;         /* of its pictures so far, as they came */
    mt_arena *scratch;       /* where the pictures of this part come from; NULL between parts */
    mt_arena *arena;         /* what follows lives in it */
    mt_picture *at;
    size_t count, room_at; /* pictures at `at`, and how many fit there */
    mt_expanded prompt;    /* once it was expanded */
} mt_pictures;

/* Reads what the request says for all its pictures: min_pixels, max_pixels, fps, num_frames, in the body itself or in
   mm_processor_kwargs. Free with mt_pictures_free in any case. */
bool mt_pictures_init(mt_pictures *p, const json_t *body, mt_error *err) MT_NODISCARD;
void mt_pictures_free(mt_pictures *p);

/* For mt_prompt_model.describe, whose ctx is the pictures: fetches and decodes all, and says what stands for each. */
bool mt_pictures_describe(void *ctx, const mt_chat_media *media, size_t count, mt_chat_text *texts, mt_error *err);

/* The prompt with as many tokens for each picture as it has; into p->prompt. */
bool mt_pictures_expand(mt_pictures *p, const uint32_t *ids, size_t count, mt_error *err) MT_NODISCARD;

/* Moves them to a request, which frees them with itself. p is empty afterwards. */
bool mt_pictures_give(mt_pictures *p, mt_request *request, mt_error *err) MT_NODISCARD;

#endif
