/* A family of models that see, as a table: all in which their eyes differ. The tower (vision.c), its weights
   (vision_weights.c), the processor (processor*.c) and the engine run any of them and never ask which one it is. A
   table stands in a file of its own, vision_NAME.c, and the text families that have these eyes point to it
   (family.h). */
#ifndef MT_MODELS_VISION_FAMILY_H
#define MT_MODELS_VISION_FAMILY_H

#include "media/resize.h"
#include "models/processor.h"
#include "models/vision.h"

/* How images, or the frames of videos, become patches. */
typedef struct mt_pixel_rules {
    uint64_t min_pixels, max_pixels; /* where a size is fitted between them */
    uint32_t height, width;          /* where all have one size */
    mt_resample resample;
    float levels[3][256]; /* of a byte of a channel */
} mt_pixel_rules;

/* As the processor does it that transformers picks: what torchvision lacks is Pillow's. */
static inline mt_resize_like mt_pixel_like(const mt_pixel_rules *rules)
{
    return rules->resample == MT_RESAMPLE_LANCZOS ? MT_RESIZE_PIL : MT_RESIZE_TORCH;
}

/* How large images are cut into tiles. */
typedef struct mt_tile_rules {
    uint32_t least, most, side; /* so many of them, of so many pixels */
    double tolerance;           /* how many times too large an image must be */
    bool thumbnail;             /* the whole image is seen, too */
} mt_tile_rules;

#define MT_TILES 256 /* most tiles of an image */

struct mt_processor {
    const struct mt_vision_family *family;
    uint32_t patch, frames, merge, tokens_per_second, block; /* as in the tower's spec */
    bool pixels_last, nested;                                /* the order of pixels in a patch, of patches in a token */
    uint32_t places; /* learned positions along a side; 0: as many as one likes */
    size_t patches;  /* most of a picture or a video */
    mt_pixel_rules image, video;
    mt_tile_rules tiles, video_tiles;
    bool together; /* limits of videos are those of all frames together */
    bool sample;   /* videos: take only some frames */
    double fps;
    uint32_t video_frames; /* a fixed number of them; 0: fps says */
    uint32_t min_frames, max_frames;
    double shift;       /* which frame is the first one taken; less than 0: that in the middle of its share */
    double max_seconds; /* that frames are taken of at that pace; of a longer video they are spread */
    bool spelt;         /* times are written with a decimal and a unit */
    uint32_t image_id, video_id;
    const char *image_marker, *video_marker;               /* what the template writes */
    const char *image_pad, *video_pad, *opening, *closing; /* texts of tokens */
    const char *row_end;                                   /* the token behind each row of a picture but the last */
    const char *tile_opening, *tile_closing;               /* around each tile */
    const char *number_opening, *number_closing;           /* around the number of a picture */
    bool numbered;
};

/* Sizes of a resized picture. */
typedef struct mt_pixel_size {
    uint32_t height, width;
} mt_pixel_size;

/* What tensors are called, in canonical form: "vision." and "projector." stand for the prefixes that the binder finds.
   Those of a layer follow `layer` and its number. */
typedef struct mt_tower_names {
    const char *patch, *layer;
    const char *table; /* of learned positions, where there is one; bind finds that which has a summary's among them */
    const char *norm1, *norm2;
    const char *q, *k, *v, *qkv; /* qkv: NULL where they are apart. What cannot be cut is missed as q. */
    const char *o;
    const char *gate, *up, *down; /* gate where the MLP has one */
    const char *post1, *post2;    /* norms behind attention and MLP, where there are any */
    const char *q_norm, *k_norm;  /* where heads are normed */
    const char *scale1, *scale2;  /* of what attention and MLP give, where it is scaled */
    const char *inner;            /* what stands behind the name of a product; NULL: nothing */
} mt_tower_names;

