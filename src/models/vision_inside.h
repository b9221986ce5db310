/* What the files of the tower share: its objects on the device. */
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
    mt_cursor cursor;
    mt_device *dev;
    mt_set *set;
    const mt_vision_spec *spec;
    mt_weight *patch, *table;
    mt_tensor *pixel_norm, *pixel_norm_bias, *patch_norm, *patch_norm_bias;
    mt_tensor *first_norm, *first_norm_bias, *norm, *norm_bias;
    mt_tensor *v_norm;  /* of values by head: ones */
    mt_tensor *summary; /* what a view's summary begins as; NULL: there are none */
    mt_tower_layer *layers;
    mt_tower_merger merger, taps[MT_VISION_TAPS];
    mt_tower_layer near; /* where patches are squeezed: squares see themselves, and become one row */
    mt_tower_merger squeeze;
    mt_kv *kv;
    mt_tensor *x, *view; /* all rows, and those of the slice */
    /* a slice's values, [rows, ...] */
    mt_tensor *pixels, *h, *q, *k, *v, *attended, *y, *gate, *up, *rope;
    mt_patches *patches;
    mt_index *table_index;
    mt_tensor *table_factor;                         /* [rows, taps] */
    mt_tensor *joined, *one, *middle, *opened, *out; /* [tokens, ...] */
    mt_index *to;                                    /* [tokens]: rows of features */
    mt_tensor *features;                             /* of the job */
    mt_tensor *inv_freq;                             /* [1, head_dim / 2] */
    mt_index *axis;
    mt_tensor *square, *square_middle, *square_out, *mean; /* [rows / MT_SQUEEZED, ...] */
    mt_index *square_to;
    size_t cell;  /* patches of a token */
    size_t joint; /* rows of the last layer that a token is made of */
    mt_vision_layout layout;
};

/* Norms rows by the tower's own kind of norm. */
void mt_tower_norm_rows(mt_vision *v, mt_tensor *y, const mt_tensor *x, size_t n, const mt_tensor *w,
                        const mt_tensor *bias);

/* NULL where there is no such matrix. */
mt_weight *mt_tower_weight(mt_set *set, const mt_mat *mat, const float *bias);

/* A norm without weights is one whose weights are 1. */
mt_tensor *mt_tower_plain_norm(mt_set *set, size_t n);

/* Takes a merger's weights; norm: columns of what it norms first. */
void mt_tower_merger_load(mt_vision *v, mt_tower_merger *m, const mt_merger_weights *w, size_t norm);

/* Tensors that only tokens need, where a slice has so many rows. */
void mt_tower_merger_tensors(mt_vision *v, size_t rows);

/* Multiplications of a row of patches that becomes part of a token. */
double mt_tower_merger_cost(const mt_vision *v);

/* Of the slice's n rows, each MT_SQUEEZED become one of the job's first rows. */
void mt_tower_squeeze(mt_vision *v, size_t n);

/* Tokens of the slice's n rows, into the job's features: those of the last layer, or of a tap. */
void mt_tower_tokens(mt_vision *v, size_t n);
void mt_tower_tap_tokens(mt_vision *v, size_t tap, size_t n);

#endif
