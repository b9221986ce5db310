/* A decoder as data. A family file (llama.c, ...) translates config.json into this; decoder.c runs it. */
#ifndef MT_MODELS_SPEC_H
#define MT_MODELS_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "device/device.h"
#include "weights/config.h"

/* Layers whose pages are alike: same window, number of key/value heads, head size and latent. The keys by which some
   layers choose positions (mt_index_spec) are a group of their own. */
typedef struct mt_layer_group {
    uint32_t window; /* 0: all keys are kept */
    uint32_t layers;
    uint32_t kv_heads, head_dim;
    uint32_t latent; /* as mt_latent_spec.width */
    uint32_t top;    /* as mt_index_spec.top; 0: the group's keys are those of attention */
    uint32_t heads;  /* most query heads of any of its layers */
} mt_layer_group;

/* A rotary embedding: at position p, frequency i turns by the angle p * inv_freq[i]; cos and sin are multiplied by
   scale. */
typedef struct mt_rope {
    const char *type; /* the config's name of it */
    double theta;
    uint32_t half; /* number of turned pairs of elements (i, i + half) */
    bool pairs;    /* the pairs are (2 i, 2 i + 1) instead */
    const float *inv_freq;
    const uint8_t *axis; /* [half]: the axis of a position that each frequency turns with (M-RoPE); NULL: the first */
    float scale;
} mt_rope;

/* Whether a rotary embedding of this type is LongRoPE's, which limits the context to the original one. */
bool mt_rope_is_long(const char *type);

/* Factors on queries of far positions: factor[position / every], the last one for all positions beyond. */
typedef struct mt_stretch {
    const float *factor; /* NULL: none */
    uint32_t count, every;
} mt_stretch;

/* Recurrent layers of Mamba2's kind, where mt_state_shape.plain is set. A key head is a group of B and C. */
typedef struct mt_mamba_spec {
    bool norm;       /* there is a norm behind the recurrence, over each of `groups` parts of it */
    bool norm_first; /* before the result is gated; else behind that */
    uint32_t groups;
    bool in_bias, out_bias, conv_bias; /* of the projections and of the convolution */
    float low, high;                   /* bounds of a token's time step */
    float factor[5];                   /* of what is projected: gate, x, B, C and time steps; 0: all are 1 */
    float result;                      /* of the layer's result; 0: 1 */
} mt_mamba_spec;

/* How a layer mixes a token with those before it. */
typedef enum mt_layer_kind {
    MT_LAYER_ATTENTION,
    MT_LAYER_RECURRENT, /* keeps a state instead of keys and values */
    MT_LAYER_ALONE      /* not at all: it is an MLP or experts alone */
} mt_layer_kind;

#define MT_NO_ROPE UINT8_MAX

/* Where a layer's keys and values come from. */
typedef enum mt_key_source {
    MT_KEYS_OWN,    /* projections of its own for both */
    MT_KEYS_VALUES, /* one projection: values are the keys before their norm and rotation */
    MT_KEYS_EARLIER /* it reads those of an earlier layer (`source`) */
} mt_key_source;

/* The elements that a norm of queries and keys is over. */
typedef enum mt_qk_norm {
    MT_QK_NORM_NONE,
    MT_QK_NORM_HEADS, /* each head by itself */
    MT_QK_NORM_PLAIN, /* each head, without weights */
    MT_QK_NORM_WHOLE  /* all heads of a position as one vector; ranks do not divide such heads */
} mt_qk_norm;

typedef enum mt_v_norm { MT_V_NORM_NONE, MT_V_NORM_PLAIN, MT_V_NORM_WEIGHTS } mt_v_norm;

/* Latent attention (MLA): keys and values of all heads are products of one narrow vector, the latent. What is cached of
   a position is that and one turned part of a key, which all heads share. */
typedef struct mt_latent_spec {
    uint32_t width;   /* of the latent; 0: keys and values are the usual ones */
    uint32_t queries; /* width of a vector that queries are products of; 0: they are of the layer's input */
    uint32_t plain, turned, value; /* elements of a head: of keys, those that are not turned and those that are */
    float eps;                     /* of the norms of both vectors */
} mt_latent_spec;

/* The choice of the positions that a row attends to (DSA's indexer), where it sees more than `top`. Queries and one key
   of a position, both with the first elements turned as the latent's key is, give a score for each head; the sum of the
   positive ones, weighed by numbers of the row, is the position's score. */
typedef struct mt_index_spec {
    uint32_t top;             /* how many positions are chosen; 0: a row attends to all it sees */
    uint32_t heads, head_dim; /* heads 0: the layer takes what the last layer with heads chose */
    bool pairs;               /* neighbouring elements are turned, not halves of the turned part */
    uint8_t group;            /* of its keys: index into mt_model_spec.groups */
    uint16_t slot;            /* its index among the layers that choose */
} mt_index_spec;