/* SigLIP's, which several families have. */
#define MT_SIGLIP_NAMES                                                                                             \
    {                                                                                                               \
        .patch = "vision.embeddings.patch_embedding", .table = "vision.embeddings.position_embedding",              \
        .layer = "vision.encoder.layers.", .norm1 = "layer_norm1", .norm2 = "layer_norm2", .q = "self_attn.q_proj", \
        .k = "self_attn.k_proj", .v = "self_attn.v_proj", .o = "self_attn.out_proj", .up = "mlp.fc1",               \
        .down = "mlp.fc2"                                                                                           \
    }

typedef struct mt_tower_binder {
    mt_binder *b;
    const mt_vision_spec *spec;
    const char *prefix; /* of all names that the calls below are given */
    bool plain;         /* products have no biases */
    char path[MT_LIMIT_TENSOR_NAME];
} mt_tower_binder;

/* The files of a checkpoint's processor. */
typedef struct mt_settings {
    const char *dir;
    const mt_config *config;                 /* config.json */
    const mt_config *image, *video, *tokens; /* of images, of videos, of the tokenizer; NULL: the folder has none */
    const mt_model_spec *spec;
    mt_arena *arena;
    mt_processor *p; /* what is read */
    mt_error *err;
} mt_settings;

/* Frames of a video that are looked at. */
typedef struct mt_frame_choice {
    const mt_processor *p;
    int64_t total; /* frames of the video */
    double fps;    /* of the video */
    uint32_t count;
    int64_t *index; /* [max_frames + 2] */
} mt_frame_choice;

typedef struct mt_vision_family {
    /* What "model_type" of "vision_config" may be, where it has one; none: anything. */
    const char *types[2];
    /* Fills *v from config.json, which has a "vision_config". */
    bool (*read_tower)(mt_vision_spec *v, const mt_model_spec *s, const mt_config *config, mt_arena *arena,
                       mt_error *err);
    mt_tower_names names;
    /* Finds what the names do not say. */
    void (*bind)(mt_tower_binder *t, mt_vision_weights *w);

    /* Reads the processor: rules for pixels, most patches, how tokens are written. */
    bool (*read_processor)(const mt_settings *s);
    uint32_t image_id, video_id; /* pad tokens, where config.json names none */

    /* Pixels that a picture is brought to; frames > 0: each of that many frames of a video. */
    bool (*size)(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width, uint32_t frames,
                 mt_pixel_size *out, mt_error *err);
    /* Makes the views of an image, of which those of one size are a picture; NULL: there is one, the whole image. */
    bool (*image)(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                  mt_error *err);
    /* The same for a frame of a video, where each is seen by itself; NULL: frames are views of one picture. */
    bool (*frame)(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                  mt_error *err);
    /* Pixels that a frame of a video is brought to before its own size; NULL: it is resized once. */
    mt_pixel_size (*before)(const mt_processor *p, uint32_t height, uint32_t width);
    /* Fills c->count and c->index. wanted: by the pace that counts, or a number that is asked for, where fixed. NULL:
       takes no videos. */
    void (*choose)(mt_frame_choice *c, double wanted, bool fixed);

    /* Appends what a picture's marker becomes, with a pad token for each run of its tokens. number: which of the
       prompt's markers of images, or of videos, it is, from 0. NULL: a pad token. */
    bool (*text)(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out);
    /* Tokens of a run; NULL: all of the picture's. */
    uint32_t (*run)(const mt_processor *p, const mt_picture *picture);
    const char *video_template; /* of conversations with videos; NULL: the checkpoint's own */
    bool one_pad;               /* a video's tokens are written as an image's */
    bool early;                 /* a view of a video has the time of its first frame, else that of its middle */
    bool grid; /* rotary positions of a run are those of a grid of tokens (M-RoPE), else they go on as for text */
} mt_vision_family;

/* For read_tower. */
typedef struct mt_siglip_sizes {
    int64_t hidden, ffn, layers, heads, image, patch; /* what a config may leave out */
} mt_siglip_sizes;

/* The sizes of a tower of SigLIP's kind; the table of positions is that of a square picture of so many pixels. */
bool mt_siglip_read(mt_vision_spec *v, const mt_config *c, const mt_siglip_sizes *fallback, mt_error *err) MT_NODISCARD;

