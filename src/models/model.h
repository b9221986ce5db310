/* A model on a device: its weights, and one forward step over a batch of sequences. The engine calls this; decoder.c
   implements it. Where there are several ranks, each call is also told to them (relay.h). */
#ifndef MT_MODELS_MODEL_H
#define MT_MODELS_MODEL_H

#include "device/device.h"
#include "models/spec.h"
#include "weights/bind.h"
#include "weights/checkpoint.h"

/* A layer's weights as they are in the checkpoint. Vectors that the model lacks are NULL, such matrices have n == 0. */
typedef struct mt_layer_weights {
    const float *attn_norm, *attn_post_norm, *mlp_norm, *mlp_post_norm, *q_norm, *k_norm, *v_norm, *sinks;
    const float *dense_post_norm, *expert_norm, *expert_post_norm; /* where a layer has a dense MLP beside experts */
    const float *scale;                                            /* one number that multiplies the residual stream */
    mt_mat q, k, v, o;
    const float *q_bias, *k_bias, *v_bias, *o_bias;
    /* with latents: k makes what is cached, and k_norm is the latent's; q reads what q_narrow makes, where there is
       that, through q_norm. key_up and value_up are from the latent to each head's keys and values, or the first
       already the other way round. */
    mt_mat q_narrow, key_up, value_up;
    const float *q_narrow_bias;
    mt_head_rows key_rows, value_rows;
    mt_mat index_q, index_k, index_weights; /* of the choice of positions (mt_index_spec) */
    const float *index_norm, *index_norm_bias;
    mt_mat gate, up, down;
    const float *gate_bias, *up_bias, *down_bias;
    mt_mat router;
    /* correction: added to scores for choosing only; expert_scale: multiplies an expert's result */
    const float *router_bias, *router_norm, *correction, *expert_scale;
    mt_mat *expert_gate, *expert_up, *expert_down; /* [experts] */
    const float *expert_gate_bias, *expert_up_bias, *expert_down_bias;
    mt_mat expert_in, expert_out; /* where experts read a narrower row (mt_moe_spec.latent) */
    mt_mat shared_router, shared_gate, shared_up, shared_down;
    mt_mat aside_gate, aside_out; /* of the layer's own embedding (mt_model_spec.aside) */
    const float *aside_norm;
    /* of a recurrent layer. Where mix_z and mix_a have n == 0, their rows are in mix_qkv and mix_b, by key head: [q k v
       z] and [b a]. */
    mt_mat mix_qkv, mix_z, mix_b, mix_a, mix_out;
    mt_mat mix_k, mix_v;   /* of a rank whose part of qkv is not contiguous: mix_qkv is q alone then */
    const float *mix_conv; /* [taps][columns] */
    const float *mix_rate, *mix_bias, *mix_norm;
    const float *mix_skip; /* of Mamba2: by value head, how much of its input is added to its result */
    /* of a layer that is only a convolution, and of Mamba2, whose mix_conv has the convolution's bias as a last row */
    const float *mix_in_bias, *mix_conv_bias, *mix_out_bias;
    const float *mix_z_bias, *mix_a_bias;
} mt_layer_weights;

/* Only the first so many tokens of a vocabulary are guessed ahead: vocabularies begin with the frequent ones, and a
   head of a quarter of a million rows would take as long as some layers. */
#define MT_GUESSED_TOKENS 65536

static inline uint32_t mt_model_guessed(const mt_model_spec *spec)
{
    return spec->vocab < MT_GUESSED_TOKENS ? spec->vocab : MT_GUESSED_TOKENS;
}

/* The head that guesses ahead: fc joins a token's embedding and the hidden state before it, as the input of attention
   layers. */
typedef struct mt_guess_weights {
    mt_mat fc;
    mt_mat head; /* the model's head, or a drafter's; only the rows of tokens that may be guessed */
    const float *embed_norm, *hidden_norm, *norm; /* a drafter has only `norm` */
    mt_layer_weights *layer;
    /* of a drafter only */
    mt_mat back;          /* from its width to the model's */
    mt_mat centroids;     /* of clusters of tokens; n == 0: none */
    const uint32_t *kept; /* [vocab]: the tokens of the first cluster, then those of the second, and so on */
} mt_guess_weights;

typedef struct mt_model_weights {
    mt_mat embed, head; /* head equals embed where they are tied */
    const float *norm;
    /* the layers' own embeddings side by side, and the projection of the model's embedding that is added to them */
    mt_mat aside, aside_projection;
    const float *aside_norm;
    mt_layer_weights *layer;
    mt_guess_weights guess;           /* where mt_model_guesses(spec) */
    struct mt_vision_weights *vision; /* NULL where the spec has no tower */
    mt_bind_cost cost;
} mt_model_weights;

/* Finds every tensor of the spec in the checkpoint; does not read matrices. Tensors that are converted live in the
   arena. False with one sentence that names all that is missing. Corrects the spec where the files differ from the
   config: tied becomes whether the checkpoint lacks a head, a tower is dropped where it has none, and norm_offset is 0
   where a converter has added it to the weights. */