/* Where several ranks compute a model, a spec is that of one rank's part (cut.h): its heads, its columns of each width.
   `slices`, here and below, says into how many slices the whole is divided, as for mt_op_share; 0: it is not
   divided. */
typedef struct mt_attn_spec {
    uint32_t heads, kv_heads, head_dim; /* with latents: 1 key head, as wide as what is cached of a position */
    mt_latent_spec latent;
    mt_index_spec index; /* with latents only */
    uint32_t slices;     /* of the heads */
    uint32_t window;     /* how many keys a query sees, its own included; 0: all */
    uint32_t chunk;      /* a query sees keys from the last multiple of this position on; 0: from the first */
    bool causal;  /* positions of a picture do not see later ones of it, even where mt_vision_spec.block is set */
    uint8_t rope; /* index into mt_model_spec.ropes; MT_NO_ROPE: none */
    mt_key_source keys;
    uint16_t source;      /* the earlier layer whose keys and values it reads */
    float scale, softcap; /* softcap 0: none */
    float result;         /* a factor on attention's result; 0: 1 */
    bool qkv_bias, o_bias;
    mt_qk_norm qk_norm;
    mt_v_norm v_norm;
    bool stretched; /* queries are multiplied by mt_model_spec.stretch */
    bool sinks;     /* attention sinks: each head has a score that takes part in the softmax and adds nothing */
    bool gate;      /* q_proj gives a gate behind each head; the attention's result is multiplied by its sigmoid */
} mt_attn_spec;

typedef struct mt_mlp_spec {
    uint32_t ffn, slices;
    mt_glu glu;  /* activation of the gate; experts have the same */
    bool single; /* there is no gate: act(up) multiplies up itself; so in experts */
    bool bias;
    float gate, result; /* factors on the gate before its activation, and on the MLP's result; 0: 1 */
} mt_mlp_spec;

typedef struct mt_moe_spec {
    uint32_t experts, top_k, ffn; /* how many there are, how many a row uses, and their width */
    uint32_t slices;              /* of each expert's width */
    uint32_t latent;  /* width of what experts read and give, by products before and behind all of them; 0: hidden */
    bool bias;        /* each expert's three products have biases */
    bool interleaved; /* where gate and up are one matrix, their rows alternate; else gate comes first */
    mt_routing routing;
    bool router_bias;    /* the router's product has a bias */
    bool router_norm;    /* the router reads the residual stream through a norm of its own */
    bool correction;     /* each expert has a number that is added to its score for choosing only */
    bool scale;          /* each expert has a number that multiplies its result */
    uint32_t shared_ffn; /* width of a further expert that every row uses; 0: none */
    uint32_t shared_slices;
    bool shared_gated; /* its result is multiplied by the sigmoid of a product of its own */
} mt_moe_spec;

typedef struct mt_layer_spec {
    mt_layer_kind kind;
    bool sparse;     /* it has experts instead of a dense MLP */
    bool beside;     /* it has both, each with norms of its own, and adds their results */
    bool scaled;     /* a number of the layer multiplies the residual stream behind it */
    bool post_norms; /* norms behind attention and behind the MLP, before the result is added to the residual stream */
    bool bare;       /* no norms in front of attention and of the MLP */
    bool parallel;   /* the MLP reads what attention reads, through the same norm */
    bool paired;     /* a recurrent layer, of slot `state_slot`, reads what attention reads; their results are added */
    bool no_mlp;     /* it has neither MLP nor experts */
    float residual;  /* attention's and the MLP's results are multiplied by it before they are added; 0: by 1 */
    uint8_t group;   /* index into mt_model_spec.groups; not used for a recurrent layer */
    uint16_t slot;   /* its index among the layers of its group, or among the recurrent layers */
    uint16_t state_slot; /* of a paired layer: its index among the recurrent layers */
    mt_attn_spec attn;
    mt_mlp_spec mlp;
    mt_moe_spec moe; /* where the layer is sparse */
} mt_layer_spec;

/* Tokens that are embedded as token `as`: those that stand for pictures and sounds. */
typedef struct mt_blank {
    uint32_t count, token[3], as;
} mt_blank;

