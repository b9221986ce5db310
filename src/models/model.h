/* A model: its spec, its weights on a device, and one forward step over a batch of sequences. */
#ifndef MT_MODELS_MODEL_H
#define MT_MODELS_MODEL_H

#include "device/device.h"
#include "models/spec.h"
#include "weights/bind.h"
#include "weights/checkpoint.h"

/* Where a layer's weights lie in the checkpoint. Vectors that the model has not are NULL, matrices have n == 0. */
typedef struct mt_layer_weights {
    const float *attn_norm, *attn_post_norm, *mlp_norm, *mlp_post_norm, *q_norm, *k_norm, *v_norm, *sinks;
    const float *dense_post_norm, *expert_norm, *expert_post_norm; /* of a dense MLP beside experts, and of these */
    const float *scale;                                            /* one number: of the residual stream */
    mt_mat q, k, v, o;
    const float *q_bias, *k_bias, *v_bias, *o_bias;
    mt_mat gate, up, down;
    const float *gate_bias, *up_bias, *down_bias;
    mt_mat router;
    const float *router_bias, *router_norm, *correction, *expert_scale;
    mt_mat *expert_gate, *expert_up, *expert_down; /* [experts] */
    const float *expert_gate_bias, *expert_up_bias, *expert_down_bias;
    mt_mat shared_router, shared_gate, shared_up, shared_down;
    mt_mat aside_gate, aside_out; /* of the embedding that a layer has besides */
    const float *aside_norm;
    /* of a recurrent layer. Where z and a have no rows, theirs lie in qkv and b, by key head: [q k v z] and [b a]. */
    mt_mat mix_qkv, mix_z, mix_b, mix_a, mix_out;
    mt_mat mix_k, mix_v;   /* what a rank has of qkv, where that is not one piece: mix_qkv is q then */
    const float *mix_conv; /* [taps][columns] */
    const float *mix_rate, *mix_bias, *mix_norm;
    const float *mix_in_bias, *mix_conv_bias, *mix_out_bias; /* of one that is nothing but a convolution */
} mt_layer_weights;

/* Tokens that are guessed at all. Vocabularies begin with what is frequent, and a head of a quarter of a million rows
   takes as long as some layers. */
#define MT_GUESSED_TOKENS 65536

static inline uint32_t mt_model_guessed(const mt_model_spec *spec)
{
    return spec->vocab < MT_GUESSED_TOKENS ? spec->vocab : MT_GUESSED_TOKENS;
}

/* What guesses ahead: fc joins a token's embedding and the hidden state before it, for layers of attention. */
typedef struct mt_guess_weights {
    mt_mat fc;
    mt_mat head; /* the model's, or a drafter's own of its own width; of the tokens that are guessed at all */
    const float *embed_norm, *hidden_norm, *norm; /* a drafter has only the last */
    mt_layer_weights *layer;
    /* of a drafter */
    mt_mat back;          /* from its width to the model's */
    mt_mat centroids;     /* of clusters of tokens; n == 0: there are none */
    const uint32_t *kept; /* [vocab]: the tokens of the first cluster, of the second, ... */
} mt_guess_weights;

typedef struct mt_model_weights {
    mt_mat embed, head; /* head equals embed where they are tied */
    const float *norm;
    mt_mat aside, aside_projection; /* embeddings of all layers side by side, and what the model's own adds to them */
    const float *aside_norm;
    mt_layer_weights *layer;
    mt_guess_weights guess;           /* where the spec guesses */
    struct mt_vision_weights *vision; /* NULL where the spec has no tower */
    mt_bind_cost cost;
} mt_model_weights;

/* Finds every tensor of the spec in the checkpoint, without reading them. What is converted lives in the arena.
   False with one sentence that names all that is missing. Whether the spec is tied afterwards is whether the
   checkpoint lacks a head; a spec with a tower loses it when the checkpoint has none, and one with recurrent layers
   its norm_offset where a converter has added it to the weights. */
bool mt_model_bind(mt_model_weights *weights, mt_model_spec *spec, const mt_checkpoint *checkpoint, mt_arena *arena,
                   mt_error *err) MT_NODISCARD;