bool mt_model_bind(mt_model_weights *weights, mt_model_spec *spec, const mt_checkpoint *checkpoint, mt_arena *arena,
                   mt_error *err) MT_NODISCARD;

/* The same for a drafter, from its own checkpoint. */
bool mt_drafter_bind(mt_guess_weights *weights, const mt_drafter_spec *drafter, const mt_checkpoint *checkpoint,
                     mt_bind_cost *cost, mt_arena *arena, mt_error *err) MT_NODISCARD;

typedef struct mt_model_params {
    size_t rows;   /* most rows of a step */
    size_t logits; /* most rows of a step whose logits are wanted */
    size_t places; /* running sequences have numbers below this one */
    size_t memos;  /* most spans of a step that end with guesses, where the model has recurrent layers */
} mt_model_params;

typedef struct mt_model mt_model;

/* Makes the model's device objects and plans the device. All that is passed is borrowed; free with mt_model_free before
   closing the device. NULL with a sentence. */
mt_model *mt_model_new(mt_device *dev, const mt_model_spec *spec, const mt_model_weights *weights,
                       const mt_model_params *params, mt_error *err) MT_NODISCARD;
void mt_model_free(mt_model *model);

/* The spec of a drafting head's layer; it stands behind the last layer of the first group. */
mt_layer_spec mt_model_guess_layer(const mt_model_spec *spec);

/* The shape of the pages of a group. */
mt_kv_shape mt_model_kv_shape(const mt_model_spec *spec, size_t group, mt_kv_type type);

/* Makes the pages of each group and the slots for recurrent states; once, before the first step. */
bool mt_model_reserve(mt_model *model, const size_t pages[MT_KV_GROUPS], size_t states, mt_error *err) MT_NODISCARD;

/* Copies pages from[g] to pages to[g], for each group where to[g] is not MT_NO_PAGE. */
void mt_model_copy_pages(mt_model *model, const uint32_t to[MT_KV_GROUPS], const uint32_t from[MT_KV_GROUPS]);

/* Begin to read a page of a group, or a state, as bytes; and begin to write such bytes, from byte `at` of `sending` on,
   into any page or slot of a model with the same weights and fingerprint. */
void mt_model_read_page(mt_model *model, mt_reading *reading, size_t group, uint32_t page);
void mt_model_read_state(mt_model *model, mt_reading *reading, uint32_t slot);
void mt_model_restore_page(mt_model *model, size_t group, uint32_t page, mt_sending *sending, size_t at);
void mt_model_restore_state(mt_model *model, uint32_t slot, mt_sending *sending, size_t at);

/* For debugging: fills a page of a group, or a state (group MT_KV_GROUPS), with NaN; and tells whether it is still
   so. */
void mt_model_poison(mt_model *model, size_t group, uint32_t page);
bool mt_model_poisoned(mt_model *model, size_t group, uint32_t page);

/* Sets the tensor whose rows mt_batch.features name; borrowed. NULL: none. */
void mt_model_set_features(mt_model *model, const mt_tensor *features);

/* Whether the final hidden state of a row is finite (R10 of docs/numerics.md). ago: 0 for the last step, 1 for the one
   before. Waits for that step, and for nothing later. */
bool mt_model_sound(mt_model *model, size_t ago, size_t row);

/* Whether a step may begin with tokens that the host does not know yet (mt_batch.chooser). */
static inline bool mt_model_follows(const mt_model_spec *spec)
{
    return spec->blank.count == 0;
}

/* Runs one step: writes keys and values of every row to its pages, and returns the logits of rows[0..count), row i for
   rows[i]. They are valid until the next step. Allocates nothing. */
const mt_tensor *mt_model_step(mt_model *model, const mt_batch *batch, const uint32_t *rows, size_t count);

/* Adds the final hidden states, behind the last norm, of the last step's rows to sums of spec->hidden floats: row i to
   the sum of place to[i]; MT_NO_PAGE: to none. The logits of the step stay valid. */
void mt_model_pool(mt_model *model, const uint32_t *to, size_t rows);
void mt_model_pool_begin(mt_model *model, size_t place); /* sets the place's sum to 0 */

/* The final hidden state of one row of the last step, valid until the next call; after mt_model_pool of that step.
   Waits for the device. */
const float *mt_model_state(mt_model *model, size_t row);

/* The sum of a place, valid until the next call. Waits for the device. */
const float *mt_model_pooled(mt_model *model, size_t place);

/* ---- guessing ahead; only where mt_model_guesses(spec) ---- */

/* Keeps the final hidden state of row `row` of the last step: the next row of the sequence with this place follows it.
   MT_NO_PAGE: nothing precedes that row. */
void mt_model_carry(mt_model *model, size_t place, uint32_t row);

/* Guesses the token that follows each row; one row a span, at most `memos` rows. The hidden state before a row is the
   one carried or, where `chained`, the result of the previous call for the same row. Rows of a drafting head are at the
   positions of their tokens; those of a drafter stay at the position of the first guess. */
void mt_model_guess(mt_model *model, const mt_batch *batch, bool chained, uint32_t *tokens);

#endif