/* Names of tensors, where a family differs from the usual ones. */
typedef struct mt_tensor_names {
    const char *norm; /* the norm behind the last layer */
    const char *attn_norm, *attn_post_norm, *mlp_norm, *mlp_post_norm;
    const char *q_norm, *k_norm, *o;
    const char *gate, *up, *down;
    const char *mlp;        /* the module that contains the MLP and experts; NULL: "mlp" */
    const char *attention;  /* the module of attention; NULL: "self_attn" */
    const char *embed;      /* the embedding; NULL: "embed_tokens" */
    const char *mamba;      /* the module of a recurrent layer of Mamba2's kind; NULL: "mamba" */
    const char *correction; /* of mt_moe_spec.correction; NULL: "mlp.gate.e_score_correction_bias" */
    /* gate above up in one matrix; NULL: two matrices. Where it cannot be divided, gate is reported as missing. */
    const char *gate_up;
} mt_tensor_names;

typedef struct mt_model_spec {
    const char *family;           /* "llama", "qwen2", "qwen3", "qwen3_moe", "gemma3" */
    const char *architecture;     /* as config.json says it */
    const mt_tensor_names *names; /* NULL: the usual ones */
    uint32_t vocab, hidden, layers, context;
    float eps;
    float norm_offset;                   /* 1 where norms multiply by (1 + w) */
    bool centred;                        /* norms subtract the mean before (LayerNorm without a bias) */
    float final_softcap;                 /* 0: none */
    float embed_scale;                   /* 1: none */
    float logit_scale;                   /* logits are multiplied by it; 0: by 1 */
    bool tied;                           /* the output head is the embedding matrix */
    const struct mt_vision_spec *vision; /* the vision tower; NULL: none, or not wanted */
    /* DeepStack: so many of the first layers each add a part of a picture's features to their output */
    uint32_t deepstack;
    /* width and rows of the small embedding that each layer has of its own ("aside"); 0: none */
    uint32_t aside, aside_vocab;
    mt_blank blank;
    bool mtp; /* the checkpoint has a drafting head, which guesses the token behind the next one */
    const struct mt_drafter_spec *drafter; /* a drafter from another checkpoint; NULL: none */
    uint32_t rope_count;
    const mt_rope *ropes;
    mt_stretch stretch;
    const mt_layer_spec *layer; /* [layers] */
    mt_state_shape state;       /* of the recurrent layers; its `layers` is 0 where there are none */
    mt_mamba_spec mamba;        /* where state.plain */
    bool state_bias; /* recurrent layers that are only convolutions: they and their projections have biases */
    /* slices of widths that belong to no single layer */
    uint32_t hidden_slices, vocab_slices, aside_slices, state_slices;
    uint32_t guess_slices; /* slices of the tokens that may be guessed */
    uint32_t group_count;
    mt_layer_group groups[MT_KV_GROUPS]; /* the first keeps all keys, however few its layers see */
} mt_model_spec;

/* A drafter: a small model that guesses for another one. It keeps no keys and values of its own, but reads those of the
   other model's last layers; it is used instead of a drafting head. */
typedef struct mt_drafter_spec {
    mt_model_spec model;             /* groups and slots of its layers are the other model's */
    mt_layer_spec *layer;            /* the same as model.layer, writable */
    uint32_t backbone;               /* hidden size of the other model */
    uint32_t clusters, top_clusters; /* clusters of tokens, of which only the best are compared; 0: all tokens are */
} mt_drafter_spec;

static inline bool mt_model_guesses(const mt_model_spec *spec)
{
    return spec->mtp || spec->drafter;
}

/* The first layer with attention, and the first with experts, as examples of all such layers; NULL: there is none. */
const mt_layer_spec *mt_model_spec_attention(const mt_model_spec *spec);
const mt_layer_spec *mt_model_spec_sparse(const mt_model_spec *spec);

/* Divides spec->layer into groups and gives each layer its slot; layer is the same array, writable. False with a
   sentence. */
bool mt_model_spec_group(mt_model_spec *spec, mt_layer_spec *layer, mt_error *err) MT_NODISCARD;

/* Reads config.json (its top level) into *spec; what that points to lives in the arena. family: NULL: as the config
   says. False with a sentence that names the key, or the architecture and those that are known. */
bool mt_model_spec_read(mt_model_spec *spec, const mt_config *config, const char *family, mt_arena *arena,
                        mt_error *err) MT_NODISCARD;

/* mt_drafter_known: whether config.json is a drafter's. mt_drafter_join makes it the drafter of *spec; false where it
   was made for another model. */
bool mt_drafter_known(const mt_config *config);
bool mt_drafter_spec_read(mt_drafter_spec *drafter, const mt_config *config, mt_arena *arena,
                          mt_error *err) MT_NODISCARD;
bool mt_drafter_join(mt_drafter_spec *drafter, mt_model_spec *spec, mt_error *err) MT_NODISCARD;

#endif
