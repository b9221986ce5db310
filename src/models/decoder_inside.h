/* The decoder's insides, shared by decoder.c and decoder_layer.c. */
#ifndef MT_MODELS_DECODER_INSIDE_H
#define MT_MODELS_DECODER_INSIDE_H

#include "models/mixer.h"
#include "models/model.h"
#include "models/relay.h"
#include "models/shared.h"

/* Working tensors whose width is a matter of the layer; those of one role and width are one. Keys and values, gate and
   up stand together, as products write them. */
typedef enum mt_role {
    MT_ROLE_QUERIES,
    MT_ROLE_GATED_QUERIES, /* with a gate behind each head */
    MT_ROLE_QUERY_GATES,
    MT_ROLE_KEYS,
    MT_ROLE_VALUES,
    MT_ROLE_ATTENDED,
    MT_ROLE_GATE,
    MT_ROLE_UP,
    MT_ROLE_ROUTER,
    MT_ROLE_SHARED_GATE, /* of the expert that every row gets */
    MT_ROLE_SHARED_UP,
    MT_ROLE_SHARED,
    MT_ROLE_SHARED_ROUTER,
    MT_ROLE_BESIDE, /* what experts add to a dense MLP, or a router's own input */
    MT_ROLE_ASIDE,  /* the gate of a layer's own embedding */
    MT_ROLES
} mt_role;

typedef struct mt_work_tensor {
    mt_role role;
    size_t cols;
    mt_shared tensor;
} mt_work_tensor;

typedef struct mt_decoder_layer {
    mt_tensor *attn_norm, *attn_post_norm, *mlp_norm, *mlp_post_norm, *q_norm, *k_norm, *v_norm, *sinks;
    mt_tensor *dense_post_norm, *expert_norm, *expert_post_norm, *router_norm;
    mt_weight *q, *k, *v, *o;
    mt_weight *gate, *up, *down, *router;
    mt_weight *aside_gate, *aside_out;
    mt_tensor *aside, *aside_norm; /* aside: the layer's columns of the model's */
    mt_weight *shared_router, *shared_gate, *shared_up, *shared_down;
    mt_experts *experts;
    mt_tensor *in[MT_ROLES]; /* its working tensors, what the rank has of them */
    mt_shared all[MT_ROLES]; /* the same, whole */
    float scale;             /* of the residual stream after it; 1: none */
} mt_decoder_layer;

/* What guesses ahead: a head of the model's own, whose keys and values lie in the pages with those of the layers, or a
   drafter, which reads those of the model's last layers and stays at the position where it begins. Either takes a
   token and the hidden state before it, and goes on from what it gave itself. */
typedef struct mt_guess {
    mt_model *by;         /* whose working tensors its layers have: the model itself, or the drafter */
    mt_weight *fc, *head; /* head: of tokens that are guessed at all */
    mt_weight *back;      /* makes a hidden state of the model's of a drafter's; NULL: it is one */
    mt_tensor *embed_norm, *hidden_norm, *norm; /* the first two NULL where fc takes both as they are */
    mt_decoder_layer *layer;
    const mt_layer_spec *spec;
    mt_layer_spec own; /* of a head: what spec is */
    size_t layers;
    /* Final hidden states: [0] zeros, [1 + place] carried from the step before, then those of the rows. */
    mt_tensor *hidden, *rows;       /* rows: the last part of it */
    mt_tensor *out;                 /* of the last guesses */
    mt_shared next, logits;         /* the same; next: out, or what `back` made of it */
    mt_tensor *both, *left, *right; /* what fc takes: the embedding, the hidden state */
    uint32_t *before;               /* [rows]: of hidden, or of next */
    mt_index *before_index;         /* the same on the device */
    mt_index *tokens;               /* that were guessed */
    mt_reading *reading;            /* of these */
    uint32_t *from, *seen;          /* [memos]: the positions that are looked at */
    size_t places, count;           /* count: tokens that are guessed at all */
    struct mt_shortlist *shortlist; /* NULL: every one of these is looked at */
} mt_guess;

/* A rotary embedding: its frequencies, whose axes they turn with, and the step's table. */
typedef struct mt_rope_table {
    mt_tensor *inv_freq, *table;
    mt_index *axis; /* NULL: all with the first */
    float scale;
    bool pairs;
} mt_rope_table;

struct mt_model {
    mt_relay relay; /* to the other ranks */
    mt_device *dev;
    mt_set *set;
    const mt_model_spec *spec;
    float embed_scale;
    mt_weight *embed, *head;
    mt_tensor *norm;
    mt_decoder_layer *layers;
    mt_kv *kv[MT_KV_GROUPS];
    /* one step's values, [rows, ...] */
    mt_tensor *x, *h, *y;          /* residual stream, normed input, what a block adds */
    mt_shared own_x, own_y;        /* x and y, as products fill them */
    mt_tensor *aside, *aside_norm; /* what each layer is given besides, all side by side */
    mt_shared aside_projected;
    mt_weight *aside_table, *aside_projection;
    float aside_scale;
    uint32_t *tokens; /* [rows], where some are embedded as another; else NULL */
    mt_work_tensor *work;
    size_t works;
    mt_mixer *mixer; /* the recurrent layers; NULL where there are none */
    mt_rope_table *ropes;
    mt_tensor *stretch;        /* one row of factors; NULL: no layer has them */
    const mt_tensor *features; /* of pictures; NULL: there are none */
    mt_index *wanted;          /* rows whose logits are */
    mt_tensor *last;
    mt_shared logits;
    mt_tensor *sound; /* [rows, 1]: whether a row is finite */
    mt_reading *sound_reading;
    mt_index *pool_to;
    mt_tensor *pooled; /* [places, hidden] */
    mt_reading *pooled_reading;
    size_t max_rows, max_logits, max_places;
    mt_guess *guess; /* NULL: the model has none */
};

static inline void mt_model_norm(mt_model *m, mt_tensor *y, const mt_tensor *x, size_t rows, const mt_tensor *w)
{
    mt_op_norm(m->dev, y, x, rows, w, m->spec->eps, m->spec->norm_offset);
}

/* The rotary embeddings of the spec, and their tables for the step that has begun. */
void mt_decoder_ropes_load(mt_model *model, size_t rows);
void mt_decoder_ropes_make(mt_model *model);

/* The residual stream and what products add to it, of so many rows. */
void mt_decoder_streams_new(mt_model *model, size_t rows);

/* y = head x, softcapped where that is not 0. Of ranks, the first alone has to know it: it is the one that chooses. */
void mt_decoder_logits(mt_model *model, const mt_shared *y, const mt_weight *head, const mt_tensor *x, size_t n,
                       float softcap);

/* The rows' part of guessing, at the end of a step. */
mt_guess *mt_guess_new(mt_model *model, const mt_model_weights *weights, const mt_model_params *params);
void mt_guess_free(mt_guess *guess); /* NULL is fine */
void mt_guess_enter(mt_model *model, const mt_batch *batch);

/* Gives a layer its weights and working tensors. */
void mt_decoder_layer_load(mt_model *model, mt_decoder_layer *l, const mt_layer_weights *w, const mt_layer_spec *spec);

/* x += what the layer makes of the step's n rows of it. */
void mt_decoder_layer_run(mt_model *model, const mt_decoder_layer *l, const mt_layer_spec *spec, size_t n);

/* The layer's keys and values of n rows of h, into their pages. */
void mt_decoder_layer_enter(mt_model *model, const mt_decoder_layer *l, const mt_layer_spec *spec, size_t n);

#endif
