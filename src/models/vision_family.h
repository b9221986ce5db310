/* How a family of models sees pictures, as a table of data and functions. The tower (vision.c), its weights
   (vision_weights.c), the processor (processor*.c) and the engine work with any table and never ask which family it is.
   Each table is in a file vision_NAME.c; text families point to the table that they use (family.h). */
#ifndef MT_MODELS_VISION_FAMILY_H
#define MT_MODELS_VISION_FAMILY_H

#include "media/resize.h"
#include "models/processor.h"
#include "models/vision.h"
#include "weights/limits.h"

/* How images, or frames of videos, are resized and become patches. */
typedef struct mt_pixel_rules {
    uint64_t min_pixels, max_pixels; /* where a size between these limits is chosen */
    uint32_t height, width;          /* where all pictures get one size */
    mt_resample resample;
    float levels[3][256]; /* value of each byte, by channel */
} mt_pixel_rules;

/* How large images are cut into tiles. */
typedef struct mt_tile_rules {
    uint32_t least, most, side; /* number of tiles, and their side in pixels */
    double tolerance;           /* an image is cut where it is so many times too large */
    bool thumbnail;             /* the whole image is shown, too */
} mt_tile_rules;

#define MT_TILES 256 /* most tiles of an image */

struct mt_processor {
    const struct mt_vision_family *family;
    uint32_t patch, frames, merge, tokens_per_second, block; /* as in the tower's spec */
    bool pixels_last, nested; /* order of pixels in a patch; order of patches in a token (mt_picture_inner) */
    uint32_t places;          /* learned positions along a side; 0: no limit */
    size_t patches;           /* most patches of a picture or a video */
    mt_pixel_rules image, video;
    mt_tile_rules tiles, video_tiles;
    bool together;         /* limits of pixels for videos are those of all frames together */
    bool sample;           /* of a video only some frames are used */
    double fps;            /* frames per second of video that are used */
    uint32_t video_frames; /* fixed number of frames; 0: fps decides */
    uint32_t min_frames, max_frames;
    double shift;       /* index of the first frame that is used; below 0: the middle of the first share of frames */
    double max_seconds; /* longest video whose frames are taken at fps; in a longer one they are spread */
    bool spelt;         /* times in the prompt have a decimal and a unit */
    uint32_t image_id, video_id;
    const char *image_marker, *video_marker; /* what the chat template writes for a picture */
    /* texts of the tokens that stand for a picture and around it */
    const char *image_pad, *video_pad, *opening, *closing;
    const char *row_end;                         /* token behind each row of a picture's tokens but the last */
    const char *tile_opening, *tile_closing;     /* around each tile */
    const char *number_opening, *number_closing; /* around the number of a picture */
    bool numbered;                               /* pictures are numbered in the prompt */
};

/* Size of a picture after resizing, in pixels. */
typedef struct mt_pixel_size {
    uint32_t height, width;
} mt_pixel_size;

/* Names of tensors in canonical form: "vision." and "projector." stand for the prefixes that the binder finds. Names of
   a layer's tensors follow `layer` and its number. */
typedef struct mt_tower_names {
    const char *patch, *layer;
    /* table of learned positions, where there is one; a table that contains a summary's entry is left to bind */
    const char *table;
    const char *norm1, *norm2;
    /* qkv: all three in one matrix, unless the checkpoint has q by itself; NULL: separate. Where it cannot be divided,
       q is reported as missing. */
    const char *q, *k, *v, *qkv;
    const char *o;
    const char *gate, *up, *down; /* gate: NULL where the MLP has none */
    const char *post1, *post2;    /* norms behind attention and MLP; NULL: none */
    const char *q_norm, *k_norm;  /* norms of heads; NULL: none */
    const char *scale1, *scale2;  /* factors on the results of attention and MLP; NULL: none */
    const char *inner;            /* what follows the name of a product; NULL: nothing */
} mt_tower_names;

