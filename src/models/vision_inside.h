/* The tower's device objects, shared by vision.c and vision_merge.c. */
#ifndef MT_MODELS_VISION_INSIDE_H
#define MT_MODELS_VISION_INSIDE_H

#include "models/vision_layout.h"

typedef struct mt_tower_layer {
    mt_tensor *norm1, *norm1_bias, *norm2, *norm2_bias, *post1, *post2;
    mt_tensor *scale1, *scale2, *q_norm, *k_norm;
    mt_weight *product[MT_TOWER_PRODUCTS];
    mt_clip clip[MT_TOWER_PRODUCTS];
} mt_tower_layer;

typedef struct mt_tower_merger {
    mt_tensor *norm, *norm_bias, *joined_norm, *joined_norm_bias, *standard_bias, *standard_scale;
    mt_weight *join, *proj, *gate, *up, *down;
} mt_tower_merger;

struct mt_vision {
    mt_cursor cursor; /* must be first: cursor functions cast it to mt_vision */
    mt_device *dev;
    mt_set *set;
    const mt_vision_spec *spec;
    mt_weight *patch, *table;
    mt_tensor *pixel_norm, *pixel_norm_bias, *patch_norm, *patch_norm_bias;
    mt_tensor *first_norm, *first_norm_bias, *norm, *norm_bias;
    mt_tensor *v_norm;  /* norm of values by head, without weights: ones */
    mt_tensor *summary; /* initial value of a view's summary row; NULL: none */
    mt_tower_layer *layers;
    mt_tower_merger merger, taps[MT_VISION_TAPS];
    mt_tower_layer near; /* where the tower is squeezed: the layer over 2 x 2 squares */
    mt_tower_merger squeeze;
    mt_kv *kv;           /* keys and values of the present layer */
    mt_tensor *x, *view; /* all rows of the job, and those of the slice */
    /* values of a slice, [rows, ...] */
    mt_tensor *pixels, *h, *q, *k, *v, *attended, *y, *gate, *up, *rope;
    mt_tensor *asked;                                /* rows of q that belong to the slice, where q has the whole job */
    bool whole;                                      /* q has the whole job */
    size_t turn_row, turns, turn_shrink;             /* the slice whose angles are in rope; turns 0: none */
    mt_patches *patches;                             /* pixels of the slice */
    mt_index *table_index;                           /* [rows, taps]: entries of the table of positions */
    mt_tensor *table_factor;                         /* [rows, taps]: weights of the table's entries */
    mt_tensor *joined, *one, *middle, *opened, *out; /* [tokens, ...] */
    mt_index *to;                                    /* [tokens]: rows of features that they become */
    mt_tensor *features;                             /* where the job's features go */
    mt_tensor *inv_freq;                             /* [1, head_dim / 2] */
    mt_index *axis;                                  /* which axis each frequency turns with */
    mt_tensor *square, *square_middle, *square_out, *mean; /* [rows / MT_SQUEEZED, ...] */
    mt_index *square_to;
    size_t cell;  /* patches of a token */
    size_t joint; /* rows of the last layer that become a token */
    mt_vision_layout layout;
};

/* Norms n rows by the tower's kind of norm. */
void mt_tower_norm_rows(mt_vision *v, mt_tensor *y, const mt_tensor *x, size_t n, const mt_tensor *w,
                        const mt_tensor *bias);

/* A weight of the device; NULL where the matrix has n == 0. */
mt_weight *mt_tower_weight(mt_set *set, const mt_mat *mat, const float *bias);

/* The weights of a norm that has none in the checkpoint: ones. */
mt_tensor *mt_tower_plain_norm(mt_set *set, size_t n);

/* Loads a merger's weights; norm: width of its first norm. */
void mt_tower_merger_load(mt_vision *v, mt_tower_merger *m, const mt_merger_weights *w, size_t norm);

/* Makes the tensors that hold tokens, for slices of so many rows. */
void mt_tower_merger_tensors(mt_vision *v, size_t rows);

/* Multiplications per row for making tokens. */
double mt_tower_merger_cost(const mt_vision *v);

/* Makes one row of every MT_SQUEEZED rows of the slice; the results become the job's first rows. */
void mt_tower_squeeze(mt_vision *v, size_t n);

/* Make tokens of the slice's n rows and write them to the job's features: of the last layer, or of a tap. */
void mt_tower_tokens(mt_vision *v, size_t n);
void mt_tower_tap_tokens(mt_vision *v, size_t tap, size_t n);

#endif
