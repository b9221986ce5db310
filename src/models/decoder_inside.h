/* The decoder's data structures, shared by decoder.c, decoder_layer.c and guess.c. */
#ifndef MT_MODELS_DECODER_INSIDE_H
#define MT_MODELS_DECODER_INSIDE_H

#include "models/mixer.h"
#include "models/model.h"
#include "models/relay.h"
#include "models/shared.h"

/* Working tensors whose width depends on the layer. Layers that need the same role and width share one tensor. Keys and
   values, and gate and up, are neighbours in this list, as one product writes both. */
typedef enum mt_role {
    MT_ROLE_QUERIES,
    MT_ROLE_GATED_QUERIES, /* with a gate behind each head (mt_attn_spec.gate) */
    MT_ROLE_QUERY_GATES,   /* these gates alone */
    MT_ROLE_KEYS,
    MT_ROLE_VALUES,
    MT_ROLE_ATTENDED,         /* what attention gives, before the product with `o` */
    MT_ROLE_NARROW_QUERIES,   /* with latents: what queries are products of */
    MT_ROLE_PLAIN_QUERIES,    /* with latents: queries as the checkpoint has them; QUERIES then fit latents */
    MT_ROLE_ATTENDED_LATENTS, /* with latents: what attention gives, before it becomes each head's values */
    MT_ROLE_INDEX_QUERIES,    /* of the choice of positions, as the next ones */
    MT_ROLE_INDEX_KEYS,
    MT_ROLE_INDEX_WEIGHTS,
    MT_ROLE_GATE,
    MT_ROLE_UP,
    MT_ROLE_ROUTER,
    MT_ROLE_SHARED_GATE, /* of the shared expert, which every row gets */
    MT_ROLE_SHARED_UP,
    MT_ROLE_SHARED,        /* its result */
    MT_ROLE_SHARED_ROUTER, /* its gate, one number a row */
    MT_ROLE_EXPERTS_OUT,   /* a router's normed input; then the experts' result, where a layer has a dense MLP, too */
    MT_ROLE_ASIDE,         /* gate of the layer's own embedding (mt_model_spec.aside) */
    MT_ROLE_EXPERT_IN,     /* what experts read and give (mt_moe_spec.latent) */
    MT_ROLE_EXPERT_OUT,
    MT_ROLE_PAIRED, /* the result of a recurrent layer beside attention */
    MT_ROLES
} mt_role;

/* A working tensor that layers share. */
typedef struct mt_work_tensor {
    mt_role role;
    size_t cols;
    mt_shared tensor;
} mt_work_tensor;

/* A layer's weights and working tensors; NULL where its spec has no such part. */
typedef struct mt_decoder_layer {
    mt_tensor *attn_norm, *attn_post_norm, *mlp_norm, *mlp_post_norm, *q_norm, *k_norm, *v_norm, *sinks;
    mt_tensor *dense_post_norm, *expert_norm, *expert_post_norm, *router_norm;
    mt_weight *q, *k, *v, *o;
    mt_weight *q_narrow, *key_up, *value_up; /* of latents, as the next ones */
    mt_head_rows key_rows, value_rows;
    mt_tensor *latent, *turned;                   /* parts of in[MT_ROLE_KEYS] */
    mt_weight *index_q, *index_k, *index_weights; /* of the choice of positions, as the next ones */
    mt_tensor *index_norm, *index_norm_bias;
    mt_weight *gate, *up, *down, *router;
    mt_weight *aside_gate, *aside_out;
    mt_tensor *aside, *aside_norm; /* aside: the layer's columns of mt_model.aside */
    mt_weight *shared_router, *shared_gate, *shared_up, *shared_down;
    mt_weight *expert_in, *expert_out;
    mt_experts *experts;
    mt_tensor *in[MT_ROLES]; /* by role: the columns that this rank computes */
    mt_shared all[MT_ROLES]; /* by role: all columns */
    float scale;             /* factor on the residual stream behind the layer; 1: none */
} mt_decoder_layer;

/* Guessing ahead: a drafting head, whose keys and values are in the pages with those of the layers, or a drafter, which
   reads the keys and values of the model's last layers and stays at the position where it begins. Either takes a token
   and the hidden state of the position before, and goes on from its own results. */
typedef struct mt_guess {
    mt_model *by;         /* the model whose working tensors the layers use: the model itself, or the drafter */
    mt_weight *fc, *head; /* fc joins embedding and hidden state; head: only of the tokens that may be guessed */
    mt_weight *back;      /* from a drafter's hidden state to the model's width; NULL: not needed */
    mt_tensor *embed_norm, *hidden_norm, *norm; /* the first two are NULL where fc takes both without a norm */
    mt_decoder_layer *layer;
    const mt_layer_spec *spec;
    mt_layer_spec own; /* of a drafting head: its spec, which `spec` points to */
    size_t layers;     /* how many `layer` has: 1 of a drafting head */
    /* Final hidden states: row 0 is zeros, row 1 + place is carried from the step before, then those of this step's
       rows. */
    mt_tensor *hidden, *rows;       /* rows: the part of `hidden` with this step's rows */
    mt_tensor *out;                 /* final states of the last guesses */
    mt_shared next, logits;         /* next: `out`, or what `back` makes of it; both for the following guess */
    mt_tensor *both, *left, *right; /* input of fc, and its halves: embedding and hidden state */
    uint32_t *before;               /* [rows]: which row of `hidden`, or of `next`, stands before each row */
    mt_index *before_index;         /* the same on the device */
    mt_index *tokens;               /* tokens that were guessed */
    mt_reading *reading;            /* reads `tokens` */
    uint32_t *from, *seen;          /* [mt_model_params.memos]: ranges of positions that each row sees */
    size_t places;                  /* as mt_model_params.places: sequences have numbers below it */
    size_t count;                   /* tokens that may be guessed, a row of `head` each */
    struct mt_shortlist *shortlist; /* clusters of tokens that narrow the search; NULL: all tokens are compared */
} mt_guess;