/* SigLIP's names, which several families use. */
#define MT_SIGLIP_NAMES                                                                                             \
    {                                                                                                               \
        .patch = "vision.embeddings.patch_embedding", .table = "vision.embeddings.position_embedding",              \
        .layer = "vision.encoder.layers.", .norm1 = "layer_norm1", .norm2 = "layer_norm2", .q = "self_attn.q_proj", \
        .k = "self_attn.k_proj", .v = "self_attn.v_proj", .o = "self_attn.out_proj", .up = "mlp.fc1",               \
        .down = "mlp.fc2"                                                                                           \
    }

/* Finds a tower's tensors in a checkpoint. */
typedef struct mt_tower_binder {
    mt_binder *b;
    const mt_vision_spec *spec;
    const char *prefix; /* put before all names */
    bool plain;         /* products have no biases */
    char path[MT_LIMIT_TENSOR_NAME];
} mt_tower_binder;

/* The processor's settings from a checkpoint's files. */
typedef struct mt_settings {
    const char *dir;
    const mt_config *config;                 /* config.json */
    const mt_config *image, *video, *tokens; /* settings of images, of videos, of the tokenizer; NULL: no such file */
    const mt_model_spec *spec;
    mt_arena *arena;
    mt_processor *p; /* the processor that is being read */
    mt_error *err;
} mt_settings;

/* The frames of a video that are used. */
typedef struct mt_frame_choice {
    const mt_processor *p;
    int64_t total; /* frames that the video has */
    double fps;    /* frames per second of the video */
    /* result */
    uint32_t count;
    int64_t *index; /* [max_frames + 2] */
} mt_frame_choice;

typedef struct mt_vision_family {
    /* Allowed values of "model_type" in "vision_config", where it is there; none given: any. */
    const char *types[2];
    /* Fills *v from config.json, which has a "vision_config". False with a sentence. */
    bool (*read_tower)(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err);
    mt_tower_names names;
    /* Finds the tensors that `names` does not cover. */
    void (*bind)(mt_tower_binder *t, mt_vision_weights *w);

    /* Reads the processor: rules for pixels, most patches, texts of tokens. */
    bool (*read_processor)(const mt_settings *s);
    uint32_t image_id, video_id; /* pad tokens, where config.json does not name them */

    /* The size that a picture is resized to; frames > 0: that each of so many frames of a video is resized to. */
    bool (*size)(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width, uint32_t frames,
                 mt_pixel_size *out, mt_error *err);
    /* Makes the views of an image; views of one size are a picture. NULL: one view, the whole image. */
    bool (*image)(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                  mt_error *err);
    /* The same for a frame of a video, where each frame is a picture; NULL: frames are views of one picture. */
    bool (*frame)(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                  mt_error *err);
    /* Size that a frame of a video is resized to first, before `size`; NULL: it is resized once. */
    mt_pixel_size (*before)(const mt_processor *p, uint32_t height, uint32_t width);
    /* Chooses frames: fills c->count and c->index. wanted: how many by the frame rate or, where fixed, as the request
       asks. NULL: the family takes no videos. */
    void (*choose)(mt_frame_choice *c, double wanted, bool fixed);

    /* Appends the text that replaces a picture's marker, with a pad token for each run of its tokens. number: index of
       the marker among the prompt's images, or videos, from 0. NULL: one pad token. */
    bool (*text)(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out);
    /* How many tokens a run has; NULL: all of the picture's. */
    uint32_t (*run)(const mt_processor *p, const mt_picture *picture);
    const char *video_template; /* chat template of conversations with videos; NULL: the checkpoint's own */
    bool one_pad;               /* a video's tokens have the image's pad token */
    bool early;                 /* a view of a video has the time of its first frame; else that of its middle */
    bool grid; /* rotary positions of a run are those of a grid of tokens (M-RoPE); else they count on as for text */
} mt_vision_family;

/* ---- for read_tower ---- */
typedef struct mt_siglip_sizes {
    int64_t hidden, ffn, layers, heads, image, patch; /* defaults */
} mt_siglip_sizes;

/* Reads the sizes of a SigLIP tower; its table of positions is that of a square picture of fallback->image pixels. */
bool mt_siglip_read(mt_vision_spec *v, const mt_config *c, const mt_siglip_sizes *fallback, mt_error *err) MT_NODISCARD;

bool mt_tower_activation_read(const mt_config *c, const char *key, const char *fallback, mt_activation *out,
                              mt_error *err) MT_NODISCARD;