/* The same for the drafter of a spec, from a checkpoint of its own. */
bool mt_drafter_bind(mt_guess_weights *weights, const mt_drafter_spec *drafter, const mt_checkpoint *checkpoint,
                     mt_bind_cost *cost, mt_arena *arena, mt_error *err) MT_NODISCARD;

typedef struct mt_model_params {
    size_t rows;   /* most rows of a step */
    size_t logits; /* most rows of a step whose logits are wanted */
    size_t places; /* sequences are told apart by numbers below this one */
    size_t memos;  /* most spans of a step that end with guesses, where layers are recurrent */
} mt_model_params;

typedef struct mt_model mt_model;

/* Borrows everything it is given; free with mt_model_free before closing the device. */
mt_model *mt_model_new(mt_device *dev, const mt_model_spec *spec, const mt_model_weights *weights,
                       const mt_model_params *params, mt_error *err) MT_NODISCARD;
void mt_model_free(mt_model *model);

/* The layer of a head that guesses ahead, after the last one of the first group. */
mt_layer_spec mt_model_guess_layer(const mt_model_spec *spec);

/* The shape of the cache pages of a layer group. */
mt_kv_shape mt_model_kv_shape(const mt_model_spec *spec, size_t group, mt_kv_type type);

/* Gives each layer group its cache pages, and the recurrent layers slots for states, once, before the first step. */
bool mt_model_reserve(mt_model *model, const size_t pages[MT_KV_GROUPS], size_t states, mt_error *err) MT_NODISCARD;

/* Pages to[g] become copies of pages from[g], for each group where to[g] is a page. */
void mt_model_copy_pages(mt_model *model, const uint32_t to[MT_KV_GROUPS], const uint32_t from[MT_KV_GROUPS]);

/* Begins to read a page of a group, or a slot of a state, as bytes that can be put back into any page or slot of the
   same model and fingerprint. */
void mt_model_read_page(mt_model *model, mt_reading *reading, size_t group, uint32_t page);
void mt_model_read_state(mt_model *model, mt_reading *reading, uint32_t slot);
void mt_model_restore_page(mt_model *model, size_t group, uint32_t page, mt_sending *sending, size_t at);
void mt_model_restore_state(mt_model *model, uint32_t slot, mt_sending *sending, size_t at);

/* For debugging: makes a page of a group, or a slot of a state (group MT_KV_GROUPS), NaN all over, and says whether it
   still is. */
void mt_model_poison(mt_model *model, size_t group, uint32_t page);
bool mt_model_poisoned(mt_model *model, size_t group, uint32_t page);

/* The tensor whose rows a batch's features are; borrowed. NULL: there are none. */
void mt_model_set_features(mt_model *model, const mt_tensor *features);

/* Whether the final hidden state of a row of the last step is finite (R10). Waits for it. */
bool mt_model_sound(mt_model *model, size_t row);

/* One step: writes keys and values of every row to its pages, and the logits of rows[0..count) to the result, row i
   for rows[i]. The result is valid until the next step. Allocates nothing. */
const mt_tensor *mt_model_step(mt_model *model, const mt_batch *batch, const uint32_t *rows, size_t count);

/* Adds the final hidden states, after the last norm, of the last step's rows to sums of spec->hidden floats: row i to
   that of place to[i], to none where it is MT_NO_PAGE. The logits of the step are still there. */
void mt_model_pool(mt_model *model, const uint32_t *to, size_t rows);
void mt_model_pool_begin(mt_model *model, size_t place); /* its sum becomes 0 */

/* The sum of a place, valid until the next call. Waits for it. */
const float *mt_model_pooled(mt_model *model, size_t place);

/* ---- guessing ahead; where the spec does ---- */

/* Row `row` of the last step comes before the next row of the span with this place; nothing does where it is
   MT_NO_PAGE. */
void mt_model_carry(mt_model *model, size_t place, uint32_t row);

/* What follows the token of each row, one row a span; at most `memos` rows. First what is carried stands before them;
   where `chained`, the result of the call before, whose first rows are these. Rows of a head stand where their tokens
   do; those of a drafter always where the first did, behind all that the model has computed. */
void mt_model_guess(mt_model *model, const mt_batch *batch, bool chained, uint32_t *tokens);

#endif
