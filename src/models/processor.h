/* What a checkpoint's processor does: from decoded pixels to patches, and from a placeholder in the prompt to the
   tokens that stand there. Read once from the checkpoint's folder; constant afterwards, so that any number of threads
   may use it.

   A prompt with pictures is made in two steps, which together give the tokens that transformers gives:
     1. in the rendered text, each place of a picture (its marker) becomes what mt_processor_text writes, which has
        one pad token for each run of tokens; then the text is tokenised as ever;
     2. mt_processor_expand replaces each pad token by as many as the picture has. */
#ifndef MT_MODELS_PROCESSOR_H
#define MT_MODELS_PROCESSOR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "media/image.h"
#include "media/video.h"
#include "models/picture.h"
#include "models/spec.h"

typedef struct mt_processor mt_processor;

/* The spec must have a tower, and config be its config.json. NULL when there is no memory or a file contradicts
   itself. The processor lives in the arena. */
mt_processor *mt_processor_read(const char *dir, const mt_config *config, const mt_model_spec *spec, mt_arena *arena,
                                mt_error *err) MT_NODISCARD;

/* What a request may wish for; 0 is what the checkpoint says. */
typedef struct mt_picture_wish {
    uint64_t min_pixels, max_pixels; /* after resizing; of all frames together for videos, where the family says so */
    double fps;                      /* frames looked at in a second of video */
    uint32_t frames;                 /* frames looked at, instead of fps */
    bool low;                        /* detail "low": as few tokens as the checkpoint allows within reason */
    bool crops;                      /* pieces of long images, too (pan and scan), where the family has them */
} mt_picture_wish;

/* Most patches of any picture or video, which the tower must have room for. */
size_t mt_processor_patches(const mt_processor *p);

/* Whose pictures they are: what a request wishes for, and where its pictures go. */
typedef struct mt_picture_order {
    mt_picture_wish wish;
    const mt_media_watch *watch; /* asked for memory before any is used; may be NULL */
    mt_arena *arena;             /* patches lie in it; everything else that is needed on the way is freed */
} mt_picture_order;

/* Failures are the client's, or the watch's. An image may become several pictures: out has room for
   MT_PICTURE_SIZES. */
bool mt_processor_image(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                        mt_error *err) MT_NODISCARD;
/* A video may become any number of them, which lie in the order's arena. */
bool mt_processor_video(const mt_processor *p, mt_video *video, const mt_picture_order *order, mt_picture **out,
                        mt_error *err) MT_NODISCARD;

/* A video that comes as a list of pictures, all of which are looked at: wish.fps says at what pace they were taken.
   next makes the picture of each number, in order, when the one before it is freed: one is in memory at a time. */
typedef struct mt_frame_list {
    size_t count;
    bool (*next)(void *ctx, size_t index, mt_image *image, mt_error *err);
    void *ctx;
} mt_frame_list;

bool mt_processor_frames(const mt_processor *p, const mt_frame_list *list, const mt_picture_order *order,
                         mt_picture **out, mt_error *err) MT_NODISCARD;

/* The token that a chat template writes where an image or a video stands: "<|image_pad|>", "<start_of_image>". NULL:
   the family takes none. */
const char *mt_processor_marker(const mt_processor *p, bool video);

/* The chat template of conversations with videos, where the family has one of its own for them; NULL: it has none. */
const char *mt_processor_video_template(const mt_processor *p);

/* The token that stands for a run of an image's own before mt_processor_expand. */
uint32_t mt_processor_pad(const mt_processor *p);

/* Appends the text that the marker of a picture, and of those that belong to it, becomes; number: which of the prompt's
   markers of images, or of videos, it is, from 0. The text is as trusted as the template's own. */
bool mt_processor_text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out) MT_NODISCARD;

/* Pad tokens that stand for a picture, each for a run of its tokens. */
size_t mt_processor_runs(const mt_processor *p, const mt_picture *picture);

/* A prompt as the engine takes it. */
typedef struct mt_expanded {
    uint32_t *ids;
    size_t count;
    uint32_t *origin; /* [count]: which of the given ids each comes from */
    mt_media_span *spans;
    size_t span_count;
} mt_expanded;

/* pictures in the order in which they stand in the prompt. Fails when the prompt has more or fewer pad tokens than
   they call for. What out points to lies in the arena. */
bool mt_processor_expand(const mt_processor *p, const uint32_t *ids, size_t count, const mt_picture *pictures,
                         size_t picture_count, mt_arena *arena, mt_expanded *out, mt_error *err) MT_NODISCARD;

#endif