bool mt_tower_activation_read(const mt_config *c, const char *key, const char *fallback, mt_activation *out,
                              mt_error *err) MT_NODISCARD;

/* For bind. The bias of a norm is left out where the tower has RMS norms, that of a product where its layers have
   none. */
const float *mt_tower_norm(mt_tower_binder *t, const char *name, size_t n, const float **bias);
void mt_tower_matrix(mt_tower_binder *t, const char *name, size_t n, size_t k, mt_mat *out, const float **bias);

/* For read_processor. *out stays NULL where there is no such file. */
bool mt_settings_file(const mt_settings *s, const char *name, const mt_config **out) MT_NODISCARD;
/* The tower decides how patches are cut: what c (NULL: nothing) says of it must be the same. */
bool mt_settings_same(const mt_settings *s, const mt_config *c, const char *key, uint32_t wanted) MT_NODISCARD;
/* Limits of pixels: "size" has edges, which are areas in truth; where a class knows more than these, it or c itself has
   "min_pixels" and "max_pixels". */
bool mt_settings_pixels(const mt_settings *s, const mt_config *c, int64_t min, int64_t max, bool edges,
                        mt_pixel_rules *rules) MT_NODISCARD;
/* What bytes and resizing mean; c: settings, or NULL for what the class in transformers has. */
bool mt_settings_levels(const mt_settings *s, const mt_config *c, const double mean[3], const double std[3],
                        mt_resample resample, mt_pixel_rules *rules) MT_NODISCARD;
/* How a special token is written: the tokenizer's settings may rename it. */
const char *mt_settings_token(const mt_settings *s, const char *key, const char *fallback);

/* For a family's size: multiples of a token's side, within limits, of nearly the same shape. */
bool mt_pixel_size_fit(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width,
                       uint32_t frames, mt_pixel_size *out, mt_error *err) MT_NODISCARD;

/* The same by these rules, whose limits are those of so many frames together; 0: of one. */
bool mt_pixel_size_fit_frames(const mt_processor *p, const mt_pixel_rules *rules, const mt_picture_wish *wish,
                              uint32_t height, uint32_t width, uint32_t frames, mt_pixel_size *out,
                              mt_error *err) MT_NODISCARD;

/* Pixels of a picture that the checkpoint, the request and the room there is allow, at least and at most. together: of
   all frames. */
void mt_pixel_limits(const mt_processor *p, const mt_pixel_rules *rules, const mt_picture_wish *wish, bool together,
                     double *least, double *most);

/* Takes memory for the patches of `views` views of that size, of `frames` frames each. */
bool mt_picture_new(const mt_processor *p, const mt_pixel_rules *rules, uint32_t views, mt_pixel_size size,
                    uint32_t frames, const mt_picture_order *order, mt_picture *out, mt_error *err) MT_NODISCARD;

/* Bytes that mt_picture_fill takes for an image of that size. */
size_t mt_picture_fill_memory(const mt_processor *p, const mt_pixel_rules *rules, uint32_t height, uint32_t width,
                              const mt_picture *out);

/* Resizes an image and makes it frame `frame` of view `view`. */
void mt_picture_fill(const mt_processor *p, const mt_pixel_rules *rules, const mt_image *image, uint32_t view,
                     uint32_t frame, mt_picture *out);

/* Resizes an image to across x down tiles of that size and makes each of them a view, row by row. */
bool mt_picture_tiles(const mt_processor *p, const mt_pixel_rules *rules, const mt_image *image, mt_pixel_size tile,
                      uint32_t across, uint32_t down, const mt_picture_order *order, mt_picture *out,
                      mt_error *err) MT_NODISCARD;

/* Of all grids of so many tiles, that whose shape is nearest to a picture's; where two are, the larger one if the
   picture has pixels for it. */
void mt_tile_grid(const mt_tile_rules *rules, double height, double width, uint32_t *across, uint32_t *down);

/* The digest, once all is filled. */
void mt_picture_sign(const mt_processor *p, mt_picture *out);

/* For run: each view has a run of its own. */
uint32_t mt_picture_view_tokens(const mt_processor *p, const mt_picture *picture);

#endif