/* For bind. A norm's bias is left out where the tower has RMS norms, a product's bias where its layers have none. */
const float *mt_tower_norm(mt_tower_binder *t, const char *name, size_t n, const float **bias);
void mt_tower_matrix(mt_tower_binder *t, const char *name, size_t n, size_t k, mt_mat *out, const float **bias);

/* For read_processor. Reads a JSON file of the folder; *out is NULL where there is none. */
bool mt_settings_file(const mt_settings *s, const char *name, const mt_config **out) MT_NODISCARD;
/* Checks that setting `key` of c (NULL: none) equals `wanted`, as the tower's config decides how patches are cut. */
bool mt_settings_same(const mt_settings *s, const mt_config *c, const char *key, uint32_t wanted) MT_NODISCARD;
/* Reads the limits of pixels. "size" has edges, whose values are in fact areas; where `edges` is false, it or c itself
   may have "min_pixels" and "max_pixels". */
bool mt_settings_pixels(const mt_settings *s, const mt_config *c, int64_t min, int64_t max, bool edges,
                        mt_pixel_rules *rules) MT_NODISCARD;
/* Reads how bytes become values and pictures are resized. c: settings, or NULL for the defaults given. */
bool mt_settings_levels(const mt_settings *s, const mt_config *c, const double mean[3], const double std[3],
                        mt_resample resample, mt_pixel_rules *rules) MT_NODISCARD;
/* The text of a special token: the tokenizer's settings may rename it. */
const char *mt_settings_token(const mt_settings *s, const char *key, const char *fallback);

/* For `size`: the nearest multiples of a token's side within the limits, of nearly the same shape. */
bool mt_pixel_size_fit(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width,
                       uint32_t frames, mt_pixel_size *out, mt_error *err) MT_NODISCARD;

/* The same by these rules, whose limits hold for `frames` frames together; 0: for one. */
bool mt_pixel_size_fit_frames(const mt_processor *p, const mt_pixel_rules *rules, const mt_picture_wish *wish,
                              uint32_t height, uint32_t width, uint32_t frames, mt_pixel_size *out,
                              mt_error *err) MT_NODISCARD;

/* Fewest and most pixels of a picture that the checkpoint, the request and the tower's room allow. together: of all
   frames. */
void mt_pixel_limits(const mt_processor *p, const mt_pixel_rules *rules, const mt_picture_wish *wish, bool together,
                     double *least, double *most);

/* Allocates the patches of `views` views of that size, of `frames` frames each. */
bool mt_picture_new(const mt_processor *p, const mt_pixel_rules *rules, uint32_t views, mt_pixel_size size,
                    uint32_t frames, const mt_picture_order *order, mt_picture *out, mt_error *err) MT_NODISCARD;

/* Bytes of memory that mt_picture_fill uses for an image of that size. */
size_t mt_picture_fill_memory(const mt_processor *p, const mt_pixel_rules *rules, uint32_t height, uint32_t width,
                              const mt_picture *out);

/* Resizes an image and writes it as frame `frame` of view `view`. */
void mt_picture_fill(const mt_processor *p, const mt_pixel_rules *rules, const mt_image *image, uint32_t view,
                     uint32_t frame, mt_picture *out);

/* Resizes an image to across x down tiles of that size and makes each tile a view, row by row. */
bool mt_picture_tiles(const mt_processor *p, const mt_pixel_rules *rules, const mt_image *image, mt_pixel_size tile,
                      uint32_t across, uint32_t down, const mt_picture_order *order, mt_picture *out,
                      mt_error *err) MT_NODISCARD;

/* Of all grids with an allowed number of tiles, the one whose shape is nearest to the picture's; of two equally near,
   the larger one if the picture has enough pixels. */
void mt_tile_grid(const mt_tile_rules *rules, double height, double width, uint32_t *across, uint32_t *down);

/* Sets the picture's digest, when its patches are filled. */
void mt_picture_sign(const mt_processor *p, mt_picture *out);

/* For `run`: each view is a run. */
uint32_t mt_picture_view_tokens(const mt_processor *p, const mt_picture *picture);

#endif
