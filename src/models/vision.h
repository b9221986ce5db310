/* A vision tower: its shape as data, its weights, and a job of pictures on a device. */
#ifndef MT_MODELS_VISION_H
#define MT_MODELS_VISION_H

#include "device/device.h"
#include "models/cursor.h"
#include "models/picture.h"
#include "models/spec.h"
#include "weights/bind.h"

#define MT_VISION_TAPS 8 /* layers whose output goes to the text model besides the last one's */

/* How tokens are made of squares of patches. */
typedef enum mt_merge {
    MT_MERGE_MLP, /* each patch is normed; those of a token side by side, which may be normed, too, go through an MLP or
                       are projected */
    MT_MERGE_MEAN,  /* the last layer's output is normed; means are normed by 1 + w and projected */
    MT_MERGE_PLAIN, /* means are multiplied by merge_scale, perhaps standardised, normed and projected */
    MT_MERGE_WOVEN, /* each patch is normed; those of a token, woven, are projected to a patch's width, and that goes
                      through an MLP of the text model's */
    MT_MERGE_GATED  /* each patch is normed; those of a token, woven, are projected to the text model's width and once
                      more, normed, and go through gelu and a gated MLP */
} mt_merge;

#define MT_SQUEEZED 4 /* patches of a square that becomes one row: 2 x 2 */

#define MT_TABLE_PLACES 4096 /* most learned positions where all of them may count for a patch */

/* How a table of learned positions is spread over a picture's patches. */
typedef enum mt_spread {
    MT_SPREAD_ENDS,   /* from end to end, between four neighbours */
    MT_SPREAD_STEPS,  /* the entry that a patch's share of the side falls into */
    MT_SPREAD_SHARES, /* the same, where that is a quotient and not a number of steps */
    MT_SPREAD_CUBIC,  /* by middles of patches, between sixteen neighbours; the border goes on outside */
    MT_SPREAD_SMOOTH  /* resized as a picture is, bilinear: where it is made smaller, by means */
} mt_spread;

typedef struct mt_vision_spec {
    const struct mt_vision_family *family; /* what this data does not say (vision_family.h) */
    uint32_t patch, frames;                /* pixels of a patch's side; frames of a patch */
    uint32_t merge;                        /* side of the square of patches that one token is made of */
    uint32_t hidden, layers, heads, head_dim, ffn;
    uint32_t kv_heads;    /* where several heads share their keys and values; 0: each has its own */
    uint32_t out;         /* width of the text model */
    float eps, layer_eps; /* layer_eps: of norms with biases, where it is layered */
    mt_activation activation;
    bool rms;         /* RMS norms, else layer norms with bias */
    bool bias;        /* of its layers' products */
    bool qkv_bias;    /* of queries, keys and values, whatever the others have */
    bool qkv_plain;   /* queries, keys and values have no biases, whatever the others have */
    bool qk_norm;     /* queries and keys are normed by head */
    float row_eps;    /* queries and keys are normed by row, all heads together; 0: they are not */
    bool scaled;      /* what attention and the MLP give is multiplied by a number for each column */
    bool summary;     /* a view has a row besides its patches, which all see and no token is made of */
    bool gated;       /* the MLP has a gate */
    bool patch_bias;  /* of the patch embedding */
    bool first_norm;  /* patches are normed before positions are added */
    bool post_norms;  /* norms after attention and after the MLP, before the residual is added */
    bool head_norms;  /* queries, keys and values are normed by head; scores are not scaled */
    bool clipped;     /* what its layers' products read and give is cut off */
    bool layered;     /* pixels are normed before the patch embedding and after it, with biases, and so is the sum with
                        the learned positions */
    bool pixels_last; /* a patch's values go by pixel, not by channel */
    double theta;     /* of its rotary embedding; 0: none */
    bool by_turns; /* a patch's row turns with every second frequency and its column with the others, else both with the
                        same ones */
    bool halves;   /* the first half of a head turns with the column and the second with the row, each by itself */
    mt_merge merge_kind;
    float
        merge_eps; /* of MT_MERGE_WOVEN's norm, of that of joined patches, and of the merger's behind the tower's own */
    float merge_scale; /* of MT_MERGE_PLAIN */
    bool standard;     /* MT_MERGE_PLAIN has a bias and a scale for each column */
    mt_activation merge_activation;
    bool merge_bias;  /* of the merger's MLP, where its family has a choice */
    bool merge_norm;  /* of patches side by side */
    bool merge_bare;  /* patches are put side by side as they are */
    bool squeezed;    /* in the middle of the tower, squares of patches see themselves once more and become one row */
    uint32_t squeeze; /* after which layer */
    uint32_t middle;  /* width of the merger's MLP; 0: that of patches side by side */
    uint32_t table;   /* side of the square of learned positions; 0: none */
    mt_spread spread;
    uint32_t places;    /* rows of two tables of learned positions, one of columns and one of rows; 0: none */
    bool places_woven;  /* their rows take turns */
    uint32_t side;      /* patches along a side that there are positions for at most; 0: as many as one likes */
    uint32_t window;    /* patches of a window's side; 0: a view sees all of itself */
    const bool *full;   /* [layers] where there are windows: this layer has none */
    uint32_t tap_count; /* DeepStack */
    uint32_t taps[MT_VISION_TAPS]; /* layers, ascending */
    uint32_t tokens_per_second;    /* rotary positions of a second of video; 0: views count, not seconds */
    uint32_t block; /* tokens of the largest run that sees all of itself in the text model; 0: none does */
} mt_vision_spec;

