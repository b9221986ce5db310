/* The processor of a checkpoint: from decoded pixels to patches, and from a placeholder in the prompt to the tokens
   that stand there. Read once from the checkpoint's folder and constant afterwards, so that any number of threads may
   use it.

   A prompt with pictures is made in two steps, which together give the tokens that transformers gives:
   1. In the rendered text, each picture's marker is replaced by what mt_processor_text writes, which has one pad token
      for each run of the picture's tokens; then the text is tokenised.
   2. mt_processor_expand replaces each pad token by as many as its run has. */
#ifndef MT_MODELS_PROCESSOR_H
#define MT_MODELS_PROCESSOR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "models/picture.h"

typedef struct mt_config mt_config;           /* weights/config.h */
typedef struct mt_image mt_image;             /* media/image.h */
typedef struct mt_media_watch mt_media_watch; /* media/watch.h */
typedef struct mt_model_spec mt_model_spec;   /* models/spec.h */
typedef struct mt_video mt_video;             /* media/video.h */

typedef struct mt_processor mt_processor;

/* spec must have a tower, and config be its config.json. NULL with a sentence where there is no memory, or a file is
   inconsistent. The processor lives in the arena. */
mt_processor *mt_processor_read(const char *dir, const mt_config *config, const mt_model_spec *spec, mt_arena *arena,
                                mt_error *err) MT_NODISCARD;

/* Settings that a request may give; 0: as the checkpoint says. */
typedef struct mt_picture_wish {
    /* after resizing; for videos of all frames together, where mt_processor.together says so */
    uint64_t min_pixels, max_pixels;
    double fps;      /* frames per second of video that are used */
    uint32_t frames; /* how many frames are used, instead of fps */
    bool low;        /* detail "low": few tokens */
    bool crops;      /* long images are shown in pieces, too (pan and scan), where the family does that */
} mt_picture_wish;

/* Most patches of any picture or video: the tower must have room for them. */
size_t mt_processor_patches(const mt_processor *p);
/* About as many pixels: what a larger picture has more of is lost when it is resized. */
uint64_t mt_processor_pixels(const mt_processor *p);

/* How pictures of a request are made. */
typedef struct mt_picture_order {
    mt_picture_wish wish;
    const mt_media_watch *watch; /* asked before memory is used; may be NULL */
    mt_arena *arena;             /* owns the patches; all other memory is freed before the call returns */
} mt_picture_order;

/* Makes patches of an image. False with a sentence where the image is unsuitable or order->watch refuses memory. An
   image may become several pictures: out has room for MT_PICTURE_SIZES. */
bool mt_processor_image(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                        mt_error *err) MT_NODISCARD;
/* The same for a video, which may become any number of pictures; they are in order->arena. */
bool mt_processor_video(const mt_processor *p, mt_video *video, const mt_picture_order *order, mt_picture **out,
                        mt_error *err) MT_NODISCARD;

/* A video given as a list of images, all of which are used; wish.fps is the rate at which they were taken. next decodes
   image number `index`, in order, after the one before was freed: one is in memory at a time. */
typedef struct mt_frame_list {
    size_t count;
    bool (*next)(void *ctx, size_t index, mt_image *image, mt_error *err);
    void *ctx;
} mt_frame_list;

bool mt_processor_frames(const mt_processor *p, const mt_frame_list *list, const mt_picture_order *order,
                         mt_picture **out, mt_error *err) MT_NODISCARD;

/* The token that a chat template writes for an image or a video: "<|image_pad|>", "<start_of_image>". NULL: the family
   does not take it. */
const char *mt_processor_marker(const mt_processor *p, bool video);

/* A chat template for conversations with videos, where the family has a separate one; else NULL. */
const char *mt_processor_video_template(const mt_processor *p);

/* The pad token of images: stands for a run of an image's tokens before mt_processor_expand. */
uint32_t mt_processor_pad(const mt_processor *p);

/* Appends the text that replaces the marker of a picture and the `more` pictures that belong to it. number: index of
   the marker among the prompt's images, or among its videos, from 0. The text is trusted like the template's own. False
   without memory. */
bool mt_processor_text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out) MT_NODISCARD;

/* How many pad tokens stand for a picture, each for a run of its tokens. */
size_t mt_processor_runs(const mt_processor *p, const mt_picture *picture);

/* A prompt as the engine takes it. */
typedef struct mt_expanded {
    uint32_t *ids;
    size_t count;
    uint32_t *origin; /* [count]: index of the given id that each comes from */
    mt_media_span *spans;
    size_t span_count;
} mt_expanded;

/* pictures: in the order of the prompt. False with a sentence when the prompt has more or fewer pad tokens than they
   need. What out points to is in the arena. */
bool mt_processor_expand(const mt_processor *p, const uint32_t *ids, size_t count, const mt_picture *pictures,
                         size_t picture_count, mt_arena *arena, mt_expanded *out, mt_error *err) MT_NODISCARD;

#endif