/* A rotary embedding on the device: its frequencies, the axis each turns with, and the table of the step's rows. */
typedef struct mt_rope_table {
    mt_tensor *inv_freq, *table; /* [1, half]; [rows, 2 * half]: cos and sin */
    mt_index *axis;              /* NULL: all turn with the first axis */
    float scale;
    bool pairs; /* neighbouring elements are turned, not halves of a head */
} mt_rope_table;

struct mt_model {
    mt_relay relay; /* tells other ranks what this one does */
    mt_device *dev;
    mt_set *set; /* owns the model's device objects */
    const mt_model_spec *spec;
    float embed_scale;
    mt_weight *embed, *head; /* head: the output head */
    mt_tensor *norm;         /* of the last layer's output */
    mt_decoder_layer *layers;
    mt_kv *kv[MT_KV_GROUPS]; /* pages of each group; NULL: other ranks have all heads */
    /* values of one step, [rows, ...] */
    mt_tensor *x, *h, *y;          /* residual stream; its normed copy; what a block adds to the stream */
    mt_shared own_x, own_y;        /* x and y with the columns of this rank */
    mt_tensor *aside, *aside_norm; /* the layers' own embeddings, side by side */
    mt_shared aside_projected;
    mt_weight *aside_table, *aside_projection;
    float aside_scale;
    uint32_t *tokens;     /* [rows] where some tokens are embedded as another (mt_model_spec.blank); else NULL */
    mt_work_tensor *work; /* working tensors that layers share */
    size_t works;
    mt_mixer *mixer;           /* runs the recurrent layers; NULL: the model has none */
    mt_rope_table *ropes;      /* as in spec->ropes */
    mt_tensor *stretch;        /* one row of factors on queries (mt_model_spec.stretch); NULL: none */
    mt_index *chosen;          /* [rows][mt_index_spec.top]: positions that layers attend to; NULL: to all */
    const mt_tensor *features; /* of pictures, set by the engine; NULL: none */
    mt_index *wanted;          /* rows whose logits are computed */
    mt_tensor *last;           /* final hidden states of these rows */
    mt_shared logits;
    size_t steps; /* number of steps so far */
    /* [rows, 1]: whether all numbers of a row are finite; of the last step and of the one before, alternately */
    mt_tensor *sound[2];
    mt_reading *sound_reading[2];
    mt_tensor *no_bias; /* zeros, for norms that subtract the mean */
    mt_index *pool_to;  /* for each row: the place whose sum it is added to */
    mt_tensor *pooled;  /* [places, hidden]: sums for requests that want a vector */
    mt_reading *pooled_reading;
    size_t max_rows, max_logits, max_places;
    mt_guess *guess; /* NULL: the model does not guess ahead */
};

static inline void mt_model_norm(mt_model *m, mt_tensor *y, const mt_tensor *x, size_t rows, const mt_tensor *w)
{
    if (m->spec->centred)
        mt_op_layer_norm(m->dev, y, x, rows, w, m->no_bias, m->spec->eps);
    else
        mt_op_norm(m->dev, y, x, rows, w, m->spec->eps, m->spec->norm_offset);
}

/* Makes the rotary embeddings of the spec, with tables for so many rows; fills these for the step that has begun. */
void mt_decoder_ropes_new(mt_model *model, size_t rows);
void mt_decoder_ropes_fill(mt_model *model);

/* Makes the tensors of the residual stream and of what products add to it, for `rows` rows. */
void mt_decoder_streams_new(mt_model *model, size_t rows);

/* y = head * x, softcapped where softcap is not 0. Only rank 0 gets all columns, as it alone chooses tokens. */
void mt_decoder_logits(mt_model *model, const mt_shared *y, const mt_weight *head, const mt_tensor *x, size_t n,
                       float softcap);

/* Makes what guesses ahead; mt_guess_enter runs at the end of a step and keeps the final states of its rows, and a
   drafting head's keys and values. See guess.c. */
mt_guess *mt_guess_new(mt_model *model, const mt_model_weights *weights, const mt_model_params *params);
void mt_guess_free(mt_guess *guess); /* NULL is fine */
void mt_guess_enter(mt_model *model, const mt_batch *batch);

/* Makes a working tensor of a layer, or takes the one that another has. slices: of columns that ranks compute together;
   0: each rank computes all columns. */
void mt_decoder_work(mt_model *model, mt_decoder_layer *l, mt_role role, size_t cols, size_t slices);

/* Latent attention (latent.c): loads its weights and makes its working tensors; writes what is cached of n rows, from
   in[MT_ROLE_KEYS], to the pages; attention, whose result is in in[MT_ROLE_ATTENDED]. */
void mt_latent_load(mt_model *model, mt_decoder_layer *l, const mt_layer_weights *w, const mt_attn_spec *a);
void mt_latent_keep(mt_model *model, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n);
void mt_latent_attend(mt_model *model, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n);

/* Loads the weights of a layer and makes its working tensors. */
void mt_decoder_layer_load(mt_model *model, mt_decoder_layer *l, const mt_layer_weights *w, const mt_layer_spec *spec);

/* Runs a layer over n rows: adds its result to model->x. */
void mt_decoder_layer_run(mt_model *model, const mt_decoder_layer *l, const mt_layer_spec *spec, size_t n);

/* Writes the layer's keys and values of n rows of model->h to their pages, and does nothing else. */
void mt_decoder_layer_enter(mt_model *model, const mt_decoder_layer *l, const mt_layer_spec *spec, size_t n);

#endif
