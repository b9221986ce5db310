/* A vision tower: its shape as data, its weights, and jobs that run pictures through it on a device. See vision.c. */
#ifndef MT_MODELS_VISION_H
#define MT_MODELS_VISION_H

#include "device/device.h"
#include "models/cursor.h"
#include "models/picture.h"
#include "models/spec.h"
#include "weights/bind.h"

#define MT_VISION_TAPS 8 /* most layers whose output goes to the text model besides the last one's (DeepStack) */

/* How a square of merge x merge patches becomes one token. "Side by side" means as one long row. */
typedef enum mt_merge {
    /* norm each patch; put a token's patches side by side, perhaps norm that; then an MLP or a projection */
    MT_MERGE_MLP,
    MT_MERGE_MEAN,  /* norm the last layer's output; take the mean of a token's patches, norm it by 1 + w, project it */
    MT_MERGE_PLAIN, /* take the mean, multiply by merge_scale, perhaps standardise, norm, project */
    /* norm each patch; put a token's patches side by side with their elements interleaved, project to a patch's
       width; then an MLP */
    MT_MERGE_INTERLEAVED,
    /* norm each patch; side by side and interleaved, project to the text model's width and once more, norm; then gelu
       and a gated MLP */
    MT_MERGE_GATED
} mt_merge;

#define MT_SQUEEZED 4 /* patches of the 2 x 2 square that becomes one row where a tower is squeezed */

/* most entries of a table of positions in MT_SPREAD_SMOOTH, where many may count for a patch */
#define MT_TABLE_PLACES 4096

/* How a table of learned positions is stretched over a picture's patches. */
typedef enum mt_spread {
    MT_SPREAD_ENDS,   /* from edge to edge, linear between four neighbours */
    MT_SPREAD_STEPS,  /* the one entry at the patch's share of the side, counted in whole steps */
    MT_SPREAD_SHARES, /* the same, where the share is computed as a quotient */
    MT_SPREAD_CUBIC,  /* by the patches' centres, cubic between sixteen neighbours; the border is repeated outside */
    MT_SPREAD_SMOOTH  /* bilinear as a picture is resized, with averaging where the table becomes smaller */
} mt_spread;

typedef struct mt_vision_spec {
    const struct mt_vision_family *family; /* the functions that belong to this data (vision_family.h) */
    uint32_t patch, frames;                /* pixels along a patch; frames that a patch holds */
    uint32_t merge;                        /* patches along the square that becomes one token */
    uint32_t hidden, layers, heads, head_dim, ffn;
    uint32_t kv_heads;    /* where several heads share keys and values: how many there are; 0: each has its own */
    uint32_t out;         /* width of the text model */
    float eps, layer_eps; /* layer_eps: of the norms with biases, where `layered` */
    mt_activation activation;
    bool rms;        /* RMS norms, else layer norms with bias */
    bool bias;       /* products of its layers have biases */
    bool qkv_bias;   /* queries, keys and values have biases, whatever `bias` says */
    bool qkv_plain;  /* queries, keys and values have no biases, whatever `bias` says */
    bool qk_norm;    /* queries and keys are normed by head */
    float row_eps;   /* queries and keys are normed over all heads together, with this eps; 0: they are not */
    bool scaled;     /* results of attention and MLP are multiplied by a factor for each column */
    bool summary;    /* a view has a row besides its patches, which all see, and of which no token is made */
    bool gated;      /* the MLP has a gate */
    bool patch_bias; /* the patch embedding has a bias */
    bool first_norm; /* patches are normed before positions are added */
    bool post_norms; /* norms behind attention and behind the MLP, before the result is added to the residual stream */
    bool head_norms; /* queries, keys and values are normed by head, and scores are not scaled */
    bool clipped;    /* inputs and results of its layers' products are clamped */
    /* norms with biases: of pixels before the patch embedding, behind it, and of the sum with the learned positions */
    bool layered;
    bool pixels_last; /* a patch's values are ordered by pixel, not by channel */
    double theta;     /* base of its rotary embedding; 0: none */
    /* a patch's row turns every second frequency and its column the others; else both turn the same ones */
    bool by_turns;
    bool halves; /* the first half of a head turns with the column and the second with the row, each by itself */
    mt_merge merge_kind;
    /* eps of the norms of MT_MERGE_INTERLEAVED, of patches side by side, and of the merger's behind the tower's own */
    float merge_eps;
    float merge_scale; /* factor of MT_MERGE_PLAIN */
    bool standard;     /* MT_MERGE_PLAIN has a bias and a scale for each column */
    mt_activation merge_activation;
    bool merge_bias; /* the merger's MLP has biases, where the family has a choice */
    bool merge_norm; /* patches side by side are normed */
    bool merge_bare; /* patches are put side by side without a norm */
    /* in the middle of the tower, squares of 2 x 2 patches see themselves once more and become one row */
    bool squeezed;
    uint32_t squeeze; /* after this layer */
    uint32_t middle;  /* width of the merger's MLP; 0: that of patches side by side */
    uint32_t table;   /* side of the square table of learned positions; 0: none */
    mt_spread spread;
    uint32_t places;         /* rows of each of two tables of learned positions, for columns and for rows; 0: none */
    bool places_interleaved; /* the rows of the two tables alternate */
    uint32_t side;           /* most patches along a side that have positions; 0: no limit */
    uint32_t window;         /* patches along a window; 0: no windows, a patch sees its whole view */
    const bool *full;        /* [layers] where there are windows: layers without */
    uint32_t tap_count;      /* layers in `taps`, whose output also goes to the text model (DeepStack) */
    uint32_t taps[MT_VISION_TAPS]; /* ascending */
    uint32_t tokens_per_second;    /* rotary positions of a second of video; 0: positions count views, not seconds */
    uint32_t block; /* tokens of the largest span whose positions all see each other in the text model; 0: none do */
} mt_vision_spec;