/* What makes tokens of patches. Where the norm is the patch's, it comes before they are put side by side. */
typedef struct mt_merger_weights {
    const float *norm, *norm_bias;
    const float *joined_norm, *joined_norm_bias; /* NULL: none */
    mt_mat join, up, down;                       /* join where patches are woven */
    const float *join_bias, *up_bias, *down_bias;
    mt_mat proj, gate; /* of MT_MERGE_GATED */
    const float *standard_bias, *standard_scale;
} mt_merger_weights;

/* The products of a layer, by what they are called. */
typedef enum mt_tower_product {
    MT_TOWER_Q,
    MT_TOWER_K,
    MT_TOWER_V,
    MT_TOWER_O,
    MT_TOWER_GATE,
    MT_TOWER_UP,
    MT_TOWER_DOWN,
    MT_TOWER_PRODUCTS
} mt_tower_product;

/* Between what a product's input and its result are cut off. */
typedef struct mt_clip {
    float in[2], out[2];
} mt_clip;

typedef struct mt_vision_layer_weights {
    const float *norm1, *norm1_bias, *norm2, *norm2_bias;
    const float *post1, *post2, *q_norm, *k_norm;
    const float *scale1, *scale2;    /* where it is scaled */
    mt_clip clip[MT_TOWER_PRODUCTS]; /* where it is clipped */
    mt_mat q, k, v, o;
    const float *q_bias, *k_bias, *v_bias, *o_bias;
    mt_mat gate, up, down; /* gate has n == 0 where there is none */
    const float *gate_bias, *up_bias, *down_bias;
} mt_vision_layer_weights;

typedef struct mt_vision_weights {
    mt_mat patch; /* [hidden, 3 * frames * patch * patch] */
    const float *patch_bias;
    mt_mat table; /* [table * table, hidden], or [2 * places, hidden] */
    const float *pixel_norm, *pixel_norm_bias, *patch_norm, *patch_norm_bias; /* where it is layered */
    const float *first_norm, *first_norm_bias;                                /* NULL: none */
    const float *norm, *norm_bias;                                            /* of the last layer's output */
    const float *summary;                                                     /* what a view's summary begins as */
    mt_vision_layer_weights *layer;
    mt_vision_layer_weights near; /* where it is squeezed: no MLP */
    mt_merger_weights squeeze;    /* a norm of joined patches, up and down */
    mt_merger_weights merger, tap[MT_VISION_TAPS];
} mt_vision_weights;

/* Finds the tower's tensors; problems go to the binder's report. False without memory. */
bool mt_vision_bind(mt_vision_weights *weights, const mt_vision_spec *spec, mt_binder *binder, mt_arena *arena,
                    mt_error *err) MT_NODISCARD;

typedef struct mt_vision_params {
    size_t patches; /* most patches of a job */
    size_t rows;    /* most patches of a slice; a multiple of merge * merge */
} mt_vision_params;

typedef struct mt_vision mt_vision;

/* Makes the tower's objects, in a set of its own: before mt_model_new, which plans the device, and with no more rows
   than its. Borrows all that it is given; free with mt_vision_free before closing the device. */
mt_vision *mt_vision_new(mt_device *dev, const mt_vision_spec *spec, const mt_vision_weights *weights,
                         const mt_vision_params *params, mt_error *err) MT_NODISCARD;
void mt_vision_free(mt_vision *vision);

/* Floats of one row of features: the token's, then those of each tap, spec->out each. */
size_t mt_vision_width(const mt_vision_spec *spec);

/* What makes features of pictures: a model's tower, or a stand-in of a test. */
typedef struct mt_tower {
    mt_cursor *cursor; /* of its jobs */
    size_t width;      /* floats of a row of features */

    /* Whether these pictures, one after the other, fit into a job. */
    bool (*fits)(const mt_cursor *cursor, const mt_picture *const *pictures, size_t count);

    /* Starts a job. features has `width` columns, and to[i] says which of its rows the tokens of pictures[i] become.
       All are borrowed until the job is done or dropped. What else runs in the job changes no bit of them. */
    void (*begin)(mt_cursor *cursor, mt_tensor *features, const mt_picture *const *pictures, const uint32_t *const *to,
                  size_t count);
} mt_tower;

mt_tower mt_vision_tower(mt_vision *vision); /* borrows it */

#endif
