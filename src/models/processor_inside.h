/* The processor's insides, shared by its files. */
#ifndef MT_MODELS_PROCESSOR_INSIDE_H
#define MT_MODELS_PROCESSOR_INSIDE_H

#include "media/resize.h"
#include "models/processor.h"
#include "models/vision.h"

/* Pan and scan (Gemma): how long a picture must be, and how large its pieces. Checkpoints have files that say it, too,
   but transformers goes by its own numbers, and so do we. */
#define MT_CROP_RATIO 1.2
#define MT_CROP_LEAST 256u
#define MT_CROPS 4u

/* How images, or the frames of videos, become patches. */
typedef struct mt_pixel_rules {
    uint64_t min_pixels, max_pixels; /* Qwen */
    uint32_t height, width;          /* Gemma: what every image is resized to */
    mt_resample resample;
    float levels[3][256]; /* of a byte of a channel */
} mt_pixel_rules;

struct mt_processor {
    mt_vision_names names;
    uint32_t patch, frames, merge; /* as in the tower's spec */
    uint32_t tokens_per_second;
    mt_pixel_rules image, video;
    bool sample; /* videos: take only some frames */
    double fps;
    uint32_t video_frames; /* a fixed number of them; 0: fps says */
    uint32_t min_frames, max_frames;
    uint32_t image_id, video_id;
    const char *image_marker, *video_marker;               /* what the template writes */
    const char *image_pad, *video_pad, *opening, *closing; /* texts of tokens */
};

/* Sizes of a resized picture. */
typedef struct mt_pixel_size {
    uint32_t height, width;
} mt_pixel_size;

/* Multiples of a token's side, within limits, of nearly the same shape; frames > 0 for videos whose limits count all
   frames together. */
bool mt_pixel_size_fit(const mt_processor *p, const mt_pixel_rules *rules, const mt_picture_wish *wish, uint32_t height,
                       uint32_t width, uint32_t frames, mt_pixel_size *out, mt_error *err) MT_NODISCARD;

/* Takes memory for the patches of `views` views of that size, of `frames` frames each. */
bool mt_picture_new(const mt_processor *p, const mt_pixel_rules *rules, uint32_t views, mt_pixel_size size,
                    uint32_t frames, const mt_picture_order *order, mt_picture *out, mt_error *err) MT_NODISCARD;

/* Bytes that mt_picture_fill takes for an image of that size. */
size_t mt_picture_fill_memory(const mt_processor *p, const mt_pixel_rules *rules, uint32_t height, uint32_t width,
                              const mt_picture *out);

/* Resizes an image and makes it frame `frame` of view `view`. */
void mt_picture_fill(const mt_processor *p, const mt_pixel_rules *rules, const mt_image *image, uint32_t view,
                     uint32_t frame, mt_picture *out);

void mt_picture_sign(const mt_processor *p, mt_picture *out);

#endif