/* Weights that make tokens of patches (mt_merge). */
typedef struct mt_merger_weights {
    const float *norm, *norm_bias;
    const float *joined_norm, *joined_norm_bias; /* NULL: none */
    mt_mat join, up, down;                       /* join: where patches are interleaved */
    const float *join_bias, *up_bias, *down_bias;
    mt_mat proj, gate; /* of MT_MERGE_GATED */
    const float *standard_bias, *standard_scale;
} mt_merger_weights;

/* The products of a layer. */
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

/* Limits that a product's input and result are clamped to. */
typedef struct mt_clip {
    float in[2], out[2];
} mt_clip;

typedef struct mt_vision_layer_weights {
    const float *norm1, *norm1_bias, *norm2, *norm2_bias;
    const float *post1, *post2, *q_norm, *k_norm;
    const float *scale1, *scale2;    /* where `scaled` */
    mt_clip clip[MT_TOWER_PRODUCTS]; /* where `clipped` */
    mt_mat q, k, v, o;
    const float *q_bias, *k_bias, *v_bias, *o_bias;
    mt_mat gate, up, down; /* gate: n == 0 where there is none */
    const float *gate_bias, *up_bias, *down_bias;
} mt_vision_layer_weights;

typedef struct mt_vision_weights {
    mt_mat patch; /* [hidden, 3 * frames * patch * patch] */
    const float *patch_bias;
    mt_mat table; /* [table * table, hidden], or [2 * places, hidden] */
    const float *pixel_norm, *pixel_norm_bias, *patch_norm, *patch_norm_bias; /* where `layered` */
    const float *first_norm, *first_norm_bias;                                /* NULL: none */
    const float *norm, *norm_bias;                                            /* of the last layer's output */
    const float *summary; /* initial value of a view's summary row */
    mt_vision_layer_weights *layer;
    mt_vision_layer_weights near; /* where `squeezed`: the layer over squares; it has no MLP */
    mt_merger_weights squeeze;    /* where `squeezed`: a norm of patches side by side, up and down */
    mt_merger_weights merger, tap[MT_VISION_TAPS];
} mt_vision_weights;

/* Finds the tower's tensors; missing ones go to the binder's report. False without memory. */
bool mt_vision_bind(mt_vision_weights *weights, const mt_vision_spec *spec, mt_binder *binder, mt_arena *arena,
                    mt_error *err) MT_NODISCARD;

typedef struct mt_vision_params {
    size_t patches; /* most patches of a job */
    size_t rows;    /* most patches of a slice; a multiple of merge * merge */
} mt_vision_params;

typedef struct mt_vision mt_vision;

/* Makes the tower's device objects, in a set of its own. Call before mt_model_new, which plans the device, and with no
   more rows than the model's. All that is passed is borrowed; free with mt_vision_free before closing the device. */
mt_vision *mt_vision_new(mt_device *dev, const mt_vision_spec *spec, const mt_vision_weights *weights,
                         const mt_vision_params *params, mt_error *err) MT_NODISCARD;
void mt_vision_free(mt_vision *vision);

/* Floats of a row of features: those of the token, then those of each tap, spec->out each. */
size_t mt_vision_width(const mt_vision_spec *spec);

/* How the engine makes features of pictures: by a model's tower, or a test's substitute. */
typedef struct mt_tower {
    mt_cursor *cursor; /* of its jobs */
    size_t width;      /* floats of a row of features */

    /* Whether these pictures together fit into a job. */
    bool (*fits)(const mt_cursor *cursor, const mt_picture *const *pictures, size_t count);

    /* Starts a job. features has `width` columns; to[i] says which of its rows the tokens of pictures[i] become. All
       are borrowed until the job is done or dropped. A picture's features do not depend on the others in the job. */
    void (*begin)(mt_cursor *cursor, mt_tensor *features, const mt_picture *const *pictures, const uint32_t *const *to,
                  size_t count);
} mt_tower;

mt_tower mt_vision_tower(mt_vision *vision); /* borrows it */

#endif
